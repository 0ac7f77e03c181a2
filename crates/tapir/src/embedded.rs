//! The model that ships with the program: SNIPS slot filling, int8, open vocabulary.

use std::sync::Arc;

use crate::{Config, Labels, Model, Parts, Result, Vocabulary, WordVectors};

const CONFIG: &str = include_str!("../../../models/snips/config.json");
const LABELS: &str = include_str!("../../../models/snips/labels.txt");
const WORDS: &str = include_str!("../../../models/snips/vocab.txt");
const WEIGHTS: &[u8] = include_bytes!("../../../models/snips/model.safetensors");
const VECTORS: &[u8] = include_bytes!("../../../assets/en_300d.tapirvec");

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
        let vectors = WordVectors::from_bytes(VECTORS, "the embedded word vectors")?;
        let parts = Parts {
            config: Config::from_json(CONFIG, "the embedded config.json")?,
            labels: Labels::from_text(LABELS, "the embedded labels.txt")?,
            vocabulary: Vocabulary::from_text(WORDS, "the embedded vocab.txt")?
                .with_vectors(Arc::new(vectors)),
            weights: WEIGHTS.into(),
        };
        parts.load()
    }
}
