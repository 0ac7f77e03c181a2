//! A partition at its worker: takes its messages, has them computed, stores the answers.
//!
//! Who serves a partition is settled by leases, which two workers may for a moment both believe to
//! hold. That costs work and nothing else: an answer is stored only behind the answer before it, and
//! a session is a function of its messages, so that it does not matter who gives it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::HeaderValue;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use tapir::Tokenizer;
use tapir::protocol::Response;
use tapir_serve::{Engine, EngineSession, Opening, Served};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::Name;
use crate::cell::Cell;
use crate::inputs::{self, Input};
use crate::life::{Life, Options, answer_headers};
use crate::metrics::Metrics;
use crate::restore::{Restored, restore};
use crate::seat::{Answer, Begin, Begun, Seat};

/// Messages of a partition in hand; further ones wait in the broker.
const IN_HAND: usize = 1024;
/// Sessions that are brought back at once.
const RESTORING: usize = 64;
/// How long a partition that is given up waits for the answers in hand.
const GRACE: Duration = Duration::from_secs(5);

/// What all partitions of a worker share.
pub(crate) struct Shared {
    pub(crate) cell: Arc<Cell>,
    pub(crate) engine: Engine,
    pub(crate) metrics: Metrics,
    /// Models by digest: those of new sessions, and those that old ones finish on.
    pub(crate) digests: HashMap<String, Arc<Served>>,
    /// Those of new sessions.
    pub(crate) current: Vec<String>,
    /// A session that is silent so long leaves the memory.
    pub(crate) idle: Duration,
    pub(crate) restoring: Semaphore,
}

impl Shared {
    pub(crate) fn restoring() -> Semaphore {
        Semaphore::new(RESTORING)
    }
}

