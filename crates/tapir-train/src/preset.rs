//! What to train: a TOML file that names a task and every size and rate.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tapir::{Config, ControllerConfig, Decoding, ProcessorConfig, ReviserConfig, ReviserKind};
use tapir_data::Task;
use tapir_eval::Constraint;

use crate::{Error, Result, ReviserSource, Schedule};

/// Everything that decides a training run, besides the corpus itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// A task that ships, or the path of a task file.
    pub task: String,
    /// Fixes the initialisation, the order of batches, dropout and replaced words.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Look-ahead d.
    #[serde(default)]
    pub delay: usize,
    /// The policy's threshold τ.
    #[serde(default = "half")]
    pub threshold: f32,
    /// How labels are chosen: `argmax`, as the paper does, or `legal`.
    #[serde(default)]
    pub decoding: Decoding,
    /// Who says where the policy should revise: the paper's `generator`, or the `reviser`.
    #[serde(default)]
    pub actions: ActionSource,
    /// What the reviser teaches.
    #[serde(default)]
    pub teaching: Teaching,
    /// Ends with the threshold that is best on validation under this constraint, such as
    /// `within=0.3`; without one, `threshold` stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choose: Option<String>,
    /// The weight of intents beside labels in what both passes learn; 0 for a model without them.
    /// A corpus without any gives a model without them; of one that has some, every sentence must
    /// have one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub intents: f64,
    /// Text of other domains, files with a sentence per line or texts that ship: with intents, the
    /// model learns to say that such utterances are not for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// Learns from what recognisers heard of training sentences, too, where the task has that: as if
    /// it were part of the training split.
    #[serde(default)]
    pub heard: bool,
    /// Into how many parts a batch is split, each on cores of its own.
    #[serde(default = "two")]
    pub shards: usize,
    /// Trains on the validation split as well, as the paper does for its test scores. Nothing is
    /// left to judge by, so that every stage runs all its epochs and keeps the last one.
    #[serde(default)]
    pub with_valid: bool,
    /// Which word vectors, and how they are used.
    pub words: WordTable,
    /// The action generator, where it says where to revise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<Generator>,
    /// Sizes of the reviser, or a pretrained encoder.
    pub reviser: ReviserSource,
    /// Sizes of the incremental processor.
    pub processor: ProcessorConfig,
    /// Sizes of the controller.
    pub controller: ControllerConfig,
    /// How each stage is trained.
    pub training: Training,
}

/// How each stage is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The action generator, where it says where to revise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<Optimisation>,
    /// The reviser.
    pub reviser: Optimisation,
    /// The processor and, where the generator says where to revise, the controller with it.
    pub first_pass: Optimisation,
    /// The controller, where the reviser says where to revise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Optimisation>,
}

impl Training {
    /// The stages that are there, by the names of their tables.
    pub(crate) fn stages(&self) -> impl Iterator<Item = (&'static str, &Optimisation)> {
        let Self { generator, reviser, first_pass, policy } = self;
        let generator = generator.iter().map(|stage| ("training.generator", stage));
        let policy = policy.iter().map(|stage| ("training.policy", stage));
        let both = [("training.reviser", reviser), ("training.first_pass", first_pass)];
        generator.chain(both).chain(policy)
    }

    /// The same work whatever the number of epochs: training longer is going on.
    pub(crate) fn without_epochs(mut self) -> Self {
        self.stages_mut().for_each(|stage| (stage.epochs, stage.patience) = (1, 1));
        self
    }

    fn stages_mut(&mut self) -> impl Iterator<Item = &mut Optimisation> {
        let Self { generator, reviser, first_pass, policy } = self;
        generator.iter_mut().chain([reviser, first_pass]).chain(policy)
    }
}

/// Who says where the policy should revise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionSource {
    /// A model apart, trained for it (§4): REVISE where it changes its mind.
    #[default]
    Generator,
    /// The reviser: REVISE where its labels differ from those that stand.
    Reviser,
}

