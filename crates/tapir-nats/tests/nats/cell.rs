//! Workers and clients of a cell, on a real nats-server.

use std::time::Duration;

use tapir::Model;
use tapir::protocol::{Request, Response};
use tapir_nats::{Answers, Client, Connection, Options, Sender, Worker, WorkerSettings};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::support::{MODEL, Nats, cell, expected, message, utterance, worker};

/// Longer than anything takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_mins(2);

const SENTENCES: [&str; 4] = [
    "add step to me to the fifty clasicos playlist",
    "what's the weather going to be like in boston tomorrow at noon",
    "book a table for two at a restaurant in new york",
    "play some jazz by miles davis please",
];

fn model() -> Model {
    Model::embedded_named(MODEL).unwrap()
}

/// All answers to a message.
async fn answers(answers: &mut Answers, input: u64) -> Vec<Response> {
    let mut all = Vec::new();
    loop {
        let answer = timeout(PATIENCE, answers.next()).await.expect("an answer in time").unwrap();
        assert_eq!(answer.input, input, "answers come in the order of the messages");
        all.push(answer.response);
        if answer.last {
            return all;
        }
    }
}

/// Sends messages one by one; gives all answers to each.
async fn talk(session: &mut (Sender, Answers), messages: &[Request]) -> Vec<Vec<Response>> {
    let mut all = Vec::new();
    for message in messages {
        let input = session.0.send(message).await.unwrap();
        all.push(answers(&mut session.1, input).await);
    }
    all
}

/// A worker that can die without a word: all its tasks end at once.
struct Mortal(Option<(Runtime, Worker)>);

impl Mortal {
    async fn start(settings: WorkerSettings) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let worker = runtime.spawn(Worker::start(settings)).await.unwrap().unwrap();
        Self(Some((runtime, worker)))
    }

    fn die(&mut self) {
        if let Some((runtime, _)) = self.0.take() {
            runtime.shutdown_background();
        }
    }

    async fn stop(mut self) {
        if let Some((runtime, worker)) = self.0.take() {
            runtime.spawn(async move { worker.stop().await }).await.unwrap();
            runtime.shutdown_background();
        }
    }

    fn partitions(&self) -> usize {
        self.0.as_ref().unwrap().1.partitions()
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.die();
    }
}

