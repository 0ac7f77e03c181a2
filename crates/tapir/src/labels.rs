//! The label set, and spans from labels.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::vocabulary::shorten;
use crate::{Error, Result, Scheme};

/// The name of a label, shared: cheap to clone, compares and prints as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Label(#[serde(with = "text")] Arc<str>);

mod text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &Arc<str>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<str>, D::Error> {
        Ok(String::deserialize(deserializer)?.into())
    }
}

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl PartialEq<str> for Label {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Label {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self)
    }
}

/// The labels of a model by id, as in `labels.txt`.
///
/// A first line `<pad>` stands for the padding label that the authors' models reserve: it has a
/// logit but is never given to a word.
///
/// ```
/// let labels = tapir::Labels::new(["O", "B-artist", "I-artist"])?;
/// assert_eq!(labels.get(1), "B-artist");
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    names: Vec<Label>,
}

const PAD: &str = "<pad>";

impl Labels {
    /// A label set in order of id.
    pub fn new<L: AsRef<str>>(names: impl IntoIterator<Item = L>) -> Result<Self> {
        Self::build(names.into_iter(), "labels")
    }

    /// Reads `labels.txt`: one label per line.
    pub fn from_text(text: &str, file: &str) -> Result<Self> {
        Self::build(
            text.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)),
            file,
        )
    }

    fn build<L: AsRef<str>>(names: impl Iterator<Item = L>, file: &str) -> Result<Self> {
        let mut labels = Self { names: Vec::new() };
        let mut seen = HashSet::new();
        for name in names {
            let name = name.as_ref();
            let line = labels.names.len() + 1;
            // Counted while they are read, so that a list without an end has one.
            if line > usize::from(u16::MAX) {
                let reason = format!("more than {} labels; is this a list of labels?", u16::MAX);
                return Err(Error::invalid(file, reason));
            }
            if name.is_empty() || name.contains(['\n', '\r']) {
                let name = shorten(name);
                let reason =
                    format!("line {line}: {name:?} cannot be a label: a label is a non-empty line");
                return Err(Error::invalid(file, reason));
            }
            let label = Label::from(name);
            if !seen.insert(label.clone()) {
                let reason = format!("line {line}: `{}` stands here twice", shorten(name));
                return Err(Error::invalid(file, reason));
            }
            labels.names.push(label);
        }
        if labels.len() == labels.first() {
            return Err(Error::invalid(file, "there is no label in it"));
        }
        Ok(labels)
    }

    /// The text of `labels.txt`.
    pub fn to_text(&self) -> String {
        self.names.iter().flat_map(|name| [&**name, "\n"]).collect()
    }

    /// Number of logits, a padding label included.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The label with this id.
    ///
    /// # Panics
    /// If there is no such id.
    pub fn get(&self, id: u16) -> &Label {
        &self.names[usize::from(id)]
    }

    /// The id of a label.
    pub fn id(&self, name: &str) -> Option<u16> {
        self.names.iter().position(|label| *label == name).map(|id| id as u16)
    }

    /// All labels by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Label> {
        self.names.iter()
    }

    /// The first id that a word can have: 1 where id 0 is padding.
    pub(crate) fn first(&self) -> usize {
        usize::from(self.names.first().is_some_and(|name| *name == PAD))
    }

    /// Softmax of a row of logits; padding has none.
    pub(crate) fn distribution(&self, logits: &[f32]) -> Vec<f32> {
        let first = self.first();
        let mut out = logits.to_vec();
        out[..first].fill(0.0);
        crate::kernels::softmax(&mut out[first..]);
        out
    }

    /// The best label under a row of logits; of equals, the first.
    pub(crate) fn best(&self, logits: &[f32]) -> u16 {
        crate::decode::best(logits, self.first())
    }

    /// The probability of one label under a row of logits.
    pub(crate) fn probability(&self, logits: &[f32], id: u16) -> f32 {
        let top = logits[usize::from(id)];
        let sum: f32 = logits[self.first()..].iter().map(|logit| (logit - top).exp()).sum();
        1.0 / sum
    }
}

/// A labelled stretch of words: `start..end`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// What it is: the label without its `B-` or `I-`.
    pub label: Label,
    /// Index of its first word.
    pub start: usize,
    /// Index after its last word.
    pub end: usize,
}

