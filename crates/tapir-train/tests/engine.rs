//! The components in burn against the engine, on the same weights: random ones of every shape, and
//! the authors' own.

#![allow(clippy::unwrap_used)] // in the helpers of tests, too

use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::SafeTensors;
use serde::Deserialize;
use tapir::{
    Bytes, Config, ImportOptions, Labels, Mode, Model, Parts, Session, SessionOptions, Vocabulary,
    WordVectors,
};
use tapir_data::{Batch, Example, Revision, Totals};
use tapir_train::{
    Objective,
    forward::{Logits, logits},
};

const TOLERANCE: f32 = 1e-4;

/// Sentences of different lengths, so that there is padding.
fn batch(sentences: &[Vec<u32>], objective: Objective) -> Batch {
    let example = |ids: &Vec<u32>| Example {
        ids: ids.clone(),
        labels: vec![Some(0); ids.len()],
        actions: vec![false; ids.len()],
        ..Example::default()
    };
    let examples: Vec<_> = sentences.iter().map(example).collect();
    Batch::new(
        &examples.iter().collect::<Vec<_>>(),
        objective.order(),
        Totals { labels: 1, actions: 1, intents: 1 },
    )
}

fn close(ours: &[f32], theirs: &[f32], at: &str) {
    assert_eq!(ours.len(), theirs.len(), "{at}");
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() <= TOLERANCE, "{at}: {a} is not {b}");
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Both passes and the policy, over every sentence, with the engine never revising (as in
/// training).
fn agree(parts: &Parts, sentences: &[Vec<u32>], name: &str) {
    let model = Model::from_parts(parts.clone()).unwrap();
    let labels = parts.labels.len();
    let read = |mut session: Session, ids: &[u32]| {
        let policy: Vec<Option<f32>> =
            ids.iter().map(|id| session.push_id(*id).unwrap().policy).collect();
        (session, policy)
    };
    let time = batch(sentences, Objective::FirstPass);
    let Logits { labels: first, policy, intents: heard } =
        logits(parts, None, Objective::FirstPass, &time).unwrap();
    let whole = batch(sentences, Objective::Reviser);
    let Logits { labels: second, intents: known, .. } =
        logits(parts, None, Objective::Reviser, &whole).unwrap();
    for (b, ids) in sentences.iter().enumerate() {
        let first_pass = SessionOptions::new().threshold(1.0);
        let (session, values) = read(model.session_with(first_pass).unwrap(), ids);
        let restart = SessionOptions::new().mode(Mode::Restart);
        let (restart, _) = read(model.session_with(restart).unwrap(), ids);
        for (t, value) in values.iter().enumerate() {
            let at = format!("{name}, sentence {b}, step {t}");
            let row = t * time.sentences + b;
            close(&first[row * labels..][..labels], session.step_logits(t).unwrap(), &at);
            if let (Some(policy), Some(value)) = (&policy, value) {
                close(&[sigmoid(policy[row])], &[*value], &format!("{at}, policy"));
            }
            let row = b * whole.length + t;
            close(
                &second[row * labels..][..labels],
                restart.step_logits(t).unwrap(),
                &format!("{at}, reviser"),
            );
        }
        // Of the intent the engine shows probabilities.
        if let (Some(heard), Some(known)) = (&heard, &known) {
            let intents = parts.config.intents;
            let row = (ids.len() - 1) * time.sentences + b;
            for (ours, session) in
                [(&heard[row * intents..], &session), (&known[b * intents..], &restart)]
            {
                let ours = softmax(&ours[..intents]);
                let theirs = session.intent_distribution().unwrap();
                close(&ours, &theirs, &format!("{name}, sentence {b}, intent"));
            }
        }
    }
}

fn softmax(logits: &[f32]) -> Vec<f32> {
    let top = logits.iter().copied().fold(f32::MIN, f32::max);
    let values: Vec<f32> = logits.iter().map(|logit| (logit - top).exp()).collect();
    let sum: f32 = values.iter().sum();
    values.iter().map(|value| value / sum).collect()
}

/// The policy, where the engine revises at some steps and the memory holds what revisions put out.
fn agree_after_revisions(parts: &Parts, sentences: &[Vec<u32>], name: &str) -> usize {
    let model = Model::from_parts(parts.clone()).unwrap();
    let memory = parts.config.controller.as_ref().unwrap().memory;
    let (mut examples, mut expected) = (Vec::new(), Vec::new());
    for (b, ids) in sentences.iter().enumerate() {
        let mut session = model.session();
        let mut example = Example {
            ids: ids.clone(),
            labels: vec![Some(0); ids.len()],
            actions: vec![false; ids.len()],
            ..Example::default()
        };
        for (step, id) in ids.iter().enumerate() {
            // Whatever the policy says, so that there are some of both.
            let revise = (step + b) % 3 == 1;
            session.set_threshold(if revise { 0.0 } else { 1.0 }).unwrap();
            expected.push(session.push_id(*id).unwrap().policy.unwrap());
            if revise {
                let steps = (step + 1).saturating_sub(memory)..=step;
                let logits = steps.flat_map(|step| session.step_logits(step).unwrap().to_vec());
                example.revisions.push(Revision { step, logits: logits.collect() });
            }
        }
        examples.push(example);
    }
    let revisions = examples.iter().map(|example| example.revisions.len()).sum();
    let order = Objective::Policy.order();
    let batch = Batch::new(
        &examples.iter().collect::<Vec<_>>(),
        order,
        Totals { labels: 1, actions: 1, intents: 1 },
    );
    let policy = logits(parts, None, Objective::Policy, &batch).unwrap().policy.unwrap();
    let mut expected = expected.into_iter();
    for (b, ids) in sentences.iter().enumerate() {
        for t in 0..ids.len() {
            let ours = sigmoid(policy[t * batch.sentences + b]);
            let at = format!("{name}, sentence {b}, step {t}, policy after revisions");
            close(&[ours], &[expected.next().unwrap()], &at);
        }
    }
    revisions
}

fn vectors() -> Arc<WordVectors> {
    Arc::new(WordVectors::embedded().unwrap())
}

#[test]
fn every_component_agrees_with_the_engine_for_all_shapes_and_delays() {
    let mut revisions = 0;
    for kind in ["transformer", "linear-transformer"] {
        for (delay, open) in [(0, false), (1, false), (2, false), (0, true), (2, true)] {
            let (processor, controller) = if delay == 1 { (2, 2) } else { (1, 1) };
            let projection = if open { r#", "projection": 12"# } else { "" };
            let more = if open { r#""vectors": "v.tapirvec", "vector_gain": 0.05,"# } else { "" };
            let inputs = match delay {
                0 => "",
                1 => r#", "inputs": ["state"]"#,
                _ => r#", "inputs": ["output", "state"]"#,
            };
            let dim = if open { 300 } else { 10 };
            let json = format!(
                r#"{{"version": 1, "embedding_dim": {dim}, "delay": {delay}, {more} "intents": {delay},
                "processor": {{"layers": {processor}, "hidden": 16 {projection}}},
                "controller": {{"layers": {controller}, "hidden": 8, "memory": 3 {inputs}}},
                "reviser": {{"kind": "{kind}", "layers": 2, "hidden": 16, "feed_forward": 24, "heads": 4}}}}"#
            );
            let config = Config::from_json(&json, "test").unwrap();
            let mut vocabulary = Vocabulary::new(["play", "some", "qqx"]).unwrap();
            if open {
                vocabulary = vocabulary.with_vectors(vectors());
            }
            let labels = Labels::new(["O", "B-x", "I-x", "B-y"]).unwrap();
            let words =
                ["play", "some", "jazz", "qqx", "westbam", "zzqy"].map(|word| vocabulary.id(word));
            let null = std::iter::repeat_n(Vocabulary::NULL, delay);
            let sentence = |order: &[usize]| -> Vec<u32> {
                order.iter().map(|i| words[*i]).chain(null.clone()).collect()
            };
            let sentences =
                [sentence(&[0, 1, 2, 3, 4, 5, 0]), sentence(&[2]), sentence(&[5, 4, 4, 1])];
            let parts = Parts::random(config, labels, vocabulary, 3).unwrap();
            let name = format!("{kind}, delay {delay}, open {open}");
            agree(&parts, &sentences, &name);
            revisions += agree_after_revisions(&parts, &sentences, &name);
        }
    }
    assert!(revisions > 20, "{revisions} revisions");
}

#[derive(Deserialize)]
struct Case {
    memory_size: usize,
    reviser_heads: usize,
    delay: usize,
    labels: usize,
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    tokens: Vec<u32>,
}

#[test]
fn every_component_agrees_with_the_authors_recordings() {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "safetensors") {
            continue;
        }
        let json = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let case: Case = serde_json::from_str(&json).unwrap();
        let options = ImportOptions {
            prefix: "param.".into(),
            heads: case.reviser_heads,
            memory: case.memory_size,
            delay: case.delay,
            ..ImportOptions::default()
        };
        let parts =
            tapir::import(Bytes::open(&path).unwrap(), "state dict", &options, None, None).unwrap();
        let sentences: Vec<Vec<u32>> =
            case.sentences.into_iter().map(|sentence| sentence.tokens).collect();
        let bytes = std::fs::read(&path).unwrap();
        let recorded = SafeTensors::deserialize(&bytes).unwrap();
        let expected = |name: String| -> Vec<f32> {
            let tensor = recorded.tensor(&name).unwrap();
            tensor.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
        };
        for (i, ids) in sentences.iter().enumerate() {
            let one = [ids.clone()];
            let at = format!("{}, sentence {i}", path.display());
            let logits = |objective| {
                logits(&parts, None, objective, &batch(&one, objective)).unwrap().labels
            };
            let first = logits(Objective::FirstPass);
            close(&first, &expected(format!("expected.{i}.first_pass_logits")), &at);
            let second = logits(Objective::Reviser);
            close(&second, &expected(format!("expected.{i}.reviser_logits")), &at);
            assert_eq!(first.len(), ids.len() * case.labels);
        }
        agree(&parts, &sentences, &path.display().to_string());
        cases += 1;
    }
    assert!(cases > 3);
}
