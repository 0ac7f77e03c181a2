//! A preset's reviser: new, of the sizes that it gives, or a pretrained encoder.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, de};
use tapir::{Encoder, EncoderFiles, Parts, ReviserConfig, ReviserKind};

use crate::{Error, Result};

/// The table `reviser` of a preset.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ReviserSource {
    /// Sizes: its weights start from random numbers.
    New(ReviserConfig),
    /// A pretrained encoder, which is fine-tuned.
    Pretrained(Pretrained),
}

/// A pretrained encoder that a reviser starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pretrained {
    /// A folder in the layout of Hugging Face's `transformers` (`config.json`, `model.safetensors`,
    /// `tokenizer.json`), or a tapir model with such a reviser: its folder, or the name of one that
    /// ships.
    pub pretrained: String,
    /// Only its first so many layers; without it, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<usize>,
}

/// By its key `pretrained`, so that an error is that of the table that was meant.
impl<'de> Deserialize<'de> for ReviserSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        let source = if table.contains_key("pretrained") {
            table.try_into().map(Self::Pretrained)
        } else {
            table.try_into().map(Self::New)
        };
        source.map_err(|error: toml::de::Error| de::Error::custom(error.message()))
    }
}

impl ReviserSource {
    /// The sizes that it gives itself.
    pub(crate) fn sizes(&self) -> Option<&ReviserConfig> {
        match self {
            Self::New(sizes) => Some(sizes),
            Self::Pretrained(_) => None,
        }
    }

    pub(crate) fn validate(&self, place: &str) -> Result<()> {
        match self {
            Self::New(sizes) if sizes.kind == ReviserKind::Bert => {
                let reason = "`reviser.kind` is `bert`, which is not trained from nothing; give \
                              `reviser.pretrained`, the folder of an encoder, instead of sizes";
                Err(Error::invalid(place, reason))
            }
            _ => Ok(()),
        }
    }
}

impl Pretrained {
    /// Reads it.
    pub(crate) fn open(&self) -> Result<Encoder> {
        let Self { pretrained, layers } = self;
        let dir = Path::new(pretrained);
        // A model of ours has labels and no such tokenizer, or is in the folder of a run; scripts
        // that train taggers leave their labels beside an encoder, too.
        let has = |file: &str| dir.join(file).exists();
        let is_encoder = has("config.json") && (has("tokenizer.json") || !has("labels.txt"));
        let encoder = if is_encoder {
            Encoder::read(&EncoderFiles::open(dir)?)?
        } else if tapir_models::model(pretrained).is_some() || dir.is_dir() {
            let parts = Parts::find(pretrained)?;
            Encoder::of(&parts).map_err(|error| Error::invalid(pretrained, error))?
        } else {
            let reason = "no such folder; it should hold an encoder (config.json, \
                          model.safetensors, tokenizer.json), such as all-MiniLM-L6-v2 of the \
                          Hugging Face hub. --set reviser.pretrained=DIR names another one, and \
                          docs/training.md says how to get one";
            return Err(Error::invalid(pretrained, reason));
        };
        match layers {
            Some(layers) => Ok(encoder.first_layers(*layers)?),
            None => Ok(encoder),
        }
    }
}
