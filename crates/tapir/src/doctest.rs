//! Tiny models with random weights for the examples in the documentation.

use serde_json::json;

use crate::{
    BertConfig, Calibration, Config, ControllerConfig, EncoderFiles, Labels, Logistic, Parts,
    ProcessorConfig, ReviserConfig, ReviserKind, TensorWriter, Vocabulary, WordPieces,
};

/// The parts of the tiny model.
pub fn parts() -> Parts {
    let config = Config {
        task: "doctest".to_owned(),
        embedding_dim: 8,
        processor: Some(ProcessorConfig { layers: 1, hidden: 8, ..ProcessorConfig::default() }),
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
            ..ReviserConfig::default()
        }),
        ..Config::default()
    };
    let labels = Labels::new(["O", "B-artist", "I-artist", "B-genre"]).expect("four labels");
    let vocabulary =
        Vocabulary::new(["play", "some", "jazz", "by", "miles", "davis"]).expect("six words");
    Parts::random(config, labels, vocabulary, 7).expect("consistent sizes")
}

/// The same with three intents, what is about something else, and numbers in place of a calibration.
pub fn with_intents(parts: Parts) -> Parts {
    let Parts { mut config, labels, vocabulary, pieces, .. } = parts;
    (config.intents, config.outside) = (3, true);
    config.calibration = Calibration {
        labels: Some(Logistic([0.5, 1.0, 0.8, -0.3, 0.6, -0.1, 0.3])),
        spans: Some(Logistic([-0.5, 0.9, -1.0])),
        intent: Some(Logistic([0.2, 1.5, 0.4, -0.1, 0.2])),
        evidence: Some(0.5),
        in_domain: Some(Logistic([0.1, 1.2])),
    };
    let parts = Parts::random(config, labels, vocabulary, 7).expect("consistent sizes");
    Parts { pieces, ..parts }
}

/// The pieces of the tiny pretrained reviser: whole words, parts of words, and letters.
const PIECES: [&str; 17] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "some", "jazz", "by", "mi", "##les", "da", "##vis",
    "zi", "##ther", "##s", "?", "##?",
];

/// The parts of the tiny model with a reviser that reads word pieces, at most twelve of them, and a
/// first pass that reads unknown words by theirs.
pub fn pretrained() -> Parts {
    let Parts { mut config, labels, vocabulary, .. } = parts();
    config.processor.as_mut().expect("the tiny model has one").spelling = Some(8);
    config.reviser = Some(ReviserConfig {
        kind: ReviserKind::Bert,
        bert: Some(BertConfig { pieces: PIECES.len(), positions: 14, ..BertConfig::default() }),
        ..config.reviser.expect("the tiny model has one")
    });
    let pieces = Some(WordPieces::new(PIECES).expect("different pieces"));
    let parts = Parts::random(config, labels, vocabulary, 7).expect("consistent sizes");
    Parts { pieces, ..parts }
}

/// A tiny encoder that labels words, as `transformers` would save it.
pub fn encoder() -> EncoderFiles {
    encoder_of(&PIECES, 8, 14)
}

/// The same with other pieces, of which the first are `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`, of
/// another size and for longer inputs.
pub fn encoder_of<P: AsRef<str>>(pieces: &[P], d: usize, positions: usize) -> EncoderFiles {
    let (f, labels) = (2 * d, 3);
    let mut writer = TensorWriter::default();
    let mut count: u64 = 0;
    let scale = 2.0 / (d as f32 / 8.0).sqrt();
    let mut tensor = |name: String, shape: &[usize]| {
        // Multiples of the golden ratio: as good as random.
        let values = (0..shape.iter().product()).map(|_: usize| {
            count += 1;
            let bits = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (count << 17);
            let bits = (bits ^ (bits >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((bits >> 40) as f32 / 16_777_216.0 - 0.5) * scale
        });
        writer.f32(&name, shape, &values.collect::<Vec<_>>()).expect("a tensor");
    };
    let mut affine = |name: &str, outputs: usize, inputs: &[usize]| {
        tensor(format!("{name}.weight"), &[&[outputs], inputs].concat());
        tensor(format!("{name}.bias"), &[outputs]);
    };
    let layer = "bert.encoder.layer.0";
    for part in ["self.query", "self.key", "self.value", "output.dense"] {
        affine(&format!("{layer}.attention.{part}"), d, &[d]);
    }
    affine(&format!("{layer}.intermediate.dense"), f, &[d]);
    affine(&format!("{layer}.output.dense"), d, &[f]);
    for norm in ["encoder.layer.0.attention.output", "encoder.layer.0.output", "embeddings"] {
        affine(&format!("bert.{norm}.LayerNorm"), d, &[]);
    }
    affine("classifier", labels, &[d]);
    for (table, rows) in [("word", pieces.len()), ("position", positions), ("token_type", 2)] {
        tensor(format!("bert.embeddings.{table}_embeddings.weight"), &[rows, d]);
    }
    let config = json!({
        "model_type": "bert", "architectures": ["BertForTokenClassification"],
        "hidden_size": d, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": f, "max_position_embeddings": positions, "vocab_size": pieces.len(),
        "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        "id2label": {"0": "O", "1": "B-artist", "2": "I-artist"},
    });
    let special = |name| json!({"SpecialToken": {"id": name, "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let id = |(id, piece): (usize, &P)| (piece.as_ref().to_owned(), json!(id));
    let vocab: serde_json::Map<_, _> = pieces.iter().enumerate().map(id).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "decoder": null,
        "added_tokens": [{"id": 2, "content": "[CLS]", "special": true}],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [special("[CLS]"), text, special("[SEP]")],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab},
    });
    EncoderFiles {
        dir: "encoder".to_owned(),
        config: config.to_string(),
        weights: writer.to_bytes().expect("a file").into(),
        tokenizer: tokenizer.to_string(),
    }
}
