//! A list of equal rows that grows at its end, can be cut back, and forgets its beginning in bulk.

use std::ops::Range;

/// Rows of `width` values, indexed from the session's start even after the oldest ones were forgotten.
///
/// Everything a session remembers is on tapes, so that undoing words is cutting tapes.
pub(crate) struct Tape<T> {
    width: usize,
    /// Index of the first row that is still here.
    base: usize,
    data: Vec<T>,
}

impl<T: Copy + Default> Tape<T> {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, base: 0, data: Vec::new() }
    }

    /// Number of rows since the session's start, forgotten ones included.
    pub(crate) fn len(&self) -> usize {
        self.base + self.data.len() / self.width
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }

    pub(crate) fn row(&self, index: usize) -> &[T] {
        self.rows(index..index + 1)
    }

    pub(crate) fn row_mut(&mut self, index: usize) -> &mut [T] {
        self.rows_mut(index..index + 1)
    }

    pub(crate) fn rows(&self, range: Range<usize>) -> &[T] {
        &self.data[(range.start - self.base) * self.width..(range.end - self.base) * self.width]
    }

    pub(crate) fn rows_mut(&mut self, range: Range<usize>) -> &mut [T] {
        &mut self.data[(range.start - self.base) * self.width..(range.end - self.base) * self.width]
    }

    pub(crate) fn push(&mut self, row: &[T]) {
        debug_assert_eq!(row.len(), self.width);
        self.data.extend_from_slice(row);
    }

    /// Appends a default row and gives it together with all rows before it.
    pub(crate) fn grow(&mut self) -> (&[T], &mut [T]) {
        let end = self.data.len();
        self.data.resize(end + self.width, T::default());
        let (before, row) = self.data.split_at_mut(end);
        (before, row)
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.data.truncate((len - self.base) * self.width);
    }

    pub(crate) fn clear(&mut self) {
        self.base = 0;
        self.data.clear();
    }

    /// How many rows there are beyond the last `keep`, once they are so many that forgetting them costs little a row.
    pub(crate) fn excess(&self, keep: usize) -> Option<usize> {
        let extra = (self.data.len() / self.width).saturating_sub(keep);
        (extra > keep.max(16)).then_some(extra)
    }

    /// Forgets the oldest `rows` rows.
    pub(crate) fn forget(&mut self, rows: usize) {
        self.data.drain(..rows * self.width);
        self.base += rows;
    }

    /// Forgets all but the last `keep` rows, now and then.
    pub(crate) fn trim(&mut self, keep: usize) {
        if let Some(extra) = self.excess(keep) {
            self.forget(extra);
        }
    }

    /// Bytes held, spare capacity included.
    pub(crate) fn bytes(&self) -> usize {
        self.data.capacity() * size_of::<T>()
    }
}
