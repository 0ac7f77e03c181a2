//! Sessions that are computed elsewhere: a server that takes connections and passes on what they
//! say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tapir::protocol::{Operation, Request, Response};

use crate::metrics::{Metrics, ModelMetrics};
use crate::worker::{Answer, NewSession, Permits};

/// Where sessions are computed, if not in this process.
pub trait Remote: Send + Sync {
    /// Begins a session. It takes words as they are, for the server has made them already.
    fn open(&self, opening: RemoteOpening) -> Box<dyn RemoteSession>;
}

/// How a session is to be run elsewhere, and who is told.
pub struct RemoteOpening {
    /// The name of its model.
    pub model: String,
    /// Revise when the policy value reaches this, 0 to 1; the model's own without it.
    pub threshold: Option<f32>,
    /// Answer before a revision is made, and again after it.
    pub provisional: bool,
    /// Takes the answers, in the order of the requests, and whether the session has ended by a
    /// fault: then what was asked and is not answered will not be.
    pub answers: Box<dyn Fn(Response, bool) + Send + Sync>,
}

/// A session elsewhere. Dropping it ends the session.
pub trait RemoteSession: Send {
    /// Asks; the answer follows.
    fn ask(&self, request: Request);
}

/// What was asked and is not answered.
struct Asked {
    /// The words that were read, where they are others than the client's.
    words: Option<Vec<String>>,
    permits: Permits,
    since: Instant,
    closes: bool,
}

/// A session elsewhere, as a connection holds it.
pub(crate) struct RemoteHandle {
    session: Box<dyn RemoteSession>,
    desk: Arc<Desk>,
}

/// What both ends of a remote session share.
struct Desk {
    id: u64,
    name: Option<String>,
    asked: Mutex<VecDeque<Asked>>,
    answers: Mutex<Box<dyn Fn(Answer) + Send>>,
    metrics: Arc<Metrics>,
    of_model: ModelMetrics,
    _permit: crate::clients::Permit,
}

impl RemoteHandle {
    pub(crate) fn open(
        remote: &dyn Remote,
        id: u64,
        new: NewSession,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let NewSession { served, name, threshold, provisional, answers, permit, .. } = new;
        let desk = Arc::new(Desk {
            id,
            name,
            asked: Mutex::default(),
            answers: Mutex::new(answers),
            metrics: metrics.clone(),
            of_model: metrics.of_model(&served.name),
            _permit: permit,
        });
        let session = remote.open(RemoteOpening {
            model: served.name.clone(),
            threshold,
            provisional,
            answers: Box::new({
                let desk = desk.clone();
                move |response, ended| desk.answer(response, ended)
            }),
        });
        Self { session, desk }
    }

    pub(crate) fn ask(&self, operation: &Operation, permits: Permits) {
        self.desk.metrics.queue.inc();
        self.desk.asked().push_back(Asked {
            words: operation.words(),
            permits,
            since: Instant::now(),
            closes: *operation == Operation::Close,
        });
        match operation.to_request() {
            Ok(request) => self.session.ask(request),
            // Only tokens of /v1/tag can be such, and they are the first thing that is asked.
            Err(error) => self.desk.answer(Response::refusal(error.to_string()), false),
        }
    }
}

impl Desk {
    fn asked(&self) -> std::sync::MutexGuard<'_, VecDeque<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an answer on to whoever asked first.
    fn answer(&self, response: Response, ended: bool) {
        let mut asked = self.asked();
        let Some(first) = asked.front_mut() else { return };
        let words = first.words.clone();
        let elapsed = first.since.elapsed();
        let session = self.name.clone();
        if response.provisional {
            self.of_model.first(elapsed);
            return self.send(Response { session, words, ..response }, false, Permits::default());
        }
        let Some(first) = asked.pop_front() else { return };
        self.metrics.queue.dec();
        if let Some(update) = response.update.as_ref().filter(|update| update.action.is_some()) {
            self.of_model.last(elapsed);
            if !update.revised() {
                self.of_model.first(elapsed);
            }
        }
        let words = words.filter(|_| response.error.is_none());
        self.send(Response { session, words, ..response }, ended, first.permits);
        if ended {
            // What was asked meanwhile is answered so, too.
            for late in asked.drain(..) {
                self.metrics.queue.dec();
                let reason = "internal error: this session was closed; start it anew";
                let error = (!late.closes).then(|| reason.to_owned());
                let response =
                    Response { session: self.name.clone(), error, ..Response::default() };
                self.send(response, true, late.permits);
            }
        }
    }

    fn send(&self, response: Response, ended: bool, permits: Permits) {
        drop(permits.words);
        let mut answer = Answer::new(response, permits.in_flight);
        answer.ended = ended.then_some(self.id);
        (self.answers.lock().unwrap_or_else(PoisonError::into_inner))(answer);
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // A client that has gone left these unanswered.
        let left = self.asked().len();
        self.metrics.queue.dec_by(left as i64);
    }
}
