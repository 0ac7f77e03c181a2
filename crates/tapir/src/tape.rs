//! A list of equal rows that grows at its end, can be cut back, and forgets its beginning in bulk.

use std::ops::Range;

/// Rows of `width` values, indexed from the session's start even after the oldest ones were
/// forgotten.
///
/// Everything a session remembers is on tapes, so that undoing words is cutting tapes.
pub(crate) struct Tape<T> {
    reach: Reach,
    width: usize,
    /// Rows before that of the first step.
    start: usize,
    /// How many steps after its own a row comes.
    lag: usize,
    /// Index of the first row that is still here.
    base: usize,
    data: Vec<T>,
}

/// How far back rows are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As far as a revision after undo: the reviser's window, and the words that can be taken back.
    Window,
    /// As far as the controller's memory after undo.
    Memory,
}

impl<T: Copy + Default> Tape<T> {
    /// A row per step.
    pub(crate) fn new(reach: Reach, width: usize) -> Self {
        Self { reach, width, start: 0, lag: 0, base: 0, data: Vec::new() }
    }

    /// A row per step, and one of zeros for the state before the first.
    pub(crate) fn of_states(reach: Reach, width: usize) -> Self {
        let data = vec![T::default(); width];
        Self { start: 1, data, ..Self::new(reach, width) }
    }

    /// A row per step, from the step after the first `lag` on.
    pub(crate) fn delayed(reach: Reach, width: usize, lag: usize) -> Self {
        Self { lag, ..Self::new(reach, width) }
    }

    /// Number of rows since the session's start, forgotten ones included.
    pub(crate) fn len(&self) -> usize {
        self.base + self.data.len() / self.width
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn row(&self, index: usize) -> &[T] {
        self.rows(index..index + 1)
    }

    pub(crate) fn rows(&self, range: Range<usize>) -> &[T] {
        &self.data[(range.start - self.base) * self.width..(range.end - self.base) * self.width]
    }

    pub(crate) fn rows_mut(&mut self, range: Range<usize>) -> &mut [T] {
        &mut self.data[(range.start - self.base) * self.width..(range.end - self.base) * self.width]
    }

    /// All rows that are still here.
    pub(crate) fn all(&self) -> &[T] {
        &self.data
    }

    /// Appends a row of values one by one.
    pub(crate) fn extend(&mut self, row: impl IntoIterator<Item = T>) {
        self.data.extend(row);
        debug_assert!(self.data.len().is_multiple_of(self.width));
    }

    pub(crate) fn push(&mut self, row: &[T]) {
        debug_assert_eq!(row.len(), self.width);
        self.data.extend_from_slice(row);
    }

    /// Appends a default row.
    pub(crate) fn grow(&mut self) {
        self.data.resize(self.data.len() + self.width, T::default());
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.data.truncate((len - self.base) * self.width);
    }
}

/// What is done to all tapes alike, whatever is on them.
pub(crate) trait Rows {
    fn reach(&self) -> Reach;

    /// Cuts off the rows of all steps but the first `steps`. A tape that is shorter stays.
    fn cut(&mut self, steps: usize);

    /// Forgets the oldest `rows` rows.
    fn forget(&mut self, rows: usize);

    /// How many rows are still here.
    fn held(&self) -> usize;

    /// As new, with the memory it has.
    fn clear(&mut self);

    /// Bytes held, spare capacity included.
    fn bytes(&self) -> usize;

    /// How many rows there are beyond the last `keep`, once they are so many that forgetting them
    /// costs little a row.
    fn excess(&self, keep: usize) -> Option<usize> {
        let extra = self.held().saturating_sub(keep);
        (extra > keep.max(16)).then_some(extra)
    }

    /// Forgets all but the last `keep` rows, now and then.
    fn trim(&mut self, keep: usize) {
        if let Some(extra) = self.excess(keep) {
            self.forget(extra);
        }
    }
}

impl<T: Copy + Default> Rows for Tape<T> {
    fn reach(&self) -> Reach {
        self.reach
    }

    fn cut(&mut self, steps: usize) {
        self.truncate((steps + self.start).saturating_sub(self.lag));
    }

    fn forget(&mut self, rows: usize) {
        self.data.drain(..rows * self.width);
        self.base += rows;
    }

    fn held(&self) -> usize {
        self.data.len() / self.width
    }

    fn clear(&mut self) {
        self.base = 0;
        self.data.clear();
        self.data.resize(self.start * self.width, T::default());
    }

    fn bytes(&self) -> usize {
        self.data.capacity() * size_of::<T>()
    }
}
