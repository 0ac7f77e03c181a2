//! Attention of the words of a sentence to each other: softmax, linear, and linear with a causal
//! mask.

use tapir::kernels;

use super::{Array, Function};

const EPSILON: f32 = 1e-6;

/// Which weights the words get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttentionKind {
    /// softmax(Q Kᵀ / √size)
    Softmax,
    /// φ(Q) φ(K)ᵀ divided by its sum, φ(x) = elu(x) + 1 (eqs. 14 and 15 with p = N)
    Linear,
    /// The same with p = i: no word sees a later one.
    Causal,
}

impl AttentionKind {
    pub(super) fn number(self) -> usize {
        self as usize
    }

    pub(super) fn from_number(number: usize) -> Self {
        [Self::Softmax, Self::Linear, Self::Causal][number]
    }
}

#[derive(Clone, Debug)]
pub(super) struct Attention {
    pub(super) heads: usize,
    pub(super) kind: AttentionKind,
}

#[derive(Clone, Debug)]
pub(super) struct Saved {
    /// Queries, keys (as features if linear) and values, [sentences × length, d].
    query: Array,
    key: Array,
    value: Array,
    lengths: Array,
    keep: Array,
    /// Attention weights before dropout, [sentences, heads, length, length].
    weights: Vec<f32>,
    /// What linear weights were divided by, [sentences, heads, length].
    sums: Vec<f32>,
}

/// elu(x) + 1
fn features(x: &Array) -> Array {
    let out = x.data().iter().map(|x| if *x > 0.0 { x + 1.0 } else { x.exp() }).collect();
    Array::new(out, x.rows(), x.cols())
}

/// The slope of elu(x) + 1, from its value.
fn slope(feature: f32) -> f32 {
    if feature > 1.0 { 1.0 } else { feature }
}

impl Attention {
    /// How many words word i of a sentence of `length` words sees.
    fn seen(&self, i: usize, length: usize) -> usize {
        if self.kind == AttentionKind::Causal { i + 1 } else { length }
    }
}

impl Function<5> for Attention {
    type Saved = Saved;

    fn forward(&self, [query, key, value, lengths, keep]: [Array; 5]) -> (Array, Saved) {
        let (query, key) = match self.kind {
            AttentionKind::Softmax => (query, key),
            _ => (features(&query), features(&key)),
        };
        let d = query.cols();
        let size = d / self.heads;
        let scale = 1.0 / (size as f32).sqrt();
        let sentences = lengths.rows();
        let length = query.rows() / sentences;
        let drops = keep.data().len() > 1;
        let mut weights = vec![0.0; sentences * self.heads * length * length];
        let mut sums = vec![0.0; sentences * self.heads * length];
        let mut out = vec![0.0; query.rows() * d];
        // Looked up once: these are calls, and the loops are short.
        let [queries, keys, values, kept] = [&query, &key, &value, &keep].map(Array::data);
        for b in 0..sentences {
            let words = lengths.data()[b] as usize;
            for head in 0..self.heads {
                for i in 0..words {
                    let row = |j: usize| {
                        (b * length + j) * d + head * size..(b * length + j) * d + (head + 1) * size
                    };
                    let at = (b * self.heads + head) * length + i;
                    let w = &mut weights[at * length..][..self.seen(i, words)];
                    let q = &queries[row(i)];
                    for (j, w) in w.iter_mut().enumerate() {
                        *w = kernels::dot(q, &keys[row(j)]);
                    }
                    if self.kind == AttentionKind::Softmax {
                        w.iter_mut().for_each(|w| *w *= scale);
                        kernels::softmax(w);
                    } else {
                        sums[at] = w.iter().sum::<f32>() + EPSILON;
                        w.iter_mut().for_each(|w| *w /= sums[at]);
                    }
                    let out = &mut out[row(i)];
                    for (j, w) in w.iter().enumerate() {
                        let keep = if drops { kept[at * length + j] } else { 1.0 };
                        kernels::axpy(w * keep, &values[row(j)], out);
                    }
                }
            }
        }
        let out = Array::new(out, query.rows(), d);
        (out, Saved { query, key, value, lengths, keep, weights, sums })
    }

    fn backward(&self, saved: Saved, grad: Array) -> [Array; 5] {
        let Saved { query, key, value, lengths, keep, weights, sums } = saved;
        let d = query.cols();
        let size = d / self.heads;
        let scale = 1.0 / (size as f32).sqrt();
        let sentences = lengths.rows();
        let length = query.rows() / sentences;
        let drops = keep.data().len() > 1;
        let count = query.rows() * d;
        let (mut d_query, mut d_key, mut d_value) =
            (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
        let mut d_w = vec![0.0; length];
        let [queries, keys, values, kept] = [&query, &key, &value, &keep].map(Array::data);
        let grads = grad.data();
        for b in 0..sentences {
            let words = lengths.data()[b] as usize;
            for head in 0..self.heads {
                for i in 0..words {
                    let row = |j: usize| {
                        (b * length + j) * d + head * size..(b * length + j) * d + (head + 1) * size
                    };
                    let at = (b * self.heads + head) * length + i;
                    let w = &weights[at * length..][..self.seen(i, words)];
                    let grad = &grads[row(i)];
                    for (j, w) in w.iter().enumerate() {
                        let keep = if drops { kept[at * length + j] } else { 1.0 };
                        d_w[j] = keep * kernels::dot(grad, &values[row(j)]);
                        kernels::axpy(w * keep, grad, &mut d_value[row(j)]);
                    }
                    // Both kinds divide by a sum, so that the mean is taken off; only what the sum
                    // is of differs.
                    let mean: f32 = w.iter().zip(&d_w).map(|(w, d)| w * d).sum();
                    for (j, w) in w.iter().enumerate() {
                        let d_score = match self.kind {
                            AttentionKind::Softmax => w * (d_w[j] - mean) * scale,
                            _ => (d_w[j] - mean) / sums[at],
                        };
                        kernels::axpy(d_score, &keys[row(j)], &mut d_query[row(i)]);
                        kernels::axpy(d_score, &queries[row(i)], &mut d_key[row(j)]);
                    }
                }
            }
        }
        if self.kind != AttentionKind::Softmax {
            d_query.iter_mut().zip(query.data()).for_each(|(d, f)| *d *= slope(*f));
            d_key.iter_mut().zip(key.data()).for_each(|(d, f)| *d *= slope(*f));
        }
        let array = |values| Array::new(values, query.rows(), d);
        let (lengths, keep) = (Array::zeros(sentences, 1), Array::zeros(keep.rows(), keep.cols()));
        [array(d_query), array(d_key), array(d_value), lengths, keep]
    }
}
