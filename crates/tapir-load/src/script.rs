//! What streams say, and what they are to be answered.

use tapir::{Model, SessionOptions};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::Error;

/// Words, from the newest back, that a revision of a server reads unless it is told otherwise.
const WINDOW: usize = 128;

/// What streams say. Messages are made once: the generator shares the machine with the server.
pub(crate) struct Script {
    pub(crate) sentences: Vec<Sentence>,
}

/// A sentence, word by word.
pub(crate) struct Sentence {
    /// A message for each word.
    pub(crate) pushes: Vec<Utf8Bytes>,
    /// The labels that are right; none if nobody looks.
    pub(crate) labels: Option<Vec<String>>,
}

impl Script {
    /// Of sentences; those without words are left out.
    pub(crate) fn new(sentences: &[Vec<String>]) -> Result<Self, Error> {
        let message = |word: &String| serde_json::json!({ "push": word }).to_string().into();
        let sentences = sentences.iter().filter(|sentence| !sentence.is_empty());
        let sentences: Vec<_> = sentences
            .map(|words| Sentence { pushes: words.iter().map(message).collect(), labels: None })
            .collect();
        if sentences.is_empty() { Err(Error::NoSentence) } else { Ok(Self { sentences }) }
    }

    /// The same, with the labels that a session of our own gives.
    pub(crate) fn with_labels(model: &Model, sentences: &[Vec<String>]) -> Result<Self, Error> {
        let mut script = Self::new(sentences)?;
        let spoken = sentences.iter().filter(|sentence| !sentence.is_empty());
        for (sentence, words) in script.sentences.iter_mut().zip(spoken) {
            sentence.labels = Some(labels(model, words)?);
        }
        Ok(script)
    }
}

/// The labels of a sentence, as a server of the model is to give them.
pub(crate) fn labels(model: &Model, words: &[String]) -> Result<Vec<String>, Error> {
    let mut session = model.session_with(SessionOptions::new().window(WINDOW))?;
    for word in words.iter().flat_map(|word| model.config().tokenizer.words(word)) {
        session.push(&word)?;
    }
    Ok(session.finish()?.labels.iter().map(ToString::to_string).collect())
}
