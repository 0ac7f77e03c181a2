//! Reads a BERT as Hugging Face's `transformers` saves it: `config.json`, `model.safetensors` and
//! `tokenizer.json`.
//!
//! Its tensors get our names; queries, keys and values are joined. What this engine cannot run is
//! named and refused: a model that runs gives the labels that it gave there.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::tensors::Tensors;
use crate::{
    Activation, BertConfig, Bytes, Config, Error, Labels, Parts, PieceRules, Result, ReviserConfig,
    ReviserKind, Scheme, TensorWriter, Vocabulary, WordPieces,
};

/// The files of an encoder.
#[derive(Clone, Debug)]
pub struct EncoderFiles {
    /// Where they are, for errors.
    pub dir: String,
    /// `config.json`
    pub config: String,
    /// `model.safetensors`
    pub weights: Bytes,
    /// `tokenizer.json`
    pub tokenizer: String,
}

impl EncoderFiles {
    /// Reads the files in a directory.
    ///
    /// ```
    /// let error = tapir::EncoderFiles::open("no/such").unwrap_err();
    /// assert!(error.to_string().starts_with("no/such/config.json: "));
    /// ```
    #[cfg(feature = "store")]
    pub fn open(dir: impl AsRef<std::path::Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let text = |file: &str| Ok(crate::store::Plain::open(&dir.join(file))?.text()?.0);
        let config = text(CONFIG)?;
        for (file, advice) in [(WEIGHTS, ONE_FILE), (TOKENIZER, FAST_TOKENIZER)] {
            if !dir.join(file).exists() {
                return Err(Error::invalid(dir.join(file).display(), advice));
            }
        }
        let weights = Bytes::open(&dir.join(WEIGHTS))?;
        Ok(Self { dir: dir.display().to_string(), config, weights, tokenizer: text(TOKENIZER)? })
    }

    /// What errors call one of them.
    fn name(&self, file: &str) -> String {
        format!("{}/{file}", self.dir)
    }
}

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const TOKENIZER: &str = "tokenizer.json";

/// What to do where the weights are elsewhere.
#[cfg(feature = "store")]
const ONE_FILE: &str = "no such file; pytorch_model.bin and weights in several files are not read: \
                        let transformers write one, by \
                        model.save_pretrained(DIR, max_shard_size=\"100GB\")";

/// What to do where the tokenizer has its old files alone.
#[cfg(feature = "store")]
const FAST_TOKENIZER: &str = "no such file; vocab.txt is not read: let transformers write one, by \
                              AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)";

/// The architecture that labels words.
const TAGGER: &str = "BertForTokenClassification";

/// What an encoder's files do not say.
#[derive(Clone, Debug, Default)]
pub struct EncoderOptions {
    /// The task, for the record.
    pub task: String,
    /// How labels make spans; without it, as their names look.
    pub scheme: Option<Scheme>,
}

/// An encoder in our terms: what a reviser of kind `bert` is made of, its output aside.
pub struct Encoder {
    /// Its sizes.
    pub reviser: ReviserConfig,
    /// Its word pieces.
    pub pieces: WordPieces,
    /// Its tensors, by the names of [`Config::tensors`].
    pub tensors: EncoderTensors,
    /// What labels words, if it was fine-tuned to.
    pub classifier: Option<Classifier>,
}

/// Tensors by name: their shapes and their values, row by row.
pub type EncoderTensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// The output of an encoder that labels words.
pub struct Classifier {
    /// The labels by id.
    pub labels: Labels,
    /// [labels, d]
    pub weight: Vec<f32>,
    /// `[labels]`
    pub bias: Vec<f32>,
}

/// Makes a model of a fine-tuned `BertForTokenClassification`: it has a reviser and no first pass,
/// and so revises at every word.
///
/// ```
/// # let files = tapir::doctest::encoder();
/// // let files = tapir::EncoderFiles::open("bert-base-NER")?;
/// let model = tapir::import_encoder(&files, &tapir::EncoderOptions::default())?.load()?;
/// assert!(model.session().push("jazz")?.revised());
/// # Ok::<(), tapir::Error>(())
/// ```
pub fn import_encoder(files: &EncoderFiles, options: &EncoderOptions) -> Result<Parts> {
    let Encoder { reviser, pieces, tensors, classifier } = Encoder::read(files)?;
    let Some(Classifier { labels, weight, bias }) = classifier else {
        let reason = format!("`architectures` is not {TAGGER}: there is nothing that labels words");
        return Err(Error::invalid(files.name(CONFIG), reason));
    };
    let mut writer = TensorWriter::default();
    for (name, (shape, values)) in &tensors {
        writer.f32(name, shape, values)?;
    }
    writer.f32("reviser.output.weight", &[labels.len(), reviser.hidden], &weight)?;
    writer.f32("reviser.output.bias", &[labels.len()], &bias)?;
    let spans = labels.iter().any(|label| label.starts_with("B-") || label.starts_with("I-"));
    let scheme = if spans { Scheme::Iob } else { Scheme::Plain };
    let config = Config {
        task: options.task.clone(),
        scheme: options.scheme.unwrap_or(scheme),
        embedding_dim: 0,
        max_length: reviser.bert.as_ref().map_or(1, BertConfig::room),
        reviser: Some(reviser),
        ..Config::default()
    };
    let vocabulary = Vocabulary::new::<&str>([])?;
    let weights = writer.to_bytes()?.into();
    Ok(Parts { config, labels, intents: None, vocabulary, pieces: Some(pieces), weights })
}

