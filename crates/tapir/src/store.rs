//! A model on disk: a directory of `config.json`, `labels.txt`, `vocab.txt`, `model.safetensors` and,
//! if its reviser reads word pieces, `pieces.txt`; if it labels utterances, too, `intents.txt`.
//!
//! At any instant the directory holds one whole model. A new one is written beside it and exchanged
//! with it in one step; where the system cannot do that, the old one is set aside under a name by
//! which a reader finds it. A reader opens all files before it reads any, and begins again if the
//! directory was exchanged in between.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{CONFIG, INTENTS, LABELS, PIECES, VOCABULARY, WEIGHTS};
use crate::vectors::WordVectors;
use crate::{Bytes, Config, Error, Labels, Model, Parts, Result, Vocabulary, WordPieces};

/// What a training run notes of itself.
const PRESET: &str = "preset.toml";

/// Text files of a model may not be larger than this.
const LARGEST_TEXT: u64 = 1 << 28;
/// So often is a model looked at that is replaced while it is opened, which takes far less time
/// than to write one.
const TRIES: usize = 100;

impl Model {
    /// Opens a model directory.
    ///
    /// ```no_run
    /// let model = tapir::Model::open("runs/snips")?;
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        Parts::open(dir)?.load().map_err(|error| match error {
            // Parts know their file names; here is where the files are.
            Error::Invalid { file, reason } => Error::invalid(dir.join(file).display(), reason),
            other => other,
        })
    }

    /// Writes the model to a new directory.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.parts().save(dir)
    }
}

impl Parts {
    /// Reads a model directory. What happens to its files afterwards does not change what was read,
    /// and a model that is [replaced](Self::replace) meanwhile is read as it was before or as it is
    /// afterwards.
    ///
    /// `dir` may also be the folder of a training run, which has its model inside.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        for _ in 0..TRIES {
            let place = locate(&of_run(dir))?;
            let before = Identity::of(&place);
            let files = Files::open(&place);
            if Identity::of(&place) == before {
                return files?.read();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Err(Error::invalid(
            dir.display(),
            "is replaced again and again; try again when that has ended",
        ))
    }

    /// Writes a model to a new directory: aside first, then moved into place whole. An existing
    /// directory is refused.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        let exists = || {
            Error::invalid(dir.display(), "exists already; remove it or choose another directory")
        };
        if is_there(dir) || set_aside(dir).is_some() {
            return Err(exists());
        }
        self.put(dir, |new| {
            fs::rename(new, dir)
                .map_err(|error| if is_there(dir) { exists() } else { Error::io(dir, error) })
        })
    }

    /// Writes a model to a directory, in the place of what is there: at any instant, and whenever
    /// the process is killed, the directory holds the old model or the new one.
    pub fn replace(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        if is_there(dir) && !dir.is_dir() {
            return Err(Error::invalid(
                dir.display(),
                "is a file; expected the name of a directory",
            ));
        }
        self.put(dir, |new| exchange_or_rename(new, dir).map_err(|error| Error::io(dir, error)))
    }

    /// Writes the model beside `dir`, and lets `place` bring it there. What is then in its place is
    /// thrown away.
    fn put(&self, dir: &Path, place: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let parent = parent(dir);
        fs::create_dir_all(parent).map_err(|error| Error::io(parent, error))?;
        let _lock = Lock::write(dir);
        let aside = vacant(dir, "new", |path| fs::create_dir(path))?;
        let result = self.write(&aside).and_then(|()| place(&aside));
        let _ = fs::remove_dir_all(&aside);
        result?;
        sync(parent)
    }

    fn write(&self, dir: &Path) -> Result<()> {
        write(&dir.join(CONFIG), self.config.to_json().as_bytes())?;
        write(&dir.join(LABELS), self.labels.to_text().as_bytes())?;
        if let Some(intents) = &self.intents {
            write(&dir.join(INTENTS), intents.to_text().as_bytes())?;
        }
        write(&dir.join(VOCABULARY), self.vocabulary.to_text().as_bytes())?;
        if let Some(pieces) = &self.pieces {
            write(&dir.join(PIECES), pieces.to_text().as_bytes())?;
        }
        write(&dir.join(WEIGHTS), &self.weights)?;
        if let (Some(name), Some(vectors)) = (&self.config.vectors, self.vocabulary.vectors()) {
            write(&dir.join(plain(dir, name)?), vectors.bytes())?;
        }
        sync(dir)
    }
}

