//! Model workers: threads that take the words of all streams and compute them in batches.
//!
//! A session lives on one worker, so that nothing is locked. A worker goes round: it takes what has
//! arrived, reads one word of each stream that has one (the first pass of many streams is one
//! product per matrix) and answers; then it makes some revisions, as many as cost two milliseconds
//! or one that costs more, and answers those. So a word waits for other streams' revisions no
//! longer than that. A batch changes no result: see [`tapir::batch`].
//!
//! Whose word or revision is next is decided by [`FairQueue`]: clients share a worker evenly, and
//! so do the connections of a client, whatever they ask for. A word of somebody who has had little
//! comes before a revision of somebody who has had much. A revision is urgent when the next word of
//! its own stream is there already, which cannot be read before.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use tapir::batch::{self, Work};
use tapir::protocol::{ClientSession, Operation, Response};
use tapir::{Error, Model, Session, SessionOptions};
use tokio::sync::OwnedSemaphorePermit;

use crate::Settings;
use crate::clients::Permit;
use crate::fair::{FairQueue, Flow};
use crate::faults::{Faults, Point};
use crate::metrics::{Metrics, ModelMetrics};
use crate::models::Served;
use crate::remote::{Remote, RemoteHandle};

/// Rows that a revision of several streams may have: two milliseconds. More would be no faster,
/// only later.
const REVISION_ROWS: usize = 32;

/// All workers.
pub(crate) struct Workers {
    /// Where sessions are computed instead, if not here.
    remote: Option<Arc<dyn Remote>>,
    inboxes: Vec<(mpsc::Sender<Job>, Arc<AtomicUsize>)>,
    ids: AtomicU64,
    metrics: Arc<Metrics>,
    window: usize,
}

/// What a stream asks of its worker.
enum Job {
    /// Makes the session on its worker, which also frees it: an allocator keeps what one thread
    /// allocates and another frees longer than it need.
    Open(Box<dyn FnOnce() -> Option<Box<Stream>> + Send>),
    Do(u64, Task),
    Close(u64),
}

/// An operation, and what is known of it.
struct Task {
    operation: Operation,
    received: Instant,
    permits: Permits,
}

/// What a message holds of its connection and its client until it is answered.
#[derive(Default)]
pub(crate) struct Permits {
    /// Given back when the answer is written, so that a client that does not read is not read from.
    pub(crate) in_flight: Option<OwnedSemaphorePermit>,
    /// Given back when the words are labelled.
    pub(crate) words: Option<OwnedSemaphorePermit>,
}

/// What a worker answers.
pub(crate) struct Answer {
    pub(crate) response: Response,
    /// The session that is no more, if it has ended.
    pub(crate) ended: Option<u64>,
    _in_flight: Option<OwnedSemaphorePermit>,
}

impl Answer {
    /// An answer that no worker gave.
    pub(crate) fn new(response: Response, in_flight: Option<OwnedSemaphorePermit>) -> Self {
        Self { response, ended: None, _in_flight: in_flight }
    }
}

/// How a session is to be run, and for whom.
pub(crate) struct NewSession {
    pub(crate) served: Arc<Served>,
    pub(crate) name: Option<String>,
    pub(crate) threshold: Option<f32>,
    pub(crate) settled: Option<f32>,
    /// Answers before a revision is made.
    pub(crate) provisional: bool,
    /// Takes the answers; called on the worker, so that it must not wait.
    pub(crate) answers: Box<dyn Fn(Answer) + Send>,
    pub(crate) flow: Flow,
    pub(crate) permit: Permit,
}

/// A session on its worker. Dropping it ends the session, whatever it was asked for.
pub(crate) struct Handle {
    id: u64,
    closed: bool,
    place: Place,
    metrics: Arc<Metrics>,
}

/// Where a session is computed.
enum Place {
    Here(mpsc::Sender<Job>),
    Elsewhere(RemoteHandle),
}

impl Handle {
    /// Which session it is: a number that no other session of the server has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Asks for an operation; the answer comes by the channel that the session was opened with.
    pub(crate) fn ask(&self, operation: Operation, permits: Permits) {
        match &self.place {
            Place::Here(jobs) => {
                self.metrics.queue.inc();
                let task = Task { operation, received: Instant::now(), permits };
                // Workers end after the last handle.
                let _ = jobs.send(Job::Do(self.id, task));
            }
            Place::Elsewhere(remote) => remote.ask(&operation, permits),
        }
    }

