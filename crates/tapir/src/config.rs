//! What a model is made of: the one definition that the engine, the files on disk and the trainer
//! share.

use serde::{Deserialize, Serialize};

use crate::vocabulary::LARGEST;
use crate::{Calibration, Decoding, Error, FinalPass, PieceRules, Result, Tokenizer};

/// The version of the model format that this build writes, and the only one it reads.
pub const FORMAT_VERSION: u32 = 1;

/// No size in a configuration may exceed this: far above any model of this kind, far below what
/// overflows.
const LARGEST_SIZE: usize = 1 << 16;

/// `config.json`: architecture, task, delay, threshold, and how the model came to be.
///
/// ```
/// let config = tapir::Config::from_json(r#"{
///     "version": 1, "task": "snips", "embedding_dim": 300,
///     "processor": {"layers": 1, "hidden": 512},
///     "controller": {"layers": 1, "hidden": 256, "memory": 5},
///     "reviser": {"kind": "transformer", "layers": 4, "hidden": 512, "feed_forward": 2048, "heads": 8}
/// }"#, "config.json")?;
/// assert_eq!(config.threshold, 0.5);
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Version of the format: [`FORMAT_VERSION`].
    pub version: u32,
    /// The task that the labels belong to: `snips`, `ewt`, …
    #[serde(default)]
    pub task: String,
    /// How labels make spans.
    #[serde(default)]
    pub scheme: Scheme,
    /// How labels are chosen from logits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decoding: Decoding,
    /// How the task's corpus splits text into words.
    #[serde(default)]
    pub tokenizer: Tokenizer,
    /// Look-ahead d: the label of word t is given at step t + d.
    #[serde(default)]
    pub delay: usize,
    /// The default threshold τ of the policy.
    #[serde(default = "half")]
    pub threshold: f32,
    /// What happens at the end of an utterance, unless a session is told otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub final_pass: FinalPass,
    /// The longest input that the reviser takes, in words; also the largest window of a session.
    #[serde(default = "max_length")]
    pub max_length: usize,
    /// Size of a word vector before any projection; 0 if no pass reads words by their row.
    #[serde(default, skip_serializing_if = "is_default")]
    pub embedding_dim: usize,
    /// Frozen word vectors are multiplied by this before use (trained rows are not).
    #[serde(default = "one")]
    pub vector_gain: f32,
    /// File name of the frozen word vectors of an open vocabulary, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<String>,
    /// How many intents an utterance may have: the lines of `intents.txt`; 0 if the model has none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub intents: usize,
    /// Do the heads of the intents have one more output, for utterances that are about something
    /// else?
    #[serde(default, skip_serializing_if = "is_default")]
    pub outside: bool,
    /// The incremental processor (LSTM): the first pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorConfig>,
    /// The controller (LSTMN) and its memory; needs a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerConfig>,
    /// The reviser: the second pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviser: Option<ReviserConfig>,
    /// How far its answers can be trusted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calibration: Calibration,
    /// How it was trained, what it scored: carried along, never read by the engine.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub provenance: serde_json::Map<String, serde_json::Value>,
}

/// Sizes of the incremental processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorConfig {
    /// LSTM layers.
    pub layers: usize,
    /// Size of h.
    pub hidden: usize,
    /// Size of the learned projection of a word vector, if there is one; its output is the x of
    /// processor and controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<usize>,
    /// A word without a row gets a vector by its spelling, if this is set: a learned map of the mean
    /// of its pieces in the reviser's table, whose size, `reviser.hidden`, this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spelling: Option<usize>,
    /// How many rows there are for the [`Affixes`](crate::Affixes) of words, if they are read beside
    /// the word's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affixes: Option<usize>,
}

/// Sizes of the controller and its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// LSTMN layers.
    pub layers: usize,
    /// Size of k, of its cells and of φ.
    pub hidden: usize,
    /// N: how many entries each cache holds.
    pub memory: usize,
    /// What the gates of the first layer see of the new word besides its vector; the paper's see
    /// nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ControllerInput>,
}

/// What the first pass has made of the new word. In the paper it reaches the controller only
/// through the query of its attention (eq. 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControllerInput {
    /// h, the state of the processor after the word.
    State,
    /// The softmax of ỹ, the first pass's answer.
    Output,
}

