//! Scores, by running the exported model with the engine.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::{FinalPass, Labels, Mode, Model, Scheme, spans};
use tapir_data::{Score, Sentence};

use crate::{Error, Result};

/// How well, and how often revised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// F1 of spans or accuracy of words, in percent.
    pub score: f64,
    /// The share of words at which the policy revised, in percent; none where there is no policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised: Option<f64>,
}

/// Runs every sentence word by word in a mode, as the paper evaluates: the policy's last word stands.
pub fn evaluate(model: &Model, mode: Mode, sentences: &[Sentence], score: Score) -> Result<Evaluation> {
    let run = |sentence: &Sentence| -> Result<(Vec<u16>, usize)> {
        if mode == Mode::Restart {
            // Every revision reads the whole prefix, so that only the last one leaves a trace.
            return Ok((label_whole(model, sentence)?, 0));
        }
        let mut session = model.session().mode(mode)?.final_pass(FinalPass::Policy);
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
    Ok(Evaluation {
        score: 100.0 * score_of(&labels, model.labels(), sentences, score),
        revised: (mode == Mode::TwoPass).then(|| 100.0 * revised as f64 / words.max(1) as f64),
    })
}

/// The reviser on a whole sentence: what a restart-incremental session has after its last word.
pub fn label_whole(model: &Model, sentence: &Sentence) -> Result<Vec<u16>> {
    let limit = model.config().max_length;
    if sentence.len() + model.config().delay > limit {
        return Err(Error::invalid(
            "corpus",
            format!("a sentence of {} words, but the model takes {limit}", sentence.len()),
        ));
    }
    Ok(model.revise_whole(sentence.words.iter().map(tapir_data::Text::as_str))?)
}

/// F1 as seqeval computes it, or accuracy; 0 to 1.
fn score_of(outputs: &[&[u16]], labels: &Labels, sentences: &[Sentence], score: Score) -> f64 {
    let ratio = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let (mut right, mut gold, mut given) = (0, 0, 0);
    for (output, sentence) in outputs.iter().zip(sentences) {
        let names: Vec<&str> = output.iter().map(|id| &**labels.get(*id)).collect();
        match score {
            Score::Accuracy => {
                right += names.iter().zip(&sentence.labels).filter(|(a, b)| **a == b.as_str()).count();
                gold += sentence.len();
                given += sentence.len();
            }
            Score::F1 => {
                let expected = spans(&sentence.labels, Scheme::Iob);
                let found = spans(&names, Scheme::Iob);
                right += found.iter().filter(|span| expected.contains(span)).count();
                gold += expected.len();
                given += found.len();
            }
        }
    }
    let (precision, recall) = (ratio(right, given), ratio(right, gold));
    if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
}
