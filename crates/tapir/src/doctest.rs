//! A tiny model with random weights for the examples in the documentation.

use crate::{
    Config, ControllerConfig, Labels, Parts, ProcessorConfig, ReviserConfig, ReviserKind, Scheme, Vocabulary,
};

/// The parts of the tiny model.
pub fn parts() -> Parts {
    let config = Config {
        version: crate::FORMAT_VERSION,
        task: "doctest".to_owned(),
        scheme: Scheme::Iob,
        tokenizer: crate::Tokenizer::default(),
        delay: 0,
        threshold: 0.5,
        max_length: 200,
        embedding_dim: 8,
        vector_gain: 1.0,
        vectors: None,
        processor: Some(ProcessorConfig { layers: 1, hidden: 8, projection: None }),
        controller: Some(ControllerConfig { layers: 1, hidden: 8, memory: 3 }),
        reviser: Some(ReviserConfig {
            kind: ReviserKind::Transformer,
            layers: 1,
            hidden: 8,
            feed_forward: 16,
            heads: 2,
            norm: None,
        }),
        provenance: serde_json::Map::new(),
    };
    let labels = Labels::new(["O", "B-artist", "I-artist", "B-genre"]).expect("four labels");
    let vocabulary = Vocabulary::new(["play", "some", "jazz", "by", "miles", "davis"]).expect("six words");
    Parts::random(config, labels, vocabulary, 7).expect("consistent sizes")
}