/// Changes the configuration of the model in `dir`, and nothing else: aside, then renamed, so that
/// the model is whole at any time.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tapir-doc-amend-{}", std::process::id()));
/// # tapir::doctest::parts().replace(&folder)?;
/// tapir::amend(&folder, |config| config.threshold = 0.3)?;
/// assert_eq!(tapir::Model::open(&folder)?.config().threshold, 0.3);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), tapir::Error>(())
/// ```
pub fn amend(dir: impl AsRef<Path>, change: impl FnOnce(&mut Config)) -> Result<()> {
    let dir = &of_run(dir.as_ref());
    // Nobody replaces the model meanwhile, which would then have the configuration of the old one.
    let _lock = Lock::alone(dir);
    let dir = locate(dir)?;
    let path = dir.join(CONFIG);
    let mut config = Plain::open(&path)?.config()?;
    change(&mut config);
    config.validate(&path.display().to_string())?;
    leftovers(&path, "new").iter().for_each(|path| _ = fs::remove_file(path));
    let aside = vacant(&path, "new", |path| File::create_new(path).map(drop))?;
    let renamed = write(&aside, config.to_json().as_bytes())
        .and_then(|()| fs::rename(&aside, &path).map_err(|error| Error::io(&path, error)));
    if renamed.is_err() {
        let _ = fs::remove_file(&aside);
    }
    renamed?;
    sync(&dir)
}

/// The files of a model, opened one right after the other: once they are, they may be renamed and
/// removed.
struct Files {
    config: Config,
    labels: Plain,
    intents: Option<Plain>,
    vocabulary: Plain,
    pieces: Option<Plain>,
    vectors: Option<Vectors>,
    weights: Plain,
}

/// Where a model's word vectors are.
enum Vectors {
    File(Plain),
    /// The model has no file of them, and names those that ship in the program.
    #[cfg(feature = "embedded")]
    Embedded,
}

impl Files {
    fn open(dir: &Path) -> Result<Self> {
        let config = Plain::open(&dir.join(CONFIG)).map_err(|error| unfinished(dir, error))?;
        let labels = Plain::open(&dir.join(LABELS))?;
        let vocabulary = Plain::open(&dir.join(VOCABULARY))?;
        let weights = Plain::open(&dir.join(WEIGHTS))?;
        let config = config.config()?;
        let intents = match config.intents {
            0 => None,
            _ => Some(Plain::open(&dir.join(INTENTS))?),
        };
        let pieces = config.bert().map(|_| Plain::open(&dir.join(PIECES))).transpose()?;
        let vectors = config.vectors.as_ref().map(|name| Vectors::open(dir, name)).transpose()?;
        Ok(Self { config, labels, intents, vocabulary, pieces, vectors, weights })
    }

    fn read(self) -> Result<Parts> {
        let Self { config, labels, intents, vocabulary, pieces, vectors, weights } = self;
        let names = |names: Plain| {
            let (names, file) = names.text()?;
            Labels::from_text(&names, &file)
        };
        let (labels, intents) = (names(labels)?, intents.map(names).transpose()?);
        let (words, file) = vocabulary.text()?;
        let mut vocabulary = Vocabulary::from_text(&words, &file)?;
        if let Some(vectors) = vectors {
            vocabulary = vocabulary.with_vectors(Arc::new(vectors.read()?));
        }
        let pieces = pieces.map(|pieces| {
            let (text, file) = pieces.text()?;
            WordPieces::from_text(&text, &file)
        });
        let pieces = pieces.transpose()?;
        Ok(Parts { config, labels, intents, vocabulary, pieces, weights: weights.bytes()? })
    }
}

/// An open file that is neither a directory nor a device or pipe, from which reading might not end.
pub(crate) struct Plain {
    path: PathBuf,
    file: File,
}

