//! The authors' state dicts, forged: refused, or a model that runs at any precision.
#![no_main]

mod forge;

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use forge::{Change, Forge, Size};
use libfuzzer_sys::fuzz_target;
use tapir::{ImportOptions, Labels, Parts, Precision, Vocabulary};

#[derive(Arbitrary, Debug)]
struct Input {
    linear: bool,
    precision: u8,
    heads: Option<Size>,
    memory: Option<Size>,
    delay: Option<Size>,
    threshold: Option<f32>,
    labels: Option<String>,
    words: Option<String>,
    changes: Vec<Change>,
    /// Bytes of the finished file.
    damage: Vec<(u16, u8)>,
}

/// The recorded models without their recorded outputs.
static STATES: LazyLock<[Forge; 2]> = LazyLock::new(|| {
    let transformer = include_bytes!("../../crates/tapir/tests/parity/trf_base.safetensors");
    let linear = include_bytes!("../../crates/tapir/tests/parity/lt_base.safetensors");
    [Forge::new(transformer, is_weight), Forge::new(linear, is_weight)]
});

fn is_weight(name: &str) -> bool {
    name.starts_with("param.")
}

fuzz_target!(|input: Input| {
    let mut bytes = STATES[usize::from(input.linear)].clone().bytes(&input.changes, |_, _| ());
    for (at, byte) in input.damage {
        let at = usize::from(at) % bytes.len();
        bytes[at] = byte;
    }
    let size =
        |size: Option<Size>, default: usize| size.map_or(default, |size| size.get() as usize);
    let options = ImportOptions {
        prefix: "param.".to_owned(),
        heads: size(input.heads, 2),
        memory: size(input.memory, 5),
        delay: size(input.delay, 0),
        threshold: input.threshold.unwrap_or(0.5),
        ..ImportOptions::default()
    };
    let labels = input.labels.and_then(|text| Labels::from_text(&text, "labels.txt").ok());
    let words = input.words.and_then(|text| Vocabulary::new(text.lines()).ok());
    let Ok(parts) = tapir::import(bytes.into(), "state", &options, labels, words) else { return };
    let precision =
        [Precision::F32, Precision::F16, Precision::Int8][usize::from(input.precision) % 3];
    if let Ok(model) = parts.quantize(precision).and_then(Parts::load) {
        let mut session = model.session();
        for word in ["word-3", "word-4", "nothing"] {
            session.push(word).expect("a word");
        }
        // Every step of a delay is computed at the end.
        if model.config().delay < 8 {
            session.finish().expect("an end");
        }
    }
});
