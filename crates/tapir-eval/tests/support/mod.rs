//! Random models and sentences for the tests.
#![allow(dead_code)] // each test file uses its part

use proptest::prelude::*;
use tapir::{
    Config, ControllerConfig, Labels, Model, Parts, ProcessorConfig, ReviserConfig, ReviserKind,
    Vocabulary,
};
use tapir_data::Sentence;
use tapir_eval::Dataset;

pub(crate) const LABELS: [&str; 5] = ["O", "B-city", "I-city", "B-time", "I-time"];

pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        config
    } else {
        ProptestConfig { cases, ..config }
    }
}

/// A small model with random weights: the same seed gives the same model.
pub(crate) fn model(kind: ReviserKind, delay: usize, seed: u64) -> Model {
    let config = Config {
        task: "random".into(),
        delay,
        max_length: 30,
        embedding_dim: 6,
        processor: Some(ProcessorConfig { layers: 1, hidden: 7, ..ProcessorConfig::default() }),
        controller: Some(ControllerConfig {
            layers: 2,
            hidden: 5,
            memory: 3,
            ..Default::default()
        }),
        reviser: Some(ReviserConfig {
            kind,
            layers: 2,
            hidden: 8,
            feed_forward: 9,
            heads: 2,
            ..ReviserConfig::default()
        }),
        ..Config::default()
    };
    let vocabulary = Vocabulary::new((0..20).map(|i| format!("w{i}"))).unwrap();
    Parts::random(config, Labels::new(LABELS).unwrap(), vocabulary, seed).unwrap().load().unwrap()
}

pub(crate) fn sentence() -> impl Strategy<Value = Sentence> {
    prop::collection::vec((0..22usize, 0..LABELS.len()), 1..12).prop_map(|tokens| {
        let words = tokens.iter().map(|(word, _)| format!("w{word}"));
        let labels = tokens.iter().map(|(_, label)| LABELS[*label].to_owned());
        Sentence::new(words, labels)
    })
}

pub(crate) fn models() -> impl Strategy<Value = Model> {
    (any::<bool>(), 0..3usize, any::<u64>()).prop_map(|(linear, delay, seed)| {
        let kind = if linear { ReviserKind::LinearTransformer } else { ReviserKind::Transformer };
        model(kind, delay, seed)
    })
}

pub(crate) fn dataset(model: &Model, sentences: &[Sentence]) -> Dataset {
    Dataset::of(model, sentences).unwrap()
}
