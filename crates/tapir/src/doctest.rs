//! A tiny model with random weights for the examples in the documentation.

use crate::{
    Config, ControllerConfig, Labels, Parts, ProcessorConfig, ReviserConfig, ReviserKind,
    Vocabulary,
};

/// The parts of the tiny model.
pub fn parts() -> Parts {
    let config = Config {
        task: "doctest".to_owned(),
        embedding_dim: 8,
        processor: Some(ProcessorConfig { layers: 1, hidden: 8, projection: None }),
        controller: Some(ControllerConfig {
            layers: 1,
            hidden: 8,
            memory: 3,
            ..Default::default()
        }),
        reviser: Some(ReviserConfig {
            kind: ReviserKind::Transformer,
            layers: 1,
            hidden: 8,
            feed_forward: 16,
            heads: 2,
            norm: None,
        }),
        ..Config::default()
    };
    let labels = Labels::new(["O", "B-artist", "I-artist", "B-genre"]).expect("four labels");
    let vocabulary =
        Vocabulary::new(["play", "some", "jazz", "by", "miles", "davis"]).expect("six words");
    Parts::random(config, labels, vocabulary, 7).expect("consistent sizes")
}
