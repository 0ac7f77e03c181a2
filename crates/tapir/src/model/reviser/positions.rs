//! Sinusoidal positions: sine on even, cosine on odd places, base 10000.

pub(super) struct Positions {
    /// [length, d]
    table: Vec<f32>,
}

impl Positions {
    pub(super) fn sinusoidal(length: usize, d: usize) -> Self {
        let mut table = Vec::with_capacity(length * d);
        for position in 0..length {
            for i in 0..d {
                let angle = position as f64 / 10000f64.powf((i - i % 2) as f64 / d as f64);
                table.push(if i % 2 == 0 { angle.sin() } else { angle.cos() } as f32);
            }
        }
        Self { table }
    }

    /// x: [words, d], at most as many words as there are positions.
    pub(super) fn add(&self, x: &mut [f32]) {
        x.iter_mut().zip(&self.table).for_each(|(x, position)| *x += position);
    }
}
