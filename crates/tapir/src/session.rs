//! A session: words in, labels out, one word at a time; every word can be taken back.
//!
//! What Algorithm 1 of the paper remembers ([`batch`](crate::batch) is the algorithm) is kept on tapes, one row a step, so
//! that taking words back is cutting tapes. Only a revision changes rows that are already there (the logits); it first notes what it overwrites.
//! All other memory is a function of rows on the tapes and is made again, to the same bits.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::batch::{Work, read_with, remember_with, revise_with};
use crate::model::with_scratch;
use crate::session_options::check_threshold;
use crate::tape::Tape;
use crate::{
    Action, Edit, Error, FinalPass, Label, Mode, Model, Result, SessionOptions, Span, Update, Vocabulary,
};

/// Longer words than this are refused: no tokeniser gives them, and a broken one should not cost memory.
pub const LONGEST_WORD: usize = 4096;

/// What [`Session::finish`] gives: the labels, and what changed at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// The word, from 0, at which `labels` begin: 0 unless the session was longer than its window and
    /// undo, and has forgotten its first words. Replaying all updates gives their labels, too.
    pub first: usize,
    /// The final labels of all words from `first` on.
    pub labels: Vec<Label>,
    /// The last edits, so that replaying all updates still gives the labels.
    pub update: Update,
}

/// A stream of words and their labels so far. See the crate's page for an example.
///
/// A session is `Send`; sessions share their model and nothing else. Its memory is bounded by its window and undo.
pub struct Session {
    pub(crate) model: Model,
    pub(crate) mode: Mode,
    pub(crate) threshold: f32,
    window: usize,
    undo: usize,
    final_pass: FinalPass,
    /// Word ids (the input buffer). Row i is step i + 1.
    pub(crate) tokens: Tape<u32>,
    /// Processor states after each step, [layers, 2, H]; row 0 is the state before any word. Its h's are Γʰ.
    pub(crate) states: Tape<f32>,
    /// Controller states after each step, [layers, 2, C]; row 0 likewise. Its c's are the memory tape C of eq. 6.
    pub(crate) controls: Tape<f32>,
    /// Γᵖ: φ and the keys made from it.
    pub(crate) memory: Tape<f32>,
    /// ỹ of each step, as written or last revised. The output buffer is its softmax.
    pub(crate) logits: Tape<f32>,
    steps: Tape<Step>,
    /// The best label of each word, ids.
    labels: Tape<u16>,
    /// What revisions overwrote, newest last.
    revisions: VecDeque<Overwritten>,
    /// Buffers of forgotten revisions, used again.
    spare: Vec<Vec<f32>>,
    /// Reviser outputs by input, where they are kept.
    kept: Option<HashMap<Vec<u32>, Vec<f32>>>,
    /// Words cannot be taken back beyond this step.
    floor: usize,
    /// Digest of the ids that the token tape has forgotten.
    forgotten: u64,
    finished: bool,
    /// Ids of words that were given and not yet read.
    pub(crate) unread: VecDeque<u32>,
    /// The policy wants a revision that has not been made.
    pub(crate) pending: bool,
    /// After the last unread word comes the last revision.
    closing: bool,
    /// The last step since words were last given.
    last: Option<Step>,
    /// The labels of the last answer.
    before: Vec<u16>,
    /// Ids of a hypothesis, while it is compared.
    hypothesis: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Step {
    pub(crate) revised: bool,
    pub(crate) policy: Option<f32>,
}

impl Step {
    fn action(self) -> Action {
        if self.revised { Action::Revise } else { Action::Write }
    }
}

/// Logits of the steps from `start` on, as they were before the revision at `step`.
struct Overwritten {
    step: usize,
    start: usize,
    logits: Vec<f32>,
}

impl Session {
    /// A session that runs as the options say, which the model must be able to.
    pub(crate) fn new(model: Model, options: SessionOptions) -> Self {
        let first_pass = model.first_pass();
        let revision = first_pass.and_then(|first| first.revision.as_ref());
        let config = model.config();
        let memory = config.controller.as_ref().map_or(0, |controller| controller.memory);
        let window = options.window.unwrap_or(config.max_length);
        let mut session = Self {
            mode: options.mode.unwrap_or_else(|| model.default_mode()),
            threshold: options.threshold.unwrap_or(config.threshold),
            window: window.clamp(memory.max(1) + config.delay, config.max_length),
            undo: options.undo,
            final_pass: options.final_pass,
            tokens: Tape::new(1),
            states: Tape::new(first_pass.map_or(1, |first| first.processor.state_size())),
            controls: Tape::new(revision.map_or(1, |revision| revision.controller.state_size())),
            memory: Tape::new(revision.map_or(1, |revision| revision.controller.memory_size())),
            logits: Tape::new(model.labels().len()),
            steps: Tape::new(1),
            labels: Tape::new(1),
            revisions: VecDeque::new(),
            spare: Vec::new(),
            kept: options.keep_revisions.then(HashMap::new),
            floor: 0,
            forgotten: 0,
            finished: false,
            unread: VecDeque::new(),
            pending: false,
            closing: false,
            last: None,
            before: Vec::new(),
            hypothesis: Vec::new(),
            model,
        };
        session.reset();
        session
    }