impl Encoder {
    /// Reads an encoder, fine-tuned to label words or not.
    ///
    /// ```
    /// # let files = tapir::doctest::encoder();
    /// // let files = tapir::EncoderFiles::open("all-MiniLM-L6-v2")?;
    /// let encoder = tapir::Encoder::read(&files)?;
    /// let (shape, values) = &encoder.tensors["reviser.pieces"];
    /// assert_eq!(shape[..], [encoder.pieces.len(), encoder.reviser.hidden]);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn read(files: &EncoderFiles) -> Result<Self> {
        let (pieces, rules) = WordPieces::from_tokenizer(&files.tokenizer, &files.name(TOKENIZER))?;
        let file = files.name(CONFIG);
        let config: BertJson =
            serde_json::from_str(&files.config).map_err(|error| Error::invalid(&file, error))?;
        let reviser = config.reviser(&pieces, rules, &file)?;
        let mut source = Source::new(Tensors::new(files.weights.clone(), &files.name(WEIGHTS))?);
        let tensors = source.encoder(&reviser, &config, pieces.len())?;
        let classifier = if config.architectures.iter().flatten().any(|name| name == TAGGER) {
            let labels = config.labels(&file)?;
            let weight = source.values("classifier.weight", &[labels.len(), reviser.hidden])?;
            let bias = source.values("classifier.bias", &[labels.len()])?;
            Some(Classifier { labels, weight, bias })
        } else {
            None
        };
        source.expect_no_others()?;
        Ok(Self { reviser, pieces, tensors, classifier })
    }

    /// The encoder in a model whose reviser is one: what another task can start from.
    ///
    /// ```
    /// let encoder = tapir::Encoder::of(&tapir::doctest::pretrained())?;
    /// assert!(encoder.classifier.is_none());
    /// assert!(tapir::Encoder::of(&tapir::doctest::parts()).is_err());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn of(parts: &Parts) -> Result<Self> {
        let Parts { config, pieces, weights, .. } = parts;
        let reviser = config.reviser.clone().filter(|reviser| reviser.bert.is_some());
        let (Some(reviser), Some(pieces)) = (reviser, pieces.clone()) else {
            let reason = "its reviser is no pretrained encoder: `reviser.kind` is not `bert`";
            return Err(Error::invalid(CONFIG, reason));
        };
        let encoder_only =
            Config { embedding_dim: 0, reviser: Some(reviser.clone()), ..Config::default() };
        let source = Tensors::new(weights.clone(), WEIGHTS)?;
        let own = encoder_only.tensors(1, 0);
        let own = own.into_iter().filter(|(name, _)| !name.starts_with("reviser.output."));
        let read = |(name, shape): (String, Vec<usize>)| {
            let values = source.values(&name, &shape)?;
            Ok((name, (shape, values)))
        };
        Ok(Self {
            reviser,
            pieces,
            tensors: own.map(read).collect::<Result<_>>()?,
            classifier: None,
        })
    }

    /// The same encoder with its first layers alone: cheaper, and not as good.
    ///
    /// ```
    /// let encoder = tapir::Encoder::read(&tapir::doctest::encoder())?;
    /// let error = encoder.first_layers(7).err().unwrap();
    /// assert!(error.to_string().contains("7 layers"));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn first_layers(mut self, layers: usize) -> Result<Self> {
        let all = self.reviser.layers;
        if !(1..=all).contains(&layers) {
            let reason = format!("{layers} layers were asked for, expected 1 to {all}");
            return Err(Error::invalid("encoder", reason));
        }
        self.reviser.layers = layers;
        let dropped = |l: usize| format!("reviser.layers.{l}.");
        let dropped: Vec<String> = (layers..all).map(dropped).collect();
        self.tensors.retain(|name, _| !dropped.iter().any(|layer| name.starts_with(layer)));
        Ok(self)
    }
}

