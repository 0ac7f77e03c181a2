//! One file a format; this one holds what they share: the choice of a format, and readers and
//! writers of any.

use std::{
    fmt,
    fs::{self, File},
    io::{Read, Write as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use crate::{AtomicFile, Error, Result, Sentence, lines};

mod arw;
mod blocks;
mod columns;
mod conllu;
mod jsonl;
mod seq_in_out;

pub use columns::{Column, Columns};
pub use conllu::{Conllu, Tag};

/// How a corpus is laid out on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A directory with `seq.in` (words) and `seq.out` (labels), one sentence per line.
    SeqInOut,
    /// A word per line, in columns; a blank line ends a sentence.
    Columns,
    /// Alarm, Reminder & Weather, CoNLL layout: number, word, intent, label.
    Arw,
    /// Alarm, Reminder & Weather, TSV layout: an utterance a line, slots as character spans.
    ArwTsv,
    /// CoNLL-U, as Universal Dependencies uses it.
    Conllu,
    /// A JSON object per line: `{"tokens": […], "labels": […]}`.
    Jsonl,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::SeqInOut, Self::Columns, Self::Arw, Self::ArwTsv, Self::Conllu, Self::Jsonl];

    /// The name by which flags and task files call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SeqInOut => "seq-in-out",
            Self::Columns => "columns",
            Self::Arw => "arw",
            Self::ArwTsv => "arw-tsv",
            Self::Conllu => "conllu",
            Self::Jsonl => "jsonl",
        }
    }

    /// Recognises the format of a file or directory from its content.
    ///
    /// ```
    /// let file = std::env::temp_dir().join("tapir-doc-detect.jsonl");
    /// std::fs::write(&file, r#"{"tokens": ["hello"], "labels": ["O"]}"#)?;
    /// assert_eq!(tapir_data::Format::detect(&file)?, tapir_data::Format::Jsonl);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detect(path: &Path) -> Result<Self> {
        if seq_in_out::is_one(path) {
            return Ok(Self::SeqInOut);
        }
        if path.is_dir() {
            return Err(Error::file(
                path,
                "is a directory without seq.in and seq.out; expected those or a file",
            ));
        }
        let sample = Sample::read(path)?;
        let lines = sample.lines();
        Ok(if jsonl::looks_like(&lines) {
            Self::Jsonl
        } else if conllu::looks_like(&lines) {
            Self::Conllu
        } else if arw::looks_like_conll(&lines) {
            Self::Arw
        } else if arw::looks_like_tsv(&lines) {
            Self::ArwTsv
        } else {
            Self::Columns
        })
    }

    /// The format that a new file's name suggests: `.jsonl`, `.conllu`, no extension for a
    /// directory, else columns.
    pub fn from_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("jsonl" | "json" | "ndjson") => Self::Jsonl,
            Some("conllu") => Self::Conllu,
            Some(_) => Self::Columns,
            None => Self::SeqInOut,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Setting(format!("unknown format `{name}`; expected one of {names}"))
        })
    }
}

/// How to read a corpus: everything that its content does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The format; recognised from the content when absent.
    pub format: Option<Format>,
    /// Which columns of a column file hold words and labels.
    pub columns: Columns,
    /// What to take from CoNLL-U.
    pub conllu: Conllu,
}

/// A stream of sentences. After a bad sentence it goes on with the next one.
pub struct Reader {
    path: PathBuf,
    format: Format,
    sentences: Box<dyn Iterator<Item = Result<Sentence>> + Send>,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Empty,
    Reading,
    Finished,
}

/// Reads a corpus file or directory, sentence by sentence.
///
/// ```
/// let file = std::env::temp_dir().join("tapir-doc-read.bio");
/// std::fs::write(&file, "O\tplay\nB-artist\twestbam\n")?;
/// let sentences = tapir_data::read(&file, &tapir_data::Options::default())?.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(sentences, [tapir_data::Sentence::new(["play", "westbam"], ["O", "B-artist"])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: &Path, options: &Options) -> Result<Reader> {
    let format = match options.format {
        Some(format) => format,
        None => Format::detect(path)?,
    };
    let sentences: Box<dyn Iterator<Item = Result<Sentence>> + Send> = match format {
        Format::SeqInOut => Box::new(seq_in_out::open(path)?),
        Format::Columns => Box::new(columns::open(path, &options.columns)?),
        Format::Arw => Box::new(arw::open_conll(path)?),
        Format::ArwTsv => Box::new(arw::open_tsv(path)?),
        Format::Conllu => Box::new(conllu::open(path, options.conllu)?),
        Format::Jsonl => Box::new(jsonl::open(path)?),
    };
    Ok(Reader { path: path.into(), format, sentences, state: State::Empty })
}

