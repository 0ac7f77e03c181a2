//! The parts of a model as its files hold them: what is opened, saved, imported, quantised and
//! trained.

use crate::tensors::Tensors;
use crate::{
    Bytes, Config, Labels, Model, Precision, Result, TensorWriter, Vocabulary, WordPieces,
};

/// A model before it is loaded: the content of `config.json`, `labels.txt`, `vocab.txt`,
/// `pieces.txt` and `model.safetensors`.
#[derive(Clone)]
pub struct Parts {
    /// `config.json`
    pub config: Config,
    /// `labels.txt`
    pub labels: Labels,
    /// `intents.txt`, if the model labels utterances, too
    pub intents: Option<Labels>,
    /// `vocab.txt`, and the word vectors of an open vocabulary
    pub vocabulary: Vocabulary,
    /// `pieces.txt`, if the reviser reads word pieces
    pub pieces: Option<WordPieces>,
    /// `model.safetensors`
    pub weights: Bytes,
}

impl Parts {
    /// The same model with its matrices stored at another precision.
    ///
    /// ```
    /// # let parts = tapir::doctest::parts();
    /// let small = parts.quantize(tapir::Precision::Int8)?;
    /// assert!(small.weights.len() < parts.weights.len());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn quantize(&self, precision: Precision) -> Result<Self> {
        let writer = Tensors::new(self.weights.clone(), "model.safetensors")?.convert(precision)?;
        Ok(Self { weights: writer.to_bytes()?.into(), ..self.clone() })
    }

    /// A model of the given sizes with random weights, the same for the same seed: for benchmarks
    /// and tests. It has no word pieces yet, which a reviser of kind `bert` needs.
    pub fn random(
        config: Config,
        labels: Labels,
        vocabulary: Vocabulary,
        seed: u64,
    ) -> Result<Self> {
        config.validate("config.json")?;
        let mut state = seed;
        // splitmix64, mapped to -1..1
        let mut next = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = state;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((x ^ (x >> 31)) >> 40) as f32 / 8_388_608.0 - 1.0
        };
        let mut writer = TensorWriter::default();
        for (name, shape) in config.tensors(labels.len(), vocabulary.len()) {
            let norm = name.contains("norm") && name.ends_with(".weight");
            let scale = if shape.len() == 2 { 3.0 / (shape[1] as f32).sqrt() } else { 0.3 };
            let values: Vec<f32> = (0..shape.iter().product())
                .map(|_| next() * scale + if norm { 1.0 } else { 0.0 })
                .collect();
            writer.f32(&name, &shape, &values)?;
        }
        let weights = writer.to_bytes()?.into();
        let intents = match config.intents {
            0 => None,
            count => Some(Labels::new((0..count).map(|i| format!("intent-{i}")))?),
        };
        Ok(Self { config, labels, intents, vocabulary, pieces: None, weights })
    }

    /// Loads the model: checks every part against the others and packs the weights.
    pub fn load(self) -> Result<Model> {
        Model::from_parts(self)
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("config", &self.config)
            .field("weights", &self.weights)
            .finish_non_exhaustive()
    }
}
