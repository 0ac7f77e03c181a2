//! Which preset is run on which corpus, and where its work goes: flags that `train`, `actions` and
//! `tune` share, so that the one finds what the other has left.

use std::path::PathBuf;

use clap::Args;
use tapir_train::{Preset, RunOptions};

/// A preset, its changes and its folders.
#[derive(Args)]
pub(crate) struct Recipe {
    /// A preset that ships (small/snips, paper/movie-lt-d1) or the path of a preset file
    pub(crate) preset: String,
    /// Set a value of the preset, such as training.reviser.batch=64; can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The folder of the corpus, or one that holds it
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where checkpoints, metrics, actions and the model go [default: runs/PRESET]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Recipe {
    /// The preset with its changes, and `more` of them.
    pub(crate) fn open(&self, more: Vec<String>) -> Result<Preset, tapir_train::Error> {
        Preset::open(&self.preset, &[self.settings.clone(), more].concat())
    }

    /// All stages, in the recipe's folders; in a run of its own where `--out` names none.
    pub(crate) fn options_for(&self, what: &str) -> RunOptions {
        let mut options = self.options();
        if self.out.is_none() {
            options.out.as_mut_os_string().push(what);
        }
        options
    }

    /// All stages, in the recipe's folders.
    pub(crate) fn options(&self) -> RunOptions {
        let name = self.preset.trim_end_matches(".toml").replace('/', "-");
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name));
        RunOptions { data: self.data.clone(), ..RunOptions::new(out) }
    }
}
