//! `tapir tag`: label text.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tapir::{Action, FinalPass, Intent, Label, Session, Token, Tokenizer, Update};
use unicode_width::UnicodeWidthStr;

use crate::lines::{Batches, LineBatch, in_order};
use crate::terminal::width;

/// Longer sentences than this are refused: all their labels are kept until they are printed.
const LONGEST_SENTENCE: usize = 10_000;

/// Label text, one sentence per line
///
/// The text is read word by word, as it would arrive from a recogniser; --steps shows what happened
/// at each word.
///
/// Examples:
///   tapir tag "play some jazz by miles davis"
///   tapir tag --steps "add this song to my playlist"
///   tapir tag notes.txt --format conll
///   tapir tag --text notes.txt                        # the words, not the file
///   cat sentences.txt | tapir tag - --format json
///
/// JSON has an object for each line of the input, whatever is on it: `line` (its number), `text`,
/// `words`, `labels`, `probabilities`, `offsets` (where each word begins and ends in the text, in
/// characters), `spans` with their `text` and `offset`, and `actions`.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Tag {
    /// A file, or the text itself, or - for standard input (also when it is left out and input is
    /// piped)
    #[arg(value_name = "FILE|TEXT")]
    input: Option<String>,
    /// This text, even if it looks like the name of a file
    #[arg(long, conflicts_with = "input")]
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
    /// How many threads label lines [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Format {
    /// Words with their labels underneath
    Table,
    /// The labelled stretches
    Spans,
    /// A word and its label per line, a blank line between sentences
    Conll,
    /// A JSON object per sentence
    Json,
}

