//! Do answers stay as often as a model says they do, and when may an application act?

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::{Model, SessionOptions};

use crate::calibrate::Followed;
use crate::f1::ratio;
use crate::{Dataset, Percentiles, Result, Summary, Table};

/// How far a calibrated model's word on its own answers holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StabilityScores {
    /// Of the labels of all words after each step.
    pub labels: Reliability,
    /// Of the spans after each step; none where words have no spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Reliability>,
    /// Of the intent after each step, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Reliability>,
    /// What `settled` brings, by its value.
    pub settled: Vec<SettledAt>,
}

/// Probabilities against what came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// Expected calibration error: how far the probability is from the share of those that stayed,
    /// on average over all answers, in ten bins of equal width.
    pub error: f64,
    /// The bins that are not empty, by probability.
    pub bins: Vec<Bin>,
}

/// Answers of about the same probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Their mean probability.
    pub said: f64,
    /// The share of them that stayed.
    pub stayed: f64,
    /// How many they are.
    pub count: usize,
}

/// What an application that acts on what is settled gains and risks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettledAt {
    /// The probability from which on something counts as settled.
    pub settled: f32,
    /// The share of labels that settled and changed all the same.
    pub labels_changed: f64,
    /// The same of spans.
    pub spans_changed: f64,
    /// The same of the intent.
    pub intent_changed: f64,
    /// How many words after its last one a span settled, the end of the utterance included.
    pub span_delay: Percentiles,
    /// How many words before the end of the utterance a span settled.
    pub span_lead: Summary,
    /// How many words before the end of the utterance the intent settled.
    pub intent_lead: Summary,
}

const BINS: usize = 10;

/// The values of `settled` that are tried.
const LEVELS: [f32; 4] = [0.8, 0.9, 0.95, 0.99];

impl Reliability {
    /// Probabilities, and whether what they are of stayed.
    pub fn of(answers: &[(f32, bool)]) -> Self {
        let mut bins = [(0.0, 0, 0); BINS];
        for (said, stayed) in answers {
            let bin = &mut bins[((said * BINS as f32) as usize).min(BINS - 1)];
            bin.0 += f64::from(*said);
            bin.1 += usize::from(*stayed);
            bin.2 += 1;
        }
        let full = bins.iter().filter(|(_, _, count)| *count > 0);
        let bins: Vec<Bin> = full
            .map(|(said, stayed, count)| Bin {
                said: said / *count as f64,
                stayed: ratio(*stayed, *count),
                count: *count,
            })
            .collect();
        let off = bins.iter().map(|bin| (bin.said - bin.stayed).abs() * bin.count as f64);
        Self { error: off.sum::<f64>() / answers.len().max(1) as f64, bins }
    }
}

impl StabilityScores {
    /// Reads every sentence as sessions do unless they are told otherwise. None if the model was not
    /// calibrated.
    pub fn of(model: &Model, dataset: &Dataset) -> Result<Option<Self>> {
        let calibration = &model.config().calibration;
        let Some(weights) = calibration.labels else { return Ok(None) };
        let words = || dataset.examples.par_iter().map(|example| &example.words[..]);
        let followed = Followed::read_all(model, words())?;
        let (mut labels, mut spans, mut intents) = (Vec::new(), Vec::new(), Vec::new());
        for utterance in &followed {
            for (step, observed) in utterance.steps.iter().enumerate() {
                for (word, evidence) in observed.evidence.labels.iter().enumerate() {
                    let stays = utterance.label_stays(step, word);
                    labels.push((weights.probability(evidence), stays));
                }
                if let Some(of_spans) = calibration.spans {
                    for (span, evidence) in observed.span_evidence(&weights) {
                        let stays = utterance.span_stays(step, span);
                        spans.push((of_spans.probability(&evidence), stays));
                    }
                }
                if let (Some(weights), Some(evidence)) =
                    (calibration.intent, observed.evidence.intent)
                {
                    intents.push((weights.probability(&evidence), utterance.intent_stays(step)));
                }
            }
        }
        let settled = LEVELS.iter().map(|level| SettledAt::of(model, dataset, &followed, *level));
        let some = |answers: &[_]| (!answers.is_empty()).then(|| Reliability::of(answers));
        Ok(Some(Self {
            labels: Reliability::of(&labels),
            spans: some(&spans),
            intent: some(&intents),
            settled: settled.collect::<Result<_>>()?,
        }))
    }

