//! Tiny models with random weights for the examples in the documentation.

use crate::{
    BertConfig, Config, ControllerConfig, Labels, Parts, ProcessorConfig, ReviserConfig,
    ReviserKind, Vocabulary, WordPieces,
};

/// The parts of the tiny model.
pub fn parts() -> Parts {
    let config = Config {
        task: "doctest".to_owned(),
        embedding_dim: 8,
        processor: Some(ProcessorConfig { layers: 1, hidden: 8, projection: None }),
        controller: Some(ControllerConfig { layers: 1, hidden: 8, memory: 3 }),
        reviser: Some(ReviserConfig {
            kind: ReviserKind::Transformer,
            layers: 1,
            hidden: 8,
            feed_forward: 16,
            heads: 2,
            norm: None,
            bert: None,
        }),
        ..Config::default()
    };
    let labels = Labels::new(["O", "B-artist", "I-artist", "B-genre"]).expect("four labels");
    let vocabulary =
        Vocabulary::new(["play", "some", "jazz", "by", "miles", "davis"]).expect("six words");
    Parts::random(config, labels, vocabulary, 7).expect("consistent sizes")
}

/// The pieces of the tiny pretrained reviser: whole words, parts of words, and letters.
const PIECES: [&str; 17] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "some", "jazz", "by", "mi", "##les", "da", "##vis",
    "zi", "##ther", "##s", "?", "##?",
];

/// The parts of the tiny model with a reviser that reads word pieces, at most twelve of them.
pub fn pretrained() -> Parts {
    let Parts { mut config, labels, vocabulary, .. } = parts();
    config.reviser = Some(ReviserConfig {
        kind: ReviserKind::Bert,
        bert: Some(BertConfig { pieces: PIECES.len(), positions: 14, ..BertConfig::default() }),
        ..config.reviser.expect("the tiny model has one")
    });
    let pieces = Some(WordPieces::new(PIECES).expect("different pieces"));
    let parts = Parts::random(config, labels, vocabulary, 7).expect("consistent sizes");
    Parts { pieces, ..parts }
}
