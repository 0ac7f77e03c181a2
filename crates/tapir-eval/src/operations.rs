//! Floating-point operations: what a sentence costs, whatever the machine.
//!
//! Matrix products and attention count, two operations for a multiplication and its addition.
//! Functions applied to each value (gates, softmax, norms) are left out: they are below a hundredth
//! at the paper's sizes.

use tapir::{Action, Config, Mode, ReviserKind};

/// The cost of each component for one model.
///
/// ```
/// use tapir::{Action, Mode};
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// let operations = tapir_eval::Operations::of(model.config(), model.labels().len());
/// let write = operations.sentence(&[Action::Write; 5], Mode::TwoPass);
/// let revise = operations.sentence(&[Action::Revise; 5], Mode::TwoPass);
/// assert!(write < revise);
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    config: &'a Config,
    labels: u64,
}

/// A product of a matrix with `rows` vectors.
fn product(outputs: u64, inputs: u64, rows: u64) -> u64 {
    2 * outputs * inputs * rows
}

impl<'a> Operations<'a> {
    /// Of a model with so many labels.
    pub fn of(config: &'a Config, labels: usize) -> Self {
        Self { config, labels: labels as u64 }
    }

    /// One word through the incremental processor.
    pub fn first_pass(&self) -> u64 {
        let Some(p) = &self.config.processor else { return 0 };
        let (h, x) = (p.hidden as u64, self.x());
        let projection = p.projection.map_or(0, |_| product(x, self.embedding(), 1));
        let layers = (0..p.layers).map(|l| product(4 * h, h + if l == 0 { x } else { h }, 1));
        projection + layers.sum::<u64>() + product(self.labels, h, 1)
    }

    /// One step (counted from 1) of controller and policy.
    pub fn controller(&self, step: usize) -> u64 {
        let (Some(p), Some(c)) = (&self.config.processor, &self.config.controller) else {
            return 0;
        };
        let (h, n) = (p.hidden as u64, c.hidden as u64);
        let entries = c.memory.min(step.saturating_sub(1)) as u64;
        let layer = |l: usize| {
            let input = if l == 0 { self.x() } else { n };
            // A score and the two summaries for each entry; the keys of the entries are made when
            // they are written.
            let attention =
                if entries == 0 { 0 } else { product(n, h + n, 1) + 3 * product(1, n, entries) };
            attention + product(4 * n, n + input, 1)
        };
        (0..c.layers).map(layer).sum::<u64>() + product(1, n, 1)
    }

    /// Writing `rows` entries of the memory.
    pub fn memory(&self, rows: usize) -> u64 {
        let (Some(p), Some(c)) = (&self.config.processor, &self.config.controller) else {
            return 0;
        };
        let (h, n) = (p.hidden as u64, c.hidden as u64);
        let row =
            product(h, self.labels, 1) + product(n, 2 * h, 1) + c.layers as u64 * product(n, n, 1);
        rows as u64 * row
    }

    /// The reviser on `words` words, or on so many word pieces if it reads those.
    pub fn reviser(&self, words: usize) -> u64 {
        let Some(r) = &self.config.reviser else { return 0 };
        let (d, f, rows) = (r.hidden as u64, r.feed_forward as u64, words as u64);
        let attention = match r.kind {
            // Scores and weighted sums, each rows x rows x d in all heads together.
            ReviserKind::Transformer | ReviserKind::Bert => 2 * product(rows, d, rows),
            // Keys into values, and queries against the sum: a square of the head's size a head and
            // row.
            ReviserKind::LinearTransformer => 2 * product(d, d / r.heads as u64, rows),
        };
        let layer = product(4 * d, d, rows) + attention + 2 * product(f, d, rows);
        let input = match r.kind {
            ReviserKind::Bert => 0, // rows of tables, and no product
            _ => product(d, self.embedding(), rows),
        };
        input + r.layers as u64 * layer + product(self.labels, d, rows)
    }

    /// All steps of a sentence.
    pub fn sentence(&self, actions: &[Action], mode: Mode) -> u64 {
        let window = self.config.max_length;
        let entries = self.config.controller.as_ref().map_or(0, |c| c.memory);
        let step = |(i, action): (usize, &Action)| {
            let t = i + 1;
            match (mode, action) {
                (Mode::Restart, _) => self.reviser(t.min(window)),
                (Mode::FirstPass, _) => self.first_pass(),
                (Mode::TwoPass, Action::Write) => {
                    self.first_pass() + self.controller(t) + self.memory(1)
                }
                (Mode::TwoPass, Action::Revise) => {
                    let second = self.reviser(t.min(window)) + self.memory(entries.min(t));
                    self.first_pass() + self.controller(t) + second
                }
            }
        };
        actions.iter().enumerate().map(step).sum()
    }

    fn embedding(&self) -> u64 {
        self.config.embedding_dim as u64
    }

    /// Size of the x that processor and controller read.
    fn x(&self) -> u64 {
        let projection = self.config.processor.as_ref().and_then(|p| p.projection);
        projection.map_or(self.embedding(), |size| size as u64)
    }
}
