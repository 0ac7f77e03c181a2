//! Scores, by running the exported model with the engine.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::{FinalPass, Labels, Mode, Model, Scheme, SessionOptions};
use tapir_data::{Metric, Sentence, Text};
use tapir_eval::Scores;

use crate::Result;

/// How well, and how often revised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// F1 of spans or accuracy of words, in percent.
    pub score: f64,
    /// The share of words at which the policy revised, in percent; none where there is no policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised: Option<f64>,
}

/// Runs every sentence word by word in a mode, as the paper evaluates: the policy's last word
/// stands.
pub fn evaluate(
    model: &Model,
    mode: Mode,
    sentences: &[Sentence],
    score: Metric,
) -> Result<Validation> {
    let run = |sentence: &Sentence| -> Result<(Vec<u16>, usize)> {
        if mode == Mode::Restart {
            // Every revision reads the whole prefix, so that only the last one leaves a trace.
            return Ok((model.revise_whole(sentence.words.iter().map(Text::as_str))?, 0));
        }
        let options = SessionOptions::new().mode(mode).final_pass(FinalPass::Policy);
        let mut session = model.session_with(options)?;
        let mut revised = 0;
        for word in &sentence.words {
            revised += usize::from(session.push(word)?.revised());
        }
        session.finish()?;
        Ok((session.label_ids().to_vec(), revised))
    };
    let outputs: Vec<(Vec<u16>, usize)> = sentences.par_iter().map(run).collect::<Result<_>>()?;
    let words: usize = sentences.iter().map(Sentence::len).sum();
    let revised: usize = outputs.iter().map(|(_, revised)| revised).sum();
    let labels: Vec<&[u16]> = outputs.iter().map(|(labels, _)| labels.as_slice()).collect();
    Ok(Validation {
        score: 100.0 * score_of(&labels, model.labels(), sentences, score),
        revised: (mode == Mode::TwoPass).then(|| 100.0 * revised as f64 / words.max(1) as f64),
    })
}

/// F1 as seqeval computes it, or accuracy; 0 to 1.
fn score_of(outputs: &[&[u16]], labels: &Labels, sentences: &[Sentence], score: Metric) -> f64 {
    let found: Vec<Vec<&str>> =
        outputs.iter().map(|ids| ids.iter().map(|id| &**labels.get(*id)).collect()).collect();
    let gold: Vec<Vec<&str>> =
        sentences.iter().map(|s| s.labels.iter().map(Text::as_str).collect()).collect();
    let scores = Scores::of(gold.iter().zip(&found), Scheme::Iob);
    match score {
        Metric::Accuracy => scores.accuracy,
        Metric::F1 => scores.micro.f1,
    }
}
