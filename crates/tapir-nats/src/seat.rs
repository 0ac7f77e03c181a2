//! A session at its worker: what it was asked, what it answers, and what of that is stored.
//!
//! A seat does no input or output. It is given messages and the engine's answers, and gives answers
//! to be stored, one after the other: each names the one before it, so that the broker takes it
//! only if nobody else has answered meanwhile.

use std::collections::VecDeque;

use tapir::Tokenizer;
use tapir::protocol::{Operation, Request, Response};
use tapir_serve::EngineSession;
use tokio::time::Instant;

use crate::Name;
use crate::inputs::Input;
use crate::life::{Life, Options, Position};
use crate::restore::Restored;

/// Begins sessions: the engine, or a test.
pub(crate) trait Begin {
    /// What computes a session.
    type Session: Ask;

    /// Begins a session for a seat, and says how its words are made, or why it cannot.
    fn begin(&self, options: &Options) -> Result<Begun<Self::Session>, String>;

    /// Begins one with the model of that digest.
    fn resume(&self, life: &Life) -> Result<Begun<Self::Session>, String>;
}

/// A session that has begun.
pub(crate) struct Begun<S> {
    pub(crate) session: S,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) digest: String,
}

/// What computes: answers follow in the order of what was asked.
pub(crate) trait Ask {
    fn ask(&self, operation: Operation);
    fn close(self);
}

impl Ask for EngineSession {
    fn ask(&self, operation: Operation) {
        EngineSession::ask(self, operation);
    }

    fn close(self) {
        EngineSession::close(self);
    }
}

/// A session at its worker.
pub(crate) struct Seat<S> {
    name: Name,
    /// Tells the events of this seat from those of an earlier one of the same name.
    pub(crate) generation: u64,
    /// When it was last given something.
    pub(crate) touched: Instant,
    /// It is being brought back, or closed: messages wait.
    busy: bool,
    /// Messages that are not asked yet.
    waiting: VecDeque<Input>,
    /// Messages that were asked and whose last answer is not stored.
    unstored: VecDeque<Input>,
    session: Option<(S, Tokenizer)>,
    /// What was asked and is not answered, in order.
    asked: VecDeque<Asked>,
    /// The newest message that was asked, now or before it was brought back.
    newest: u64,
    /// The session has ended by a fault, and what it was asked before is answered so: messages wait.
    draining: bool,
    /// The life that the next answer names.
    life: Option<Life>,
    /// The threshold after the last answer, and what counts as settled: a reset keeps them.
    threshold: Option<f32>,
    settled: Option<f32>,
    /// Why the session cannot go on; the next message is told.
    broken: Option<String>,
    /// The last answer that was stored.
    position: Position,
    /// Its sequence: what the next one expects.
    last: u64,
    /// Answers to be stored; the first is on its way if `storing`.
    outbox: VecDeque<Answer>,
    storing: bool,
}

/// A message that was asked.
struct Asked {
    input: u64,
    /// What the client called the session, if it did.
    named: Option<String>,
    kind: Kind,
    /// The life that begins with it.
    begins: Option<Life>,
}

/// What an answer changes.
enum Kind {
    /// Answered without the engine.
    Ready(Box<Response>),
    Reset,
    Close,
    Threshold(f32),
    Settled(f32),
    Words,
}

/// An answer to be stored.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) position: Position,
    pub(crate) life: Option<Life>,
    pub(crate) response: Response,
    /// The sequence of the session's answer before it.
    pub(crate) expected: u64,
    /// Messages of the session before this one are needed no longer, once it is stored.
    pub(crate) forget_before: Option<u64>,
}

impl Answer {
    /// By which a repeated answer is known: no other answer of the cell has it. What it stands
    /// behind is part of it. A worker that has slept may answer the same message from a history that
    /// is long past, and must not take the true answer for its own.
    pub(crate) fn id(&self) -> String {
        let Position { input, last } = self.position;
        format!("{input}{}-{}", if last { "" } else { "p" }, self.expected)
    }
}

impl<S: Ask> Seat<S> {
    /// A session that is being brought back.
    pub(crate) fn new(name: Name, generation: u64) -> Self {
        Self {
            name,
            generation,
            touched: Instant::now(),
            busy: true,
            waiting: VecDeque::new(),
            unstored: VecDeque::new(),
            session: None,
            asked: VecDeque::new(),
            newest: 0,
            draining: false,
            life: None,
            threshold: None,
            settled: None,
            broken: None,
            position: Position::default(),
            last: 0,
            outbox: VecDeque::new(),
            storing: false,
        }
    }

