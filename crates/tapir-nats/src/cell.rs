//! A cell: two streams, a bucket, and the workers that share them.
//!
//! Clients publish to `CELL.in.SESSION`. The stream of inputs keeps each message under
//! `CELL.in.PARTITION.SESSION`: the broker itself computes the partition, so that no client has to,
//! and no server needs a setting. Workers publish to `CELL.answers.SESSION`; the stream of answers
//! keeps what is not fenced off, and repeats it on `CELL.out.SESSION`, where clients listen.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::kv;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, Republish, StorageType, Stream,
    SubjectTransform,
};
use async_nats::jetstream::{Context, stream};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::connection::Link;
use crate::direct::Kept;
use crate::names::Names;
use crate::{Error, Name};

/// How long JetStream is asked, again and again, until it makes what is missing: nodes that have
/// just started elect a leader first.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);
/// The bucket's lines are read by one request, which gives at most 1,024.
const MOST_PARTITIONS: u32 = 512;
/// The streams' metadata has the [`Agreement`] under this.
const AGREEMENT: &str = "tapir";
/// The bucket has the kernels of the cell under this.
const KERNELS: &str = "kernels";

/// Everything about a cell. Whoever comes first makes it so.
#[derive(Clone, Debug)]
pub struct CellSettings {
    /// Its name, with which its subjects begin.
    pub name: String,
    /// Into how many partitions its sessions fall; never changed.
    pub partitions: u32,
    /// Nodes that have a copy of every message: 1, 3 or 5.
    pub replicas: usize,
    /// A message is kept so long: a session lives no longer after its start, or its last reset.
    pub retention: Duration,
    /// Messages of a session until it is reset or closed; the broker refuses more.
    pub messages_per_session: i64,
    /// Answers of a session that are kept, for clients that have missed some: the last ones.
    pub answers_per_session: i64,
    /// Bytes of a message; the broker refuses longer ones.
    pub message_bytes: i32,
    /// Words of a session.
    pub words: usize,
    /// Words, from the newest back, that a revision reads.
    pub window: usize,
}

impl Default for CellSettings {
    fn default() -> Self {
        let limits = tapir_serve::Limits::default();
        Self {
            name: "tapir".into(),
            partitions: 16,
            replicas: 1,
            retention: Duration::from_hours(1),
            messages_per_session: 4096,
            answers_per_session: 256,
            message_bytes: limits.message_bytes as i32,
            words: limits.words,
            window: limits.window,
        }
    }
}

/// What all who use a cell must have alike, or answers would depend on who gives them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agreement {
    pub(crate) partitions: u32,
    pub(crate) words: usize,
    pub(crate) window: usize,
}

/// A cell that is there.
pub(crate) struct Cell {
    pub(crate) names: Names,
    pub(crate) agreement: Agreement,
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) inputs: Stream,
    pub(crate) answers: Stream,
    pub(crate) bucket: kv::Store,
}

