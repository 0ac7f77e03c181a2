//! Random numbers that are the same on every machine and in every version of this crate.

use serde::{Deserialize, Serialize};

/// `SplitMix64` (Steele, Lea and Flood, 2014): one word of state, so that it is easily saved and
/// restored.
///
/// ```
/// let mut random = tapir_data::Random::new(1);
/// assert_eq!(random.next_u64(), 0x910a_2dec_8902_5cc1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random(u64);

impl Random {
    /// A generator for this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for a seed and the place where it is used (an epoch, a batch), independent of
    /// its neighbours.
    pub fn at(seed: u64, place: &[u64]) -> Self {
        place
            .iter()
            .fold(Self(seed), |random, part| Self(Self(random.0 ^ part.rotate_left(32)).next_u64()))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, each equally likely (to within 2⁻⁶⁴ × bound); 0 when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Puts the items in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_fixed_for_ever() {
        let mut items: Vec<u32> = (0..10).collect();
        Random::new(7).shuffle(&mut items);
        assert_eq!(items, [9, 5, 8, 6, 1, 2, 4, 7, 0, 3]);
    }

    #[test]
    fn neighbouring_places_give_different_numbers() {
        let mut all: Vec<u64> =
            (0..10).flat_map(|i| (0..10).map(move |j| Random::at(1, &[i, j]).next_u64())).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
    }
}
