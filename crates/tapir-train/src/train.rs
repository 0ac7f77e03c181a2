//! Everything for one task: action generator, actions, reviser, first pass and controller, and the
//! model of them all.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use burn::tensor::Device;
use serde::Serialize;
use tapir::{Bytes, Config, Labels, Mode, Model, Parts, TensorWriter, Vocabulary, WordVectors};
use tapir_data::{
    Corpus, Sentence, Task, VocabularyOptions, examples, fitting_tokenizer, label_set, vocabulary,
};

use crate::{
    ActionStats, Compute, Error, Objective, Optimisation, Preset, Progress, Result, Stage,
    StageName, StageReport, Training, Validation, Weights, actions, checkpoint, derive_actions,
    evaluate,
};

/// Where things are, and what to do of it.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The folder of the corpus, if the task's own is not meant.
    pub data: Option<PathBuf>,
    /// Where checkpoints, metrics and the model go.
    pub out: PathBuf,
    /// Only these stages, where not all.
    pub stages: Option<Vec<StageName>>,
    /// A checkpoint is written when this much time has passed since the last.
    pub checkpoint_every: Duration,
    /// Where to compute. The last bits of the weights depend on it.
    pub compute: Compute,
}

impl RunOptions {
    /// All stages into `out`, a checkpoint a minute.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            data: None,
            out: out.into(),
            stages: None,
            checkpoint_every: Duration::from_mins(1),
            compute: Compute::default(),
        }
    }
}

/// What a run tells while it goes on.
pub enum Event<'a> {
    /// A stage was done before.
    Skipped(StageName),
    /// A stage begins, with so many sentences.
    Started(StageName, usize),
    /// A batch or an epoch is done.
    Progress(&'a Progress),
    /// Actions were derived.
    Actions(&'a ActionStats),
    /// A stage is done.
    Finished(&'a StageReport),
}

/// What a run has made.
#[derive(Clone, Debug, Serialize)]
pub struct TrainedRun {
    /// The directory of the model; none while stages are missing.
    pub model: Option<PathBuf>,
    /// The stages that were run now.
    pub reports: Vec<StageReport>,
    /// Test scores, where the model is complete.
    pub test: Option<TestScores>,
}

/// Scores on the test split.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TestScores {
    /// The restart-incremental reviser: the reference model.
    pub reviser: Validation,
    /// TAPIR: the policy's last word stands.
    pub tapir: Validation,
    /// The monotonic first pass.
    pub first_pass: Validation,
}

/// A task, read and numbered.
struct TrainingRun<'a> {
    preset: &'a Preset,
    options: &'a RunOptions,
    task: Task,
    corpus: Corpus,
    labels: Labels,
    vocabulary: Vocabulary,
    vectors: Option<Arc<WordVectors>>,
    /// The whole model.
    config: Config,
    generator: Config,
}

