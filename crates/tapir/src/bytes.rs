//! Bytes that live somewhere: mapped from a file, embedded in the program, or owned.

use std::ops::Deref;
use std::sync::Arc;

/// Read-only bytes, cheap to clone and to keep: a model's tables stay where they are and are read in place.
///
/// ```
/// let bytes = tapir::Bytes::from(vec![1, 2, 3]);
/// assert_eq!(bytes[1..], [2, 3]);
/// ```
#[derive(Clone)]
pub struct Bytes(Arc<Place>);

enum Place {
    Owned(Vec<u8>),
    Static(&'static [u8]),
    #[cfg(feature = "store")]
    Mapped(memmap2::Mmap),
}

impl Bytes {
    /// Maps a file. It must not be changed in place while it is mapped: tapir's own writers write aside and rename.
    #[cfg(feature = "store")]
    #[allow(unsafe_code)]
    pub fn open(path: &std::path::Path) -> crate::Result<Self> {
        let error = |source| crate::Error::io(path, source);
        let file = std::fs::File::open(path).map_err(error)?;
        let data = file.metadata().map_err(error)?;
        if data.is_dir() {
            return Err(crate::Error::invalid(path.display(), "is a directory; expected a file"));
        }
        if data.len() == 0 {
            return Ok(Self::from(Vec::new())); // an empty file cannot be mapped
        }
        // SAFETY: the mapping is read-only and private. Another process that truncates the file under us could still
        // fault a read; every program that maps files lives with that, and our writers never change a file in place.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(error)?;
        Ok(Self(Arc::new(Place::Mapped(map))))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Place::Owned(bytes)))
    }
}

impl From<&'static [u8]> for Bytes {
    fn from(bytes: &'static [u8]) -> Self {
        Self(Arc::new(Place::Static(bytes)))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Place::Owned(bytes) => bytes,
            Place::Static(bytes) => bytes,
            #[cfg(feature = "store")]
            Place::Mapped(map) => map,
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}