/// A partition that is served.
pub(crate) struct Partition {
    floor: Arc<AtomicU64>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Partition {
    /// Serves a partition whose messages up to `floor` have all been answered.
    pub(crate) fn start(shared: Arc<Shared>, index: u32, floor: u64) -> Self {
        let (events, receiver) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let atomic = Arc::new(AtomicU64::new(floor));
        let actor = Actor {
            shared,
            index,
            seats: HashMap::new(),
            generations: 0,
            in_hand: BTreeSet::new(),
            seen: floor,
            floor: atomic.clone(),
            events,
        };
        let task = tokio::spawn(actor.run(receiver, stop.clone()));
        Self { floor: atomic, stop, task }
    }

    /// All messages up to this one have been answered.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    /// Takes nothing new and stores the answers in hand, as far as that is soon done; gives the
    /// floor.
    pub(crate) async fn finish(mut self) -> u64 {
        self.stop.cancel();
        let _ = timeout(GRACE, &mut self.task).await;
        self.floor()
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What happens to a session besides its messages.
struct Event {
    session: Name,
    generation: u64,
    what: What,
}

enum What {
    Restored(Box<Restored>),
    Answered(Box<Response>, bool),
    /// At a sequence, or not, because another worker had answered.
    Stored(Option<u64>),
}

struct Actor {
    shared: Arc<Shared>,
    index: u32,
    seats: HashMap<Name, Seat<EngineSession>>,
    generations: u64,
    /// Messages whose last answer is not stored.
    in_hand: BTreeSet<u64>,
    /// The newest message.
    seen: u64,
    floor: Arc<AtomicU64>,
    events: mpsc::UnboundedSender<Event>,
}

impl Actor {
    async fn run(mut self, mut events: mpsc::UnboundedReceiver<Event>, stop: CancellationToken) {
        let (sender, mut inputs) = mpsc::channel(256);
        let Shared { cell, metrics, .. } = &*self.shared;
        let metrics = metrics.of_partition(self.index);
        let reader = inputs::read(cell.clone(), self.index, self.seen + 1, metrics, sender);
        let reader = AbortOnDrop(tokio::spawn(reader));
        let mut sweeps = interval(Duration::from_secs(5));
        loop {
            let has_room = self.in_hand.len() < IN_HAND;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(event) = events.recv() => self.happened(event),
                _ = sweeps.tick() => self.sweep(),
                Some(input) = inputs.recv(), if has_room => self.take(input),
            }
            self.settle();
        }
        drop((reader, inputs));
        while !self.in_hand.is_empty()
            && let Some(event) = events.recv().await
        {
            self.happened(event);
            self.settle();
        }
    }

    /// Notes how far all is answered.
    fn settle(&self) {
        let floor = self.in_hand.first().map_or(self.seen, |first| first - 1);
        self.floor.store(floor, Ordering::Relaxed);
    }

    fn take(&mut self, input: Input) {
        self.seen = self.seen.max(input.sequence);
        self.in_hand.insert(input.sequence);
        let name = input.session.clone();
        if !self.seats.contains_key(&name) {
            self.seat(&name);
        }
        if let Some(seat) = self.seats.get_mut(&name) {
            seat.take(input);
        }
        self.go_on(&name);
    }

    /// A seat for a session that is not in memory, which is brought back.
    fn seat(&mut self, name: &Name) {
        self.generations += 1;
        let generation = self.generations;
        self.seats.insert(name.clone(), Seat::new(name.clone(), generation));
        let (shared, session) = (self.shared.clone(), name.clone());
        self.spawn(name, generation, async move {
            let _permit = shared.restoring.acquire().await;
            What::Restored(Box::new(restore(&shared.cell, &session).await))
        });
    }

    /// Does something for a session, after which something has happened to it.
    fn spawn(
        &self,
        session: &Name,
        generation: u64,
        work: impl Future<Output = What> + Send + 'static,
    ) {
        let (session, events) = (session.clone(), self.events.clone());
        tokio::spawn(async move {
            // Nobody waits for it any more when the partition has been given up.
            tokio::select! {
                () = events.closed() => {}
                what = work => drop(events.send(Event { session, generation, what })),
            }
        });
    }

    fn happened(&mut self, event: Event) {
        let Event { session, generation, what } = event;
        let Some(seat) = self.seats.get_mut(&session) else { return };
        if seat.generation != generation {
            return;
        }
        let Metrics { recoveries, replayed, answers, fenced, broken, .. } = &self.shared.metrics;
        match what {
            What::Restored(restored) => {
                let (is_alive, was_broken) = (restored.life.is_some(), restored.broken.is_some());
                recoveries.inc_by(u64::from(is_alive));
                broken.inc_by(u64::from(was_broken));
                let begin = Models {
                    shared: &self.shared,
                    name: &session,
                    generation,
                    events: &self.events,
                };
                replayed.inc_by(seat.resume(*restored, &begin) as u64);
            }
            What::Answered(response, ended) => seat.answer(*response, ended),
            What::Stored(Some(sequence)) => {
                answers.inc();
                if let Some(answer) = seat.stored(sequence) {
                    if answer.position.last {
                        self.in_hand.remove(&answer.position.input);
                    }
                    if let Some(before) = answer.forget_before {
                        self.forget(&session, before);
                    }
                }
            }
            What::Stored(None) => {
                fenced.inc();
                // Somebody else has answered: what is true is in the streams.
                let inputs = self.seats.remove(&session).map(Seat::into_inputs);
                self.seat(&session);
                if let Some(seat) = self.seats.get_mut(&session) {
                    inputs.into_iter().flatten().for_each(|input| seat.take(input));
                }
            }
        }
        self.go_on(&session);
    }

    /// Has everything done for a session that can be done now.
    fn go_on(&mut self, name: &Name) {
        let Some(seat) = self.seats.get_mut(name) else { return };
        let generation = seat.generation;
        let begin = Models { shared: &self.shared, name, generation, events: &self.events };
        for answered in seat.go_on(&begin) {
            self.shared.metrics.redelivered.inc();
            self.in_hand.remove(&answered);
        }
        if let Some(answer) = seat.next_to_store() {
            let (shared, session) = (self.shared.clone(), name.clone());
            self.spawn(name, generation, async move {
                What::Stored(store(&shared, &session, &answer).await)
            });
        } else if seat.has_ended() {
            self.seats.remove(name);
        }
    }

    /// Messages that nobody will read again take no room in the broker. If this fails, they go out
    /// of retention.
    fn forget(&self, session: &Name, before: u64) {
        let (shared, session) = (self.shared.clone(), session.clone());
        tokio::spawn(async move {
            let subject = shared.cell.names.kept_input("*", session.as_str());
            let purge = shared.cell.inputs.purge().sequence(before).filter(subject).await;
            if let Err(error) = purge {
                tracing::debug!(%session, %error, "old messages were not purged");
            }
        });
    }

    /// Sessions that have been silent leave the memory; they can be brought back.
    fn sweep(&mut self) {
        let idle = self.shared.idle;
        self.seats.retain(|_, seat| !(seat.is_idle() && seat.touched.elapsed() > idle));
    }
}

/// Begins sessions whose answers are events.
struct Models<'a> {
    shared: &'a Arc<Shared>,
    name: &'a Name,
    generation: u64,
    events: &'a mpsc::UnboundedSender<Event>,
}

impl Models<'_> {
    fn open(&self, digest: &str, options: &Options) -> Result<Begun<EngineSession>, String> {
        let served = self.shared.digests.get(digest);
        let served = served.ok_or("its model is no longer served")?.clone();
        let tokenizer = if options.pretokenized {
            Tokenizer::Whitespace
        } else {
            served.model.config().tokenizer
        };
        let (session, generation) = (self.name.clone(), self.generation);
        let events = self.events.clone();
        let opened = self.shared.engine.open(Opening {
            served,
            threshold: options.threshold,
            settled: options.settled,
            provisional: !options.one_answer,
            answers: Box::new(move |response, ended| {
                let what = What::Answered(Box::new(response), ended);
                // A partition that was given up needs no answer.
                let _ = events.send(Event { session: session.clone(), generation, what });
            }),
        });
        let session = opened.map_err(|error| error.to_string())?;
        Ok(Begun { session, tokenizer, digest: digest.to_owned() })
    }
}

