//! Model workers without a port: sessions for others than the server's own connections, such as
//! those whose words come from a message broker. They are computed in the same batches, as fairly,
//! and to the same bits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::text;
use tapir::protocol::{Operation, Response};

use crate::clients::Permit;
use crate::fair::Flow;
use crate::metrics::Metrics;
use crate::models::{Models, Served};
use crate::worker::{Handle, NewSession, Permits, Workers};
use crate::{Error, Settings};

/// Models and the threads that run them.
///
/// ```
/// use std::sync::mpsc;
/// use tapir::{Tokenizer, protocol::Request};
/// use tapir_serve::{Engine, Opening, Settings};
///
/// let models = [("snips".to_owned(), "snips-small".to_owned())].into();
/// let engine = Engine::start(&Settings { workers: 1, models, ..Settings::default() })?;
/// let (answers, answered) = mpsc::channel();
/// let session = engine.open(Opening {
///     served: engine.models()[0].clone(),
///     threshold: None,
///     settled: None,
///     provisional: false,
///     answers: Box::new(move |response, _ended| drop(answers.send(response))),
/// })?;
/// session.ask(Request::parse(r#"{"push": "play"}"#)?.operation(Tokenizer::Spoken)?);
/// assert_eq!(answered.recv()?.update.map(|update| update.step), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    models: Models,
    workers: Workers,
    metrics: Arc<Metrics>,
    flows: AtomicU64,
}

/// How a session is to be run, and who is told.
pub struct Opening {
    /// Which model.
    pub served: Arc<Served>,
    /// Revise when the policy value reaches this, 0 to 1; the model's own without it.
    pub threshold: Option<f32>,
    /// Say what will stay as it is with this probability.
    pub settled: Option<f32>,
    /// Answer before a revision is made, and again after it.
    pub provisional: bool,
    /// Takes the answers, in the order of what was asked for, and whether the session has ended by
    /// a fault. Called on the thread that computes, so that it must not wait.
    pub answers: Box<dyn Fn(Response, bool) + Send>,
}

/// A session of an [`Engine`]. Dropping it ends the session, whatever it was asked for.
pub struct EngineSession(Handle);

impl Engine {
    /// Loads the models and starts the threads; of the settings, those about models, threads and
    /// words count.
    pub fn start(settings: &Settings) -> Result<Self, Error> {
        settings.validate()?;
        let metrics = Arc::new(Metrics::new());
        Ok(Self {
            models: Models::open(settings)?,
            workers: Workers::start(settings, &metrics)?,
            metrics,
            flows: AtomicU64::new(0),
        })
    }

    /// The models, the default first.
    pub fn models(&self) -> Arc<Vec<Arc<Served>>> {
        self.models.all()
    }

    /// Reads all models anew; sessions go on with the model they began with.
    pub fn reload(&self) -> Result<(), Error> {
        self.models.reload()
    }

    /// Begins a session. Each is served as fairly as a client of the server.
    pub fn open(&self, opening: Opening) -> Result<EngineSession, tapir::Error> {
        let Opening { served, threshold, settled, provisional, answers } = opening;
        let client = self.flows.fetch_add(1, Ordering::Relaxed);
        let handle = self.workers.open(NewSession {
            served,
            name: None,
            threshold,
            settled,
            provisional,
            answers: Box::new(move |answer| answers(answer.response, answer.ended.is_some())),
            flow: Flow { client, connection: 0 },
            permit: Permit::unlimited(&self.metrics.sessions),
        })?;
        Ok(EngineSession(handle))
    }

    /// Counts for Prometheus, as the server's, without the line that ends them.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode_registry(&mut text, &self.metrics.registry);
        text
    }
}

impl EngineSession {
    /// Asks for an operation; the answer follows.
    pub fn ask(&self, operation: Operation) {
        self.0.ask(operation, Permits::default());
    }

    /// Ends the session after all that it was asked for, and has that answered.
    pub fn close(self) {
        self.0.close(Permits::default());
    }
}