    /// Ends the session after all that it was asked for, and has that answered.
    pub(crate) fn close(mut self, permits: Permits) {
        self.ask(Operation::Close, permits);
        self.closed = true;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let (false, Place::Here(jobs)) = (self.closed, &self.place) {
            let _ = jobs.send(Job::Close(self.id));
        }
    }
}

impl Workers {
    /// Starts all workers, or none.
    pub(crate) fn start(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Self, crate::Error> {
        Self::start_with(settings, metrics, |name, work| {
            std::thread::Builder::new().name(name).spawn(work).map(drop)
        })
    }

    fn start_with(
        settings: &Settings,
        metrics: &Arc<Metrics>,
        spawn: impl Fn(String, Box<dyn FnOnce() + Send>) -> std::io::Result<()>,
    ) -> Result<Self, crate::Error> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let count = if settings.workers == 0 { cores() } else { settings.workers };
        let start = |index: usize| {
            let (jobs, inbox) = mpsc::channel();
            let sessions = Arc::new(AtomicUsize::new(0));
            let mut worker = Worker {
                inbox,
                streams: HashMap::new(),
                queues: Vec::new(),
                sessions: sessions.clone(),
                batch: settings.batch,
                most_words: settings.limits.words,
                faults: settings.faults(),
                metrics: metrics.clone(),
            };
            // Workers that have started end when their senders are dropped.
            spawn(format!("model-{index}"), Box::new(move || worker.run()))
                .map_err(|cause| crate::Error::Worker { index, count, cause })?;
            Ok((jobs, sessions))
        };
        let inboxes = (0..count).map(start).collect::<Result<_, crate::Error>>()?;
        let window = settings.limits.window;
        let (ids, metrics) = (AtomicU64::new(0), metrics.clone());
        Ok(Self { remote: None, inboxes, ids, metrics, window })
    }

    /// None here: sessions are computed elsewhere.
    pub(crate) fn elsewhere(remote: Arc<dyn Remote>, metrics: &Arc<Metrics>) -> Self {
        let (ids, metrics) = (AtomicU64::new(0), metrics.clone());
        Self { remote: Some(remote), inboxes: Vec::new(), ids, metrics, window: 0 }
    }

    /// Opens a session on the worker that has the fewest.
    pub(crate) fn open(&self, new: NewSession) -> Result<Handle, Error> {
        if let Some(remote) = &self.remote {
            let id = self.ids.fetch_add(1, Ordering::Relaxed);
            let place = Place::Elsewhere(RemoteHandle::open(&**remote, id, new, &self.metrics));
            return Ok(Handle { id, closed: false, place, metrics: self.metrics.clone() });
        }
        let NewSession { served, name, threshold, settled, provisional, answers, flow, permit } =
            new;
        let options = SessionOptions::new().window(self.window);
        let options = threshold.map_or(options, |threshold| options.threshold(threshold));
        let options = settled.map_or(options, |settled| options.settled(settled));
        options.check(&served.model)?;
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let metrics = self.metrics.of_model(&served.name);
        let stream = move || {
            // The options were checked, so that there is a session.
            let session = served.model.session_with(options).ok()?;
            Some(Box::new(Stream {
                id,
                client: ClientSession::new(session),
                metrics,
                name,
                provisional,
                answers,
                flow,
                queue: VecDeque::new(),
                current: None,
                failed: false,
                _permit: permit,
            }))
        };
        let fewest =
            self.inboxes.iter().min_by_key(|(_, sessions)| sessions.load(Ordering::Relaxed));
        // There is always a worker: a server without one could not have been started.
        let (jobs, sessions) = fewest.unwrap_or(&self.inboxes[0]);
        sessions.fetch_add(1, Ordering::Relaxed);
        let _ = jobs.send(Job::Open(Box::new(stream)));
        let place = Place::Here(jobs.clone());
        Ok(Handle { id, closed: false, place, metrics: self.metrics.clone() })
    }
}

/// Refuses more words than a session may have.
pub(crate) fn check_words(words: usize, limit: usize) -> Result<(), Error> {
    if words <= limit {
        return Ok(());
    }
    let reason =
        format!("{words} words are more than the limit of {limit}; say less, or finish and reset");
    Err(Error::invalid("the session", reason))
}