/// Sizes of the reviser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviserConfig {
    /// Softmax or linear attention, of words or of word pieces.
    pub kind: ReviserKind,
    /// Encoder layers.
    pub layers: usize,
    /// Model size d.
    pub hidden: usize,
    /// Size of the feed-forward layer.
    pub feed_forward: usize,
    /// Attention heads; divides `hidden`.
    pub heads: usize,
    /// Layer normalisation; by default the one that the authors used with this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<NormKind>,
    /// How many rows there are for the [`Affixes`](crate::Affixes) of words, if they are read beside
    /// the word's own; none of a reviser that reads word pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affixes: Option<usize>,
    /// What a reviser of kind [`Bert`](ReviserKind::Bert) has besides, and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bert: Option<BertConfig>,
}

/// What a pretrained encoder has that the authors' revisers have not.
///
/// ```
/// use tapir::{BertConfig, Config, ReviserConfig, ReviserKind};
/// let bert = Some(BertConfig { pieces: 30_522, ..BertConfig::default() });
/// let reviser = Some(ReviserConfig { kind: ReviserKind::Bert, bert, ..ReviserConfig::default() });
/// let config = Config { embedding_dim: 0, reviser, ..Config::default() };
/// assert!(config.validate("a pretrained reviser").is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BertConfig {
    /// How many word pieces it knows: the lines of `pieces.txt`.
    pub pieces: usize,
    /// How many pieces it takes, `[CLS]` and `[SEP]` included: it has a vector for each position.
    pub positions: usize,
    /// ε of the layer normalisations.
    pub epsilon: f32,
    /// What lies between the two products of a feed-forward layer.
    pub activation: Activation,
    /// How a word is cut into pieces.
    pub rules: PieceRules,
}

/// What lies between the two products of a feed-forward layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// x Φ(x), Φ being the normal distribution.
    #[default]
    Gelu,
    /// The same with Φ approximated by a hyperbolic tangent.
    GeluTanh,
    /// max(0, x): what the authors' revisers use.
    Relu,
}

/// Which attention the reviser uses, and what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReviserKind {
    /// Transformer encoder: softmax attention.
    Transformer,
    /// Linear Transformer encoder: attention linear in the length.
    LinearTransformer,
    /// Transformer encoder of word pieces, in the layout of BERT: pretrained elsewhere.
    Bert,
}

/// Which layer normalisation the reviser uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormKind {
    /// Divides by (standard deviation + ε), the deviation being the unbiased one.
    UnbiasedStd,
    /// Divides by the root of (variance + ε), the variance being the biased one.
    Standard,
}

/// How labels make spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// `B-x`, `I-x`, `O`.
    #[default]
    Iob,
    /// A label for each word by itself: parts of speech.
    Plain,
}

/// A task without a name, word vectors of 300 numbers, and neither pass: add at least one.
///
/// ```
/// use tapir::{Config, ProcessorConfig};
/// let config = Config { processor: Some(ProcessorConfig::default()), ..Config::default() };
/// assert!(config.validate("a first pass").is_ok());
/// ```
impl Default for Config {
    fn default() -> Self {
        Self {
            version: FORMAT_VERSION,
            task: String::new(),
            scheme: Scheme::default(),
            decoding: Decoding::default(),
            tokenizer: Tokenizer::default(),
            delay: 0,
            threshold: half(),
            final_pass: FinalPass::default(),
            max_length: max_length(),
            embedding_dim: 300,
            vector_gain: one(),
            vectors: None,
            intents: 0,
            outside: false,
            processor: None,
            controller: None,
            reviser: None,
            calibration: Calibration::default(),
            provenance: serde_json::Map::new(),
        }
    }
}

/// The paper's for SNIPS.
impl Default for ProcessorConfig {
    fn default() -> Self {
        Self { layers: 1, hidden: 512, projection: None, spelling: None, affixes: None }
    }
}

/// The paper's for SNIPS.
impl Default for ControllerConfig {
    fn default() -> Self {
        Self { layers: 1, hidden: 256, memory: 5, inputs: Vec::new() }
    }
}

/// The paper's Transformer for SNIPS.
impl Default for ReviserConfig {
    fn default() -> Self {
        let kind = ReviserKind::Transformer;
        let (norm, affixes, bert) = (None, None, None);
        Self { kind, layers: 4, hidden: 512, feed_forward: 2048, heads: 8, norm, affixes, bert }
    }
}

/// BERT's own, without pieces: set how many there are.
impl Default for BertConfig {
    fn default() -> Self {
        Self {
            pieces: 0,
            positions: 512,
            epsilon: 1e-12,
            activation: Activation::default(),
            rules: PieceRules::default(),
        }
    }
}

