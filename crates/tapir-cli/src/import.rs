//! `tapir import`: a model trained elsewhere.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tapir::{
    Bytes, EncoderFiles, EncoderOptions, ImportOptions, Labels, Parts, Scheme, Vocabulary,
};

/// Import a model trained elsewhere
///
/// Takes the state dict of a two-pass model of the authors' implementation, saved as safetensors (in
/// Python: safetensors.torch.save_file(model.state_dict(), "state.safetensors")). All sizes are read
/// from it; what it does not say is given by flags.
///
/// With --encoder it takes a Hugging Face directory (config.json, model.safetensors, tokenizer.json)
/// of a BertForTokenClassification. The model then has a reviser and no first pass: it labels all
/// words anew at each.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tapir import state.safetensors runs/snips --vocab words.txt --labels labels.txt --memory 5
  tapir import --encoder my-bert runs/ner")]
pub(crate) struct Import {
    /// The state dict, or with --encoder the directory
    #[arg(value_name = "FROM")]
    state: PathBuf,
    /// The model directory to write
    out: PathBuf,
    /// Read the Hugging Face directory of a fine-tuned BERT
    #[arg(long, conflicts_with_all =
        ["vocab", "labels", "heads", "memory", "delay", "threshold", "prefix"])]
    encoder: bool,
    /// Words by id from 3 on, one per line (ids 0 to 2 are padding, UNK and NULL); without it they
    /// are named by number
    #[arg(long)]
    vocab: Option<PathBuf>,
    /// Labels by id from 0 on, one per line, the padding label as `<pad>`; without it they are named
    /// by number
    #[arg(long)]
    labels: Option<PathBuf>,
    /// Attention heads of the reviser
    #[arg(long, default_value_t = 8)]
    heads: usize,
    /// Entries of the memory
    #[arg(long, default_value_t = 5)]
    memory: usize,
    /// Look-ahead in words
    #[arg(long, default_value_t = 0)]
    delay: usize,
    /// Default threshold of the policy, 0 to 1
    #[arg(long, default_value_t = 0.5)]
    threshold: f32,
    /// Name of the task, for the record
    #[arg(long, default_value = "")]
    task: String,
    /// The labels are parts of speech or the like: no IOB spans
    #[arg(long)]
    plain: bool,
    /// What stands in front of every name in the state dict
    #[arg(long, default_value = "")]
    prefix: String,
    /// Write over an existing directory
    #[arg(long)]
    force: bool,
}

impl Import {
    pub(crate) fn run(self) -> Result<()> {
        let parts = if self.encoder { self.read_encoder()? } else { self.read_state()? };
        let source = || self.state.display().to_string();
        parts.clone().load().with_context(source)?;
        crate::write_model(&parts, &self.out, self.force)?;
        writeln!(
            std::io::stdout(),
            "{}: {:.2} MB, {} labels",
            self.out.display(),
            parts.weights.len() as f64 / 1e6,
            parts.labels.len()
        )?;
        Ok(())
    }

    fn read_encoder(&self) -> Result<Parts> {
        let options =
            EncoderOptions { task: self.task.clone(), scheme: self.plain.then_some(Scheme::Plain) };
        Ok(tapir::import_encoder(&EncoderFiles::open(&self.state)?, &options)?)
    }

    fn read_state(&self) -> Result<Parts> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).with_context(|| path.display().to_string())
        };
        let labels = match &self.labels {
            Some(path) => Some(Labels::from_text(&read(path)?, &path.display().to_string())?),
            None => None,
        };
        let vocabulary = match &self.vocab {
            Some(path) => Some(
                Vocabulary::new(read(path)?.lines()).with_context(|| path.display().to_string())?,
            ),
            None => None,
        };
        let options = ImportOptions {
            prefix: self.prefix.clone(),
            heads: self.heads,
            memory: self.memory,
            delay: self.delay,
            threshold: self.threshold,
            task: self.task.clone(),
            scheme: if self.plain { Scheme::Plain } else { Scheme::Iob },
        };
        let file = self.state.display().to_string();
        Ok(tapir::import(Bytes::open(&self.state)?, &file, &options, labels, vocabulary)?)
    }
}