/// The same for the files of a [`Format::SeqInOut`] that are in the program; `name` is what errors
/// call them.
#[cfg(feature = "corpus")]
pub(crate) fn read_seq_in_out(name: &Path, files: tapir_models::SplitFiles) -> Reader {
    let tapir_models::SplitFiles { words, labels, intents } = files;
    let sentences = Box::new(seq_in_out::from_text(name, words, labels, intents));
    Reader { path: name.into(), format: Format::SeqInOut, sentences, state: State::Empty }
}

/// The same for [`Format::Jsonl`] that is in the program.
#[cfg(feature = "corpus")]
pub(crate) fn read_jsonl(name: &Path, text: &'static str) -> Reader {
    let sentences = Box::new(jsonl::sentences(lines::Lines::new(name, text.as_bytes())));
    Reader { path: name.into(), format: Format::Jsonl, sentences, state: State::Empty }
}

/// Refuses a word that no session takes.
fn check_word(word: &str) -> std::result::Result<(), String> {
    let (bytes, limit) = (word.len(), tapir::LONGEST_WORD);
    if bytes > limit {
        return Err(format!("a word of {bytes} bytes; expected at most {limit}"));
    }
    Ok(())
}

impl Reader {
    /// The format being read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Leaves out bad sentences and counts them, instead of stopping at the first.
    pub fn skip_bad(self) -> SkipBad {
        SkipBad { reader: self, skipped: 0, first: None }
    }
}

impl Iterator for Reader {
    type Item = Result<Sentence>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Finished {
            return None;
        }
        let item = self.sentences.next();
        let before = std::mem::replace(&mut self.state, State::Reading);
        match &item {
            Some(Err(error)) if !error.is_bad_line() => self.state = State::Finished,
            Some(_) => {}
            None => {
                self.state = State::Finished;
                if before == State::Empty {
                    let reason = format!("holds no sentence; expected the format {}", self.format);
                    return Some(Err(Error::file(&self.path, reason)));
                }
            }
        }
        item
    }
}

/// A reader that leaves out bad sentences: see [`Reader::skip_bad`].
pub struct SkipBad {
    reader: Reader,
    skipped: u64,
    first: Option<Error>,
}

impl SkipBad {
    /// How many sentences were left out so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Why the first of them was left out.
    pub fn first(&self) -> Option<&Error> {
        self.first.as_ref()
    }
}

impl Iterator for SkipBad {
    type Item = Result<Sentence>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reader.next()? {
                Err(error) if error.is_bad_line() => {
                    self.skipped += 1;
                    self.first.get_or_insert(error);
                }
                item => return Some(item),
            }
        }
    }
}

/// A corpus file (or directory) under construction; it appears, whole, at [`Writer::finish`].
pub struct Writer {
    format: Format,
    conllu: Conllu,
    out: AtomicFile,
    /// `seq.out`, where the format has several files.
    labels_out: Option<AtomicFile>,
    /// `label`, there as well.
    intents_out: Option<AtomicFile>,
    sentences: u64,
    /// How many of them had an intent.
    intents_written: u64,
    text: String,
    labels: String,
    intents: String,
    /// Dropped last: takes away the directory that was made, if it stayed empty.
    _folder: Option<MadeFolder>,
}

/// A new directory, which goes again unless something is put into it.
struct MadeFolder(PathBuf);

impl Drop for MadeFolder {
    fn drop(&mut self) {
        // It fails where the directory is in use: then it should stay.
        let _ = fs::remove_dir(&self.0);
    }
}

