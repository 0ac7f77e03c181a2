//! Fused operations: plain loops with a gradient of their own, as nodes of burn's autodiff graph.
//!
//! Recurrences and normalisations are many small operations a step; as single nodes they cost
//! neither an allocation nor a graph entry each, and the gradient of a recurrent matrix is one
//! product over all steps instead of a sum over steps. They run on the CPU: a GPU backend brings
//! their inputs to the host and takes the result back.

mod affine;
mod array;
mod attention;
mod cells;
mod entropy;
mod gelu;
mod host;
mod lstm;
mod norm;
mod summaries;

use std::fmt::Debug;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops as Node, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

pub(crate) use array::Array;
pub(crate) use attention::AttentionKind;
use host::Host;
pub(crate) use norm::Norm;

/// A function of `N` arrays to one, and its gradient.
trait Function<const N: usize>: Clone + Send + Sync + Debug + 'static {
    /// What the gradient needs of the forward run.
    type Saved: Clone + Send + Sync + Debug + 'static;

    fn forward(&self, inputs: [Array; N]) -> (Array, Self::Saved);

    /// From the gradient of the output, those of the inputs.
    fn backward(&self, saved: Self::Saved, grad: Array) -> [Array; N];
}

#[derive(Clone, Debug)]
struct Fused<F>(F);

impl<B: Host, F: Function<N>, const N: usize> Backward<B, N> for Fused<F> {
    type State = F::Saved;

    fn backward(self, ops: Node<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let device = grad.device();
        let inputs = self.0.backward(ops.state, B::to_host(grad));
        for (parent, grad) in ops.parents.into_iter().zip(inputs) {
            if let Some(parent) = parent {
                grads.register::<B>(parent.id, B::from_host(grad, &device));
            }
        }
    }
}

/// Runs a function without recording it.
fn run<B: Host, const N: usize>(
    f: impl Function<N>,
    inputs: [FloatTensor<B>; N],
) -> FloatTensor<B> {
    let device = inputs[0].device();
    B::from_host(f.forward(inputs.map(B::to_host)).0, &device)
}

/// Runs a function as a node of the graph.
fn record<B: Host, C: CheckpointStrategy, const N: usize>(
    f: impl Function<N>,
    inputs: [FloatTensor<Autodiff<B, C>>; N],
) -> FloatTensor<Autodiff<B, C>> {
    let nodes = inputs.each_ref().map(FloatTensor::<Autodiff<B, C>>::node);
    let inputs = inputs.map(FloatTensor::<Autodiff<B, C>>::into_primitive);
    let device = inputs[0].device();
    let (output, saved) = f.forward(inputs.map(B::to_host));
    let output = B::from_host(output, &device);
    match Backward::<B, N>::prepare::<C>(Fused(f), nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(saved, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

/// The fused operations as burn's dispatch sees them.
#[cfg_attr(not(feature = "gpu"), backend_extension(Flex, Autodiff))]
#[cfg_attr(feature = "gpu", backend_extension(Cube, Flex, Autodiff))]
trait Fusions: Backend {
    fn affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
    fn lstm(gates: FloatTensor<Self>, state: FloatTensor<Self>, steps: usize) -> FloatTensor<Self>;
    fn summaries(
        query: FloatTensor<Self>,
        state: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        phi: FloatTensor<Self>,
        score: FloatTensor<Self>,
        index: FloatTensor<Self>,
        steps: usize,
    ) -> FloatTensor<Self>;
    fn cells(
        gates: FloatTensor<Self>,
        attention: FloatTensor<Self>,
        steps: usize,
        memory: usize,
    ) -> FloatTensor<Self>;
    fn norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        kind: Norm,
    ) -> FloatTensor<Self>;
    fn gelu(x: FloatTensor<Self>, tanh: bool) -> FloatTensor<Self>;
    fn entropy(
        logits: FloatTensor<Self>,
        target: FloatTensor<Self>,
        smoothing: f32,
        distillation: f32,
    ) -> FloatTensor<Self>;
    fn attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        keep: FloatTensor<Self>,
        heads: usize,
        kind: usize,
    ) -> FloatTensor<Self>;
}

/// Both the plain backend and the recording one call the same functions.
macro_rules! fusions {
    ($run:path) => {
        fn lstm(
            gates: FloatTensor<Self>,
            state: FloatTensor<Self>,
            steps: usize,
        ) -> FloatTensor<Self> {
            $run(lstm::Lstm { steps }, [gates, state])
        }

        fn summaries(
            query: FloatTensor<Self>,
            state: FloatTensor<Self>,
            keys: FloatTensor<Self>,
            phi: FloatTensor<Self>,
            score: FloatTensor<Self>,
            index: FloatTensor<Self>,
            steps: usize,
        ) -> FloatTensor<Self> {
            let inputs = [query, state, keys, phi, score, index];
            $run(summaries::Summaries { steps }, inputs)
        }

        fn cells(
            gates: FloatTensor<Self>,
            attention: FloatTensor<Self>,
            steps: usize,
            memory: usize,
        ) -> FloatTensor<Self> {
            $run(cells::Cells { steps, memory }, [gates, attention])
        }

        fn norm(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            kind: Norm,
        ) -> FloatTensor<Self> {
            $run(kind, [x, weight, bias])
        }

        fn gelu(x: FloatTensor<Self>, tanh: bool) -> FloatTensor<Self> {
            $run(gelu::Gelu { tanh }, [x])
        }

        fn entropy(
            logits: FloatTensor<Self>,
            target: FloatTensor<Self>,
            smoothing: f32,
            distillation: f32,
        ) -> FloatTensor<Self> {
            $run(entropy::Entropy { smoothing, distillation }, [logits, target])
        }

        fn attention(
            query: FloatTensor<Self>,
            key: FloatTensor<Self>,
            value: FloatTensor<Self>,
            lengths: FloatTensor<Self>,
            keep: FloatTensor<Self>,
            heads: usize,
            kind: usize,
        ) -> FloatTensor<Self> {
            let kind = AttentionKind::from_number(kind);
            $run(attention::Attention { heads, kind }, [query, key, value, lengths, keep])
        }
    };
}

impl Fusions for Flex {
    fusions!(run::<Self, _>);

    fn affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        run::<Self, _>(affine::Affine, [x, weight, bias])
    }
}

