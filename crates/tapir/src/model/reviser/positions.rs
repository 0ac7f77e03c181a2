//! Sinusoidal positions: sine on even, cosine on odd places, base 10000.

/// So many positions are computed beforehand: more than almost any input has. Those behind them are
/// computed when they are read, since `max_length` may claim far more than will ever come.
const READY: usize = 256;

pub(super) struct Positions {
    /// What a position is divided by to give its angle at each place, [d]
    rates: Vec<f64>,
    /// [ready, d]
    table: Vec<f32>,
}

impl Positions {
    pub(super) fn sinusoidal(length: usize, d: usize) -> Self {
        let rate = |i: usize| 10000f64.powf((i - i % 2) as f64 / d as f64);
        let mut positions = Self { rates: (0..d).map(rate).collect(), table: Vec::new() };
        let mut table = vec![0.0; length.min(READY) * d];
        positions.add(&mut table);
        positions.table = table;
        positions
    }

    /// x: [words, d], at most as many words as there are positions.
    pub(super) fn add(&self, x: &mut [f32]) {
        let d = self.rates.len();
        let ready = self.table.len() / d;
        x.iter_mut().zip(&self.table).for_each(|(x, position)| *x += position);
        for (position, row) in x.chunks_exact_mut(d).enumerate().skip(ready) {
            for (i, (x, rate)) in row.iter_mut().zip(&self.rates).enumerate() {
                let angle = position as f64 / rate;
                *x += if i % 2 == 0 { angle.sin() } else { angle.cos() } as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_behind_the_table_are_those_that_would_be_in_it() {
        let d = 6;
        let mut x = vec![0.0; 2 * READY * d];
        Positions::sinusoidal(2 * READY, d).add(&mut x);
        let mut expected = vec![0.0; x.len()];
        Positions::sinusoidal(1, d).add(&mut expected);
        assert_eq!(x, expected);
        let angle = (READY + 3) as f64 / 10000f64.powf(2.0 / 6.0);
        let at = (READY + 3) * d;
        assert_eq!(x[at + 2..at + 4], [angle.sin() as f32, angle.cos() as f32]);
    }
}