async fn client(connection: &Connection) -> Client {
    Client::connect(connection, "tapir").await.unwrap()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_the_librarys_to_the_bit() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let worker = Mortal::start(worker(connection.clone(), cell(1))).await;
    let client = client(&connection).await;
    let variants = [
        Options::default(),
        Options { threshold: Some(0.0), ..Options::default() },
        Options { one_answer: true, pretokenized: true, ..Options::default() },
    ];
    for (index, options) in variants.iter().enumerate() {
        let mut session = client.session(&format!("exact-{index}"), options).await.unwrap();
        let mut messages: Vec<Request> =
            SENTENCES.iter().flat_map(|text| utterance(text)).collect();
        messages.push(message(r#"{"update": ["play", "some", "music"]}"#));
        messages.push(message(r#"{"update": ["play", "some", "jazz", "now"]}"#));
        messages.push(message(r#"{"revoke": 2}"#));
        messages.push(message(r#"{"threshold": 0.1}"#));
        messages.push(message(r#"{"push": "Jazz, please"}"#));
        messages.push(message(r#"{"close": true}"#));
        messages.push(message(r#"{"push": "again"}"#));
        let given = talk(&mut session, &messages).await;
        let library = expected(&model(), options, &messages);
        assert_eq!(given, library);
        if !options.one_answer {
            assert!(library.iter().any(|answers| answers.len() == 2), "nothing was revised");
        }
    }
    worker.stop().await;
}

/// The session's words were answered by a worker that died, in the middle of an utterance, after a
/// reset and a change of the threshold: all of which the next one has to know.
#[tokio::test(flavor = "multi_thread")]
async fn another_worker_goes_on_where_one_died() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let mut workers = vec![Mortal::start(worker(connection.clone(), cell(1))).await];
    let client = client(&connection).await;
    let mut messages = vec![message(r#"{"threshold": 0.2}"#)];
    messages.extend(SENTENCES.iter().flat_map(|text| utterance(text)));
    let library = expected(&model(), &Options::default(), &messages);
    let mut session = client.session("orphan", &Options::default()).await.unwrap();
    let mut given = Vec::new();
    for (index, part) in messages.chunks(6).enumerate() {
        if index > 0 {
            workers.push(Mortal::start(worker(connection.clone(), cell(1))).await);
            // Some die with messages in hand, which the next one answers.
            let input = session.0.send(&part[0]).await.unwrap();
            workers[index - 1].die();
            given.push(answers(&mut session.1, input).await);
            given.extend(talk(&mut session, &part[1..]).await);
        } else {
            given.extend(talk(&mut session, part).await);
        }
    }
    assert_eq!(given, library);
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_move_as_workers_join_and_leave() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let first = Mortal::start(worker(connection.clone(), cell(1))).await;
    until("the first serves all", || first.partitions() == 6).await;
    let client = client(&connection).await;
    let library = expected(&model(), &Options::default(), &utterance(SENTENCES[0]));
    // Sessions of all partitions, which talk while the partitions move under them.
    let talking: Vec<_> = (0..12)
        .map(|index| {
            let (client, library) = (client.clone(), library.clone());
            tokio::spawn(async move {
                let options = Options::default();
                let mut session = client.session(&format!("m-{index}"), &options).await.unwrap();
                for _ in 0..12 {
                    assert_eq!(talk(&mut session, &utterance(SENTENCES[0])).await, library);
                }
            })
        })
        .collect();
    let second = Mortal::start(worker(connection.clone(), cell(1))).await;
    until("they share", || first.partitions() == 3 && second.partitions() == 3).await;
    first.stop().await;
    until("the second serves all", || second.partitions() == 6).await;
    for session in talking {
        session.await.unwrap();
    }
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_believe_to_be_in_charge_answer_once() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let mut settings = worker(connection.clone(), cell(1));
    // It beats every fifteen seconds, and so does not see that its leases are taken.
    settings.lease = Duration::from_mins(1);
    let zombie = Mortal::start(settings).await;
    until("the zombie serves all", || zombie.partitions() == 6).await;
    let raw = connection.connect("thief").await.unwrap();
    let context = async_nats::jetstream::new(raw);
    let bucket = context.get_key_value("tapir-cell").await.unwrap();
    for partition in 0..6 {
        let nobody = r#"{"worker": null, "floor": 0}"#;
        bucket.put(format!("partition.{partition}"), nobody.into()).await.unwrap();
    }
    let mut settings = worker(connection.clone(), cell(1));
    settings.name = Some("heir".into());
    let heir = Mortal::start(settings).await;
    // Two workers are alive, so that the heir takes half of them; there both serve.
    until("the heir serves", || heir.partitions() == 3).await;
    let client = client(&connection).await;
    let messages: Vec<Request> = SENTENCES.iter().flat_map(|text| utterance(text)).collect();
    let library = expected(&model(), &Options::default(), &messages);
    for index in 0..8 {
        let name = format!("z-{index}");
        let mut session = client.session(&name, &Options::default()).await.unwrap();
        assert_eq!(talk(&mut session, &messages).await, library);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_messages_are_refused_and_change_nothing() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let mut limited = cell(1);
    limited.messages_per_session = 40;
    let _worker = Mortal::start(worker(connection.clone(), limited)).await;
    let client = client(&connection).await;
    let mut session = client.session("hostile", &Options::default()).await.unwrap();
    let garbage: [&[u8]; 7] = [
        b"",
        b"{",
        b"[1, 2]",
        b"\xff\xfe",
        br#"{"push": "a", "finish": true}"#,
        br#"{"push": ""}"#,
        br#"{"session": "another", "push": "play"}"#,
    ];
    let mut refusals = Vec::new();
    for wrong in garbage {
        let input = session.0.send_bytes(wrong.to_vec().into()).await.unwrap();
        let mut given = answers(&mut session.1, input).await;
        assert_eq!(given.len(), 1);
        refusals.push(given.remove(0).error.expect("a refusal"));
    }
    assert!(refusals[3].contains("UTF-8") && refusals[6].contains("hostile"), "{refusals:?}");
    // Out of turn: refused by the session itself, which the refusals before did not touch.
    let messages = [
        "{\"revoke\": 3}",
        "{\"push\": \"play\"}",
        "{\"finish\": true}",
        "{\"push\": \"late\"}",
        "{\"close\": true}",
        "{\"close\": true}",
        "{\"push\": \"new\"}",
    ];
    let messages = messages.map(message);
    let given = talk(&mut session, &messages).await;
    assert_eq!(given, expected(&model(), &Options::default(), &messages));
    assert!(given[0][0].error.is_some() && given[3][0].error.is_some());
    assert_eq!(given[6][0].update.as_ref().unwrap().step, 1, "a closed session begins anew");
    // Too long, and too many: the broker says so.
    let long = session.0.send_bytes(vec![b' '; 100_000].into()).await.unwrap_err();
    assert!(long.to_string().contains("too long"), "{long}");
    let mut refused = None;
    for _ in 0..41 {
        let sent = session.0.send(&message(r#"{"push": "word"}"#)).await;
        refused = refused.or(sent.err());
    }
    let refused = refused.expect("a limit").to_string();
    assert!(refused.contains("begin another session"), "{refused}");
    // A model that is not there, and a header that is nonsense.
    for options in [
        Options { model: Some("none".into()), ..Options::default() },
        Options { threshold: Some(7.0), ..Options::default() },
    ] {
        let mut session = client.session("wrong-options", &options).await.unwrap();
        let given = talk(&mut session, &[message(r#"{"push": "word"}"#)]).await;
        assert!(given[0][0].error.is_some());
    }
    assert!(client.session("a.b", &Options::default()).await.is_err());
}

/// A client that sends a message twice, with the same id, as one does that saw no acknowledgement.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_sent_twice_counts_once() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let _worker = Mortal::start(worker(connection.clone(), cell(1))).await;
    let client = client(&connection).await;
    let mut session = client.session("twice", &Options::default()).await.unwrap();
    let raw = connection.connect("raw").await.unwrap();
    let context = async_nats::jetstream::new(raw);
    let mut inputs = Vec::new();
    for _ in 0..3 {
        let publish = async_nats::jetstream::message::PublishMessage::build()
            .payload(r#"{"push": "play"}"#.into())
            .message_id("mine-1");
        let sent = context.send_publish("tapir.in.twice", publish).await.unwrap();
        inputs.push(sent.await.unwrap().sequence);
    }
    assert!(inputs.iter().all(|input| *input == inputs[0]), "{inputs:?}");
    answers(&mut session.1, inputs[0]).await;
    let next = talk(&mut session, &[message(r#"{"push": "jazz"}"#)]).await;
    assert_eq!(next[0].last().unwrap().update.as_ref().unwrap().step, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_sessions_finish_on_their_model() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let with = |models: &[(&str, &str)], default: &str, retired: &[&str]| {
        let mut settings = worker(connection.clone(), cell(1));
        let models = models.iter().map(|(name, model)| (name.to_string(), model.to_string()));
        settings.engine.models = models.collect();
        settings.engine.default_model = Some(default.into());
        settings.retired = retired.iter().map(ToString::to_string).collect();
        settings
    };
    let old = Mortal::start(with(&[("label", "embedded:snips-small")], "label", &[])).await;
    let client = client(&connection).await;
    let messages = utterance(SENTENCES[3]);
    let library = expected(&model(), &Options::default(), &messages);
    let mut kept = client.session("kept", &Options::default()).await.unwrap();
    let mut lost = client.session("lost", &Options::default()).await.unwrap();
    assert_eq!(talk(&mut kept, &messages[..3]).await, library[..3]);
    assert_eq!(talk(&mut lost, &messages[..3]).await, library[..3]);
    old.stop().await;

    let both = [("label", "embedded:pos"), ("before", "embedded:snips-small")];
    let new = Mortal::start(with(&both, "label", &["before"])).await;
    assert_eq!(talk(&mut kept, &messages[3..]).await, library[3..]);
    let mut fresh = client.session("fresh", &Options::default()).await.unwrap();
    let pos = Model::embedded_named("pos").unwrap();
    let answers = talk(&mut fresh, &messages).await;
    assert_eq!(answers, expected(&pos, &Options::default(), &messages));
    new.stop().await;

    // Without the old model a session of it ends, and says so; the next message begins anew.
    let _only = Mortal::start(with(&both[..1], "label", &[])).await;
    let refused = talk(&mut lost, &messages[3..4]).await.remove(0).remove(0);
    assert!(refused.error.unwrap().contains("no longer served"));
    assert_eq!(talk(&mut lost, &messages).await, expected(&pos, &Options::default(), &messages));
}

/// A session whose words went out of retention is not guessed: it ends, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn words_that_are_gone_end_the_session() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let first = Mortal::start(worker(connection.clone(), cell(1))).await;
    let client = client(&connection).await;
    let messages = utterance(SENTENCES[3]);
    let library = expected(&model(), &Options::default(), &messages);
    let mut session = client.session("old", &Options::default()).await.unwrap();
    assert_eq!(talk(&mut session, &messages[..3]).await, library[..3]);
    first.stop().await;
    let raw = connection.connect("admin").await.unwrap();
    let stream = async_nats::jetstream::new(raw).get_stream("tapir-in").await.unwrap();
    stream.purge().filter("tapir.in.*.old").await.unwrap();
    let _second = Mortal::start(worker(connection.clone(), cell(1))).await;
    let refused = talk(&mut session, &messages[3..4]).await.remove(0).remove(0);
    assert!(refused.error.unwrap().contains("older than what the cell keeps"));
    assert_eq!(talk(&mut session, &messages).await, library);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_dies_is_waited_for() {
    let Some(mut nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let _worker = Mortal::start(worker(connection.clone(), cell(1))).await;
    let client = client(&connection).await;
    let messages: Vec<Request> = SENTENCES.iter().flat_map(|text| utterance(text)).collect();
    let library = expected(&model(), &Options::default(), &messages);
    let mut session = client.session("patient", &Options::default()).await.unwrap();
    let mut given = Vec::new();
    for part in messages.chunks(12) {
        given.extend(talk(&mut session, part).await);
        nats.nodes[0].kill();
        nats.nodes[0].start();
    }
    assert_eq!(given, library);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_other_settings_or_kernels_is_refused() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let _worker = Mortal::start(worker(connection.clone(), cell(1))).await;
    let mut other = cell(1);
    other.partitions = 7;
    let error = Worker::start(worker(connection.clone(), other)).await.err().unwrap().to_string();
    assert!(error.contains("\"partitions\":6") && error.contains("\"partitions\":7"), "{error}");
    let raw = connection.connect("other").await.unwrap();
    let bucket = async_nats::jetstream::new(raw).get_key_value("tapir-cell").await.unwrap();
    bucket.put("kernels", "abacus on sand".into()).await.unwrap();
    let error = Worker::start(worker(connection, cell(1))).await.err().unwrap().to_string();
    assert!(error.contains("abacus") && error.contains("TAPIR_KERNELS"), "{error}");
}
