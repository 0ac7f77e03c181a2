//! Bytes that live somewhere: embedded in the program, or owned.

use std::ops::Deref;
use std::sync::Arc;

/// Read-only bytes, cheap to clone and to keep: a model's tables stay where they are and are read
/// in place.
///
/// ```
/// let bytes = tapir::Bytes::from(vec![1, 2, 3]);
/// assert_eq!(bytes[1..], [2, 3]);
/// ```
#[derive(Clone)]
pub struct Bytes(Arc<Storage>);

enum Storage {
    Owned(Vec<u8>),
    Static(&'static [u8]),
}

impl Bytes {
    /// Reads a file whole. It is not mapped: a file that is cut while it is mapped kills the
    /// process that reads it, and one that is written over changes a model while it runs.
    #[cfg(feature = "store")]
    pub fn open(path: &std::path::Path) -> crate::Result<Self> {
        crate::store::Plain::open(path)?.bytes()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Storage::Owned(bytes)))
    }
}

impl From<&'static [u8]> for Bytes {
    fn from(bytes: &'static [u8]) -> Self {
        Self(Arc::new(Storage::Static(bytes)))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Storage::Owned(bytes) => bytes,
            Storage::Static(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}
