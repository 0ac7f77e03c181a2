//! AdamW (Loshchilov and Hutter, 2019), fused: one pass over parameter, gradient and both moments.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use rayon::prelude::*;

use crate::weights::tensor;
use crate::{Gradients, Weights};

/// Betas 0.9 and 0.98, ε 1e-9: the paper's.
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.98;
const EPSILON: f32 = 1e-9;

/// How many numbers a thread takes at a time.
const CHUNK: usize = 1 << 16;

/// The optimiser's state.
#[derive(Default)]
pub struct AdamW {
    /// First and second moments by parameter.
    pub(crate) moments: BTreeMap<String, [Vec<f32>; 2]>,
    /// The running average of each parameter; empty where none is kept.
    pub(crate) average: BTreeMap<String, Vec<f32>>,
    /// Updates so far.
    pub(crate) step: u64,
}

/// How parameters are updated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Update {
    /// The learning rate.
    pub learning_rate: f64,
    /// The weight decay.
    pub weight_decay: f64,
    /// The gradient is shortened to this length.
    pub clip: Option<f64>,
    /// The decay of the running average; 0 for none.
    pub average: f64,
    /// Word rows that the batch lacks are left alone (as torch's `SparseAdam` does it): rare words
    /// then move less than with a dense update, whose moments go on to move them.
    pub sparse: bool,
    /// A pretrained encoder's layers learn slower, the nearer they are to its input.
    pub layers: LayerRates,
}

/// Learning rates by layer: each layer of the reviser, and then its input, learns at `decay` times
/// the rate of what stands above it; the output at the full rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerRates {
    /// How many layers the reviser has.
    pub layers: usize,
    /// 1 for the same rate everywhere.
    pub decay: f64,
}

impl Default for LayerRates {
    fn default() -> Self {
        Self { layers: 0, decay: 1.0 }
    }
}

impl LayerRates {
    /// What the learning rate of a parameter is multiplied by.
    fn factor(self, name: &str) -> f64 {
        if ["reviser.output.", "reviser.intent."].iter().any(|new| name.starts_with(new)) {
            return 1.0;
        }
        let layer = name.strip_prefix("reviser.layers.").and_then(|rest| rest.split_once('.'));
        let layer = layer.and_then(|(layer, _)| layer.parse::<usize>().ok());
        let below = layer.map_or(self.layers + 1, |layer| self.layers.saturating_sub(layer));
        self.decay.powi(below as i32)
    }
}

/// What one update needs besides the gradient.
#[derive(Clone, Copy)]
struct Rates {
    scale: f32,
    decay: f32,
    step_size: f32,
    correction2: f32,
}

impl AdamW {
    /// The averaged parameters, where an average is kept, else the parameters as they are.
    pub fn averaged(&self, weights: &Weights) -> Weights {
        let mut weights = weights.clone();
        for (name, average) in &self.average {
            if let Some(weight) = weights.tensors.get_mut(name) {
                *weight = tensor(average.clone(), weight.dims(), &weight.device());
            } else if let Some(table) = weights.tables.get_mut(name) {
                table.values.clone_from(average);
            }
        }
        weights
    }

    /// Updates all parameters. The gradients are those of the parts of a batch and are summed on
    /// the way. Parameters that have none stay as they are.
    pub fn update(&mut self, weights: &mut Weights, gradients: &[Gradients], how: Update) {
        let Update { weight_decay, clip, average, sparse, layers, .. } = how;
        self.step += 1;
        // Young averages forget faster: the first weights are worth little.
        let decay = average.min((1 + self.step) as f64 / (10 + self.step) as f64) as f32;
        let scale = match clip {
            Some(limit) => (limit / norm(gradients).max(limit)) as f32,
            None => 1.0,
        };
        let power = |beta: f32| f64::from(beta).powf(self.step as f64);
        let rates = |name: &str| {
            let learning_rate = how.learning_rate * layers.factor(name);
            Rates {
                scale,
                decay: (1.0 - learning_rate * weight_decay) as f32,
                step_size: (learning_rate / (1.0 - power(BETA1))) as f32,
                correction2: (1.0 / (1.0 - power(BETA2)).sqrt()) as f32,
            }
        };
        for (name, weight) in &mut weights.tensors {
            let parts: Vec<&Vec<f32>> =
                gradients.iter().filter_map(|part| part.dense.get(name)).collect();
            if parts.is_empty() {
                continue;
            }
            let (rates, device) = (rates(name), weight.device());
            // Taken out of the map, so that nothing else holds it and its memory is written in
            // place.
            let taken = std::mem::replace(weight, Tensor::zeros([1, 1], &device));
            let mut data = taken.into_data();
            let Ok(values) = data.as_mut_slice::<f32>() else { continue };
            let [m, v] = self.moments.entry(name.clone()).or_insert_with(|| zeros(values.len()));
            values
                .par_chunks_mut(CHUNK)
                .zip(m.par_chunks_mut(CHUNK).zip(v.par_chunks_mut(CHUNK)))
                .enumerate()
                .for_each(|(i, (values, (m, v)))| {
                    let at = i * CHUNK..i * CHUNK + values.len();
                    let parts: Vec<&[f32]> = parts.iter().map(|part| &part[at.clone()]).collect();
                    update(values, &parts, m, v, rates);
                });
            if average > 0.0 {
                let average = self.average.entry(name.clone()).or_insert_with(|| values.to_vec());
                let chunks = average.par_chunks_mut(CHUNK).zip(values.par_chunks(CHUNK));
                chunks.for_each(|(average, values)| follow(average, values, decay));
            }
            *weight = Tensor::from_data(data, &device);
        }
        for (name, table) in &mut weights.tables {
            let rows = table_rows(name, gradients);
            if rows.is_empty() {
                continue;
            }
            let [m, v] =
                self.moments.entry(name.clone()).or_insert_with(|| zeros(table.values.len()));
            let (rates, width) = (rates(name), table.width);
            let nothing = vec![0.0; width];
            table
                .values
                .par_chunks_mut(width)
                .zip(m.par_chunks_mut(width).zip(v.par_chunks_mut(width)))
                .enumerate()
                .with_min_len(CHUNK / width)
                .for_each(|(id, (values, (m, v)))| match rows.get(&(id as u32)) {
                    Some(gradient) => update(values, &[gradient], m, v, rates),
                    None if sparse => {}
                    None => update(values, &[&nothing], m, v, rates),
                });
            if average > 0.0 {
                let average =
                    self.average.entry(name.clone()).or_insert_with(|| table.values.clone());
                let chunks = average.par_chunks_mut(CHUNK).zip(table.values.par_chunks(CHUNK));
                chunks.for_each(|(average, values)| follow(average, values, decay));
            }
        }
    }
}

