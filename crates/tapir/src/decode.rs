//! From logits to labels: the best label of each word, or the best sequence that makes spans.

use serde::{Deserialize, Serialize};

use crate::{Labels, Scheme};

/// How labels are chosen from logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decoding {
    /// The best label of each word by itself, as the paper does. An `I-x` may stand where no span
    /// of its type is.
    #[default]
    Argmax,
    /// Only sequences that make spans: an `I-x` follows a `B-x` or an `I-x`. A revision gives the
    /// best such sequence of the words that it reads; a WRITE gives the new word the best label
    /// that may follow the one before, since it changes no other.
    Legal,
}

/// The label that begins what a label continues: one of the two stands before it. None for labels
/// that may stand anywhere.
type Rule = Option<u16>;

/// Chooses labels for a model.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// The first id that a word can have.
    first: usize,
    /// By label id, where sequences must be legal: the `B-x` of an `I-x`.
    rules: Option<Vec<Rule>>,
}

/// Working memory of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// Score of the best sequence that ends in each label: of the row before, and of this one.
    before: Vec<f64>,
    now: Vec<f64>,
    /// [rows, labels]: which label stands before, on the best sequence that ends in each label.
    path: Vec<u16>,
}

impl Decoder {
    pub(crate) fn new(labels: &Labels, scheme: Scheme, decoding: Decoding) -> Self {
        let legal = decoding == Decoding::Legal && scheme == Scheme::Iob;
        Self { first: labels.first(), rules: legal.then(|| rules(labels)) }
    }

    /// The label of a new word whose predecessor has the label `before`.
    pub(crate) fn next(&self, before: Option<u16>, logits: &[f32]) -> u16 {
        let may = |id: usize| self.rules.as_ref().is_none_or(|rules| may_follow(rules, before, id));
        let mut best = None;
        for id in (self.first..logits.len()).filter(|id| may(*id)) {
            if best.is_none_or(|best: usize| logits[id] > logits[best]) {
                best = Some(id);
            }
        }
        // A type without a `B-` has no rule, so that there always is a label.
        best.unwrap_or(self.first) as u16
    }

    /// The labels of words whose logits are given row by row, and whose predecessor has the label
    /// `before`.
    pub(crate) fn sequence(
        &self,
        before: Option<u16>,
        logits: &[f32],
        search: &mut Search,
        labels: &mut [u16],
    ) {
        let width = logits.len() / labels.len().max(1);
        let rows = || logits.chunks_exact(width.max(1));
        for (label, row) in labels.iter_mut().zip(rows()) {
            *label = best(row, self.first);
        }
        let Some(rules) = &self.rules else { return };
        let mut last = before;
        let is_legal = labels.iter().all(|label| {
            let legal = may_follow(rules, last, usize::from(*label));
            last = Some(*label);
            legal
        });
        // The best labels one by one are the best sequence, if it is a legal one.
        if !is_legal {
            search.run(rules, self.first, before, rows(), labels);
        }
    }
}

/// The best label of a row of logits; of equals, the first.
pub(crate) fn best(logits: &[f32], first: usize) -> u16 {
    let mut best = first;
    for id in first + 1..logits.len() {
        if logits[id] > logits[best] {
            best = id;
        }
    }
    best as u16
}

fn may_follow(rules: &[Rule], before: Option<u16>, id: usize) -> bool {
    rules[id].is_none_or(|begin| before.is_some_and(|at| at == begin || usize::from(at) == id))
}

/// The rules of labels in the scheme IOB2.
fn rules(labels: &Labels) -> Vec<Rule> {
    // A type that never begins cannot be required to have begun.
    let begin = |label: &str| labels.id(&format!("B-{}", label.strip_prefix("I-")?));
    labels.iter().map(|label| begin(label)).collect()
}

