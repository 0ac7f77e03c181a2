//! Streams: the same answers as the library's, whatever else the server does.

use tapir::protocol::{Request, Response, Streams};
use tapir::{Label, Model};

use crate::support::{Client, SENTENCES, metric, settings, start};

/// What a stream of a real recogniser says: words, words taken back, whole hypotheses, ends and
/// beginnings.
fn script(seed: usize) -> Vec<String> {
    let mut messages = Vec::new();
    for turn in 0..3 {
        let words: Vec<&str> = SENTENCES[(seed + turn) % SENTENCES.len()].split(' ').collect();
        if (seed + turn).is_multiple_of(2) {
            messages.push(r#"{"settled": 0.9}"#.into());
        }
        for (i, word) in words.iter().enumerate() {
            messages.push(format!(r#"{{"push": "{word}"}}"#));
            match (seed * 7 + i + turn) % 9 {
                3 => messages.push(r#"{"revoke": 1}"#.into()),
                5 => {
                    let hypothesis = serde_json::json!({ "update": words[..i.max(2)] });
                    messages.push(hypothesis.to_string());
                }
                7 => messages.push(format!(r#"{{"threshold": 0.{}}}"#, 1 + (seed + i) % 9)),
                _ => {}
            }
        }
        messages.push(r#"{"finish": true}"#.into());
        messages.push(r#"{"push": "late"}"#.into()); // refused, and changes nothing
        messages.push(r#"{"reset": true}"#.into());
    }
    messages
}

/// Words are the model's, as `/v1/tag` makes them of text; what is taken back is the client's.
#[tokio::test(flavor = "multi_thread")]
async fn words_go_through_the_models_tokenizer_unless_told_otherwise() {
    let server = start(settings()).await;
    let mut client = Client::connect_to(server.address(), "?provisional=false").await;
    let mut ask = async |message: &str| {
        client.send(message).await;
        client.hear().await.unwrap()
    };
    assert_eq!(ask(r#"{"push": "PLAY JAZZ,"}"#).await.words.unwrap(), ["play", "jazz"]);
    assert_eq!(ask(r#"{"push": "tomorrow"}"#).await.words, None);
    let end = ask(r#"{"revoke": 2}"#).await.update.unwrap();
    assert_eq!((end.step, end.length), (0, 0));
    assert_eq!(ask(r#"{"update": ["What's", "on?"]}"#).await.words.unwrap(), ["what", "s", "on"]);
    let mut client = Client::connect_to(server.address(), "?pretokenized=true").await;
    client.send(r#"{"push": "PLAY,"}"#).await;
    let answer = client.hear().await.unwrap();
    assert_eq!((answer.words, answer.update.unwrap().step), (None, 1));
}

/// With one answer per message, a hundred streams at once answer what the library answers to each
/// alone, to the last bit.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_streams_at_once_answer_as_the_library_does() {
    for batch in [64, 1] {
        let mut settings = settings();
        settings.batch = batch;
        let window = settings.limits.window;
        let server = start(settings).await;
        let address = server.address();
        let model = Model::embedded_named("snips-small").unwrap();
        let mut tasks = Vec::new();
        for seed in 0..100 {
            tasks.push(tokio::spawn(async move {
                let mut client = Client::connect_to(address, "?provisional=false").await;
                let mut heard = Vec::new();
                // Several messages are in flight at any time.
                for messages in script(seed).chunks(5) {
                    for message in messages {
                        client.send(message).await;
                    }
                    for _ in messages {
                        heard.push(client.hear().await.unwrap());
                    }
                }
                (seed, heard)
            }));
        }
        for task in tasks {
            let (seed, heard) = task.await.unwrap();
            let model = model.clone();
            let options = tapir::SessionOptions::new().window(window);
            let mut alone = Streams::new(1, &model, options).unwrap();
            for (message, heard) in script(seed).iter().zip(heard) {
                assert_eq!(alone.answer(message), heard, "stream {seed}, batch {batch}, {message}");
            }
        }
        assert!(metric(address, "tapir_words_total").await > 3000);
        assert_eq!(metric(address, "tapir_panics_total").await, 0);
        server.stop().await;
    }
}

/// A provisional answer has the first pass's label and no action; the one after it makes the
/// library's change complete.
#[tokio::test(flavor = "multi_thread")]
async fn first_answers_come_before_revisions() {
    let server = start(settings()).await;
    let model = Model::embedded_named("snips-small").unwrap();
    let options = tapir::SessionOptions::new().threshold(0.003);
    let mut session = model.session_with(options).unwrap();
    let mut client = Client::connect_to(server.address(), "?threshold=0.003").await;
    let (mut screen, mut provisional): (Vec<Label>, usize) = (Vec::new(), 0);
    for word in SENTENCES[1].split(' ') {
        session.begin_push(word).unwrap();
        tapir::batch::read(&mut [&mut session]).unwrap();
        client.send(&format!(r#"{{"push": "{word}"}}"#)).await;
        let mut answer = client.hear().await.unwrap();
        if let Some(expected) = session.take_provisional() {
            provisional += 1;
            assert!(answer.provisional);
            let update = answer.update.unwrap();
            assert_eq!(update.edits.len(), 1, "the new word's label");
            assert_eq!(update, expected);
            update.apply(&mut screen);
            tapir::batch::revise(&mut [&mut session]).unwrap();
            answer = client.hear().await.unwrap();
        }
        assert!(!answer.provisional);
        let (update, expected) = (answer.update.unwrap(), session.take_update().unwrap());
        assert_eq!((update.step, update.action), (expected.step, expected.action));
        update.apply(&mut screen);
        assert_eq!(screen, session.labels());
    }
    assert!(provisional > 2, "{provisional} revisions");
    let end = client.ask(r#"{"finish": true}"#).await;
    let expected = session.finish().unwrap();
    assert_eq!(end.labels.unwrap(), expected.labels);
    assert_eq!(end.spans.unwrap(), session.spans());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_sessions_share_a_connection() {
    let server = start(settings()).await;
    let mut client = Client::connect(server.address()).await;
    for (a, b) in SENTENCES[0].split(' ').zip(SENTENCES[2].split(' ')) {
        for (name, word) in [("a", a), ("b", b)] {
            let answer = client.ask(&format!(r#"{{"session": "{name}", "push": "{word}"}}"#)).await;
            assert_eq!(answer.session.as_deref(), Some(name));
        }
    }
    let model = Model::embedded_named("snips-small").unwrap();
    for (name, sentence) in [("a", SENTENCES[0]), ("b", SENTENCES[2])] {
        let words: Vec<&str> = sentence.split(' ').take(6).collect();
        let mut session = model.session();
        words.iter().for_each(|word| drop(session.push(word).unwrap()));
        let end = client.ask(&format!(r#"{{"session": "{name}", "finish": true}}"#)).await;
        assert_eq!(end.labels.unwrap(), session.finish().unwrap().labels, "{name}");
    }
    // What was asked for before the end is answered before it.
    for message in ["push\": \"more", "push\": \"words", "close\": \"x"] {
        client.send(&format!(r#"{{"session": "c", "{message}"}}"#).replace("\"x\"", "true")).await;
    }
    let mut steps = Vec::new();
    while let Some(answer) = client.hear().await {
        match answer.update {
            Some(update) if !answer.provisional => steps.push(update.step),
            Some(_) => {}
            None => break,
        }
    }
    assert_eq!(steps, [1, 2]);
    // Closed, a name is free for a new session.
    assert_eq!(
        client.ask(r#"{"session": "a", "close": true}"#).await.session.as_deref(),
        Some("a")
    );
    let answer = client.ask(r#"{"session": "a", "push": "play"}"#).await;
    assert_eq!(answer.update.unwrap().step, 1);
    // A goodbye is answered.
    futures_util::SinkExt::close(&mut client.0).await.unwrap();
    let last = futures_util::StreamExt::next(&mut client.0).await;
    assert!(
        matches!(last, Some(Ok(tokio_tungstenite::tungstenite::Message::Close(_)))),
        "{last:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_answered_and_changes_nothing() {
    let server = start(settings()).await;
    let mut client = Client::connect(server.address()).await;
    client.ask(r#"{"push": "play"}"#).await;
    for (message, expected) in [
        ("{", "not a message"),
        (r#"{"pull": "x"}"#, "unknown field"),
        (r#"{"push": "x", "revoke": 1}"#, "expected one"),
        (r#"{"push": ""}"#, "empty word"),
        (r#"{"revoke": 5}"#, "cannot be taken back"),
        (r#"{"push": 3}"#, "not a message"),
        (r#"["b", "play"]"#, "an array"),
    ] {
        let error = client.error(message).await;
        assert!(error.contains(expected), "{message}: {error}");
    }
    let mut binary = Client::connect(server.address()).await;
    futures_util::SinkExt::send(
        &mut binary.0,
        tokio_tungstenite::tungstenite::Message::binary(vec![1, 2]),
    )
    .await
    .unwrap();
    assert!(binary.hear().await.unwrap().error.unwrap().contains("text frames"));
    assert_eq!(client.ask(r#"{"push": "jazz"}"#).await.update.unwrap().step, 2);
    server.stop().await;
}

/// The client's half of the protocol is the library's too.
#[test]
fn requests_and_responses_are_the_librarys() {
    let request = Request { push: Some("play".into()), ..Request::default() };
    assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"push":"play"}"#);
    let answer: Response = serde_json::from_str(
        r#"{"provisional":true,"step":1,"edits":[],"length":1,"committed":0}"#,
    )
    .unwrap();
    assert!(answer.provisional && answer.update.is_some());
}