/// What matters of `config.json`. What is left out there has the value that `transformers` gives it;
/// the shapes of the tensors must agree with it all the same.
#[derive(Deserialize)]
#[serde(default)]
struct BertJson {
    model_type: Option<String>,
    architectures: Option<Vec<String>>,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    vocab_size: usize,
    hidden_act: String,
    layer_norm_eps: f32,
    position_embedding_type: Option<String>,
    is_decoder: bool,
    num_labels: Option<usize>,
    id2label: Option<BTreeMap<String, String>>,
}

impl Default for BertJson {
    fn default() -> Self {
        Self {
            model_type: None,
            architectures: None,
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            max_position_embeddings: 512,
            type_vocab_size: 2,
            vocab_size: 30_522,
            hidden_act: "gelu".to_owned(),
            layer_norm_eps: 1e-12,
            position_embedding_type: None,
            is_decoder: false,
            num_labels: None,
            id2label: None,
        }
    }
}

impl BertJson {
    fn reviser(&self, pieces: &WordPieces, rules: PieceRules, file: &str) -> Result<ReviserConfig> {
        let refuse = |name: &str, found: &str, expected: &str| {
            Err(Error::invalid(file, format!("`{name}` is {found}, expected {expected}")))
        };
        match self.model_type.as_deref() {
            Some("bert") => {}
            found => return refuse("model_type", found.unwrap_or("missing"), "bert"),
        }
        if self.is_decoder {
            return refuse("is_decoder", "true", "an encoder, which reads both ways");
        }
        let positions = self.position_embedding_type.as_deref().unwrap_or("absolute");
        if positions != "absolute" {
            return refuse("position_embedding_type", positions, "absolute");
        }
        let activation = match self.hidden_act.as_str() {
            "gelu" | "gelu_python" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_python_tanh" | "gelu_fast"
            | "gelu_accurate" => Activation::GeluTanh,
            "relu" => Activation::Relu,
            other => return refuse("hidden_act", other, "gelu, gelu_new or relu"),
        };
        let reviser = ReviserConfig {
            kind: ReviserKind::Bert,
            layers: self.num_hidden_layers,
            hidden: self.hidden_size,
            feed_forward: self.intermediate_size,
            heads: self.num_attention_heads,
            norm: None,
            affixes: None,
            bert: Some(BertConfig {
                pieces: pieces.len(),
                positions: self.max_position_embeddings,
                epsilon: self.layer_norm_eps,
                activation,
                rules,
            }),
        };
        // Sizes that are too large are refused before anything of them is asked for.
        let reviser_only =
            Config { embedding_dim: 0, reviser: Some(reviser.clone()), ..Config::default() };
        reviser_only.validate(file)?;
        if pieces.len() > self.vocab_size {
            let reason = format!(
                "`vocab_size` is {}, but {TOKENIZER} has {} pieces; do both files belong to the \
                 same model?",
                self.vocab_size,
                pieces.len()
            );
            return Err(Error::invalid(file, reason));
        }
        Ok(reviser)
    }

    /// The names in `id2label`, of which each id from 0 on must be there. Without it they are
    /// numbered, as `transformers` does: it leaves out what it would give them by itself.
    fn labels(&self, file: &str) -> Result<Labels> {
        let invalid = |reason: String| Error::invalid(file, format!("`id2label`: {reason}"));
        let names = match &self.id2label {
            None => {
                // One more than there may be is refused like any number above.
                let count = self.num_labels.unwrap_or(2).min(usize::from(u16::MAX) + 1);
                (0..count).map(|id| format!("LABEL_{id}")).collect()
            }
            Some(names) => {
                let name = |id: usize| {
                    let name = names.get(&id.to_string()).cloned();
                    name.ok_or_else(|| invalid(format!("there is no label {id}")))
                };
                (0..names.len()).map(name).collect::<Result<Vec<_>>>()?
            }
        };
        let labels = Labels::new(names).map_err(|error| match error {
            Error::Invalid { reason, .. } => invalid(reason),
            other => other,
        })?;
        // It would never be given, as the padding of imported models is not.
        if labels.first() > 0 {
            return Err(invalid(format!(
                "label 0 is {:?}, which means padding here; give it another name",
                &**labels.get(0)
            )));
        }
        Ok(labels)
    }
}

/// The tensors of an encoder, by the names that `transformers` gives them.
struct Source {
    tensors: Tensors,
    /// In front of the encoder's own names: `bert.`, or nothing where it was saved alone.
    prefix: &'static str,
    /// What was read.
    known: BTreeSet<String>,
}

