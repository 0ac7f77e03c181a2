//! One training step: the batch in parts, each with its own graph and its own threads, and their
//! gradients.

use std::collections::BTreeMap;
use std::thread::ScopedJoinHandle;

use burn::tensor::{Device, Tensor};
use tapir::{Config, Vocabulary};
use tapir_data::{Batch, Example, Order, Random, Totals};

use crate::affine::Affine;
use crate::controller::Controller;
use crate::input::Words;
use crate::memory::{Entries, Memory};
use crate::ops;
use crate::policy::Policy;
use crate::processor::Processor;
use crate::reviser::{Revised, Reviser, Sentences};
use crate::weights::{into_values, tensor};
use crate::{Dropout, Error, Lexicon, Result, Weights};

/// What a stage minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Cross entropy of the action generator under a causal mask.
    Generator,
    /// Step 1: cross entropy of the reviser.
    Reviser,
    /// Step 2: cross entropy of the first pass and binary cross entropy of the policy (eq. 12).
    FirstPass,
    /// Binary cross entropy of the policy; the first pass stays as it is.
    Policy,
}

impl Objective {
    /// The order of rows that it needs.
    pub fn order(self) -> Order {
        match self {
            Self::Generator | Self::Reviser => Order::Sentence,
            Self::FirstPass | Self::Policy => Order::Time,
        }
    }

    /// Does it change this parameter?
    fn trains(self, name: &str) -> bool {
        self != Self::Policy || !name.starts_with("processor.")
    }
}

/// The gradients of a part of a batch.
pub struct Gradients {
    /// By name; matrices [inputs, outputs].
    pub(crate) dense: BTreeMap<String, Vec<f32>>,
    /// Rows of word tables: their ids, and a gradient [ids, width].
    pub(crate) sparse: BTreeMap<String, (Vec<u32>, Vec<f32>)>,
    /// Its share of the loss.
    pub loss: f32,
}

/// Threads for the parts of a batch. Each part runs its whole step on threads of its own: two parts
/// on two cores beat one whose every operation is split over two.
pub struct Shards {
    pools: Vec<rayon::ThreadPool>,
    device: Device,
}

/// What a step draws at random, and from where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// Probability that a value is dropped.
    pub dropout: f64,
    /// Probability that a word is taken for one that the vocabulary has not: it becomes its
    /// spelling, or UNK.
    pub unknown: f64,
    /// Probability that a word with a row of its own is shown by its vector.
    pub untuned: f64,
    /// How much of a label's weight is spread over all labels.
    pub smoothing: f64,
    /// How much of a label's weight is the teacher's, where there is one.
    pub distillation: f64,
    /// The weight of the intents beside the labels.
    pub intents: f64,
    /// Seed, epoch and batch.
    pub place: [u64; 3],
}

impl Shards {
    /// `count` parts. Their number is part of the result (sums are taken in another order), the
    /// number of threads is not.
    pub fn new(count: usize, device: &Device) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = (cores / count.max(1)).max(1);
        let pool = |_| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pools = (0..count.max(1)).map(pool).collect::<Result<_, _>>();
        let pools = pools.map_err(|error| Error::invalid("threads", error))?;
        Ok(Self { pools, device: device.clone() })
    }

    /// The gradients of every part of a batch.
    pub fn gradients(
        &self,
        weights: &Weights,
        config: &Config,
        lexicon: Lexicon,
        objective: Objective,
        examples: &[&Example],
        noise: Noise,
    ) -> Vec<Gradients> {
        let totals = Totals::of(examples);
        let size = examples.len().div_ceil(self.pools.len()).max(1);
        let part = |(i, examples): (usize, &[&Example])| {
            let [seed, epoch, batch] = noise.place;
            let mut random = Random::at(seed, &[epoch, batch, i as u64]);
            let batch = if objective == Objective::Reviser && config.reads_pieces() {
                let read = |example: &&Example| lexicon.as_pieces(example, config);
                let read: Vec<Example> = examples.iter().filter_map(read).collect();
                let read: Vec<&Example> = read.iter().collect();
                Batch::new(&read, objective.order(), totals)
            } else {
                let mut batch = Batch::new(examples, objective.order(), totals);
                let Noise { unknown, untuned, .. } = noise;
                let as_unknown = |id| match lexicon.spellings {
                    Some(spellings) => spellings.unknown(id),
                    None => Vocabulary::UNK,
                };
                batch.replace_words(
                    (unknown, as_unknown),
                    untuned,
                    lexicon.vocabulary,
                    &mut random,
                );
                batch
            };
            let dropout = Dropout::new(noise.dropout, random, &self.device);
            let targets = Targets::of(&noise);
            gradients(weights, config, lexicon, objective, &batch, dropout, targets)
        };
        let parts: Vec<_> = examples.chunks(size).enumerate().collect();
        std::thread::scope(|scope| {
            let running: Vec<_> = parts
                .into_iter()
                .zip(&self.pools)
                .map(|(work, pool)| scope.spawn(move || pool.install(|| part(work))))
                .collect();
            // A part that panics must not be missing from the gradient in silence.
            let join = |thread: ScopedJoinHandle<'_, Gradients>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            running.into_iter().map(join).collect()
        })
    }
}

