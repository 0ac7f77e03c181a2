//! Any bytes as the parts of a model: refused, or a model that runs.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tapir::{Config, ImportOptions, Labels, Parts, Precision, Vocabulary};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Config(&'a str),
    Labels(&'a str),
    Words(&'a str),
    /// Safetensors from nothing.
    Weights(&'a [u8]),
    /// A real file with bytes changed: gets past the header.
    Damage { precision: u8, changes: Vec<(u16, u8)>, cut: Option<u16> },
    State(&'a [u8]),
}

fuzz_target!(|input: Input| {
    let parts = tapir::doctest::parts();
    let parts = match input {
        Input::Config(json) => Config::from_json(json, "config.json").map(|config| Parts { config, ..parts }),
        Input::Labels(text) => Labels::from_text(text, "labels.txt").map(|labels| Parts { labels, ..parts }),
        Input::Words(text) => Vocabulary::from_text(text, "vocab.txt").map(|vocabulary| Parts { vocabulary, ..parts }),
        Input::Weights(bytes) => Ok(Parts { weights: bytes.to_vec().into(), ..parts }),
        Input::Damage { precision, changes, cut } => {
            let precision = [Precision::F32, Precision::F16, Precision::Int8][usize::from(precision) % 3];
            let parts = parts.quantize(precision).expect("a good model");
            let mut bytes = parts.weights.to_vec();
            for (at, byte) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(usize::from(cut));
            }
            Ok(Parts { weights: bytes.into(), ..parts })
        }
        Input::State(bytes) => tapir::import(bytes.to_vec().into(), "state", &ImportOptions::default(), None, None),
    };
    if let Ok(model) = parts.and_then(Parts::load) {
        let mut session = model.session();
        for word in ["play", "some", "jazz"] {
            session.push(word).expect("a word");
        }
        session.finish().expect("an end");
    }
});