impl Config {
    /// How many outputs the heads of the intents have: one for each, and one for what is about
    /// something else, where that was learnt. 0 if there are no intents.
    pub fn intent_outputs(&self) -> usize {
        self.intents + usize::from(self.outside)
    }

    /// Reads and validates; `file` names the source in errors.
    pub fn from_json(json: &str, file: &str) -> Result<Self> {
        // The version is looked at first, so that a newer format is named as such and not as an
        // unknown field.
        #[derive(Deserialize)]
        struct Version {
            version: Option<u32>,
        }
        let version: Version =
            serde_json::from_str(json).map_err(|error| Error::invalid(file, error))?;
        match version.version {
            Some(FORMAT_VERSION) => {}
            Some(other) => {
                let reason = format!(
                    "model format version {other} is not known to this build, which reads version {FORMAT_VERSION}; update tapir"
                );
                return Err(Error::invalid(file, reason));
            }
            None => {
                return Err(Error::invalid(
                    file,
                    "no `version` field: is this the config.json of a tapir model?",
                ));
            }
        }
        let config: Self =
            serde_json::from_str(json).map_err(|error| Error::invalid(file, error))?;
        config.validate(file)?;
        Ok(config)
    }

    /// The JSON of `config.json`.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            .expect("a configuration has only string keys and finite numbers");
        json.push('\n');
        json
    }

    /// Refuses impossible sizes.
    pub fn validate(&self, file: &str) -> Result<()> {
        let within = |name: &str, value: usize, largest: usize| {
            if (1..=largest).contains(&value) {
                Ok(())
            } else {
                Err(Error::invalid(file, format!("`{name}` is {value}, expected 1 to {largest}")))
            }
        };
        let size = |name: &str, value: usize| within(name, value, LARGEST_SIZE);
        if self.reads_rows() {
            size("embedding_dim", self.embedding_dim)?;
        } else if self.embedding_dim > 0 {
            let reason = format!(
                "`embedding_dim` is {}, but no pass reads word vectors; leave it out",
                self.embedding_dim
            );
            return Err(Error::invalid(file, reason));
        }
        size("max_length", self.max_length)?;
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(Error::invalid(
                file,
                format!("`threshold` is {}, expected 0 to 1", self.threshold),
            ));
        }
        if let Some(evidence) = self.calibration.evidence
            && !(evidence > 0.0 && evidence <= 1.0)
        {
            let reason =
                format!("`calibration.evidence` is {evidence}, expected more than 0, up to 1");
            return Err(Error::invalid(file, reason));
        }
        if !self.vector_gain.is_finite() {
            return Err(Error::invalid(
                file,
                format!("`vector_gain` is {}, expected a finite number", self.vector_gain),
            ));
        }
        if let Some(p) = &self.processor {
            size("processor.layers", p.layers)?;
            size("processor.hidden", p.hidden)?;
            size("processor.projection", p.projection.unwrap_or(1))?;
            size("processor.affixes", p.affixes.unwrap_or(1))?;
        }
        if let Some(c) = &self.controller {
            size("controller.layers", c.layers)?;
            size("controller.hidden", c.hidden)?;
            size("controller.memory", c.memory)?;
            if (1..c.inputs.len()).any(|i| c.inputs[..i].contains(&c.inputs[i])) {
                return Err(Error::invalid(file, "`controller.inputs` names an input twice"));
            }
            if self.processor.is_none() {
                return Err(Error::invalid(file, "a `controller` needs a `processor`"));
            }
        }
        if let Some(r) = &self.reviser {
            size("reviser.layers", r.layers)?;
            size("reviser.hidden", r.hidden)?;
            size("reviser.feed_forward", r.feed_forward)?;
            size("reviser.heads", r.heads)?;
            size("reviser.affixes", r.affixes.unwrap_or(1))?;
            if r.hidden % r.heads != 0 {
                let reason = format!(
                    "`reviser.heads` ({}) must divide `reviser.hidden` ({})",
                    r.heads, r.hidden
                );
                return Err(Error::invalid(file, reason));
            }
            if r.bert.is_some() && r.affixes.is_some() {
                let reason =
                    "`reviser.affixes` are of words: a reviser of kind `bert` reads pieces";
                return Err(Error::invalid(file, reason));
            }
            if r.bert.is_some() != (r.kind == ReviserKind::Bert) {
                let reason = "`reviser.bert` belongs to a reviser of kind `bert`, and to no other";
                return Err(Error::invalid(file, reason));
            }
        }
        if let Some(b) = self.bert() {
            within("reviser.bert.pieces", b.pieces, LARGEST)?;
            size("reviser.bert.positions", b.positions)?;
            if !(f32::MIN_POSITIVE..=1.0).contains(&b.epsilon) {
                let reason = format!(
                    "`reviser.bert.epsilon` is {:e}, expected a positive number up to 1",
                    b.epsilon
                );
                return Err(Error::invalid(file, reason));
            }
            if self.reviser.as_ref().is_some_and(|r| r.norm() != NormKind::Standard) {
                let reason = "`reviser.norm` must be `standard` for a reviser of kind `bert`";
                return Err(Error::invalid(file, reason));
            }
            // A revision reads the newest word and those that its label waits for.
            let least = self.delay.saturating_add(1 + BertConfig::ENDS);
            if b.positions < least {
                let reason = format!(
                    "`reviser.bert.positions` is {}, expected at least {least}: [CLS], [SEP], and \
                     a piece of each word that a delay of {} needs",
                    b.positions, self.delay
                );
                return Err(Error::invalid(file, reason));
            }
        }
        let pieces = self.reviser.as_ref().filter(|_| self.reads_pieces()).map(|r| r.hidden);
        if let Some(spelling) = self.processor.as_ref().and_then(|p| p.spelling)
            && pieces != Some(spelling)
        {
            let reason = match pieces {
                Some(d) => format!(
                    "`processor.spelling` is {spelling}, expected the size of the reviser's \
                     pieces, {d}"
                ),
                None => "`processor.spelling` needs a reviser that reads word pieces".to_owned(),
            };
            return Err(Error::invalid(file, reason));
        }
        if self.intents > usize::from(u16::MAX) {
            let reason = format!("`intents` is {}, expected at most {}", self.intents, u16::MAX);
            return Err(Error::invalid(file, reason));
        }
        if self.outside && self.intents == 0 {
            return Err(Error::invalid(file, "`outside` needs `intents`"));
        }
        if self.processor.is_none() && self.reviser.is_none() {
            return Err(Error::invalid(
                file,
                "neither a `processor` nor a `reviser`: there is nothing to run",
            ));
        }
        let memory = self.controller.as_ref().map_or(1, |c| c.memory);
        if self.delay.checked_add(memory).is_none_or(|least| least > self.max_length) {
            let reason = format!(
                "`delay` is {}: with the memory ({memory}) it must fit in `max_length` ({})",
                self.delay, self.max_length
            );
            return Err(Error::invalid(file, reason));
        }
        Ok(())
    }

    /// Every tensor of `model.safetensors` with its shape, for `labels` labels and `words` trained
    /// word rows.
    ///
    /// Matrices are `[outputs, inputs]`; `docs/model-format.md` says what each one is. The sizes
    /// must be [valid](Self::validate).
    pub fn tensors(&self, labels: usize, words: usize) -> Vec<(String, Vec<usize>)> {
        let mut list = Vec::new();
        let mut affine = |name: String, outputs: usize, inputs: usize| {
            list.push((format!("{name}.weight"), vec![outputs, inputs]));
            list.push((format!("{name}.bias"), vec![outputs]));
        };
        let mut tables = Vec::new();
        if let Some(p) = &self.processor {
            let x = p.projection.unwrap_or(self.embedding_dim);
            tables.push(("processor.embedding".to_owned(), vec![words, self.embedding_dim]));
            if let Some(rows) = p.affixes {
                tables.push(("processor.affixes".to_owned(), vec![rows, self.embedding_dim]));
            }
            if p.projection.is_some() {
                affine("processor.projection".into(), x, self.embedding_dim);
            }
            if let Some(d) = p.spelling {
                affine("processor.spelling".into(), self.embedding_dim, d);
            }
            for l in 0..p.layers {
                let input = if l == 0 { x } else { p.hidden };
                affine(format!("processor.layers.{l}.gates"), 4 * p.hidden, input + p.hidden);
            }
            affine("processor.output".into(), labels, p.hidden);
            if self.intents > 0 {
                affine("processor.intent".into(), self.intent_outputs(), p.hidden);
            }
            if let Some(c) = &self.controller {
                affine("memory.z".into(), p.hidden, labels);
                affine("memory.phi".into(), c.hidden, 2 * p.hidden);
                for l in 0..c.layers {
                    let input = if l == 0 { c.input_size(x, p.hidden, labels) } else { c.hidden };
                    affine(format!("controller.layers.{l}.query"), c.hidden, p.hidden + c.hidden);
                    affine(format!("controller.layers.{l}.key"), c.hidden, c.hidden);
                    affine(format!("controller.layers.{l}.score"), 1, c.hidden);
                    affine(format!("controller.layers.{l}.gates"), 4 * c.hidden, c.hidden + input);
                }
                affine("policy".into(), 1, c.hidden);
            }
        }
        if let Some(r) = &self.reviser {
            let d = r.hidden;
            let norm = match &r.bert {
                None => {
                    tables.push(("reviser.embedding".to_owned(), vec![words, self.embedding_dim]));
                    if let Some(rows) = r.affixes {
                        tables.push(("reviser.affixes".to_owned(), vec![rows, self.embedding_dim]));
                    }
                    affine("reviser.projection".into(), d, self.embedding_dim);
                    "reviser.norm"
                }
                Some(b) => {
                    tables.push(("reviser.pieces".to_owned(), vec![b.pieces, d]));
                    tables.push(("reviser.positions".to_owned(), vec![b.positions, d]));
                    tables.push(("reviser.token_type".to_owned(), vec![d]));
                    "reviser.embedding_norm"
                }
            };
            for l in 0..r.layers {
                affine(format!("reviser.layers.{l}.attention.qkv"), 3 * d, d);
                affine(format!("reviser.layers.{l}.attention.output"), d, d);
                affine(format!("reviser.layers.{l}.feed_forward.inner"), r.feed_forward, d);
                affine(format!("reviser.layers.{l}.feed_forward.outer"), d, r.feed_forward);
            }
            affine("reviser.output".into(), labels, d);
            if self.intents > 0 {
                affine("reviser.intent".into(), self.intent_outputs(), d);
            }
            for name in (0..r.layers)
                .flat_map(|l| {
                    [format!("reviser.layers.{l}.norm1"), format!("reviser.layers.{l}.norm2")]
                })
                .chain([norm.to_owned()])
            {
                tables.push((format!("{name}.weight"), vec![d]));
                tables.push((format!("{name}.bias"), vec![d]));
            }
        }
        list.extend(tables);
        list
    }

    /// Does a pass read words by their row in the vocabulary?
    fn reads_rows(&self) -> bool {
        self.processor.is_some() || self.bert().is_none()
    }

    /// Does a pass read how words are written?
    pub fn reads_affixes(&self) -> bool {
        let first = self.processor.as_ref().and_then(|processor| processor.affixes);
        first.or(self.reviser.as_ref().and_then(|reviser| reviser.affixes)).is_some()
    }

    /// Does its reviser read word pieces, and not words?
    pub fn reads_pieces(&self) -> bool {
        self.bert().is_some()
    }

    /// What its reviser has if that is a pretrained encoder.
    pub(crate) fn bert(&self) -> Option<&BertConfig> {
        self.reviser.as_ref().and_then(|reviser| reviser.bert.as_ref())
    }
}