impl Plain {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let error = |error| Error::io(path, error);
        // Asked before it is opened, for a pipe cannot even be opened before somebody writes to it.
        let kind = fs::metadata(path).map_err(error)?.file_type();
        if !kind.is_file() {
            let reason = if kind.is_dir() {
                "is a directory; expected a file"
            } else {
                "is not a plain file"
            };
            return Err(Error::invalid(path.display(), reason));
        }
        Ok(Self { path: path.to_owned(), file: File::open(path).map_err(error)? })
    }

    /// All of it.
    pub(crate) fn bytes(self) -> Result<Bytes> {
        Ok(self.read(u64::MAX)?.into())
    }

    /// A text, and what errors call it.
    pub(crate) fn text(self) -> Result<(String, String)> {
        let path = self.path.clone();
        let text = String::from_utf8(self.read(LARGEST_TEXT)?).map_err(|error| {
            Error::invalid(path.display(), format!("not UTF-8: {}", error.utf8_error()))
        })?;
        Ok((text, path.display().to_string()))
    }

    fn config(self) -> Result<Config> {
        let (json, file) = self.text()?;
        Config::from_json(&json, &file)
    }

    /// The bytes of a file that is no longer than `limit`. Memory is asked for once, and no more
    /// than there is.
    fn read(self, limit: u64) -> Result<Vec<u8>> {
        let Self { path, file } = self;
        let error = |error| Error::io(&path, error);
        let invalid = |reason: String| Error::invalid(path.display(), reason);
        let length = file.metadata().map_err(error)?.len();
        if length > limit {
            return Err(invalid(format!("{length} bytes, expected at most {limit}")));
        }
        let mut bytes = Vec::new();
        let room =
            usize::try_from(length).ok().and_then(|length| bytes.try_reserve_exact(length).ok());
        room.ok_or_else(|| invalid(format!("{length} bytes, more than there is memory for")))?;
        file.take(length.saturating_add(1)).read_to_end(&mut bytes).map_err(error)?;
        if bytes.len() as u64 != length {
            return Err(invalid(format!(
                "{length} bytes that changed while they were read; try again"
            )));
        }
        Ok(bytes)
    }
}

/// Tells a directory from another one that takes its place, and from itself after a file in it was
/// exchanged.
struct Identity {
    #[cfg(unix)]
    stamp: Option<[i64; 4]>,
    /// Open for as long as it is compared, so that no other directory gets its number.
    #[cfg(unix)]
    _pin: Option<File>,
    #[cfg(not(unix))]
    stamp: Option<[Option<std::time::SystemTime>; 2]>,
}

impl Identity {
    #[cfg(unix)]
    fn of(dir: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        let pin = File::open(dir).ok();
        let data = pin.as_ref().map_or_else(|| fs::metadata(dir), File::metadata);
        let stamp = data
            .ok()
            .map(|data| [data.dev() as i64, data.ino() as i64, data.ctime(), data.ctime_nsec()]);
        Self { stamp, _pin: pin }
    }

    #[cfg(not(unix))]
    fn of(dir: &Path) -> Self {
        let data = fs::metadata(dir).ok();
        Self { stamp: data.map(|data| [data.created().ok(), data.modified().ok()]) }
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.stamp.is_some() && self.stamp == other.stamp
    }
}

/// Writers of models in one directory. Each may write, but what a killed one left is removed only
/// by one that is alone.
struct Lock;

impl Lock {
    /// Held while a model is written beside `dir`; first removes what killed processes left there.
    fn write(dir: &Path) -> Option<File> {
        let lock = Self::of(dir)?;
        if lock.try_lock().is_ok() {
            tidy(dir);
            lock.unlock().ok()?;
        }
        lock.lock_shared().ok()?;
        Some(lock)
    }

    /// Held while nobody may write a model beside `dir`.
    fn alone(dir: &Path) -> Option<File> {
        let lock = Self::of(dir)?;
        lock.lock().ok()?;
        Some(lock)
    }

    /// The directory around `dir` is the lock: there is no file to leave behind. Without locks, as
    /// on some file systems, nothing is removed.
    fn of(dir: &Path) -> Option<File> {
        File::open(parent(dir)).ok()
    }
}

/// Removes what killed processes left beside `dir`, having put the old model back if it is the only
/// one.
fn tidy(dir: &Path) {
    if !is_there(dir)
        && let Some(old) = set_aside(dir)
    {
        let _ = fs::rename(old, dir);
    }
    let old = if is_there(dir) { leftovers(dir, "old") } else { Vec::new() };
    for path in leftovers(dir, "new").into_iter().chain(old) {
        let _ = fs::remove_dir_all(&path);
    }
}

