//! The engine against outputs recorded from the authors' implementation, through the public
//! interface, word by word.
//!
//! Reads every model in the folder that `TAPIR_PARITY_DIR` names, or the copies in `tests/parity`.
#![allow(clippy::unwrap_used)]

#[path = "support/parity_folder.rs"]
mod parity_folder;

use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde::Deserialize;
use tapir::{
    Action, Bytes, FinalPass, ImportOptions, Mode, Model, Session, SessionOptions, Vocabulary,
};

const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
struct Case {
    reviser: String,
    vocab_size: usize,
    labels: usize,
    memory_size: usize,
    reviser_heads: usize,
    threshold: f32,
    delay: usize,
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    tokens: Vec<u32>,
    revise: Vec<bool>,
}

/// Every model in the folder: its description and its file.
fn cases() -> Vec<(String, Case, PathBuf)> {
    parity_folder::with("parity", |folder| {
        let mut cases = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the parity folder") {
            let weights = entry.unwrap().path();
            let json = weights.with_extension("json");
            let is_weights = weights.extension().is_some_and(|ending| ending == "safetensors");
            // What has no description beside it is the weights of something else.
            if is_weights && json.exists() {
                let case = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
                let name = weights.file_stem().unwrap().to_string_lossy().into_owned();
                cases.push((name, case, weights));
            }
        }
        cases.sort_by(|a, b| a.0.cmp(&b.0));
        Some(cases).filter(|cases| !cases.is_empty())
    })
}

fn word(id: u32) -> String {
    format!("word-{id}")
}

fn import(case: &Case, path: &Path) -> Model {
    let options = ImportOptions {
        prefix: "param.".into(),
        heads: case.reviser_heads,
        memory: case.memory_size,
        delay: case.delay,
        threshold: case.threshold,
        ..ImportOptions::default()
    };
    let parts =
        tapir::import(Bytes::open(path).unwrap(), "state dict", &options, None, None).unwrap();
    assert_eq!(parts.vocabulary.len(), case.vocab_size);
    assert_eq!(parts.labels.len(), case.labels);
    let kind = serde_json::to_value(parts.config.reviser.as_ref().unwrap().kind).unwrap();
    assert!(case.reviser.starts_with(kind.as_str().unwrap()));
    parts.load().unwrap()
}

/// Recorded values by name.
struct Expected<'a>(SafeTensors<'a>);

impl Expected<'_> {
    fn get(&self, name: &str) -> Vec<f32> {
        let tensor = self.0.tensor(name).unwrap_or_else(|_| panic!("{name} was not recorded"));
        tensor.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }
}

/// Compares all logits that the session holds; gives the largest difference.
fn compare(session: &Session, expected: &[f32], labels: usize, at: &str) -> f32 {
    let mut largest = 0f32;
    assert_eq!(session.words() * labels, expected.len(), "{at}");
    for (step, row) in expected.chunks(labels).enumerate() {
        for (ours, theirs) in session.step_logits(step).unwrap().iter().zip(row) {
            let difference = (ours - theirs).abs();
            assert!(difference <= TOLERANCE, "{at}, step {step}: {ours} is not {theirs}");
            largest = largest.max(difference);
        }
    }
    largest
}

/// A word as a user would push it; the NULL tokens that flush a delayed model by their id.
fn push(session: &mut Session, token: u32) -> tapir::Update {
    if token < 3 { session.push_id(token).unwrap() } else { session.push(&word(token)).unwrap() }
}

#[test]
fn every_logit_policy_value_and_action_is_the_authors() {
    for (name, case, path) in cases() {
        let model = import(&case, &path);
        let bytes = std::fs::read(&path).unwrap();
        let expected = Expected(SafeTensors::deserialize(&bytes).unwrap());
        let (mut largest, mut steps, mut revisions) = (0f32, 0, 0);
        for (i, sentence) in case.sentences.iter().enumerate() {
            let policy = expected.get(&format!("expected.{i}.policy"));
            let mut session = model.session();
            for (t, token) in sentence.tokens.iter().enumerate() {
                let update = push(&mut session, *token);
                let at = format!("{name}, sentence {i}, step {t}");
                let value = update.policy.unwrap();
                assert!(
                    (value - policy[t]).abs() <= TOLERANCE,
                    "{at}: policy {value} is not {}",
                    policy[t]
                );
                assert_eq!(update.action == Some(Action::Revise), sentence.revise[t], "{at}");
                if let Some(words) = (t + 1).checked_sub(case.delay).filter(|words| *words > 0) {
                    let logits = expected.get(&format!("expected.{i}.{words}.logits"));
                    largest = largest.max(compare(&session, &logits, case.labels, &at));
                }
                steps += 1;
                revisions += usize::from(update.revised());
            }
        }
        println!("{name}: {steps} steps, {revisions} revisions, largest difference {largest:e}");
    }
}

#[test]
fn finish_flushes_the_delay_as_recorded() {
    for (name, case, path) in cases() {
        let model = import(&case, &path);
        let bytes = std::fs::read(&path).unwrap();
        let expected = Expected(SafeTensors::deserialize(&bytes).unwrap());
        for (i, sentence) in case.sentences.iter().enumerate() {
            let words = sentence.tokens.len() - case.delay;
            assert!(sentence.tokens[words..].iter().all(|token| *token == Vocabulary::NULL));
            let options = SessionOptions::new().final_pass(FinalPass::Policy);
            let mut session = model.session_with(options).unwrap();
            sentence.tokens[..words].iter().for_each(|token| _ = push(&mut session, *token));
            let end = session.finish().unwrap();
            assert_eq!(end.labels.len(), words);
            let logits = expected.get(&format!("expected.{i}.{words}.logits"));
            compare(&session, &logits, case.labels, &format!("{name}, sentence {i}"));
        }
    }
}

#[test]
fn each_pass_alone_is_the_authors() {
    for (name, case, path) in cases() {
        let model = import(&case, &path);
        let bytes = std::fs::read(&path).unwrap();
        let expected = Expected(SafeTensors::deserialize(&bytes).unwrap());
        for (i, sentence) in case.sentences.iter().enumerate() {
            for (mode, record) in
                [(Mode::FirstPass, "first_pass_logits"), (Mode::Restart, "reviser_logits")]
            {
                let mut session = model.session_with(SessionOptions::new().mode(mode)).unwrap();
                sentence.tokens.iter().for_each(|token| _ = push(&mut session, *token));
                let logits = expected.get(&format!("expected.{i}.{record}"));
                compare(&session, &logits, case.labels, &format!("{name}, sentence {i}, {record}"));
            }
        }
    }
}
