//! How a session runs: everything that is chosen before it begins.

use serde::{Deserialize, Serialize};

use crate::{Error, Model, Result};

/// Which passes a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// TAPIR: the first pass at every word, the reviser when the policy says so.
    TwoPass,
    /// The restart-incremental reference: the reviser at every word.
    Restart,
    /// The monotonic first pass alone.
    FirstPass,
}

/// What happens to the labels when a session is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalPass {
    /// The reviser reads the whole window a last time: the quality of a full-sentence model.
    #[default]
    Revise,
    /// The policy's last word stands, as the paper evaluates.
    Policy,
}

/// How a session runs. What is not set is the model's own choice, or as stated.
///
/// ```
/// use tapir::SessionOptions;
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// let options = SessionOptions::new().threshold(0.5).undo(64).window(128);
/// let mut session = model.session_with(options)?;
/// session.push("play")?;
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionOptions {
    pub(crate) mode: Option<Mode>,
    pub(crate) threshold: Option<f32>,
    pub(crate) window: Option<usize>,
    pub(crate) undo: usize,
    pub(crate) final_pass: Option<FinalPass>,
    pub(crate) keep_revisions: bool,
    pub(crate) settled: Option<f32>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            mode: None,
            threshold: None,
            window: None,
            undo: 32,
            final_pass: None,
            keep_revisions: false,
            settled: None,
        }
    }
}

impl SessionOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which passes run. Default: [`Model::default_mode`].
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The policy's threshold τ, from 0, which revises at every word, to 1, which never does.
    /// Default: that of the model's configuration.
    #[must_use]
    pub fn threshold(mut self, threshold: f32) -> Self {
        self.threshold = Some(threshold);
        self
    }

    /// How many words, from the newest back, a revision reads and may edit. Default, and the most:
    /// the model's `max_length`. At least its memory and delay; what is outside is clamped.
    #[must_use]
    pub fn window(mut self, words: usize) -> Self {
        self.window = Some(words);
        self
    }

    /// How many words can be taken back at any time. Default: 32.
    #[must_use]
    pub fn undo(mut self, words: usize) -> Self {
        self.undo = words;
        self
    }

    /// What [`Session::finish`](crate::Session::finish) does after the last word. Default: the
    /// model's own choice, which is [`FinalPass::Revise`] unless its reviser is worse than its first
    /// pass.
    #[must_use]
    pub fn final_pass(mut self, pass: FinalPass) -> Self {
        self.final_pass = Some(pass);
        self
    }

    /// Keeps every output of the reviser, so that reading the same words again, after a reset or
    /// with another threshold, does not compute it twice. Default: nothing is kept. For sweeps over
    /// one sentence: the memory grows with every new input.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let mut session = model.session_with(tapir::SessionOptions::new().keep_revisions())?;
    /// for threshold in [0.0, 0.5, 1.0] {
    ///     session.set_threshold(threshold)?;
    ///     session.reset();
    ///     session.update(["play", "some", "jazz"])?;
    /// }
    /// # Ok::<(), tapir::Error>(())
    /// ```
    #[must_use]
    pub fn keep_revisions(mut self) -> Self {
        self.keep_revisions = true;
        self
    }

    /// Updates say which labels, spans and intent are settled: those that will stay as they are with
    /// at least this probability, such as 0.95. Default: they do not. The model must be
    /// [calibrated](crate::Config::calibration).
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::with_intents(tapir::doctest::parts()))?;
    /// let mut session = model.session_with(tapir::SessionOptions::new().settled(0.95))?;
    /// for word in ["play", "some", "jazz"] {
    ///     for span in session.push(word)?.settled.into_iter().flat_map(|settled| settled.spans) {
    ///         println!("act on {} now", span.label);
    ///     }
    /// }
    /// # Ok::<(), tapir::Error>(())
    /// ```
    #[must_use]
    pub fn settled(mut self, probability: f32) -> Self {
        self.settled = Some(probability);
        self
    }

    /// Can this model run so? [`Model::session_with`] asks the same.
    pub fn check(&self, model: &Model) -> Result<()> {
        let first = model.first_pass();
        let mode = self.mode.unwrap_or_else(|| model.default_mode());
        let missing = match mode {
            Mode::FirstPass | Mode::TwoPass if first.is_none() => Some("processor"),
            Mode::TwoPass if first.is_none_or(|first| first.revision.is_none()) => {
                Some("controller")
            }
            Mode::TwoPass | Mode::Restart if model.reviser().is_none() => Some("reviser"),
            _ => None,
        };
        if let Some(part) = missing {
            return Err(Error::MissingPart { mode, part });
        }
        self.settled.map_or(Ok(()), |probability| check_settled_by(model, probability))?;
        self.threshold.map_or(Ok(()), check_threshold)
    }
}

/// Refuses a threshold that is not one.
pub(crate) fn check_threshold(threshold: f32) -> Result<()> {
    if (0.0..=1.0).contains(&threshold) { Ok(()) } else { Err(Error::Threshold { threshold }) }
}

/// Refuses what is no probability from which on something can count as settled.
pub(crate) fn check_settled(probability: f32) -> Result<()> {
    let fits = probability > 0.0 && probability <= 1.0;
    if fits { Ok(()) } else { Err(Error::Settled { probability }) }
}

/// The same for a model, which must know how likely its answers are to stay.
pub(crate) fn check_settled_by(model: &Model, probability: f32) -> Result<()> {
    check_settled(probability)?;
    model.config().calibration.labels.map_or(Err(Error::NotCalibrated), |_| Ok(()))
}
