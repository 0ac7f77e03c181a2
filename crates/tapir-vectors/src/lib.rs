#![doc = include_str!("../README.md")]

/// A table of word vectors in the form that `tapir::WordVectors` reads.
#[derive(Clone, Copy)]
pub struct Vectors {
    /// The name of its file, by which models and presets ask for it.
    pub name: &'static str,
    /// The content of the file.
    pub bytes: &'static [u8],
}

/// English: 514,092 words on 20,000 rows of 300 numbers.
///
/// ```
/// assert!(tapir_vectors::ENGLISH.name.ends_with(".tapirvec"));
/// ```
pub static ENGLISH: Vectors =
    Vectors { name: "en_300d.tapirvec", bytes: include_bytes!("../en_300d.tapirvec") };
