//! Sentences as batches of ids, in an order that a seed fixes on every machine.
//!
//! A batch is a pure function of the sentences, the [`Plan`], the epoch and its place in it: to resume in the middle
//! of an epoch is to ask for the rest of it.

use serde::{Deserialize, Serialize};

use crate::{Error, Labels, NULL, PADDING, Random, Result, Sentence, UNK, Vocabulary};

/// How sentences become batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// The most sentences a batch has.
    pub batch_size: usize,
    /// Sentences share a batch when their lengths fall into the same stretch of this many; 0 for no buckets.
    pub bucket_width: usize,
    /// Fixes the order and the replaced words.
    pub seed: u64,
    /// A new order each epoch; otherwise sentences keep theirs.
    pub shuffle: bool,
    /// The probability of a word to be replaced by [`UNK`].
    pub unk: f64,
    /// The labels' delay: this many [`NULL`] words follow each sentence, and labels come this many steps later.
    pub delay: usize,
}

impl Default for Plan {
    /// For training, with the authors' settings.
    fn default() -> Self {
        Self { batch_size: 32, bucket_width: 25, seed: 1, shuffle: true, unk: 0.02, delay: 0 }
    }
}

impl Plan {
    /// For evaluation: all sentences in their order, every word as it is.
    pub fn in_order(batch_size: usize) -> Self {
        Self { batch_size, bucket_width: 0, shuffle: false, unk: 0.0, ..Self::default() }
    }
}

/// Some sentences as ids, padded to the longest. The matrices are row-major, `[rows, width]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Which sentences these are.
    pub sentences: Vec<usize>,
    /// How many steps each has, the delay's among them.
    pub lengths: Vec<usize>,
    /// The steps of the longest.
    pub width: usize,
    /// Word ids; [`PADDING`] behind the end.
    pub words: Vec<u32>,
    /// Label ids; [`PADDING`] where no label is expected or training has not shown it: mask these out of the loss.
    pub labels: Vec<u32>,
    /// True where there is a word, false in the padding.
    pub mask: Vec<bool>,
}

impl Batch {
    /// How many sentences there are.
    pub fn rows(&self) -> usize {
        self.sentences.len()
    }
}

/// A place in training: the next batch. Save it, and give it to [`Batches::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The epoch, from 0.
    pub epoch: u64,
    /// The next batch in it, from 0.
    pub batch: usize,
    /// Tells whether sentences and plan are those that the position was saved with.
    fingerprint: u64,
}

/// Sentences as ids, ready to be handed out in batches.
///
/// ```
/// use tapir_data::{Batches, Labels, Plan, Sentence, Vocabulary};
/// let train = [Sentence::new(["play", "jazz"], ["O", "B-genre"]), Sentence::new(["stop"], ["O"])];
/// let (words, labels) = (Vocabulary::closed(&train), Labels::of(&train));
/// let batches = Batches::new(&train, &words, &labels, Plan { unk: 0.0, ..Plan::default() });
/// let batch = batches.epoch(0).next().expect("one batch");
/// assert_eq!((batch.rows(), batch.width), (2, 2));
/// # let saved =
/// serde_json::to_string(&batches.epoch(0).position())?; // {"epoch":0,"batch":0,"fingerprint":…}
/// # assert_eq!(batches.resume(serde_json::from_str(&saved)?)?.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batches {
    plan: Plan,
    sentences: Vec<Ids>,
    /// The sentences of each bucket, in order.
    buckets: Vec<Vec<usize>>,
    fingerprint: u64,
}

/// A sentence as ids.
#[derive(Clone, Debug)]
struct Ids {
    words: Vec<u32>,
    labels: Vec<u32>,
}

impl Batches {
    /// Turns sentences into ids and sorts them into buckets.
    pub fn new(sentences: &[Sentence], words: &Vocabulary, labels: &Labels, plan: Plan) -> Self {
        let plan = Plan { batch_size: plan.batch_size.max(1), ..plan };
        let sentences: Vec<Ids> = sentences
            .iter()
            .map(|sentence| Ids {
                words: sentence.words.iter().map(|word| words.id(word)).collect(),
                labels: sentence.labels.iter().map(|label| labels.id(label).unwrap_or(PADDING)).collect(),
            })
            .collect();
        let bucket = |ids: &Ids| match plan.bucket_width {
            0 => 0,
            width => ids.words.len().saturating_sub(1) / width,
        };
        let mut buckets = vec![Vec::new(); sentences.iter().map(bucket).max().map_or(0, |last| last + 1)];
        for (index, ids) in sentences.iter().enumerate() {
            buckets[bucket(ids)].push(index);
        }
        let fingerprint = fingerprint(&sentences, plan);
        Self { plan, sentences, buckets, fingerprint }
    }