/// The model of a training run, where `dir` is one: that is what people name.
fn of_run(dir: &Path) -> PathBuf {
    let model = dir.join("model");
    if !is_there(&dir.join(CONFIG)) && is_there(&model.join(CONFIG)) {
        model
    } else {
        dir.to_owned()
    }
}

/// Does the directory hold a model, or a training run, be it done or not?
pub(crate) fn is_model_or_run(dir: &Path) -> bool {
    is_there(&of_run(dir).join(CONFIG)) || is_there(&dir.join(PRESET))
}

/// A training run whose stages are not all done has no model, and that is what is wrong.
fn unfinished(dir: &Path, error: Error) -> Error {
    if !is_there(&dir.join(PRESET)) {
        return error;
    }
    let reason = "a training run that has no model yet; the same `tapir train` goes on with it";
    Error::invalid(dir.display(), reason)
}

/// Where the model is: in `dir` or, if somebody was killed between two renames, in the directory
/// that was set aside.
fn locate(dir: &Path) -> Result<PathBuf> {
    // The name is looked at again, for the new model may have come between the two looks.
    let found = [Some(dir.to_owned()), set_aside(dir), Some(dir.to_owned())];
    found.into_iter().flatten().find(|path| path.is_dir()).ok_or_else(|| {
        let reason =
            if is_there(dir) { "is not a directory" } else { "there is no such directory" };
        let reason = format!("{reason}; expected a model: a directory with {CONFIG}");
        Error::invalid(dir.display(), reason)
    })
}

/// The model that was set aside and not replaced, if `dir` is missing.
fn set_aside(dir: &Path) -> Option<PathBuf> {
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    if is_there(dir) { None } else { leftovers(dir, "old").into_iter().max_by_key(changed) }
}

/// Puts `new` in the place of `dir`, and the old one, if there is any, in the place of `new`.
fn exchange_or_rename(new: &Path, dir: &Path) -> io::Result<()> {
    for _ in 0..TRIES {
        if is_there(dir) {
            match exchange(new, dir) {
                Err(error) if error.kind() == ErrorKind::NotFound => {} // somebody removed it
                Err(_) => return rename_both(new, dir),
                Ok(()) => return Ok(()),
            }
        } else {
            match fs::rename(new, dir) {
                Err(_) if is_there(dir) => {} // somebody was faster
                result => return result,
            }
        }
    }
    Err(io::Error::other("it comes and goes; is another program writing it?"))
}

/// Exchanges two directories in one step.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// The same in three steps. Between the first two [`locate`] finds the old model; the third is for
/// its name only, by which it would be found again if somebody removed the new one.
fn rename_both(new: &Path, dir: &Path) -> io::Result<()> {
    let old = vacant(dir, "old", |old| {
        if is_there(old) { Err(ErrorKind::AlreadyExists.into()) } else { Ok(()) }
    })
    .map_err(io::Error::other)?;
    fs::rename(dir, &old)?;
    if let Err(error) = fs::rename(new, dir) {
        let _ = fs::rename(&old, dir); // puts back what was there
        return Err(error);
    }
    fs::rename(&old, new)
}

/// Writes a file through to the disk.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|error| Error::io(path, error))
}

/// Writes a directory's own list of names through to the disk, where that can be asked for.
fn sync(dir: &Path) -> Result<()> {
    #[cfg(unix)]
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| Error::io(dir, error))?;
    let _ = dir;
    Ok(())
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// A name from `config.json` must be a file name of its own: a model never reaches outside its
/// directory and the one around it, and does not write over its own files.
fn plain<'a>(dir: &Path, name: &'a str) -> Result<&'a str> {
    let own = [CONFIG, LABELS, VOCABULARY, PIECES, WEIGHTS].contains(&name);
    if own || name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return Err(Error::invalid(
            dir.join(CONFIG).display(),
            format!("`vectors` is {name:?}, expected a file name of their own"),
        ));
    }
    Ok(name)
}

impl Vectors {
    /// Word vectors are in the model's directory, or in the one around it where several models
    /// share them, or in the program.
    fn open(dir: &Path, name: &str) -> Result<Self> {
        let name = plain(dir, name)?;
        let own = dir.join(name);
        let shared = dir.join("..").join(name);
        let found = [&own, &shared].into_iter().find(|path| path.exists());
        #[cfg(feature = "embedded")]
        if found.is_none() && WordVectors::is_embedded(Path::new(name)) {
            return Ok(Self::Embedded);
        }
        Ok(Self::File(Plain::open(found.unwrap_or(&own))?))
    }