/// What is expected in place of a label alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Targets {
    pub(crate) smoothing: f32,
    pub(crate) distillation: f32,
    /// The weight of the intents beside the labels.
    pub(crate) intents: f32,
}

impl Targets {
    fn of(noise: &Noise) -> Self {
        Self {
            smoothing: noise.smoothing as f32,
            distillation: noise.distillation as f32,
            intents: noise.intents as f32,
        }
    }
}

/// Loss and gradients of one part.
pub(crate) fn gradients(
    weights: &Weights,
    config: &Config,
    lexicon: Lexicon,
    objective: Objective,
    batch: &Batch,
    mut dropout: Dropout,
    targets: Targets,
) -> Gradients {
    let device = dropout.device().clone();
    let words = Words::of(batch, lexicon, config, objective, &device);
    let mut leaves = weights.leaves(|name| objective.trains(name));
    for (name, table) in &weights.tables {
        let mut rows = words.rows(name, table, &device).autodiff();
        if objective.trains(name) {
            rows = rows.require_grad();
        }
        leaves.tensors.insert(name.clone(), rows);
    }
    let loss = loss(&leaves, config, objective, batch, &words, &mut dropout, targets);
    let mut grads = loss.backward();
    let value = crate::weights::values(&loss.inner()).first().copied().unwrap_or(f32::NAN);
    let mut out = Gradients { dense: BTreeMap::new(), sparse: BTreeMap::new(), loss: value };
    for (name, leaf) in &leaves.tensors {
        // Nothing else holds a removed gradient: its memory becomes the host's without a copy.
        let Some(grad) = leaf.grad_remove(&mut grads).map(into_values) else { continue };
        if weights.tables.contains_key(name) {
            out.sparse.insert(name.clone(), (words.trained(name).to_vec(), grad));
        } else {
            out.dense.insert(name.clone(), grad);
        }
    }
    out
}

/// The loss of a batch, [1, 1].
fn loss(
    leaves: &crate::Leaves,
    config: &Config,
    objective: Objective,
    batch: &Batch,
    words: &Words,
    dropout: &mut Dropout,
    targets: Targets,
) -> Tensor<2> {
    let device = dropout.device().clone();
    let rows = batch.ids.len();
    let target = |pairs: &[[f32; 2]]| tensor(pairs.concat(), [rows, 2], &device);
    let Outputs { logits, policy, intents } =
        forward(leaves, config, objective, batch, words, dropout);
    let policy = policy.map(|policy| ops::entropy(policy, target(&batch.actions), 0.0, 0.0));
    if objective == Objective::Policy
        && let Some(policy) = policy
    {
        return policy;
    }
    let mut labels = target(&batch.labels);
    if !batch.teacher.is_empty() {
        let width = batch.teacher.len() / rows;
        let teacher = tensor(batch.teacher.clone(), [rows, width], &device);
        labels = Tensor::cat(vec![labels, teacher], 1);
    }
    let mut loss = cross_entropy(logits, labels, targets.smoothing, targets.distillation);
    if let Some(intents) = intents {
        let expected = match objective.order() {
            Order::Sentence => batch.intents.clone(),
            Order::Time => intents_by_step(batch),
        };
        let count = expected.len();
        let expected = tensor(expected.concat(), [count, 2], &device);
        loss = loss + cross_entropy(intents, expected, targets.smoothing, 0.0) * targets.intents;
    }
    match policy {
        Some(policy) => loss + policy,
        None => loss,
    }
}

/// The cross entropy of answers, of which a corpus may have a single one: there is nothing to learn
/// then, and one column is the policy's sigmoid to [`ops::entropy`].
fn cross_entropy(
    logits: Tensor<2>,
    target: Tensor<2>,
    smoothing: f32,
    distillation: f32,
) -> Tensor<2> {
    if logits.dims()[1] == 1 {
        return (logits * 0.0).sum().reshape([1, 1]);
    }
    ops::entropy(logits, target, smoothing, distillation)
}