impl Writer {
    /// Starts to write `path`; an existing one is an error unless `force`.
    pub fn create(path: &Path, format: Format, options: &Options, force: bool) -> Result<Self> {
        let mut folder = None;
        let (out, labels_out, intents_out) = if format == Format::SeqInOut {
            if !path.exists() {
                fs::create_dir_all(path).map_err(|error| Error::io(path, error))?;
                folder = Some(MadeFolder(path.into()));
            }
            (
                AtomicFile::create(&path.join("seq.in"), force)?,
                Some(AtomicFile::create(&path.join("seq.out"), force)?),
                Some(AtomicFile::create(&path.join(seq_in_out::INTENTS), force)?),
            )
        } else {
            (AtomicFile::create(path, force)?, None, None)
        };
        Ok(Self {
            format,
            conllu: options.conllu,
            out,
            labels_out,
            intents_out,
            sentences: 0,
            intents_written: 0,
            text: String::new(),
            labels: String::new(),
            intents: String::new(),
            _folder: folder,
        })
    }

    /// Writes one sentence, or says why the format cannot hold it and writes nothing.
    pub fn write(&mut self, sentence: &Sentence) -> Result<()> {
        self.text.clear();
        self.labels.clear();
        self.intents.clear();
        let with_intent = u64::from(sentence.intent.is_some());
        let rendered = if sentence.is_empty() || sentence.words.len() != sentence.labels.len() {
            Err("expected at least one word and as many labels as words".into())
        } else if self.format == Format::SeqInOut
            && self.intents_written != self.sentences * with_intent
        {
            Err("only some sentences have an intent; write jsonl instead".into())
        } else {
            match self.format {
                Format::SeqInOut => {
                    let Self { text, labels, intents, .. } = self;
                    seq_in_out::render(sentence, text, labels, intents)
                }
                Format::Columns => columns::render(sentence, &mut self.text),
                Format::Arw => arw::render_conll(sentence, &mut self.text),
                Format::ArwTsv => arw::render_tsv(sentence, &mut self.text),
                Format::Conllu => conllu::render(sentence, self.conllu, &mut self.text),
                Format::Jsonl => jsonl::render(sentence, &mut self.text),
            }
        };
        if let Err(reason) = rendered {
            let (path, sentence) = (self.out.path().into(), self.sentences + 1);
            return Err(Error::Unwritable { path, sentence, reason });
        }
        self.sentences += 1;
        self.intents_written += with_intent;
        put(&mut self.out, &self.text)?;
        for (out, text) in
            [(&mut self.labels_out, &self.labels), (&mut self.intents_out, &self.intents)]
        {
            out.as_mut().map_or(Ok(()), |out| put(out, text))?;
        }
        Ok(())
    }

    /// Gives the file its name, and says how many sentences it holds.
    pub fn finish(self) -> Result<u64> {
        self.out.commit()?;
        if let Some(labels) = self.labels_out {
            labels.commit()?;
        }
        if let Some(intents) = self.intents_out.filter(|_| self.intents_written > 0) {
            intents.commit()?;
        }
        Ok(self.sentences)
    }
}

fn put(out: &mut AtomicFile, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).map_err(|error| Error::io(out.path(), error))
}

/// A word or label that a format can hold, or the reason why it cannot.
fn writable<'a>(
    what: &str,
    text: &'a str,
    holds: impl Fn(char) -> bool,
) -> Result<&'a str, String> {
    if text.is_empty() {
        return Err(format!("a {what} is empty"));
    }
    match text.chars().find(|c| !holds(*c)) {
        Some(c) => Err(format!(
            "the {what} {text:?} contains {c:?}, which this format cannot hold; write jsonl instead"
        )),
        None => Ok(text),
    }
}

/// The first lines of a file, for recognising its format.
struct Sample(String);

impl Sample {
    fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        let file: File = lines::open_file(path)?;
        file.take(64 * 1024).read_to_end(&mut bytes).map_err(|error| Error::io(path, error))?;
        if bytes.is_empty() {
            return Err(Error::file(path, "is empty; expected a corpus"));
        }
        if bytes.len() == 64 * 1024
            && let Some(last) = memchr::memrchr(b'\n', &bytes)
        {
            bytes.truncate(last + 1);
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(Self(text.trim_start_matches('\u{feff}').to_owned()))
    }

    fn lines(&self) -> Vec<&str> {
        self.0.lines().collect()
    }
}