impl Cell {
    /// Finds the cell, or makes it; one that was made otherwise is an error.
    pub(crate) async fn open(link: &Link, settings: &CellSettings) -> Result<Arc<Self>, Error> {
        settings.check()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let opened = Self::try_open(&link.client, settings).await;
            match opened.map_err(|error| explain(link, error)) {
                Err(error) if is_passing(&error, deadline) => sleep(PAUSE).await,
                opened => return opened.map(Arc::new),
            }
        }
    }

    async fn try_open(client: &Client, settings: &CellSettings) -> Result<Self, Error> {
        let names = Names::new(Name::new(settings.name.clone())?);
        let context = context(client);
        let make = async |config: Config| {
            let what = format!("open the stream {}", config.name);
            let made = context.get_or_create_stream(config).await;
            made.map_err(|error| Error::jetstream(what, error))
        };
        let inputs = make(settings.inputs(&names)).await?;
        let answers = make(settings.answers(&names)).await?;
        let agreement = settings.agree(&names, inputs.cached_info())?;
        let bucket = bucket(&context, &names, settings.replicas).await?;
        Ok(Self { names, agreement, client: client.clone(), context, inputs, answers, bucket })
    }

    /// Finds a cell that is there, whatever its settings.
    pub(crate) async fn join(link: &Link, name: &str) -> Result<Arc<Self>, Error> {
        let joined = Self::try_join(&link.client, name).await;
        joined.map(Arc::new).map_err(|error| explain(link, error))
    }

    async fn try_join(client: &Client, name: &str) -> Result<Self, Error> {
        let names = Names::new(Name::new(name)?);
        let context = context(client);
        let missing = |what: String| {
            move |cause: String| {
                Error::jetstream(format!("find {what}, which a worker makes"), cause)
            }
        };
        let find = async |name: String| {
            let found = context.get_stream(&name).await;
            found.map_err(|error| missing(format!("the stream {name}"))(error.to_string()))
        };
        let (inputs, answers) =
            (find(names.input_stream()).await?, find(names.answer_stream()).await?);
        let bucket = context.get_key_value(names.bucket()).await;
        let bucket = bucket.map_err(|error| missing(names.bucket())(error.to_string()))?;
        let text = inputs.cached_info().config.metadata.get(AGREEMENT);
        let agreement = serde_json::from_str(text.map_or("", String::as_str));
        let agreement =
            agreement.map_err(|error| missing(names.input_stream())(error.to_string()))?;
        let client = client.clone();
        Ok(Self { names, agreement, client, context, inputs, answers, bucket })
    }

    /// The last answer of a session that the leader has.
    pub(crate) async fn last_answer(&self, session: &Name) -> Result<Option<Kept>, Error> {
        let subject = self.names.answers(session.as_str());
        match self.answers.get_last_raw_message_by_subject(&subject).await {
            Ok(found) => Ok(Some(Kept {
                subject,
                sequence: found.sequence,
                headers: found.headers,
                payload: found.payload,
            })),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(Error::jetstream("read the last answer", error)),
        }
    }

    /// Sees to it that all workers of the cell compute with the same kernels, for others round
    /// otherwise: the first says which.
    pub(crate) async fn agree_on_kernels(&self, link: &Link) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let agreed = self.try_to_agree_on_kernels().await;
            match agreed.map_err(|error| explain(link, error)) {
                Err(error) if is_passing(&error, deadline) => sleep(PAUSE).await,
                agreed => return agreed,
            }
        }
    }

    async fn try_to_agree_on_kernels(&self) -> Result<(), Error> {
        let ours = kernels();
        let failed = |error: String| Error::jetstream("agree on kernels", error);
        // Somebody may have been faster: then it is read.
        let _ = self.bucket.create(KERNELS, ours.clone().into()).await;
        let theirs = self.bucket.get(KERNELS).await.map_err(|error| failed(error.to_string()))?;
        let theirs = theirs.ok_or_else(|| failed("nobody could say which".into()))?;
        if theirs == ours.as_bytes() {
            return Ok(());
        }
        Err(Error::Disagreement {
            cell: self.names.cell().to_string(),
            what: "kernels",
            theirs: String::from_utf8_lossy(&theirs).into_owned(),
            ours: format!("{ours} (TAPIR_KERNELS chooses others)"),
        })
    }
}

/// Is it worth asking again?
fn is_passing(error: &Error, deadline: Instant) -> bool {
    matches!(error, Error::JetStream { .. }) && Instant::now() < deadline
}

/// What JetStream did not answer may be what we are not allowed to ask.
fn explain(link: &Link, error: Error) -> Error {
    match (error, link.forbidden()) {
        (Error::JetStream { what, .. }, Some(refusal)) => Error::Forbidden { what, refusal },
        (error, _) => error,
    }
}

/// How JetStream is spoken to: what it does not answer soon is asked again.
fn context(client: &Client) -> Context {
    ContextBuilder::new()
        .timeout(Duration::from_secs(3))
        .ack_timeout(Duration::from_secs(3))
        .max_ack_inflight(1 << 16)
        .build(client.clone())
}