#[cfg(feature = "gpu")]
impl Fusions for burn::backend::Cube {
    fusions!(run::<Self, _>);

    fn affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::float_add(Self::float_matmul(x, weight), bias)
    }
}

impl<B: Host, C: CheckpointStrategy> Fusions for Autodiff<B, C> {
    fusions!(record::<B, C, _>);

    /// A GPU takes its products itself.
    fn affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if B::ON_HOST {
            record::<B, C, _>(affine::Affine, [x, weight, bias])
        } else {
            Self::float_add(Self::float_matmul(x, weight), bias)
        }
    }
}

/// x W + b: x [rows, inputs], weight [inputs, outputs], bias [1, outputs] to [rows, outputs].
pub(crate) fn affine(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<2>) -> Tensor<2> {
    let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(<Dispatch as Fusions>::affine(x, weight, bias))
}

/// An LSTM over time-major rows: gates [steps × batch, 4H] (of the inputs, bias included), state
/// [H, 4H] to h [steps × batch, H]. Gates in the order i, f, g, o.
pub(crate) fn lstm(gates: Tensor<2>, state: Tensor<2>, steps: usize) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as Fusions>::lstm(
        gates.into_dispatch(),
        state.into_dispatch(),
        steps,
    ))
}

/// The controller's attention (eqs. 4 to 6, for k̃): query [steps × batch, C], state [C, C], keys
/// and φ [entries, C], score [1, C], and the entries that each row attends to, [steps × batch,
/// memory], to k̃ and the attention weights, [steps × batch, C + memory].
pub(crate) fn summaries(
    [query, state]: [Tensor<2>; 2],
    [keys, phi]: [Tensor<2>; 2],
    score: Tensor<2>,
    index: Tensor<2>,
    steps: usize,
) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as Fusions>::summaries(
        query.into_dispatch(),
        state.into_dispatch(),
        keys.into_dispatch(),
        phi.into_dispatch(),
        score.into_dispatch(),
        index.into_dispatch(),
        steps,
    ))
}

/// The controller's cells (eqs. 6 to 9): gates [steps × batch, 4C], attention [steps × batch,
/// memory] to k [steps × batch, C]. Gates in the order i, f, ĉ, o.
pub(crate) fn cells(
    gates: Tensor<2>,
    attention: Tensor<2>,
    steps: usize,
    memory: usize,
) -> Tensor<2> {
    let (gates, attention) = (gates.into_dispatch(), attention.into_dispatch());
    Tensor::from_dispatch(<Dispatch as Fusions>::cells(gates, attention, steps, memory))
}

/// Layer normalisation of rows: x [rows, d], weight and bias [1, d].
pub(crate) fn norm(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<2>, kind: Norm) -> Tensor<2> {
    let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(<Dispatch as Fusions>::norm(x, weight, bias, kind))
}

/// x Φ(x), Φ being the normal distribution or, with `tanh`, its approximation.
pub(crate) fn gelu(x: Tensor<2>, tanh: bool) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as Fusions>::gelu(x.into_dispatch(), tanh))
}

/// Σ over rows of the cross entropy: logits [rows, labels], target [rows, 2] of label and weight, or
/// [rows, 2 + labels] with a teacher's distribution, to [1, 1].
pub(crate) fn entropy(
    logits: Tensor<2>,
    target: Tensor<2>,
    smoothing: f32,
    distillation: f32,
) -> Tensor<2> {
    let (logits, target) = (logits.into_dispatch(), target.into_dispatch());
    let entropy = <Dispatch as Fusions>::entropy(logits, target, smoothing, distillation);
    Tensor::from_dispatch(entropy)
}

/// Attention of each sentence to itself: query, key, value [sentences × length, d], lengths
/// [sentences, 1], keep (what dropout leaves of the attention weights) [sentences × heads × length,
/// length] or [1, 1] to [sentences × length, d].
pub(crate) fn attention(
    [query, key, value]: [Tensor<2>; 3],
    lengths: Tensor<2>,
    keep: Tensor<2>,
    heads: usize,
    kind: AttentionKind,
) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as Fusions>::attention(
        query.into_dispatch(),
        key.into_dispatch(),
        value.into_dispatch(),
        lengths.into_dispatch(),
        keep.into_dispatch(),
        heads,
        kind.number(),
    ))
}