/// A line of the input.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// From 1.
    number: usize,
    text: &'a str,
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
        if let Some(text) = self.text.clone() {
            return self.label(std::io::Cursor::new(text), "the text", None);
        }
        match self.input.as_deref() {
            Some("-") => self.label(std::io::stdin(), "standard input", None),
            None if !std::io::stdin().is_terminal() => {
                self.label(std::io::stdin(), "standard input", None)
            }
            None => {
                bail!(
                    "nothing to label: give a text, a file, or - for standard input (tapir tag --help)"
                )
            }
            Some(path) if is_path(path) => {
                if Path::new(path).is_dir() {
                    bail!(
                        "{path}: is a folder; give a file, or --text {path:?} to label these words"
                    );
                }
                let file = File::open(path).with_context(|| {
                    format!("{path}: cannot be read; give --text {path:?} to label these words")
                })?;
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
    fn label(
        self,
        input: impl Read + Send + 'static,
        name: &str,
        bytes: Option<u64>,
    ) -> Result<()> {
        let model = self.model.open()?;
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.threads.map_or_else(cores, usize::from);
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let tokenizer =
            if self.pretokenized { Tokenizer::Whitespace } else { model.config().tokenizer };
        let (tag, place) = (Arc::new(self), Arc::<str>::from(name));
        // With so much undo a session holds every label until the sentence is printed.
        let mut options = tag.model.session_options().undo(LONGEST_SENTENCE);
        if tag.no_final_pass {
            options = options.final_pass(FinalPass::Policy);
        }
        let sessions: Vec<Session> =
            (0..threads).map(|_| model.session_with(options)).collect::<Result<_, _>>()?;
        let workers = sessions.into_iter().map(|mut session| {
            let (tag, place) = (tag.clone(), place.clone());
            move |batch: LineBatch| {
                let mut text = Vec::new();
                let mut sentence = |(line, number): (&String, usize)| {
                    let line = Line { number, text: line.trim_end_matches(['\n', '\r']) };
                    tag.sentence(&mut text, &mut session, line, tokenizer, colour)
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
        line: Line,
        tokenizer: Tokenizer,
        colour: bool,
    ) -> Result<()> {
        let tokens = tokenizer.tokens(line.text);
        // A program that reads JSON counts lines; a person has no use for those without words.
        if tokens.is_empty() && self.format != Format::Json {
            return Ok(());
        }
        if tokens.len() > LONGEST_SENTENCE {
            bail!(
                "{} words are more than the {LONGEST_SENTENCE} of the longest sentence; put a sentence on each line",
                tokens.len()
            );
        }
        let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
        let updates = read(session, &words)?;
        if self.format == Format::Json {
            return Ok(writeln!(out, "{}", self.json(session, line, &tokens, &updates)?)?);
        }
        self.show(out, session, &words, &updates, colour)
    }

    fn json(
        &self,
        session: &Session,
        line: Line,
        tokens: &[Token],
        updates: &[Update],
    ) -> Result<serde_json::Value> {
        let text: Vec<char> = line.text.chars().collect();
        let spans = session.spans().into_iter().map(|span| {
            let (start, end) = (tokens[span.start].start, tokens[span.end - 1].end);
            json!({
                "label": span.label, "start": span.start, "end": span.end,
                "offset": [start, end], "text": text[start..end].iter().collect::<String>(),
            })
        });
        let mut sentence = json!({
            "line": line.number,
            "text": line.text,
            "words": tokens.iter().map(|token| &token.word).collect::<Vec<_>>(),
            "offsets": tokens.iter().map(|token| [token.start, token.end]).collect::<Vec<_>>(),
            "labels": session.labels(),
            "probabilities": session.probabilities(),
            "spans": spans.collect::<Vec<_>>(),
            "actions": session.actions(),
        });
        if let Some(intent) = session.intent() {
            let outside = intent.is_outside();
            let Intent { label, probability, in_domain, .. } = intent;
            sentence["intent"] = json!({ "label": label, "probability": probability });
            if let Some(in_domain) = in_domain {
                sentence["intent"]["in_domain"] = json!(in_domain);
                sentence["intent"]["outside"] = json!(outside);
            }
        }
        if self.steps {
            sentence["steps"] = serde_json::to_value(updates)?;
        }
        Ok(sentence)
    }

    fn show(
        &self,
        out: &mut impl Write,
        session: &Session,
        words: &[&str],
        updates: &[Update],
        colour: bool,
    ) -> Result<()> {
        if self.steps {
            steps(out, words, updates, session.model().config().delay, colour)?;
        }
        let labels = session.labels();
        let intent = session.intent().map(|intent| match intent.in_domain {
            Some(in_domain) if intent.is_outside() => {
                format!("{} (not for this model: {in_domain:.2})", intent.label)
            }
            _ => intent.label.to_string(),
        });
        match self.format {
            Format::Table => {
                table(out, words, &labels)?;
                if let Some(intent) = intent {
                    writeln!(out, "intent: {intent}\n")?;
                }
            }
            Format::Spans => {
                if let Some(intent) = intent {
                    writeln!(out, "intent\t{intent}")?;
                }
                for span in session.spans() {
                    writeln!(out, "{}\t{}", span.label, words[span.start..span.end].join(" "))?;
                }
                writeln!(out)?;
            }
            Format::Conll => {
                if let Some(intent) = intent {
                    writeln!(out, "# intent = {intent}")?;
                }
                for (word, label) in words.iter().zip(&labels) {
                    writeln!(out, "{word}\t{label}")?;
                }
                writeln!(out)?;
            }
            Format::Json => {}
        }
        Ok(())
    }
}

/// Reads a sentence; gives the update of every word and that of the end.
fn read(session: &mut Session, words: &[&str]) -> Result<Vec<Update>> {
    session.reset();
    let mut updates = words.iter().map(|word| session.push(word)).collect::<Result<Vec<_>, _>>()?;
    updates.push(session.finish()?.update);
    Ok(updates)
}

/// Words with their labels underneath, folded at the width of the terminal.
fn table(out: &mut impl Write, words: &[&str], labels: &[Label]) -> Result<()> {
    let widths: Vec<usize> =
        words.iter().zip(labels).map(|(word, label)| word.width().max(label.width())).collect();
    let most = width();
    let mut start = 0;
    while start < words.len() {
        // As many columns as fit, and at least one.
        let mut end = start + 1;
        let mut used = widths[start];
        while end < words.len() && used + 2 + widths[end] <= most {
            used += 2 + widths[end];
            end += 1;
        }
        let columns = start..end;
        let row = |cell: &dyn Fn(usize) -> String| {
            let cells: Vec<String> = columns
                .clone()
                .map(|i| {
                    let text = cell(i);
                    let space = " ".repeat(widths[i] - text.width());
                    text + &space
                })
                .collect();
            cells.join("  ").trim_end().to_owned()
        };
        writeln!(out, "{}", row(&|i| words[i].to_owned()))?;
        writeln!(out, "{}\n", row(&|i| labels[i].to_string()))?;
        start = end;
    }
    Ok(())
}

/// A row for every word: what the policy thought of it, and what changed.
fn steps(
    out: &mut impl Write,
    words: &[&str],
    updates: &[Update],
    delay: usize,
    colour: bool,
) -> Result<()> {
    let (mark, end) = if colour { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
    let width = words.iter().map(|word| word.width()).max().unwrap_or(0).max(5);
    for (i, update) in updates.iter().enumerate() {
        let word = words.get(i).copied().unwrap_or("(end)");
        let space = " ".repeat(width.saturating_sub(word.width()));
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
                Some(old) => {
                    format!("{mark}{}: {old} -> {}{end}", words[edit.position], edit.label)
                }
                None if edit.position + delay == i => edit.label.to_string(),
                None => format!("{}: {}", words[edit.position], edit.label),
            })
            .chain(
                update
                    .intent
                    .iter()
                    .filter(|intent| intent.changed)
                    .map(|intent| format!("{mark}intent: {}{end}", intent.label)),
            )
            .chain(update.settled.iter().flat_map(|settled| {
                let spans = settled.spans.iter().map(|span| {
                    format!("settled: {} {}", span.label, words[span.start..span.end].join(" "))
                });
                spans.chain(settled.intent.then(|| "settled: intent".to_owned()))
            }))
            .collect();
        // Where the last word was revised already, the end has nothing to say.
        if i == words.len() && update.action.is_none() && edits.is_empty() {
            continue;
        }
        writeln!(out, "{word}{space}  {policy}  {action}  {}", edits.join(", "))?;
    }
    writeln!(out)?;
    Ok(())
}

/// Is the text the name of a file or a folder, or does it look like one? Words that are apart by
/// spaces do not, unless there is such a file.
fn is_path(text: &str) -> bool {
    if text.len() >= 4096 || text.contains('\n') {
        return false;
    }
    let path = Path::new(text);
    let looks_like_one = || {
        let extension = path.extension().and_then(|extension| extension.to_str());
        // A sentence may end in a full stop and a price may have one inside: `jazz.`, `3.50`.
        let is_name = |extension: &str| {
            (1..=6).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphanumeric())
                && extension.chars().any(|c| c.is_ascii_alphabetic())
        };
        !text.contains(char::is_whitespace)
            && (text.contains(['/', '\\']) || extension.is_some_and(is_name))
    };
    path.exists() || looks_like_one()
}

/// How far a file has been labelled: on a terminal, unless the labels go there, too.
fn progress(bytes: Option<u64>) -> ProgressBar {
    match bytes {
        Some(bytes) if std::io::stderr().is_terminal() && !std::io::stdout().is_terminal() => {
            let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {eta} to go");
            ProgressBar::new(bytes)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        }
        _ => ProgressBar::hidden(),
    }
}
