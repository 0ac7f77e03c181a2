//! Task files: which corpus, how to read it, and how to score it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tapir::Tokenizer;

#[cfg(feature = "corpus")]
use crate::format::{read_jsonl, read_seq_in_out};
use crate::{
    Columns, Conllu, Corpus, CorpusScheme, Error, Format, Options, Random, Reader, Result,
    Sentence, Split, read,
};

/// A corpus and what to do with it.
///
/// ```
/// let task = tapir_data::Task::open("movie")?;
/// assert_eq!(task.max_length, 200);
/// assert_eq!(task.score, tapir_data::Metric::F1);
/// # Ok::<(), tapir_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// What the task is called.
    pub name: String,
    /// What the task is, in a few words.
    #[serde(default)]
    pub title: String,
    /// The folder of the corpus, relative to the task file; `data/<name>` of the working directory
    /// when absent, or the corpus that ships where the program was built with it.
    pub data: Option<PathBuf>,
    /// Other names that the folder may have under `data`.
    #[serde(default)]
    pub folders: Vec<String>,
    /// The training split.
    pub train: Files,
    /// The validation split; cut out of training when absent.
    pub valid: Option<Files>,
    /// The test split.
    pub test: Files,
    /// What recognisers heard of training sentences: a file of labelled sentences, in any format that
    /// is recognised from its content. Presets with `heard = true` learn from it, too.
    pub heard: Option<PathBuf>,
    /// How to cut the validation split out of training.
    #[serde(default)]
    pub split: Cut,
    /// The format; recognised from the content when absent.
    pub format: Option<Format>,
    /// Which columns of a column file hold words and labels.
    #[serde(default)]
    pub columns: Columns,
    /// What to take from CoNLL-U.
    #[serde(default)]
    pub conllu: Conllu,
    /// How the labels make spans; they are converted to what models have when the corpus is read.
    pub scheme: CorpusScheme,
    /// How plain text is split into words as this corpus is; found out when absent, see
    /// [`fitting_tokenizer`](crate::fitting_tokenizer).
    pub tokenizer: Option<Tokenizer>,
    /// How results are scored.
    pub score: Metric,
    /// Longer sentences are left out.
    #[serde(default = "max_length")]
    pub max_length: usize,
}

fn max_length() -> usize {
    200
}

/// The name of a split's file or directory, or several names of which the first that exists counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Files {
    /// The one name.
    One(PathBuf),
    /// The names to try, in order.
    Any(Vec<PathBuf>),
}

impl Files {
    fn names(&self) -> &[PathBuf] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Any(names) => names,
        }
    }

    fn find(&self, folder: &Path) -> Option<PathBuf> {
        self.names().iter().map(|name| folder.join(name)).find(|path| path.exists())
    }

    /// The names, for a person.
    fn list(&self) -> String {
        let names: Vec<_> = self.names().iter().map(|name| name.display().to_string()).collect();
        names.join(" or ")
    }
}

/// How much of training becomes validation, for a corpus that comes without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cut {
    /// The part of the training sentences, rounded up.
    pub valid: f64,
    /// Which sentences: the same seed takes the same ones everywhere.
    pub seed: u64,
}

impl Default for Cut {
    fn default() -> Self {
        Self { valid: 0.1, seed: 1 }
    }
}

/// How results are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// F1 of whole spans.
    F1,
    /// The share of words with the right label.
    Accuracy,
}

/// Where the files of a task's corpus are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The training split.
    pub train: PathBuf,
    /// The validation split, unless it is cut out of training.
    pub valid: Option<PathBuf>,
    /// The test split.
    pub test: PathBuf,
}

/// The splits of a corpus, opened.
struct Readers {
    train: Reader,
    valid: Option<Reader>,
    test: Reader,
}

