//! Words to word pieces, as pretrained encoders read them: the text of a word is cleaned and cut at
//! spaces and punctuation ([`parts`]), and each part is covered, from its start, by the longest
//! pieces there are.
//!
//! The result is that of Hugging Face's `tokenizers`, whose tests these files run against, but for
//! two things. A word never is a special piece: a user's `[SEP]` is a text like any other. And a
//! word of which nothing is left is one `[UNK]`, for every word has a label.

mod hugging_face;
mod parts;
// The targets that are only emulated leave it out: it is most of what their tests would build.
#[cfg(test)]
#[cfg(not(any(target_env = "musl", target_os = "wasi")))]
mod reference;

use std::collections::HashMap;

pub use parts::PieceRules;

use crate::vocabulary::{LARGEST, shorten};
use crate::{Error, Result};

/// What stands in front of a piece that continues a word.
const PREFIX: &str = "##";

/// The word pieces of a pretrained encoder by id, as in `pieces.txt`.
///
/// ```
/// use tapir::{PieceRules, WordPieces};
/// let pieces = WordPieces::new(["[UNK]", "[CLS]", "[SEP]", "play", "##ing", "."])?;
/// assert_eq!(pieces.split("Playing.", &PieceRules::default()), [3, 4, 5]);
/// assert_eq!(pieces.split("jazz", &PieceRules::default()), [pieces.unknown()]);
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Clone)]
pub struct WordPieces {
    pieces: Vec<Box<str>>,
    /// The pieces that begin a part.
    first: HashMap<Box<str>, u32>,
    /// Those that continue one, without their prefix.
    later: HashMap<Box<str>, u32>,
    /// Bytes of the longest: no more of a part need be looked up.
    longest: usize,
    special: [u32; 3],
}

/// The pieces that every encoder has: unknown, first and last of an input.
const SPECIAL: [&str; 3] = ["[UNK]", "[CLS]", "[SEP]"];

/// Working memory of [`WordPieces::split_into`].
#[derive(Default)]
pub(crate) struct Splitting {
    text: String,
    pieces: Vec<u32>,
}

/// How a model cuts words into pieces.
pub(crate) struct Splitter<'a> {
    pub(crate) pieces: &'a WordPieces,
    pub(crate) rules: &'a PieceRules,
    /// The most that a word may have; those behind are cut off.
    pub(crate) most: usize,
}

impl Splitter<'_> {
    /// The ids of a word's pieces, at least one.
    pub(crate) fn split<'s>(&self, word: &str, splitting: &'s mut Splitting) -> &'s [u32] {
        self.pieces.split_into(word, self.rules, splitting);
        splitting.pieces.truncate(self.most);
        &splitting.pieces
    }

    /// The piece of a word without a text.
    pub(crate) fn unknown(&self) -> u32 {
        self.pieces.unknown()
    }
}

impl WordPieces {
    /// Pieces by id, from 0 on. `[UNK]`, `[CLS]` and `[SEP]` must be among them.
    pub fn new<P: AsRef<str>>(pieces: impl IntoIterator<Item = P>) -> Result<Self> {
        Self::build(pieces, "pieces")
    }

    /// Reads `pieces.txt`: one piece per line.
    pub fn from_text(text: &str, file: &str) -> Result<Self> {
        Self::build(text.split_terminator('\n'), file)
    }

    /// Reads the `tokenizer.json` of a BERT, and how it cuts words. What it has that is not
    /// supported is named and refused.
    ///
    /// ```
    /// let error = tapir::WordPieces::from_tokenizer("{}", "tokenizer.json").err().unwrap();
    /// assert!(error.to_string().starts_with("tokenizer.json: "));
    /// ```
    pub fn from_tokenizer(json: &str, file: &str) -> Result<(Self, PieceRules)> {
        hugging_face::read(json, file)
    }

    fn build<P: AsRef<str>>(pieces: impl IntoIterator<Item = P>, file: &str) -> Result<Self> {
        let mut list: Vec<Box<str>> = Vec::new();
        let (mut first, mut later) = (HashMap::new(), HashMap::new());
        let mut longest = 0;
        for piece in pieces {
            let (piece, line) = (piece.as_ref(), list.len() + 1);
            // Counted while they are read, so that a list without an end has one.
            if line > LARGEST {
                return Err(Error::invalid(file, format!("more than {LARGEST} pieces")));
            }
            if piece.is_empty() || piece.contains('\n') {
                let piece = shorten(piece);
                let reason = format!(
                    "line {line}: {piece:?} cannot be a piece: a piece is a non-empty line"
                );
                return Err(Error::invalid(file, reason));
            }
            let (pieces, text) = match piece.strip_prefix(PREFIX) {
                Some(text) => (&mut later, text),
                None => (&mut first, piece),
            };
            longest = longest.max(text.len());
            if let Some(other) = pieces.insert(text.into(), list.len() as u32) {
                let reason = format!(
                    "line {line}: `{}` stands on line {} already",
                    shorten(piece),
                    other + 1
                );
                return Err(Error::invalid(file, reason));
            }
            list.push(piece.into());
        }
        let mut special = [0; 3];
        for (id, name) in special.iter_mut().zip(SPECIAL) {
            *id = *first.get(name).ok_or_else(|| {
                Error::invalid(file, format!("there is no piece `{name}`, which every encoder has"))
            })?;
        }
        Ok(Self { pieces: list, first, later, longest, special })
    }