/// What the reviser teaches, besides the labels of the corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Teaching {
    /// How much of the first pass's target is the reviser's distribution for the newest word.
    pub distillation: f64,
    /// How often the policy is trained anew on sentences that it has read itself; the first time it
    /// learns from sentences that were revised exactly where it pays.
    pub rounds: usize,
    /// Cross-fitting of the policy: the training sentences are divided into so many folds, and each is taught by
    /// a reviser that was trained on the others. 1 for none.
    pub folds: usize,
    /// Sentences made of others' slots, for each training sentence so many: the reviser, which has
    /// not seen them, teaches first pass and policy on these, too. 0 for none.
    pub recombined: f64,
    /// A revision pays only if it puts in place a label that the reviser still gives at the end of
    /// the sentence. Without this any change pays, also one that is taken back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
    /// A file of text without labels, a sentence per line, on which the reviser teaches, too: its
    /// own labels stand for those of a corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Default for Teaching {
    fn default() -> Self {
        Self { distillation: 0.0, rounds: 1, folds: 1, recombined: 0.0, lasting: false, text: None }
    }
}

/// Word vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordTable {
    /// Frozen vectors for every word that has one, instead of a trained row for every word of
    /// training.
    pub open: bool,
    /// The file of the vectors, `*.tapirvec`; without one a closed vocabulary starts from random
    /// rows.
    #[serde(default)]
    pub vectors: Option<String>,
    /// The standard deviation that the vectors are brought to.
    #[serde(default = "gain")]
    pub gain: f32,
    /// Words seen less often have no trained row: they are UNK unless they have a vector.
    #[serde(default = "one")]
    pub min_count: usize,
    /// In an open vocabulary: words seen at least so often get a trained row that starts from their
    /// vector; 0 for none.
    #[serde(default)]
    pub tuned: usize,
    /// Probability that training shows such a word by its vector, so that the rest of the model
    /// stays right for words that have only a vector.
    #[serde(default)]
    pub untuned: f64,
    /// The first pass reads a word that has neither row nor vector by its spelling: by the word
    /// pieces of a pretrained reviser. `training.first_pass.unknown` is how often it practises that
    /// on words that it knows.
    #[serde(default)]
    pub spelling: bool,
    /// Passes that read words read how they are written, too: their shape, beginning and endings,
    /// by tables of so many rows ([`tapir::Affixes`]). Absent if they do not.
    #[serde(default)]
    pub affixes: Option<usize>,
    /// A batch updates only the rows of its own words. Without it every row follows its momentum,
    /// as the paper's.
    #[serde(default)]
    pub sparse: bool,
}

/// The action generator: a single-layer Linear Transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// Model size.
    pub hidden: usize,
    /// Size of the feed-forward layer.
    pub feed_forward: usize,
    /// Attention heads.
    pub heads: usize,
}

/// How a stage is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimisation {
    /// At most so many.
    pub epochs: usize,
    /// Sentences a batch.
    pub batch: usize,
    /// AdamW's learning rate.
    pub learning_rate: f64,
    /// The gradient is shortened to this length; absent for no clipping.
    #[serde(default)]
    pub clip: Option<f64>,
    /// Probability that a value is dropped.
    #[serde(default = "tenth")]
    pub dropout: f64,
    /// AdamW's weight decay.
    #[serde(default = "hundredth")]
    pub weight_decay: f64,
    /// Probability that a word is replaced by UNK.
    #[serde(default = "unknown")]
    pub unknown: f64,
    /// Probability that a sentence is cut to a prefix of itself: what a restart-incremental model
    /// meets.
    #[serde(default)]
    pub prefixes: f64,
    /// How much of a label's weight is spread over all labels.
    #[serde(default)]
    pub smoothing: f64,
    /// The decay of a running average of the weights, which is what is judged and kept; 0 for none.
    #[serde(default)]
    pub average: f64,
    /// Stops after this many epochs without a better validation score; where the schedule has a
    /// plateau, that says when to stop.
    #[serde(default = "ten")]
    pub patience: usize,
    /// The learning rate over the epochs.
    #[serde(default)]
    pub schedule: Schedule,
    /// Each layer of a reviser, and then its input, learns at this many times the rate of what
    /// stands above it; 1 for the same rate everywhere.
    #[serde(default = "whole")]
    pub layer_decay: f64,
}

