//! How a corpus writes spans, and how models do.

use serde::{Deserialize, Serialize};
use tapir::Scheme;

use crate::{Corpus, Error, Result, Sentence, Split, Text};

/// How the labels of a corpus make spans. Models have IOB2 or plain labels; others are converted
/// when a corpus is read.
///
/// ```
/// use tapir_data::{CorpusScheme, Sentence};
/// let mut sentence = Sentence::new(["new", "york", "now"], ["B-city", "E-city", "S-time"]);
/// CorpusScheme::Bioes.convert(&mut sentence);
/// assert_eq!(sentence.labels, ["B-city", "I-city", "B-time"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CorpusScheme {
    /// IOB2: `B-x` begins a span, `I-x` continues it, `O` is none. A corpus most of whose spans
    /// begin with `I-x` is read as [`Iob1`](Self::Iob1).
    Iob,
    /// IOB1: `I-x` also begins a span; `B-x` only one that follows another of its type.
    Iob1,
    /// `B-`, `I-`, `O`, and `E-` (or `L-`) for the last word of a span, `S-` (or `U-`) for a span
    /// of one word.
    Bioes,
    /// Types alone, with or without `I-`: neighbours of the same type are one span; `O` is none.
    Io,
    /// A label for each word by itself: parts of speech.
    Plain,
}

impl CorpusScheme {
    /// The scheme of a model of such a corpus.
    pub fn of_model(self) -> Scheme {
        if self == Self::Plain { Scheme::Plain } else { Scheme::Iob }
    }

    /// Tells IOB1 from IOB2, whose labels have the same names: CoNLL-2003 goes about in both. In
    /// IOB1 most spans begin with `I-x`, in IOB2 none does, but for slips.
    pub(crate) fn seen_in(self, sentences: &[Sentence]) -> Self {
        if self != Self::Iob {
            return self;
        }
        let with_i: usize = sentences.iter().map(invalid_iob).sum();
        let labels = sentences.iter().flat_map(|sentence| &sentence.labels);
        let with_b = labels.filter(|label| label.starts_with("B-")).count();
        if with_i > with_b { Self::Iob1 } else { self }
    }

    /// Writes the labels of a sentence as a model has them. A label that the scheme does not know
    /// stays as it is: [`check`](Self::check) names it.
    pub fn convert(self, sentence: &mut Sentence) {
        if matches!(self, Self::Iob | Self::Plain) {
            return;
        }
        let mut before: Option<String> = None;
        for label in &mut sentence.labels {
            let (tag, kind) = match label.split_once('-') {
                Some((tag, kind)) if is_tag(tag) => (tag, kind),
                _ if *label == "O" => ("O", ""),
                _ if self == Self::Io => ("I", label.as_str()),
                _ => {
                    before = None;
                    continue;
                }
            };
            let kind = kind.to_owned();
            let begins = match (self, tag) {
                (_, "O") => {
                    before = None;
                    continue;
                }
                (Self::Bioes, "B" | "S" | "U") | (Self::Iob1, "B") => true,
                _ => before.as_deref() != Some(&kind),
            };
            // After the last word of a span nothing continues it.
            let ended = self == Self::Bioes && matches!(tag, "E" | "L" | "S" | "U");
            *label = Text::from(format!("{}-{kind}", if begins { "B" } else { "I" }));
            before = (!ended).then_some(kind);
        }
    }

    /// Refuses a corpus whose labels are not those of a model, and says which scheme they may be
    /// of.
    pub fn check(self, corpus: &Corpus) -> Result<()> {
        let Some(label) = self.strangers(corpus).into_iter().next() else { return Ok(()) };
        let has_it = |sentence: &Sentence| sentence.labels.iter().any(|other| **other == *label);
        let place = Split::ALL.into_iter().find_map(|split| {
            let at = corpus.split(split).iter().position(has_it)?;
            let words: Vec<&str> = corpus.split(split)[at].words.iter().map(Text::as_str).collect();
            Some(format!("{}, sentence {}: {}", split.name(), at + 1, words.join(" ")))
        });
        Err(Error::Setting(format!(
            "`{label}` ({}) is not a label of the scheme {}; set `scheme` in the task file: \"iob\" for \
             B-x, I-x and O, \"iob1\", \"bioes\", \"io\" for types without B- and I-, \"plain\" for a \
             label of each word by itself",
            place.unwrap_or_default(),
            self.name(),
        )))
    }

