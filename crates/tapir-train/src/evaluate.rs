//! Scores, by running the exported model with the engine.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::{Label, Mode, Model, Revised, SessionOptions, Vocabulary};
use tapir_data::{Metric, Sentence, Text};
use tapir_eval::Scores;

use crate::Result;

/// How well, and how often revised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// F1 of spans or accuracy of words, in percent.
    pub score: f64,
    /// The share of words (of a delayed model's last steps, too) at which the policy revised, in percent; none where there is no policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised: Option<f64>,
    /// The share of sentences with the right intent in the end, in percent; none where the model
    /// knows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<f64>,
}

/// Runs every sentence word by word in a mode, as the paper evaluates: the policy's last word
/// stands.
pub fn evaluate(
    model: &Model,
    mode: Mode,
    sentences: &[Sentence],
    score: Metric,
) -> Result<Validation> {
    let delay = model.config().delay;
    let run = |sentence: &Sentence| -> Result<Answer> {
        if mode == Mode::Restart {
            // Every revision reads the whole prefix, so that only the last one leaves a trace.
            let Revised { labels, intent } =
                model.revise_whole(sentence.words.iter().map(Text::as_str))?;
            let intent = intent.and_then(|id| Some(model.intents()?.get(id).clone()));
            return Ok(Answer { labels, intent, revised: 0 });
        }
        let options = SessionOptions::new().mode(mode);
        let mut session = model.session_with(options)?;
        let mut revised = 0;
        for word in &sentence.words {
            revised += usize::from(session.push(word)?.revised());
        }
        // The last steps of a delayed model: `finish` would hide what they revise.
        for _ in 0..delay {
            revised += usize::from(session.push_id(Vocabulary::NULL)?.revised());
        }
        let intent = session.intent().map(|intent| intent.label);
        Ok(Answer { labels: session.label_ids().to_vec(), intent, revised })
    };
    let outputs: Vec<Answer> = sentences.par_iter().map(run).collect::<Result<_>>()?;
    let steps: usize = sentences.iter().map(|sentence| sentence.len() + delay).sum();
    let revised: usize = outputs.iter().map(|answer| answer.revised).sum();
    let labels: Vec<&[u16]> = outputs.iter().map(|answer| answer.labels.as_slice()).collect();
    let right = outputs.iter().zip(sentences).filter(|(answer, sentence)| {
        answer.intent.is_some() && answer.intent.as_deref() == sentence.intent.as_deref()
    });
    let with_intent = sentences.iter().filter(|sentence| sentence.intent.is_some()).count();
    let share = |count: usize, all: usize| 100.0 * count as f64 / all.max(1) as f64;
    Ok(Validation {
        score: 100.0 * score_of(&labels, model, sentences, score),
        revised: (mode == Mode::TwoPass).then(|| share(revised, steps)),
        intent: model.intents().map(|_| share(right.count(), with_intent)),
    })
}

/// What a model says of a sentence in the end.
struct Answer {
    labels: Vec<u16>,
    intent: Option<Label>,
    revised: usize,
}

/// F1 as seqeval computes it, or accuracy; 0 to 1.
fn score_of(outputs: &[&[u16]], model: &Model, sentences: &[Sentence], score: Metric) -> f64 {
    let (labels, scheme) = (model.labels(), model.config().scheme);
    let found: Vec<Vec<&str>> =
        outputs.iter().map(|ids| ids.iter().map(|id| &**labels.get(*id)).collect()).collect();
    let gold: Vec<Vec<&str>> =
        sentences.iter().map(|s| s.labels.iter().map(Text::as_str).collect()).collect();
    let scores = Scores::of(gold.iter().zip(&found), scheme);
    match score {
        Metric::Accuracy => scores.accuracy,
        Metric::F1 => scores.micro.f1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_a_delayed_model_counts() {
        let mut parts = tapir::doctest::parts();
        (parts.config.delay, parts.config.threshold) = (2, 0.0);
        let model = parts.load().unwrap();
        let sentence = Sentence::new(["play", "some", "jazz"], ["O", "O", "B-genre"]);
        let score =
            |mode| evaluate(&model, mode, std::slice::from_ref(&sentence), Metric::Accuracy);
        let scores = score(Mode::TwoPass).unwrap();
        assert_eq!(scores.revised, Some(100.0));
        // With a revision at every step it is the reviser's answer to the whole sentence.
        assert_eq!(scores.score.to_bits(), score(Mode::Restart).unwrap().score.to_bits());
    }
}