    /// Nothing is in hand: it can be forgotten, and brought back when it is needed.
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy && self.unstored.is_empty() && self.waiting.is_empty() && self.outbox.is_empty()
    }

    /// Has the session ended, with nothing in hand?
    pub(crate) fn has_ended(&self) -> bool {
        self.is_idle() && self.life.is_none()
    }

    /// All messages that are in hand, to be given to another seat.
    pub(crate) fn into_inputs(mut self) -> VecDeque<Input> {
        self.unstored.append(&mut self.waiting);
        self.unstored
    }

    /// Takes a message.
    pub(crate) fn take(&mut self, input: Input) {
        self.touched = Instant::now();
        self.waiting.push_back(input);
    }

    /// Goes on from what the streams have; gives how many messages are computed again.
    pub(crate) fn resume(&mut self, restored: Restored, engine: &impl Begin<Session = S>) -> usize {
        let Restored { last, position, life, replay, broken } = restored;
        (self.last, self.position, self.broken, self.busy) = (last, position, broken, false);
        let Some(life) = life else { return 0 };
        match engine.resume(&life) {
            Err(reason) => {
                self.broken = Some(reason);
                0
            }
            Ok(begun) => {
                self.session = Some((begun.session, begun.tokenizer));
                (self.threshold, self.settled) = (life.options.threshold, life.options.settled);
                self.life = Some(life);
                let count = replay.len();
                replay.into_iter().for_each(|input| self.ask(input, engine));
                count
            }
        }
    }

    /// Asks what waits, as far as that can be; gives the messages that had been answered before.
    pub(crate) fn go_on(&mut self, engine: &impl Begin<Session = S>) -> Vec<u64> {
        let mut answered = Vec::new();
        while !(self.busy || self.draining)
            && let Some(input) = self.waiting.pop_front()
        {
            if (Position { input: input.sequence, last: true }) <= self.position {
                answered.push(input.sequence);
            } else if input.sequence <= self.newest {
                // Its provisional answer is stored, and the last one follows.
                self.unstored.push_back(input);
            } else {
                self.unstored.push_back(input.clone());
                self.ask(input, engine);
            }
        }
        answered
    }

    /// Has a message computed, or refuses it.
    fn ask(&mut self, input: Input, engine: &impl Begin<Session = S>) {
        self.newest = input.sequence;
        let mut begins = None;
        let (named, kind) = match self.operation(&input, engine, &mut begins) {
            Ok((named, Some(operation))) => (named, self.compute(operation)),
            Ok((named, None)) => (named, Kind::Ready(Box::default())),
            Err((named, reason)) => (named, Kind::Ready(Box::new(Response::refusal(reason)))),
        };
        self.asked.push_back(Asked { input: input.sequence, named, kind, begins });
        self.answer_ready();
    }

    fn compute(&mut self, operation: Operation) -> Kind {
        let kind = match operation {
            Operation::Reset => Kind::Reset,
            Operation::Close => Kind::Close,
            Operation::Threshold(threshold) => Kind::Threshold(threshold),
            Operation::Settled(probability) => Kind::Settled(probability),
            _ => Kind::Words,
        };
        if matches!(kind, Kind::Close) {
            // What comes next begins another session, which might answer sooner.
            self.busy = true;
            if let Some((session, _)) = self.session.take() {
                session.close();
            }
        } else if let Some((session, _)) = &self.session {
            session.ask(operation);
        }
        kind
    }

    /// What a message asks for, and what it calls the session; nothing if it closes a session that
    /// is not there. A session begins with the first message that asks for something else.
    #[allow(clippy::type_complexity, reason = "an error names the session, too")]
    fn operation(
        &mut self,
        input: &Input,
        engine: &impl Begin<Session = S>,
        begins: &mut Option<Life>,
    ) -> Result<(Option<String>, Option<Operation>), (Option<String>, String)> {
        if let Some(reason) = self.broken.take() {
            return Err((None, format!("the session has ended, for {reason}; start it anew")));
        }
        let text = std::str::from_utf8(&input.payload)
            .map_err(|error| (None, format!("not a message: {error}; UTF-8 is expected")))?;
        let request = Request::parse(text).map_err(|error| (None, error.to_string()))?;
        let named = request.session.clone();
        if named.as_ref().is_some_and(|named| named != self.name.as_str()) {
            let reason = format!(
                "the subject names the session `{}`; leave `session` out of the message",
                self.name
            );
            return Err((named, reason));
        }
        let failed = |error: tapir::Error| (named.clone(), error.to_string());
        if let Some((_, tokenizer)) = &self.session {
            let operation = request.operation(*tokenizer).map_err(failed)?;
            return Ok((named, Some(operation)));
        }
        if request.close {
            // Alone, it is a close of nothing; with company, no message.
            request.operation(Tokenizer::Whitespace).map_err(failed)?;
            return Ok((named, None));
        }
        let refused = |reason| (named.clone(), reason);
        let options = Options::from_headers(input.headers.as_ref()).map_err(refused)?;
        let begun = engine.begin(&options).map_err(refused)?;
        let operation = request.operation(begun.tokenizer).map_err(failed)?;
        let (start, digest) = (input.sequence, begun.digest);
        *begins = Some(Life { start, digest, options });
        self.session = Some((begun.session, begun.tokenizer));
        Ok((named, Some(operation)))
    }

    /// Takes an answer of the engine to what was asked first.
    pub(crate) fn answer(&mut self, response: Response, ended: bool) {
        self.front_answered(response, ended);
        self.answer_ready();
    }

    /// Answers what needs no engine, as far as it is its turn.
    fn answer_ready(&mut self) {
        while let Some(Asked { kind: Kind::Ready(response), .. }) = self.asked.front() {
            let response = response.as_ref().clone();
            self.front_answered(response, false);
        }
    }

    fn front_answered(&mut self, response: Response, ended: bool) {
        let last = !response.provisional;
        let Some(asked) = self.asked.front_mut() else { return };
        let position = Position { input: asked.input, last };
        let response = Response { session: asked.named.clone(), ..response };
        if let Some(life) = asked.begins.take() {
            (self.threshold, self.settled) = (life.options.threshold, life.options.settled);
            self.life = Some(life);
        }
        let mut forget_before = None;
        if last && let Some(asked) = self.asked.pop_front() {
            let done = response.error.is_none();
            match asked.kind {
                Kind::Reset if done => {
                    if let Some(life) = &mut self.life {
                        life.start = asked.input;
                        (life.options.threshold, life.options.settled) =
                            (self.threshold, self.settled);
                    }
                    forget_before = Some(asked.input);
                }
                Kind::Threshold(threshold) if done => self.threshold = Some(threshold),
                Kind::Settled(probability) if done => self.settled = Some(probability),
                Kind::Close => {
                    self.life = None;
                    self.busy = false;
                    forget_before = Some(asked.input + 1);
                }
                _ => {}
            }
        }
        if ended {
            self.life = None;
            self.session = None;
            self.draining = true;
        }
        self.draining &= !self.asked.is_empty();
        if position > self.position {
            let life = self.life.clone();
            self.outbox.push_back(Answer { position, life, response, expected: 0, forget_before });
        }
    }

    /// The answer that is to be stored now, if there is one.
    pub(crate) fn next_to_store(&mut self) -> Option<Answer> {
        if self.storing {
            return None;
        }
        let answer = self.outbox.front()?.clone();
        self.storing = true;
        Some(Answer { expected: self.last, ..answer })
    }

    /// The answer was stored at a sequence; gives the message whose last answer it was.
    pub(crate) fn stored(&mut self, sequence: u64) -> Option<Answer> {
        let answer = self.outbox.pop_front()?;
        (self.storing, self.last, self.position) = (false, sequence, answer.position);
        if answer.position.last {
            self.unstored.pop_front_if(|input| input.sequence <= answer.position.input);
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    /// Answers that wait until the engine is asked for them.
    type Computed = Rc<RefCell<VecDeque<Response>>>;

    /// A session whose answers tell all that it was asked: one message more or less, or another
    /// threshold, is another answer. Some words are answered provisionally first.
    struct Talker {
        threshold: RefCell<Option<f32>>,
        settled: RefCell<Option<f32>>,
        history: RefCell<Vec<String>>,
        computed: Computed,
    }

    impl Ask for Talker {
        fn ask(&self, operation: Operation) {
            let mut history = self.history.borrow_mut();
            match &operation {
                Operation::Reset => history.clear(),
                Operation::Threshold(threshold) => *self.threshold.borrow_mut() = Some(*threshold),
                Operation::Settled(settled) => *self.settled.borrow_mut() = Some(*settled),
                Operation::Revoke(_) => {
                    let refusal = Response::refusal("nothing to take back");
                    return self.computed.borrow_mut().push_back(refusal);
                }
                other => history.push(format!("{other:?}")),
            }
            let (threshold, settled) = (self.threshold.borrow(), self.settled.borrow());
            let told = format!("{threshold:?} {settled:?} {history:?}");
            let answer = Response { words: Some(vec![told]), ..Response::default() };
            if matches!(operation, Operation::Push(_)) && history.len() % 2 == 1 {
                let provisional = Response { provisional: true, ..answer.clone() };
                self.computed.borrow_mut().push_back(provisional);
            }
            self.computed.borrow_mut().push_back(answer);
        }

        fn close(self) {
            self.computed.borrow_mut().push_back(Response::default());
        }
    }

    struct Talkers(Computed);

    impl Begin for Talkers {
        type Session = Talker;

        fn begin(&self, options: &Options) -> Result<Begun<Talker>, String> {
            let session = Talker {
                threshold: RefCell::new(options.threshold),
                settled: RefCell::new(options.settled),
                history: RefCell::default(),
                computed: self.0.clone(),
            };
            Ok(Begun { session, tokenizer: Tokenizer::Whitespace, digest: "model".into() })
        }

        fn resume(&self, life: &Life) -> Result<Begun<Talker>, String> {
            self.begin(&life.options)
        }
    }

    /// What the streams have of one session.
    #[derive(Default)]
    struct Streams {
        inputs: Vec<Input>,
        answers: Vec<(u64, Answer)>,
        sent: u64,
    }

    impl Streams {
        fn send(&mut self, text: &str) {
            // Others' messages lie between.
            self.sent += 3;
            self.inputs.push(Input {
                session: Name::new("a").unwrap(),
                sequence: self.sent,
                headers: None,
                payload: text.to_owned().into(),
            });
        }

        fn restore(&self) -> Restored {
            let Some((last, answer)) = self.answers.last() else { return Restored::default() };
            let (last, position) = (*last, answer.position);
            let Some(life) = answer.life.clone() else {
                return Restored { last, position, ..Restored::default() };
            };
            let within = |input: &&Input| (life.start..=position.input).contains(&input.sequence);
            let replay: Vec<Input> = self.inputs.iter().filter(within).cloned().collect();
            assert_eq!(replay.first().map(|input| input.sequence), Some(life.start), "purged");
            assert_eq!(replay.last().map(|input| input.sequence), Some(position.input), "purged");
            Restored { last, position, life: Some(life), replay, broken: None }
        }

        /// As the broker: an answer that it has already is not stored again, and others only behind
        /// the one that is expected.
        fn store(&mut self, answer: Answer) -> Option<u64> {
            let id = answer.id();
            if let Some((sequence, _)) = self.answers.iter().find(|(_, known)| known.id() == id) {
                return Some(*sequence);
            }
            let last = self.answers.last().map_or(0, |(sequence, _)| *sequence);
            if answer.expected != last {
                return None;
            }
            if let Some(before) = answer.forget_before {
                self.inputs.retain(|input| input.sequence >= before);
            }
            self.answers.push((last + 2, answer));
            Some(last + 2)
        }
    }

    /// A worker that serves the session, or believes to.
    struct Server {
        seat: Seat<Talker>,
        computed: Computed,
        /// The newest message that it has taken.
        seen: u64,
        is_restored: bool,
        storing: Option<Answer>,
    }

    impl Server {
        /// All messages up to `seen` have been answered.
        fn new(seen: u64) -> Self {
            let seat = Seat::new(Name::new("a").unwrap(), 0);
            Self { seat, computed: Computed::default(), seen, is_restored: false, storing: None }
        }

        /// One step of its work.
        fn step(&mut self, kind: u8, streams: &mut Streams) {
            let talkers = Talkers(self.computed.clone());
            match kind {
                0 => {
                    let next = streams.inputs.iter().find(|input| input.sequence > self.seen);
                    if let Some(input) = next.cloned() {
                        self.seen = input.sequence;
                        self.seat.take(input);
                    }
                }
                1 if !self.is_restored => {
                    self.seat.resume(streams.restore(), &talkers);
                    self.is_restored = true;
                }
                2 => {
                    let answer = self.computed.borrow_mut().pop_front();
                    answer.into_iter().for_each(|answer| self.seat.answer(answer, false));
                }
                3 => {
                    // An answer may be long on its way.
                    match self.storing.take() {
                        None => self.storing = self.seat.next_to_store(),
                        Some(answer) => self.stored(answer, streams),
                    }
                }
                _ => {}
            }
            self.seat.go_on(&talkers);
        }

        fn stored(&mut self, answer: Answer, streams: &mut Streams) {
            if let Some(sequence) = streams.store(answer) {
                self.seat.stored(sequence);
                return;
            }
            let seat = std::mem::replace(&mut self.seat, Seat::new(Name::new("a").unwrap(), 0));
            (self.computed, self.is_restored) = (Computed::default(), false);
            seat.into_inputs().into_iter().for_each(|input| self.seat.take(input));
        }

        fn drain(&mut self, streams: &mut Streams) {
            for _ in 0..200 {
                (0..4).for_each(|kind| self.step(kind, streams));
            }
        }
    }

    const MESSAGES: [&str; 10] = [
        r#"{"push": "play"}"#,
        r#"{"push": "jazz"}"#,
        r#"{"update": ["a", "b"]}"#,
        r#"{"revoke": 1}"#,
        r#"{"finish": true}"#,
        r#"{"reset": true}"#,
        r#"{"threshold": 0.5}"#,
        r#"{"settled": 0.9}"#,
        r#"{"close": true}"#,
        "garbage",
    ];

    /// A worker answers the first message and sleeps. Another one goes on, ends that session and
    /// begins the next; what was before is purged. The first one wakes, and the next message that it
    /// gets is one that it answers from a history that is long past: its answer is not the one that
    /// is stored, and it must not go on as if it were.
    #[test]
    fn a_worker_that_slept_does_not_take_anothers_answer_for_its_own() {
        let messages = [2, 8, 2, 0];
        let mut calm = Streams::default();
        messages.iter().for_each(|index| calm.send(MESSAGES[*index]));
        Server::new(0).drain(&mut calm);

        let mut streams = Streams::default();
        let (mut sleeper, mut other) = (Server::new(0), Server::new(0));
        streams.send(MESSAGES[messages[0]]);
        sleeper.drain(&mut streams);
        streams.send(MESSAGES[messages[1]]);
        streams.send(MESSAGES[messages[2]]);
        other.drain(&mut streams);
        streams.send(MESSAGES[messages[3]]);
        sleeper.drain(&mut streams);
        assert_eq!(told(&streams), told(&calm));
    }

    /// What a client hears.
    fn told(streams: &Streams) -> Vec<(Position, Response)> {
        let answers = streams.answers.iter();
        answers.map(|(_, answer)| (answer.position, answer.response.clone())).collect()
    }

    proptest! {
        /// Two servers of one session, each of which may die at any point and begin anew from
        /// messages that were long answered, or believe for long to be in charge: the answers are
        /// those of one that was never disturbed.
        #[test]
        fn answers_do_not_depend_on_who_gives_them(
            messages in prop::collection::vec(0..MESSAGES.len(), 1..20),
            steps in prop::collection::vec((0..2usize, 0..12u8), 0..400),
        ) {
            let mut calm = Streams::default();
            messages.iter().for_each(|index| calm.send(MESSAGES[*index]));
            Server::new(0).drain(&mut calm);

            let mut streams = Streams::default();
            let mut unsent = messages.iter();
            let mut servers = [Server::new(0), Server::new(0)];
            for (server, kind) in steps {
                match kind {
                    0..8 => servers[server].step(kind % 4, &mut streams),
                    8..11 => unsent.next().into_iter().for_each(|index| streams.send(MESSAGES[*index])),
                    _ => {
                        // Everything up to the last answer has been answered; it may know less.
                        let answered = streams.answers.last().map_or(0, |(_, answer)| answer.position.input);
                        servers[server] = Server::new(answered.saturating_sub(5));
                    }
                }
            }
            unsent.for_each(|index| streams.send(MESSAGES[*index]));
            servers[0].drain(&mut streams);

            prop_assert!(told(&streams).is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!(told(&streams), told(&calm));
        }
    }
}