    /// How many batches an epoch has.
    pub fn len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.len().div_ceil(self.plan.batch_size)).sum()
    }

    /// Is there no sentence?
    pub fn is_empty(&self) -> bool {
        self.sentences.is_empty()
    }

    /// How many sentences an epoch has.
    pub fn sentences(&self) -> usize {
        self.sentences.len()
    }

    /// All batches of an epoch.
    pub fn epoch(&self, epoch: u64) -> Epoch<'_> {
        Epoch { batches: self, order: self.order(epoch), number: epoch, next: 0 }
    }

    /// The batches that are left of an epoch; an error if the position was saved with other sentences or another plan.
    pub fn resume(&self, position: Position) -> Result<Epoch<'_>> {
        if position.fingerprint != self.fingerprint || position.batch > self.len() {
            let Position { epoch, batch, .. } = position;
            let reason = format!(
                "cannot resume at epoch {epoch}, batch {batch}: it was saved with other sentences or settings; \
                 start again, or restore them"
            );
            return Err(Error::Setting(reason));
        }
        Ok(Epoch { next: position.batch, ..self.epoch(position.epoch) })
    }

    /// The sentences of each batch of an epoch.
    fn order(&self, epoch: u64) -> Vec<Vec<usize>> {
        let mut random = Random::at(self.plan.seed, &[epoch]);
        let mut order = Vec::with_capacity(self.len());
        for bucket in &self.buckets {
            let mut bucket = bucket.clone();
            if self.plan.shuffle {
                random.shuffle(&mut bucket);
            }
            order.extend(bucket.chunks(self.plan.batch_size).map(<[usize]>::to_vec));
        }
        if self.plan.shuffle {
            random.shuffle(&mut order);
        }
        order
    }

    fn batch(&self, epoch: u64, number: usize, sentences: Vec<usize>) -> Batch {
        let delay = self.plan.delay;
        let lengths: Vec<usize> =
            sentences.iter().map(|sentence| self.sentences[*sentence].words.len() + delay).collect();
        let width = lengths.iter().copied().max().unwrap_or(0);
        let size = sentences.len() * width;
        let (mut words, mut labels, mut mask) = (vec![PADDING; size], vec![PADDING; size], vec![false; size]);
        let mut random = Random::at(self.plan.seed, &[epoch, number as u64 + 1]);
        for (row, sentence) in sentences.iter().enumerate() {
            let ids = &self.sentences[*sentence];
            let start = row * width;
            let end = start + ids.words.len();
            for (place, word) in words[start..end].iter_mut().zip(&ids.words) {
                *place = if self.plan.unk > 0.0 && random.unit() < self.plan.unk { UNK } else { *word };
            }
            words[end..end + delay].fill(NULL);
            labels[start + delay..end + delay].copy_from_slice(&ids.labels);
            mask[start..end + delay].fill(true);
        }
        Batch { sentences, lengths, width, words, labels, mask }
    }
}

/// Fits what a position was saved with, and hardly anything else.
fn fingerprint(sentences: &[Ids], plan: Plan) -> u64 {
    let settings = [
        plan.batch_size as u64,
        plan.bucket_width as u64,
        u64::from(plan.shuffle),
        plan.unk.to_bits(),
        plan.delay as u64,
    ];
    let ids = sentences.iter().flat_map(|ids| {
        std::iter::once(ids.words.len() as u64)
            .chain(ids.words.iter().chain(&ids.labels).map(|id| u64::from(*id)))
    });
    let all: Vec<u64> = settings.into_iter().chain(ids).collect();
    Random::at(plan.seed, &all).next_u64()
}

/// The batches of an epoch that are still to come.
#[derive(Clone, Debug)]
pub struct Epoch<'a> {
    batches: &'a Batches,
    order: Vec<Vec<usize>>,
    number: u64,
    next: usize,
}

impl Epoch<'_> {
    /// Where this stands: the next batch.
    pub fn position(&self) -> Position {
        Position { epoch: self.number, batch: self.next, fingerprint: self.batches.fingerprint }
    }
}