    /// Changes the policy's threshold τ from the next word on: 0 revises at every word, 1 never does.
    pub fn set_threshold(&mut self, threshold: f32) -> Result<()> {
        check_threshold(threshold)?;
        self.threshold = threshold;
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

    /// Reads one word by its row in the model's [`Vocabulary`].
    pub fn push_id(&mut self, id: u32) -> Result<Update> {
        self.begin_id(id)?;
        Ok(self.run())
    }

    /// Gives the session a word without reading it: [`batch::read`](crate::batch::read) does that.
    pub fn begin_push(&mut self, word: &str) -> Result<()> {
        self.begin_id(self.id(word)?)
    }

    fn begin_id(&mut self, id: u32) -> Result<()> {
        self.open()?;
        let ids = self.model.vocabulary().ids();
        if id as usize >= ids {
            return Err(Error::UnknownId { id, ids });
        }
        self.begin();
        self.unread.push_back(id);
        Ok(())
    }

    /// Takes a recogniser's whole new hypothesis: the words that it shares with the last one stay, the rest is taken back
    /// and read anew. The result is that of a fresh session on the same words.
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

    /// Takes back what a new hypothesis no longer has, and gives the session the rest without reading it:
    /// [`batch::read`](crate::batch::read) does that.
    pub fn begin_update<W: AsRef<str>>(&mut self, words: impl IntoIterator<Item = W>) -> Result<()> {
        self.open()?;
        let mut ids = std::mem::take(&mut self.hypothesis);
        ids.clear();
        let result = words.into_iter().try_for_each(|word| {
            ids.push(self.id(word.as_ref())?);
            Ok(())
        });
        let result = result.and_then(|()| self.begin_ids(&ids));
        self.hypothesis = ids;
        result
    }

    fn begin_ids(&mut self, ids: &[u32]) -> Result<()> {
        self.complete();
        let shared = self.shared(ids);
        let taken_back = self.tokens.len() - shared;
        let restart = taken_back > self.undoable();
        if restart && self.committed() > 0 {
            return Err(Error::Committed { word: shared, committed: self.committed() });
        }
        self.begin();
        let keep = if restart {
            self.clear();
            0
        } else {
            self.take_back(taken_back);
            shared
        };
        self.unread.extend(&ids[keep..]);
        Ok(())
    }

    /// How many leading words a hypothesis shares with the words read so far.
    fn shared(&self, ids: &[u32]) -> usize {
        let base = self.tokens.base();
        if ids.len() < base || digest(0, &ids[..base]) != self.forgotten {
            return 0;
        }
        let kept = self.tokens.rows(base..self.tokens.len());
        base + kept.iter().zip(&ids[base..]).take_while(|(a, b)| a == b).count()
    }

    /// Takes back the last `words` words, exactly: the session is, to the bit, as if they had never been read.
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
        Ok(self.answer())
    }

    /// Takes back words; what changed is in the next [`answer`](Self::answer).
    pub fn begin_revoke(&mut self, words: usize) -> Result<()> {
        self.open()?;
        self.complete();
        if words > self.undoable() {
            return Err(Error::Undo { asked: words, available: self.undoable() });
        }
        self.begin();
        self.take_back(words);
        Ok(())
    }

    /// Ends the utterance: flushes the delay, then revises a last time unless [`FinalPass::Policy`] was asked for.
    ///
    /// Afterwards only [`reset`](Self::reset) and questions are possible.
    pub fn finish(&mut self) -> Result<Finish> {
        self.begin_finish()?;
        self.complete();
        // Before the answer, after which old rows may be forgotten.
        let (first, labels) = (self.first(), self.labels());
        Ok(Finish { first, labels, update: self.answer() })
    }

