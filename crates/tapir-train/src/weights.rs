//! The parameters in training: laid out for the products that are taken, and back to the layout of
//! a model on disk.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use safetensors::SafeTensors;
use tapir::{Config, EncoderTensors, TensorWriter, Vocabulary, WordVectors};
use tapir_data::Random;

use crate::{Error, Result};

/// The parameters that a stage trains.
///
/// Matrices are [inputs, outputs], so that the gradient of a product needs no transposition;
/// vectors are [1, size]. A matrix that acts on two things put together, as in a model on disk, is
/// here a matrix for each.
#[derive(Clone)]
pub struct Weights {
    /// By the name of the tensor on disk and, where there are several, of the piece.
    pub(crate) tensors: BTreeMap<String, Tensor<2>>,
    /// Tables of word vectors stay on the host: a batch takes few of their rows.
    pub(crate) tables: BTreeMap<String, TrainedRows>,
    layout: Vec<Stored>,
}

/// Trained word vectors, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedRows {
    /// Values of a row.
    pub width: usize,
    /// All rows.
    pub values: Vec<f32>,
}

impl TrainedRows {
    /// One row.
    pub fn row(&self, id: u32) -> &[f32] {
        &self.values[id as usize * self.width..][..self.width]
    }
}

/// The table of an encoder's learned positions.
pub(crate) const POSITIONS: &str = "reviser.positions";
/// What the tables of how words are written are called, after their pass.
pub(crate) const AFFIXES: &str = ".affixes";
/// The table of its word pieces.
const PIECES: &str = "reviser.pieces";

/// A tensor of the model on disk, and the pieces that it is trained in.
#[derive(Clone, Debug)]
struct Stored {
    name: String,
    shape: Vec<usize>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    name: String,
    outputs: Range<usize>,
    inputs: Range<usize>,
}

impl Stored {
    fn new(config: &Config, name: String, shape: Vec<usize>) -> Self {
        let (outputs, inputs) = if shape.len() == 2 { (shape[0], shape[1]) } else { (shape[0], 1) };
        let piece = |suffix: &str, outputs, inputs| Piece {
            name: format!("{name}{suffix}"),
            outputs,
            inputs,
        };
        let beside =
            |at: usize| vec![piece(".0", 0..outputs, 0..at), piece(".1", 0..outputs, at..inputs)];
        let c = config.controller.as_ref().map_or(0, |sizes| sizes.hidden);
        let h = config.processor.as_ref().map_or(0, |sizes| sizes.hidden);
        let pieces = if name.contains(".qkv.") {
            let d = outputs / 3;
            (0..3).map(|i| piece(&format!(".{i}"), i * d..(i + 1) * d, 0..inputs)).collect()
        } else if name.starts_with("processor.layers.") && is_gates(&name) {
            beside(inputs - h) // [x ; h]
        } else if name.starts_with("controller.layers.") && name.ends_with(".query.weight") {
            beside(h) // [h ; k̃]
        } else if name.starts_with("controller.layers.") && is_gates(&name) {
            beside(c) // [k̃ ; x]
        } else {
            vec![piece("", 0..outputs, 0..inputs)]
        };
        Self { name, shape, pieces }
    }

    fn is_table(&self) -> bool {
        let rows = [".embedding", AFFIXES].iter().any(|end| self.name.ends_with(end));
        rows || [PIECES, POSITIONS].contains(&self.name.as_str())
    }

    /// Columns of the tensor on disk; a vector is a matrix of one column there, and of one row in
    /// training.
    fn columns(&self) -> usize {
        if self.shape.len() == 2 { self.shape[1] } else { 1 }
    }
}

/// Is it the matrix of a recurrence's gates?
fn is_gates(name: &str) -> bool {
    name.ends_with(".gates.weight")
}

fn layout(config: &Config, labels: usize, words: usize) -> Vec<Stored> {
    let tensors = config.tensors(labels, words);
    tensors.into_iter().map(|(name, shape)| Stored::new(config, name, shape)).collect()
}

