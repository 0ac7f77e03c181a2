//! The models that ship with the program, by the name of their task: int8, with an open vocabulary.

use std::sync::Arc;

use crate::{Config, Error, Labels, Model, Parts, Result, Vocabulary, WordVectors};

/// The files of one model directory.
struct Embedded {
    task: &'static str,
    config: &'static str,
    labels: &'static str,
    words: &'static str,
    weights: &'static [u8],
}

/// The model in `models/TASK`.
macro_rules! embedded {
    ($task:literal) => {
        Embedded {
            task: $task,
            config: include_str!(concat!("../../../models/", $task, "/config.json")),
            labels: include_str!(concat!("../../../models/", $task, "/labels.txt")),
            words: include_str!(concat!("../../../models/", $task, "/vocab.txt")),
            weights: include_bytes!(concat!("../../../models/", $task, "/model.safetensors")),
        }
    };
}

/// Every model that ships.
static MODELS: &[Embedded] = &[embedded!("snips"), embedded!("pos")];
/// The word vectors that they share.
static VECTORS: &[u8] = include_bytes!("../../../assets/en_300d.tapirvec");

impl Embedded {
    fn load(&self) -> Result<Model> {
        let name = |file: &str| format!("the embedded models/{}/{file}", self.task);
        let config = Config::from_json(self.config, &name("config.json"))?;
        let mut vocabulary = Vocabulary::from_text(self.words, &name("vocab.txt"))?;
        if config.vectors.is_some() {
            let vectors = WordVectors::from_bytes(VECTORS, "the embedded word vectors")?;
            vocabulary = vocabulary.with_vectors(Arc::new(vectors));
        }
        let labels = Labels::from_text(self.labels, &name("labels.txt"))?;
        Parts { config, labels, vocabulary, weights: self.weights.into() }.load()
    }
}

impl Model {
    /// The model that is part of the program: slot filling for voice assistants, trained on SNIPS (`models/snips`).
    ///
    /// ```
    /// let model = tapir::Model::embedded()?;
    /// let mut session = model.session();
    /// for word in "play some jazz by miles davis".split(' ') {
    ///     session.push(word)?;
    /// }
    /// let end = session.finish()?;
    /// assert!(end.labels.iter().any(|label| label.starts_with("B-artist")));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn embedded() -> Result<Self> {
        Self::embedded_for("snips")
    }

    /// The embedded model of a task; an unknown task is an error that names those there are.
    ///
    /// ```
    /// assert!(tapir::Model::embedded_for("snips").is_ok());
    /// assert!(tapir::Model::embedded_for("chess").unwrap_err().to_string().contains("snips"));
    /// ```
    pub fn embedded_for(task: &str) -> Result<Self> {
        let model = MODELS.iter().find(|model| model.task == task).ok_or_else(|| {
            let tasks: Vec<_> = Self::embedded_tasks().collect();
            let reason = format!("no model for this task is in the program; there are: {}", tasks.join(", "));
            Error::invalid(format!("task `{task}`"), reason)
        })?;
        model.load()
    }

    /// The tasks that have a model in the program.
    pub fn embedded_tasks() -> impl Iterator<Item = &'static str> {
        MODELS.iter().map(|model| model.task)
    }
}
