//! Column files: one word per line, its label in another column. CoNLL-2003, MIT Movie and Restaurant,
//! and many more.
//!
//! Columns are separated by tabs, or by spaces where a line has no tab. `-DOCSTART-` lines are
//! skipped, and so are comments before a sentence: `# id = 1`, or `# ` and more words before a tab.

use std::cell::Cell;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    Sample,
    blocks::{Blocks, Parse, first_column, last_column},
    writable,
};
use crate::{Error, Result, Sentence, lines::Lines};

/// A column, by number (from 1; -1 is the last) or by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Column {
    /// Counted from 1, or from the end when negative.
    Number(i64),
    /// One of [`Columns::names`].
    Name(String),
}

impl From<&str> for Column {
    fn from(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number)
    }
}

/// Which columns hold words and labels. What is left open is found out from the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// The column of words: the first unless said otherwise.
    pub word: Option<Column>,
    /// The column of labels: the last unless said otherwise or recognised in the first of two.
    pub label: Option<Column>,
    /// The column of the sentence's intent, if there is one; that of its first word counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<Column>,
    /// What the columns are called, in order; CoNLL-2003's `word`, `pos`, `chunk`, `ner` when
    /// empty.
    pub names: Vec<String>,
}

/// A column that was found: counted from either end, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    FromStart(usize),
    FromEnd(usize),
}

const CONLL_2003: [&str; 4] = ["word", "pos", "chunk", "ner"];

impl Columns {
    fn position(&self, column: &Column) -> Result<Position> {
        match column {
            Column::Number(0) => Err(Error::Setting(
                "column 0 does not exist; columns count from 1, or -1 for the last".into(),
            )),
            Column::Number(number) if *number > 0 => Ok(Position::FromStart(*number as usize - 1)),
            Column::Number(number) => Ok(Position::FromEnd(number.unsigned_abs() as usize - 1)),
            Column::Name(name) => {
                let names: Vec<&str> = if self.names.is_empty() {
                    CONLL_2003.to_vec()
                } else {
                    self.names.iter().map(String::as_str).collect()
                };
                names.iter().position(|known| known == name).map(Position::FromStart).ok_or_else(
                    || {
                        Error::Setting(format!(
                            "no column is called `{name}`; expected one of {}",
                            names.join(", ")
                        ))
                    },
                )
            }
        }
    }
}

struct Parser {
    word: Position,
    label: Position,
    intent: Option<Position>,
    /// How many columns the lines so far have, where one is counted from the end: another number
    /// would make another column of it.
    count: Cell<Option<usize>>,
}

/// Opens a column file.
pub(super) fn open(
    path: &Path,
    columns: &Columns,
) -> Result<impl Iterator<Item = Result<Sentence>> + use<>> {
    let lines = Lines::open(path)?;
    let label_first = columns.word.is_none() && columns.label.is_none() && has_labels_first(path)?;
    let label = match &columns.label {
        Some(column) => columns.position(column)?,
        None if label_first => Position::FromStart(0),
        None => Position::FromEnd(0),
    };
    let word = match &columns.word {
        Some(column) => columns.position(column)?,
        None if label == Position::FromStart(0) => Position::FromStart(1),
        None => Position::FromStart(0),
    };
    let intent = columns.intent.as_ref().map(|column| columns.position(column)).transpose()?;
    Ok(Blocks::new(lines, Parser { word, label, intent, count: Cell::new(None) }))
}

impl Parse for Parser {
    fn parse(&self, line: &str, sentence: &mut Sentence) -> Result<(), String> {
        if line.starts_with("-DOCSTART-") || (sentence.is_empty() && is_comment(line)) {
            return Ok(());
        }
        let has_tab = line.as_bytes().contains(&b'\t');
        let (line, separator) = (line.trim_matches(' '), if has_tab { b'\t' } else { b' ' });
        let (Some(word), Some(label)) =
            (self.word.column(line, separator), self.label.column(line, separator))
        else {
            return Err(self.too_few(line));
        };
        let (word, label) = (word.trim_matches(' '), label.trim_matches(' '));
        if word.is_empty() || label.is_empty() {
            return Err(format!("empty word or label in {line:?}; expected a word and a label"));
        }
        if std::ptr::eq(word, label) {
            return Err(self.too_few(line));
        }
        self.check_count(line)?;
        if let Some(intent) = self.intent.filter(|_| sentence.is_empty()) {
            let intent = intent.column(line, separator).filter(|intent| !intent.is_empty());
            let intent =
                intent.ok_or_else(|| format!("no intent in {line:?}; expected a column of it"))?;
            sentence.intent = Some(intent.into());
        }
        sentence.push(word, label);
        Ok(())
    }
}

