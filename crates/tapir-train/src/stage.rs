//! One stage of training: epochs of batches, a validation score after each, early stopping,
//! checkpoints.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tapir::{Bytes, Config, Labels, Parts, TensorWriter, WordVectors};
use tapir_data::{Batches, Example, Prefix, write_atomically};

use crate::checkpoint::{self, Position};
use crate::shard::Noise;
use crate::{
    AdamW, Compute, Error, LayerRates, Lexicon, Objective, Optimisation, Result, Shards, Update,
    Validation, Weights, metrics,
};

/// The stages, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageName {
    /// Train the action generator.
    Generator,
    /// Derive WRITE and REVISE with it.
    Actions,
    /// Step 1: train the reviser, which is also the reference model.
    Reviser,
    /// Step 2: train the incremental processor and, where the generator gives the actions, the
    /// controller.
    FirstPass,
    /// Train the controller on what the reviser would change.
    Policy,
}

impl StageName {
    /// All of them, in order.
    pub const ALL: [Self; 5] =
        [Self::Generator, Self::Actions, Self::Reviser, Self::FirstPass, Self::Policy];

    /// `generator`, `actions`, `reviser`, `first-pass` or `policy`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Actions => "actions",
            Self::Reviser => "reviser",
            Self::FirstPass => "first-pass",
            Self::Policy => "policy",
        }
    }
}

/// What a stage is doing.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    /// The stage.
    pub stage: StageName,
    /// The part of it, as its files are called: `policy-1`, `reviser-fold-2`, or the stage alone.
    pub part: String,
    /// The epoch, from 1.
    pub epoch: usize,
    /// At most so many epochs.
    pub epochs: usize,
    /// Batches done in this epoch.
    #[serde(skip)]
    pub batch: usize,
    /// Batches of an epoch.
    #[serde(skip)]
    pub batches: usize,
    /// The mean loss of the epoch so far.
    pub loss: f64,
    /// The learning rate.
    pub learning_rate: f64,
    /// The validation score, at the end of an epoch; none where the stage is trained on the
    /// validation split, too.
    pub score: Option<f64>,
    /// The share of words revised in validation, in percent.
    pub revised: Option<f64>,
    /// The best validation score so far.
    pub best: Option<f64>,
    /// Words a second in this run.
    pub words_per_second: f64,
    /// Seconds of training so far, over all runs.
    pub seconds: f64,
}

/// How a stage ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// The stage.
    pub stage: StageName,
    /// The part of it, as its files are called; empty in reports that are older.
    #[serde(default)]
    pub part: String,
    /// Epochs that were run.
    pub epochs: usize,
    /// The epoch that was kept, from 1: the best by validation, or the last.
    pub kept_epoch: usize,
    /// Its validation score; none where it was trained on the validation split, too.
    pub valid: Option<Validation>,
    /// Seconds of training, over all runs.
    pub seconds: f64,
    /// Trained numbers.
    pub parameters: usize,
}

/// Hears how a stage goes on, and may end it.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// Gives a model a validation score.
pub(crate) type Validate<'a> = &'a dyn Fn(&Weights) -> Result<Validation>;

