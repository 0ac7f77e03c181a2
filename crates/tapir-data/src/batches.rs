//! Sentences as numbers, and batches of them in an order that the seed fixes.

use tapir::{Affixes, Labels, Vocabulary};

use crate::{Error, Random, Result, Sentence, Text};

/// One sentence to learn from, its delay applied: NULL tokens at the end, labels shifted by as
/// much.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example {
    /// Word rows of the vocabulary.
    pub ids: Vec<u32>,
    /// The words themselves, without the NULL tokens: what reads more of them than their rows.
    pub words: Vec<Text>,
    /// How they are written, where a model reads that; else empty.
    pub affixes: Vec<Affixes>,
    /// The label expected at each step; none in the first steps of a delayed model.
    pub labels: Vec<Option<u16>>,
    /// Is REVISE expected at a step? Empty where no policy is trained.
    pub actions: Vec<bool>,
    /// What a teacher says at each step, [steps, labels]; empty where there is none.
    pub teacher: Vec<f32>,
    /// The revisions that were made while the sentence was read, in their order.
    pub revisions: Vec<Revision>,
    /// What the sentence is about, where that is learnt.
    pub intent: Option<u16>,
}

/// A revision that was made while a sentence was read: from then on the memory holds what it put
/// out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revision {
    /// The step at which it was made, from 0.
    pub step: usize,
    /// Its logits for the last steps, this one included, oldest first: [steps, labels].
    pub logits: Vec<f32>,
}

impl Example {
    /// Its first steps.
    #[must_use]
    pub fn prefix(&self, length: usize) -> Self {
        let steps = |count: usize| length.min(count);
        let labels = self.teacher.len() / self.ids.len().max(1);
        let made = self.revisions.iter().take_while(|revision| revision.step < length);
        Self {
            ids: self.ids[..steps(self.ids.len())].to_vec(),
            words: self.words[..steps(self.words.len())].to_vec(),
            affixes: self.affixes[..steps(self.affixes.len())].to_vec(),
            labels: self.labels[..steps(self.labels.len())].to_vec(),
            actions: self.actions[..steps(self.actions.len())].to_vec(),
            teacher: self.teacher[..steps(self.ids.len()) * labels].to_vec(),
            revisions: made.cloned().collect(),
            intent: self.intent,
        }
    }
}

/// Sentences to examples. `actions` has a list for each sentence, or is empty.
pub fn examples(
    sentences: &[&Sentence],
    actions: &[Vec<bool>],
    vocabulary: &Vocabulary,
    labels: &Labels,
    delay: usize,
) -> Result<Vec<Example>> {
    let example = |(i, sentence): (usize, &&Sentence)| {
        let mut ids: Vec<u32> = sentence.words.iter().map(|word| vocabulary.id(word)).collect();
        ids.extend(std::iter::repeat_n(Vocabulary::NULL, delay));
        let mut expected = vec![None; delay];
        for label in &sentence.labels {
            let id = labels.id(label).ok_or_else(|| {
                Error::Setting(format!("the label `{label}` is not in the label set; train again"))
            })?;
            expected.push(Some(id));
        }
        // The first d steps are WRITE, then the actions of the words follow, as their labels do.
        let actions = actions.get(i).map_or_else(Vec::new, |actions| {
            std::iter::repeat_n(false, delay).chain(actions.iter().copied()).collect()
        });
        let words = sentence.words.clone();
        Ok(Example { ids, words, labels: expected, actions, ..Example::default() })
    };
    sentences.iter().enumerate().filter(|(_, s)| !s.is_empty()).map(example).collect()
}

/// In which order the rows of a batch stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Row b · length + t: a sentence after the other, for the reviser.
    Sentence,
    /// Row t · sentences + b: a step after the other, for the first pass.
    Time,
}

