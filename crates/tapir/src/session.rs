//! A session: words in, labels out, one word at a time; every word can be taken back.
//!
//! What it remembers of its words is its [`History`]; how a word is read and labels are revised is
//! [`batch`](crate::batch), Algorithm 1 of the paper. Here is what is between them and a user:
//! words that are given and not yet read, the end of an utterance, and what has changed since the
//! user was last told.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::batch::{self, Work};
use crate::heard::check_heard;
use crate::history::{History, Mark, Step};
use crate::session_options::{check_settled_by, check_threshold};
use crate::settled::Settling;
use crate::word::Words;
use crate::{
    Action, Edit, Error, FinalPass, Label, Mode, Model, Result, SessionOptions, Span, Update,
    Vocabulary,
};

/// Longer words than this are refused: no tokeniser gives them, and a broken one should not cost
/// memory.
pub const LONGEST_WORD: usize = 4096;

/// What [`Session::finish`] gives: the labels, and what changed at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// The word, from 0, at which `labels` begin: 0 unless the session was longer than its window
    /// and undo, and has forgotten its first words. Replaying all updates gives their labels, too.
    pub first: usize,
    /// The final labels of all words from `first` on.
    pub labels: Vec<Label>,
    /// The labelled stretches of these words, positions counted from the session's start.
    pub spans: Vec<Span>,
    /// The last edits, so that replaying all updates still gives the labels.
    pub update: Update,
}

/// A stream of words and their labels so far. See the crate's page for an example.
///
/// A session is `Send`; sessions share their model and nothing else. Its memory is bounded by its
/// window and undo.
///
/// [`push`](Self::push), [`update`](Self::update), [`revoke`](Self::revoke) and
/// [`finish`](Self::finish) compute and answer. Servers that compute many sessions at once use the
/// three parts of them: `begin_push` and its siblings give words and compute nothing,
/// [`batch`](crate::batch) computes, [`take_update`](Self::take_update) answers.
pub struct Session {
    model: Model,
    mode: Mode,
    threshold: f32,
    final_pass: FinalPass,
    history: History,
    /// Reviser outputs by input, where they are kept: logits of the words, then of the intent.
    kept: Option<HashMap<Vec<u32>, Vec<f32>>>,
    /// Words that were given and not yet read.
    unread: Words,
    progress: Progress,
    /// Where it stood before the batch that computes it now.
    mark: (Mark, Progress),
    /// The labels that the user knows of: those of the last update taken.
    told: Vec<u16>,
    /// The intent that the user knows of.
    told_intent: Option<u16>,
    /// What the user knows to be settled, where that is asked for.
    settling: Option<Settling>,
    /// Words that are given, while they are looked up.
    given: Words,
}

/// How far a session is with what it was given.
#[derive(Clone, Copy, Default)]
struct Progress {
    phase: Phase,
    /// A revision is wanted, by the policy or at the end, and comes before the next word.
    revision_due: bool,
    /// The last step since words were last given.
    last: Option<Step>,
}

/// The life of an utterance.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// Takes words.
    #[default]
    Open,
    /// Has ended; when the last word is read, the last revision is due.
    Closing,
    /// Has ended, and knows all that is to be computed.
    Finished,
}

impl Session {
    /// A session that runs as the options say, which the model must be able to.
    pub(crate) fn new(model: Model, options: SessionOptions) -> Self {
        let config = model.config();
        Self {
            mode: options.mode.unwrap_or_else(|| model.default_mode()),
            threshold: options.threshold.unwrap_or(config.threshold),
            final_pass: options.final_pass.unwrap_or(config.final_pass),
            history: History::new(
                &model,
                options.window.unwrap_or(config.max_length),
                options.undo,
            ),
            kept: options.keep_revisions.then(HashMap::new),
            unread: Words::default(),
            progress: Progress::default(),
            mark: Default::default(),
            told: Vec::new(),
            told_intent: None,
            settling: options.settled.map(Settling::new),
            given: Words::default(),
            model,
        }
    }

    /// Changes the policy's threshold τ from the next word on: 0 revises at every word, 1 never
    /// does.
    pub fn set_threshold(&mut self, threshold: f32) -> Result<()> {
        check_threshold(threshold)?;
        self.threshold = threshold;
        Ok(())
    }

    /// From the next answer on, says what is settled, as [`SessionOptions::settled`] does; what was
    /// said before still holds.
    pub fn set_settled(&mut self, probability: f32) -> Result<()> {
        check_settled_by(&self.model, probability)?;
        match &mut self.settling {
            Some(settling) => settling.set(probability),
            None => self.settling = Some(Settling::new(probability)),
        }
        Ok(())
    }