/// Does every stage that is missing, then puts the model together and scores it. `on_event` ends a
/// stage by breaking.
pub fn train(
    preset: &Preset,
    options: &RunOptions,
    on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> Result<TrainedRun> {
    let run = TrainingRun::open(preset, options)?;
    run.claim()?;
    let mut reports = Vec::new();
    for name in StageName::ALL {
        if options.stages.as_ref().is_some_and(|stages| !stages.contains(&name)) {
            continue;
        }
        if run.result(name).exists() {
            _ = on_event(Event::Skipped(name));
            continue;
        }
        reports.extend(match name {
            StageName::Generator => Some(run.train_generator(on_event)?),
            StageName::Actions => {
                run.derive_actions(on_event)?;
                None
            }
            StageName::Reviser => Some(run.train_reviser(on_event)?),
            StageName::FirstPass => Some(run.train_first_pass(on_event)?),
        });
    }
    let complete =
        [StageName::Reviser, StageName::FirstPass].iter().all(|name| run.result(*name).exists());
    if !complete {
        return Ok(TrainedRun { model: None, reports, test: None });
    }
    let first_pass = run.read_weights(StageName::FirstPass, &run.first_pass_config())?;
    let model = run.two_pass(&first_pass, Some(&reports))?.load()?;
    let folder = options.out.join("model");
    model.parts().replace(&folder)?;
    let score = |mode| evaluate(&model, mode, &run.corpus.test, run.task.score);
    let test = TestScores {
        reviser: score(Mode::Restart)?,
        tapir: score(Mode::TwoPass)?,
        first_pass: score(Mode::FirstPass)?,
    };
    Ok(TrainedRun { model: Some(folder), reports, test: Some(test) })
}

impl<'a> TrainingRun<'a> {
    fn open(preset: &'a Preset, options: &'a RunOptions) -> Result<Self> {
        let mut task = Task::open(&preset.task)?;
        let corpus = task.load(options.data.as_deref())?;
        task.scheme.check(&corpus)?;
        task.tokenizer.get_or_insert_with(|| fitting_tokenizer(&corpus));
        for (name, split) in
            [("training", &corpus.train), ("validation", &corpus.valid), ("test", &corpus.test)]
        {
            if split.is_empty() {
                return Err(Error::invalid(
                    &task.name,
                    format!("the {name} split has no sentence"),
                ));
            }
        }
        let vectors = preset.words.vectors.as_deref().map(find_vectors).transpose()?.map(Arc::new);
        let labels = label_set(corpus.train_and_valid())?;
        let words =
            VocabularyOptions { min_count: preset.words.min_count, tuned: preset.words.tuned };
        let open = vectors.clone().filter(|_| preset.words.open);
        let vocabulary = vocabulary(&train_sentences(preset, &corpus), words, open)?;
        let dim = vectors.as_ref().map_or(300, |vectors| vectors.dim());
        let open = vocabulary.vectors().map(|vectors| preset.words.gain / vectors.scale());
        let name = open.and(preset.words.vectors.as_deref()).map(file_name);
        let gain = open.unwrap_or(1.0);
        let config = preset.config(&task, dim, name, gain);
        let generator = preset.generator_config(&task, dim, name, gain);
        Ok(Self { preset, options, task, corpus, labels, vocabulary, vectors, config, generator })
    }

    /// Makes the folder ours: one that holds the work of another preset is refused.
    fn claim(&self) -> Result<()> {
        let out = &self.options.out;
        std::fs::create_dir_all(out).map_err(|error| Error::io(out, error))?;
        let path = out.join("preset.toml");
        let mut preset = self.preset.clone();
        let text =
            toml::to_string(&preset).map_err(|error| Error::invalid(path.display(), error))?;
        if path.exists() {
            let old = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
            let mut old = Preset::parse(&old, &path.display().to_string(), &[])?;
            // Training longer is going on, not starting anew.
            for preset in [&mut preset, &mut old] {
                let Training { generator, reviser, first_pass } = &mut preset.training;
                for training in [generator, reviser, first_pass] {
                    (training.epochs, training.patience) = (1, 1);
                }
            }
            if old != preset {
                let reason =
                    "the folder holds the work of another preset; choose another one with --out";
                return Err(Error::invalid(path.display(), reason));
            }
        }
        checkpoint::write(&path, text.as_bytes())
    }

    fn result(&self, name: StageName) -> PathBuf {
        let file = if name == StageName::Actions {
            "actions.tsv".into()
        } else {
            format!("{}.safetensors", name.name())
        };
        self.options.out.join(file)
    }

    fn train_sentences(&self) -> Vec<&Sentence> {
        train_sentences(self.preset, &self.corpus)
    }

    fn reviser_config(&self) -> Config {
        Config { processor: None, controller: None, ..self.config.clone() }
    }

    fn first_pass_config(&self) -> Config {
        Config { reviser: None, ..self.config.clone() }
    }

    fn stage(
        &self,
        name: StageName,
        objective: Objective,
        config: Config,
        training: &'a Optimisation,
        actions: &[Vec<bool>],
    ) -> Result<Stage<'_>> {
        let sentences = self.train_sentences();
        let examples = examples(&sentences, actions, &self.vocabulary, &self.labels, config.delay)?;
        let words = &self.preset.words;
        let pretrained = self.vectors.as_deref().filter(|_| !words.open || words.tuned > 0);
        Ok(Stage {
            name,
            objective,
            config,
            training,
            examples,
            labels: &self.labels,
            vocabulary: &self.vocabulary,
            pretrained: pretrained.map(|vectors| (vectors, self.preset.words.gain)),
            seed: self.preset.seed,
            shards: self.preset.shards,
            compute: self.options.compute,
            untuned: self.preset.words.untuned,
            folder: &self.options.out,
            checkpoint_every: self.options.checkpoint_every,
            keep_last: objective == Objective::Generator || self.preset.with_valid,
            is_validated: !self.preset.with_valid,
        })
    }

    fn run(
        stage: &Stage,
        validate: crate::stage::Validate,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        _ = on_event(Event::Started(stage.name, stage.examples.len()));
        let report = stage.run(validate, &mut |progress| on_event(Event::Progress(progress)))?;
        _ = on_event(Event::Finished(&report));
        Ok(report)
    }

    fn train_generator(
        &self,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        let training = &self.preset.training.generator;
        let (name, objective) = (StageName::Generator, Objective::Generator);
        let stage = self.stage(name, objective, self.generator.clone(), training, &[])?;
        let validate = |weights: &Weights| self.validate(stage.parts(weights)?, Mode::Restart);
        Self::run(&stage, &validate, on_event)
    }

    fn derive_actions(&self, on_event: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<()> {
        let weights = self.read_weights(StageName::Generator, &self.generator)?;
        let generator = self.parts(&self.generator, &[&weights])?.load()?;
        let sentences = self.train_sentences();
        _ = on_event(Event::Started(StageName::Actions, sentences.len()));
        let actions = derive_actions(&generator, &sentences)?;
        actions::write(&self.result(StageName::Actions), &sentences, &actions)?;
        _ = on_event(Event::Actions(&ActionStats::of(&actions)));
        Ok(())
    }

    fn train_reviser(
        &self,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        let training = &self.preset.training.reviser;
        let stage = self.stage(
            StageName::Reviser,
            Objective::Reviser,
            self.reviser_config(),
            training,
            &[],
        )?;
        let validate = |weights: &Weights| self.validate(stage.parts(weights)?, Mode::Restart);
        Self::run(&stage, &validate, on_event)
    }

    fn train_first_pass(
        &self,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        let actions = self.result(StageName::Actions);
        if !actions.exists() {
            return Err(Error::invalid(
                actions.display(),
                "missing; run the stages generator and actions first",
            ));
        }
        let actions = actions::read(&actions, &self.train_sentences())?;
        let training = &self.preset.training.first_pass;
        let (name, objective) = (StageName::FirstPass, Objective::FirstPass);
        let stage = self.stage(name, objective, self.first_pass_config(), training, &actions)?;
        let validate = |weights: &Weights| {
            if self.result(StageName::Reviser).exists() {
                self.validate(self.two_pass(weights, None)?, Mode::TwoPass)
            } else {
                self.validate(stage.parts(weights)?, Mode::FirstPass)
            }
        };
        Self::run(&stage, &validate, on_event)
    }

    /// The validation score of a model.
    fn validate(&self, parts: Parts, mode: Mode) -> Result<Validation> {
        let model = Model::from_parts(parts)?;
        evaluate(&model, mode, &self.corpus.valid, self.task.score)
    }

    fn read_weights(&self, name: StageName, config: &Config) -> Result<Weights> {
        let path = self.result(name);
        let bytes = std::fs::read(&path).map_err(|error| Error::io(&path, error))?;
        Weights::read(&bytes, config, self.labels.len(), self.vocabulary.len(), &Device::flex())
    }

    /// The whole model: the trained reviser and this first pass.
    fn two_pass(&self, first_pass: &Weights, reports: Option<&[StageReport]>) -> Result<Parts> {
        let reviser = self.read_weights(StageName::Reviser, &self.reviser_config())?;
        let mut config = self.config.clone();
        if let Some(reports) = reports {
            let json = |value: serde_json::Result<serde_json::Value>| value.unwrap_or_default();
            config.provenance.insert("preset".into(), json(serde_json::to_value(self.preset)));
            config.provenance.insert("stages".into(), json(serde_json::to_value(reports)));
        }
        self.parts(&config, &[&reviser, first_pass])
    }

    fn parts(&self, config: &Config, weights: &[&Weights]) -> Result<Parts> {
        let mut writer = TensorWriter::default();
        for weights in weights {
            weights.write(&mut writer)?;
        }
        Ok(Parts {
            config: config.clone(),
            labels: self.labels.clone(),
            vocabulary: self.vocabulary.clone(),
            pieces: None,
            weights: Bytes::from(writer.to_bytes()?),
        })
    }
}

/// What is trained on: the training split, and the validation split where the preset says so.
fn train_sentences<'a>(preset: &Preset, corpus: &'a Corpus) -> Vec<&'a Sentence> {
    let valid = if preset.with_valid { corpus.valid.as_slice() } else { &[] };
    corpus.train.iter().chain(valid).collect()
}

/// A file of vectors, or those in the program.
fn find_vectors(name: &str) -> Result<WordVectors> {
    let shipped = tapir_models::VECTORS.name;
    if !Path::new(name).exists() && name != shipped {
        let reason = format!(
            "no such file; {shipped} is in the program, --set words.vectors=PATH names another"
        );
        return Err(Error::invalid(name, reason));
    }
    Ok(WordVectors::find(name)?)
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}