/// Sentences of similar lengths, padded to the longest.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// How many sentences there are.
    pub sentences: usize,
    /// Words of the longest.
    pub length: usize,
    /// Words of each.
    pub lengths: Vec<usize>,
    /// Rows of the vocabulary, [sentences × length].
    pub ids: Vec<u32>,
    /// How its words are written, [sentences × length]; nothing for padding and where no model reads
    /// it.
    pub affixes: Vec<Affixes>,
    /// Label and weight of each row; padding weighs nothing.
    pub labels: Vec<[f32; 2]>,
    /// Action (1 is REVISE) and weight of each row.
    pub actions: Vec<[f32; 2]>,
    /// What a teacher says, [sentences × length, labels]; empty where there is none.
    pub teacher: Vec<f32>,
    /// The revisions of each sentence.
    pub revisions: Vec<Vec<Revision>>,
    /// Intent and weight of each sentence; none weighs nothing.
    pub intents: Vec<[f32; 2]>,
}

/// How much there is of everything in a whole batch, of which a part may be taken: each counts by
/// its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Labels that are expected.
    pub labels: usize,
    /// Actions that are expected.
    pub actions: usize,
    /// Intents that are expected.
    pub intents: usize,
}

impl Totals {
    /// Those of some examples.
    pub fn of(examples: &[&Example]) -> Self {
        Self {
            labels: examples.iter().map(|e| e.labels.iter().flatten().count()).sum(),
            actions: examples.iter().map(|e| e.actions.len()).sum(),
            intents: examples.iter().filter(|e| e.intent.is_some()).count(),
        }
    }
}

impl Batch {
    /// Puts examples together. Each label, action and intent weighs its share of the totals, which
    /// are those of the whole batch.
    pub fn new(examples: &[&Example], order: Order, totals: Totals) -> Self {
        let sentences = examples.len();
        let lengths: Vec<usize> = examples.iter().map(|example| example.ids.len()).collect();
        let length = lengths.iter().copied().max().unwrap_or(0);
        let rows = sentences * length;
        let mut batch = Self {
            sentences,
            length,
            lengths,
            ids: vec![Vocabulary::PAD; rows],
            affixes: vec![Affixes::NONE; rows],
            labels: vec![[0.0; 2]; rows],
            actions: vec![[0.0; 2]; rows],
            teacher: Vec::new(),
            revisions: examples.iter().map(|example| example.revisions.clone()).collect(),
            intents: vec![[0.0; 2]; sentences],
        };
        let width = examples.iter().map(|e| e.teacher.len() / e.ids.len().max(1)).max();
        let width = width.unwrap_or(0);
        batch.teacher.resize(rows * width, 0.0);
        let share = |total: usize| 1.0 / total.max(1) as f32;
        let (label_weight, action_weight) = (share(totals.labels), share(totals.actions));
        for (b, example) in examples.iter().enumerate() {
            if let Some(intent) = example.intent {
                batch.intents[b] = [f32::from(intent), share(totals.intents)];
            }
            for (t, id) in example.ids.iter().enumerate() {
                let row = match order {
                    Order::Sentence => b * length + t,
                    Order::Time => t * sentences + b,
                };
                batch.ids[row] = *id;
                if let Some(affixes) = example.affixes.get(t) {
                    batch.affixes[row] = *affixes;
                }
                if !example.teacher.is_empty() {
                    let said = &example.teacher[t * width..(t + 1) * width];
                    batch.teacher[row * width..(row + 1) * width].copy_from_slice(said);
                }
                if let Some(label) = example.labels[t] {
                    batch.labels[row] = [f32::from(label), label_weight];
                }
                if let Some(action) = example.actions.get(t) {
                    batch.actions[row] = [f32::from(u8::from(*action)), action_weight];
                }
            }
        }
        batch
    }

    /// Replaces words with probability `unknown` by what stands for an unknown word in their place,
    /// so that it is trained, and words with a row of their own by their vector with probability
    /// `untuned`.
    pub fn replace_words(
        &mut self,
        (unknown, as_unknown): (f64, impl Fn(u32) -> u32),
        untuned: f64,
        vocabulary: &Vocabulary,
        random: &mut Random,
    ) {
        let vector = |id: u32| {
            let word = vocabulary.words().nth(id as usize)?;
            Some(vocabulary.vectors()?.row(word)? + vocabulary.len() as u32)
        };
        // Only rows with a word in them draw a number, so that padding changes nothing.
        for id in self.ids.iter_mut().filter(|id| **id > Vocabulary::NULL) {
            let draw = random.unit();
            if draw < unknown {
                *id = as_unknown(*id);
            } else if draw < unknown + untuned {
                *id = vector(*id).unwrap_or(*id);
            }
        }
    }
}

