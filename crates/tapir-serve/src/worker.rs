//! Model workers: threads that take the words of all streams and compute them in batches.
//!
//! A session lives on one worker, so that nothing is locked. A worker goes round: it takes what has arrived, reads one
//! word of each stream that has one (the first pass of many streams is one product a matrix) and answers; then it makes the
//! revisions that are urgent, then those that have waited longest, as many as cost two milliseconds, and answers those. So
//! a word waits for other streams' revisions no longer than that. A revision is urgent when the next word of its own stream
//! is there already, which cannot be read before. A batch changes no result: see [`tapir::batch`].

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use tapir::batch::{self, Work};
use tapir::protocol::{Operation, Response};
use tapir::{Error, Session};
use tokio::sync::OwnedSemaphorePermit;

use crate::Settings;
use crate::metrics::{Metrics, ModelMetrics};
use crate::models::Served;
use crate::state::Place;

/// Rows that a revision of several streams may have: two milliseconds. More would be no faster, only later.
const REVISION_ROWS: usize = 32;

/// All workers.
pub(crate) struct Workers {
    inboxes: Vec<(mpsc::Sender<Job>, Arc<AtomicUsize>)>,
    ids: AtomicU64,
    metrics: Arc<Metrics>,
    window: usize,
}

/// What a stream asks of its worker.
enum Job {
    Open(u64, Box<Stream>),
    Do(u64, Task),
    Close(u64),
}

/// An operation, and what is known of it.
struct Task {
    operation: Operation,
    received: Instant,
    permit: Option<OwnedSemaphorePermit>,
}

/// What a worker answers.
pub(crate) struct Answer {
    pub(crate) response: Response,
    /// The session is no more.
    pub(crate) closed: bool,
    /// Held until the answer is written, so that a client that does not read is not read from.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Answer {
    /// An answer that no worker gave.
    pub(crate) fn new(response: Response, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { response, closed: false, _permit: permit }
    }
}

/// How a session is to be run.
pub(crate) struct Opening {
    pub(crate) served: Arc<Served>,
    pub(crate) name: Option<String>,
    pub(crate) threshold: Option<f32>,
    /// Answers before a revision is made.
    pub(crate) provisional: bool,
    /// Takes the answers; called on the worker, so that it must not wait.
    pub(crate) answers: Box<dyn Fn(Answer) + Send>,
    pub(crate) place: Place,
}

/// A session on its worker. Dropping it ends the session, whatever it was asked for.
pub(crate) struct Handle {
    id: u64,
    closed: bool,
    jobs: mpsc::Sender<Job>,
    metrics: Arc<Metrics>,
}

impl Handle {
    /// Asks for an operation; the answer comes by the channel that the session was opened with.
    pub(crate) fn ask(&self, operation: Operation, permit: Option<OwnedSemaphorePermit>) {
        self.metrics.queue.inc();
        let task = Task { operation, received: Instant::now(), permit };
        // Workers end after the last handle.
        let _ = self.jobs.send(Job::Do(self.id, task));
    }

    /// Ends the session after all that it was asked for, and has that answered.
    pub(crate) fn close(mut self, permit: OwnedSemaphorePermit) {
        self.ask(Operation::Close, Some(permit));
        self.closed = true;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.jobs.send(Job::Close(self.id));
        }
    }
}