impl Position {
    /// The column of a line in this place. Several spaces count as one separator, several tabs do
    /// not.
    fn column(self, line: &str, separator: u8) -> Option<&str> {
        let mut rest = line;
        match self {
            Self::FromStart(number) => {
                for _ in 0..number {
                    rest = first_column(rest, separator).1?;
                    if separator == b' ' {
                        rest = rest.trim_start_matches(' ');
                    }
                }
                Some(first_column(rest, separator).0)
            }
            Self::FromEnd(number) => {
                for _ in 0..number {
                    rest = last_column(rest, separator).0?;
                    if separator == b' ' {
                        rest = rest.trim_end_matches(' ');
                    }
                }
                Some(last_column(rest, separator).1)
            }
        }
    }
}

impl Parser {
    fn check_count(&self, line: &str) -> Result<(), String> {
        let from_end = |place| matches!(place, Position::FromEnd(_));
        if ![Some(self.word), Some(self.label), self.intent].into_iter().flatten().any(from_end) {
            return Ok(());
        }
        let found = count(line);
        match self.count.replace(self.count.get().or(Some(found))) {
            Some(before) if before != found => Err(format!(
                "{found} columns in {line:?}, where the lines before have {before}; expected as many \
                 in every line, or the number of each column (--word 1 --label 2)"
            )),
            _ => Ok(()),
        }
    }

    fn too_few(&self, line: &str) -> String {
        let found = count(line);
        let needed = [self.word, self.label].map(|place| match place {
            Position::FromStart(number) | Position::FromEnd(number) => number + 1,
        });
        let needed = needed[0].max(needed[1]).max(2);
        format!(
            "{found} column(s) in {line:?}; expected at least {needed}, separated by tabs or spaces"
        )
    }
}

/// How many columns a line has.
fn count(line: &str) -> usize {
    if line.contains('\t') {
        line.split('\t').count()
    } else {
        line.split(' ').filter(|column| !column.is_empty()).count()
    }
}

/// Is a line before a sentence's first word a comment, and not the word `#` with its label?
fn is_comment(line: &str) -> bool {
    let Some(text) = line.strip_prefix("# ") else { return false };
    let (first, rest) = first_column(text, b'\t');
    let is_pair = text.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    rest.is_some() && !first.trim().is_empty() || is_pair
}

/// MIT's files exist in both orders: is the first of two columns the one of IOB labels?
fn has_labels_first(path: &Path) -> Result<bool> {
    let sample = Sample::read(path)?;
    let mut first_is_iob = false;
    let mut second_is_iob = true;
    for line in sample.lines() {
        let mut columns = line.split(['\t', ' ']).filter(|column| !column.is_empty());
        let (Some(first), Some(second)) = (columns.next(), columns.next()) else { continue };
        if !is_iob(first) || columns.next().is_some() {
            return Ok(false);
        }
        first_is_iob |= first != "O";
        second_is_iob &= is_iob(second);
    }
    Ok(first_is_iob && !second_is_iob)
}

fn is_iob(text: &str) -> bool {
    text == "O" || text.starts_with("B-") || text.starts_with("I-")
}

/// A sentence as `word TAB label` lines and a blank line; an intent stands between the two.
pub(super) fn render(sentence: &Sentence, text: &mut String) -> Result<(), String> {
    let holds = |c| !matches!(c, '\t' | '\n' | '\r');
    for (word, label) in sentence.tokens() {
        if ["\u{feff}", "-DOCSTART-", "# "].iter().any(|start| word.starts_with(start)) {
            return Err(format!(
                "the word {word:?} means something else in this format; write jsonl instead"
            ));
        }
        if [word, label].iter().any(|text| text.starts_with(' ') || text.ends_with(' ')) {
            return Err(format!(
                "the word {word:?} or its label {label:?} ends with a space; write jsonl instead"
            ));
        }
        text.extend([writable("word", word, holds)?, "\t"]);
        if let Some(intent) = &sentence.intent {
            text.extend([writable("intent", intent, holds)?, "\t"]);
        }
        text.extend([writable("label", label, holds)?, "\n"]);
    }
    text.push('\n');
    Ok(())
}
