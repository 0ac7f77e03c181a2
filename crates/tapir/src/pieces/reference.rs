//! Our pieces against those of the crate `tokenizers`, on words that nobody writes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer,
};

use super::{PieceRules, Splitting, WordPieces, parts};

/// All ways to set the four switches.
fn all_rules() -> impl Iterator<Item = PieceRules> + Clone {
    (0..16).map(|bits| PieceRules {
        clean: bits & 1 == 0,
        split_chinese: bits & 2 == 0,
        strip_accents: bits & 4 == 0,
        lowercase: bits & 8 == 0,
        longest: 20,
    })
}

/// The parts of a word by `tokenizers`.
fn their_parts(word: &str, rules: &PieceRules) -> Vec<String> {
    let normalizer = BertNormalizer::new(
        rules.clean,
        rules.split_chinese,
        Some(rules.strip_accents),
        rules.lowercase,
    );
    let mut text = NormalizedString::from(word);
    normalizer.normalize(&mut text).unwrap();
    let mut text = PreTokenizedString::from(text);
    BertPreTokenizer.pre_tokenize(&mut text).unwrap();
    let splits = text.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(part, ..)| part.to_owned()).collect()
}

#[track_caller]
fn assert_same_parts(word: &str, rules: &PieceRules) {
    let mut text = String::new();
    let ours: Vec<_> = parts::of(word, rules, &mut text).collect();
    assert_eq!(ours, their_parts(word, rules), "{word:?}, {rules:?}");
}

/// Between letters: what is left out, what cuts, and what becomes something else all show.
fn check_character(c: char) {
    for rules in all_rules() {
        assert_same_parts(&format!("aé{c}B"), &rules);
    }
}

#[test]
fn characters_are_what_they_are_there() {
    let characters = (0..0x3400).chain((0x3400..=0x0010_ffff).step_by(211));
    characters.filter_map(char::from_u32).for_each(check_character);
    // The ends of every block of Chinese characters.
    for end in [
        0x3400, 0x4dbf, 0x4e00, 0x9fff, 0xf900, 0xfaff, 0x20000, 0x2a6df, 0x2a700, 0x2b73f,
        0x2b740, 0x2b81f, 0x2b820, 0x2b91f, 0x2b920, 0x2ceaf, 0x2f800, 0x2fa1f,
    ] {
        (end - 1..=end + 1).filter_map(char::from_u32).for_each(check_character);
    }
}

#[test]
#[ignore = "takes minutes"]
fn all_characters_are_what_they_are_there() {
    (0..=0x0010_ffff).filter_map(char::from_u32).for_each(check_character);
}

/// Numbers that are the same for a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % limit
    }

    fn from<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A character: mostly of those that pieces have, now and then any.
    fn character(&mut self) -> char {
        const ODD: &[char] = &[
            'A',
            'Z',
            'É',
            'ü',
            'ß',
            'İ',
            'Σ',
            'ς',
            'ﬁ',
            'ǅ',
            '½',
            'ñ',
            'ẞ',
            'Ω',
            '日',
            '本',
            '中',
            '한',
            'ㅎ',
            'ภ',
            'ा',
            '🎷',
            '👩',
            '\u{200d}',
            '\u{fe0f}',
            '\u{301}',
            '\u{323}',
            '\u{302e}',
            '\u{1d165}',
            '\u{ad}',
            '\u{a0}',
            '\u{3000}',
            '\u{2028}',
            '\u{85}',
            '\t',
            '\n',
            ' ',
            '\0',
            '\u{fffd}',
            '\u{e000}',
            '#',
            '[',
            ']',
            '\'',
            '.',
            '-',
            '_',
            '$',
            '^',
            '`',
            '。',
            '“',
            '१',
        ];
        match self.below(10) {
            0..6 => self.from(b"abcdefgh").into(),
            6..9 => self.from(ODD),
            _ => loop {
                if let Some(c) = char::from_u32(self.below(0x0011_0000) as u32) {
                    break c;
                }
            },
        }
    }

    fn word(&mut self) -> String {
        let length = if self.below(20) == 0 { 15 + self.below(10) } else { 1 + self.below(10) };
        (0..length).map(|_| self.character()).collect()
    }
}

/// Compares the pieces of so many words, by every rule in turn.
fn compare(words: usize) {
    let mut draw = Draw(7);
    let mut names: BTreeSet<String> = (0..4_000)
        .map(|_| {
            let length = 1 + draw.below(4);
            let name: String = (0..length).map(|_| draw.character()).collect();
            if draw.below(2) == 0 { name } else { format!("##{name}") }
        })
        .filter(|name| !name.contains('\n'))
        .collect();
    names.extend(["[UNK]", "[CLS]", "[SEP]", "a", "b", "##a", "##b"].map(str::to_owned));
    let pieces = WordPieces::new(&names).unwrap();
    let vocabulary = names.iter().enumerate().map(|(id, name)| (name.clone(), id.into()));
    let json = json!({
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 20,
        "vocab": Value::Object(vocabulary.collect()),
    });
    let theirs: WordPiece = serde_json::from_str(&json.to_string()).unwrap();
    let mut splitting = Splitting::default();
    let mut known = 0;
    for rules in all_rules().cycle().take(words) {
        let word = draw.word();
        let mut expected: Vec<u32> = their_parts(&word, &rules)
            .iter()
            .flat_map(|part| theirs.tokenize(part).unwrap())
            .map(|token| token.id)
            .collect();
        if expected.is_empty() {
            expected.push(pieces.unknown());
        }
        pieces.split_into(&word, &rules, &mut splitting);
        assert_eq!(splitting.pieces, expected, "{word:?}, {rules:?}");
        known += usize::from(expected.iter().any(|id| *id != pieces.unknown()));
    }
    assert!(known > words / 3, "{known} of {words} words have pieces: the test wants both kinds");
}

#[test]
fn pieces_are_theirs() {
    compare(10_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_million_pieces_are_theirs() {
    compare(1_000_000);
}
