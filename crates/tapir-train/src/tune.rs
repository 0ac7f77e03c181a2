//! Search for hyperparameters: the paper's spaces, by tree-structured Parzen estimation, pruned at
//! the median.
//!
//! The journal of a study holds every trial that ended; the sampler of a trial is seeded by its
//! number. A search that was killed therefore asks for the same trial again, and that trial goes on
//! from its checkpoint.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use optimizer::TrialState;
use optimizer::prelude::{
    CategoricalParam, CompletedTrial, Direction, JournalStorage, MedianPruner, ParamValue,
    Parameter, Study, TpeSampler,
};
use serde::Serialize;
use tapir_data::write_atomically;

use crate::train::claim;
use crate::{ActionSource, Error, Event, Preset, Result, RunOptions, StageName, checkpoint, train};

/// A key of a preset and the values that it may take; an empty one takes the key away.
struct Dimension {
    key: &'static str,
    values: &'static [&'static str],
    parameter: CategoricalParam<&'static str>,
}

impl Dimension {
    fn new((key, values): (&'static str, &'static [&'static str])) -> Self {
        Self { key, values, parameter: CategoricalParam::new(values.to_vec()).name(key) }
    }
}

/// The paper's search spaces (Table 3): the reviser's, and that of incremental processor and
/// controller.
///
/// The library numbers parameters in the order in which they are made, and a journal knows them by
/// number: they are made once, all together.
static SPACES: LazyLock<[Vec<Dimension>; 2]> = LazyLock::new(|| {
    let reviser: [(_, &'static [&'static str]); 6] = [
        ("reviser.layers", &["1", "2", "3", "4"]),
        ("training.reviser.clip", &["", "0.5", "1.0"]),
        ("training.reviser.learning_rate", &["5e-5", "7e-5", "1e-4"]),
        ("training.reviser.batch", &["16", "32", "64"]),
        ("reviser.feed_forward", &["1024", "2048"]),
        ("reviser.hidden", &["256", "512"]),
    ];
    let first_pass: [(_, &'static [&'static str]); 8] = [
        ("processor.layers", &["1", "2", "3", "4"]),
        ("controller.layers", &["1", "2"]),
        ("training.first_pass.clip", &["", "0.5", "1.0"]),
        ("training.first_pass.learning_rate", &["5e-5", "7e-5", "1e-4", "1e-3"]),
        ("training.first_pass.batch", &["16", "32", "64"]),
        ("processor.hidden", &["256", "512"]),
        ("controller.hidden", &["256", "512"]),
        ("controller.memory", &["3", "5", "7"]),
    ];
    [
        reviser.into_iter().map(Dimension::new).collect(),
        first_pass.into_iter().map(Dimension::new).collect(),
    ]
});

/// A trial that ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// `reviser` or `first-pass`.
    pub stage: StageName,
    /// From 1.
    pub number: u64,
    /// `key=value`, as `--set` takes them.
    pub settings: Vec<String>,
    /// The validation score; none if it was pruned.
    pub score: Option<f64>,
    /// The epochs whose score was seen.
    pub epochs: usize,
}

