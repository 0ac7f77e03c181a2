//! `tapir vectors`: make, shrink and look into tables of word vectors.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use tapir::WordVectors;
use tapir_data::{Task, VectorFormat, VectorOptions, VectorTable};

/// Make, shrink and look into tables of word vectors
#[derive(Subcommand)]
pub(crate) enum Vectors {
    Build(Build),
    Prune(Prune),
    Lookup(Lookup),
}

/// Make the small form that ships out of GloVe, word2vec or a safetensors table
#[derive(Args)]
#[command(after_help = "Examples:
  tapir vectors build glove.6B.300d.txt glove.tapirvec --notice 'GloVe 6B, PDDL'
  tapir vectors build GoogleNews-vectors-negative300.bin.gz news.tapirvec")]
pub(crate) struct Build {
    /// GloVe or word2vec text, word2vec binary (each also gzipped), or a safetensors table
    input: PathBuf,
    /// The file to write
    output: PathBuf,
    /// The format to read: text, word2vec, compact, tapirvec [default: recognised from the content]
    #[arg(long, value_name = "FORMAT")]
    from: Option<VectorFormat>,
    /// The `word TAB row` file of a safetensors table [default: NAME.words.tsv beside it]
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// Where the vectors come from and under which licence: kept in the file
    #[arg(long, value_name = "TEXT")]
    notice: Option<String>,
    /// Leave out lines that cannot be read, and count them
    #[arg(long)]
    skip_bad: bool,
    /// Write over what is there
    #[arg(long)]
    force: bool,
    /// Say what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Keep only the words of some tasks or of a list: they are found exactly as before
#[derive(Args)]
#[command(group = clap::ArgGroup::new("wanted").required(true).multiple(true))]
#[command(after_help = "Example:
  tapir vectors prune en_300d.tapirvec snips.tapirvec --task snips")]
pub(crate) struct Prune {
    /// The table to shrink, in any format; en_300d.tapirvec ships
    input: PathBuf,
    /// The file to write
    output: PathBuf,
    /// Keep the words of this task's corpus (repeatable)
    #[arg(long, value_name = "TASK", group = "wanted")]
    task: Vec<String>,
    /// The folder that holds the corpora [default: data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep the words of this file, one per line
    #[arg(long, value_name = "FILE", group = "wanted")]
    list: Option<PathBuf>,
    /// Write over what is there
    #[arg(long)]
    force: bool,
    /// Say what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Show what the table knows about words
#[derive(Args)]
pub(crate) struct Lookup {
    /// A table made by `tapir vectors build`; en_300d.tapirvec ships
    vectors: PathBuf,
    /// The words to look up
    #[arg(required = true)]
    words: Vec<String>,
    /// Print JSON, a line per word, with the whole vector
    #[arg(long)]
    json: bool,
}

impl Vectors {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Build(command) => command.run(),
            Self::Prune(command) => command.run(),
            Self::Lookup(command) => command.run(),
        }
    }
}

impl Build {
    fn run(self) -> Result<()> {
        let options =
            VectorOptions { format: self.from, words: self.words, skip_bad: self.skip_bad };
        let (mut table, skipped) = VectorTable::read(&self.input, &options)?;
        if let Some(notice) = self.notice {
            table.set_notice(notice);
        }
        write(&table, &self.output, self.force, self.json)?;
        if skipped > 0 {
            eprintln!("skipped {skipped} bad line(s)");
        }
        Ok(())
    }
}

impl Prune {
    fn run(self) -> Result<()> {
        let mut wanted = Vec::new();
        for task in &self.task {
            let corpus = Task::open(task)?.load(self.data.as_deref())?;
            let sentences = corpus.train_and_valid().chain(&corpus.test);
            wanted.extend(sentences.flat_map(|sentence| &sentence.words).map(ToString::to_string));
        }
        if let Some(list) = &self.list {
            let text = fs::read_to_string(list).with_context(|| list.display().to_string())?;
            wanted.extend(text.lines().map(ToOwned::to_owned));
        }
        let (mut table, _) = VectorTable::read(&self.input, &VectorOptions::default())?;
        table.prune(wanted.iter().map(String::as_str));
        write(&table, &self.output, self.force, self.json)
    }
}

fn write(table: &VectorTable, output: &std::path::Path, force: bool, json: bool) -> Result<()> {
    table.write(output, force)?;
    let vectors = WordVectors::open(output)?;
    let bytes = fs::metadata(output)?.len();
    let (words, rows, dim, scale) = (vectors.len(), vectors.rows(), vectors.dim(), vectors.scale());
    if json {
        let report = serde_json::json!({
            "words": words, "rows": rows, "dim": dim, "scale": scale, "bytes": bytes,
        });
        writeln!(std::io::stdout(), "{report}")?;
    } else {
        let size = bytes as f64 / 1e6;
        writeln!(
            std::io::stdout(),
            "{}: {words} words, {rows} rows of {dim}, {size:.2} MB",
            output.display()
        )?;
    }
    Ok(())
}

impl Lookup {
    fn run(self) -> Result<()> {
        let vectors = WordVectors::find(&self.vectors)?;
        let mut out = std::io::stdout().lock();
        for word in &self.words {
            let (row, vector) = (vectors.row(word), vectors.vector(word));
            if self.json {
                writeln!(
                    out,
                    "{}",
                    serde_json::json!({"word": word, "row": row, "vector": vector})
                )?;
                continue;
            }
            match (row, vector) {
                (Some(row), Some(vector)) => {
                    let norm = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
                    let first: Vec<String> =
                        vector.iter().take(4).map(|number| format!("{number:.3}")).collect();
                    writeln!(out, "{word}\trow {row}\tnorm {norm:.2}\t{} …", first.join(" "))?;
                }
                _ => writeln!(out, "{word}\tno vector")?,
            }
        }
        Ok(())
    }
}
