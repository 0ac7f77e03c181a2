//! Reads the state dict of the authors' implementation, saved as safetensors.
//!
//! Their names and layouts become ours: products that act on the same input are joined, the two
//! biases of an LSTM are summed, and the controller's gates (f, o, i, ĉ) are put in the order of
//! the LSTM's (i, f, g, o).

use crate::tensors::Tensors;
use crate::vocabulary::LARGEST;
use crate::{
    Bytes, Config, ControllerConfig, Error, Labels, Parts, ProcessorConfig, Result, ReviserConfig,
    ReviserKind, Scheme, TensorWriter, Vocabulary,
};

/// What a state dict does not say.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// In front of every name: `param.` in the parity files, nothing in a plain state dict.
    pub prefix: String,
    /// Attention heads of the reviser; the authors use 8.
    pub heads: usize,
    /// N: entries of the memory.
    pub memory: usize,
    /// Look-ahead d.
    pub delay: usize,
    /// Default threshold τ.
    pub threshold: f32,
    /// The task, for the record.
    pub task: String,
    /// How labels make spans.
    pub scheme: Scheme,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            heads: 8,
            memory: 5,
            delay: 0,
            threshold: 0.5,
            task: String::new(),
            scheme: Scheme::Iob,
        }
    }
}

/// Imports a two-pass model of the authors' implementation. All sizes are read from the shapes.
///
/// Without `labels` or `vocabulary` ids are named by their number: `label-1`, `word-3`.
pub fn import(
    state: Bytes,
    file: &str,
    options: &ImportOptions,
    labels: Option<Labels>,
    vocabulary: Option<Vocabulary>,
) -> Result<Parts> {
    let source = Source { tensors: Tensors::new(state, file)?, prefix: &options.prefix };
    let [words, embedding_dim] = source.shape("embedding.weight")?;
    let [label_count, hidden] = source.shape("encoder.proj.weight")?;
    let [c, _] = source.shape("phi_proj.weight")?;
    let lstm_layers = source.count("encoder.rnn.weight_ih_l", "");
    let controller_layers = source.count("ctrl_list.", ".W.weight");
    let [d, _] = source.shape("reviser.encoder.proj.weight")?;
    let linear =
        source.tensors.names().any(|name| name.contains("reviser.encoder.encoder.layers."));
    let names = if linear { &LINEAR } else { &TRANSFORMER };
    let reviser_layers = source.count(names.layer, &format!(".{}.weight", names.inner));
    let [feed_forward, _] = source.shape(&format!("{}0.{}.weight", names.layer, names.inner))?;

    let config = Config {
        task: options.task.clone(),
        scheme: options.scheme,
        delay: options.delay,
        threshold: options.threshold,
        embedding_dim,
        processor: Some(ProcessorConfig {
            layers: lstm_layers,
            hidden,
            ..ProcessorConfig::default()
        }),
        controller: Some(ControllerConfig {
            layers: controller_layers,
            hidden: c,
            memory: options.memory,
            inputs: Vec::new(),
        }),
        reviser: Some(ReviserConfig {
            kind: if linear { ReviserKind::LinearTransformer } else { ReviserKind::Transformer },
            layers: reviser_layers,
            hidden: d,
            feed_forward,
            heads: options.heads,
            ..ReviserConfig::default()
        }),
        ..Config::default()
    };
    config.validate(file)?;
    let labels = match labels {
        Some(labels) => labels,
        None => Labels::new(
            std::iter::once("<pad>".to_owned())
                .chain((1..label_count).map(|i| format!("label-{i}"))),
        )?,
    };
    if labels.len() != label_count {
        let reason = format!(
            "the model has {label_count} labels, but {} were given (`<pad>` included)",
            labels.len()
        );
        return Err(Error::invalid(file, reason));
    }
    let vocabulary = match vocabulary {
        Some(vocabulary) => vocabulary,
        // Counted first: a name takes far more memory than a row may take in the file.
        None if words > LARGEST => {
            let reason = format!("the model has {words} word rows, expected at most {LARGEST}");
            return Err(Error::invalid(file, reason));
        }
        None => Vocabulary::new((3..words).map(|i| format!("word-{i}")))?,
    };
    if vocabulary.len() != words {
        let reason =
            format!("the model has {words} word rows, but {} words were given", vocabulary.len());
        return Err(Error::invalid(file, reason));
    }

    let mut out = TensorWriter::default();
    source.copy(&mut out, "processor.embedding", "embedding.weight")?;
    for l in 0..lstm_layers {
        let name = |part: &str| format!("encoder.rnn.{part}_l{l}");
        let (input, state) =
            (source.matrix(&name("weight_ih"))?, source.matrix(&name("weight_hh"))?);
        let (b1, b2) = (source.vector(&name("bias_ih"))?, source.vector(&name("bias_hh"))?);
        let gates = Affine { weight: input.beside(&state, file)?, bias: sum(&b1, &b2) };
        gates.write(&mut out, &format!("processor.layers.{l}.gates"))?;
    }
    source.affine("encoder.proj")?.write(&mut out, "processor.output")?;
    source.affine("z_proj")?.write(&mut out, "memory.z")?;
    source.affine("phi_proj")?.write(&mut out, "memory.phi")?;
    for l in 0..controller_layers {
        let name = |part: &str| format!("ctrl_list.{l}.{part}");
        let to = |part: &str| format!("controller.layers.{l}.{part}");
        let (query, summary) =
            (source.affine(&name("linear_query"))?, source.affine(&name("linear_summ"))?);
        let query = Affine {
            weight: query.weight.beside(&summary.weight, file)?,
            bias: sum(&query.bias, &summary.bias),
        };
        query.write(&mut out, &to("query"))?;
        source.affine(&name("linear_key"))?.write(&mut out, &to("key"))?;
        source.affine(&name("v"))?.write(&mut out, &to("score"))?;
        // f, o, i, ĉ -> i, f, ĉ, o
        source.affine(&name("W"))?.permuted([2, 0, 3, 1], file)?.write(&mut out, &to("gates"))?;
    }
    source.affine("v_policy")?.write(&mut out, "policy")?;

    source.copy(&mut out, "reviser.embedding", "reviser.encoder.embedding.weight")?;
    source.affine("reviser.encoder.proj")?.write(&mut out, "reviser.projection")?;
    for l in 0..reviser_layers {
        let name = |part: &str| format!("{}{l}.{part}", names.layer);
        let to = |part: &str| format!("reviser.layers.{l}.{part}");
        let mut qkv = source.affine(&name(names.qkv[0]))?;
        for part in &names.qkv[1..] {
            qkv.append(source.affine(&name(part))?, file)?;
        }
        qkv.write(&mut out, &to("attention.qkv"))?;
        source.affine(&name(names.merge))?.write(&mut out, &to("attention.output"))?;
        source.affine(&name(names.inner))?.write(&mut out, &to("feed_forward.inner"))?;
        source.affine(&name(names.outer))?.write(&mut out, &to("feed_forward.outer"))?;
        for (norm, ours) in names.norms.iter().zip(["norm1", "norm2"]) {
            source.norm(&mut out, &to(ours), &name(norm), names)?;
        }
    }
    source.norm(&mut out, "reviser.norm", names.norm, names)?;
    source.affine("reviser.out_proj")?.write(&mut out, "reviser.output")?;
    Ok(Parts {
        config,
        labels,
        intents: None,
        vocabulary,
        pieces: None,
        weights: out.to_bytes()?.into(),
    })
}