    /// Ends the utterance without computing what is left: [`batch::read`](crate::batch::read) and
    /// [`batch::revise`](crate::batch::revise) do that.
    pub fn begin_finish(&mut self) -> Result<()> {
        self.open()?;
        self.begin();
        self.finished = true;
        if self.tokens.len() > 0 {
            self.unread.extend(std::iter::repeat_n(Vocabulary::NULL, self.delay()));
            self.closing = self.final_pass == FinalPass::Revise && self.mode == Mode::TwoPass;
            self.close();
        }
        Ok(())
    }

    /// What is left to compute before the session is up to date with the words it was given.
    pub fn work(&self) -> Option<Work> {
        if self.pending { Some(Work::Revision) } else { (!self.unread.is_empty()).then_some(Work::Word) }
    }

    /// Words that were given and not yet read.
    pub fn unread(&self) -> usize {
        self.unread.len()
    }

    /// How many words a revision would read now: what it costs.
    pub fn revision_size(&self) -> usize {
        self.input().len()
    }

    /// What has changed since the last answer.
    ///
    /// While a revision is waited for, this is the provisional answer of the first pass: it has a policy value and no
    /// action.
    pub fn answer(&mut self) -> Update {
        let base = self.labels.base();
        let name = |id: &u16| self.model.labels().get(*id).clone();
        let labels = self.labels.rows(base..self.labels.len()).iter().enumerate();
        let changed = labels.filter(|(i, label)| self.before.get(*i) != Some(label));
        let mut edits = SmallVec::with_capacity(changed.clone().count());
        edits.extend(changed.map(|(i, label)| {
            let (position, old) = (base + i, self.before.get(i).map(name));
            Edit { position, label: name(label), old, probability: self.probability(position) }
        }));
        let update = Update {
            step: self.tokens.len(),
            action: self.last.filter(|_| !self.pending).map(Step::action),
            policy: self.last.and_then(|step| step.policy),
            edits,
            length: self.labels.len(),
            committed: self.committed(),
        };
        if self.work().is_none() {
            self.trim();
        }
        self.before.clear();
        self.before.extend_from_slice(self.labels.rows(self.labels.base()..self.labels.len()));
        update
    }

    /// Starts anew with the same settings, keeping its memory for reuse.
    pub fn reset(&mut self) {
        self.clear();
        self.before.clear();
        self.finished = false;
    }

    /// Goes back to the state after `words` words, whatever a panic in the middle of a batch left; words that were read
    /// since are unread again. For servers that go on with the other sessions of the batch.
    pub fn recover(&mut self, words: usize) {
        if words >= self.tokens.len() {
            return;
        }
        for id in self.tokens.rows(words..self.tokens.len()).iter().rev() {
            self.unread.push_front(*id);
        }
        self.pending = false;
        self.closing = self.finished && self.final_pass == FinalPass::Revise && self.mode == Mode::TwoPass;
        self.floor = self.floor.min(words);
        // Reading a word only appends to tapes, and a revision notes what it overwrites.
        self.tokens.truncate(words);
        self.logits.truncate(words);
        self.steps.truncate(words);
        self.labels.truncate(words.saturating_sub(self.delay()));
        self.states.truncate(words + 1);
        self.controls.truncate(words + 1);
        self.memory.truncate(words);
    }

    /// Words read so far (NULL tokens of a finished, delayed session included).
    pub fn words(&self) -> usize {
        self.tokens.len()
    }

    /// How many words can be taken back now.
    pub fn undoable(&self) -> usize {
        self.tokens.len() - self.floor
    }

    /// How many labels, from the start, will never be edited again.
    pub fn committed(&self) -> usize {
        self.floor.saturating_sub(self.window)
    }

    /// The first word whose label is still held: 0 until a session is longer than its window and undo.
    pub fn first(&self) -> usize {
        self.labels.base()
    }

    /// The labels of the words from [`first`](Self::first) on.
    pub fn labels(&self) -> Vec<Label> {
        self.label_ids().iter().map(|id| self.model.labels().get(*id).clone()).collect()
    }

    /// The same, as ids.
    pub fn label_ids(&self) -> &[u16] {
        self.labels.rows(self.labels.base()..self.labels.len())
    }

    /// The model's probability for each of these labels.
    pub fn probabilities(&self) -> Vec<f32> {
        (self.first()..self.labels.len()).map(|position| self.probability(position)).collect()
    }

    /// The probability of every label for one word, by label id; none if the word has no label or is forgotten.
    pub fn distribution(&self, position: usize) -> Option<Vec<f32>> {
        Some(self.model.labels().distribution(self.logits(position)?))
    }

