//! Sessions that are computed elsewhere: a server that takes connections and passes on what they
//! say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// All that was asked and is not answered.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Asked>,
    /// The session has ended by a fault, and nobody elsewhere will answer. A connection hears of
    /// that late, and may ask meanwhile.
    ended: bool,
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
    asked: Mutex<Queue>,
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
        let asked = Asked {
            words: operation.words(),
            permits,
            since: Instant::now(),
            closes: *operation == Operation::Close,
        };
        {
            let mut queue = self.desk.asked();
            if queue.ended {
                return self.desk.refuse(asked);
            }
            self.desk.metrics.queue.inc();
            queue.waiting.push_back(asked);
        }
        match operation.to_request() {
            Ok(request) => self.session.ask(request),
            // Only tokens of /v1/tag can be such, and they are the first thing that is asked.
            Err(error) => self.desk.answer(Response::refusal(error.to_string()), false),
        }
    }
}

impl Desk {
    fn asked(&self) -> MutexGuard<'_, Queue> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an answer on to whoever asked first.
    fn answer(&self, response: Response, ended: bool) {
        let mut queue = self.asked();
        let Some(first) = queue.waiting.front_mut() else { return };
        let words = first.words.clone();
        let elapsed = first.since.elapsed();
        let session = self.name.clone();
        if response.provisional {
            self.of_model.first(elapsed);
            return self.send(Response { session, words, ..response }, false, Permits::default());
        }
        let Some(first) = queue.waiting.pop_front() else { return };
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
            queue.ended = true;
            for late in queue.waiting.drain(..) {
                self.metrics.queue.dec();
                self.refuse(late);
            }
        }
    }

    /// Answers what a session is asked that has ended by a fault.
    fn refuse(&self, late: Asked) {
        let reason = "internal error: this session was closed; start it anew";
        let error = (!late.closes).then(|| reason.to_owned());
        let response = Response { session: self.name.clone(), error, ..Response::default() };
        self.send(response, true, late.permits);
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
        let left = self.asked().waiting.len();
        self.metrics.queue.dec_by(left as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session elsewhere that ends at what it is asked first.
    struct Ends(Box<dyn Fn(Response, bool) + Send + Sync>);

    impl RemoteSession for Ends {
        fn ask(&self, _: Request) {
            self.0(Response::refusal("the end"), true);
        }
    }

    struct Nowhere;

    impl Remote for Nowhere {
        fn open(&self, opening: RemoteOpening) -> Box<dyn RemoteSession> {
            Box::new(Ends(opening.answers))
        }
    }

    /// A connection that has not heard yet that a session has ended asks on: it is answered, or its
    /// client would wait for ever.
    #[test]
    fn what_is_asked_of_a_session_that_has_ended_is_answered() {
        let metrics = Arc::new(Metrics::new());
        let (sender, answers) = std::sync::mpsc::channel();
        let desk = Arc::new(Desk {
            id: 7,
            name: Some("a".into()),
            asked: Mutex::default(),
            answers: Mutex::new(Box::new(move |answer| drop(sender.send(answer)))),
            metrics: metrics.clone(),
            of_model: metrics.of_model("model"),
            _permit: crate::clients::Permit::unlimited(&metrics.sessions),
        });
        let session = Nowhere.open(RemoteOpening {
            model: "model".into(),
            threshold: None,
            provisional: false,
            answers: Box::new({
                let desk = desk.clone();
                move |response, ended| desk.answer(response, ended)
            }),
        });
        let handle = RemoteHandle { session, desk };
        for operation in [Operation::Finish, Operation::Reset, Operation::Close] {
            handle.ask(&operation, Permits::default());
        }
        let given: Vec<(Option<String>, Option<u64>)> =
            answers.try_iter().map(|answer| (answer.response.error, answer.ended)).collect();
        assert_eq!(given[0], (Some("the end".into()), Some(7)));
        assert!(given[1].0.as_ref().is_some_and(|error| error.contains("was closed")));
        assert_eq!(given[2], (None, Some(7)));
        assert_eq!(given.len(), 3);
        assert_eq!(metrics.queue.get(), 0);
    }
}
