//! CoNLL-U, the format of Universal Dependencies: ten columns, of which words and one of two tag
//! columns are taken.
//!
//! Syntactic words are the standard. The paper keeps multiword-token lines (`1-2 don't _`) as words
//! labelled `_`: [`Conllu::multiword`] does the same. Empty nodes (`8.1`) are skipped.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Parse, first_column},
    writable,
};
use crate::{Result, Sentence, lines::Lines};

/// What to take from CoNLL-U.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conllu {
    /// Which tags are the labels.
    pub tag: Tag,
    /// Keep multiword-token lines as words, as the paper does.
    pub multiword: bool,
}

/// A column of tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tag {
    /// Universal tags, column 4.
    #[default]
    Upos,
    /// The language's own tags, column 5.
    Xpos,
}

/// The comment that says what a sentence is about: `# intent = PlayMusic`.
const INTENT: &str = "intent";

/// Opens a CoNLL-U file.
pub(super) fn open(
    path: &Path,
    options: Conllu,
) -> Result<impl Iterator<Item = Result<Sentence>> + use<>> {
    Ok(Blocks::new(Lines::open(path)?, options))
}

/// A line's first column.
enum Id {
    Word,
    Multiword,
    Empty,
}

fn id(text: &str) -> Option<Id> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if number(text) {
        return Some(Id::Word);
    }
    if let Some((first, last)) = text.split_once('-') {
        return (number(first) && number(last)).then_some(Id::Multiword);
    }
    let (word, empty) = text.split_once('.')?;
    (number(word) && number(empty)).then_some(Id::Empty)
}

/// Number, form, universal and other tag of a line that has ten columns.
fn columns(line: &str) -> Option<[&str; 4]> {
    let (number, rest) = first_column(line, b'\t');
    let (word, rest) = first_column(rest?, b'\t');
    let (_lemma, rest) = first_column(rest?, b'\t');
    let (upos, rest) = first_column(rest?, b'\t');
    let (xpos, rest) = first_column(rest?, b'\t');
    let others = 1 + memchr::memchr_iter(b'\t', rest?.as_bytes()).count();
    (others == 5).then_some([number, word, upos, xpos])
}

impl Parse for Conllu {
    fn parse(&self, line: &str, sentence: &mut Sentence) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix('#') {
            let intent = comment.split_once('=').filter(|(key, _)| key.trim() == INTENT);
            if let Some(intent) = intent.map(|(_, intent)| intent.trim()).filter(|i| !i.is_empty())
            {
                sentence.intent = Some(intent.into());
            }
            return Ok(());
        }
        let Some([number, word, upos, xpos]) = columns(line) else {
            let found = line.split('\t').count();
            return Err(format!(
                "{found} column(s) in {line:?}; expected the 10 of CoNLL-U, separated by tabs"
            ));
        };
        let label = match (id(number), self.tag) {
            (Some(Id::Word), Tag::Upos) => upos,
            (Some(Id::Word), Tag::Xpos) => xpos,
            (Some(Id::Multiword), _) if self.multiword => "_",
            (Some(Id::Multiword | Id::Empty), _) => return Ok(()),
            (None, _) => {
                return Err(format!(
                    "{number:?} is no word number; expected one such as 3, 3-4 or 3.1"
                ));
            }
        };
        if word.is_empty() || label.is_empty() {
            return Err(format!("empty word or tag in {line:?}; expected a word and a tag, or _"));
        }
        sentence.push(word, label);
        Ok(())
    }
}

/// The first word decides: a mistake further down should be an error, not another format.
pub(super) fn looks_like(lines: &[&str]) -> bool {
    let first = lines.iter().find(|line| !line.is_empty() && !line.starts_with('#'));
    first.and_then(|line| columns(line)).is_some_and(|[number, ..]| id(number).is_some())
}

/// A sentence as numbered words with nothing but their tag.
pub(super) fn render(
    sentence: &Sentence,
    options: Conllu,
    text: &mut String,
) -> Result<(), String> {
    let holds = |c| !matches!(c, '\t' | '\n' | '\r');
    if let Some(intent) = &sentence.intent {
        text.extend(["# ", INTENT, " = ", writable("intent", intent, holds)?, "\n"]);
    }
    for (number, (word, label)) in sentence.tokens().enumerate() {
        text.extend([&(number + 1).to_string(), "\t", writable("word", word, holds)?, "\t_\t"]);
        let label = writable("label", label, holds)?;
        match options.tag {
            Tag::Upos => text.extend([label, "\t_"]),
            Tag::Xpos => text.extend(["_\t", label]),
        }
        text.push_str("\t_\t_\t_\t_\t_\n");
    }
    text.push('\n');
    Ok(())
}