/// A stage that is about to run.
pub struct Stage<'a> {
    pub(crate) name: StageName,
    /// What its files are called: the stage, and the part of it where it has several.
    pub(crate) file: String,
    /// The weights that it starts from, where they are not new.
    pub(crate) initial: Option<Weights>,
    /// How much of a label's weight is the teacher's.
    pub(crate) distillation: f64,
    /// Update only the word rows of a batch.
    pub(crate) sparse: bool,
    pub(crate) objective: Objective,
    /// Only the components that this stage trains.
    pub(crate) config: Config,
    pub(crate) training: &'a Optimisation,
    pub(crate) examples: Vec<Example>,
    pub(crate) labels: &'a Labels,
    /// Those that are learnt, and their weight beside labels.
    pub(crate) intents: (Option<&'a Labels>, f64),
    pub(crate) lexicon: Lexicon<'a>,
    /// What a closed table starts from.
    pub(crate) pretrained: Option<(&'a WordVectors, f32)>,
    pub(crate) seed: u64,
    pub(crate) shards: usize,
    pub(crate) compute: Compute,
    /// Probability that a word with a row of its own is shown by its vector.
    pub(crate) untuned: f64,
    /// Where checkpoint and result are kept.
    pub(crate) folder: &'a Path,
    pub(crate) checkpoint_every: Duration,
    /// Keep the last epoch instead of the best one: a generator is judged by its actions, not by
    /// its labels.
    pub(crate) keep_last: bool,
    /// Is there a validation split that it is not trained on?
    pub(crate) is_validated: bool,
}

impl Stage<'_> {
    /// The weights that the stage ends with; they are there when it is done.
    pub(crate) fn result(&self) -> PathBuf {
        self.file("safetensors")
    }

    fn file(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{}.{what}", self.file))
    }

    /// Changes with everything that changes the weights, except how long to train.
    fn fingerprint(&self) -> String {
        let mut training = self.training.clone();
        (training.epochs, training.patience) = (1, 1);
        let text = format!(
            "{}\n{training:?}\n{} {} {} {} {} {}",
            self.config.to_json(),
            self.seed,
            self.shards,
            self.untuned,
            self.lexicon.vocabulary.len(),
            self.distillation,
            self.sparse
        );
        let mut bytes = text.into_bytes();
        if let Some(initial) = &self.initial {
            bytes.extend(Self::export(initial).unwrap_or_default());
        }
        let numbers =
            |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        for example in &self.examples {
            bytes.extend(numbers(&example.teacher));
            for revision in &example.revisions {
                bytes.extend(revision.step.to_le_bytes());
                bytes.extend(numbers(&revision.logits));
            }
            bytes.extend(example.ids.iter().flat_map(|id| id.to_le_bytes()));
            for word in &example.words {
                bytes.extend(word.as_bytes());
                bytes.push(b'\n');
            }
            // Labels are 16 bits wide, so that no label is the one that is not there.
            let label = |label: &Option<u16>| label.map_or(u32::MAX, u32::from).to_le_bytes();
            bytes.extend(example.labels.iter().flat_map(label));
            bytes.extend(example.actions.iter().map(|action| u8::from(*action)));
            if let Some(intent) = example.intent {
                bytes.extend(intent.to_le_bytes());
            }
        }
        format!("{:016x}", tapir::vectors::checksum(&bytes))
    }

    /// Trains, from the last checkpoint if there is one, until the last epoch or until patience
    /// ends.
    pub(crate) fn run(&self, validate: Validate, on_progress: OnProgress) -> Result<StageReport> {
        let device = self.compute.device();
        let shards = Shards::new(self.shards, &device.clone().autodiff())?;
        let mut weights = self.initial.clone().unwrap_or_else(|| self.new_weights());
        let mut adamw = AdamW::default();
        let fingerprint = self.fingerprint();
        let (saved, kept_file) = (self.file("checkpoint"), self.file("kept"));
        let mut position = if saved.exists() {
            checkpoint::load(&saved, &mut weights, &mut adamw, &fingerprint, &device)?
        } else {
            Position { fingerprint, ..Position::default() }
        };
        let mut last_saved = Instant::now();
        let clock = Clock::new(position.seconds);
        let mut words_here = 0;
        while position.epoch < self.training.epochs && !self.is_done(&position) {
            let epoch = position.epoch;
            let batches = {
                let Optimisation { batch, prefixes, .. } = *self.training;
                Batches::epoch(&self.examples, batch, prefixes, self.seed, epoch)
            };
            let schedule = &self.training.schedule;
            let fall_from = position.fall_from;
            let learning_rate = |batch| {
                let factor = schedule.factor_at(epoch, batch, batches.len(), fall_from);
                self.training.learning_rate * factor
            };
            let mut progress = Progress {
                stage: self.name,
                part: self.file.clone(),
                epoch: epoch + 1,
                epochs: self.training.epochs,
                batch: position.batch,
                batches: batches.len(),
                loss: 0.0,
                learning_rate: learning_rate(position.batch),
                score: None,
                revised: None,
                best: position.best_score,
                words_per_second: 0.0,
                seconds: 0.0,
            };
            for batch in position.batch..batches.len() {
                let cut = |prefix: &Prefix| self.examples[prefix.example].prefix(prefix.length);
                let examples: Vec<Example> = batches[batch].iter().map(cut).collect();
                let examples: Vec<&Example> = examples.iter().collect();
                let words: usize = examples.iter().map(|example| example.ids.len()).sum();
                let noise = Noise {
                    dropout: self.training.dropout,
                    unknown: self.training.unknown,
                    untuned: self.untuned,
                    smoothing: self.training.smoothing,
                    distillation: self.distillation,
                    intents: self.intents.1,
                    place: [self.seed, epoch as u64, batch as u64],
                };
                let gradients = shards.gradients(
                    &weights,
                    &self.config,
                    self.lexicon,
                    self.objective,
                    &examples,
                    noise,
                );
                let loss: f32 = gradients.iter().map(|part| part.loss).sum();
                if !loss.is_finite() {
                    let stage = self.name.name();
                    return Err(Error::Diverged {
                        stage,
                        epoch: epoch + 1,
                        batch: batch + 1,
                        loss,
                    });
                }
                let Optimisation { weight_decay, clip, average, layer_decay, .. } = *self.training;
                let layers = self.config.reviser.as_ref().map_or(0, |reviser| reviser.layers);
                progress.learning_rate = learning_rate(batch);
                let how = Update {
                    learning_rate: progress.learning_rate,
                    weight_decay,
                    clip,
                    average,
                    sparse: self.sparse,
                    layers: LayerRates { layers, decay: layer_decay },
                };
                adamw.update(&mut weights, &gradients, how);
                position.batch = batch + 1;
                position.loss += f64::from(loss) * words as f64;
                position.words += words;
                words_here += words;
                progress.batch = batch + 1;
                progress.loss = position.loss / position.words.max(1) as f64;
                progress.seconds = clock.seconds();
                progress.words_per_second = words_here as f64 / clock.here().max(1e-9);
                if on_progress(&progress).is_break() {
                    return Err(Error::Stopped { stage: self.name.name(), epoch: epoch + 1 });
                }
                if last_saved.elapsed() >= self.checkpoint_every && batch + 1 < batches.len() {
                    position.seconds = clock.seconds();
                    checkpoint::save(&saved, &weights, &adamw, &position)?;
                    last_saved = Instant::now();
                }
            }
            let kept = adamw.averaged(&weights);
            let validation = if self.is_validated { Some(validate(&kept)?) } else { None };
            let score = validation.map(|validation| validation.score);
            if self.keep_last || position.is_best(score) {
                position.kept = Some((epoch, validation));
                write_atomically(&kept_file, &Self::export(&kept)?)?;
            }
            position.best_score = position.best_score.into_iter().chain(score).reduce(f64::max);
            position.seconds = clock.seconds();
            progress.score = score;
            progress.revised = validation.and_then(|validation| validation.revised);
            progress.best = position.best_score;
            progress.seconds = position.seconds;
            metrics::append(&self.folder.join("metrics.jsonl"), &progress)?;
            position.epoch += 1;
            if position.fall_from.is_none() && self.begins_to_fall(&position) {
                position.fall_from = Some(position.epoch);
            }
            (position.batch, position.loss, position.words) = (0, 0.0, 0);
            checkpoint::save(&saved, &weights, &adamw, &position)?;
            last_saved = Instant::now();
            if on_progress(&progress).is_break() {
                return Err(Error::Stopped { stage: self.name.name(), epoch: epoch + 1 });
            }
        }
        let Some((kept_epoch, valid)) = position.kept else {
            return Err(Error::invalid(self.name.name(), "no epoch was run"));
        };
        std::fs::rename(&kept_file, self.result()).map_err(|error| Error::io(&kept_file, error))?;
        let report = StageReport {
            stage: self.name,
            part: self.file.clone(),
            epochs: position.epoch,
            kept_epoch: kept_epoch + 1,
            valid,
            seconds: position.seconds,
            parameters: weights.count(),
        };
        let json =
            serde_json::to_vec_pretty(&report).map_err(|error| Error::invalid("report", error))?;
        write_atomically(&self.file("json"), &json)?;
        std::fs::remove_file(&saved).map_err(|error| Error::io(&saved, error))?;
        Ok(report)
    }

    /// Weights as they are before any training.
    pub(crate) fn new_weights(&self) -> Weights {
        Weights::new(
            &self.config,
            self.labels.len(),
            self.lexicon.vocabulary,
            self.pretrained,
            self.seed,
            &self.compute.device(),
        )
    }

    /// Has it learnt all that it will, before its last epoch?
    fn is_done(&self, position: &Position) -> bool {
        match &self.training.schedule {
            schedule if schedule.plateau > 0 => {
                schedule.has_fallen(position.epoch, position.fall_from)
            }
            _ => !self.keep_last && position.is_out_of(self.training.patience),
        }
    }

    /// Is its plateau over with the epochs so far?
    fn begins_to_fall(&self, position: &Position) -> bool {
        let schedule = &self.training.schedule;
        schedule.plateau > 0
            && (schedule.has_to_fall(position.epoch, self.training.epochs)
                || (!self.keep_last && position.is_out_of(schedule.plateau)))
    }

    /// `model.safetensors` of the components that this stage trains.
    fn export(weights: &Weights) -> Result<Vec<u8>> {
        let mut writer = TensorWriter::default();
        weights.write(&mut writer)?;
        Ok(writer.to_bytes()?)
    }

    /// A model of the components that this stage trains, to be run with the engine.
    pub(crate) fn parts(&self, weights: &Weights) -> Result<Parts> {
        Ok(Parts {
            config: self.config.clone(),
            labels: self.labels.clone(),
            intents: self.intents.0.filter(|_| self.config.intents > 0).cloned(),
            vocabulary: crate::train::words_of(&self.config, self.lexicon.vocabulary)?,
            pieces: self.lexicon.pieces.filter(|_| self.config.reads_pieces()).cloned(),
            weights: Bytes::from(Self::export(weights)?),
        })
    }
}

/// Seconds of this run, on top of those of earlier ones.
struct Clock {
    before: f64,
    start: Instant,
}

impl Clock {
    fn new(before: f64) -> Self {
        Self { before, start: Instant::now() }
    }

    fn here(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn seconds(&self) -> f64 {
        self.before + self.here()
    }
}