    /// The logits of one word, by label id; none if the word has no label or is forgotten.
    pub fn logits(&self, position: usize) -> Option<&[f32]> {
        self.step_logits(position + self.delay())
    }

    /// The logits that step `step` (from 0) put out: with a delay d, those of word `step - d`.
    pub fn step_logits(&self, step: usize) -> Option<&[f32]> {
        (self.logits.base()..self.logits.len()).contains(&step).then(|| self.logits.row(step))
    }

    /// The labelled stretches of the words from [`first`](Self::first) on, positions counted from the session's start.
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
        let steps = self.steps.rows(self.steps.base()..self.steps.len());
        steps.iter().map(|step| step.action()).collect()
    }

    /// Bytes that the session holds, its model and the thread's working memory not included.
    pub fn bytes(&self) -> usize {
        let tapes = [&self.states, &self.controls, &self.memory, &self.logits]
            .iter()
            .map(|t| t.bytes())
            .sum::<usize>();
        let small = self.tokens.bytes() + self.steps.bytes() + self.labels.bytes();
        let old = self
            .revisions
            .iter()
            .map(|r| &r.logits)
            .chain(&self.spare)
            .map(|l| l.capacity() * size_of::<f32>());
        let words = self.hypothesis.capacity() + self.unread.capacity();
        let lists = self.before.capacity() * size_of::<u16>() + words * size_of::<u32>();
        let kept = self.kept.iter().flatten();
        let kept = kept.map(|(ids, logits)| size_of_val(ids.as_slice()) + size_of_val(logits.as_slice()));
        size_of::<Self>() + tapes + small + old.sum::<usize>() + lists + kept.sum::<usize>()
    }

    fn delay(&self) -> usize {
        self.model.config().delay
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.model.config().controller.as_ref().map_or(0, |controller| controller.memory)
    }

    fn open(&self) -> Result<()> {
        if self.finished { Err(Error::Finished) } else { Ok(()) }
    }

    fn id(&self, word: &str) -> Result<u32> {
        match word.len() {
            0 => Err(Error::EmptyWord),
            1..=LONGEST_WORD => Ok(self.model.vocabulary().id(word)),
            bytes => Err(Error::LongWord { bytes, limit: LONGEST_WORD }),
        }
    }

    fn probability(&self, position: usize) -> f32 {
        let logits = self.logits.row(position + self.delay());
        self.model.labels().probability(logits, self.labels.row(position)[0])
    }

    /// Before words are given: whatever was left is computed.
    fn begin(&mut self) {
        self.complete();
        self.last = None;
    }

    fn run(&mut self) -> Update {
        self.complete();
        self.answer()
    }

    pub(crate) fn complete(&mut self) {
        while let Some(work) = self.work() {
            with_scratch(|scratch| match work {
                Work::Word => read_with(&mut [self], scratch),
                Work::Revision => revise_with(&mut [self], scratch),
            });
        }
    }

    /// After the first pass of a step, whose token is on the tape.
    pub(crate) fn stepped(&mut self, step: Step) {
        if self.mode != Mode::Restart {
            self.relabel(self.tokens.len() - 1);
        }
        self.pending = step.revised;
        self.last = Some(step);
        self.steps.push(&[step]);
        self.floor = self.floor.max(self.tokens.len().saturating_sub(self.undo));
        self.close();
    }

    /// After a revision.
    pub(crate) fn revised(&mut self) {
        self.pending = false;
        self.close();
    }

    /// At the end of the utterance, when all words are read: asks for the last revision unless the last step was one.
    fn close(&mut self) {
        if self.closing && self.work().is_none() {
            self.closing = false;
            if !self.steps.row(self.steps.len() - 1)[0].revised {
                self.pending = true;
                self.last = Some(Step { revised: true, policy: None });
            }
        }
    }

    /// The words that the reviser reads: those in the window.
    pub(crate) fn input(&self) -> &[u32] {
        let t = self.tokens.len();
        self.tokens.rows(t.saturating_sub(self.window)..t)
    }

    /// What the reviser gave for the same input before, where that is kept.
    pub(crate) fn kept_logits(&self) -> Option<&Vec<f32>> {
        self.kept.as_ref()?.get(self.input())
    }