impl BertConfig {
    /// `[CLS]` and `[SEP]`.
    pub(crate) const ENDS: usize = 2;

    /// How many pieces of words an input may have.
    pub fn room(&self) -> usize {
        self.positions - Self::ENDS
    }

    /// How many of them one word may have. The newest word, and the `delay` words before it that
    /// its revision must read, always fit.
    pub fn most_of_a_word(&self, delay: usize) -> usize {
        self.room() / (delay + 1)
    }
}

impl ControllerConfig {
    /// Size of what the gates of the first layer see of a word: x, then the other inputs in their
    /// order. `word`, `state` and `output` are the sizes of x, h and ỹ.
    pub fn input_size(&self, word: usize, state: usize, output: usize) -> usize {
        let size = |input: &ControllerInput| match input {
            ControllerInput::State => state,
            ControllerInput::Output => output,
        };
        word + self.inputs.iter().map(size).sum::<usize>()
    }
}

impl ReviserConfig {
    /// The layer normalisation in use: the authors' own unless the configuration says otherwise.
    pub fn norm(&self) -> NormKind {
        self.norm.unwrap_or(match self.kind {
            ReviserKind::Transformer => NormKind::UnbiasedStd,
            ReviserKind::LinearTransformer | ReviserKind::Bert => NormKind::Standard,
        })
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn half() -> f32 {
    0.5
}

fn one() -> f32 {
    1.0
}

fn max_length() -> usize {
    200
}
