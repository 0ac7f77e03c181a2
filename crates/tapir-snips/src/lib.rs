#![doc = include_str!("../README.md")]

/// `config.json`
pub const CONFIG: &str = include_str!("../model/config.json");
/// `labels.txt`
pub const LABELS: &str = include_str!("../model/labels.txt");
/// `intents.txt`
pub const INTENTS: &str = include_str!("../model/intents.txt");
/// `vocab.txt`
pub const VOCABULARY: &str = include_str!("../model/vocab.txt");
/// `pieces.txt`
pub const PIECES: &str = include_str!("../model/pieces.txt");
/// `model.safetensors`
pub const WEIGHTS: &[u8] = include_bytes!("../model/model.safetensors");
