//! How a word is written: its shape, its beginning and its endings.

/// Four hashes of how a word is written: of its shape, of its first three letters, and of its last
/// two and three. A pass that reads them adds a row of its own table for each, so that *Kowalczyk*,
/// which it never saw, is a capitalised word in *-yk*, and *outgrew* ends as *grew* does (after
/// Collobert et al., 2011, §6).
///
/// Letters of beginnings and endings are lower case; case is what the shape has: `X` and `x` for a
/// large and a small letter, `d` for a digit, anything else as it is, and at most two of a kind in a
/// row (`McKay` is `XxXxx`, `1990s` is `ddx`, `U.S.` is `X.X.`).
///
/// ```
/// use tapir::Affixes;
/// assert_eq!(Affixes::of("Boston"), Affixes::of("Boston"));
/// let shape = |word| Affixes::of(word).hashes()[0];
/// assert_eq!(shape("Boston"), shape("Warsaw"));
/// assert_ne!(shape("Boston"), shape("boston"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affixes([u32; Affixes::COUNT]);

impl Affixes {
    /// How many hashes a word has.
    pub const COUNT: usize = 4;
    /// Those of what has no text, such as the NULL tokens of a delayed model: nothing is read.
    pub const NONE: Self = Self([u32::MAX; Self::COUNT]);
    /// A shape of more characters is cut: what follows tells no more of a word.
    const LONGEST_SHAPE: usize = 12;

    /// Those of a word.
    pub fn of(word: &str) -> Self {
        let lower = |letter: char| letter.to_lowercase();
        let first = word.chars().take(3).flat_map(lower);
        let last = |count: usize| word.chars().rev().take(count).flat_map(lower);
        Self([hash(0, shape(word)), hash(1, first), hash(2, last(2)), hash(3, last(3))])
    }

    /// Those that these hashes are; none if there are none.
    pub(crate) fn read(hashes: &[u32]) -> Self {
        hashes.try_into().map_or(Self::NONE, Self)
    }

    /// The hashes, which a table of so many rows takes modulo their number.
    pub fn hashes(&self) -> &[u32; Self::COUNT] {
        &self.0
    }

    /// The rows of these hashes in a table of `rows` rows; none for what has no text.
    pub fn rows(hashes: &[u32], rows: usize) -> impl Iterator<Item = usize> {
        let written = hashes.iter().filter(|hash| **hash != u32::MAX);
        written.map(move |hash| *hash as usize % rows)
    }
}

/// What stands for each character of a word, the third and later ones of a kind left out.
fn shape(word: &str) -> impl Iterator<Item = char> {
    let (mut last, mut run) = (None, 0);
    let kind = |letter: char| match letter {
        _ if letter.is_uppercase() => 'X',
        _ if letter.is_alphabetic() => 'x',
        _ if letter.is_numeric() => 'd',
        other => other,
    };
    let kinds = word.chars().map(kind).filter(move |kind| {
        run = if last == Some(*kind) { run + 1 } else { 1 };
        last = Some(*kind);
        run <= 2
    });
    kinds.take(Affixes::LONGEST_SHAPE)
}

/// FNV-1a of what is read and of the letters, without the top bit, so that no hash is that of
/// nothing.
fn hash(what: u32, letters: impl Iterator<Item = char>) -> u32 {
    let values = std::iter::once(what).chain(letters.map(u32::from));
    let hash = values.fold(0xcbf2_9ce4_8422_2325_u64, |hash, value| {
        (hash ^ u64::from(value)).wrapping_mul(0x0100_0000_01b3)
    });
    ((hash >> 32) ^ hash) as u32 & 0x7fff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(word: &str) -> String {
        shape(word).collect()
    }

    #[test]
    fn shapes_show_case_digits_and_marks() {
        for (word, expected) in [
            ("play", "xx"),
            ("Boston", "Xxx"),
            ("IBM", "XX"),
            ("McKay", "XxXxx"),
            ("1990s", "ddx"),
            ("U.S.", "X.X."),
            ("I", "X"),
            ("co-op", "xx-xx"),
            ("Łódź", "Xxx"),
            ("東京", "xx"),
            ("!!!!", "!!"),
            ("", ""),
        ] {
            assert_eq!(shape_of(word), expected, "{word}");
        }
        assert_eq!(shape_of(&"aB1".repeat(2_000)).chars().count(), Affixes::LONGEST_SHAPE);
    }

    #[test]
    fn words_share_what_they_have_in_common() {
        let [walked, talked, talk, large] = ["walked", "talked", "talk", "TALKED"].map(Affixes::of);
        // Shape, beginning, two and three last letters.
        let equal = |a: Affixes, b: Affixes| [0, 1, 2, 3].map(|i| a.0[i] == b.0[i]);
        assert_eq!(equal(walked, talked), [true, false, true, true]);
        assert_eq!(equal(talk, talked), [true, true, false, false]);
        assert_eq!(equal(large, talked), [false, true, true, true]);
        // A word of one letter is not its own beginning for its ending.
        let one = Affixes::of("a").0;
        assert!((0..4).all(|i| (0..i).all(|j| one[i] != one[j])));
    }

    #[test]
    fn rows_are_those_of_the_table() {
        let word = Affixes::of("Boston");
        assert_eq!(Affixes::rows(word.hashes(), 7).filter(|row| *row < 7).count(), 4);
        assert_eq!(Affixes::rows(Affixes::NONE.hashes(), 7).count(), 0);
        assert!(word.hashes().iter().all(|hash| *hash != u32::MAX));
    }

    /// Models keep rows for these numbers: another hash would be another model.
    #[test]
    fn hashes_are_fixed_for_ever() {
        assert_eq!(Affixes::of("Boston").0, PINNED);
    }

    const PINNED: [u32; 4] = [1_020_325_488, 999_146_483, 534_564_098, 2_136_340_582];
}