/// The batches of one epoch: similar lengths together, so that almost nothing is padding.
pub struct Batches;

/// An example, and how much of it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Which one.
    pub example: usize,
    /// Its first so many steps.
    pub length: usize,
}

impl Batches {
    /// How many batches are sorted by length among themselves: enough for batches of equal lengths,
    /// few enough that the batches of two epochs differ.
    const POOL: usize = 50;

    /// The order of an epoch, in which a sentence is cut to a random prefix with probability
    /// `prefixes`. The same seed and epoch give the same batches.
    pub fn epoch(
        examples: &[Example],
        size: usize,
        prefixes: f64,
        seed: u64,
        epoch: usize,
    ) -> Vec<Vec<Prefix>> {
        let mut random = Random::at(seed, &[epoch as u64]);
        let mut order: Vec<usize> = (0..examples.len()).collect();
        random.shuffle(&mut order);
        let mut cut = |example: usize| {
            let Example { ids, labels, .. } = &examples[example];
            let mut length = ids.len();
            if prefixes > 0.0 && random.unit() < prefixes {
                // At least one step of a delayed model has a label.
                let least = labels.iter().take_while(|label| label.is_none()).count() + 1;
                length = least.min(length) + random.below(length - least.min(length) + 1);
            }
            Prefix { example, length }
        };
        let mut order: Vec<Prefix> = order.into_iter().map(&mut cut).collect();
        let mut batches = Vec::new();
        for pool in order.chunks_mut(Self::POOL * size) {
            pool.sort_by_key(|prefix| prefix.length); // stable: equals stay shuffled
            batches.extend(pool.chunks(size).map(<[Prefix]>::to_vec));
        }
        random.shuffle(&mut batches);
        batches
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example(length: usize) -> Example {
        let (labels, actions) = (vec![Some(1); length], vec![true; length]);
        Example { ids: vec![5; length], labels, actions, ..Example::default() }
    }

    #[test]
    fn an_epoch_holds_every_sentence_once_and_little_padding() {
        let examples: Vec<_> = (0..1000).map(|i| example(1 + i * 7 % 30)).collect();
        let batches = Batches::epoch(&examples, 16, 0.0, 1, 0);
        let mut seen: Vec<usize> = batches.iter().flatten().map(|prefix| prefix.example).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
        let padded: usize = batches
            .iter()
            .map(|batch| {
                let examples: Vec<_> =
                    batch.iter().map(|prefix| &examples[prefix.example]).collect();
                Batch::new(&examples, Order::Sentence, Totals { labels: 1, actions: 1, intents: 1 })
                    .ids
                    .len()
            })
            .sum();
        let words: usize = examples.iter().map(|e| e.ids.len()).sum();
        assert!(padded as f64 / (words as f64) < 1.05, "{padded} rows for {words} words");
        assert_eq!(batches, Batches::epoch(&examples, 16, 0.0, 1, 0));
        assert_ne!(batches, Batches::epoch(&examples, 16, 0.0, 1, 1));
    }

    #[test]
    fn the_batches_of_a_seed_are_fixed_for_ever() {
        let examples: Vec<_> = (1..=8).map(|i| example(i * 5)).collect();
        let order: Vec<Vec<[usize; 2]>> = Batches::epoch(&examples, 2, 0.5, 1, 3)
            .iter()
            .map(|batch| batch.iter().map(|prefix| [prefix.example, prefix.length]).collect())
            .collect();
        assert_eq!(
            order,
            [[[5, 23], [4, 25]], [[0, 1], [1, 9]], [[2, 15], [3, 20]], [[6, 35], [7, 40]]]
        );
    }

    #[test]
    fn two_in_a_hundred_words_become_unknown_in_training() {
        let vocabulary = Vocabulary::new(["a", "b", "c"]).unwrap();
        let long = example(20_000);
        let mut batch =
            Batch::new(&[&long], Order::Sentence, Totals { labels: 1, actions: 1, intents: 1 });
        batch.replace_words((0.02, |_| Vocabulary::UNK), 0.0, &vocabulary, &mut Random::new(1));
        let unknown = batch.ids.iter().filter(|id| **id == Vocabulary::UNK).count();
        assert!((300..500).contains(&unknown), "{unknown}");
    }

    /// The first words of a delayed model have no label yet, and once were never replaced.
    #[test]
    fn words_of_a_delayed_model_become_unknown_from_the_first_on() {
        let vocabulary = Vocabulary::new(["a", "b", "c"]).unwrap();
        let delayed =
            Example { ids: vec![5, 5, 2, 2], labels: vec![None; 4], ..Example::default() };
        let mut batch =
            Batch::new(&[&delayed], Order::Time, Totals { labels: 1, actions: 1, intents: 1 });
        batch.replace_words((1.0, |_| Vocabulary::UNK), 0.0, &vocabulary, &mut Random::new(1));
        assert_eq!(batch.ids, [Vocabulary::UNK, Vocabulary::UNK, 2, 2]);
    }

    proptest! {
        #[test]
        fn every_sentence_is_in_one_batch_of_an_epoch(
            lengths in prop::collection::vec(1usize..90, 0..60),
            size in 1usize..9,
            prefixes in 0.0..=1.0,
            seed: u64,
            epoch in 0usize..5,
        ) {
            let examples: Vec<_> = lengths.iter().map(|length| example(*length)).collect();
            let batches = Batches::epoch(&examples, size, prefixes, seed, epoch);
            prop_assert!(batches.iter().all(|batch| (1..=size).contains(&batch.len())));
            let mut seen: Vec<usize> = batches.iter().flatten().map(|prefix| prefix.example).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
            for prefix in batches.iter().flatten() {
                prop_assert!((1..=lengths[prefix.example]).contains(&prefix.length));
            }
            prop_assert_eq!(&batches, &Batches::epoch(&examples, size, prefixes, seed, epoch));
        }
    }

    #[test]
    fn some_sentences_are_cut_to_prefixes() {
        let examples: Vec<_> = (0..1000).map(|_| example(10)).collect();
        let lengths: Vec<usize> = Batches::epoch(&examples, 16, 0.5, 1, 0)
            .iter()
            .flatten()
            .map(|prefix| prefix.length)
            .collect();
        let cut = lengths.iter().filter(|length| **length < 10).count();
        assert!((400..500).contains(&cut), "{cut} of 1000 were cut");
        assert!(lengths.contains(&1) && lengths.iter().all(|length| (1..=10).contains(length)));
    }

    #[test]
    fn a_delay_shifts_labels_and_actions() {
        let sentence = Sentence::new(["a", "b"], ["X", "Y"]);
        let vocabulary = Vocabulary::new(["a", "b"]).unwrap();
        let labels = Labels::new(["X", "Y"]).unwrap();
        let made = examples(&[&sentence], &[vec![false, true]], &vocabulary, &labels, 2).unwrap();
        assert_eq!(made[0].ids, [3, 4, 2, 2]);
        assert_eq!(made[0].labels, [None, None, Some(0), Some(1)]);
        assert_eq!(made[0].actions, [false, false, false, true]);
        let batch =
            Batch::new(&[&made[0]], Order::Time, Totals { labels: 2, actions: 4, intents: 1 });
        let text = |pair: [f32; 2]| format!("{pair:?}");
        assert_eq!(text(batch.labels[1]), "[0.0, 0.0]");
        assert_eq!(text(batch.labels[3]), "[1.0, 0.5]");
        assert_eq!(text(batch.actions[0]), "[0.0, 0.25]");
    }

    #[test]
    fn padding_weighs_nothing() {
        let (long, short) = (example(3), example(1));
        let batch = Batch::new(
            &[&long, &short],
            Order::Sentence,
            Totals { labels: 4, actions: 4, intents: 1 },
        );
        let total: f32 = batch.labels.iter().map(|[_, weight]| weight).sum();
        assert!((total - 1.0).abs() < 1e-6);
        assert_eq!(batch.ids[4..], [0, 0]);
        let time =
            Batch::new(&[&long, &short], Order::Time, Totals { labels: 4, actions: 4, intents: 1 });
        assert_eq!(time.ids, [5, 5, 5, 0, 5, 0]);
    }
}