impl Task {
    /// The names of the tasks that ship, in the paper's order.
    ///
    /// ```
    /// assert!(tapir_data::Task::shipped().any(|name| name == "conll-pos"));
    /// ```
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        tapir_models::tasks().iter().map(|(name, _)| *name)
    }

    /// A task that ships, by name, or a user's own, by the path of its file.
    pub fn open(name: &str) -> Result<Self> {
        if let Some(text) = tapir_models::task(name) {
            return Self::parse(&Path::new("tasks").join(name).with_extension("toml"), text);
        }
        let path = Path::new(name);
        if !path.exists() && path.extension().is_none() {
            let names = Self::shipped().collect::<Vec<_>>().join(", ");
            return Err(Error::Setting(format!(
                "unknown task `{name}`; expected {names} or the path of a task file"
            )));
        }
        let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        let mut task = Self::parse(path, &text)?;
        task.data = task.data.map(|data| path.parent().unwrap_or(Path::new("")).join(data));
        Ok(task)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let task: Self =
            toml::from_str(text).map_err(|error| Error::file(path, error.to_string()))?;
        let Cut { valid, .. } = task.split;
        if !(0.0..1.0).contains(&valid) {
            return Err(Error::file(
                path,
                format!("split.valid is {valid}; expected a part of 1, such as 0.1"),
            ));
        }
        Ok(task)
    }

    /// How to read this task's files.
    pub fn options(&self) -> Options {
        Options { format: self.format, columns: self.columns.clone(), conllu: self.conllu }
    }

    /// Finds the corpus: in `data`, in a folder of it that is called like the task, or where the
    /// task file says.
    pub fn find(&self, data: Option<&Path>) -> Result<Paths> {
        let folder = self.folder(data).ok_or_else(|| self.missing(data))?;
        let find = |files: &Files| {
            files
                .find(&folder)
                .ok_or_else(|| Error::file(&folder, format!("lacks {}", files.list())))
        };
        Ok(Paths {
            train: find(&self.train)?,
            valid: self.valid.as_ref().map(find).transpose()?,
            test: find(&self.test)?,
        })
    }

    /// Where to look for the corpus.
    fn root<'a>(&'a self, data: Option<&'a Path>) -> &'a Path {
        data.or(self.data.as_deref()).unwrap_or(Path::new("data"))
    }

    /// The first folder that has a training split.
    fn folder(&self, data: Option<&Path>) -> Option<PathBuf> {
        let root = self.root(data);
        let named = std::iter::once(&self.name).chain(&self.folders).map(|name| root.join(name));
        let mut folders = std::iter::once(root.to_owned()).chain(named);
        folders.find(|folder| self.train.find(folder).is_some())
    }

    /// There is no corpus: says where one is expected and, for a task that ships, had.
    fn missing(&self, data: Option<&Path>) -> Error {
        let mut reason = format!(
            "no corpus for the task {name}; expected {files} here or in a folder {folders}; --data DIR points at \
             another folder",
            name = self.name,
            files = self.train.list(),
            folders = [std::slice::from_ref(&self.name), &self.folders].concat().join(" or "),
        );
        // A task file that ships begins with that.
        let text = tapir_models::task(&self.name).unwrap_or_default();
        for line in text.lines().map_while(|line| line.strip_prefix('#')) {
            reason.extend(["\n ", line]);
        }
        Error::file(self.root(data), reason)
    }

    /// Opens the splits: on disk or, if there is no corpus and the task's own ships, in the
    /// program.
    fn readers(&self, data: Option<&Path>) -> Result<Readers> {
        #[cfg(feature = "corpus")]
        if data.is_none()
            && self.data.is_none()
            && self.folder(None).is_none()
            && let Some(corpus) = self.shipped_corpus()
        {
            let place = |split: Split| format!("the embedded data/{}/{}", self.name, split.name());
            let read = |split, files: tapir_models::SplitFiles| {
                read_seq_in_out(Path::new(&place(split)), files)
            };
            return Ok(Readers {
                train: read(Split::Train, corpus.train),
                valid: Some(read(Split::Valid, corpus.valid)),
                test: read(Split::Test, corpus.test),
            });
        }
        let paths = self.find(data)?;
        let read = |path: &Path| read(path, &self.options());
        Ok(Readers {
            train: read(&paths.train)?,
            valid: paths.valid.as_deref().map(read).transpose()?,
            test: read(&paths.test)?,
        })
    }

    /// The corpus in the program, if this is its task and not somebody's own of the same name.
    #[cfg(feature = "corpus")]
    fn shipped_corpus(&self) -> Option<&'static tapir_models::CorpusFiles> {
        let shipped = Self::open(&self.name).ok()?;
        let files = |task: &Self| {
            (task.train.clone(), task.valid.clone(), task.test.clone(), task.heard.clone())
        };
        tapir_models::corpus(&self.name).filter(|_| files(&shipped) == files(self))
    }

    /// Reads the whole corpus; a bad sentence is an error.
    pub fn load(&self, data: Option<&Path>) -> Result<Corpus> {
        self.load_with(data, false).map(|(corpus, _)| corpus)
    }

    /// Reads the whole corpus; with `skip_bad`, leaves out bad sentences and returns how many they
    /// were.
    pub fn load_with(&self, data: Option<&Path>, skip_bad: bool) -> Result<(Corpus, u64)> {
        let readers = self.readers(data)?;
        let mut bad = 0;
        let mut corpus = Corpus::default();
        let mut sentences = |reader: Reader| -> Result<Vec<Sentence>> {
            let mut all: Vec<Sentence> = if skip_bad {
                let mut reader = reader.skip_bad();
                let all = reader.by_ref().collect::<Result<_>>()?;
                bad += reader.skipped();
                all
            } else {
                reader.collect::<Result<_>>()?
            };
            corpus.too_long += self.drop_long(&mut all);
            Ok(all)
        };
        let mut train = sentences(readers.train)?;
        let mut valid = readers.valid.map(&mut sentences).transpose()?;
        let mut test = sentences(readers.test)?;
        let scheme = self.scheme.seen_in(&train);
        for sentence in train.iter_mut().chain(valid.iter_mut().flatten()).chain(&mut test) {
            scheme.convert(sentence);
        }
        (corpus.train, corpus.valid) = match valid {
            Some(valid) => (train, valid),
            None => self.split.cut(train),
        };
        corpus.test = test;
        Ok((corpus, bad))
    }

    /// What recognisers heard of training sentences, labelled, where the task has such: of its file,
    /// or those that ship. Labels are converted as the corpus's are, and sentences that are too long
    /// are left out.
    ///
    /// ```
    /// let heard = tapir_data::Task::open("snips")?.read_heard(None)?;
    /// assert!(heard.len() > 2000 && heard.iter().all(|sentence| sentence.intent.is_some()));
    /// assert!(tapir_data::Task::open("movie")?.read_heard(None)?.is_empty());
    /// # Ok::<(), tapir_data::Error>(())
    /// ```
    pub fn read_heard(&self, data: Option<&Path>) -> Result<Vec<Sentence>> {
        let Some(name) = &self.heard else { return Ok(Vec::new()) };
        let path = self.folder(data).map(|folder| folder.join(name));
        let reader = match (path.filter(|path| path.exists()), self.shipped_heard()) {
            (Some(path), _) => read(&path, &Options { format: None, ..self.options() })?,
            (None, Some(reader)) => reader,
            (None, None) => {
                let reason = format!("lacks {}, which `heard` names", name.display());
                return Err(Error::file(self.root(data), reason));
            }
        };
        let mut sentences = reader.collect::<Result<Vec<_>>>()?;
        let scheme = self.scheme.seen_in(&sentences);
        sentences.iter_mut().for_each(|sentence| scheme.convert(sentence));
        self.drop_long(&mut sentences);
        Ok(sentences)
    }

    /// Leaves out sentences that are too long: so many.
    fn drop_long(&self, sentences: &mut Vec<Sentence>) -> usize {
        let before = sentences.len();
        sentences.retain(|sentence| sentence.len() <= self.max_length);
        before - sentences.len()
    }

    /// Those in the program, which has some only with the feature `corpus`.
    fn shipped_heard(&self) -> Option<Reader> {
        #[cfg(feature = "corpus")]
        return self
            .shipped_corpus()
            .map(|corpus| read_jsonl(Path::new("the embedded heard.jsonl"), corpus.heard));
        #[cfg(not(feature = "corpus"))]
        None
    }

    /// Does this task's corpus come with a validation split of its own?
    pub fn has_valid(&self) -> bool {
        self.valid.is_some()
    }

    /// The file of a split, where it has one.
    pub fn path(&self, split: Split, data: Option<&Path>) -> Result<Option<PathBuf>> {
        let paths = self.find(data)?;
        Ok(match split {
            Split::Train => Some(paths.train),
            Split::Valid => paths.valid,
            Split::Test => Some(paths.test),
        })
    }
}