impl Iterator for Epoch<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let sentences = self.order.get(self.next)?.clone();
        let batch = self.batches.batch(self.number, self.next, sentences);
        self.next += 1;
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.order.len() - self.next.min(self.order.len());
        (left, Some(left))
    }
}

impl ExactSizeIterator for Epoch<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn corpus(lengths: &[usize]) -> Vec<Sentence> {
        let sentence = |length: &usize| {
            let words: Vec<String> =
                (0..*length).map(|word| format!("w{}", (word * 7 + length) % 50)).collect();
            let labels = words.iter().map(|word| format!("L{}", word.len())).collect();
            Sentence::new(words, Vec::<String>::clone(&labels))
        };
        lengths.iter().map(sentence).collect()
    }

    fn batches(lengths: &[usize], plan: Plan) -> Batches {
        let corpus = corpus(lengths);
        Batches::new(&corpus, &Vocabulary::closed(&corpus), &Labels::of(&corpus), plan)
    }

    #[test]
    fn the_batches_of_a_seed_are_fixed_for_ever() {
        let lengths: Vec<usize> = (1..=12).map(|i| i * 5).collect();
        let batches = batches(&lengths, Plan { batch_size: 2, ..Plan::default() });
        let order: Vec<Vec<usize>> = batches.epoch(3).map(|batch| batch.sentences).collect();
        assert_eq!(order, [&[8, 9][..], &[6], &[2], &[1, 4], &[5, 7], &[11, 10], &[3, 0]]);
    }

    #[test]
    fn a_delay_adds_null_words_and_moves_labels() {
        let plan = Plan { delay: 2, ..Plan::in_order(2) };
        let batch = batches(&[1, 3], plan).epoch(0).next().unwrap();
        assert_eq!((batch.width, &batch.lengths[..]), (5, &[3, 5][..]));
        assert_eq!(batch.words, [3, 2, 2, 0, 0, 4, 5, 6, 2, 2]);
        assert_eq!(batch.labels, [0, 0, 1, 0, 0, 0, 0, 1, 2, 2]);
        assert_eq!(batch.mask, [[true, true, true, false, false], [true; 5]].concat());
    }

    #[test]
    fn two_in_a_hundred_words_become_unknown_in_training() {
        let batches = batches(&[20; 1000], Plan::default());
        let unknown = |epoch| -> Vec<u32> {
            batches.epoch(epoch).flat_map(|batch| batch.words).filter(|word| *word == UNK).collect()
        };
        let (first, second) = (unknown(0).len(), unknown(1).len());
        assert!((300..500).contains(&first) && (300..500).contains(&second), "{first} {second}");
    }

    #[test]
    fn a_position_of_other_data_is_refused() {
        let position = batches(&[1, 2, 3], Plan::default()).epoch(0).position();
        let error = batches(&[1, 2, 4], Plan::default()).resume(position).err().unwrap().to_string();
        assert!(error.contains("other sentences or settings"), "{error}");
    }

    proptest! {
        #[test]
        fn an_epoch_holds_every_sentence_once_and_resumes_anywhere(
            lengths in prop::collection::vec(1usize..90, 0..60),
            batch_size in 1usize..9,
            bucket_width in 0usize..30,
            seed: u64,
            epoch in 0u64..5,
            cut: prop::sample::Index,
        ) {
            let plan = Plan { batch_size, bucket_width, seed, ..Plan::default() };
            let batches = batches(&lengths, plan);
            let all: Vec<Batch> = batches.epoch(epoch).collect();
            prop_assert_eq!(all.len(), batches.len());
            let mut seen: Vec<usize> = all.iter().flat_map(|batch| batch.sentences.clone()).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
            for batch in &all {
                let buckets = batch.lengths.iter().map(|length| (length - 1).checked_div(bucket_width));
                prop_assert_eq!(buckets.collect::<std::collections::HashSet<_>>().len(), 1);
                let expected: usize = batch.lengths.iter().sum();
                prop_assert_eq!(batch.mask.iter().filter(|is_word| **is_word).count(), expected);
                prop_assert_eq!(batch.words.iter().filter(|word| **word != PADDING).count(), expected);
            }
            let cut = cut.index(all.len() + 1);
            let mut running = batches.epoch(epoch);
            running.by_ref().take(cut).for_each(drop);
            let saved = serde_json::to_string(&running.position()).unwrap();
            let rest: Vec<Batch> = batches.resume(serde_json::from_str(&saved).unwrap()).unwrap().collect();
            prop_assert_eq!(&rest[..], &all[cut..]);
        }
    }
}