/// A session, and what it was asked for.
struct Stream {
    id: u64,
    client: ClientSession,
    metrics: ModelMetrics,
    name: Option<String>,
    provisional: bool,
    answers: Box<dyn Fn(Answer) + Send>,
    flow: Flow,
    /// What was asked for after `current`.
    queue: VecDeque<Task>,
    /// What is being computed.
    current: Option<Task>,
    /// It panicked, and is not computed any more.
    failed: bool,
    _permit: Permit,
}

impl Stream {
    fn send(&self, response: Response, ended: bool, in_flight: Option<OwnedSemaphorePermit>) {
        let response = Response { session: self.name.clone(), ..response };
        let ended = ended.then_some(self.id);
        (self.answers)(Answer { response, ended, _in_flight: in_flight });
    }

    /// Does a word wait for a revision of the words before it?
    fn is_urgent(&self) -> bool {
        let reads =
            |task: &Task| matches!(task.operation, Operation::Push(_) | Operation::Update(_));
        self.client.session.work() == Some(Work::Revision) && self.queue.iter().any(reads)
    }

    /// Does it wait for this kind of work? Not if it was done by way of another queue.
    fn waits_for(&self, work: Work) -> bool {
        self.client.session.work() == Some(work) && !self.failed
    }

    /// The first pass's answer, while the revision is waited for.
    fn answer_provisionally(&mut self) {
        let Some(task) = &self.current else { return };
        self.metrics.first(task.received.elapsed());
        if self.provisional && task.operation != Operation::Finish {
            let (words, update) = (task.operation.words(), self.client.session.take_provisional());
            let response = Response { provisional: true, words, update, ..Response::default() };
            self.send(response, false, None);
        }
    }

    /// Begins an operation, or does it if nothing is to be computed.
    fn begin(&mut self, task: Task, most_words: usize) -> Result<(), Error> {
        let Task { operation, .. } = self.current.insert(task);
        match operation {
            Operation::Push(words) => {
                check_words(self.client.session.words() + words.words().len(), most_words)?;
            }
            Operation::Update(words) => check_words(words.words().len(), most_words)?,
            _ => {}
        }
        self.client.begin(operation)
    }
}

/// What the streams of one model wait for; batches are of one model.
struct Queue {
    model: Model,
    streams: FairQueue<u64>,
}

struct Worker {
    inbox: mpsc::Receiver<Job>,
    streams: HashMap<u64, Box<Stream>>,
    queues: Vec<Queue>,
    sessions: Arc<AtomicUsize>,
    batch: usize,
    most_words: usize,
    faults: Faults,
    metrics: Arc<Metrics>,
}

impl Worker {
    /// Works until there is nobody left to work for.
    fn run(&mut self) {
        // A panic that no stream is to blame for would be a mistake of the worker's own: it goes
        // on.
        while catch_unwind(AssertUnwindSafe(|| self.rounds())).is_err() {
            self.metrics.panics.inc();
            tracing::error!("a model worker panicked between two streams");
        }
    }

    fn rounds(&mut self) {
        loop {
            if self.queues.iter().all(|queue| queue.streams.is_empty()) {
                match self.inbox.recv() {
                    Ok(job) => self.take(job),
                    Err(mpsc::RecvError) => return,
                }
            }
            while let Ok(job) = self.inbox.try_recv() {
                self.take(job);
            }
            for model in 0..self.queues.len() {
                self.read(model);
                self.revise(model);
            }
        }
    }

