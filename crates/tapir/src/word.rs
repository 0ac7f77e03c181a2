//! What a word is, and what stands for it in a model's tables.

use crate::Vocabulary;

/// A word that a session was given. Whatever a pass reads of it is derived here, once: today the
/// row of the word table; an input stage of word pieces would add its pieces.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    pub(crate) identity: Identity,
    /// Its row in the [`Vocabulary`]; all words without a row of their own share one.
    pub(crate) row: u32,
}

impl Word {
    pub(crate) fn new(text: &str, vocabulary: &Vocabulary) -> Self {
        Self { identity: Identity::of(text.as_bytes()), row: vocabulary.id(text) }
    }

    /// A row without a text is a word of its own.
    pub(crate) fn from_row(row: u32) -> Self {
        Self { identity: Identity(u128::from(row)), row }
    }
}

/// Which word it is, whatever the model knows of it: two unknown words differ.
///
/// It is a digest of the text in a fixed size, so that a session of any length allocates nothing
/// per word. With 128 bits even a billion different words have a chance of 2⁻⁶⁹ that two of them
/// are taken for one; who forges such a pair keeps an old word in a stream of his own, and in no
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity(u128);

impl Identity {
    /// Of no word at all.
    pub(crate) const EMPTY: Self = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);

    fn of(text: &[u8]) -> Self {
        Self::EMPTY.and(text)
    }

    /// The identity of a list of words, when this is the identity of those before `next`.
    pub(crate) fn then(self, next: Self) -> Self {
        self.and(&next.0.to_le_bytes())
    }

    /// FNV-1a: the same on every machine, and a few nanoseconds for a word.
    fn and(self, bytes: &[u8]) -> Self {
        const PRIME: u128 = (1 << 88) + 0x13b;
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_equal_when_their_texts_are() {
        let vocabulary = Vocabulary::new(["play"]).unwrap();
        let word = |text| Word::new(text, &vocabulary);
        assert_eq!(word("play").identity, word("play").identity);
        let (a, b) = (word("zither"), word("zithers"));
        assert_eq!((a.row, b.row), (Vocabulary::UNK, Vocabulary::UNK));
        assert_ne!(a.identity, b.identity);
        assert_ne!(Word::from_row(Vocabulary::UNK).identity, a.identity);
        // The published value of FNV-1a for "a".
        assert_eq!(a.identity, Identity::of(b"zither"));
        assert_eq!(Identity::of(b"a").0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn lists_differ_by_their_order() {
        let [a, b] = ["a", "b"].map(|text| Identity::of(text.as_bytes()));
        assert_ne!(Identity::EMPTY.then(a).then(b), Identity::EMPTY.then(b).then(a));
    }
}
