//! A model on disk: a directory of `config.json`, `labels.txt`, `vocab.txt` and `model.safetensors`, memory-mapped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::vectors::WordVectors;
use crate::{Bytes, Config, Error, Labels, Model, Parts, Result, Vocabulary};

const CONFIG: &str = "config.json";
const LABELS: &str = "labels.txt";
const VOCABULARY: &str = "vocab.txt";
const WEIGHTS: &str = "model.safetensors";

/// Text files of a model may not be larger than this: they are read whole.
const LARGEST_TEXT: u64 = 1 << 28;

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
    /// Reads a model directory; the weights stay on disk, mapped.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        if !dir.is_dir() {
            let reason = if dir.exists() { "is not a directory" } else { "there is no such directory" };
            return Err(Error::invalid(
                dir.display(),
                format!("{reason}; expected a model: a directory with {CONFIG}"),
            ));
        }
        let (config, file) = read(dir, CONFIG)?;
        let config = Config::from_json(&config, &file)?;
        let (labels, file) = read(dir, LABELS)?;
        let labels = Labels::from_text(&labels, &file)?;
        let (words, file) = read(dir, VOCABULARY)?;
        let mut vocabulary = Vocabulary::from_text(&words, &file)?;
        if let Some(name) = &config.vectors {
            vocabulary = vocabulary.with_vectors(Arc::new(WordVectors::open(&vectors(dir, name)?)?));
        }
        Ok(Self { config, labels, vocabulary, weights: Bytes::open(&dir.join(WEIGHTS))? })
    }

    /// Writes a model to a new directory: aside first, then moved into place whole. An existing directory is refused.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        if dir.exists() {
            return Err(Error::invalid(
                dir.display(),
                "exists already; remove it or choose another directory",
            ));
        }
        self.replace(dir)
    }

    /// Writes a model to a directory, in the place of what is there.
    pub fn replace(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        let aside = beside(dir, "new")?;
        let result = self.write(&aside).and_then(|()| {
            let old = beside(dir, "old")?;
            if dir.exists() {
                fs::rename(dir, &old).map_err(|error| Error::io(dir, error))?;
            }
            fs::rename(&aside, dir).map_err(|error| {
                let _ = fs::rename(&old, dir); // puts back what was there
                Error::io(dir, error)
            })?;
            let _ = fs::remove_dir_all(&old); // there may be none
            Ok(())
        });
        if result.is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
        result
    }

    fn write(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).map_err(|error| Error::io(dir, error))?;
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.join(name);
            let file = fs::File::create(&path).and_then(|mut file| {
                std::io::Write::write_all(&mut file, bytes)?;
                file.sync_all()
            });
            file.map_err(|error| Error::io(path, error))
        };
        write(CONFIG, self.config.to_json().as_bytes())?;
        write(LABELS, self.labels.to_text().as_bytes())?;
        write(VOCABULARY, self.vocabulary.to_text().as_bytes())?;
        write(WEIGHTS, &self.weights)?;
        if let (Some(name), Some(vectors)) = (&self.config.vectors, self.vocabulary.vectors()) {
            write(plain(dir, name)?, vectors.bytes())?;
        }
        Ok(())
    }
}

fn read(dir: &Path, name: &str) -> Result<(String, String)> {
    let path = dir.join(name);
    let data = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
    if data.len() > LARGEST_TEXT {
        return Err(Error::invalid(
            path.display(),
            format!("{} bytes, expected a small text file", data.len()),
        ));
    }
    let text = fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
    Ok((text, path.display().to_string()))
}

/// A name from `config.json` must be a file name: a model never reaches outside its directory and the one around it.
fn plain<'a>(dir: &Path, name: &'a str) -> Result<&'a str> {
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return Err(Error::invalid(
            dir.join(CONFIG).display(),
            format!("`vectors` is {name:?}, expected a file name"),
        ));
    }
    Ok(name)
}

/// Word vectors are in the model's directory, or in the one around it where several models share them.
fn vectors(dir: &Path, name: &str) -> Result<PathBuf> {
    let name = plain(dir, name)?;
    let own = dir.join(name);
    let shared = dir.join("..").join(name);
    Ok(if !own.exists() && shared.exists() { shared } else { own })
}

/// A directory next to `dir` that nobody else uses.
fn beside(dir: &Path, what: &str) -> Result<PathBuf> {
    let name =
        dir.file_name().ok_or_else(|| Error::invalid(dir.display(), "is not the name of a directory"))?;
    let name = format!(".{}.{what}-{}", name.to_string_lossy(), std::process::id());
    Ok(dir.with_file_name(name))
}