/// Moves a running average towards the parameters.
fn follow(average: &mut [f32], values: &[f32], decay: f32) {
    pulp::Arch::new().dispatch(|| {
        average.iter_mut().zip(values).for_each(|(a, value)| *a += (1.0 - decay) * (value - *a));
    });
}

fn zeros(size: usize) -> [Vec<f32>; 2] {
    [vec![0.0; size], vec![0.0; size]]
}

/// The gradients of a table's rows, summed over the parts of the batch.
fn table_rows(name: &str, gradients: &[Gradients]) -> BTreeMap<u32, Vec<f32>> {
    let mut rows: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
    for (ids, values) in gradients.iter().filter_map(|part| part.sparse.get(name)) {
        for (id, row) in ids.iter().zip(values.chunks_exact(values.len() / ids.len().max(1))) {
            match rows.get_mut(id) {
                Some(sum) => sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value),
                None => _ = rows.insert(*id, row.to_vec()),
            }
        }
    }
    rows
}

/// The length of the whole gradient. Chunks are summed beside each other and added in their order,
/// so that it does not depend on the number of threads.
fn norm(gradients: &[Gradients]) -> f64 {
    let Some(first) = gradients.first() else { return 0.0 };
    let mut total = 0.0;
    for name in first.dense.keys() {
        let parts: Vec<&Vec<f32>> =
            gradients.iter().filter_map(|part| part.dense.get(name)).collect();
        let chunks = parts[0].len().div_ceil(CHUNK);
        let sums: Vec<f64> = (0..chunks)
            .into_par_iter()
            .map(|i| {
                let at = i * CHUNK..((i + 1) * CHUNK).min(parts[0].len());
                let parts: Vec<&[f32]> = parts.iter().map(|part| &part[at.clone()]).collect();
                squares(&parts)
            })
            .collect();
        total += sums.iter().sum::<f64>();
    }
    for name in first.sparse.keys() {
        let rows = table_rows(name, gradients);
        total += rows.values().map(|row| squares(&[row])).sum::<f64>();
    }
    total.sqrt()
}

/// The squares of a gradient, which is the sum of its parts, summed.
fn squares(parts: &[&[f32]]) -> f64 {
    let arch = pulp::Arch::new();
    match parts {
        [a] => arch.dispatch(|| sum_of_squares(a.iter().copied())),
        [a, b] => arch.dispatch(|| sum_of_squares(a.iter().zip(*b).map(|(a, b)| a + b))),
        _ => {
            let sum = |i: usize| parts.iter().map(|part| part[i]).sum::<f32>();
            let sums: Vec<f32> = (0..parts[0].len()).map(sum).collect();
            arch.dispatch(|| sum_of_squares(sums.iter().copied()))
        }
    }
}

/// In eight lanes, which the compiler keeps in vector registers.
#[allow(clippy::inline_always)]
#[inline(always)]
fn sum_of_squares(mut values: impl ExactSizeIterator<Item = f32>) -> f64 {
    let mut lanes = [0.0; 8];
    for _ in 0..values.len() / 8 {
        for lane in &mut lanes {
            let value = f64::from(values.next().unwrap_or_default());
            *lane += value * value;
        }
    }
    lanes.iter().sum::<f64>() + values.map(|value| f64::from(value).powi(2)).sum::<f64>()
}