/// Names of a reviser's parts in the state dict.
struct Names {
    layer: &'static str,
    qkv: [&'static str; 3],
    merge: &'static str,
    inner: &'static str,
    outer: &'static str,
    norms: [&'static str; 2],
    norm: &'static str,
    weight: &'static str,
    bias: &'static str,
}

const TRANSFORMER: Names = Names {
    layer: "reviser.encoder.enc_list.",
    qkv: [
        "multi_head_attn.linear_query",
        "multi_head_attn.linear_key",
        "multi_head_attn.linear_value",
    ],
    merge: "multi_head_attn.linear_merge",
    inner: "ffnn.linear_1",
    outer: "ffnn.linear_2",
    norms: ["norm_1", "norm_2"],
    norm: "reviser.encoder.norm",
    weight: "a_2",
    bias: "b_2",
};

const LINEAR: Names = Names {
    layer: "reviser.encoder.encoder.layers.",
    qkv: ["attention.query_projection", "attention.key_projection", "attention.value_projection"],
    merge: "attention.out_projection",
    inner: "linear1",
    outer: "linear2",
    norms: ["norm1", "norm2"],
    norm: "reviser.encoder.encoder.norm",
    weight: "weight",
    bias: "bias",
};

struct Source<'a> {
    tensors: Tensors,
    prefix: &'a str,
}

impl Source<'_> {
    fn shape(&self, name: &str) -> Result<[usize; 2]> {
        let name = format!("{}{name}", self.prefix);
        let shape = self.tensors.shape(&name)?;
        shape.try_into().map_err(|_| {
            Error::invalid(
                self.tensors.file(),
                format!("tensor `{name}` has shape {shape:?}, expected a matrix"),
            )
        })
    }

