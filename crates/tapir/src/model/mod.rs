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
pub(crate) use input::{Given, Input};
pub(crate) use memory::Memory;
pub(crate) use policy::Policy;
pub(crate) use processor::Processor;
pub(crate) use reviser::{FIRST, Reviser};
pub(crate) use scratch::{Scratch, Streams, with as with_scratch};

use crate::decode::{Decoder, Search};
use crate::pieces::Splitter;
use crate::tensors::Tensors;
use crate::word::Words;
use crate::{
    Affixes, BertConfig, Config, Error, Labels, Mode, Parts, Result, Session, SessionOptions,
    Vocabulary, WordPieces,
};

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

/// What the reviser says of a whole input: [`Model::revise_whole`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revised {
    /// The label of each word, by id.
    pub labels: Vec<u16>,
    /// The intent, by its id in [`Model::intents`], if the model knows any.
    pub intent: Option<u16>,
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
        let Parts { config, labels, intents, vocabulary, pieces, weights } = &parts;
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
        let (claimed, given) = (config.bert().map(|bert| bert.pieces), pieces.as_ref());
        if claimed != given.map(WordPieces::len) {
            let reason = match (claimed, given) {
                (Some(claimed), Some(pieces)) => format!(
                    "{} pieces, but `reviser.bert.pieces` of config.json is {claimed}; do both \
                     files belong to the same model?",
                    pieces.len()
                ),
                (Some(_), None) => "the reviser reads word pieces, but none were given".to_owned(),
                (None, _) => "word pieces were given, but no reviser reads them".to_owned(),
            };
            return Err(Error::invalid("pieces.txt", reason));
        }
        let listed = intents.as_ref().map_or(0, Labels::len);
        if config.intents != listed {
            let reason = format!(
                "{listed} intents, but `intents` of config.json is {}; do both files belong to the \
                 same model?",
                config.intents
            );
            return Err(Error::invalid("intents.txt", reason));
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
            .map(|sizes| Reviser::load(&tensors, config, sizes, vocabulary, given, labels.len()));
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

    /// The intents that an utterance may have, if the model labels utterances, too.
    pub fn intents(&self) -> Option<&Labels> {
        self.0.parts.intents.as_ref()
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

    /// The reviser on a whole input: the label of every word and the intent, as after the last word
    /// of a session that revises at each. What validation and full-sentence use need, at one run
    /// instead of one per word; where the input is longer than the reviser takes, at one per word,
    /// for its first words then have the labels of earlier revisions.
    pub fn revise_whole<W: AsRef<str>>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<Revised> {
        let missing = || Error::MissingPart { mode: Mode::Restart, part: "reviser" };
        let reviser = self.reviser().ok_or_else(missing)?;
        let words: Vec<W> = words.into_iter().collect();
        let mut given = Words::default();
        words.iter().for_each(|word| given.push(word.as_ref(), 1.0, self));
        if given.is_empty() {
            return Ok(Revised::default());
        }
        let (delay, limit) = (self.config().delay, self.config().max_length);
        let mut labels = vec![0; given.len()];
        (0..delay).for_each(|_| given.push_row(Vocabulary::NULL, self));
        let input: Vec<u32> = match self.config().bert() {
            None => given.rows(self.word_width()).collect(),
            Some(_) => given.pieces().collect(),
        };
        let room = self.config().bert().map_or(usize::MAX, BertConfig::room);
        if given.len() > limit || input.len() > room {
            return self.revise_word_by_word(&words);
        }
        let width = self.labels().len();
        Ok(with_scratch(|scratch| {
            reviser.run(&input, &[input.len()], scratch);
            let logits = &scratch.logits[delay * width..given.len() * width];
            self.decoder().sequence(None, logits, &mut Search::default(), &mut labels);
            let known = self.config().intents;
            let intent = self.intents().map(|intents| intents.best(&scratch.intents[..known]));
            Revised { labels, intent }
        }))
    }

    /// The same, a word at a time.
    fn revise_word_by_word(&self, words: &[impl AsRef<str>]) -> Result<Revised> {
        let options = SessionOptions::new().mode(Mode::Restart).undo(words.len());
        let mut session = self.session_with(options)?;
        session.update(words)?;
        session.finish()?;
        let intent = session.intent().map(|intent| intent.label);
        let intent = intent.zip(self.intents()).and_then(|(label, intents)| intents.id(&label));
        Ok(Revised { labels: session.label_ids().to_vec(), intent })
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

    /// How many values the passes read of a word: its row, and how it is written if one reads that.
    pub(crate) fn word_width(&self) -> usize {
        word_width(self.config())
    }

    /// How words are cut into pieces, if the reviser reads pieces.
    pub(crate) fn splitter(&self) -> Option<Splitter<'_>> {
        let Parts { config, pieces, .. } = self.parts();
        let (bert, pieces) = config.bert().zip(pieces.as_ref())?;
        let most = bert.most_of_a_word(config.delay);
        Some(Splitter { pieces, rules: &bert.rules, most })
    }

    pub(crate) fn reviser(&self) -> Option<&Reviser> {
        self.0.reviser.as_ref()
    }
}

/// See [`Model::word_width`].
fn word_width(config: &Config) -> usize {
    1 + if config.reads_affixes() { Affixes::COUNT } else { 0 }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("config", self.config()).finish_non_exhaustive()
    }
}
