//! The models and word vectors that ship in the program, by their names: int8, with an open
//! vocabulary. Their files belong to the crate `tapir-models`.

use std::sync::Arc;

use tapir_models::{ModelFiles, VECTORS};

use crate::{Config, Error, Labels, Model, Parts, Result, Vocabulary, WordPieces, WordVectors};

impl Model {
    /// The model that is there without being asked for: slots of voice assistants (`snips`).
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
        Self::embedded_named(tapir_models::models()[0].name)
    }

    /// The embedded model of that name; an unknown name is an error that says which there are.
    ///
    /// ```
    /// assert!(tapir::Model::embedded_named("pos").is_ok());
    /// let error = tapir::Model::embedded_named("chess").unwrap_err();
    /// assert!(error.to_string().contains("snips, snips-small, pos"));
    /// ```
    pub fn embedded_named(name: &str) -> Result<Self> {
        Parts::embedded_named(name)?.load()
    }

    /// The names of the models in the program, the default first.
    ///
    /// ```
    /// assert_eq!(tapir::Model::embedded_names().collect::<Vec<_>>(), ["snips", "snips-small", "pos"]);
    /// ```
    pub fn embedded_names() -> impl Iterator<Item = &'static str> {
        tapir_models::models().iter().map(|model| model.name)
    }
}

impl Parts {
    /// The files of an embedded model.
    ///
    /// ```
    /// assert_eq!(tapir::Parts::embedded_named("pos")?.labels.len(), 17);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn embedded_named(name: &str) -> Result<Self> {
        let model = tapir_models::model(name).ok_or_else(|| {
            let names = Model::embedded_names().collect::<Vec<_>>().join(", ");
            let reason = format!("no model of this name is in the program; there are: {names}");
            Error::invalid(format!("model `{name}`"), reason)
        })?;
        let place = |file: &str| format!("the embedded models/{name}/{file}");
        let ModelFiles { config, labels, intents, vocabulary, pieces, weights, .. } = *model;
        let config = Config::from_json(config, &place("config.json"))?;
        let mut vocabulary = Vocabulary::from_text(vocabulary, &place("vocab.txt"))?;
        if config.vectors.is_some() {
            vocabulary = vocabulary.with_vectors(Arc::new(WordVectors::embedded()?));
        }
        let labels = Labels::from_text(labels, &place("labels.txt"))?;
        let intents = intents.map(|text| Labels::from_text(text, &place("intents.txt")));
        let intents = intents.transpose()?;
        let pieces = pieces.map(|text| WordPieces::from_text(text, &place("pieces.txt")));
        let pieces = pieces.transpose()?;
        Ok(Self { config, labels, intents, vocabulary, pieces, weights: weights.into() })
    }
}

impl WordVectors {
    /// The English word vectors in the program: 514,092 words.
    ///
    /// ```
    /// let vectors = tapir::WordVectors::embedded()?;
    /// assert!(vectors.row("jazz").is_some());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn embedded() -> Result<Self> {
        Self::from_bytes(VECTORS.bytes, "the embedded word vectors")
    }

    /// Is this the name of the vectors in the program, with no folder in front?
    #[cfg(feature = "store")]
    pub(crate) fn is_embedded(name: &std::path::Path) -> bool {
        name == std::path::Path::new(VECTORS.name)
    }
}
