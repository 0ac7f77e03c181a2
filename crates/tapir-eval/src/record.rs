//! One incremental run over every sentence: each output buffer, action and policy value. All
//! metrics derive from it.

use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::batch::{self, Work};
use tapir::{Action, Mode, Model, Session, SessionOptions, Vocabulary};

use crate::{Dataset, Error, GoldSentence, Outputs, Result};

/// How a model was run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Which passes.
    pub mode: Mode,
    /// The threshold τ of the policy.
    pub threshold: f32,
    /// The model's look-ahead, in words.
    pub delay: usize,
}

impl Setting {
    /// The model's own mode and threshold.
    pub fn of(model: &Model) -> Self {
        let config = model.config();
        Self { mode: model.default_mode(), threshold: config.threshold, delay: config.delay }
    }

    /// With another threshold.
    #[must_use]
    pub fn threshold(mut self, threshold: f32) -> Self {
        self.threshold = threshold.clamp(0.0, 1.0);
        self
    }

    /// With other passes.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The options of a session that runs so. Nothing is taken back here, so that nothing needs to
    /// be kept for it.
    pub(crate) fn options(self) -> SessionOptions {
        SessionOptions::new().undo(0).threshold(self.threshold).mode(self.mode)
    }

    pub(crate) fn session(self, model: &Model) -> Result<Session> {
        Ok(model.session_with(self.options())?)
    }
}

/// What the model did with one sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentenceRun {
    /// The output buffer after each step. With a delay d, the first is that of step d + 1, when the
    /// first word gets its label.
    pub outputs: Outputs,
    /// What was done at each step, the delay's included.
    pub actions: Vec<Action>,
    /// The policy value of each step; none where no policy was asked.
    pub policy: Vec<Option<f32>>,
    /// What the first pass said of the newest word at each step that then revised; what became of
    /// it is in the output. None at other steps, within the delay, and without a first pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provisional: Vec<Option<u16>>,
    /// The intent after each step, by id; empty where the model knows none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<u16>,
    /// How long each step took, in nanoseconds; empty where it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nanos: Vec<u64>,
}

/// What the model did with every sentence of a [`Dataset`], in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// How it was run.
    pub setting: Setting,
    /// A run for each sentence.
    pub runs: Vec<SentenceRun>,
}

impl Record {
    /// Runs a model over a dataset on all cores; `progress` is called after each sentence.
    ///
    /// As in the paper (§6), no revision is forced at the end: the policy's last word stands.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// use tapir_eval::{Dataset, Record, Setting};
    /// let sentence = tapir_data::Sentence::new(["play", "jazz"], ["O", "B-genre"]);
    /// let dataset = Dataset::of(&model, &[sentence])?;
    /// let record = Record::make(&model, &dataset, Setting::of(&model), || ())?;
    /// assert_eq!(record.runs[0].outputs.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn make(
        model: &Model,
        dataset: &Dataset,
        setting: Setting,
        progress: impl Fn() + Sync,
    ) -> Result<Self> {
        let setting = Setting { delay: model.config().delay, ..setting };
        let runs = dataset.examples.par_iter().enumerate().map_init(
            || None,
            |session: &mut Option<Session>, (i, example)| {
                let session = match session {
                    Some(session) => session,
                    None => session.insert(setting.session(model)?),
                };
                session.reset();
                let run = SentenceRun::make(session, example).map_err(|error| numbered(error, i));
                progress();
                run
            },
        );
        Ok(Self { setting, runs: runs.collect::<Result<_>>()? })
    }
}

impl SentenceRun {
    /// Reads one sentence word by word in a fresh session.
    pub(crate) fn make(session: &mut Session, example: &GoldSentence) -> Result<Self> {
        let delay = session.model().config().delay;
        let steps = if example.words.is_empty() { 0 } else { example.words.len() + delay };
        let mut run = Self {
            outputs: Outputs::default(),
            actions: Vec::with_capacity(steps),
            policy: Vec::with_capacity(steps),
            provisional: Vec::with_capacity(steps),
            intents: Vec::new(),
            nanos: Vec::with_capacity(steps),
        };
        for step in 0..steps {
            let start = Instant::now();
            // A delayed model is flushed by NULL tokens; `finish` would do so in one go, and hide
            // the steps between.
            match example.words.get(step) {
                Some(word) => session.begin_push(word)?,
                None => session.begin_push_id(Vocabulary::NULL)?,
            }
            batch::read(&mut [session])?;
            let mut provisional = None;
            if session.work() == Some(Work::Revision) {
                // The two passes are run apart because a revision overwrites what the first wrote.
                provisional = session.label_ids().get(run.outputs.len()).copied();
                batch::revise(&mut [session])?;
            }
            let update = session.take_update()?;
            run.nanos.push(start.elapsed().as_nanos() as u64);
            run.actions.push(update.action.unwrap_or(Action::Write));
            run.policy.push(update.policy);
            run.provisional.push(provisional);
            run.intents.extend(session.intent_id());
            if step >= delay {
                run.outputs.push(session.label_ids())?;
            }
        }
        Ok(run)
    }

    /// How often it revised.
    pub fn revisions(&self) -> usize {
        self.actions.iter().filter(|action| **action == Action::Revise).count()
    }
}

/// Names the sentence at fault, counted from 1.
pub(crate) fn numbered(error: Error, index: usize) -> Error {
    match error {
        Error::Model(cause) => Error::Sentence { sentence: index + 1, cause },
        other => other,
    }
}
