//! The order in which a product is taken: tiles of some rows times some panels.

use super::isa::Kernel;
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
pub(super) trait Tiles: Sized {
    /// How many panels go with 1, 2, … rows.
    type Shape<S: Simd>: Shape;

    /// Compute rows `row..row + R` of the panels `panel..panel + P`. To be inlined, as kernels are.
    fn tile<S: Simd, const R: usize, const P: usize>(
        &mut self,
        s: S,
        row: usize,
        panel: usize,
        turn: Turn,
    );

    /// Compute everything.
    ///
    /// Panels are the outer loop, so that weights come from memory once, however many rows there
    /// are. Rows are split evenly. How they are split does not show in the result: each output is
    /// one sum in one order.
    #[inline(always)]
    fn compute<S: Simd>(&mut self, s: S, rows: usize, panels: usize) {
        if rows == 0 {
            return;
        }
        let shape = Self::Shape::<S>::PANELS;
        let blocks = blocks(rows, &shape);
        let mut width = shape[rows.div_ceil(blocks) - 1];
        let mut panel = 0;
        while panel < panels {
            while width > panels - panel {
                width /= 2;
            }
            for block in 0..blocks {
                let turn = Turn { block, blocks };
                let (row, end) = bounds(rows, block, blocks);
                match end - row {
                    1 => self.wide::<S, 1>(s, row, panel, width, turn),
                    2 => self.wide::<S, 2>(s, row, panel, width, turn),
                    3 => self.wide::<S, 3>(s, row, panel, width, turn),
                    4 => self.wide::<S, 4>(s, row, panel, width, turn),
                    5 => self.wide::<S, 5>(s, row, panel, width, turn),
                    6 => self.wide::<S, 6>(s, row, panel, width, turn),
                    7 => self.wide::<S, 7>(s, row, panel, width, turn),
                    8 => self.wide::<S, 8>(s, row, panel, width, turn),
                    9 => self.wide::<S, 9>(s, row, panel, width, turn),
                    10 => self.wide::<S, 10>(s, row, panel, width, turn),
                    11 => self.wide::<S, 11>(s, row, panel, width, turn),
                    12 => self.wide::<S, 12>(s, row, panel, width, turn),
                    rows => unreachable!("a block of {rows} rows"),
                }
            }
            panel += width;
        }
    }

    /// The tile of that width. Those that do not occur with so many rows are not compiled.
    #[inline(always)]
    fn wide<S: Simd, const R: usize>(
        &mut self,
        s: S,
        row: usize,
        panel: usize,
        width: usize,
        turn: Turn,
    ) {
        match width {
            8 if const { Self::Shape::<S>::PANELS[R - 1] >= 8 } => {
                s.apart(Tile::<Self, R, 8> { product: self, row, panel, turn });
            }
            4 if const { Self::Shape::<S>::PANELS[R - 1] >= 4 } => {
                s.apart(Tile::<Self, R, 4> { product: self, row, panel, turn });
            }
            2 if const { Self::Shape::<S>::PANELS[R - 1] >= 2 } => {
                s.apart(Tile::<Self, R, 2> { product: self, row, panel, turn });
            }
            1 if const { Self::Shape::<S>::PANELS[R - 1] >= 1 } => {
                s.apart(Tile::<Self, R, 1> { product: self, row, panel, turn });
            }
            _ => unreachable!("a tile of {R} rows and {width} panels"),
        }
    }
}

/// How many panels go with 1, 2, … rows.
pub(super) trait Shape {
    /// 0 ends the list.
    const PANELS: [usize; MOST_ROWS];
}

/// A tile as a kernel, so that each shape is a function: in one function they took the compiler
/// several times as long.
struct Tile<'a, T, const R: usize, const P: usize> {
    product: &'a mut T,
    row: usize,
    panel: usize,
    turn: Turn,
}

impl<T: Tiles, const R: usize, const P: usize> Kernel for Tile<'_, T, R, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.product.tile::<S, R, P>(s, self.row, self.panel, self.turn);
    }
}
