//! Words to rows: a closed list of trained rows, and behind it an open table of pretrained vectors.

use std::collections::HashMap;
use std::sync::Arc;

use crate::vectors::WordVectors;
use crate::{Error, Result};

/// The trained words of a model and, if its vocabulary is open, the pretrained vectors of all the
/// others.
///
/// Ids below [`len`](Self::len) are rows of the model's trained table; the ids after them are rows
/// of the vectors.
///
/// ```
/// use tapir::Vocabulary;
/// let vocabulary = Vocabulary::new(["play", "some"])?;
/// assert_eq!(vocabulary.id("some"), 4);
/// assert_eq!(vocabulary.id("jazz"), Vocabulary::UNK);
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Clone)]
pub struct Vocabulary {
    words: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
    vectors: Option<Arc<WordVectors>>,
}

/// The first lines of every `vocab.txt`. They are ids, not words: a user's `<unk>` is looked up
/// like any other word.
const SPECIAL: [&str; 3] = ["<pad>", "<unk>", "<null>"];

/// More words than any model has. As many rows of vectors may follow them, and all are ids of 32
/// bits.
pub(crate) const LARGEST: usize = 1 << 24;

impl Vocabulary {
    /// Fills a batch; never read.
    pub const PAD: u32 = 0;
    /// A word that is neither trained nor has a vector.
    pub const UNK: u32 = 1;
    /// The token that flushes a delayed model.
    pub const NULL: u32 = 2;

    /// The three special rows, then `words` from id 3 on.
    pub fn new<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Result<Self> {
        let mut vocabulary = Self { words: Vec::new(), ids: HashMap::new(), vectors: None };
        vocabulary.words.extend(SPECIAL.map(Into::into));
        for word in words {
            vocabulary.add(word.as_ref(), "vocabulary")?;
        }
        Ok(vocabulary)
    }

    /// Reads `vocab.txt`: one word per line, the three special rows first.
    pub fn from_text(text: &str, file: &str) -> Result<Self> {
        let mut lines = text.split_terminator('\n');
        for (i, special) in SPECIAL.iter().enumerate() {
            let line = lines.next().unwrap_or_default();
            if line != *special {
                let reason = format!("line {}: `{}`, expected `{special}`", i + 1, shorten(line));
                return Err(Error::invalid(file, reason));
            }
        }
        let mut vocabulary = Self::new::<&str>([])?;
        for line in lines {
            vocabulary.add(line, file)?;
        }
        Ok(vocabulary)
    }

    /// The text of `vocab.txt`.
    pub fn to_text(&self) -> String {
        self.words.iter().flat_map(|word| [word, "\n"]).collect()
    }

    fn add(&mut self, word: &str, file: &str) -> Result<()> {
        let line = self.words.len() + 1;
        if line > LARGEST {
            return Err(Error::invalid(
                file,
                format!("more than {LARGEST} words; leave the rare ones out"),
            ));
        }
        if word.is_empty() || word.contains(['\n', '\r']) {
            let reason = format!(
                "line {line}: {:?} cannot be a word: a word is a non-empty line",
                shorten(word)
            );
            return Err(Error::invalid(file, reason));
        }
        if let Some(first) = self.ids.insert(word.into(), self.words.len() as u32) {
            let reason =
                format!("line {line}: `{}` stands on line {} already", shorten(word), first + 1);
            return Err(Error::invalid(file, reason));
        }
        self.words.push(word.into());
        Ok(())
    }

    /// Opens the vocabulary: words without a trained row are looked up in `vectors`.
    #[must_use]
    pub fn with_vectors(mut self, vectors: Arc<WordVectors>) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// The pretrained vectors behind the trained rows.
    pub fn vectors(&self) -> Option<&Arc<WordVectors>> {
        self.vectors.as_ref()
    }

    /// The row of a word: trained, else pretrained, else [`UNK`](Self::UNK).
    pub fn id(&self, word: &str) -> u32 {
        if let Some(&id) = self.ids.get(word) {
            return id;
        }
        match self.vectors.as_ref().and_then(|vectors| vectors.row(word)) {
            Some(row) => self.words.len() as u32 + row,
            None => Self::UNK,
        }
    }

    /// Number of trained rows, the three special ones included.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Number of ids, those of the vectors included.
    pub fn ids(&self) -> usize {
        self.len() + self.vectors.as_ref().map_or(0, |vectors| vectors.rows())
    }

    /// The trained words by id.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }
}

/// A value at fault, short enough for a message.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let vocabulary = Vocabulary::new(["play", "naïve", "<pad>"]).unwrap();
        let text = vocabulary.to_text();
        assert_eq!(text, "<pad>\n<unk>\n<null>\nplay\nnaïve\n<pad>\n");
        let again = Vocabulary::from_text(&text, "vocab.txt").unwrap();
        assert_eq!(again.id("naïve"), 4);
        assert_eq!(again.id("<pad>"), 5, "a user's word is never a special row");
        assert_eq!(again.id("<null>"), Vocabulary::UNK);
    }

    #[test]
    fn faults_name_their_line() {
        let error =
            |text: &str| Vocabulary::from_text(text, "vocab.txt").err().unwrap().to_string();
        assert!(error("<pad>\nplay\n").contains("line 2"));
        assert!(error("<pad>\n<unk>\n<null>\na\n\nb\n").contains("line 5"));
        assert!(error("<pad>\n<unk>\n<null>\na\nb\na\n").contains("line 6: `a` stands on line 4"));
    }
}