impl Workers {
    pub(crate) fn start(settings: &Settings, metrics: &Arc<Metrics>) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let count = if settings.workers == 0 { cores() } else { settings.workers };
        let inboxes = (0..count).map(|index| {
            let (jobs, inbox) = mpsc::channel();
            let sessions = Arc::new(AtomicUsize::new(0));
            let mut worker = Worker {
                inbox,
                streams: HashMap::new(),
                words: VecDeque::new(),
                revisions: VecDeque::new(),
                urgent: VecDeque::new(),
                handling: None,
                sessions: sessions.clone(),
                batch: settings.batch,
                most_words: settings.limits.words,
                fault: settings.fault.clone(),
                metrics: metrics.clone(),
            };
            let thread = std::thread::Builder::new().name(format!("model-{index}"));
            thread.spawn(move || worker.run()).map(|_| (jobs, sessions))
        });
        let inboxes = inboxes.filter_map(Result::ok).collect();
        Self { inboxes, ids: AtomicU64::new(0), metrics: metrics.clone(), window: settings.limits.window }
    }

    /// Opens a session on the worker that has the fewest.
    pub(crate) fn open(&self, opening: Opening) -> Handle {
        let Opening { served, name, threshold, provisional, answers, place } = opening;
        let mut session = served.model.session().window(self.window);
        if let Some(threshold) = threshold {
            session.set_threshold(threshold);
        }
        let metrics = self.metrics.of_model(&served.name);
        let stream = Stream {
            session,
            metrics,
            name,
            provisional,
            answers,
            queue: VecDeque::new(),
            current: None,
            failed: false,
            poisoned: false,
            _place: place,
        };
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let fewest = self.inboxes.iter().min_by_key(|(_, sessions)| sessions.load(Ordering::Relaxed));
        // There is always a worker: a server without one could not have been started.
        let (jobs, sessions) = fewest.unwrap_or(&self.inboxes[0]);
        sessions.fetch_add(1, Ordering::Relaxed);
        let _ = jobs.send(Job::Open(id, Box::new(stream)));
        Handle { id, closed: false, jobs: jobs.clone(), metrics: self.metrics.clone() }
    }
}

/// A session, and what it was asked for.
struct Stream {
    session: Session,
    metrics: ModelMetrics,
    name: Option<String>,
    provisional: bool,
    answers: Box<dyn Fn(Answer) + Send>,
    /// What was asked for after `current`.
    queue: VecDeque<Task>,
    /// What is being computed.
    current: Option<Task>,
    /// It panicked, and is not computed any more.
    failed: bool,
    /// Panics when it is computed: for tests.
    poisoned: bool,
    _place: Place,
}

impl Stream {
    fn send(&self, response: Response, closed: bool, permit: Option<OwnedSemaphorePermit>) {
        let response = Response { session: self.name.clone(), ..response };
        (self.answers)(Answer { response, closed, _permit: permit });
    }

    /// Does a word wait for a revision of the words before it?
    fn is_urgent(&self) -> bool {
        let reads = |task: &Task| matches!(task.operation, Operation::Push(_) | Operation::Update(_));
        self.session.work() == Some(Work::Revision) && self.queue.iter().any(reads)
    }

    /// The first pass's answer, while the revision is waited for.
    fn answer_provisionally(&mut self) {
        let Some(task) = &self.current else { return };
        self.metrics.first(task.received.elapsed());
        if self.provisional && task.operation != Operation::Finish {
            let response =
                Response { provisional: true, update: Some(self.session.answer()), ..Response::default() };
            self.send(response, false, None);
        }
    }
}

struct Worker {
    inbox: mpsc::Receiver<Job>,
    streams: HashMap<u64, Box<Stream>>,
    /// Streams with a word to read, the oldest first.
    words: VecDeque<u64>,
    /// Streams with a revision to make, the oldest first; and again those of them that are urgent.
    revisions: VecDeque<u64>,
    urgent: VecDeque<u64>,
    /// The stream whose message is looked at: the one to blame for a panic.
    handling: Option<u64>,
    sessions: Arc<AtomicUsize>,
    batch: usize,
    most_words: usize,
    fault: Option<String>,
    metrics: Arc<Metrics>,
}

impl Worker {
    /// Works until there is nobody left to work for. A panic costs the stream that caused it, and no other.
    fn run(&mut self) {
        while catch_unwind(AssertUnwindSafe(|| self.rounds())).is_err() {
            self.metrics.panics.inc();
            if let Some(id) = self.handling.take() {
                self.fail(id);
            }
        }
    }