impl Preset {
    /// A preset that ships (`small/snips`), or the path of a file, with `key=value` settings on
    /// top.
    pub fn open(name: &str, settings: &[String]) -> Result<Self> {
        let (place, text) = match tapir_models::preset(name.trim_end_matches(".toml")) {
            Some(text) if !Path::new(name).is_file() => {
                (format!("presets/{name}.toml"), text.to_owned())
            }
            _ if tapir_models::task(name).is_some() && !Path::new(name).exists() => {
                let reason = format!("is a task; give a preset of it, such as small/{name}");
                return Err(Error::invalid(name, reason));
            }
            _ if !Path::new(name).exists() && Path::new(name).extension().is_none() => {
                let names = tapir_models::presets().iter().map(|(name, _)| *name);
                let names: Vec<_> = names.filter(|name| !name.contains("-d")).collect();
                let reason = format!(
                    "no such preset; expected the path of a file, or one of {}",
                    names.join(", ")
                );
                return Err(Error::invalid(name, reason));
            }
            _ => {
                let text = std::fs::read_to_string(name).map_err(|error| Error::io(name, error))?;
                (name.to_owned(), text)
            }
        };
        Self::parse(&text, &place, settings)
    }

    /// Reads and validates; `place` names the source in errors.
    pub fn parse(text: &str, place: &str, settings: &[String]) -> Result<Self> {
        let mut table: toml::Table =
            toml::from_str(text).map_err(|error| Error::invalid(place, error))?;
        for setting in settings {
            set(&mut table, setting)?;
        }
        let preset: Self = table.try_into().map_err(|error| Error::invalid(place, error))?;
        preset.validate(place)?;
        Ok(preset)
    }

    /// The same with at most so many epochs in every stage.
    pub fn with_epochs(mut self, epochs: usize) -> Result<Self> {
        self.training.stages_mut().for_each(|stage| stage.epochs = epochs);
        self.validate("--epochs")?;
        Ok(self)
    }

    fn validate(&self, place: &str) -> Result<()> {
        let refuse = |reason: String| Err(Error::invalid(place, reason));
        if self.words.open && self.words.vectors.is_none() {
            return refuse("`words.open` needs `words.vectors`, the file of the vectors".into());
        }
        if self.shards == 0 || self.shards > 256 {
            return refuse(format!("`shards` is {}, expected 1 to 256", self.shards));
        }
        if !(0.0..1.0).contains(&self.words.untuned) {
            return refuse(format!(
                "`words.untuned` is {}, expected 0 or more, less than 1",
                self.words.untuned
            ));
        }
        if !(0.0..=100.0).contains(&self.intents) {
            return refuse(format!("`intents` is {}, expected 0 to 100", self.intents));
        }
        if !self.outside.is_empty() && self.intents == 0.0 {
            return refuse("`outside` needs `intents`, whose heads learn it".into());
        }
        self.reviser.validate(place)?;
        if self.words.spelling && self.reviser.sizes().is_some() {
            return refuse(
                "`words.spelling` needs `reviser.pretrained`, whose pieces it reads".into(),
            );
        }
        if self.processor.spelling.is_some() {
            return refuse("`processor.spelling` is the encoder's; set `words.spelling`".into());
        }
        let own = self.reviser.sizes().and_then(|reviser| reviser.affixes);
        if own.or(self.processor.affixes).is_some() {
            return refuse("`affixes` are of both passes; set `words.affixes`".into());
        }
        let missing = |key: &str| {
            let actions = if key == "training.policy" { "reviser" } else { "generator" };
            refuse(format!("`{key}` is missing: `actions = \"{actions}\"` needs it"))
        };
        match self.actions {
            ActionSource::Generator if self.generator.is_none() => return missing("generator"),
            ActionSource::Generator if self.training.generator.is_none() => {
                return missing("training.generator");
            }
            ActionSource::Reviser if self.training.policy.is_none() => {
                return missing("training.policy");
            }
            _ => {}
        }
        for (name, training) in self.training.stages() {
            training.validate(place, name)?;
        }
        let Teaching { distillation, rounds, folds, recombined, ref text, .. } = self.teaching;
        if text.is_some() && (self.actions != ActionSource::Reviser || folds > 1) {
            return refuse(
                "`teaching.text` needs `actions = \"reviser\"` and one fold: the whole reviser labels \
                 it"
                .into(),
            );
        }
        if recombined > 0.0 && self.actions != ActionSource::Reviser {
            return refuse("`teaching.recombined` needs `actions = \"reviser\"`".into());
        }
        if !(0.0..=100.0).contains(&recombined) {
            return refuse(format!("`teaching.recombined` is {recombined}, expected 0 to 100"));
        }
        if !(0.0..=1.0).contains(&distillation) {
            return refuse(format!("`teaching.distillation` is {distillation}, expected 0 to 1"));
        }
        for (key, value) in [("rounds", rounds), ("folds", folds)] {
            if !(1..=100).contains(&value) {
                return refuse(format!("`teaching.{key}` is {value}, expected 1 to 100"));
            }
        }
        self.constraint().map_err(|error| Error::invalid(place, format!("`choose`: {error}")))?;
        let task = Task::open(&self.task)?;
        let vectors = self.words.open.then_some("vectors");
        // A pretrained encoder says its sizes when it is read.
        let reviser = self.reviser.sizes().cloned();
        self.config(&task, reviser, 300, vectors, 1.0).validate(place)?;
        if let Some(generator) = self.generator_config(&task, 300, vectors, 1.0) {
            generator.validate(place)?;
        }
        Ok(())
    }