    /// The model that the session runs.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Reads one word and says what changed.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let mut session = model.session();
    /// let update = session.push("play")?;
    /// assert_eq!((update.step, update.edits.len()), (1, 1));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn push(&mut self, word: &str) -> Result<Update> {
        self.begin_push(word)?;
        Ok(self.run())
    }

    /// Reads one word by its row in the model's [`Vocabulary`]. A row without a text is a word of
    /// its own: no hypothesis shares it, and its word piece is the unknown one.
    pub fn push_id(&mut self, id: u32) -> Result<Update> {
        self.begin_push_id(id)?;
        Ok(self.run())
    }

    /// Gives the session a word without reading it: [`batch::read`] does that.
    ///
    /// While there is [`work`](Self::work) left this is [`Error::Busy`], and changes nothing.
    pub fn begin_push(&mut self, word: &str) -> Result<()> {
        self.begin_read([word])
    }

    /// Gives the session a word by its row, as [`push_id`](Self::push_id) does, without reading it.
    ///
    /// While there is [`work`](Self::work) left this is [`Error::Busy`], and changes nothing.
    pub fn begin_push_id(&mut self, id: u32) -> Result<()> {
        let ids = self.model.vocabulary().ids();
        if id as usize >= ids {
            return Err(Error::UnknownId { id, ids });
        }
        self.begin()?;
        self.unread.push_row(id, &self.model);
        Ok(())
    }

    /// Gives the session words that follow those it has, none or many, without reading them. A word
    /// that it cannot take is an error, and then it takes none of them.
    ///
    /// While there is [`work`](Self::work) left this is [`Error::Busy`], and changes nothing.
    pub fn begin_read<W: AsRef<str>>(&mut self, words: impl IntoIterator<Item = W>) -> Result<()> {
        self.begin_read_with(words.into_iter().map(|word| (word, 1.0)))
    }

    /// Takes a recogniser's whole new hypothesis: the words that it shares with the last one stay,
    /// the rest is taken back and read anew. The result is that of a fresh session on the same
    /// words.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let mut session = model.session();
    /// session.update(["play", "some"])?;
    /// session.update(["play", "something", "slow"])?;
    /// assert_eq!(session.words(), 3);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn update<W: AsRef<str>>(&mut self, words: impl IntoIterator<Item = W>) -> Result<Update> {
        self.begin_update(words)?;
        Ok(self.run())
    }

    /// Takes back what a new hypothesis no longer has, and gives the session the rest without
    /// reading it: [`batch::read`] does that.
    ///
    /// While there is [`work`](Self::work) left this is [`Error::Busy`], and changes nothing.
    pub fn begin_update<W: AsRef<str>>(
        &mut self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<()> {
        self.begin_update_with(words.into_iter().map(|word| (word, 1.0)))
    }

    /// Looks words up and gives them to `take`; none if there is one that it cannot take.
    pub(crate) fn with_words<W: AsRef<str>>(
        &mut self,
        words: impl IntoIterator<Item = (W, f32)>,
        take: impl FnOnce(&mut Self, &Words) -> Result<()>,
    ) -> Result<()> {
        let mut given = std::mem::take(&mut self.given);
        given.clear();
        let result = words.into_iter().try_for_each(|(word, heard)| {
            let word = word.as_ref();
            check_heard(heard)?;
            match word.len() {
                0 => return Err(Error::EmptyWord),
                1..=LONGEST_WORD => given.push(word, heard, &self.model),
                bytes => return Err(Error::LongWord { bytes, limit: LONGEST_WORD }),
            }
            Ok(())
        });
        let result = result.and_then(|()| take(self, &given));
        self.given = given;
        result
    }

    pub(crate) fn begin_following(&mut self, words: &Words) -> Result<()> {
        self.begin()?;
        self.unread.extend(words, 0);
        Ok(())
    }

    pub(crate) fn begin_hypothesis(&mut self, words: &Words) -> Result<()> {
        self.ready()?;
        let shared = self.history.shared(words);
        let taken_back = self.words() - shared;
        let restart = taken_back > self.undoable();
        if restart && self.committed() > 0 {
            return Err(Error::Committed { word: shared, committed: self.committed() });
        }
        self.begin()?;
        let keep = if restart {
            self.history.clear();
            self.unsettle(shared.saturating_sub(self.delay()));
            0
        } else {
            self.take_back(taken_back);
            self.history.hear_again(words);
            shared
        };
        self.unread.extend(words, keep);
        Ok(())
    }

    /// Takes back the last `words` words, exactly: the session is, to the bit, as if they had never
    /// been read.
    ///
    /// More than [`undoable`](Self::undoable) is an error that changes nothing.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let mut session = model.session();
    /// session.push("play")?;
    /// session.push("sum")?;
    /// session.revoke(1)?;
    /// session.push("some")?;
    /// assert!(session.revoke(3).is_err());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn revoke(&mut self, words: usize) -> Result<Update> {
        self.begin_revoke(words)?;
        Ok(self.run())
    }

    /// Takes back words, after which nothing is left to compute; what changed is in the next
    /// [`take_update`](Self::take_update).
    ///
    /// While there is [`work`](Self::work) left this is [`Error::Busy`], and changes nothing.
    pub fn begin_revoke(&mut self, words: usize) -> Result<()> {
        self.ready()?;
        if words > self.undoable() {
            return Err(Error::Undo { asked: words, available: self.undoable() });
        }
        self.begin()?;
        self.take_back(words);
        Ok(())
    }

    /// Ends the utterance: flushes the delay, then revises a last time unless [`FinalPass::Policy`]
    /// was asked for, or is what the model's configuration says.
    ///
    /// Afterwards only [`reset`](Self::reset) and questions are possible.
    pub fn finish(&mut self) -> Result<Finish> {
        self.begin_finish()?;
        self.compute();
        // Before the update, after which old rows may be forgotten.
        let (first, labels, spans) = (self.first(), self.labels(), self.spans());
        Ok(Finish { first, labels, spans, update: self.run() })
    }

    /// Ends the utterance without computing what is left: [`batch::read`] and [`batch::revise`] do
    /// that.
    ///
    /// While there is [`work`](Self::work) left this is [`Error::Busy`], and changes nothing.
    pub fn begin_finish(&mut self) -> Result<()> {
        self.begin()?;
        self.progress.phase = Phase::Finished;
        if self.words() > 0 {
            if self.final_pass == FinalPass::Revise && self.mode == Mode::TwoPass {
                self.progress.phase = Phase::Closing;
            }
            for _ in 0..self.delay() {
                self.unread.push_row(Vocabulary::NULL, &self.model);
            }
            self.close();
        }
        Ok(())
    }

    /// What is left to compute before the session is up to date with the words it was given.
    pub fn work(&self) -> Option<Work> {
        if self.progress.revision_due {
            return Some(Work::Revision);
        }
        (!self.unread.is_empty()).then_some(Work::Word)
    }

    /// Words that were given and not yet read.
    pub fn unread(&self) -> usize {
        self.unread.len()
    }

    /// How many words, or word pieces, a revision would read now: what it costs.
    pub fn revision_size(&self) -> usize {
        self.history.revision_size()
    }

    /// What has changed since an update was last taken. The session counts it as told, and forgets
    /// what it need not hold any more.
    ///
    /// While there is [`work`](Self::work) left this is [`Error::Busy`], and changes nothing.
    pub fn take_update(&mut self) -> Result<Update> {
        self.computed()?;
        Ok(self.run())
    }

    /// The first pass's answer while the revision that was asked for is not made: what has changed
    /// since an update was last taken, with a policy value and no action. The session counts it as
    /// told; what the revision changes is in the next update. None if no revision is due.
    ///
    /// ```
    /// use tapir::{SessionOptions, batch};
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let mut session = model.session_with(SessionOptions::new().threshold(0.0))?;
    /// session.begin_push("play")?;
    /// assert!(session.take_provisional().is_none());
    /// batch::read(&mut [&mut session])?;
    /// let provisional = session.take_provisional().expect("a revision is due");
    /// batch::revise(&mut [&mut session])?;
    /// let update = session.take_update()?;
    /// assert!(provisional.action.is_none() && update.revised());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn take_provisional(&mut self) -> Option<Update> {
        (self.work() == Some(Work::Revision)).then(|| {
            let update = self.changes();
            self.count_as_told();
            update
        })
    }

    /// Starts anew with the same options, whatever was left to compute, keeping its memory for
    /// reuse.
    pub fn reset(&mut self) {
        self.history.clear();
        self.unread.clear();
        self.progress = Progress::default();
        self.told.clear();
        self.told_intent = None;
        if let Some(settling) = &mut self.settling {
            settling.clear();
        }
    }

    /// Words read so far (NULL tokens of a finished, delayed session included).
    pub fn words(&self) -> usize {
        self.history.len()
    }

    /// How many words can be taken back now.
    pub fn undoable(&self) -> usize {
        self.history.undoable()
    }

    /// How many labels, from the start, will never be edited again: none while the session is
    /// shorter than its window and undo, all of them when it is finished.
    pub fn committed(&self) -> usize {
        if self.is_final() {
            return self.first() + self.label_ids().len();
        }
        self.history.committed()
    }

    /// Can a label still change? Not at the end, and not where nothing is ever revised.
    pub(crate) fn may_change(&self) -> bool {
        let never = self.threshold >= 1.0 && self.final_pass == FinalPass::Policy;
        let revises = match self.mode {
            Mode::FirstPass => false,
            Mode::TwoPass => !never,
            Mode::Restart => true,
        };
        revises && !self.is_final()
    }

    /// The intent that the user knows of.
    pub(crate) fn told_intent(&self) -> Option<u16> {
        self.told_intent
    }

    /// Has it ended, with nothing left to compute?
    pub(crate) fn is_final(&self) -> bool {
        self.progress.phase == Phase::Finished && self.work().is_none()
    }

    /// The first word whose label is still held: 0 until a session is longer than its window and
    /// undo.
    pub fn first(&self) -> usize {
        self.history.first()
    }

    /// The labels of the words from [`first`](Self::first) on.
    pub fn labels(&self) -> Vec<Label> {
        self.label_ids().iter().map(|id| self.model.labels().get(*id).clone()).collect()
    }

    /// The same, as ids.
    pub fn label_ids(&self) -> &[u16] {
        self.history.labels()
    }

    /// The model's probability for each of these labels.
    pub fn probabilities(&self) -> Vec<f32> {
        let labels = self.label_ids().iter().enumerate();
        labels.map(|(i, label)| self.probability(self.first() + i, *label)).collect()
    }

    /// The probability of every label for one word, by label id; none if the word has no label or
    /// is forgotten.
    pub fn distribution(&self, position: usize) -> Option<Vec<f32>> {
        let logits = self.step_logits(position + self.delay())?;
        Some(self.model.labels().distribution(logits))
    }

    /// The logits that step `step` (from 0) put out, by label id: with a delay d, those of word
    /// `step - d`. None if there is no such step, or if it is forgotten.
    pub fn step_logits(&self, step: usize) -> Option<&[f32]> {
        self.history.logits(step)
    }

    /// The labelled stretches of the words from [`first`](Self::first) on, positions counted from
    /// the session's start.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = crate::spans(&self.labels(), self.model.config().scheme);
        for span in &mut spans {
            span.start += self.first();
            span.end += self.first();
        }
        spans
    }

    /// What was chosen at each step still held, oldest first.
    pub fn actions(&self) -> Vec<Action> {
        self.history.steps().iter().map(|step| step.action()).collect()
    }

    /// Bytes that the session holds, its model and the thread's working memory not included.
    pub fn bytes(&self) -> usize {
        let words = self.given.bytes() + self.unread.bytes();
        let lists = self.told.capacity() * size_of::<u16>() + words;
        let kept = self.kept.iter().flatten();
        let kept = kept.map(|(input, logits)| size_of_val(&input[..]) + size_of_val(&logits[..]));
        size_of::<Self>() + self.history.bytes() + lists + kept.sum::<usize>()
    }

    fn delay(&self) -> usize {
        self.model.config().delay
    }

    fn probability(&self, position: usize, label: u16) -> f32 {
        // The logits of a word are there as long as its label.
        let logits = self.step_logits(position + self.delay()).unwrap_or_default();
        self.model.labels().probability(logits, label)
    }

    /// Is everything computed that was given?
    fn computed(&self) -> Result<()> {
        self.work().map_or(Ok(()), |work| Err(Error::Busy { work }))
    }

    /// Can something be given?
    fn ready(&self) -> Result<()> {
        if self.progress.phase == Phase::Open { self.computed() } else { Err(Error::Finished) }
    }

    /// Before something is given.
    fn begin(&mut self) -> Result<()> {
        self.ready()?;
        self.progress.last = None;
        Ok(())
    }

    /// Computes what is left, and says what changed.
    pub(crate) fn run(&mut self) -> Update {
        self.compute();
        let update = self.changes();
        let first = self.first();
        self.history.forget();
        self.count_as_told();
        if let Some(settling) = &mut self.settling {
            settling.forget(self.history.first() - first);
        }
        update
    }

    /// Computes what is left.
    pub(crate) fn compute(&mut self) {
        while let Some(work) = self.work() {
            batch::run(&mut [self], work);
        }
    }

    fn count_as_told(&mut self) {
        self.told.clear();
        self.told.extend_from_slice(self.history.labels());
        self.told_intent = self.intent_id();
    }

    /// What has changed since the user was last told.
    fn changes(&mut self) -> Update {
        // Not while a revision is due, which may change what would settle.
        let mut settling = self.settling.take();
        let asked = settling.as_mut().filter(|_| !self.progress.revision_due);
        let settled = asked.map(|settling| settling.settle(self)).filter(|it| !it.is_empty());
        self.settling = settling;
        let (first, labels) = (self.first(), self.label_ids());
        let name = |id: &u16| self.model.labels().get(*id).clone();
        let changed =
            labels.iter().enumerate().filter(|(i, label)| self.told.get(*i) != Some(label));
        let mut edits = SmallVec::with_capacity(changed.clone().count());
        edits.extend(changed.map(|(i, label)| {
            let (position, old) = (first + i, self.told.get(i).map(name));
            Edit {
                position,
                label: name(label),
                old,
                probability: self.probability(position, *label),
                stability: self.stability(position),
            }
        }));
        let Progress { revision_due, last, .. } = self.progress;
        Update {
            step: self.words(),
            action: last.filter(|_| !revision_due).map(Step::action),
            policy: last.and_then(|step| step.policy),
            edits,
            length: first + labels.len(),
            committed: self.committed(),
            intent: self.intent(),
            settled,
        }
    }

    fn take_back(&mut self, words: usize) {
        if self.history.take_back(words) {
            batch::remember(self);
        }
        self.unsettle(self.history.labels().len());
    }

    /// What was said of words that are gone does not hold for those that take their place: only the
    /// first labels that are held stay settled.
    fn unsettle(&mut self, labels: usize) {
        if let Some(settling) = &mut self.settling {
            settling.unsettle(labels);
        }
    }

    /// At the end of the utterance, when all words are read: asks for the last revision unless the
    /// last step was one.
    fn close(&mut self) {
        if self.progress.phase == Phase::Closing && self.work().is_none() {
            self.progress.phase = Phase::Finished;
            if self.history.steps().last().is_none_or(|step| !step.revised) {
                self.progress.revision_due = true;
                self.progress.last = Some(Step { revised: true, policy: None });
            }
        }
    }
}