impl Source {
    fn new(tensors: Tensors) -> Self {
        let prefix =
            if tensors.names().any(|name| name.starts_with("bert.")) { "bert." } else { "" };
        Self { tensors, prefix, known: BTreeSet::new() }
    }

    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let values = self.tensors.values(name, shape)?;
        self.known.insert(name.to_owned());
        Ok(values)
    }

    /// Everything but the output, by our names. Rows of the table behind the last piece are never
    /// read, and left out.
    fn encoder(
        &mut self,
        sizes: &ReviserConfig,
        config: &BertJson,
        pieces: usize,
    ) -> Result<EncoderTensors> {
        let (d, f) = (sizes.hidden, sizes.feed_forward);
        let positions = sizes.bert.as_ref().map_or(0, |bert| bert.positions);
        let mut out = BTreeMap::new();
        let own = |name: &str| format!("{}embeddings.{name}", self.prefix);
        let [words, places, types, norm] = [
            own("word_embeddings.weight"),
            own("position_embeddings.weight"),
            own("token_type_embeddings.weight"),
            own("LayerNorm"),
        ];
        let mut table = self.values(&words, &[config.vocab_size, d])?;
        table.truncate(pieces * d);
        out.insert("reviser.pieces".to_owned(), (vec![pieces, d], table));
        let places = self.values(&places, &[positions, d])?;
        out.insert("reviser.positions".to_owned(), (vec![positions, d], places));
        // All pieces of an input are of its first type.
        let mut first = self.values(&types, &[config.type_vocab_size, d])?;
        first.truncate(d);
        out.insert("reviser.token_type".to_owned(), (vec![d], first));
        self.norm(&mut out, "reviser.embedding_norm", &norm, d)?;
        for l in 0..sizes.layers {
            let name = |part: &str| format!("{}encoder.layer.{l}.{part}", self.prefix);
            let qkv = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
            let [merge, inner, outer] =
                ["attention.output.dense", "intermediate.dense", "output.dense"].map(name);
            let norms = ["attention.output.LayerNorm", "output.LayerNorm"].map(name);
            let to = |part: &str| format!("reviser.layers.{l}.{part}");
            self.affine(&mut out, &to("attention.qkv"), &qkv, d, d)?;
            self.affine(&mut out, &to("attention.output"), &[merge], d, d)?;
            self.affine(&mut out, &to("feed_forward.inner"), &[inner], f, d)?;
            self.affine(&mut out, &to("feed_forward.outer"), &[outer], d, f)?;
            for (norm, ours) in norms.iter().zip(["norm1", "norm2"]) {
                self.norm(&mut out, &to(ours), norm, d)?;
            }
        }
        Ok(out)
    }

    /// Products on the same input, [outputs, inputs] each, one below the other.
    fn affine(
        &mut self,
        out: &mut EncoderTensors,
        to: &str,
        names: &[String],
        outputs: usize,
        inputs: usize,
    ) -> Result<()> {
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            weight.extend(self.values(&format!("{name}.weight"), &[outputs, inputs])?);
            bias.extend(self.values(&format!("{name}.bias"), &[outputs])?);
        }
        let rows = bias.len();
        out.insert(format!("{to}.weight"), (vec![rows, inputs], weight));
        out.insert(format!("{to}.bias"), (vec![rows], bias));
        Ok(())
    }

    /// A norm; old files say gamma and beta.
    fn norm(&mut self, out: &mut EncoderTensors, to: &str, name: &str, d: usize) -> Result<()> {
        for (ours, old) in [("weight", "gamma"), ("bias", "beta")] {
            let old = format!("{name}.{old}");
            let named = self.tensors.names().any(|name| name == old);
            let name = if named { old } else { format!("{name}.{ours}") };
            let values = self.values(&name, &[d])?;
            out.insert(format!("{to}.{ours}"), (vec![d], values));
        }
        Ok(())
    }

    /// Refuses tensors that were not read, but for those that a labelling of words does not need:
    /// the pooler, heads for other tasks, and the numbers of positions.
    fn expect_no_others(&self) -> Result<()> {
        let unneeded = |name: &str| {
            let own = name.strip_prefix(self.prefix).unwrap_or(name);
            let own = own.starts_with("pooler.") || own == "embeddings.position_ids";
            own || ["cls.", "classifier.", "qa_outputs."].iter().any(|head| name.starts_with(head))
        };
        let is_other = |name: &&str| !self.known.contains(*name) && !unneeded(name);
        // The first by name, so that an error is always the same.
        match self.tensors.names().filter(is_other).min() {
            None => Ok(()),
            Some(name) => {
                let reason =
                    format!("tensor `{name}` has no place in the BERT that {CONFIG} describes");
                Err(Error::invalid(self.tensors.file(), reason))
            }
        }
    }
}