    /// How many numbers i, from 0 on, stand in names `{before}{i}{after}`.
    fn count(&self, before: &str, after: &str) -> usize {
        let has =
            |i: usize| self.tensors.shape(&format!("{}{before}{i}{after}", self.prefix)).is_ok();
        (0..self.tensors.names().count()).take_while(|i| has(*i)).count()
    }

    fn matrix(&self, name: &str) -> Result<Matrix> {
        let [outputs, inputs] = self.shape(name)?;
        let values = self.tensors.values(&format!("{}{name}", self.prefix), &[outputs, inputs])?;
        Ok(Matrix { outputs, inputs, values })
    }

    fn vector(&self, name: &str) -> Result<Vec<f32>> {
        let name = format!("{}{name}", self.prefix);
        let shape = self.tensors.shape(&name)?.to_vec();
        self.tensors.values(&name, &shape)
    }

    fn affine(&self, name: &str) -> Result<Affine> {
        let weight = self.matrix(&format!("{name}.weight"))?;
        Ok(Affine { weight, bias: self.vector(&format!("{name}.bias"))? })
    }

    fn copy(&self, out: &mut TensorWriter, to: &str, name: &str) -> Result<()> {
        let matrix = self.matrix(name)?;
        out.f32(to, &[matrix.outputs, matrix.inputs], &matrix.values)
    }

    fn norm(&self, out: &mut TensorWriter, to: &str, name: &str, names: &Names) -> Result<()> {
        let weight = self.vector(&format!("{name}.{}", names.weight))?;
        let bias = self.vector(&format!("{name}.{}", names.bias))?;
        out.f32(&format!("{to}.weight"), &[weight.len()], &weight)?;
        out.f32(&format!("{to}.bias"), &[bias.len()], &bias)
    }
}

/// Row-major [outputs, inputs].
struct Matrix {
    outputs: usize,
    inputs: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// [a | b], which acts on [x ; y].
    fn beside(&self, other: &Self, file: &str) -> Result<Self> {
        if self.outputs != other.outputs {
            let reason =
                format!("matrices of {} and {} rows act on one layer", self.outputs, other.outputs);
            return Err(Error::invalid(file, reason));
        }
        let rows =
            self.values.chunks(self.inputs.max(1)).zip(other.values.chunks(other.inputs.max(1)));
        let values = rows.flat_map(|(a, b)| a.iter().chain(b).copied()).collect();
        Ok(Self { outputs: self.outputs, inputs: self.inputs + other.inputs, values })
    }
}

struct Affine {
    weight: Matrix,
    bias: Vec<f32>,
}

impl Affine {
    /// Puts four equal blocks of rows in another order.
    fn permuted(&self, order: [usize; 4], file: &str) -> Result<Self> {
        let n = self.bias.len() / 4;
        if self.bias.len() != 4 * n || self.weight.outputs != 4 * n {
            let reason = format!(
                "a controller's gates have {} rows, expected four equal blocks",
                self.weight.outputs
            );
            return Err(Error::invalid(file, reason));
        }
        let block = n * self.weight.inputs;
        let values = order
            .iter()
            .flat_map(|i| &self.weight.values[i * block..(i + 1) * block])
            .copied()
            .collect();
        let bias = order.iter().flat_map(|i| &self.bias[i * n..(i + 1) * n]).copied().collect();
        Ok(Self { weight: Matrix { values, ..self.weight }, bias })
    }

    /// More outputs of the same inputs.
    fn append(&mut self, other: Self, file: &str) -> Result<()> {
        if self.weight.inputs != other.weight.inputs {
            return Err(Error::invalid(
                file,
                "the projections of one attention layer differ in their inputs",
            ));
        }
        self.weight.outputs += other.weight.outputs;
        self.weight.values.extend(other.weight.values);
        self.bias.extend(other.bias);
        Ok(())
    }

    fn write(&self, out: &mut TensorWriter, name: &str) -> Result<()> {
        out.f32(
            &format!("{name}.weight"),
            &[self.weight.outputs, self.weight.inputs],
            &self.weight.values,
        )?;
        out.f32(&format!("{name}.bias"), &[self.bias.len()], &self.bias)
    }
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}
