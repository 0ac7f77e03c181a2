//! New sentences from old ones: spans are exchanged for others of their kind.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tapir::Scheme;

use crate::{Random, Sentence, Text};

/// So many sentences, each one of the given with every span exchanged for a random one of its kind;
/// all different values of a kind are equally likely. Labels are IOB2 (`B-x`, `I-x`); without a
/// span in any sentence there is nothing to exchange, and no sentence.
///
/// ```
/// use tapir_data::{Random, Sentence, recombine};
/// let sentences = [
///     Sentence::new(["play", "westbam"], ["O", "B-artist"]),
///     Sentence::new(["miles", "davis", "please"], ["B-artist", "I-artist", "O"]),
/// ];
/// let sentences: Vec<&Sentence> = sentences.iter().collect();
/// let new = recombine(&sentences, 20, &mut Random::new(1));
/// let expected = Sentence::new(["play", "miles", "davis"], ["O", "B-artist", "I-artist"]);
/// assert!(new.len() == 20 && new.contains(&expected));
/// ```
pub fn recombine(sentences: &[&Sentence], count: usize, random: &mut Random) -> Vec<Sentence> {
    let mut values: BTreeMap<&str, BTreeSet<&[Text]>> = BTreeMap::new();
    let mut frames: Vec<(&Sentence, Vec<Range<usize>>)> = Vec::new();
    for sentence in sentences {
        let spans = spans(sentence);
        for span in &spans {
            let kind = &sentence.labels[span.start][2..];
            values.entry(kind).or_default().insert(&sentence.words[span.clone()]);
        }
        if !spans.is_empty() {
            frames.push((sentence, spans));
        }
    }
    if frames.is_empty() {
        return Vec::new();
    }
    let values: BTreeMap<&str, Vec<&[Text]>> =
        values.into_iter().map(|(kind, values)| (kind, values.into_iter().collect())).collect();
    let mut make = |_| {
        let (sentence, spans) = &frames[random.below(frames.len())];
        let mut new = Sentence { intent: sentence.intent.clone(), ..Sentence::default() };
        let mut done = 0;
        for span in spans {
            extend(&mut new, sentence, done..span.start);
            let begin = &sentence.labels[span.start];
            let kind = &begin[2..];
            let values = &values[kind];
            for (i, word) in values[random.below(values.len())].iter().enumerate() {
                new.words.push(word.clone());
                new.labels.push(match i {
                    0 => begin.clone(),
                    _ => Text::from(format!("I-{kind}")),
                });
            }
            done = span.end;
        }
        extend(&mut new, sentence, done..sentence.len());
        new
    };
    (0..count).map(&mut make).collect()
}

fn extend(new: &mut Sentence, sentence: &Sentence, range: Range<usize>) {
    new.words.extend_from_slice(&sentence.words[range.clone()]);
    new.labels.extend_from_slice(&sentence.labels[range]);
}

/// From each `B-x` through the `I-x` behind it; labels that are no IOB2 make none.
fn spans(sentence: &Sentence) -> Vec<Range<usize>> {
    let spans = tapir::spans(&sentence.labels, Scheme::Iob).into_iter();
    let spans = spans.map(|span| span.start..span.end);
    spans.filter(|span| sentence.labels[span.start].starts_with("B-")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Vec<Sentence> {
        vec![
            Sentence::new(["play", "a", "b", "by", "c"], ["O", "B-song", "I-song", "O", "B-who"]),
            Sentence::new(["d", "e", "now"], ["B-who", "B-song", "O"]),
            Sentence::new(["what", "now"], ["O", "O"]),
        ]
    }

    /// What stands outside of spans, and the kinds of spans in their order, are those of a sentence
    /// of the corpus; every value is one of its kind.
    #[test]
    fn only_spans_change_and_keep_their_kind() {
        let corpus = corpus();
        let corpus: Vec<&Sentence> = corpus.iter().collect();
        let new = recombine(&corpus, 200, &mut Random::new(7));
        let frame = |sentence: &Sentence| {
            let of = |(word, label): (&str, &str)| match label {
                "O" => Some(word.to_owned()),
                label => label.strip_prefix("B-").map(str::to_uppercase),
            };
            sentence.tokens().filter_map(of).collect::<Vec<_>>()
        };
        let frames = [frame(corpus[0]), frame(corpus[1])];
        let mut different = BTreeSet::new();
        for sentence in &new {
            assert!(frames.contains(&frame(sentence)), "{sentence:?}");
            for span in spans(sentence) {
                let value = sentence.words[span.clone()].join(" ");
                let known: &[&str] = match &sentence.labels[span.start][2..] {
                    "song" => &["a b", "e"],
                    _ => &["c", "d"],
                };
                assert!(known.contains(&value.as_str()), "{value}");
            }
            different.insert(format!("{sentence:?}"));
        }
        assert_eq!(different.len(), 8, "two frames, two songs, two names");
        assert_eq!(new, recombine(&corpus, 200, &mut Random::new(7)));
    }

    #[test]
    fn without_spans_there_is_nothing_to_exchange() {
        let plain = Sentence::new(["dogs", "bark"], ["NOUN", "VERB"]);
        assert!(recombine(&[&plain], 5, &mut Random::new(1)).is_empty());
        assert!(recombine(&[], 5, &mut Random::new(1)).is_empty());
    }
}
