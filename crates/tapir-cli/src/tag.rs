//! `tapir tag`: label text.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tapir::{Action, FinalPass, Session, Tokenizer, Update};

use crate::lines::{Batch, Batches, in_order};

/// Longer sentences than this are refused: all their labels are kept until they are printed.
const LONGEST_SENTENCE: usize = 10_000;

/// Label text, a sentence a line
///
/// The text is read word by word, as it would arrive from a recogniser; --steps shows what happened at each word.
///
/// Examples:
///   tapir tag "play some jazz by miles davis"
///   tapir tag --steps "add this song to my playlist"
///   tapir tag notes.txt --format conll
///   cat sentences.txt | tapir tag - --format json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Tag {
    /// The text; or a file; or - for standard input (also when it is left out and input is piped)
    text: Option<String>,
    /// How labels are shown
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Show the update of every word
    #[arg(long)]
    steps: bool,
    #[command(flatten)]
    model: crate::model::Choice,
    /// Take words as they are, separated by spaces
    #[arg(long)]
    pretokenized: bool,
    /// Leave the last word to the policy instead of revising at the end of each sentence
    #[arg(long)]
    no_final_pass: bool,
    /// How many threads label lines [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Format {
    /// Words with their labels underneath
    Table,
    /// The labelled stretches
    Spans,
    /// A word and its label a line, a blank line between sentences
    Conll,
    /// A JSON object a sentence
    Json,
}

/// What became of a batch of lines.
struct Labelled {
    text: Vec<u8>,
    /// How much of the input this is.
    bytes: u64,
    error: Option<anyhow::Error>,
}

impl Tag {
    pub(crate) fn run(self) -> Result<()> {
        match self.text.as_deref() {
            Some("-") => self.label(std::io::stdin(), "standard input", None),
            None if !std::io::stdin().is_terminal() => self.label(std::io::stdin(), "standard input", None),
            None => {
                bail!("nothing to label: give a text, a file, or - for standard input (tapir tag --help)")
            }
            Some(path) if is_file(path) => {
                let file = File::open(path).with_context(|| path.to_owned())?;
                let bytes = file.metadata().with_context(|| path.to_owned())?.len();
                let name = path.to_owned();
                self.label(file, &name, Some(bytes))
            }
            Some(text) => {
                let text = std::io::Cursor::new(text.to_owned());
                self.label(text, "the text", None)
            }
        }
    }

    /// Labels every line of the input, which is so many bytes long if that is known.
    fn label(self, input: impl Read + Send + 'static, name: &str, bytes: Option<u64>) -> Result<()> {
        let model = self.model.open()?;
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.threads.map_or_else(cores, usize::from);
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let tokenizer = if self.pretokenized { Tokenizer::Whitespace } else { model.config().tokenizer };
        let (tag, place) = (Arc::new(self), Arc::<str>::from(name));
        let last = if tag.no_final_pass { FinalPass::Policy } else { FinalPass::Revise };
        // With so much undo a session holds every label until the sentence is printed.
        let options = tag.model.session_options().final_pass(last).undo(LONGEST_SENTENCE);
        let sessions: Vec<Session> =
            (0..threads).map(|_| model.session_with(options)).collect::<Result<_, _>>()?;
        let workers = sessions.into_iter().map(|mut session| {
            let (tag, place) = (tag.clone(), place.clone());
            move |batch: Batch| {
                let mut text = Vec::new();
                let mut sentence = |(line, number): (&String, usize)| {
                    let words = tokenizer.words(line);
                    tag.sentence(&mut text, &mut session, &words, colour)
                        .with_context(|| format!("{place}, line {number}"))
                };
                let result = batch.lines.iter().zip(batch.first..).try_for_each(&mut sentence);
                Labelled { text, bytes: batch.bytes, error: result.err().or(batch.error) }
            }
        });
        let progress = progress(bytes);
        let mut out = std::io::stdout().lock();
        let result = in_order(Batches::new(input, name), workers, |batch: Labelled| {
            out.write_all(&batch.text)?;
            out.flush()?;
            progress.inc(batch.bytes);
            batch.error.map_or(Ok(()), Err)
        });
        progress.finish_and_clear();
        result
    }