/// What a search tells while it goes on.
pub enum TuneEvent<'a> {
    /// A trial begins: its stage, its number from 1, and its settings.
    Trial(StageName, u64, &'a [String]),
    /// Something of the training of a trial.
    Train(Event<'a>),
    /// A trial ended.
    Ended(&'a Trial),
}

/// How far to search.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// Trials of each of the two searches, those of earlier calls included.
    pub trials: usize,
    /// Search only keys that contain one of these; all where there is none.
    pub only: Vec<String>,
    /// Corpus and folder.
    pub run: RunOptions,
}

/// Searches for the best reviser, then with it for the best incremental processor and controller;
/// gives all trials and leaves the best preset in `best.toml`.
///
/// `open` makes a preset of settings (`key=value`) on top of those that the user gave.
pub fn tune(
    open: &dyn Fn(&[String]) -> Result<Preset>,
    options: &TuneOptions,
    on_event: &mut dyn FnMut(TuneEvent),
) -> Result<Vec<Trial>> {
    let searched = |key: &str| {
        options.only.is_empty() || options.only.iter().any(|part| key.contains(part.as_str()))
    };
    let keys = || SPACES.iter().flatten().map(|dimension| dimension.key);
    if !keys().any(searched) {
        let reason = format!(
            "no key has such a part; expected one of {}",
            keys().collect::<Vec<_>>().join(", ")
        );
        return Err(Error::invalid("--only", reason));
    }
    // Trials of another corpus or preset would be compared with these.
    claim(&open(&[])?, &options.run)?;
    let mut trials = Vec::new();
    let mut settings = Vec::new();
    let mut reviser = None;
    for (stage, space) in [StageName::Reviser, StageName::FirstPass].into_iter().zip(SPACES.iter())
    {
        // An encoder brings its sizes; only how many of its layers are taken can be chosen.
        let given = open(&settings)?.reviser.sizes().is_none();
        let brought = ["reviser.feed_forward", "reviser.hidden"];
        let wanted = |dimension: &&Dimension| {
            searched(dimension.key) && !(given && brought.contains(&dimension.key))
        };
        let space = space.iter().filter(wanted).collect();
        let search = Search {
            stage,
            space,
            open,
            options,
            settings: settings.clone(),
            reviser: reviser.take(),
        };
        let found = search.run(on_event)?;
        let scored = found.iter().filter_map(|trial| Some((trial, trial.score?)));
        let Some((best, _)) = scored.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return Err(Error::invalid(
                stage.name(),
                "no trial came to its end; more trials may help",
            ));
        };
        settings.extend_from_slice(&best.settings);
        reviser = Some(search.folder(best.number));
        trials.extend(found);
    }
    let path = options.run.out.join("best.toml");
    let text = toml::to_string(&open(&settings)?)
        .map_err(|error| Error::invalid(path.display(), error))?;
    write_atomically(&path, text.as_bytes())?;
    Ok(trials)
}

/// The search for one stage.
struct Search<'a> {
    stage: StageName,
    space: Vec<&'static Dimension>,
    open: &'a dyn Fn(&[String]) -> Result<Preset>,
    options: &'a TuneOptions,
    /// What an earlier search has found.
    settings: Vec<String>,
    /// The folder of the reviser that it has found.
    reviser: Option<PathBuf>,
}

