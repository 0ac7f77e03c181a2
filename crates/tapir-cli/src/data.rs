//! `tapir data`: convert corpora and count them.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use tapir::{Scheme, Tokenizer, WordVectors};
use tapir_data::{
    Column, Error, Format, Options, Sentence, Stats, Tag, Task, Tokenization, Writer,
    fitting_tokenizer, read,
};

/// Convert corpora from any format to any other, and count them
#[derive(Subcommand)]
pub(crate) enum Data {
    Convert(Convert),
    Stats(Show),
    Tokens(Tokens),
}

/// Convert a corpus from any format to any other
///
/// Formats: seq-in-out (a directory with seq.in and seq.out), columns, arw, arw-tsv, conllu, jsonl.
#[derive(Args)]
#[command(after_help = "Examples:
  tapir data convert data/snips/test test.jsonl
  tapir data convert eng.testa ner.conllu --label pos
  tapir data convert en_ewt-ud-dev.conllu dev.tsv --tag xpos")]
pub(crate) struct Convert {
    /// The corpus to read: a file, or a directory with seq.in and seq.out
    input: PathBuf,
    /// What to write
    output: PathBuf,
    /// The format to read [default: recognised from the content]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// The format to write [default: from the name of the output]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
    #[command(flatten)]
    reading: Reading,
    /// Write over what is there
    #[arg(long)]
    force: bool,
    /// Say what was done as JSON
    #[arg(long)]
    json: bool,
}

/// How to read a corpus, where its content does not tell
#[derive(Args)]
struct Reading {
    /// The column of words, by number from 1, or -1 for the last, or by name (word, pos, chunk,
    /// ner)
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    word: Option<String>,
    /// The column of labels, likewise
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    label: Option<String>,
    /// The tags to take from CoNLL-U: upos or xpos
    #[arg(long, value_name = "TAGS", value_parser = ["upos", "xpos"])]
    tag: Option<String>,
    /// Keep the multiword-token lines of CoNLL-U as words labelled _, as the paper does
    #[arg(long)]
    multiword: bool,
    /// Leave out sentences that cannot be read or written, and count them
    #[arg(long)]
    skip_bad: bool,
}

impl Reading {
    fn apply(&self, options: &mut Options) {
        if let Some(word) = &self.word {
            options.columns.word = Some(Column::from(word.as_str()));
        }
        if let Some(label) = &self.label {
            options.columns.label = Some(Column::from(label.as_str()));
        }
        match self.tag.as_deref() {
            Some("xpos") => options.conllu.tag = Tag::Xpos,
            Some(_) => options.conllu.tag = Tag::Upos,
            None => {}
        }
        options.conllu.multiword |= self.multiword;
    }
}

/// Count a task's corpus as the paper's appendix does, and report on its health
#[derive(Args)]
#[command(after_help = "Examples:
  tapir data stats snips
  tapir data stats ewt --data ~/UD_English-EWT --multiword
  tapir data stats my-task.toml --json")]
pub(crate) struct Show {
    /// A task that ships (snips, arw, movie, conll-ner, conll-chunk, conll-pos, ewt) or the path of
    /// a task file
    task: String,
    /// The folder that holds the corpus [default: data/TASK; SNIPS ships]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Word vectors, to see what they cover [default: those that ship]
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measure how well a tokenizer splits the raw text of a treebank (CoNLL-U with `# text` lines)
#[derive(Args)]
#[command(after_help = "Examples:
  tapir data tokens en_ewt-ud-test.conllu
  tapir data tokens en_ewt-ud-test.conllu --tokenizer whitespace")]
pub(crate) struct Tokens {
    /// A CoNLL-U file
    file: PathBuf,
    /// spoken, written or whitespace
    #[arg(long, default_value = "written", value_parser = tokenizer)]
    tokenizer: Tokenizer,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn tokenizer(text: &str) -> Result<Tokenizer, String> {
    serde_json::from_value(text.into())
        .map_err(|_| "expected spoken, written or whitespace".to_owned())
}

impl Tokens {
    fn run(self) -> Result<()> {
        let counts = Tokenization::of(&self.file, self.tokenizer)?;
        let mut out = std::io::stdout();
        if self.json {
            let mut report = serde_json::to_value(counts)?;
            report["f1"] = counts.f1().into();
            writeln!(out, "{report:#}")?;
        } else {
            write!(out, "{counts}")?;
        }
        Ok(())
    }
}

impl Data {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Convert(command) => command.run(),
            Self::Tokens(tokens) => tokens.run(),
            Self::Stats(command) => command.run(),
        }
    }
}

