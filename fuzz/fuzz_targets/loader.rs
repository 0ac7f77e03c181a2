//! Any bytes as the parts of a model, and parts that are almost right: refused, or a model that
//! runs.
#![no_main]

mod forge;

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use forge::{Change, Forge, Size};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tapir::{Config, Labels, Parts, Precision, Vocabulary, WordVectors};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Config(&'a str),
    Labels(&'a str),
    Words(&'a str),
    /// Safetensors from nothing.
    Weights(&'a [u8]),
    Vectors(&'a [u8]),
    /// A good model of any sizes and any precision, of which fields, tensors and bytes are changed.
    Forged(Forged<'a>),
    /// A good model with an open vocabulary, whose vectors are forged.
    Open {
        vectors: Vec<Change>,
        words: Option<Size>,
        damage: Vec<(u16, u8)>,
        looked_up: &'a str,
    },
}

#[derive(Arbitrary, Debug)]
struct Forged<'a> {
    precision: u8,
    /// The sizes that the weights have.
    sizes: [u8; 12],
    linear: bool,
    /// Fields of the configuration that do not say so.
    fields: Vec<(u8, Field<'a>)>,
    tensors: Vec<Change>,
    damage: Vec<(u16, u8)>,
    cut: Option<u16>,
    labels: Option<&'a str>,
    words: Option<&'a str>,
}

#[derive(Arbitrary, Debug)]
enum Field<'a> {
    Size(Size),
    Number(f64),
    Text(&'a str),
    Null,
}

const FIELDS: [&str; 20] = [
    "/delay",
    "/max_length",
    "/embedding_dim",
    "/threshold",
    "/vector_gain",
    "/version",
    "/scheme",
    "/tokenizer",
    "/processor/layers",
    "/processor/hidden",
    "/controller/layers",
    "/controller/hidden",
    "/controller/memory",
    "/reviser/layers",
    "/reviser/hidden",
    "/reviser/feed_forward",
    "/reviser/heads",
    "/reviser/kind",
    "/processor",
    "/controller",
];

/// Two hundred words with vectors of four numbers.
static VECTORS: LazyLock<Forge> =
    LazyLock::new(|| Forge::new(include_bytes!("../seeds/words.tapirvec"), |_| true));

/// A good model of these sizes, small ones.
fn sized(sizes: &[u8; 12], linear: bool) -> Parts {
    let mut parts = tapir::doctest::parts();
    let size = |i: usize, most: u8| usize::from(sizes[i] % most) + 1;
    let config = &mut parts.config;
    config.embedding_dim = size(0, 9);
    config.delay = size(1, 3) - 1;
    let (p, c, r) = (&mut config.processor, &mut config.controller, &mut config.reviser);
    if let (Some(p), Some(c), Some(r)) = (p, c, r) {
        (p.layers, p.hidden) = (size(2, 2), size(3, 9));
        p.projection = (sizes[4] > 99).then(|| size(4, 7));
        (c.layers, c.hidden, c.memory) = (size(5, 2), size(6, 9), size(7, 5));
        (r.layers, r.heads, r.feed_forward) = (size(8, 2), size(9, 3), size(10, 17));
        r.hidden = r.heads * size(11, 5);
        if linear {
            r.kind = tapir::ReviserKind::LinearTransformer;
        }
    }
    Parts::random(parts.config, parts.labels, parts.vocabulary, 7).expect("a good model")
}

fn forged(forged: Forged) -> tapir::Result<Parts> {
    let precision =
        [Precision::F32, Precision::F16, Precision::Int8][usize::from(forged.precision) % 3];
    let mut parts = sized(&forged.sizes, forged.linear).quantize(precision)?;
    let mut json: Value = serde_json::from_str(&parts.config.to_json()).expect("its own JSON");
    for (field, value) in forged.fields {
        if let Some(old) = json.pointer_mut(FIELDS[usize::from(field) % FIELDS.len()]) {
            *old = match value {
                Field::Size(size) => size.get().into(),
                Field::Number(number) => number.into(),
                Field::Text(text) => text.into(),
                Field::Null => Value::Null,
            };
        }
    }
    parts.config = Config::from_json(&json.to_string(), "config.json")?;
    let mut bytes = Forge::new(&parts.weights, |_| true).bytes(&forged.tensors, |_, _| ());
    for (at, byte) in forged.damage {
        let at = usize::from(at) % bytes.len();
        bytes[at] = byte;
    }
    if let Some(cut) = forged.cut {
        bytes.truncate(usize::from(cut));
    }
    parts.weights = bytes.into();
    if let Some(text) = forged.labels {
        parts.labels = Labels::from_text(text, "labels.txt")?;
    }
    if let Some(text) = forged.words {
        parts.vocabulary = Vocabulary::from_text(text, "vocab.txt")?;
    }
    Ok(parts)
}

/// Vectors with a checksum that agrees.
fn vectors(
    changes: &[Change],
    words: Option<Size>,
    damage: &[(u16, u8)],
) -> tapir::Result<WordVectors> {
    let bytes = VECTORS.clone().bytes(changes, |metadata, data| {
        for (at, byte) in damage {
            let count = data.len().max(1);
            if let Some(old) = data.get_mut(usize::from(*at) % count) {
                *old = *byte;
            }
        }
        if let Some(metadata) = metadata {
            metadata["checksum"] = format!("{:016x}", tapir::vectors::checksum(data)).into();
            if let Some(words) = words {
                metadata["words"] = words.get().to_string().into();
            }
        }
    });
    WordVectors::from_bytes(bytes, "words.tapirvec")
}

fn open(vectors: WordVectors, looked_up: &str) -> tapir::Result<Parts> {
    let length: usize = vectors.words().map(|(word, _)| word.len()).sum();
    // A block's words share what they begin with; what is not UTF-8 is three bytes instead of one.
    assert!(length <= 3 * 32 * vectors.bytes().len(), "{length} bytes of words");
    vectors.vector(looked_up);
    let parts = tapir::doctest::parts();
    let config = Config {
        embedding_dim: vectors.dim(),
        vectors: Some("words.tapirvec".to_owned()),
        ..parts.config
    };
    if vectors.dim() > 64 {
        return Ok(Parts {
            config,
            vocabulary: parts.vocabulary.with_vectors(Arc::new(vectors)),
            ..parts
        });
    }
    Parts::random(config, parts.labels, parts.vocabulary.with_vectors(Arc::new(vectors)), 7)
}

fuzz_target!(|input: Input| {
    let parts = tapir::doctest::parts();
    let parts = match input {
        Input::Config(json) => {
            Config::from_json(json, "config.json").map(|config| Parts { config, ..parts })
        }
        Input::Labels(text) => {
            Labels::from_text(text, "labels.txt").map(|labels| Parts { labels, ..parts })
        }
        Input::Words(text) => {
            Vocabulary::from_text(text, "vocab.txt").map(|vocabulary| Parts { vocabulary, ..parts })
        }
        Input::Weights(bytes) => Ok(Parts { weights: bytes.to_vec().into(), ..parts }),
        Input::Vectors(bytes) => {
            WordVectors::from_bytes(bytes.to_vec(), "vectors").and_then(|v| open(v, "a"))
        }
        Input::Forged(input) => forged(input),
        Input::Open { vectors: changes, words, damage, looked_up } => {
            vectors(&changes, words, &damage).and_then(|vectors| open(vectors, looked_up))
        }
    };
    let Ok(parts) = parts else { return };
    let _ = parts.quantize(Precision::Int8);
    if let Ok(model) = parts.load() {
        let mut session = model.session();
        for word in ["play", "some", "jazz", "word007"] {
            session.push(word).expect("a word");
        }
        session.revoke(2).expect("two words");
        // Every step of a delay is computed at the end.
        if model.config().delay < 8 {
            session.finish().expect("an end");
        }
    }
});