impl Begin for Models<'_> {
    type Session = EngineSession;

    fn begin(&self, options: &Options) -> Result<Begun<EngineSession>, String> {
        let Shared { digests, current, .. } = &**self.shared;
        let name = |digest: &String| digests.get(digest).map_or("", |served| served.name.as_str());
        let digest = match &options.model {
            None => current.first(),
            Some(model) => current.iter().find(|digest| name(digest) == model),
        };
        let Some(digest) = digest else {
            let names: Vec<&str> = current.iter().map(name).collect();
            return Err(format!("no model has that name; there are: {}", names.join(", ")));
        };
        self.open(digest, options)
    }

    fn resume(&self, life: &Life) -> Result<Begun<EngineSession>, String> {
        self.open(&life.digest, &life.options)
    }
}

/// Stores an answer behind the one before it: gives its sequence, or nothing if another answer is
/// there. What does not get through is sent again.
async fn store(shared: &Shared, session: &Name, answer: &Answer) -> Option<u64> {
    let Shared { cell, metrics, .. } = shared;
    let subject = cell.names.answers(session.as_str());
    let payload = serde_json::to_vec(&answer.response).unwrap_or_default();
    let headers = answer_headers(answer.position, answer.life.as_ref());
    let id = answer.id();
    let mut pause = Duration::from_millis(20);
    loop {
        let message = PublishMessage::build()
            .payload(payload.clone().into())
            .headers(headers.clone())
            .message_id(&id)
            .expected_last_subject_sequence(answer.expected);
        let sent = match cell.context.send_publish(subject.clone(), message).await {
            Ok(acknowledgement) => acknowledgement.await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(acknowledgement) => return Some(acknowledgement.sequence),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                // It may be this answer, of which the first acknowledgement was lost.
                let Ok(last) = cell.last_answer(session).await else { continue };
                let last = last?;
                let known = last.headers.get(NATS_MESSAGE_ID).map(HeaderValue::as_str);
                return (known == Some(&id)).then_some(last.sequence);
            }
            Err(error) => tracing::debug!(%session, %error, "an answer is sent again"),
        }
        metrics.repeated.inc();
        sleep(pause).await;
        pause = (2 * pause).min(Duration::from_secs(1));
    }
}

/// A task that ends with whoever started it.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