impl Search<'_> {
    fn run(&self, on_event: &mut dyn FnMut(TuneEvent)) -> Result<Vec<Trial>> {
        let out = &self.options.run.out;
        std::fs::create_dir_all(out).map_err(|error| Error::io(out, error))?;
        let journal = out.join(format!("{}.trials.jsonl", self.stage.name()));
        let broken = |error: optimizer::Error| Error::invalid(journal.display(), error);
        let storage = JournalStorage::<f64>::open(&journal).map_err(broken)?;
        let pruner = MedianPruner::new(Direction::Maximize).n_warmup_steps(2).n_min_trials(4);
        let mut study: Study<f64> =
            Study::builder().maximize().pruner(pruner).storage(storage).build();
        let base = (self.open)(&self.settings)?;
        // `n_trials` would count only those that were not pruned.
        while study.trials().len() < self.options.trials {
            let number = study.trials().len() as u64 + 1;
            let sampler = TpeSampler::builder().seed(base.seed.wrapping_add(number)).build();
            study.set_sampler(sampler.map_err(broken)?);
            let mut trial = study.ask();
            let mut settings = Vec::new();
            for dimension in &self.space {
                let value = dimension.parameter.suggest(&mut trial).map_err(broken)?;
                settings.push(format!("{}={value}", dimension.key));
            }
            on_event(TuneEvent::Trial(self.stage, number, &settings));
            let outcome = self.train(number, &settings, &mut |event| {
                // Of a policy's rounds only the last has the name of the stage.
                if let Event::Progress(progress) = &event
                    && self.stages(base.actions).last().is_some_and(|s| s.name() == progress.part)
                    && let Some(score) = progress.score
                {
                    trial.report(progress.epoch as u64, score);
                }
                on_event(TuneEvent::Train(event));
                if trial.should_prune() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            match outcome {
                Ok(score) => study.complete_trial(trial, score),
                // A diverged trial is as bad as a pruned one; other faults end the search.
                Err(Error::Stopped { .. } | Error::Diverged { .. }) => study.prune_trial(trial),
                Err(error) => return Err(error),
            }
            if let Some(last) = study.trials().last() {
                on_event(TuneEvent::Ended(&self.trial(last)));
            }
        }
        Ok(study.trials().iter().map(|trial| self.trial(trial)).collect())
    }

    /// Trains the stage with these settings in a folder of the trial; gives the best validation
    /// score.
    fn train(
        &self,
        number: u64,
        settings: &[String],
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<f64> {
        let preset = (self.open)(&[&self.settings, settings].concat())?;
        let out = self.folder(number);
        if let Some(reviser) = &self.reviser {
            self.share(reviser, &out, on_event)?;
        }
        let stages = self.stages(preset.actions);
        let last = stages.last().copied().unwrap_or(self.stage);
        let options = RunOptions { out, stages: Some(stages), ..self.options.run.clone() };
        let report = train(&preset, &options, on_event)?.reports.into_iter().next_back();
        let report = match report {
            Some(report) => report,
            // The stage was done, but the journal was not told: killed between the two.
            None => checkpoint::read_report(&options.out, last.name())?,
        };
        report.valid.map(|valid| valid.score).ok_or_else(|| {
            let reason = "a search compares scores on the validation split; leave `with_valid` out";
            Error::invalid("with_valid", reason)
        })
    }

    /// The stages of a trial, the last of which is scored.
    fn stages(&self, actions: ActionSource) -> Vec<StageName> {
        match (self.stage, actions) {
            (StageName::FirstPass, ActionSource::Reviser) => vec![self.stage, StageName::Policy],
            _ => vec![self.stage],
        }
    }

    fn folder(&self, number: u64) -> PathBuf {
        self.options.run.out.join(format!("{}-{number:02}", self.stage.name()))
    }

    /// The best reviser and, where a generator gives them, the actions, which are made once and
    /// beside it, are copied to a trial of the first pass.
    fn share(
        &self,
        reviser: &Path,
        trial: &Path,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<()> {
        let preset = (self.open)(&self.settings)?;
        let mut files = vec!["reviser.safetensors"];
        if preset.actions == ActionSource::Generator {
            let stages = Some(vec![StageName::Generator, StageName::Actions]);
            let run = self.options.run.clone();
            let options = RunOptions { out: reviser.to_owned(), stages, ..run };
            train(&preset, &options, on_event)?;
            files.push("actions.tsv");
        }
        std::fs::create_dir_all(trial).map_err(|error| Error::io(trial, error))?;
        for file in files {
            let to = trial.join(file);
            if !to.exists() {
                std::fs::copy(reviser.join(file), &to).map_err(|error| Error::io(&to, error))?;
            }
        }
        Ok(())
    }

    fn trial(&self, trial: &CompletedTrial<f64>) -> Trial {
        let setting = |dimension: &&Dimension| match trial.params.get(&dimension.parameter.id()) {
            Some(ParamValue::Categorical(choice)) => {
                Some(format!("{}={}", dimension.key, dimension.values.get(*choice)?))
            }
            _ => None,
        };
        Trial {
            stage: self.stage,
            number: trial.id + 1,
            settings: self.space.iter().filter_map(setting).collect(),
            score: (trial.state == TrialState::Complete).then_some(trial.value),
            epochs: trial.intermediate_values.len(),
        }
    }
}