impl Weights {
    /// New parameters: Xavier's uniform initialisation for matrices, 0 for biases, 1 for the scales
    /// of norms.
    ///
    /// Each tensor draws from a generator of its own, so that sizes of one do not change another.
    /// Rows of `vocabulary` that have a vector in `pretrained` start from it, divided by the
    /// table's deviation and times `gain`.
    pub fn new(
        config: &Config,
        labels: usize,
        vocabulary: &Vocabulary,
        pretrained: Option<(&WordVectors, f32)>,
        seed: u64,
        device: &Device,
    ) -> Self {
        let layout = layout(config, labels, vocabulary.len());
        let mut weights =
            Self { tensors: BTreeMap::new(), tables: BTreeMap::new(), layout: layout.clone() };
        for stored in &layout {
            if stored.is_table() {
                let table = if stored.name.ends_with(".embedding") {
                    table(&stored.name, vocabulary, config.embedding_dim, pretrained, seed)
                } else {
                    // An encoder brings its own (see `start_from`), and a word is its own row at first,
                    // however it is written.
                    let [rows, width] = [stored.shape[0], stored.shape[1]];
                    TrainedRows { width, values: vec![0.0; rows * width] }
                };
                weights.tables.insert(stored.name.clone(), table);
                continue;
            }
            for piece in &stored.pieces {
                let (rows, cols) = (piece.inputs.len(), piece.outputs.len());
                let values = if stored.shape.len() == 2 {
                    // The authors' controller has one matrix for [k̃ ; x], their LSTM one for each.
                    let whole = stored.name.starts_with("controller.") && is_gates(&stored.name);
                    let inputs = if whole { stored.columns() } else { rows };
                    let bound = (6.0 / (inputs + cols) as f64).sqrt();
                    let mut random = generator(seed, &piece.name);
                    (0..rows * cols).map(|_| ((2.0 * random.unit() - 1.0) * bound) as f32).collect()
                } else {
                    let norm = stored.name.contains("norm") && stored.name.ends_with(".weight");
                    vec![if norm { 1.0 } else { 0.0 }; rows * cols]
                };
                weights.tensors.insert(piece.name.clone(), tensor(values, [rows, cols], device));
            }
        }
        weights
    }

    /// Reads the parameters of `config` from the bytes of a `model.safetensors`.
    pub fn read(
        bytes: &[u8],
        config: &Config,
        labels: usize,
        words: usize,
        device: &Device,
    ) -> Result<Self> {
        let invalid = |error| Error::invalid("model.safetensors", error);
        tapir::read_header(bytes).map_err(invalid)?;
        let file = SafeTensors::deserialize(bytes).map_err(invalid)?;
        let layout = layout(config, labels, words);
        let mut weights =
            Self { tensors: BTreeMap::new(), tables: BTreeMap::new(), layout: layout.clone() };
        for stored in &layout {
            let invalid = |reason: String| Error::invalid("model.safetensors", reason);
            let view = file.tensor(&stored.name).map_err(|error| invalid(error.to_string()))?;
            if view.shape() != stored.shape {
                let reason =
                    format!("`{}` is {:?}, expected {:?}", stored.name, view.shape(), stored.shape);
                return Err(invalid(reason));
            }
            let values: Vec<f32> =
                view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            weights.insert(stored, values, device);
        }
        Ok(weights)
    }

    /// Starts from an encoder instead of random numbers; what it lacks, the output, stays.
    ///
    /// # Panics
    /// If the encoder has other sizes than the configuration of these weights.
    pub fn start_from(&mut self, encoder: &EncoderTensors, device: &Device) {
        for stored in self.layout.clone() {
            if let Some((shape, values)) = encoder.get(&stored.name) {
                assert_eq!(*shape, stored.shape, "`{}` of the encoder", stored.name);
                self.insert(&stored, values.clone(), device);
            }
        }
    }

    /// Takes over a tensor of a model on disk.
    fn insert(&mut self, stored: &Stored, values: Vec<f32>, device: &Device) {
        if stored.is_table() {
            let table = TrainedRows { width: stored.columns(), values };
            self.tables.insert(stored.name.clone(), table);
            return;
        }
        for piece in &stored.pieces {
            let mut out = Vec::with_capacity(piece.inputs.len() * piece.outputs.len());
            for input in piece.inputs.clone() {
                let column = |output: usize| values[output * stored.columns() + input];
                out.extend(piece.outputs.clone().map(column));
            }
            let shape = [piece.inputs.len(), piece.outputs.len()];
            self.tensors.insert(piece.name.clone(), tensor(out, shape, device));
        }
    }

