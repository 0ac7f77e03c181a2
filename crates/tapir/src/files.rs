//! The files of a model by their names, wherever they are: in a directory, in a program, on the
//! other end of a network.

use std::sync::Arc;

use crate::{Bytes, Config, Error, Labels, Parts, Result, Vocabulary, WordPieces, WordVectors};

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const LABELS: &str = "labels.txt";
pub(crate) const INTENTS: &str = "intents.txt";
pub(crate) const VOCABULARY: &str = "vocab.txt";
pub(crate) const PIECES: &str = "pieces.txt";
pub(crate) const WEIGHTS: &str = "model.safetensors";

impl Config {
    /// The names of the files that a model of this configuration has beside `config.json`. Its word
    /// vectors, if it has any, come last: models may share them.
    ///
    /// ```
    /// # let config = tapir::doctest::parts().config;
    /// assert_eq!(config.files(), ["labels.txt", "vocab.txt", "model.safetensors"]);
    /// ```
    pub fn files(&self) -> Vec<&str> {
        let intents = (self.intents > 0).then_some(INTENTS);
        let pieces = self.bert().map(|_| PIECES);
        let files = [Some(LABELS), intents, Some(VOCABULARY), pieces, Some(WEIGHTS)];
        files.into_iter().flatten().chain(self.vectors.as_deref()).collect()
    }
}

impl Parts {
    /// The model whose files `file` gives by their names; none for one that is not there.
    ///
    /// ```
    /// # let parts = tapir::doctest::parts();
    /// let file = |name: &str| match name {
    ///     "config.json" => Some(parts.config.to_json().into_bytes().into()),
    ///     "labels.txt" => Some(parts.labels.to_text().into_bytes().into()),
    ///     "vocab.txt" => Some(parts.vocabulary.to_text().into_bytes().into()),
    ///     "model.safetensors" => Some(parts.weights.clone()),
    ///     _ => None,
    /// };
    /// let model = tapir::Parts::from_files(file)?.load()?;
    /// assert_eq!(model.labels().len(), parts.labels.len());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn from_files(mut file: impl FnMut(&str) -> Option<Bytes>) -> Result<Self> {
        let mut bytes = |name: &str| {
            file(name).ok_or_else(|| Error::invalid(name, "the model has no such file"))
        };
        let config = Config::from_json(text(&bytes(CONFIG)?, CONFIG)?, CONFIG)?;
        let labels = Labels::from_text(text(&bytes(LABELS)?, LABELS)?, LABELS)?;
        let intents = match config.intents {
            0 => None,
            _ => Some(Labels::from_text(text(&bytes(INTENTS)?, INTENTS)?, INTENTS)?),
        };
        let mut vocabulary =
            Vocabulary::from_text(text(&bytes(VOCABULARY)?, VOCABULARY)?, VOCABULARY)?;
        if let Some(name) = &config.vectors {
            let vectors = WordVectors::from_bytes(bytes(name)?, name)?;
            vocabulary = vocabulary.with_vectors(Arc::new(vectors));
        }
        let pieces = match config.bert() {
            None => None,
            Some(_) => Some(WordPieces::from_text(text(&bytes(PIECES)?, PIECES)?, PIECES)?),
        };
        let weights = bytes(WEIGHTS)?;
        Ok(Self { config, labels, intents, vocabulary, pieces, weights })
    }
}

/// A file that is a text.
fn text<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|error| Error::invalid(name, format!("not UTF-8: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model without one of its files, or with one that is no text.
    fn broken(missing: &str, spoilt: &str) -> String {
        let parts = crate::doctest::with_intents(crate::doctest::parts());
        let file = |name: &str| {
            let bytes: Bytes = match name {
                CONFIG => parts.config.to_json().into_bytes().into(),
                LABELS => parts.labels.to_text().into_bytes().into(),
                INTENTS => parts.intents.as_ref()?.to_text().into_bytes().into(),
                VOCABULARY => parts.vocabulary.to_text().into_bytes().into(),
                WEIGHTS => parts.weights.clone(),
                _ => return None,
            };
            let bytes = if name == spoilt { vec![0xff].into() } else { bytes };
            (name != missing).then_some(bytes)
        };
        match Parts::from_files(file).and_then(Parts::load) {
            Ok(_) => "it loads".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn errors_name_the_file() {
        assert_eq!(broken("", ""), "it loads");
        for name in [CONFIG, LABELS, INTENTS, VOCABULARY, WEIGHTS] {
            assert_eq!(broken(name, ""), format!("{name}: the model has no such file"));
            assert!(broken("", name).starts_with(&format!("{name}: ")), "{name}");
        }
    }
}
