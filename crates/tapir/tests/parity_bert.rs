//! Pretrained revisers against outputs recorded from Hugging Face's `transformers`, through the
//! public interface, word by word.
//!
//! Reads every encoder in the folder that `TAPIR_PARITY_DIR` names (it or each folder in it that has
//! a `cases.json`), or the copies in `tests/parity-bert`.
#![allow(clippy::unwrap_used)]

#[path = "support/parity_folder.rs"]
mod parity_folder;

use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde::Deserialize;
use tapir::{EncoderFiles, EncoderOptions, Mode, Model, Precision, SessionOptions};

const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
struct Cases {
    labels: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    words: Vec<String>,
    /// Those of all pieces, `[CLS]` and `[SEP]` included.
    ids: Vec<u32>,
    /// Where each word's first piece is among them.
    first: Vec<usize>,
}

/// The encoders in a folder, which may be that of one.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.push(folder.to_owned());
    folders.retain(|path| path.join("cases.json").exists());
    folders.sort();
    folders
}

fn encoders() -> Vec<(PathBuf, Cases)> {
    let found = parity_folder::with("parity-bert", |folder| {
        Some(folders(folder)).filter(|folders| !folders.is_empty())
    });
    let cases = |path: &PathBuf| {
        let json = std::fs::read_to_string(path.join("cases.json")).unwrap();
        serde_json::from_str(&json).unwrap()
    };
    found.into_iter().map(|path| (path.clone(), cases(&path))).collect()
}

fn import(path: &Path) -> tapir::Parts {
    let files = EncoderFiles::open(path).unwrap();
    tapir::import_encoder(&files, &EncoderOptions::default()).unwrap()
}

#[test]
fn every_piece_is_theirs() {
    for (path, Cases { cases, .. }) in encoders() {
        let parts = import(&path);
        let pieces = parts.pieces.unwrap();
        let rules = parts.config.reviser.unwrap().bert.unwrap().rules;
        for Case { words, ids, first } in cases {
            let [cls, sep] = pieces.ends();
            let (mut found, mut firsts) = (vec![cls], Vec::new());
            for word in &words {
                firsts.push(found.len());
                found.extend(pieces.split(word, &rules));
            }
            found.push(sep);
            assert_eq!((found, firsts), (ids, first), "{}: {words:?}", path.display());
        }
    }
}

/// The largest difference between the model's logits and those recorded, for every prefix of every
/// case.
fn largest_difference(model: &Model, path: &Path, cases: &Cases) -> f32 {
    let bytes = std::fs::read(path.join("expected.safetensors")).unwrap();
    let expected = SafeTensors::deserialize(&bytes).unwrap();
    let mut largest = 0f32;
    for (i, case) in cases.cases.iter().enumerate() {
        let mut session = model.session_with(SessionOptions::new().mode(Mode::Restart)).unwrap();
        for (t, word) in case.words.iter().enumerate() {
            assert!(session.push(word).unwrap().revised());
            let recorded = expected.tensor(&format!("{i}.{}.logits", t + 1)).unwrap();
            assert_eq!(recorded.shape(), [t + 1, cases.labels]);
            let ours = (0..=t).flat_map(|step| session.step_logits(step).unwrap());
            let theirs = recorded.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
            assert_eq!(ours.clone().count(), theirs.len());
            ours.zip(theirs).for_each(|(a, b)| largest = largest.max((a - b).abs()));
        }
    }
    largest
}

#[test]
fn every_logit_is_theirs() {
    for (path, cases) in encoders() {
        let parts = import(&path);
        let model = parts.clone().load().unwrap();
        assert_eq!(model.default_mode(), Mode::Restart);
        let largest = largest_difference(&model, &path, &cases);
        println!("{}: largest difference {largest:e}", path.display());
        assert!(largest <= TOLERANCE, "{}: {largest:e}", path.display());
    }
}

/// What is stored in fewer bits is near. How near, depends on the weights: of our own copies it is
/// known, and of other encoders it is printed.
#[test]
fn fewer_bits_are_near() {
    let own = folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity-bert"));
    for (path, cases) in encoders() {
        let parts = import(&path);
        for (precision, bound) in [(Precision::F16, 0.05), (Precision::Int8, 0.5)] {
            let model = parts.quantize(precision).unwrap().load().unwrap();
            let largest = largest_difference(&model, &path, &cases);
            println!("{}: {precision:?} {largest:e}", path.display());
            let near = largest <= bound || !own.contains(&path);
            assert!(near, "{}: {precision:?} {largest:e}", path.display());
        }
    }
}
