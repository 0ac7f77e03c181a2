//! A directory with `seq.in` and `seq.out`: words and labels of a sentence on the same line of two
//! files, and if there is a file `label`, its intent in a third. SNIPS, ATIS and most slot-filling
//! sets come this way.

use std::path::{Path, PathBuf};

use super::{check_word, writable};
use crate::{Error, Result, Sentence, Text, lines::Lines};

/// The directory that `path` means: itself, or the one that holds it when it is a `seq.in`.
fn folder(path: &Path) -> PathBuf {
    if path.file_name().is_some_and(|name| name == "seq.in") && !path.is_dir() {
        path.parent().unwrap_or(Path::new("")).into()
    } else {
        path.into()
    }
}

pub(super) fn is_one(path: &Path) -> bool {
    let folder = folder(path);
    folder.join("seq.in").is_file() && folder.join("seq.out").is_file()
}

/// The file of intents.
pub(super) const INTENTS: &str = "label";

struct Pairs {
    words: Lines,
    labels: Lines,
    intents: Option<Lines>,
}

/// Opens the two files of a directory.
pub(super) fn open(path: &Path) -> Result<impl Iterator<Item = Result<Sentence>> + use<>> {
    let folder = folder(path);
    if folder.is_file() {
        return Err(Error::file(path, "is a file; expected a directory with seq.in and seq.out"));
    }
    let intents = folder.join(INTENTS);
    Ok(Pairs {
        words: Lines::open(&folder.join("seq.in"))?,
        labels: Lines::open(&folder.join("seq.out"))?,
        intents: intents.is_file().then(|| Lines::open(&intents)).transpose()?,
    })
}

/// The content of the three files.
#[cfg(feature = "corpus")]
pub(super) fn from_text(
    folder: &Path,
    words: &'static str,
    labels: &'static str,
    intents: &'static str,
) -> impl Iterator<Item = Result<Sentence>> + use<> {
    let lines = |file: &str, text: &'static str| Lines::new(&folder.join(file), text.as_bytes());
    Pairs {
        words: lines("seq.in", words),
        labels: lines("seq.out", labels),
        intents: Some(lines(INTENTS, intents)),
    }
}

impl Iterator for Pairs {
    type Item = Result<Sentence>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // Read at every turn, so that the files stay side by side.
            let intent = match self.intents.as_mut().map(Lines::next_line).transpose() {
                Ok(intent) => intent.map(|line| line.map(|line| Text::new(line.trim()))),
                Err(error) => return Some(Err(error)),
            };
            let (words, labels) = (self.words.next_line(), self.labels.next_line());
            let (words, labels) = match (words, labels) {
                (Ok(words), Ok(labels)) => (words, labels),
                (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
            };
            if words.is_none() && labels.is_none() {
                return None;
            }
            let has = (words.is_some(), labels.is_some());
            let mut sentence = Sentence::new(
                words.unwrap_or("").split_ascii_whitespace(),
                labels.unwrap_or("").split_ascii_whitespace(),
            );
            let found = (sentence.words.len(), sentence.labels.len());
            match found {
                (0, 0) => {}
                (words, labels) if words == labels => {
                    if let Err(reason) = sentence.words.iter().try_for_each(|word| check_word(word))
                    {
                        return Some(Err(self.words.error(reason)));
                    }
                    match intent {
                        None => return Some(Ok(sentence)),
                        Some(intent) => {
                            sentence.intent = intent.filter(|intent| !intent.is_empty());
                            let known = sentence.intent.is_some();
                            return Some(known.then_some(sentence).ok_or_else(|| self.no_intent()));
                        }
                    }
                }
                _ => return Some(Err(self.unequal(found, has))),
            }
        }
    }
}

impl Pairs {
    fn no_intent(&self) -> Error {
        let reason = format!("the file {INTENTS} has no intent for it; expected one per line");
        self.words.error(reason)
    }

    fn unequal(&self, (words, labels): (usize, usize), has: (bool, bool)) -> Error {
        match has {
            (true, true) => self.labels.error(format!(
                "{labels} label(s) for the {words} word(s) on the same line of seq.in; expected as many"
            )),
            (true, false) => self.words.error(format!(
                "seq.out ends after line {}; expected as many lines as in seq.in",
                self.labels.number()
            )),
            _ => self.labels.error(format!(
                "seq.in ends after line {}; expected as many lines as in seq.out",
                self.words.number()
            )),
        }
    }
}

/// A sentence as a line of `seq.in`, of `seq.out` and, if it has an intent, of `label`.
pub(super) fn render(
    sentence: &Sentence,
    words: &mut String,
    labels: &mut String,
    intents: &mut String,
) -> Result<(), String> {
    for (index, (word, label)) in sentence.tokens().enumerate() {
        if word.starts_with('\u{feff}') || label.starts_with('\u{feff}') {
            return Err(format!(
                "{word:?} {label:?} begins with a byte-order mark; write jsonl instead"
            ));
        }
        let space = if index == 0 { "" } else { " " };
        words.extend([space, writable("word", word, |c| !c.is_ascii_whitespace())?]);
        labels.extend([space, writable("label", label, |c| !c.is_ascii_whitespace())?]);
    }
    words.push('\n');
    labels.push('\n');
    if let Some(intent) = &sentence.intent {
        let holds = |c| !matches!(c, '\n' | '\r');
        if intent.trim() != intent.as_str() {
            return Err(format!("the intent {intent:?} begins or ends with a space"));
        }
        intents.extend([writable("intent", intent, holds)?, "\n"]);
    }
    Ok(())
}