/// One update of a stretch of parameters, vectorised for the machine that runs it.
fn update(values: &mut [f32], parts: &[&[f32]], m: &mut [f32], v: &mut [f32], rates: Rates) {
    let arch = pulp::Arch::new();
    match parts {
        [g] => arch.dispatch(|| fused(values, m, v, rates, g.iter().copied())),
        [a, b] => {
            arch.dispatch(|| fused(values, m, v, rates, a.iter().zip(*b).map(|(a, b)| a + b)));
        }
        _ => {
            let sum = |i: usize| parts.iter().map(|part| part[i]).sum::<f32>();
            fused(values, m, v, rates, (0..values.len()).map(sum).collect::<Vec<_>>().into_iter());
        }
    }
}

// Inlined into what `dispatch` compiles for the machine that runs it.
#[allow(clippy::inline_always)]
#[inline(always)]
fn fused(
    values: &mut [f32],
    m: &mut [f32],
    v: &mut [f32],
    rates: Rates,
    gradient: impl Iterator<Item = f32>,
) {
    for (((value, m), v), g) in values.iter_mut().zip(m).zip(v).zip(gradient) {
        let g = g * rates.scale;
        *m = BETA1 * *m + (1.0 - BETA1) * g;
        *v = BETA2 * *v + (1.0 - BETA2) * g * g;
        *value =
            *value * rates.decay - rates.step_size * *m / (v.sqrt() * rates.correction2 + EPSILON);
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use tapir::Vocabulary;

    use super::*;

    /// A word that was met once, and then no more.
    fn row_after(steps: usize, sparse: bool) -> Vec<f32> {
        let parts = tapir::doctest::parts();
        let vocabulary = Vocabulary::new(["rare", "often"]).unwrap();
        let device = Device::flex();
        let mut weights = Weights::new(&parts.config, 3, &vocabulary, None, 1, &device);
        let table = weights.tables.keys().next().unwrap().clone();
        let width = weights.tables[&table].width;
        let mut adamw = AdamW::default();
        let how = Update { learning_rate: 0.1, weight_decay: 0.01, sparse, ..Update::default() };
        for step in 0..steps {
            let id = if step == 0 { 3 } else { 4 };
            let sparse = BTreeMap::from([(table.clone(), (vec![id], vec![0.5; width]))]);
            let gradients = Gradients { dense: BTreeMap::new(), sparse, loss: 0.0 };
            adamw.update(&mut weights, &[gradients], how);
        }
        weights.tables[&table].row(3).to_vec()
    }

    /// As torch.optim.AdamW does: m and v decay, and m goes on to move the row.
    #[test]
    fn a_rare_word_moves_on_after_its_batch() {
        let (mut value, mut m, mut v) = (f64::from(row_after(0, false)[0]), 0.0, 0.0);
        for step in 1..=5 {
            let g = if step == 1 { 0.5 } else { 0.0 };
            m = 0.9 * m + 0.1 * g;
            v = 0.98 * v + 0.02 * g * g;
            let (m, v) = (m / (1.0 - 0.9f64.powi(step)), v / (1.0 - 0.98f64.powi(step)));
            value = value * (1.0 - 0.1 * 0.01) - 0.1 * m / (v.sqrt() + 1e-9);
        }
        let ours = f64::from(row_after(5, false)[0]);
        assert!((ours - value).abs() < 1e-5, "{ours} is not {value}");
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "powers of two are exact")]
    fn lower_layers_learn_slower() {
        let rates = LayerRates { layers: 2, decay: 0.5 };
        let names = ["output.weight", "layers.1.norm1.bias", "layers.0.norm1.bias", "pieces"];
        let factors = names.map(|name| rates.factor(&format!("reviser.{name}")));
        assert_eq!(factors, [1.0, 0.5, 0.25, 0.125]);
        let same = LayerRates { layers: 2, decay: 1.0 };
        assert!(names.iter().all(|name| same.factor(name) == 1.0));
    }

    #[test]
    fn the_length_of_a_gradient_is_that_of_the_sum_of_its_parts() {
        let part = |seed: usize| {
            let values = (0..CHUNK + 13).map(|i| ((i * seed) % 7) as f32 - 3.0).collect();
            let (dense, sparse) = (BTreeMap::from([("w".to_owned(), values)]), BTreeMap::new());
            Gradients { dense, sparse, loss: 0.0 }
        };
        let parts = [part(2), part(3), part(5)];
        for count in 1..=3 {
            let sum = |i: usize| parts[..count].iter().map(|part| part.dense["w"][i]).sum::<f32>();
            let right = (0..CHUNK + 13).map(|i| f64::from(sum(i)).powi(2)).sum::<f64>().sqrt();
            assert!((norm(&parts[..count]) - right).abs() < 1e-6 * right);
        }
    }

    #[test]
    fn a_sparse_update_leaves_it_alone() {
        assert_eq!(row_after(5, true), row_after(1, true));
        assert_eq!(row_after(1, true), row_after(1, false));
        assert_ne!(row_after(5, false), row_after(1, false));
    }
}
