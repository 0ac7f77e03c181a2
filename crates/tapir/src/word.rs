//! What a word is, and what stands for it in a model's tables.

use std::collections::VecDeque;

use crate::model::{FIRST, with_scratch};
use crate::{Affixes, Model, Vocabulary};

/// A word that a session was given. Whatever a pass reads of it is derived once, when it is given:
/// the row of the word table, how it is written, and its pieces if the reviser reads pieces
/// ([`Words`]).
#[derive(Clone, Copy)]
pub(crate) struct Word {
    pub(crate) identity: Identity,
    /// Its row in the [`Vocabulary`]; all words without a row of their own share one.
    pub(crate) row: u32,
    /// How it is written, if the model reads that.
    pub(crate) affixes: Affixes,
    /// How likely it is, as the recogniser has it, that the word stays.
    pub(crate) heard: f32,
    /// How many pieces it has.
    pieces: u32,
}

impl Word {
    pub(crate) fn new(identity: Identity, row: u32, affixes: Affixes, heard: f32) -> Self {
        Self { identity, row, affixes, heard, pieces: 0 }
    }

    fn from_text(text: &str, heard: f32, vocabulary: &Vocabulary, affixes: bool) -> Self {
        let affixes = if affixes { Affixes::of(text) } else { Affixes::NONE };
        Self::new(Identity::of(text.as_bytes()), vocabulary.id(text), affixes, heard)
    }

    /// A row without a text is a word of its own.
    fn from_row(row: u32) -> Self {
        Self::new(Identity(u128::from(row)), row, Affixes::NONE, 1.0)
    }

    /// What passes that read words read of it: its row, and how it is written if one of them reads
    /// that. As long as the model's [`word_width`](Model::word_width).
    pub(crate) fn read(&self, width: usize) -> impl Iterator<Item = u32> {
        std::iter::once(self.row).chain(*self.affixes.hashes()).take(width)
    }
}

/// Words in their order, each with its pieces, of which the first has the bit [`FIRST`]. None has
/// any if the model reads no pieces.
#[derive(Default)]
pub(crate) struct Words {
    words: VecDeque<Word>,
    /// Those of all words, end to end.
    pieces: VecDeque<u32>,
}

impl Words {
    /// Adds a word as it is written, and how likely it is to stay.
    pub(crate) fn push(&mut self, text: &str, heard: f32, model: &Model) {
        let affixes = model.config().reads_affixes();
        let word = Word::from_text(text, heard, model.vocabulary(), affixes);
        match model.splitter() {
            None => self.push_back(word, []),
            Some(splitter) => with_scratch(|scratch| {
                let pieces = splitter.split(text, &mut scratch.splitting);
                self.push_back(word, pieces.iter().copied());
            }),
        }
    }

    /// Adds a row of the vocabulary, which has no text: its piece is the unknown one.
    pub(crate) fn push_row(&mut self, row: u32, model: &Model) {
        let unknown = model.splitter().map(|splitter| splitter.unknown());
        self.push_back(Word::from_row(row), unknown);
    }

    fn push_back(&mut self, mut word: Word, pieces: impl IntoIterator<Item = u32>) {
        let before = self.pieces.len();
        self.pieces.extend(pieces);
        if let Some(first) = self.pieces.get_mut(before) {
            *first |= FIRST;
        }
        word.pieces = (self.pieces.len() - before) as u32;
        self.words.push_back(word);
    }

    /// Puts a word that was taken from the front back there, with its pieces.
    pub(crate) fn push_front(&mut self, mut word: Word, pieces: &[u32]) {
        pieces.iter().rev().for_each(|piece| self.pieces.push_front(*piece));
        word.pieces = pieces.len() as u32;
        self.words.push_front(word);
    }

    /// Takes the word at the front, with its pieces.
    pub(crate) fn pop_front(&mut self) -> Option<(Word, impl Iterator<Item = u32>)> {
        let word = self.words.pop_front()?;
        Some((word, self.pieces.drain(..word.pieces as usize)))
    }

    /// Adds the words of another list but the first `skip`.
    pub(crate) fn extend(&mut self, other: &Self, skip: usize) {
        let skipped: usize = other.words.range(..skip).map(|word| word.pieces as usize).sum();
        self.words.extend(other.words.range(skip..));
        self.pieces.extend(other.pieces.range(skipped..));
    }

    /// Which words they are.
    pub(crate) fn identities(&self) -> impl ExactSizeIterator<Item = Identity> {
        self.words.iter().map(|word| word.identity)
    }

    /// How likely they are to stay.
    pub(crate) fn heard(&self) -> impl Iterator<Item = f32> {
        self.words.iter().map(|word| word.heard)
    }

    /// What is [read](Word::read) of each, end to end.
    pub(crate) fn rows(&self, width: usize) -> impl Iterator<Item = u32> {
        self.words.iter().flat_map(move |word| word.read(width))
    }

    /// Their pieces.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = u32> {
        self.pieces.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.pieces.clear();
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<Word>() + self.pieces.capacity() * size_of::<u32>()
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

    pub(crate) fn of(text: &[u8]) -> Self {
        Self::EMPTY.and(text)
    }

    /// The identity of a list of words, when this is the identity of those before `next`.
    pub(crate) fn then(self, next: Self) -> Self {
        self.and(&next.0.to_le_bytes())
    }

    /// As a number.
    pub(crate) fn number(self) -> u128 {
        self.0
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
        let word = |text| Word::from_text(text, 1.0, &vocabulary, true);
        assert_eq!(word("play").identity, word("play").identity);
        let (a, b) = (word("zither"), word("zithers"));
        assert_eq!((a.row, b.row), (Vocabulary::UNK, Vocabulary::UNK));
        assert_ne!(a.identity, b.identity);
        assert_ne!(a.affixes, b.affixes);
        assert!(a.read(1).eq([Vocabulary::UNK]));
        assert!(a.read(5).skip(1).eq(*a.affixes.hashes()));
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