/// What decides the last bits of an answer besides model and words: the instructions of our
/// kernels, and the system whose mathematics the rest uses.
pub(crate) fn kernels() -> String {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("{} on {arch} {os}", tapir::kernels::isa())
}

impl CellSettings {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str, expected: String| {
            Err(Error::Settings(format!("`{what}` is out of range; expected {expected}")))
        };
        if !(1..=MOST_PARTITIONS).contains(&self.partitions) {
            return wrong("partitions", format!("1 to {MOST_PARTITIONS}"));
        }
        if !(1..=5).contains(&self.replicas) {
            return wrong("replicas", "1 to 5".into());
        }
        if self.retention < Duration::from_mins(1) {
            return wrong("retention", "a minute at least".into());
        }
        if self.messages_per_session < 1 {
            return wrong("messages_per_session", "1 at least".into());
        }
        if self.answers_per_session < 1 {
            return wrong("answers_per_session", "1 at least".into());
        }
        Ok(())
    }

    fn agreement(&self) -> Agreement {
        Agreement { partitions: self.partitions, words: self.words, window: self.window }
    }

    /// What the cell has, if that is what we want.
    fn agree(&self, names: &Names, info: &stream::Info) -> Result<Agreement, Error> {
        let ours = self.agreement();
        let text = info.config.metadata.get(AGREEMENT).map_or("{}", String::as_str);
        let theirs = serde_json::from_str::<Agreement>(text);
        if theirs.as_ref().ok() == Some(&ours) {
            return Ok(ours);
        }
        Err(Error::Disagreement {
            cell: names.cell().to_string(),
            what: "settings",
            theirs: text.to_owned(),
            ours: serde_json::to_string(&ours).unwrap_or_default(),
        })
    }

    fn metadata(&self) -> HashMap<String, String> {
        let text = serde_json::to_string(&self.agreement()).unwrap_or_default();
        HashMap::from([(AGREEMENT.to_owned(), text)])
    }

    fn inputs(&self, names: &Names) -> Config {
        let mapped = format!("{{{{partition({},1)}}}}", self.partitions);
        Config {
            name: names.input_stream(),
            subjects: vec![names.input("*")],
            subject_transform: Some(SubjectTransform {
                source: names.input("*"),
                destination: names.kept_input(&mapped, "{{wildcard(1)}}"),
            }),
            storage: StorageType::File,
            num_replicas: self.replicas,
            max_age: self.retention,
            // Who sends more than a session may hold is told so; nobody's words are thrown away.
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            max_messages_per_subject: self.messages_per_session,
            max_message_size: self.message_bytes,
            duplicate_window: self.duplicates(),
            allow_direct: true,
            metadata: self.metadata(),
            ..Config::default()
        }
    }

    fn answers(&self, names: &Names) -> Config {
        Config {
            name: names.answer_stream(),
            subjects: vec![names.answers("*")],
            republish: Some(Republish {
                source: names.answers("*"),
                destination: names.output("{{wildcard(1)}}"),
                headers_only: false,
            }),
            storage: StorageType::File,
            num_replicas: self.replicas,
            // An answer is younger than what it answers, and so outlives it.
            max_age: self.retention,
            discard: DiscardPolicy::Old,
            max_messages_per_subject: self.answers_per_session,
            duplicate_window: self.duplicates(),
            allow_direct: true,
            metadata: self.metadata(),
            ..Config::default()
        }
    }

    /// How long the broker knows a message that is sent twice.
    fn duplicates(&self) -> Duration {
        Duration::from_mins(2).min(self.retention)
    }
}

/// The bucket of leases.
async fn bucket(context: &Context, names: &Names, replicas: usize) -> Result<kv::Store, Error> {
    if let Ok(bucket) = context.get_key_value(names.bucket()).await {
        return Ok(bucket);
    }
    let config = kv::Config {
        bucket: names.bucket(),
        history: 1,
        num_replicas: replicas,
        storage: StorageType::File,
        ..kv::Config::default()
    };
    let what = format!("open the bucket {}", names.bucket());
    context.create_key_value(config).await.map_err(|error| Error::jetstream(what, error))
}