    /// What the threshold is chosen by, if it is.
    pub(crate) fn constraint(&self) -> tapir_eval::Result<Option<Constraint>> {
        self.choose.as_deref().map(str::parse).transpose()
    }

    /// The whole model.
    pub(crate) fn config(
        &self,
        task: &Task,
        reviser: Option<ReviserConfig>,
        dim: usize,
        vectors: Option<&str>,
        gain: f32,
    ) -> Config {
        let pieces = reviser.as_ref().filter(|reviser| reviser.bert.is_some());
        let spelling = pieces.filter(|_| self.words.spelling).map(|reviser| reviser.hidden);
        let affixes = self.words.affixes;
        // Word pieces say how words are written by themselves.
        let reviser = reviser.map(|sizes| match sizes.bert {
            None => ReviserConfig { affixes, ..sizes },
            Some(_) => sizes,
        });
        Config {
            task: task.name.clone(),
            scheme: task.scheme.of_model(),
            decoding: self.decoding,
            tokenizer: task.tokenizer.unwrap_or_default(),
            delay: self.delay,
            threshold: self.threshold,
            max_length: task.max_length + self.delay,
            embedding_dim: dim,
            vector_gain: gain,
            vectors: vectors.map(str::to_owned),
            processor: Some(ProcessorConfig { spelling, affixes, ..self.processor.clone() }),
            controller: Some(self.controller.clone()),
            reviser,
            ..Config::default()
        }
    }

    /// The action generator, which has no delay: actions are derived for words and shifted later.
    pub(crate) fn generator_config(
        &self,
        task: &Task,
        dim: usize,
        vectors: Option<&str>,
        gain: f32,
    ) -> Option<Config> {
        let Generator { hidden, feed_forward, heads } = self.generator.clone()?;
        let kind = ReviserKind::LinearTransformer;
        Some(Config {
            delay: 0,
            // Actions are derived from the generator's best labels, as the paper does.
            decoding: Decoding::Argmax,
            processor: None,
            controller: None,
            reviser: Some(ReviserConfig {
                kind,
                layers: 1,
                hidden,
                feed_forward,
                heads,
                ..ReviserConfig::default()
            }),
            ..self.config(task, None, dim, vectors, gain)
        })
    }
}

impl Optimisation {
    fn validate(&self, place: &str, name: &str) -> Result<()> {
        let refuse = |key: &str, value: String, expected: &str| {
            Err(Error::invalid(place, format!("`{name}.{key}` is {value}, expected {expected}")))
        };
        if !(1..=100_000).contains(&self.epochs) {
            return refuse("epochs", self.epochs.to_string(), "1 to 100000");
        }
        if !(1..=65_536).contains(&self.batch) {
            return refuse("batch", self.batch.to_string(), "1 to 65536 sentences");
        }
        if !(self.learning_rate > 0.0 && self.learning_rate <= 1.0) {
            return refuse(
                "learning_rate",
                self.learning_rate.to_string(),
                "more than 0, at most 1",
            );
        }
        if self.clip.is_some_and(|clip| clip <= 0.0 || !clip.is_finite()) {
            return refuse(
                "clip",
                format!("{:?}", self.clip),
                "more than 0; leave it out for no clipping",
            );
        }
        let probabilities = [
            ("dropout", self.dropout),
            ("unknown", self.unknown),
            ("prefixes", self.prefixes),
            ("smoothing", self.smoothing),
            ("average", self.average),
        ];
        for (key, value) in probabilities {
            if !(0.0..1.0).contains(&value) {
                return refuse(key, value.to_string(), "0 or more, less than 1");
            }
        }
        if !(self.layer_decay > 0.0 && self.layer_decay <= 1.0) {
            return refuse("layer_decay", self.layer_decay.to_string(), "more than 0, at most 1");
        }
        if !(0.0..=1.0).contains(&self.weight_decay) {
            return refuse("weight_decay", self.weight_decay.to_string(), "0 to 1");
        }
        if self.schedule.plateau > 0 && self.schedule.decay == 0 {
            return refuse("schedule.decay", "0".into(), "1 or more behind a plateau");
        }
        Ok(())
    }
}