impl Convert {
    fn run(self) -> Result<()> {
        let mut options = Options { format: self.from, ..Options::default() };
        self.reading.apply(&mut options);
        let to = self.to.unwrap_or_else(|| Format::from_name(&self.output));
        let mut reader = read(&self.input, &options)?;
        let from = reader.format();
        let mut writer = Writer::create(&self.output, to, &options, self.force)?;
        let mut skipped = 0;
        let mut first = None;
        for sentence in &mut reader {
            match sentence.and_then(|sentence: Sentence| writer.write(&sentence)) {
                Err(error) if self.reading.skip_bad && error.is_bad_line() => {
                    skipped += 1;
                    first.get_or_insert(error);
                }
                result => result?,
            }
        }
        let written = writer.finish()?;
        if self.json {
            let report = serde_json::json!({
                "from": from.name(), "to": to.name(), "sentences": written, "skipped": skipped,
            });
            writeln!(std::io::stdout(), "{report}")?;
        } else {
            writeln!(
                std::io::stdout(),
                "{}: {written} sentences, from {from} to {to}",
                self.output.display()
            )?;
        }
        tell_skipped(skipped, first.as_ref());
        Ok(())
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let mut task = Task::open(&self.task)?;
        let mut options = task.options();
        self.reading.apply(&mut options);
        (task.columns, task.conllu) = (options.columns, options.conllu);
        let vectors = match &self.vectors {
            Some(path) => WordVectors::find(path)?,
            None => WordVectors::embedded()?,
        };
        let (corpus, skipped) = task.load_with(self.data.as_deref(), self.reading.skip_bad)?;
        let stats = Stats::of(&corpus, task.scheme, Some(&vectors));
        if self.json {
            let mut report = serde_json::to_value(&stats)?;
            report["task"] = task.name.into();
            report["skipped"] = skipped.into();
            writeln!(std::io::stdout(), "{report:#}")?;
        } else {
            let tokenizer = match task.tokenizer {
                Some(tokenizer) => format!("{tokenizer:?}"),
                None => format!("{:?}, by its words", fitting_tokenizer(&corpus)),
            };
            let mut out = std::io::stdout();
            write!(out, "{}\n{stats}", heading(&task))?;
            writeln!(out, "  tokenizer                     {}", tokenizer.to_lowercase())?;
            tell_skipped(skipped, None);
        }
        Ok(())
    }
}

fn heading(task: &Task) -> String {
    let title = if task.title.is_empty() { &task.name } else { &task.title };
    let counted = match (task.format, task.conllu.multiword) {
        (Some(Format::Conllu), true) => " (multiword-token lines count as words)",
        (Some(Format::Conllu), false) => " (syntactic words)",
        _ => "",
    };
    let split = if task.has_valid() {
        String::new()
    } else {
        format!(
            " ({:.0} % of training for validation, seed {})",
            100.0 * task.split.valid,
            task.split.seed
        )
    };
    let labels = if task.scheme.of_model() == Scheme::Iob { ", IOB labels" } else { "" };
    format!("{title}{counted}{split}{labels}")
}

fn tell_skipped(skipped: u64, first: Option<&Error>) {
    match first {
        Some(first) => eprintln!("skipped {skipped} bad sentence(s); the first: {first}"),
        None if skipped > 0 => eprintln!("skipped {skipped} bad sentence(s)"),
        None => {}
    }
}