/// What a batch does with a session.
impl Session {
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    /// What the policy chooses for a value.
    pub(crate) fn decide(&self, policy: f32) -> Step {
        Step {
            revised: Action::decide(policy, self.threshold) == Action::Revise,
            policy: Some(policy),
        }
    }

    pub(crate) fn revision_due(&self) -> bool {
        self.progress.revision_due
    }

    /// Before a batch.
    pub(crate) fn set_mark(&mut self) {
        // Here, and not after a step: a mark must not outlive what it refers to.
        self.history.forget_states();
        self.mark = (self.history.mark(), self.progress);
    }

    /// After a batch that panicked: as before it. Computes nothing.
    pub(crate) fn roll_back(&mut self) {
        let (mark, progress) = self.mark;
        self.history.roll_back(mark, &mut self.unread);
        self.progress = progress;
    }

    /// Begins a step with the next unread word, which there must be, and gives its row.
    pub(crate) fn begin_step(&mut self) {
        let (word, pieces) = self.unread.pop_front().expect("a session with a word to read");
        self.history.push_word(word, pieces);
    }

    /// After the first pass of a step, whose logits are in the history.
    pub(crate) fn end_step(&mut self, step: Step) {
        if self.mode != Mode::Restart {
            self.history.label_last(self.model.decoder());
        }
        self.history.push_step(step);
        self.progress.revision_due = step.revised;
        self.progress.last = Some(step);
        self.close();
    }

    /// What the reviser gave for the same input before, where that is kept.
    pub(crate) fn has_kept_revision(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.contains_key(self.history.reviser_input()))
    }

    /// Takes the reviser's logits for its input, and those of the intent; without them, those kept
    /// from before.
    pub(crate) fn revise(&mut self, fresh: Option<(&[f32], &[f32])>) {
        let Self { model, history, kept, .. } = self;
        if let (Some(kept), Some((logits, intent))) = (&mut *kept, fresh) {
            kept.insert(history.reviser_input().to_vec(), [logits, intent].concat());
        }
        let known = kept.as_ref().and_then(|kept| kept.get(history.reviser_input()));
        let known = known.map(|kept| kept.split_at(kept.len() - model.config().intent_outputs()));
        if let Some((logits, intent)) = fresh.or(known) {
            history.revise(logits, intent, model.decoder());
        }
    }

    /// After a revision, when the memory is written.
    pub(crate) fn end_revision(&mut self) {
        self.progress.revision_due = false;
        self.close();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("mode", &self.mode)
            .field("words", &self.words())
            .field("labels", &self.labels())
            .finish_non_exhaustive()
    }
}