/// Sets `a.b=value` in a table; the value is TOML, or text where it is not. `a.b=` takes the key
/// away.
fn set(table: &mut toml::Table, setting: &str) -> Result<()> {
    let (key, value) = setting.split_once('=').ok_or_else(|| {
        Error::invalid(setting, "expected key=value, such as training.reviser.epochs=3")
    })?;
    let value = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut path: Vec<&str> = key.split('.').collect();
    let Some(last) = path.pop() else { return Ok(()) };
    let mut table = table;
    for part in path {
        let entry = table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        table = entry
            .as_table_mut()
            .ok_or_else(|| Error::invalid(setting, format!("`{part}` is a value, not a table")))?;
    }
    match &value {
        toml::Value::String(text) if text.is_empty() => _ = table.remove(last),
        _ => _ = table.insert(last.to_owned(), value),
    }
    Ok(())
}

fn seed() -> u64 {
    42_119_392
}
fn half() -> f32 {
    0.5
}
fn gain() -> f32 {
    0.4
}
fn whole() -> f64 {
    1.0
}
fn one() -> usize {
    1
}
fn two() -> usize {
    2
}
fn ten() -> usize {
    10
}
fn tenth() -> f64 {
    0.1
}
fn hundredth() -> f64 {
    0.01
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn unknown() -> f64 {
    0.02
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_preset_is_valid() {
        for (name, _) in tapir_models::presets() {
            let preset = Preset::open(name, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert!(name.contains(&preset.task), "{name} trains {}", preset.task);
        }
    }

    #[test]
    fn faults_are_named_before_any_time_is_spent() {
        let error = |setting: &str| {
            Preset::open("small/snips", &[setting.to_owned()]).unwrap_err().to_string()
        };
        assert!(error("reviser.head=3").contains("head"));
        assert!(error("reviser.heads=7").contains("`reviser.heads` (7) must divide"));
        assert!(error("training.reviser.batch=0").contains("`training.reviser.batch` is 0"));
        assert!(error("training.reviser.learning_rate=-1").contains("more than 0"));
        assert!(error("training.reviser.layer_decay=0").contains("`training.reviser.layer_decay`"));
        assert!(error("reviser.kind=bert").contains("`reviser.pretrained`"));
        let both = error("reviser.pretrained=DIR");
        assert!(both.contains("unknown field"), "{both}");
        assert!(error("nonsense").contains("key=value"));
        let settings = ["actions=generator", "teaching.recombined=1"].map(str::to_owned);
        let unread = Preset::open("small/snips", &settings).unwrap_err().to_string();
        assert!(unread.contains("`teaching.recombined` needs `actions"), "{unread}");
        assert!(error("task=nothing").contains("unknown task"));
        assert!(
            Preset::open("small/nothing", &[]).unwrap_err().to_string().contains("small/snips")
        );
    }

    /// It once ran no epoch at all, and failed behind the first stage.
    #[test]
    fn epochs_are_checked_wherever_they_come_from() {
        let preset = Preset::open("small/snips", &[]).unwrap();
        let error = preset.clone().with_epochs(0).unwrap_err().to_string();
        assert!(error.starts_with("--epochs: `training.generator.epochs` is 0"), "{error}");
        assert_eq!(preset.with_epochs(3).unwrap().training.reviser.epochs, 3);
    }

    #[test]
    fn settings_reach_deep() {
        let settings = ["training.generator.epochs=2".to_owned(), "delay=1".to_owned()];
        let preset = Preset::open("paper/snips-trf", &settings).unwrap();
        let epochs = preset.training.generator.map(|stage| stage.epochs);
        assert_eq!((epochs, preset.delay), (Some(2), 1));
        let preset = Preset::open("small/snips", &["training.reviser.clip=".to_owned()]).unwrap();
        assert_eq!(preset.training.reviser.clip, None);
    }
}