    /// The text of `pieces.txt`.
    pub fn to_text(&self) -> String {
        self.pieces.iter().flat_map(|piece| [piece, "\n"]).collect()
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The pieces by id.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = &str> {
        self.pieces.iter().map(|piece| &**piece)
    }

    /// The id of `[UNK]`, which stands for what no pieces cover.
    pub fn unknown(&self) -> u32 {
        self.special[0]
    }

    /// The ids of `[CLS]` and `[SEP]`, between which an input stands.
    pub fn ends(&self) -> [u32; 2] {
        [self.special[1], self.special[2]]
    }

    /// The ids of a word's pieces, at least one.
    pub fn split(&self, word: &str, rules: &PieceRules) -> Vec<u32> {
        let mut splitting = Splitting::default();
        self.split_into(word, rules, &mut splitting);
        splitting.pieces
    }

    /// The same with working memory, in which it leaves the ids.
    pub(crate) fn split_into(&self, word: &str, rules: &PieceRules, splitting: &mut Splitting) {
        let Splitting { text, pieces } = splitting;
        pieces.clear();
        for part in parts::of(word, rules, text) {
            let before = pieces.len();
            let short = part.chars().nth(rules.longest).is_none();
            if !short || !self.cover(part, pieces) {
                pieces.truncate(before);
                pieces.push(self.unknown());
            }
        }
        if pieces.is_empty() {
            pieces.push(self.unknown());
        }
    }

    /// Adds the pieces of a part, as long ones as there are; false if some of it has none.
    fn cover(&self, part: &str, pieces: &mut Vec<u32>) -> bool {
        let mut start = 0;
        while start < part.len() {
            let known = if start == 0 { &self.first } else { &self.later };
            let rest = &part[start..];
            let mut end = rest.floor_char_boundary(self.longest);
            let id = loop {
                match known.get(&rest[..end]) {
                    Some(id) if end > 0 => break *id,
                    _ if end == 0 => return false,
                    _ => end = rest.floor_char_boundary(end - 1),
                }
            };
            pieces.push(id);
            start += end;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 10] =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "##a", "a", "é"];

    #[test]
    fn parts_are_covered_by_the_longest_pieces() {
        let (pieces, rules) = (WordPieces::new(NAMES).unwrap(), PieceRules::default());
        assert_eq!(pieces.split("unaffable", &rules), [4, 5, 6]);
        assert_eq!(pieces.split("UNaa", &rules), [4, 7, 7]);
        assert_eq!(pieces.split("unaffx", &rules), [1], "one piece for all of the part");
        assert_eq!(pieces.split("é", &rules), [1], "accents are stripped");
        let cased = PieceRules { lowercase: false, strip_accents: false, ..rules };
        assert_eq!(pieces.split("é", &cased), [9]);
        assert_eq!(pieces.split("a a", &rules), [8, 8]);
        let short = PieceRules { longest: 3, ..rules };
        assert_eq!(pieces.split("una", &short), [4, 7]);
        assert_eq!(pieces.split("unaa a", &short), [1, 8]);
    }

    #[test]
    fn every_word_has_a_piece_and_none_is_special() {
        let (pieces, rules) = (WordPieces::new(NAMES).unwrap(), PieceRules::default());
        for nothing in ["", " ", "\u{0}", "\u{301}", "\u{200d}\u{fe0f}"] {
            assert_eq!(pieces.split(nothing, &rules), [1], "{nothing:?}");
        }
        assert_eq!(pieces.split("[SEP]", &rules), [1, 1, 1]);
        assert_eq!(pieces.split("##a", &rules), [1, 1, 8]);
    }

    #[test]
    fn text_round_trips_and_faults_name_their_line() {
        let text = WordPieces::new(NAMES).unwrap().to_text();
        let again = WordPieces::from_text(&text, "pieces.txt").unwrap();
        assert!(again.pieces().eq(NAMES));
        let error =
            |text: &str| WordPieces::from_text(text, "pieces.txt").err().unwrap().to_string();
        assert!(error("").contains("pieces.txt: there is no piece `[UNK]`"));
        assert!(error("[UNK]\n[SEP]\n").contains("no piece `[CLS]`"));
        assert!(error("[UNK]\n\na").contains("line 2: \"\" cannot be a piece"));
        assert!(error("a\n##a\nb\na\n").contains("line 4: `a` stands on line 1 already"));
        assert!(error("a\n##a\n##a\n").contains("line 3: `##a` stands on line 2 already"));
    }
}