/// Intent and weight of every step, rows time-major: the first pass answers at each, and each counts
/// by its share of the sentence.
fn intents_by_step(batch: &Batch) -> Vec<[f32; 2]> {
    let mut steps = vec![[0.0; 2]; batch.ids.len()];
    for (b, ([intent, weight], length)) in batch.intents.iter().zip(&batch.lengths).enumerate() {
        for t in 0..*length {
            steps[t * batch.sentences + b] = [*intent, weight / *length as f32];
        }
    }
    steps
}

/// What the components say of a batch.
pub(crate) struct Outputs {
    /// [rows, labels]
    pub(crate) logits: Tensor<2>,
    /// Policy logits, [rows, 1], where a policy is trained.
    pub(crate) policy: Option<Tensor<2>>,
    /// Logits of intents, where they are trained: the reviser's, [sentences, intents], or the first
    /// pass's, [rows, intents].
    pub(crate) intents: Option<Tensor<2>>,
}

/// Runs the component that an objective trains.
pub(crate) fn forward(
    leaves: &crate::Leaves,
    config: &Config,
    objective: Objective,
    batch: &Batch,
    words: &Words,
    dropout: &mut Dropout,
) -> Outputs {
    match (objective, &config.reviser, &config.processor) {
        (Objective::FirstPass | Objective::Policy, _, Some(sizes)) => {
            // In a stage of its own the policy learns from what the first pass really answers, and
            // dropout is the controller's; together (§4) it is the first pass's, as the authors'.
            let mut none = Dropout::none(dropout.device());
            let (first, second) = match objective {
                Objective::Policy => (&mut none, dropout),
                _ => (dropout, &mut none),
            };
            let first = Processor::new(leaves, sizes).forward(words, batch.length, first);
            let policy = config.controller.as_ref().map(|sizes| {
                let labels = first.logits.dims()[1];
                let entries = Entries::new(batch, sizes.memory, labels, second);
                let (h, logits) = (first.h.clone(), first.logits.clone());
                let phi = Memory::new(leaves).forward(h, logits, &entries);
                let controller = Controller::new(leaves, sizes);
                let input = second.apply(controller.input(&first));
                let k = controller.forward(input, first.h.clone(), phi, &entries, batch.length);
                Policy::new(leaves).forward(second.apply(k))
            });
            let intents = (config.intents > 0)
                .then(|| Affine::new(leaves, "processor.intent").forward(first.h));
            Outputs { logits: first.logits, policy, intents }
        }
        (_, Some(sizes), _) => {
            let lengths = batch.lengths.iter().map(|length| *length as f32).collect();
            let lengths = tensor(lengths, [batch.sentences, 1], dropout.device());
            let sentences = Sentences { lengths, length: batch.length };
            let causal = objective == Objective::Generator;
            let reviser = Reviser::new(leaves, sizes, config.intents > 0, causal);
            let Revised { logits, intents } = reviser.forward(words, &sentences, dropout);
            Outputs { logits, policy: None, intents }
        }
        _ => panic!("the configuration lacks the component that {objective:?} trains"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One column is the policy's to `ops::entropy`, which would draw the only label's logit to 0.
    #[test]
    fn a_single_label_teaches_nothing() {
        let device = Device::default().autodiff();
        let logits = tensor(vec![0.7, -0.3], [2, 1], &device).require_grad();
        let target = tensor(vec![0.0, 0.5, 0.0, 0.5], [2, 2], &device);
        let loss = cross_entropy(logits.clone(), target, 0.1, 0.0);
        let mut grads = loss.backward();
        assert_eq!(crate::weights::values(&loss.inner()), [0.0]);
        assert_eq!(logits.grad_remove(&mut grads).map(into_values), Some(vec![0.0, 0.0]));
    }

    /// It once gave the gradients of the other parts, or none at loss 0, and training went on.
    #[test]
    #[should_panic(expected = "lacks the component that FirstPass trains")]
    fn a_part_that_panics_stops_the_step() {
        let device = Device::default();
        let parts = tapir::doctest::parts();
        let mut config = parts.config.clone();
        let weights =
            Weights::new(&config, parts.labels.len(), &parts.vocabulary, None, 1, &device);
        (config.processor, config.controller, config.reviser) = (None, None, None);
        let example =
            Example { ids: vec![4, 5], labels: vec![Some(0), Some(1)], ..Example::default() };
        let noise = Noise { place: [1, 0, 0], ..Noise::default() };
        let shards = Shards::new(2, &device).unwrap();
        let examples = [&example, &example];
        shards.gradients(
            &weights,
            &config,
            Lexicon::from(&parts.vocabulary),
            Objective::FirstPass,
            &examples,
            noise,
        );
    }
}