    /// The labels that a model of this scheme would not understand.
    pub(crate) fn strangers(self, corpus: &Corpus) -> Vec<String> {
        if self == Self::Plain {
            return Vec::new();
        }
        let known = |label: &Text| {
            let kind = label.strip_prefix("B-").or(label.strip_prefix("I-"));
            *label == "O" || kind.is_some_and(|kind| !kind.is_empty())
        };
        let labels = Split::ALL.into_iter().flat_map(|split| corpus.split(split));
        let mut strangers: Vec<String> = labels
            .flat_map(|sentence| &sentence.labels)
            .filter(|label| !known(label))
            .map(ToString::to_string)
            .collect();
        strangers.sort_unstable();
        strangers.dedup();
        strangers
    }

    fn name(self) -> &'static str {
        match self {
            Self::Iob => "iob",
            Self::Iob1 => "iob1",
            Self::Bioes => "bioes",
            Self::Io => "io",
            Self::Plain => "plain",
        }
    }
}

/// `I-x` that follows neither `B-x` nor `I-x`.
pub(crate) fn invalid_iob(sentence: &Sentence) -> usize {
    let mut previous = "O";
    let mut invalid = 0;
    for (_, label) in sentence.tokens() {
        if let Some(kind) = label.strip_prefix("I-") {
            let continues =
                previous.strip_prefix("B-").or(previous.strip_prefix("I-")) == Some(kind);
            invalid += usize::from(!continues);
        }
        previous = label;
    }
    invalid
}

fn is_tag(tag: &str) -> bool {
    matches!(tag, "B" | "I" | "E" | "S" | "L" | "U")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(scheme: CorpusScheme, labels: &str) -> String {
        let labels: Vec<&str> = labels.split(' ').collect();
        let mut sentence = Sentence::new(labels.clone(), labels);
        scheme.convert(&mut sentence);
        sentence.labels.iter().map(Text::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_scheme_becomes_iob2() {
        let from = |scheme, labels| converted(scheme, labels);
        assert_eq!(
            from(CorpusScheme::Bioes, "S-a B-a I-a E-a I-a O S-b"),
            "B-a B-a I-a I-a B-a O B-b"
        );
        assert_eq!(from(CorpusScheme::Bioes, "U-a B-a L-a"), "B-a B-a I-a");
        assert_eq!(from(CorpusScheme::Iob1, "I-a I-a B-a I-b O I-b"), "B-a I-a B-a B-b O B-b");
        assert_eq!(
            from(CorpusScheme::Io, "item item O quantity I-item"),
            "B-item I-item O B-quantity B-item"
        );
        assert_eq!(from(CorpusScheme::Iob, "I-a item"), "I-a item");
        assert_eq!(from(CorpusScheme::Plain, "NOUN X-1"), "NOUN X-1");
    }

    #[test]
    fn iob1_is_known_by_how_spans_begin() {
        let sentence = |labels: &str| {
            let labels: Vec<&str> = labels.split(' ').collect();
            Sentence::new(labels.clone(), labels)
        };
        let scheme = |labels: &[&str]| {
            let sentences: Vec<_> = labels.iter().map(|labels| sentence(labels)).collect();
            CorpusScheme::Iob.seen_in(&sentences)
        };
        assert_eq!(scheme(&["I-a I-a O I-b", "I-a B-a"]), CorpusScheme::Iob1);
        assert_eq!(scheme(&["B-a I-a O I-b", "B-a B-a"]), CorpusScheme::Iob, "a slip");
        assert_eq!(scheme(&["O O"]), CorpusScheme::Iob);
        let spans = [sentence("I-a")];
        assert_eq!(CorpusScheme::Io.seen_in(&spans), CorpusScheme::Io);
    }

    #[test]
    fn a_label_of_another_scheme_is_named_with_the_fix() {
        let train = vec![Sentence::new(["apples", "now"], ["item", "O"])];
        let corpus = Corpus { train, ..Corpus::default() };
        let error = CorpusScheme::Iob.check(&corpus).unwrap_err().to_string();
        assert!(error.contains("`item` (train, sentence 1: apples now)"), "{error}");
        assert!(error.contains("\"io\""), "{error}");
        assert!(CorpusScheme::Plain.check(&corpus).is_ok());
    }
}