/// The spans of a label sequence, imperfect ones included, decoded exactly as seqeval's default
/// mode does, except that a label without a tag is a type.
///
/// An `I-x` after `O` or after another type starts a span; `E-` and `S-`, `L-`, `U-` and `M-` are
/// understood too. With [`Scheme::Plain`] every word is a span of its own.
///
/// ```
/// use tapir::{Scheme, spans};
/// let found = spans(&["O", "I-city", "I-city", "B-city"], Scheme::Iob);
/// assert_eq!(found.iter().map(|s| (s.start, s.end)).collect::<Vec<_>>(), [(1, 3), (3, 4)]);
/// ```
pub fn spans<L: AsRef<str>>(labels: &[L], scheme: Scheme) -> Vec<Span> {
    if scheme == Scheme::Plain {
        let word = |(start, label): (usize, &L)| Span {
            label: label.as_ref().into(),
            start,
            end: start + 1,
        };
        return labels.iter().enumerate().map(word).collect();
    }
    let mut found = Vec::new();
    let (mut last, mut start) = (('O', "_"), 0);
    for (i, label) in labels.iter().map(AsRef::as_ref).chain(["O"]).enumerate() {
        let now = split(label);
        if ends(last, now) {
            found.push(Span { label: last.1.into(), start, end: i });
        }
        if starts(last, now) {
            start = i;
        }
        last = now;
    }
    found
}

/// `B-x` into `B` and `x`; a tag without a type has the type `_`, and what is no tag is a type, of
/// which neighbours are one span.
fn split(label: &str) -> (char, &str) {
    let (tag, kind) = label.split_once('-').unwrap_or((label, "_"));
    let kind = if kind.is_empty() { "_" } else { kind };
    match tag {
        "B" | "I" | "E" | "S" | "O" | "L" | "U" | "M" => (tag.chars().next().unwrap_or('O'), kind),
        _ => ('I', label),
    }
}

/// Does a span end between two labels?
fn ends((last_tag, last): (char, &str), (tag, now): (char, &str)) -> bool {
    match (last_tag, tag) {
        ('E' | 'S', _) | ('B' | 'I', 'B' | 'S' | 'O') => true,
        ('O' | '.', _) => false,
        _ => last != now,
    }
}

/// Does a span start at the second of two labels?
fn starts((last_tag, last): (char, &str), (tag, now): (char, &str)) -> bool {
    match (last_tag, tag) {
        (_, 'B' | 'S') | ('E' | 'S' | 'O', 'E' | 'I') => true,
        (_, 'O' | '.') => false,
        _ => last != now,
    }
}

impl AsRef<str> for Label {
    fn as_ref(&self) -> &str {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Precision, recall and F1 recorded from seqeval on random, mostly imperfect sequences.
    #[test]
    fn spans_are_those_of_seqeval() {
        #[derive(Deserialize)]
        struct Case {
            gold: Vec<Vec<String>>,
            predicted: Vec<Vec<String>>,
            precision: f64,
            recall: f64,
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/seqeval_f1.json");
        let cases: Vec<Case> =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            let (mut right, mut gold, mut predicted) = (0, 0, 0);
            for (g, p) in case.gold.iter().zip(&case.predicted) {
                let (g, p) = (spans(g, Scheme::Iob), spans(p, Scheme::Iob));
                right += p.iter().filter(|span| g.contains(span)).count();
                gold += g.len();
                predicted += p.len();
            }
            let ratio = |of: usize| if of == 0 { 0.0 } else { right as f64 / of as f64 };
            assert!((ratio(predicted) - case.precision).abs() < 1e-9);
            assert!((ratio(gold) - case.recall).abs() < 1e-9);
        }
    }

    #[test]
    fn no_letter_of_a_label_is_lost() {
        let found = spans(&["item", "item", "O", "quantity", "B"], Scheme::Iob);
        let found: Vec<_> = found.iter().map(|s| (&*s.label, s.start, s.end)).collect();
        assert_eq!(found, [("item", 0, 2), ("quantity", 3, 4), ("_", 4, 5)]);
    }

    /// The values are seqeval's.
    #[test]
    fn tags_of_other_schemes_are_no_types() {
        let of = |labels: &[&str]| -> Vec<(String, usize, usize)> {
            let found = spans(labels, Scheme::Iob);
            found.into_iter().map(|s| (s.label.to_string(), s.start, s.end)).collect()
        };
        let x = |start, end| ("x".to_owned(), start, end);
        assert_eq!(of(&["B-x", "L-x", "O", "U-x"]), [x(0, 2), x(3, 4)]);
        assert_eq!(of(&["B-x", "M-x", "E-x", "S-x"]), [x(0, 3), x(3, 4)]);
        assert_eq!(of(&["O", "I-", "O"]), [("_".to_owned(), 1, 2)]);
    }

    #[test]
    fn padding_is_never_a_word_s_label() {
        let labels = Labels::new(["<pad>", "O", "B-x"]).unwrap();
        assert_eq!(labels.distribution(&[9.0, 1.0, 1.0]), [0.0, 0.5, 0.5]);
        assert!((labels.probability(&[9.0, 1.0, 1.0], 2) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn faults_are_named() {
        assert!(
            Labels::from_text("O\n\nB-x\n", "labels.txt")
                .unwrap_err()
                .to_string()
                .contains("line 2")
        );
        assert!(
            Labels::from_text("O\nO\n", "labels.txt").unwrap_err().to_string().contains("twice")
        );
        assert!(Labels::from_text("", "labels.txt").is_err());
        assert!(Labels::from_text("<pad>\n", "labels.txt").is_err());
    }
}
