//! The order in which a product is taken: tiles of some rows times some panels.

use super::simd::{MOST_ROWS, Simd};

/// Which of how many tiles over the same panels it is.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) block: usize,
    pub(super) blocks: usize,
}

/// Cache lines of a panel that are multiplied between two looks ahead. Each look asks for as many
/// lines, in as many places, because each place is one more stream to the hardware's own
/// prefetching.
pub(super) const CHUNK: usize = 4;

/// What a tile asks memory for while it computes: its share of the panels that come next.
///
/// Memory would be idle otherwise while rows are computed with weights that are in the cache.
pub(super) struct Ahead<L> {
    next: *const L,
    /// Lines from one place to the next.
    apart: usize,
    /// The line of each place to ask for.
    line: usize,
    /// Chunks to let pass before that, as the other tiles over these panels have their shares.
    wait: usize,
    blocks: usize,
}

impl<L> Ahead<L> {
    /// The share of the `lines` cache lines from `next` on.
    #[inline(always)]
    pub(super) fn new(turn: Turn, next: *const L, lines: usize) -> Self {
        let apart = lines / CHUNK;
        Self { next, apart, line: apart * turn.block / turn.blocks, wait: 0, blocks: turn.blocks }
    }

    /// Before each chunk of the tile's own `P` panels.
    #[inline(always)]
    pub(super) fn look<S: Simd, const P: usize>(&mut self, s: S) {
        if self.wait == 0 {
            self.wait = self.blocks;
            for place in 0..CHUNK {
                for p in 0..P {
                    s.prefetch(self.next.wrapping_add(self.apart * place + self.line + p).cast());
                }
            }
            self.line += P;
        }
        self.wait -= 1;
    }
}

/// The blocks of rows that are taken at once: as few as possible, all of about the same size.
#[inline(always)]
pub(super) fn blocks(rows: usize, panels: &[usize; MOST_ROWS]) -> usize {
    let most = panels.iter().take_while(|panels| **panels > 0).count();
    rows.div_ceil(most)
}

/// The first row of a block, and the one after its last.
#[inline(always)]
pub(super) fn bounds(rows: usize, block: usize, blocks: usize) -> (usize, usize) {
    (block * rows / blocks, (block + 1) * rows / blocks)
}

/// A product that is computed tile by tile.
pub(super) trait Tiles<S: Simd> {
    /// How many panels go with 1, 2, … rows.
    const PANELS: [usize; MOST_ROWS];

    /// Compute rows `row..row + R` of the panels `panel..panel + P`.
    fn tile<const R: usize, const P: usize>(&mut self, s: S, row: usize, panel: usize, turn: Turn);

    /// Compute everything.
    ///
    /// Panels are the outer loop, so that weights come from memory once, however many rows there
    /// are. Rows are split evenly. How they are split does not show in the result: each output is
    /// one sum in one order.
    #[inline(always)]
    fn compute(&mut self, s: S, rows: usize, panels: usize) {
        if rows == 0 {
            return;
        }
        let blocks = blocks(rows, &Self::PANELS);
        let mut width = Self::PANELS[rows.div_ceil(blocks) - 1];
        let mut panel = 0;
        while panel < panels {
            while width > panels - panel {
                width /= 2;
            }
            for block in 0..blocks {
                let turn = Turn { block, blocks };
                let (row, end) = bounds(rows, block, blocks);
                match end - row {
                    1 => self.wide::<1>(s, row, panel, width, turn),
                    2 => self.wide::<2>(s, row, panel, width, turn),
                    3 => self.wide::<3>(s, row, panel, width, turn),
                    4 => self.wide::<4>(s, row, panel, width, turn),
                    5 => self.wide::<5>(s, row, panel, width, turn),
                    6 => self.wide::<6>(s, row, panel, width, turn),
                    7 => self.wide::<7>(s, row, panel, width, turn),
                    8 => self.wide::<8>(s, row, panel, width, turn),
                    9 => self.wide::<9>(s, row, panel, width, turn),
                    10 => self.wide::<10>(s, row, panel, width, turn),
                    11 => self.wide::<11>(s, row, panel, width, turn),
                    12 => self.wide::<12>(s, row, panel, width, turn),
                    rows => unreachable!("a block of {rows} rows"),
                }
            }
            panel += width;
        }
    }

    /// The tile of that width. Those that do not occur with so many rows are not compiled.
    #[inline(always)]
    fn wide<const R: usize>(&mut self, s: S, row: usize, panel: usize, width: usize, turn: Turn) {
        match width {
            8 if const { Self::PANELS[R - 1] >= 8 } => self.tile::<R, 8>(s, row, panel, turn),
            4 if const { Self::PANELS[R - 1] >= 4 } => self.tile::<R, 4>(s, row, panel, turn),
            2 if const { Self::PANELS[R - 1] >= 2 } => self.tile::<R, 2>(s, row, panel, turn),
            1 if const { Self::PANELS[R - 1] >= 1 } => self.tile::<R, 1>(s, row, panel, turn),
            _ => unreachable!("a tile of {R} rows and {width} panels"),
        }
    }
}