    /// Takes the reviser's logits for [`input`](Self::input), or the kept ones.
    pub(crate) fn rewrite(&mut self, logits: Option<&[f32]>) {
        let (t, width) = (self.tokens.len(), self.model.labels().len());
        let start = t.saturating_sub(self.window);
        // The first d outputs of a delayed reviser belong to no word of its input; where the window has moved on they
        // would overwrite labels of words that have left it.
        let skip = if start == 0 { 0 } else { self.delay() };
        let start = start + skip;

        let mut old = self.spare.pop().unwrap_or_default();
        old.clear();
        old.extend_from_slice(self.logits.rows(start..t - 1));
        self.revisions.push_back(Overwritten { step: t, start, logits: old });

        if let (Some(kept), Some(logits)) = (&mut self.kept, logits) {
            let base = t.saturating_sub(self.window);
            kept.insert(self.tokens.rows(base..t).to_vec(), logits.to_vec());
        }
        let kept = self.kept.as_ref().and_then(|kept| kept.get(self.input()));
        if let Some(logits) = logits.or(kept.map(Vec::as_slice)) {
            let fresh = &logits[skip * width..(skip + t - start) * width];
            self.logits.rows_mut(start..t).copy_from_slice(fresh);
        }
        self.relabel(start);
    }

    /// Gives the words of the steps from `start` on the best label of their logits.
    fn relabel(&mut self, start: usize) {
        let delay = self.delay();
        for step in start.max(delay)..self.tokens.len() {
            let label = self.model.labels().best(self.logits.row(step));
            let word = step - delay;
            if word < self.labels.len() {
                self.labels.row_mut(word)[0] = label;
            } else {
                self.labels.push(&[label]);
            }
        }
    }

    /// Cuts the last `words` steps off the tapes and restores what revisions among them overwrote.
    fn take_back(&mut self, words: usize) {
        let t = self.tokens.len() - words;
        let width = self.model.labels().len();
        let mut changed = t;
        while let Some(revision) = self.revisions.pop_back_if(|revision| revision.step > t) {
            let end = t.min(revision.start + revision.logits.len() / width);
            if revision.start < end {
                let Range { start, end } = revision.start..end;
                self.logits.rows_mut(start..end).copy_from_slice(&revision.logits[..(end - start) * width]);
                changed = changed.min(start);
            }
            self.recycle(revision.logits);
        }
        self.tokens.truncate(t);
        self.logits.truncate(t);
        self.steps.truncate(t);
        self.labels.truncate(t.saturating_sub(self.delay()));
        if self.mode != Mode::Restart {
            self.states.truncate(t + 1);
        }
        if self.mode == Mode::TwoPass {
            self.controls.truncate(t + 1);
            self.memory.truncate(t);
        }
        if changed < t {
            self.relabel(changed);
            with_scratch(|scratch| {
                remember_with(&mut [self], |session| session.memory_size().min(t), scratch);
            });
        }
    }

    fn recycle(&mut self, buffer: Vec<f32>) {
        if self.spare.len() < 2 {
            self.spare.push(buffer);
        }
    }

    /// Forgets what neither a revision nor undo can reach any more.
    fn trim(&mut self) {
        let words = self.window.saturating_add(self.undo);
        if let Some(old) = self.tokens.excess(words) {
            let base = self.tokens.base();
            self.forgotten = digest(self.forgotten, self.tokens.rows(base..base + old));
            self.tokens.forget(old);
            self.logits.forget(old);
            self.labels.forget(old);
            self.steps.forget(old);
        }
        let steps = self.undo.saturating_add(self.memory_size() + 1);
        self.states.trim(steps);
        self.controls.trim(steps);
        self.memory.trim(steps);
        while let Some(revision) = self.revisions.pop_front_if(|revision| revision.step <= self.floor) {
            self.recycle(revision.logits);
        }
    }

    fn clear(&mut self) {
        self.tokens.clear();
        self.states.clear();
        self.controls.clear();
        self.memory.clear();
        self.logits.clear();
        self.steps.clear();
        self.labels.clear();
        self.states.grow();
        self.controls.grow();
        while let Some(revision) = self.revisions.pop_back() {
            self.recycle(revision.logits);
        }
        self.floor = 0;
        self.forgotten = 0;
        self.unread.clear();
        (self.pending, self.closing, self.last) = (false, false, None);
    }
}

/// Digest of a list of ids, continued from the digest of the ids before them.
fn digest(seed: u64, ids: &[u32]) -> u64 {
    ids.iter().fold(seed, |digest, id| {
        (digest ^ u64::from(*id)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels: Vec<_> = self.labels();
        f.debug_struct("Session")
            .field("mode", &self.mode)
            .field("words", &self.words())
            .field("labels", &labels)
            .finish_non_exhaustive()
    }
}