    fn rounds(&mut self) {
        loop {
            if self.words.is_empty() && self.revisions.is_empty() && self.urgent.is_empty() {
                match self.inbox.recv() {
                    Ok(job) => self.take(job),
                    Err(mpsc::RecvError) => return,
                }
            }
            while let Ok(job) = self.inbox.try_recv() {
                self.take(job);
            }
            self.read();
            self.revise();
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Open(id, stream) => {
                self.streams.insert(id, stream);
            }
            Job::Do(id, task) => {
                // A session is closed by its handle alone, so that it is still here.
                let Some(stream) = self.streams.get_mut(&id) else { return };
                stream.queue.push_back(task);
                if stream.is_urgent() {
                    self.urgent.push_back(id);
                }
                if stream.failed {
                    self.fail(id);
                } else if stream.current.is_none() {
                    self.next(id);
                }
            }
            Job::Close(id) => self.close(id),
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(stream) = self.streams.remove(&id) {
            self.sessions.fetch_sub(1, Ordering::Relaxed);
            let unanswered = stream.queue.len() + usize::from(stream.current.is_some());
            self.metrics.queue.dec_by(unanswered as i64);
        }
    }

    /// Gives a stream up that panicked: whatever it was and is asked for is answered with an error, until it is closed.
    fn fail(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.failed {
            stream.failed = true;
            tracing::error!("a session panicked and was closed");
        }
        let tasks: Vec<Task> = stream.current.take().into_iter().chain(stream.queue.drain(..)).collect();
        for task in tasks {
            self.metrics.queue.dec();
            if task.operation == Operation::Close {
                stream.send(Response::default(), true, task.permit);
                self.close(id);
                return;
            }
            let reason = "internal error: this session was closed; start it anew";
            stream.send(Response::refusal(reason), true, task.permit);
        }
    }

    /// Begins what the stream was asked for next, until something is to be computed.
    fn next(&mut self, id: u64) {
        self.handling = Some(id);
        while let Some(stream) = self.streams.get_mut(&id)
            && let Some(task) = stream.queue.pop_front()
        {
            let closes = task.operation == Operation::Close;
            let Stream { session, poisoned, current, .. } = &mut **stream;
            let task = current.insert(task);
            let result = begin(session, poisoned, &task.operation, self.most_words, self.fault.as_deref());
            match result.map(|()| stream.session.work()) {
                Ok(Some(Work::Word)) => {
                    self.words.push_back(id);
                    break;
                }
                Ok(Some(Work::Revision)) => {
                    self.wait_for_revision(id);
                    break;
                }
                Ok(None) => {
                    self.answer(id, None);
                    if closes {
                        self.close(id);
                    }
                }
                Err(error) => self.answer(id, Some(error)),
            }
        }
        self.handling = None;
    }

    fn wait_for_revision(&mut self, id: u64) {
        self.revisions.push_back(id);
        if self.streams.get(&id).is_some_and(|stream| stream.is_urgent()) {
            self.urgent.push_back(id);
        }
    }

    /// The last answer to what the stream is asked for.
    fn answer(&mut self, id: u64, error: Option<Error>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(task) = stream.current.take() else { return };
        self.metrics.queue.dec();
        let mut response = Response::default();
        match (error, &task.operation) {
            (Some(error), _) => response.error = Some(error.to_string()),
            (None, Operation::Reset | Operation::Threshold(_) | Operation::Close) => {}
            (None, operation) => {
                let update = stream.session.answer();
                if update.action.is_some() {
                    stream.metrics.last(task.received.elapsed());
                    if !update.revised() {
                        stream.metrics.first(task.received.elapsed());
                    }
                }
                response.update = Some(update);
                if *operation == Operation::Finish {
                    response.labels = Some(stream.session.labels());
                    response.spans = Some(stream.session.spans());
                }
            }
        }
        stream.send(response, false, task.permit);
    }

    /// Reads a word of every stream that has one.
    fn read(&mut self) {
        let mut batch = Batch { work: Work::Word, streams: Vec::new(), left: self.batch };
        batch.fill(&mut self.words, &mut self.streams);
        let batch = batch.streams;
        if batch.is_empty() {
            return;
        }
        self.metrics.batches.observe(batch.len() as f64);
        for (id, mut stream) in self.compute(batch, batch::read) {
            let work = stream.session.work();
            stream.metrics.read(work == Some(Work::Revision));
            if work == Some(Work::Revision) && stream.session.unread() == 0 {
                stream.answer_provisionally();
            }
            self.streams.insert(id, stream);
            match work {
                Some(Work::Word) => self.words.push_back(id),
                Some(Work::Revision) => self.wait_for_revision(id),
                None => {
                    self.answer(id, None);
                    self.next(id);
                }
            }
        }
    }

    /// Makes the revisions that are urgent, and then the oldest.
    fn revise(&mut self) {
        let rows = if self.batch == 1 { 1 } else { REVISION_ROWS };
        let mut batch = Batch { work: Work::Revision, streams: Vec::new(), left: rows };
        batch.fill(&mut self.urgent, &mut self.streams);
        batch.fill(&mut self.revisions, &mut self.streams);
        for (id, stream) in self.compute(batch.streams, batch::revise) {
            let work = stream.session.work();
            self.streams.insert(id, stream);
            if work == Some(Work::Word) {
                self.words.push_back(id);
            } else {
                self.answer(id, None);
                self.next(id);
            }
        }
    }

    /// Computes a batch. After a panic each of its streams is computed alone, and only what panics again is given up.
    fn compute(
        &mut self,
        mut batch: Vec<(u64, Box<Stream>)>,
        compute: fn(&mut [&mut Session]) -> tapir::Result<()>,
    ) -> Vec<(u64, Box<Stream>)> {
        let words: Vec<usize> = batch.iter().map(|(_, stream)| stream.session.words()).collect();
        if run(&mut batch, compute) {
            return batch;
        }
        self.metrics.panics.inc();
        let mut computed = Vec::with_capacity(batch.len());
        for ((id, mut stream), words) in batch.into_iter().zip(words) {
            stream.session.recover(words);
            let mut alone = vec![(id, stream)];
            if run(&mut alone, compute) {
                computed.append(&mut alone);
            } else {
                self.streams.extend(alone);
                self.fail(id);
            }
        }
        computed
    }
}

/// Computes; false if it panicked, or if the batch was refused, which would be a mistake of the worker's.
fn run(batch: &mut [(u64, Box<Stream>)], compute: fn(&mut [&mut Session]) -> tapir::Result<()>) -> bool {
    let computed = catch_unwind(AssertUnwindSafe(|| {
        assert!(!batch.iter().any(|(_, stream)| stream.poisoned), "a fault was asked for");
        let mut sessions: Vec<&mut Session> =
            batch.iter_mut().map(|(_, stream)| &mut stream.session).collect();
        compute(&mut sessions)
    }));
    matches!(computed, Ok(Ok(())))
}

/// Streams that are computed together.
struct Batch {
    work: Work,
    streams: Vec<(u64, Box<Stream>)>,
    /// Rows for which there is room.
    left: usize,
}

impl Batch {
    /// Takes streams of one model from the head of a queue while there is room.
    fn fill(&mut self, queue: &mut VecDeque<u64>, streams: &mut HashMap<u64, Box<Stream>>) {
        let mut others = Vec::new();
        while self.left > 0
            && let Some(id) = queue.pop_front()
        {
            // A stream that was closed, or computed by way of another queue, is still in this one.
            let waits = |stream: &Stream| stream.session.work() == Some(self.work) && !stream.failed;
            if !streams.get(&id).is_some_and(|stream| waits(stream)) {
                continue;
            }
            let Some(stream) = streams.remove(&id) else { continue };
            let first = self.streams.first();
            if first.is_some_and(|(_, first)| !stream.session.model().is(first.session.model())) {
                others.push(id);
                streams.insert(id, stream);
                continue;
            }
            let rows = if self.work == Work::Word { 1 } else { stream.session.revision_size() };
            self.left = self.left.saturating_sub(rows);
            self.streams.push((id, stream));
        }
        others.into_iter().rev().for_each(|id| queue.push_front(id));
    }
}

/// Begins an operation, or does it if nothing is to be computed.
fn begin(
    session: &mut Session,
    poisoned: &mut bool,
    operation: &Operation,
    most_words: usize,
    fault: Option<&str>,
) -> Result<(), Error> {
    let too_long = |words: usize| {
        let reason =
            format!("{words} words are more than the limit of {most_words}; say less, or finish and reset");
        if words > most_words { Err(Error::invalid("the session", reason)) } else { Ok(()) }
    };
    match operation {
        Operation::Push(word) => {
            too_long(session.words() + 1)?;
            *poisoned = fault == Some(word);
            session.begin_push(word)
        }
        Operation::Update(words) => {
            too_long(words.len())?;
            // The other place where a worker can panic: before anything is computed.
            assert!(!words.iter().any(|word| fault == Some(word)), "a fault was asked for");
            session.begin_update(words)
        }
        // Edits are answered with what they changed.
        Operation::Revoke(words) => session.begin_revoke(*words),
        Operation::Finish => session.begin_finish(),
        Operation::Reset | Operation::Close => {
            session.reset();
            Ok(())
        }
        Operation::Threshold(threshold) => {
            session.set_threshold(*threshold);
            Ok(())
        }
    }
}