impl Cut {
    /// Training and validation sentences, both in their order in the file.
    pub fn cut(self, sentences: Vec<Sentence>) -> (Vec<Sentence>, Vec<Sentence>) {
        let mut order: Vec<usize> = (0..sentences.len()).collect();
        Random::new(self.seed).shuffle(&mut order);
        let count = (sentences.len() as f64 * self.valid).ceil() as usize;
        let mut is_valid = vec![false; sentences.len()];
        for index in &order[..count.min(order.len())] {
            is_valid[*index] = true;
        }
        let (mut train, mut valid) =
            (Vec::with_capacity(sentences.len() - count), Vec::with_capacity(count));
        for (sentence, is_valid) in sentences.into_iter().zip(is_valid) {
            if is_valid { valid.push(sentence) } else { train.push(sentence) }
        }
        (train, valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_task_parses_and_is_called_by_its_name() {
        for name in Task::shipped() {
            assert_eq!(Task::open(name).unwrap().name, name);
        }
    }

    #[test]
    fn a_cut_is_the_same_every_time_and_as_large_as_the_papers() {
        let sentences: Vec<_> =
            (0..9775).map(|i| Sentence::new([i.to_string()], ["O".to_owned()])).collect();
        let (train, valid) = Cut::default().cut(sentences.clone());
        assert_eq!((train.len(), valid.len()), (8797, 978));
        assert_eq!((train, valid), Cut::default().cut(sentences));
    }

    #[test]
    fn a_mistake_in_a_task_file_is_named() {
        let error = Task::parse(Path::new("my.toml"), "name = 'x'\ntrian = 'train'")
            .unwrap_err()
            .to_string();
        assert!(error.contains("my.toml") && error.contains("trian"), "{error}");
    }

    #[test]
    fn what_was_heard_is_where_the_task_says_or_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("said.jsonl");
        std::fs::write(folder.path().join("train"), "two\tB-amount\n").unwrap();
        let text = "name = 'shop'\ntrain = 'train'\ntest = 'train'\nscheme = 'iob1'\nscore = 'f1'";
        let task = |more: &str| Task::parse(Path::new("shop.toml"), &format!("{text}\n{more}"));
        let data = Some(folder.path());
        assert_eq!(task("").unwrap().read_heard(data).unwrap(), []);
        let task = task("heard = 'said.jsonl'").unwrap();
        let error = task.read_heard(data).unwrap_err().to_string();
        assert!(error.contains("lacks said.jsonl"), "{error}");
        std::fs::write(&heard, r#"{"tokens": ["too"], "labels": ["I-amount"]}"#).unwrap();
        assert_eq!(task.read_heard(data).unwrap(), [Sentence::new(["too"], ["B-amount"])]);
        std::fs::write(&heard, r#"{"tokens": ["too"], "labels": []}"#).unwrap();
        let error = task.read_heard(data).unwrap_err().to_string();
        assert!(error.contains("said.jsonl") && error.contains("1 tokens"), "{error}");
    }

    #[test]
    fn an_unknown_task_lists_those_that_there_are() {
        let error = Task::open("snip").unwrap_err().to_string();
        assert!(error.contains("snips, arw, movie"), "{error}");
    }
}