    /// Does something for one stream. A panic costs that stream, and no other.
    fn turn(&mut self, id: u64, act: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| act(self))).is_err() {
            self.metrics.panics.inc();
            self.fail(id);
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Open(open) => self.streams.extend(open().map(|stream| (stream.id, stream))),
            Job::Do(id, task) => self.turn(id, |worker| worker.receive(id, task)),
            Job::Close(id) => self.close(id),
        }
    }

    fn receive(&mut self, id: u64, task: Task) {
        // A session is closed by its handle alone, so that it is still here.
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.queue.push_back(task);
        if stream.failed {
            self.fail(id);
        } else if stream.current.is_none() {
            self.next(id);
        } else if stream.is_urgent() {
            self.wait_for(id, Work::Revision);
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(stream) = self.streams.remove(&id) {
            self.sessions.fetch_sub(1, Ordering::Relaxed);
            let unanswered = stream.queue.len() + usize::from(stream.current.is_some());
            self.metrics.queue.dec_by(unanswered as i64);
        }
    }

    /// Gives a stream up that panicked: whatever it was and is asked for is answered with an error,
    /// until it is closed.
    fn fail(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.failed {
            stream.failed = true;
            tracing::error!("a session panicked and was closed");
        }
        let tasks: Vec<Task> =
            stream.current.take().into_iter().chain(stream.queue.drain(..)).collect();
        for task in tasks {
            self.metrics.queue.dec();
            if task.operation == Operation::Close {
                stream.send(Response::default(), true, task.permits.in_flight);
                self.close(id);
                return;
            }
            let reason = "internal error: this session was closed; start it anew";
            stream.send(Response::refusal(reason), true, task.permits.in_flight);
        }
    }

    /// Begins what the stream was asked for next, until something is to be computed.
    fn next(&mut self, id: u64) {
        while let Some(stream) = self.streams.get_mut(&id)
            && let Some(task) = stream.queue.pop_front()
        {
            let closes = task.operation == Operation::Close;
            let begun = stream.begin(task, self.most_words);
            if let Some(task) = &stream.current {
                self.faults.check(Point::Begin, &task.operation);
            }
            match begun.map(|()| stream.client.session.work()) {
                Ok(Some(work)) => {
                    self.wait_for(id, work);
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
    }

    /// Puts a stream into the queue for the work it waits for.
    fn wait_for(&mut self, id: u64, work: Work) {
        let Some(stream) = self.streams.get(&id) else { return };
        let model = stream.client.session.model();
        let found = self.queues.iter().position(|queue| queue.model.is(model));
        let index = found.unwrap_or_else(|| {
            // Models that were replaced and have no streams any more go by the way.
            self.queues.retain(|queue| !queue.streams.is_empty());
            self.queues.push(Queue { model: model.clone(), streams: FairQueue::default() });
            self.queues.len() - 1
        });
        self.queues[index].streams.push(stream.flow, work, stream.is_urgent(), id);
    }

    /// The last answer to what the stream is asked for.
    fn answer(&mut self, id: u64, error: Option<Error>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(task) = &stream.current else { return };
        self.faults.check(Point::Answer, &task.operation);
        let response = error.map_or_else(|| stream.client.respond(&task.operation), Err);
        let response = response.unwrap_or_else(|error| Response::refusal(error.to_string()));
        if let Some(update) = response.update.as_ref().filter(|update| update.action.is_some()) {
            stream.metrics.last(task.received.elapsed());
            if !update.revised() {
                stream.metrics.first(task.received.elapsed());
            }
        }
        self.metrics.queue.dec();
        let permits = stream.current.take().map(|task| task.permits).unwrap_or_default();
        drop(permits.words);
        stream.send(response, false, permits.in_flight);
    }

    /// Reads a word of every stream of a model that has one.
    fn read(&mut self, model: usize) {
        let mut batch = Batch::new(Work::Word, self.batch);
        batch.fill(&mut self.queues[model].streams, &mut self.streams);
        if batch.streams.is_empty() {
            return;
        }
        self.metrics.batches.observe(batch.streams.len() as f64);
        for id in self.compute(batch.streams, batch::read) {
            self.turn(id, |worker| worker.was_read(id));
        }
    }

    fn was_read(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let work = stream.client.session.work();
        stream.metrics.read(work == Some(Work::Revision));
        if work == Some(Work::Revision) && stream.client.session.unread() == 0 {
            stream.answer_provisionally();
        }
        self.go_on(id, work);
    }

    /// Makes some of the revisions that streams of a model wait for, unless words should be read
    /// first.
    fn revise(&mut self, model: usize) {
        let queue = &mut self.queues[model].streams;
        if queue.is_due(Work::Word, Work::Revision) {
            return;
        }
        let rows = if self.batch == 1 { 1 } else { REVISION_ROWS };
        let mut batch = Batch::new(Work::Revision, rows);
        batch.fill(queue, &mut self.streams);
        for id in self.compute(batch.streams, batch::revise) {
            self.turn(id, |worker| {
                let work = worker.streams.get(&id).and_then(|stream| stream.client.session.work());
                worker.go_on(id, work);
            });
        }
    }

    /// After a computation: more of it, or the answer and what was asked for next.
    fn go_on(&mut self, id: u64, work: Option<Work>) {
        if let Some(work) = work {
            self.wait_for(id, work);
        } else {
            self.answer(id, None);
            self.next(id);
        }
    }

    /// Computes a batch and gives the streams that were computed. After a panic, which leaves them
    /// as they were, each is computed alone, and only what panics again is given up.
    #[allow(clippy::vec_box, reason = "they go back to the map as they are")]
    fn compute(
        &mut self,
        mut batch: Vec<Box<Stream>>,
        compute: fn(&mut [&mut Session]) -> tapir::Result<()>,
    ) -> Vec<u64> {
        let mut computed: Vec<u64> = batch.iter().map(|stream| stream.id).collect();
        let mut failed = Vec::new();
        if !self.run_batch(&mut batch, compute) {
            self.metrics.panics.inc();
            for stream in &mut batch {
                if !self.run_batch(std::slice::from_mut(stream), compute) {
                    failed.push(stream.id);
                }
            }
        }
        self.streams.extend(batch.into_iter().map(|stream| (stream.id, stream)));
        failed.iter().for_each(|id| self.fail(*id));
        computed.retain(|id| !failed.contains(id));
        computed
    }

    /// Computes; false if it panicked, or if the batch was refused, which would be a mistake of the
    /// worker's.
    fn run_batch(
        &self,
        batch: &mut [Box<Stream>],
        compute: fn(&mut [&mut Session]) -> tapir::Result<()>,
    ) -> bool {
        let computed = catch_unwind(AssertUnwindSafe(|| {
            let tasks = batch.iter().filter_map(|stream| stream.current.as_ref());
            tasks.for_each(|task| self.faults.check(Point::Compute, &task.operation));
            let mut sessions: Vec<&mut Session> =
                batch.iter_mut().map(|stream| &mut stream.client.session).collect();
            compute(&mut sessions)
        }));
        matches!(computed, Ok(Ok(())))
    }
}

/// Streams that are computed together.
#[allow(clippy::vec_box, reason = "they go back to the map as they are")]
struct Batch {
    work: Work,
    streams: Vec<Box<Stream>>,
    /// Rows for which there is room.
    left: usize,
}

impl Batch {
    fn new(work: Work, rows: usize) -> Self {
        Self { work, streams: Vec::new(), left: rows }
    }

    /// Takes streams that wait while there is room: at least one, however much room it needs.
    fn fill(&mut self, queue: &mut FairQueue<u64>, streams: &mut HashMap<u64, Box<Stream>>) {
        let work = self.work;
        let rows = |stream: &Stream| match work {
            _ if !stream.waits_for(work) => 0,
            Work::Word => 1,
            Work::Revision => stream.client.session.revision_size(),
        };
        while self.left > 0 {
            let room = if self.streams.is_empty() { usize::MAX } else { self.left };
            let cost = |id: &u64| {
                // A stream that was closed, or computed meanwhile, costs nothing.
                let rows = streams.get(id).map_or(0, |stream| rows(stream));
                (rows <= room).then_some(rows as u64)
            };
            let Some((id, rows)) = queue.pop(work, cost) else { break };
            if rows > 0
                && let Some(stream) = streams.remove(&id)
            {
                self.left = self.left.saturating_sub(rows as usize);
                self.streams.push(stream);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with fewer workers than it was asked for would be slow, and with none it would
    /// panic.
    #[test]
    fn a_thread_that_cannot_start_is_an_error() {
        let settings = Settings { workers: 3, ..Settings::default() };
        let metrics = Arc::new(Metrics::new());
        for first_failure in 0..3 {
            let spawn = |name: String, _: Box<dyn FnOnce() + Send>| {
                let fails = name == format!("model-{first_failure}");
                if fails { Err(std::io::Error::other("no more threads")) } else { Ok(()) }
            };
            let error = Workers::start_with(&settings, &metrics, spawn).err().unwrap().to_string();
            assert!(error.contains("no more threads") && error.contains("of 3"), "{error}");
        }
        assert_eq!(Workers::start(&settings, &metrics).unwrap().inboxes.len(), 3);
    }
}