impl Search {
    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let scores = self.before.capacity() + self.now.capacity();
        scores * size_of::<f64>() + self.path.capacity() * size_of::<u16>()
    }

    /// Viterbi's algorithm. Only an `I-x` asks what stands before it, and that is one of two
    /// labels, so a row costs two passes over the labels and not their square.
    fn run<'a>(
        &mut self,
        rules: &[Rule],
        first: usize,
        before: Option<u16>,
        rows: impl Iterator<Item = &'a [f32]>,
        labels: &mut [u16],
    ) {
        let Self { before: scores, now, path } = self;
        path.clear();
        scores.clear();
        for (step, row) in rows.enumerate() {
            // The best label that may end the sequence so far, for labels that ask for none.
            let open = if step == 0 { None } else { highest(scores, first) };
            now.clear();
            now.resize(row.len(), f64::NEG_INFINITY);
            for id in first..row.len() {
                let previous = if step == 0 {
                    may_follow(rules, before, id).then_some(None)
                } else if let Some(begin) = rules[id].map(usize::from) {
                    Some(Some(if scores[begin] >= scores[id] { begin } else { id }))
                } else {
                    Some(open)
                };
                if let Some(previous) = previous {
                    now[id] = previous.map_or(0.0, |at| scores[at]) + f64::from(row[id]);
                }
                path.push(previous.flatten().unwrap_or(first) as u16);
            }
            std::mem::swap(scores, now);
        }
        let Some(mut label) = highest(scores, first) else { return };
        let width = scores.len() - first;
        for (step, out) in labels.iter_mut().enumerate().rev() {
            *out = label as u16;
            label = usize::from(path[step * width + label - first]);
        }
    }
}

/// Where the highest score is; of equals, the first.
fn highest(scores: &[f64], first: usize) -> Option<usize> {
    (first..scores.len()).reduce(|best, at| if scores[at] > scores[best] { at } else { best })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LABELS: [&str; 6] = ["<pad>", "O", "B-a", "I-a", "B-b", "I-b"];

    fn decoder(decoding: Decoding) -> Decoder {
        Decoder::new(&Labels::new(LABELS).unwrap(), Scheme::Iob, decoding)
    }

    fn names(ids: &[u16]) -> Vec<&str> {
        ids.iter().map(|id| LABELS[usize::from(*id)]).collect()
    }

    #[test]
    fn a_span_without_a_beginning_gets_one_or_goes() {
        let rows = [
            [9.0, 3.0, 2.5, 0.0, 0.0, 0.0], // O, and B-a nearly as good
            [9.0, 0.0, 0.0, 3.0, 0.0, 0.0], // I-a
        ]
        .concat();
        let mut labels = [0; 2];
        decoder(Decoding::Argmax).sequence(None, &rows, &mut Search::default(), &mut labels);
        assert_eq!(names(&labels), ["O", "I-a"]);
        decoder(Decoding::Legal).sequence(None, &rows, &mut Search::default(), &mut labels);
        assert_eq!(names(&labels), ["B-a", "I-a"]);
        // A WRITE changes nothing before it: the second best stands in.
        assert_eq!(decoder(Decoding::Legal).next(Some(1), &rows[6..]), 1);
        assert_eq!(decoder(Decoding::Legal).next(Some(2), &rows[6..]), 3);
    }

    #[test]
    fn a_type_that_never_begins_may_stand_anywhere() {
        let labels = Labels::new(["O", "I-a"]).unwrap();
        let decoder = Decoder::new(&labels, Scheme::Iob, Decoding::Legal);
        assert_eq!(decoder.next(None, &[0.0, 1.0]), 1);
    }

    /// All legal sequences, one after the other.
    fn by_force(rules: &[Rule], before: Option<u16>, rows: &[Vec<f32>]) -> f64 {
        let Some((row, rest)) = rows.split_first() else { return 0.0 };
        (1..row.len())
            .filter(|id| may_follow(rules, before, *id))
            .map(|id| f64::from(row[id]) + by_force(rules, Some(id as u16), rest))
            .fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        #[test]
        fn a_sequence_is_legal_and_no_legal_one_is_better(
            rows in prop::collection::vec(prop::collection::vec(-9i8..9, 6), 1..6),
            before in prop::option::of(1u16..6),
        ) {
            let rows: Vec<Vec<f32>> =
                rows.iter().map(|row| row.iter().map(|x| f32::from(*x)).collect()).collect();
            let decoder = decoder(Decoding::Legal);
            let mut labels = vec![0; rows.len()];
            decoder.sequence(before, &rows.concat(), &mut Search::default(), &mut labels);
            let rules = decoder.rules.as_deref().unwrap();
            let mut last = before;
            let mut score = 0.0;
            for (label, row) in labels.iter().zip(&rows) {
                prop_assert!(may_follow(rules, last, usize::from(*label)));
                score += f64::from(row[usize::from(*label)]);
                last = Some(*label);
            }
            prop_assert!((score - by_force(rules, before, &rows)).abs() < 1e-6);
        }
    }
}
