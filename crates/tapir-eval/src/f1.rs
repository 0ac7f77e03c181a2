//! Entity precision, recall and F1 as seqeval computes them in its default mode, and token
//! accuracy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapir::{Scheme, spans};

/// Precision, recall and F1 of one type of span, or of all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelScore {
    /// Of the spans found, the share that is right; 0 if none was found.
    pub precision: f64,
    /// Of the spans in the gold labels, the share that was found; 0 if there is none.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
    /// Spans that were found and are right.
    pub right: usize,
    /// Spans that were found.
    pub found: usize,
    /// Spans of the gold labels.
    pub support: usize,
}

/// Scores of a whole split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// All spans together.
    pub micro: LabelScore,
    /// By type of span (by label, where labels do not make spans).
    pub labels: BTreeMap<String, LabelScore>,
    /// The share of words with the right label.
    pub accuracy: f64,
    /// The share of sentences with only right labels.
    pub exact: f64,
    /// The share of sentences with the right spans and no others, by the lenient rule of F1: an
    /// `I-x` that continues nothing begins a span.
    pub exact_spans: f64,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    right: usize,
    found: usize,
    gold: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.found += other.found;
        self.gold += other.gold;
    }

    fn score(self) -> LabelScore {
        let (precision, recall) = (ratio(self.right, self.found), ratio(self.right, self.gold));
        let sum = precision + recall;
        let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
        let Self { right, found, gold: support } = self;
        LabelScore { precision, recall, f1, right, found, support }
    }
}

pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Scores {
    /// Scores predicted against gold label sequences, given in pairs.
    ///
    /// ```
    /// use tapir_eval::Scores;
    /// let gold = vec!["B-city", "I-city", "O", "B-time"];
    /// let predicted = vec!["B-city", "I-city", "O", "O"];
    /// let scores = Scores::of([(&gold, &predicted)], tapir::Scheme::Iob);
    /// assert_eq!((scores.micro.precision, scores.micro.recall, scores.accuracy), (1.0, 0.5, 0.75));
    /// ```
    pub fn of<'a, L: AsRef<str> + 'a>(
        sentences: impl IntoIterator<Item = (&'a Vec<L>, &'a Vec<L>)>,
        scheme: Scheme,
    ) -> Self {
        let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
        let (mut words, mut right, mut count, mut exact, mut exact_spans) = (0, 0, 0, 0, 0);
        for (gold, predicted) in sentences {
            let same = gold.iter().zip(predicted).filter(|(g, p)| g.as_ref() == p.as_ref()).count();
            words += gold.len();
            right += same;
            count += 1;
            exact += usize::from(same == gold.len());
            // Spans come in order and do not overlap, so that a search by start is enough.
            let (gold, found) = (spans(gold, scheme), spans(predicted, scheme));
            exact_spans += usize::from(gold == found);
            for span in &gold {
                entry(&mut counts, &span.label).gold += 1;
            }
            for span in &found {
                let same = gold.binary_search_by_key(&span.start, |other| other.start);
                let count = entry(&mut counts, &span.label);
                count.found += 1;
                count.right += usize::from(same.is_ok_and(|index| gold[index] == *span));
            }
        }
        let mut all = Counts::default();
        counts.values().for_each(|count| all.add(*count));
        Self {
            micro: all.score(),
            labels: counts.into_iter().map(|(label, count)| (label, count.score())).collect(),
            accuracy: ratio(right, words),
            exact: ratio(exact, count),
            exact_spans: ratio(exact_spans, count),
        }
    }
}

fn entry<'a>(counts: &'a mut BTreeMap<String, Counts>, label: &str) -> &'a mut Counts {
    counts.entry(label.to_owned()).or_default()
}
