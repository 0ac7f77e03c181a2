//! `tapir tag`: label text.

use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tapir::{Action, FinalPass, Model, Session, Tokenizer, Update};

/// Longer lines than this are refused: no sentence is as long, and a file without lines should not fill the memory.
const LONGEST_LINE: u64 = 1 << 20;

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

impl Tag {
    pub(crate) fn run(self) -> Result<()> {
        let model = self.model.open()?;
        let mut session = self.model.session(&model);
        if self.no_final_pass {
            session = session.final_pass(FinalPass::Policy);
        }
        let tokenizer = if self.pretokenized { Tokenizer::Whitespace } else { model.config().tokenizer };
        let mut out = BufWriter::new(std::io::stdout().lock());
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let mut sentence = |number: usize, text: &str| -> Result<()> {
            let words = tokenizer.words(text);
            if words.is_empty() {
                return Ok(());
            }
            let line = || format!("line {number}");
            let updates = read(&mut session, &words).with_context(line)?;
            self.show(&mut out, &model, &session, &words, &updates, colour)?;
            Ok(())
        };
        match self.text.as_deref() {
            Some("-") => lines(std::io::stdin().lock(), "standard input", &mut sentence)?,
            None if !std::io::stdin().is_terminal() => {
                lines(std::io::stdin().lock(), "standard input", &mut sentence)?;
            }
            None => {
                bail!("nothing to label: give a text, a file, or - for standard input (tapir tag --help)")
            }
            Some(text) => match file(text) {
                Some(path) => {
                    let file = std::fs::File::open(&path).with_context(|| path.display().to_string())?;
                    lines(BufReader::new(file), text, &mut sentence)?;
                }
                None => text.lines().zip(1..).try_for_each(|(line, number)| sentence(number, line))?,
            },
        }
        out.flush()?;
        Ok(())
    }

    fn show(
        &self,
        out: &mut impl Write,
        model: &Model,
        session: &Session,
        words: &[String],
        updates: &[Update],
        colour: bool,
    ) -> Result<()> {
        if self.steps && self.format != Format::Json {
            steps(out, words, updates, model.config().delay, colour)?;
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
fn file(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    (text.len() < 4096 && path.is_file()).then(|| path.to_owned())
}

/// Every line with its number; an error names the line.
fn lines(mut input: impl BufRead, name: &str, f: &mut impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut input)
            .take(LONGEST_LINE + 1)
            .read_until(b'\n', &mut line)
            .with_context(|| name.to_owned())?;
        if read == 0 {
            break;
        }
        if read as u64 > LONGEST_LINE {
            bail!("{name}, line {number}: longer than {LONGEST_LINE} bytes; put a sentence on each line");
        }
        let text =
            std::str::from_utf8(&line).with_context(|| format!("{name}, line {number}: not a text file"))?;
        f(number, text).with_context(|| name.to_owned())?;
    }
    Ok(())
}