    fn read(self) -> Result<WordVectors> {
        match self {
            Self::File(file) => {
                let name = file.path.display().to_string();
                WordVectors::from_bytes(file.bytes()?, &name)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded => WordVectors::embedded(),
        }
    }
}

/// What the names of directories beside `dir` begin with that are not models of their own.
fn prefix(dir: &Path, what: &str) -> Result<String> {
    let name = dir
        .file_name()
        .ok_or_else(|| Error::invalid(dir.display(), "is not the name of a directory"))?;
    Ok(format!(".{}.{what}-", name.to_string_lossy()))
}

/// A path beside `dir` that nobody else uses; `take` fails if it exists already.
fn vacant(dir: &Path, what: &str, take: impl Fn(&Path) -> io::Result<()>) -> Result<PathBuf> {
    let prefix = prefix(dir, what)?;
    let process = std::process::id();
    for number in 0_u64.. {
        let path = match number {
            0 => dir.with_file_name(format!("{prefix}{process}")),
            _ => dir.with_file_name(format!("{prefix}{process}-{number}")),
        };
        match take(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(path, error)),
        }
    }
    unreachable!("not every number is taken")
}

/// Every path beside `dir` that [`vacant`] gave somebody.
fn leftovers(dir: &Path, what: &str) -> Vec<PathBuf> {
    let (Ok(prefix), Ok(entries)) = (prefix(dir, what), fs::read_dir(parent(dir))) else {
        return Vec::new();
    };
    let ours = |name: &str| {
        let number = name.strip_prefix(&prefix);
        number
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
    };
    let entries =
        entries.filter_map(Result::ok).filter(|entry| ours(&entry.file_name().to_string_lossy()));
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Without an exchange in one step, being killed after any of the steps leaves a model that
    /// opens.
    #[test]
    fn a_model_that_was_set_aside_is_found_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("model");
        let mut parts = crate::doctest::parts();
        parts.save(&dir).unwrap();
        parts.config.threshold = 0.25;
        let threshold = || Parts::open(&dir).unwrap().config.threshold;

        fs::create_dir(folder.path().join(".model.new-1")).unwrap();
        fs::rename(&dir, folder.path().join(".model.old-1")).unwrap();
        assert_eq!(threshold().to_bits(), 0.5_f32.to_bits());
        assert!(parts.save(&dir).unwrap_err().to_string().contains("exists already"));
        amend(&dir, |config| config.threshold = 0.75).unwrap();
        assert_eq!(threshold().to_bits(), 0.75_f32.to_bits());
        parts.replace(&dir).unwrap();
        assert_eq!(threshold().to_bits(), 0.25_f32.to_bits());
        assert_eq!(names(folder.path()), ["model"]);
    }

    #[test]
    fn renaming_both_ends_as_an_exchange_does() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        for exchange in [exchange, rename_both] {
            for (path, file) in [(&a, "1"), (&b, "2")] {
                fs::create_dir(path).unwrap();
                fs::write(path.join(file), "").unwrap();
            }
            exchange(&a, &b).unwrap();
            assert_eq!((names(&a), names(&b)), (vec!["2".to_owned()], vec!["1".to_owned()]));
            assert_eq!(names(folder.path()), ["a", "b"]);
            fs::remove_dir_all(&a).unwrap();
            fs::remove_dir_all(&b).unwrap();
        }
    }

    /// What others named in a like way is theirs.
    #[test]
    fn only_our_own_leftovers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("model");
        for name in
            [".model.new-77", ".model.new-77-1", ".model.new-mine", ".other.new-1", ".model.old-5"]
        {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let parts = crate::doctest::parts();
        fs::remove_dir(folder.path().join(".model.old-5")).unwrap();
        parts.save(&dir).unwrap();
        assert_eq!(names(folder.path()), [".model.new-mine", ".other.new-1", "model"]);
        fs::create_dir(folder.path().join(".model.old-5")).unwrap();
        parts.replace(&dir).unwrap();
        assert_eq!(names(folder.path()), [".model.new-mine", ".other.new-1", "model"]);
    }
}
