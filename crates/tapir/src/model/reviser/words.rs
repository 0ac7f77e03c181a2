//! What the authors' revisers read: a word's vector, projected to d, and its sinusoidal position.

use super::positions::Positions;
use crate::model::scratch::Scratch;
use crate::model::{Given, Input};
use crate::tensors::Tensors;
use crate::{Config, Result, ReviserConfig, Vocabulary};

pub(super) struct Words {
    input: Input,
    positions: Positions,
}

impl Words {
    pub(super) fn load(
        tensors: &Tensors,
        config: &Config,
        sizes: &ReviserConfig,
        vocabulary: &Vocabulary,
    ) -> Result<Self> {
        let d = sizes.hidden;
        let (pass, affixes) = ("reviser", sizes.affixes);
        let input = Input::load(tensors, pass, config, vocabulary, Some(d), affixes)?;
        Ok(Self { input, positions: Positions::sinusoidal(config.max_length, d) })
    }

    pub(super) fn bytes(&self) -> usize {
        self.input.bytes()
    }

    /// A row for each word: x, [words, d], in `scratch.x`, and where each input ends in
    /// `scratch.ends`.
    pub(super) fn embed(&self, ids: &[u32], ends: &[usize], scratch: &mut Scratch) {
        self.input.embed(
            Given::rows(ids),
            &mut scratch.x,
            &mut scratch.joined,
            &mut scratch.kernel,
        );
        let (d, width, mut start) = (self.input.size(), self.input.word_width(), 0);
        scratch.ends.clear();
        scratch.ends.extend(ends.iter().map(|end| end / width));
        for end in &scratch.ends {
            self.positions.add(&mut scratch.x[start * d..end * d]);
            start = *end;
        }
    }
}
