//! A model: the four components of §3, loaded and packed.

mod affine;
mod controller;
mod input;
mod memory;
mod policy;
mod processor;
mod reviser;
mod scratch;

use std::sync::Arc;

pub(crate) use affine::Affine;
pub(crate) use controller::{Controller, Recall};
pub(crate) use input::Input;
pub(crate) use memory::Memory;
pub(crate) use policy::Policy;
pub(crate) use processor::Processor;
pub(crate) use reviser::Reviser;
pub(crate) use scratch::{Scratch, Streams, with as with_scratch};

use crate::decode::{Decoder, Search};
use crate::tensors::Tensors;
use crate::{Config, Error, Labels, Mode, Parts, Result, Session, SessionOptions, Vocabulary};

/// A loaded model. Cloning shares it; every session of every thread reads the same weights.
///
/// ```
/// # let parts = tapir::doctest::parts();
/// let model = tapir::Model::from_parts(parts)?;
/// let mut session = model.session();
/// for word in "play some jazz".split(' ') {
///     let update = session.push(word)?;
///     println!("{word}: {:?}", update.edits);
/// }
/// # Ok::<(), tapir::Error>(())
/// ```
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    parts: Parts,
    decoder: Decoder,
    first_pass: Option<FirstPass>,
    reviser: Option<Reviser>,
}

/// The incremental processor and, unless the model is monotonic, what decides on revisions.
pub(crate) struct FirstPass {
    pub(crate) processor: Processor,
    pub(crate) revision: Option<Revision>,
}

/// Memory, controller and policy.
pub(crate) struct Revision {
    pub(crate) memory: Memory,
    pub(crate) controller: Controller,
    pub(crate) policy: Policy,
}

impl Model {
    /// Loads a model from its parts.
    pub fn from_parts(parts: Parts) -> Result<Self> {
        let Parts { config, labels, vocabulary, weights } = &parts;
        config.validate("config.json")?;
        if config.vectors.is_some() != vocabulary.vectors().is_some() {
            let reason = match &config.vectors {
                Some(file) => {
                    format!("the vocabulary is open, but its vectors `{file}` were not given")
                }
                None => "vectors were given, but `vectors` does not name them".to_owned(),
            };
            return Err(Error::invalid("config.json", reason));
        }
        if let Some(vectors) = vocabulary.vectors()
            && vectors.dim() != config.embedding_dim
        {
            let reason = format!(
                "`embedding_dim` is {}, but the vectors have {} values",
                config.embedding_dim,
                vectors.dim()
            );
            return Err(Error::invalid("config.json", reason));
        }
        let tensors = Tensors::new(weights.clone(), "model.safetensors")?;
        let first_pass = config.processor.as_ref().map(|sizes| {
            let processor = Processor::load(&tensors, config, sizes, vocabulary, labels.len())?;
            let (h, x) = (processor.hidden(), processor.input_size());
            let revision = config.controller.as_ref().map(|sizes| {
                Ok(Revision {
                    memory: Memory::load(&tensors, sizes, h, labels.len())?,
                    controller: Controller::load(&tensors, sizes, h, x, labels.len())?,
                    policy: Policy::load(&tensors, sizes.hidden)?,
                })
            });
            Ok(FirstPass { processor, revision: revision.transpose()? })
        });
        let reviser = config
            .reviser
            .as_ref()
            .map(|sizes| Reviser::load(&tensors, config, sizes, vocabulary, labels.len()));
        let (first_pass, reviser) = (first_pass.transpose()?, reviser.transpose()?);
        // Now that the file is known to hold all that the configuration lists, however long a list.
        tensors.expect_no_others(&config.tensors(labels.len(), vocabulary.len()))?;
        let decoder = Decoder::new(labels, config.scheme, config.decoding);
        Ok(Self(Arc::new(Inner { parts, decoder, first_pass, reviser })))
    }

    /// The model as its files hold it.
    pub fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Architecture, task, delay and threshold.
    pub fn config(&self) -> &Config {
        &self.0.parts.config
    }

    /// The label set.
    pub fn labels(&self) -> &Labels {
        &self.0.parts.labels
    }

    pub(crate) fn decoder(&self) -> &Decoder {
        &self.0.decoder
    }

    /// The words it knows.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.0.parts.vocabulary
    }

    /// Starts a session with the defaults of [`SessionOptions`].
    pub fn session(&self) -> Session {
        Session::new(self.clone(), SessionOptions::default())
    }

    /// Starts a session that runs as the options say; an error if the model lacks a part that their
    /// mode needs, or if their threshold is none.
    ///
    /// ```
    /// use tapir::{Mode, SessionOptions};
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let mut first_pass = model.session_with(SessionOptions::new().mode(Mode::FirstPass))?;
    /// assert!(!first_pass.push("play")?.revised());
    /// assert!(model.session_with(SessionOptions::new().threshold(2.0)).is_err());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn session_with(&self, options: SessionOptions) -> Result<Session> {
        options.check(self)?;
        Ok(Session::new(self.clone(), options))
    }

    /// The passes that a session runs unless it is told otherwise: both, if the model has all that
    /// takes; the reviser at every word, if it has no first pass; else the first pass.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// assert_eq!(model.default_mode(), tapir::Mode::TwoPass);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn default_mode(&self) -> Mode {
        match (self.first_pass(), self.reviser()) {
            (None, _) => Mode::Restart,
            (Some(first), Some(_)) if first.revision.is_some() => Mode::TwoPass,
            _ => Mode::FirstPass,
        }
    }

    /// The reviser on a whole input, without a session: the label of every word, as after the last
    /// word of a session that revises at each. What validation and full-sentence use need, at one
    /// run instead of one per word.
    pub fn revise_whole<W: AsRef<str>>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<Vec<u16>> {
        let missing = || Error::MissingPart { mode: Mode::Restart, part: "reviser" };
        let reviser = self.reviser().ok_or_else(missing)?;
        let mut ids: Vec<u32> =
            words.into_iter().map(|word| self.vocabulary().id(word.as_ref())).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (delay, limit) = (self.config().delay, self.config().max_length);
        ids.extend(std::iter::repeat_n(Vocabulary::NULL, delay));
        if ids.len() > limit {
            let reason =
                format!("an input of {} words, delay included, is longer than {limit}", ids.len());
            return Err(Error::invalid("input", reason));
        }
        let width = self.labels().len();
        let mut labels = vec![0; ids.len() - delay];
        with_scratch(|scratch| {
            reviser.run(&ids, &[ids.len()], scratch);
            let logits = &scratch.logits[delay * width..ids.len() * width];
            self.decoder().sequence(None, logits, &mut Search::default(), &mut labels);
        });
        Ok(labels)
    }

    /// Bytes of packed weights that every step of the first pass reads, and every run of the
    /// reviser.
    pub fn weight_bytes(&self) -> (usize, usize) {
        let first_pass = self.0.first_pass.as_ref().map_or(0, |first| {
            let revision =
                first.revision.as_ref().map_or(0, |r| r.memory.bytes() + r.controller.bytes());
            first.processor.bytes() + revision
        });
        (first_pass, self.0.reviser.as_ref().map_or(0, Reviser::bytes))
    }

    /// Is it the same model, shared, and not one with the same weights?
    ///
    /// ```
    /// # let model = tapir::doctest::parts().load()?;
    /// assert!(model.is(&model.clone()));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn first_pass(&self) -> Option<&FirstPass> {
        self.0.first_pass.as_ref()
    }

    pub(crate) fn reviser(&self) -> Option<&Reviser> {
        self.0.reviser.as_ref()
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("config", self.config()).finish_non_exhaustive()
    }
}