    /// The calibration errors, and what `settled` brings.
    pub fn tables(&self) -> Vec<Table> {
        let mut errors = Table::new(["stability of", "answers", "stayed", "calibration error"]);
        let rows = [
            ("labels", Some(&self.labels)),
            ("spans", self.spans.as_ref()),
            ("intent", self.intent.as_ref()),
        ];
        for (name, reliability) in rows {
            let Some(Reliability { error, bins }) = reliability else { continue };
            let count: usize = bins.iter().map(|bin| bin.count).sum();
            let stayed: f64 = bins.iter().map(|bin| bin.stayed * bin.count as f64).sum();
            let stayed = stayed / count.max(1) as f64;
            errors.row([
                name.to_owned(),
                count.to_string(),
                format!("{:.1} %", 100.0 * stayed),
                format!("{error:.3}"),
            ]);
        }
        let mut trade = Table::new([
            "settled",
            "labels changed",
            "spans changed",
            "intent changed",
            "words after a span (median)",
            "words before the end: span",
            "intent",
        ]);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        // Where there is none of a kind, nothing settled.
        let some = |of: Option<&Reliability>, text: String| of.map_or("–".to_owned(), |_| text);
        let (spans, intent) = (self.spans.as_ref(), self.intent.as_ref());
        for at in &self.settled {
            trade.row([
                format!("{:.2}", at.settled),
                percent(at.labels_changed),
                some(spans, percent(at.spans_changed)),
                some(intent, percent(at.intent_changed)),
                some(spans, format!("{:.1}", at.span_delay.median)),
                some(spans, format!("{:.1}", at.span_lead.mean)),
                some(intent, format!("{:.1}", at.intent_lead.mean)),
            ]);
        }
        vec![errors, trade]
    }
}

/// What settled in an utterance.
#[derive(Default)]
struct Tally {
    labels: (usize, usize),
    spans: (usize, usize),
    intents: (usize, usize),
    span_delays: Vec<usize>,
    span_leads: Vec<usize>,
    intent_leads: Vec<usize>,
}

impl Tally {
    fn of(model: &Model, words: &[String], followed: &Followed, level: f32) -> Result<Self> {
        let mut session = model.session_with(SessionOptions::new().undo(0).settled(level))?;
        let mut tally = Self::default();
        let count = |(all, changed): &mut (usize, usize), stays: bool| {
            *all += 1;
            *changed += usize::from(!stays);
        };
        for (step, word) in words.iter().enumerate() {
            let Some(settled) = session.push(word)?.settled else { continue };
            let left = words.len() - 1 - step;
            for word in &settled.words {
                count(&mut tally.labels, followed.label_stays(step, *word));
            }
            for span in &settled.spans {
                let stays = followed.span_stays(step, span);
                count(&mut tally.spans, stays);
                tally.span_delays.push(step + 1 - span.end);
                tally.span_leads.push(left);
            }
            if settled.intent {
                count(&mut tally.intents, followed.intent_stays(step));
                tally.intent_leads.push(left);
            }
        }
        // What settles at the end is right by then, and late.
        for span in session.finish()?.update.settled.iter().flat_map(|settled| &settled.spans) {
            tally.span_delays.push(words.len() - span.end);
            tally.span_leads.push(0);
        }
        Ok(tally)
    }
}

impl SettledAt {
    fn of(model: &Model, dataset: &Dataset, followed: &[Followed], level: f32) -> Result<Self> {
        let tallies: Vec<Tally> = dataset
            .examples
            .par_iter()
            .zip(followed)
            .map(|(example, followed)| Tally::of(model, &example.words, followed, level))
            .collect::<Result<_>>()?;
        let share = |of: fn(&Tally) -> (usize, usize)| {
            let (all, changed) =
                tallies.iter().map(of).fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
            ratio(changed, all)
        };
        let values = |of: fn(&Tally) -> &Vec<usize>| -> Vec<f64> {
            tallies.iter().flat_map(of).map(|words| *words as f64).collect()
        };
        Ok(Self {
            settled: level,
            labels_changed: share(|tally| tally.labels),
            spans_changed: share(|tally| tally.spans),
            intent_changed: share(|tally| tally.intents),
            span_delay: Percentiles::of(values(|tally| &tally.span_delays)),
            span_lead: Summary::of(values(|tally| &tally.span_leads)),
            intent_lead: Summary::of(values(|tally| &tally.intent_leads)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_how_far_probabilities_are_off() {
        let right = Reliability::of(&[(0.75, true), (0.75, true), (0.75, true), (0.75, false)]);
        assert!(right.error < 1e-9 && right.bins.len() == 1);
        let wrong = Reliability::of(&[(0.95, false), (0.05, false)]);
        assert!((wrong.error - 0.5).abs() < 1e-6, "{wrong:?}");
    }
}