    fn sentence(
        &self,
        out: &mut impl Write,
        session: &mut Session,
        words: &[String],
        colour: bool,
    ) -> Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        if words.len() > LONGEST_SENTENCE {
            bail!(
                "{} words are more than the {LONGEST_SENTENCE} of the longest sentence; put a sentence on each line",
                words.len()
            );
        }
        let updates = read(session, words)?;
        self.show(out, session, words, &updates, colour)
    }

    fn show(
        &self,
        out: &mut impl Write,
        session: &Session,
        words: &[String],
        updates: &[Update],
        colour: bool,
    ) -> Result<()> {
        if self.steps && self.format != Format::Json {
            steps(out, words, updates, session.model().config().delay, colour)?;
        }
        let labels = session.labels();
        match self.format {
            Format::Table => {
                let width = |i: usize| words[i].chars().count().max(labels[i].chars().count());
                for row in [
                    words.iter().map(String::as_str).collect::<Vec<_>>(),
                    labels.iter().map(|l| &**l).collect(),
                ] {
                    let cells: Vec<String> = row
                        .iter()
                        .enumerate()
                        .map(|(i, cell)| format!("{cell:<width$}", width = width(i)))
                        .collect();
                    writeln!(out, "{}", cells.join("  ").trim_end())?;
                }
                writeln!(out)?;
            }
            Format::Spans => {
                for span in session.spans() {
                    writeln!(out, "{}\t{}", span.label, words[span.start..span.end].join(" "))?;
                }
                writeln!(out)?;
            }
            Format::Conll => {
                for (word, label) in words.iter().zip(&labels) {
                    writeln!(out, "{word}\t{label}")?;
                }
                writeln!(out)?;
            }
            Format::Json => {
                let mut sentence = json!({
                    "words": words,
                    "labels": labels,
                    "probabilities": session.probabilities(),
                    "spans": session.spans(),
                    "actions": session.actions(),
                });
                if self.steps {
                    sentence["steps"] = serde_json::to_value(updates)?;
                }
                writeln!(out, "{sentence}")?;
            }
        }
        Ok(())
    }
}

/// Reads a sentence; gives the update of every word and that of the end.
fn read(session: &mut Session, words: &[String]) -> Result<Vec<Update>> {
    session.reset();
    let mut updates = words.iter().map(|word| session.push(word)).collect::<Result<Vec<_>, _>>()?;
    updates.push(session.finish()?.update);
    Ok(updates)
}

/// A row for every word: what the policy thought of it, and what changed.
fn steps(
    out: &mut impl Write,
    words: &[String],
    updates: &[Update],
    delay: usize,
    colour: bool,
) -> Result<()> {
    let (mark, end) = if colour { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
    let width = words.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(5);
    for (i, update) in updates.iter().enumerate() {
        let word = words.get(i).map_or("(end)", String::as_str);
        let policy = update.policy.map_or("     ".to_owned(), |value| format!("{value:.3}"));
        let action = match update.action {
            Some(Action::Write) => "WRITE ",
            Some(Action::Revise) => "REVISE",
            None => "      ",
        };
        let edits: Vec<String> = update
            .edits
            .iter()
            .map(|edit| match &edit.old {
                Some(old) => format!("{mark}{}: {old} -> {}{end}", words[edit.position], edit.label),
                None if edit.position + delay == i => edit.label.to_string(),
                None => format!("{}: {}", words[edit.position], edit.label),
            })
            .collect();
        writeln!(out, "{word:<width$}  {policy}  {action}  {}", edits.join(", "))?;
    }
    writeln!(out)?;
    Ok(())
}

/// Is the text the name of a file?
fn is_file(text: &str) -> bool {
    text.len() < 4096 && Path::new(text).is_file()
}

/// How far a file has been labelled: on a terminal, unless the labels go there, too.
fn progress(bytes: Option<u64>) -> ProgressBar {
    match bytes {
        Some(bytes) if std::io::stderr().is_terminal() && !std::io::stdout().is_terminal() => {
            let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {eta} to go");
            ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        }
        _ => ProgressBar::hidden(),
    }
}
