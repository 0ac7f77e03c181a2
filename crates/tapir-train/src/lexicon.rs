//! What words are to a model: rows of its vocabulary and, where its reviser reads them, word
//! pieces.

use tapir::{Config, Vocabulary, WordPieces};
use tapir_data::Example;

use crate::Spellings;

/// The words of a model.
#[derive(Clone, Copy)]
pub struct Lexicon<'a> {
    /// Rows of words.
    pub vocabulary: &'a Vocabulary,
    /// Word pieces, where the reviser reads pieces.
    pub pieces: Option<&'a WordPieces>,
    /// Spellings of words, where the first pass reads unknown ones by theirs.
    pub spellings: Option<&'a Spellings>,
}

impl<'a> From<&'a Vocabulary> for Lexicon<'a> {
    fn from(vocabulary: &'a Vocabulary) -> Self {
        Self { vocabulary, pieces: None, spellings: None }
    }
}

impl Lexicon<'_> {
    /// A sentence as a pretrained reviser reads it: a step for `[CLS]`, each piece and `[SEP]`, the
    /// label of a word being expected at its first piece. Words that the encoder has no positions
    /// for are left out at the end. None where the reviser reads words.
    pub(crate) fn as_pieces(&self, example: &Example, config: &Config) -> Option<Example> {
        let bert = config.reviser.as_ref()?.bert.as_ref()?;
        let pieces = self.pieces?;
        let (room, most) = (bert.room(), bert.most_of_a_word(config.delay));
        let [cls, sep] = pieces.ends();
        let (mut ids, mut labels) = (vec![cls], vec![None]);
        for (step, label) in example.labels.iter().enumerate() {
            let mut word = match example.words.get(step) {
                Some(word) => pieces.split(word, &bert.rules),
                // A NULL token of a delayed model has no text.
                None => vec![pieces.unknown()],
            };
            word.truncate(most);
            if ids.len() - 1 + word.len() > room {
                break;
            }
            labels.push(*label);
            labels.extend(std::iter::repeat_n(None, word.len() - 1));
            ids.extend(word);
        }
        ids.push(sep);
        labels.push(None);
        Some(Example { ids, labels, intent: example.intent, ..Example::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tiny encoder has room for twelve pieces.
    #[test]
    fn labels_stand_at_first_pieces_and_what_has_no_position_is_left_out() {
        let parts = tapir::doctest::pretrained();
        let (vocabulary, pieces) = (&parts.vocabulary, parts.pieces.as_ref());
        let lexicon = Lexicon { vocabulary, pieces, spellings: None };
        let words = ["play", "miles", "zithers", "?"];
        let mut example = Example {
            ids: vec![3; 5],
            words: words.map(Into::into).to_vec(),
            labels: vec![None, Some(0), Some(1), Some(2), Some(3)],
            ..Example::default()
        };
        let read = lexicon.as_pieces(&example, &parts.config).unwrap();
        assert_eq!(read.ids, [2, 4, 8, 9, 12, 13, 14, 15, 1, 3]);
        let at = |piece: usize| read.labels[piece];
        assert_eq!([at(1), at(2), at(4), at(7), at(8)], example.labels[..]);
        assert_eq!(read.labels.iter().flatten().count(), 4);

        example.words = vec!["zithers".into(); 5];
        let read = lexicon.as_pieces(&example, &parts.config).unwrap();
        assert_eq!(read.ids.len(), 14, "four words of three pieces fill it");
        assert!(Lexicon::from(vocabulary).as_pieces(&example, &parts.config).is_none());
    }
}
