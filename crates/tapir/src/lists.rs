//! A tape whose rows are lists: what a step appends may be of any length.

use std::ops::Range;

use crate::tape::{Reach, Rows};

/// A list of values per step, laid end to end, indexed from the session's start even after the
/// oldest ones were forgotten.
pub(crate) struct Lists<T> {
    reach: Reach,
    /// Index of the first list that is still here.
    base: usize,
    /// Where each list ends in `data`.
    ends: Vec<usize>,
    data: Vec<T>,
}

impl<T: Copy> Lists<T> {
    pub(crate) fn new(reach: Reach) -> Self {
        Self { reach, base: 0, ends: Vec::new(), data: Vec::new() }
    }

    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.data.extend(list);
        self.ends.push(self.data.len());
    }

    /// The values of these lists, end to end.
    pub(crate) fn lists(&self, range: Range<usize>) -> &[T] {
        &self.data[self.end(range.start)..self.end(range.end)]
    }

    /// The first list, from `from` on, that holds at most `most` values together with all after it.
    pub(crate) fn last_within(&self, from: usize, most: usize) -> usize {
        let start = self.data.len().saturating_sub(most);
        if self.end(from) >= start {
            return from;
        }
        // A list begins where the one before it ends.
        from + 1 + self.ends[from - self.base..].partition_point(|end| *end < start)
    }

    /// Where the lists before this one end.
    fn end(&self, list: usize) -> usize {
        (list - self.base).checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl<T: Copy> Rows for Lists<T> {
    fn reach(&self) -> Reach {
        self.reach
    }

    fn cut(&mut self, steps: usize) {
        if steps < self.base + self.held() {
            self.data.truncate(self.end(steps));
            self.ends.truncate(steps - self.base);
        }
    }

    fn forget(&mut self, rows: usize) {
        let rows = rows.min(self.ends.len());
        let values = self.end(self.base + rows);
        self.data.drain(..values);
        self.ends.drain(..rows);
        self.ends.iter_mut().for_each(|end| *end -= values);
        self.base += rows;
    }

    fn held(&self) -> usize {
        self.ends.len()
    }

    fn clear(&mut self) {
        self.base = 0;
        self.ends.clear();
        self.data.clear();
    }

    fn bytes(&self) -> usize {
        self.data.capacity() * size_of::<T>() + self.ends.capacity() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is appended, cut off and forgotten: what is there is as in a list of lists.
        #[test]
        fn it_is_a_list_of_lists(
            changes in prop::collection::vec((0..6usize, 0..6usize), 1..40),
            most in 0..20usize,
        ) {
            let mut lists = Lists::new(Reach::Window);
            let (mut plain, mut base): (Vec<Vec<usize>>, _) = (Vec::new(), 0);
            for (i, (what, size)) in changes.into_iter().enumerate() {
                match what {
                    0 => {
                        let steps = base.max(plain.len().saturating_sub(size));
                        lists.cut(steps);
                        plain.truncate(steps);
                    }
                    1 => {
                        let rows = size.min(plain.len() - base);
                        lists.forget(rows);
                        base += rows;
                    }
                    _ => {
                        lists.push((0..size).map(|value| 10 * i + value));
                        plain.push((0..size).map(|value| 10 * i + value).collect());
                    }
                }
                for from in base..=plain.len() {
                    prop_assert_eq!(lists.lists(from..plain.len()), plain[from..].concat());
                    let fits = |start: &usize| plain[*start..].concat().len() <= most;
                    let first = (from..=plain.len()).find(fits).unwrap();
                    prop_assert_eq!(lists.last_within(from, most), first);
                }
            }
            lists.clear();
            prop_assert_eq!(lists.lists(0..0), &[] as &[usize]);
        }
    }
}
