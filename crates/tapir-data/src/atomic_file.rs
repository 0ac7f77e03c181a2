//! Files that appear whole or not at all: written beside, synchronised, then renamed.

use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// A file under construction. Dropped before [`AtomicFile::commit`], it leaves nothing behind.
pub struct AtomicFile {
    path: PathBuf,
    force: bool,
    file: BufWriter<tempfile::NamedTempFile>,
}

impl AtomicFile {
    /// Starts a file that will be called `path`; an existing one is an error unless `force`.
    pub fn create(path: &Path, force: bool) -> Result<Self> {
        if path.is_dir() {
            return Err(Error::file(path, "is a directory; expected the name of a file"));
        }
        if !force && path.exists() {
            return Err(exists(path));
        }
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder
            .prefix(".tapir-")
            .tempfile_in(folder)
            .map_err(|error| Error::io(folder, error))?;
        Ok(Self { path: path.into(), force, file: BufWriter::with_capacity(1 << 18, file) })
    }

    /// The name that the file will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name.
    pub fn commit(self) -> Result<()> {
        let Self { path, force, file } = self;
        let file = file.into_inner().map_err(|error| Error::io(&path, error.into_error()))?;
        // A name must not outlive its content when the machine stops.
        file.as_file().sync_all().map_err(|error| Error::io(&path, error))?;
        let result = if force { file.persist(&path) } else { file.persist_noclobber(&path) };
        match result {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(exists(&path))
            }
            Err(error) => Err(Error::io(path, error.error)),
        }
    }
}

/// Writes a file, whole or not at all, over an existing one; missing folders are made.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("new/note.txt");
/// tapir_data::write_atomically(&path, b"whole")?;
/// assert_eq!(std::fs::read(&path)?, b"whole");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    }
    let mut file = AtomicFile::create(path, true)?;
    file.write_all(bytes).map_err(|error| Error::io(path, error))?;
    file.commit()
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn exists(path: &Path) -> Error {
    Error::file(path, "exists already; give --force to write over it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_over_without_force_and_nothing_half_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut file = AtomicFile::create(&path, false).unwrap();
        file.write_all(b"one").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut file = AtomicFile::create(&path, false).unwrap();
        file.write_all(b"one").unwrap();
        file.commit().unwrap();
        assert!(AtomicFile::create(&path, false).err().unwrap().to_string().contains("--force"));
        let mut file = AtomicFile::create(&path, true).unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }
}