    /// Adds all parameters to a model's file.
    pub fn write(&self, writer: &mut TensorWriter) -> Result<()> {
        for stored in &self.layout {
            if let Some(table) = self.tables.get(&stored.name) {
                writer.f32(&stored.name, &stored.shape, &table.values)?;
                continue;
            }
            let mut out = vec![0.0; stored.shape.iter().product()];
            for piece in &stored.pieces {
                let values = values(&self.tensors[&piece.name]);
                let mut values = values.iter();
                for input in piece.inputs.clone() {
                    for output in piece.outputs.clone() {
                        if let Some(value) = values.next() {
                            out[output * stored.columns() + input] = *value;
                        }
                    }
                }
            }
            writer.f32(&stored.name, &stored.shape, &out)?;
        }
        Ok(())
    }

    /// The parameters without a graph.
    pub(crate) fn plain(&self) -> Leaves {
        Leaves { tensors: self.tensors.clone() }
    }

    /// The parameters as leaves of a graph, those tracked whose gradients are wanted.
    pub(crate) fn leaves(&self, tracked: impl Fn(&str) -> bool) -> Leaves {
        let leaf = |(name, tensor): (&String, &Tensor<2>)| {
            let leaf = tensor.clone().autodiff();
            (name.clone(), if tracked(name) { leaf.require_grad() } else { leaf })
        };
        Leaves { tensors: self.tensors.iter().map(leaf).collect() }
    }

    /// Takes over the parameters that both have.
    pub(crate) fn take(&mut self, other: &Self) {
        for (name, tensor) in &other.tensors {
            self.tensors.entry(name.clone()).and_modify(|mine| *mine = tensor.clone());
        }
        for (name, table) in &other.tables {
            self.tables.entry(name.clone()).and_modify(|mine| *mine = table.clone());
        }
    }

    /// The rows of an encoder's word pieces.
    ///
    /// # Panics
    /// If these are not the weights of an encoder.
    pub(crate) fn pieces(&self) -> &TrainedRows {
        &self.tables[PIECES]
    }

    /// How many numbers are trained.
    pub fn count(&self) -> usize {
        let tables: usize = self.tables.values().map(|table| table.values.len()).sum();
        self.tensors.values().map(|tensor| tensor.dims().iter().product::<usize>()).sum::<usize>()
            + tables
    }
}

/// The parameters as a component finds them, by name.
pub struct Leaves {
    pub(crate) tensors: BTreeMap<String, Tensor<2>>,
}

impl Leaves {
    /// A parameter that the configuration names.
    ///
    /// # Panics
    /// If there is none of that name: a fault of this crate, as [`Config::tensors`] lists them all.
    pub(crate) fn get(&self, name: &str) -> Tensor<2> {
        match self.tensors.get(name) {
            Some(tensor) => tensor.clone(),
            None => panic!("the configuration lists no tensor `{name}`"),
        }
    }
}

/// Host values to a tensor.
pub(crate) fn tensor(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// A tensor's values on the host.
pub(crate) fn values(tensor: &Tensor<2>) -> Vec<f32> {
    into_values(tensor.clone())
}

/// The same, without a copy where nothing else holds the tensor.
pub(crate) fn into_values(tensor: Tensor<2>) -> Vec<f32> {
    // A float tensor of this crate is f32 throughout.
    tensor.into_data().try_into_vec().unwrap_or_default()
}

/// Rows of trained word vectors: pretrained where there is a vector, small random numbers
/// elsewhere, zeros for padding.
fn table(
    name: &str,
    vocabulary: &Vocabulary,
    width: usize,
    pretrained: Option<(&WordVectors, f32)>,
    seed: u64,
) -> TrainedRows {
    let mut random = generator(seed, name);
    let mut values = vec![0.0; vocabulary.len() * width];
    for (id, (word, row)) in
        vocabulary.words().zip(values.chunks_exact_mut(width)).enumerate().skip(1)
    {
        let vector = pretrained.filter(|_| id > Vocabulary::NULL as usize);
        match vector
            .and_then(|(vectors, gain)| Some((vectors.vector(word)?, gain / vectors.scale())))
        {
            Some((vector, factor)) if vector.len() == width => {
                row.iter_mut().zip(vector).for_each(|(row, value)| *row = value * factor);
            }
            _ => row.iter_mut().for_each(|value| *value = (2.0 * random.unit() - 1.0) as f32 * 0.2),
        }
    }
    TrainedRows { width, values }
}

/// A generator for a name: FNV-1a of it, beside the seed.
fn generator(seed: u64, name: &str) -> Random {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Random::at(seed, &[hash])
}
