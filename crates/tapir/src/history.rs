//! Everything that a session remembers of its steps: a row per step on tapes, and what revisions
//! overwrote.
//!
//! Taking words back is cutting the tapes. Only a revision changes rows that are already there, and
//! of them only logits and labels; it first notes what it overwrites. The
//! memory φ is a function of the states and of the logits that a step has *now*: whoever changes
//! logits has it written again ([`batch`](crate::batch)), to the same bits.

use std::collections::VecDeque;

use crate::decode::{Decoder, Search};
use crate::lists::Lists;
use crate::tape::{Reach, Rows, Tape};
use crate::word::{Identity, Word, Words};
use crate::{Action, Affixes, BertConfig, Model};

/// The steps of a session. Those older than its window and undo are forgotten, now and then.
pub(crate) struct History {
    /// How many words, from the newest back, a revision reads.
    window: usize,
    /// How many words can be taken back.
    undo: usize,
    /// N: how many entries of memory the controller reads.
    entries: usize,
    delay: usize,
    /// How many word pieces a revision reads, if the reviser reads pieces.
    room: Option<usize>,
    /// Which word was read at each step. Row i is step i + 1.
    identities: Tape<Identity>,
    /// How likely it is, as the recogniser last said, that this word stays.
    heard: Tape<f32>,
    /// What the passes read of it (the input buffer): its row of the vocabulary and, if the model
    /// reads that, how it is written.
    rows: Tape<u32>,
    /// Its word pieces, if the reviser reads pieces.
    pieces: Lists<u32>,
    /// Processor states after each step, [layers, 2, H]; row 0 is the state before any word. Its
    /// h's are Γʰ.
    states: Tape<f32>,
    /// Controller states after each step, [layers, 2, C]; row 0 likewise. Its c's are the memory
    /// tape C of eq. 6.
    controls: Tape<f32>,
    /// Γᵖ: φ and the keys made from it.
    memory: Tape<f32>,
    /// ỹ of each step, as written or last revised. The output buffer is its softmax.
    logits: Tape<f32>,
    /// What the model says of the intent, so many values. Without any, nothing is written.
    intent_outputs: usize,
    /// g: how much the first pass's evidence counts beside what the reviser said.
    evidence: f32,
    /// What the first pass says of the intent after each step, [outputs]; row 0 is nothing.
    heard_intents: Tape<f32>,
    /// What both passes say of it: see [`push_intent`](Self::push_intent).
    intents: Tape<f32>,
    /// What was chosen at each step.
    steps: Tape<Step>,
    /// The label of each word, by id: step i + 1 labels word i - delay.
    labels: Tape<u16>,
    /// What revisions overwrote, newest last.
    revisions: VecDeque<Overwritten>,
    /// Buffers of forgotten revisions, used again.
    spare: Vec<Overwritten>,
    search: Search,
    /// Words cannot be taken back beyond this step.
    floor: usize,
    /// The words that the tapes have forgotten, as one identity.
    forgotten: Identity,
}

/// All tapes of a history, shared or `mut`. A new tape is a field, its line in `new`, and its name
/// here: it is then cut, forgotten, cleared and counted with the others.
macro_rules! tapes {
    ($history:ident $(, $mutable:tt)?) => {{
        let tapes: [&$($mutable)? dyn Rows; 12] = [
            &$($mutable)? $history.identities,
            &$($mutable)? $history.heard,
            &$($mutable)? $history.rows,
            &$($mutable)? $history.pieces,
            &$($mutable)? $history.states,
            &$($mutable)? $history.controls,
            &$($mutable)? $history.memory,
            &$($mutable)? $history.logits,
            &$($mutable)? $history.heard_intents,
            &$($mutable)? $history.intents,
            &$($mutable)? $history.steps,
            &$($mutable)? $history.labels,
        ];
        tapes
    }};
}

/// What was chosen at a step.
#[derive(Clone, Copy, Default)]
pub(crate) struct Step {
    pub(crate) revised: bool,
    pub(crate) policy: Option<f32>,
}

impl Step {
    pub(crate) fn action(self) -> Action {
        if self.revised { Action::Revise } else { Action::Write }
    }
}

/// Logits of the steps from `start` on, and the labels that they gave, as they were before the
/// revision at `step`.
#[derive(Default)]
struct Overwritten {
    step: usize,
    start: usize,
    logits: Vec<f32>,
    labels: Vec<u16>,
    /// What was said of the intent at `step`.
    intent: Vec<f32>,
}

impl Overwritten {
    fn bytes(&self) -> usize {
        let floats = self.logits.capacity() + self.intent.capacity();
        floats * size_of::<f32>() + self.labels.capacity() * size_of::<u16>()
    }
}

/// Where a history stood, to [go back to](History::roll_back).
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    steps: usize,
    labels: usize,
    revisions: usize,
    floor: usize,
}

impl History {
    /// The window is clamped to the model's `max_length` from above, to its memory and delay from
    /// below.
    pub(crate) fn new(model: &Model, window: usize, undo: usize) -> Self {
        let first = model.first_pass();
        let revision = first.and_then(|first| first.revision.as_ref());
        let config = model.config();
        let entries = revision.map_or(0, |revision| revision.memory.size());
        let least = entries.max(1) + config.delay;
        let state = first.map_or(1, |first| first.processor.state_size());
        let control = revision.map_or(1, |revision| revision.controller.state_size());
        let memory = revision.map_or(1, |revision| revision.controller.memory_size());
        Self {
            window: window.clamp(least, config.max_length),
            undo,
            entries,
            delay: config.delay,
            room: config.bert().map(BertConfig::room),
            identities: Tape::new(Reach::Window, 1),
            heard: Tape::new(Reach::Window, 1),
            rows: Tape::new(Reach::Window, model.word_width()),
            pieces: Lists::new(Reach::Window),
            states: Tape::of_states(Reach::Memory, state),
            controls: Tape::of_states(Reach::Memory, control),
            memory: Tape::new(Reach::Memory, memory),
            logits: Tape::new(Reach::Window, model.labels().len()),
            intent_outputs: config.intent_outputs(),
            evidence: config.calibration.evidence.unwrap_or(1.0),
            heard_intents: Tape::of_states(Reach::Memory, config.intent_outputs().max(1)),
            intents: Tape::of_states(Reach::Memory, config.intent_outputs().max(1)),
            steps: Tape::new(Reach::Window, 1),
            labels: Tape::delayed(Reach::Window, 1, config.delay),
            revisions: VecDeque::new(),
            spare: Vec::new(),
            search: Search::default(),
            floor: 0,
            forgotten: Identity::EMPTY,
        }
    }

    /// Steps since the session's start.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many words can be taken back now.
    pub(crate) fn undoable(&self) -> usize {
        self.len() - self.floor
    }

    /// How many labels, from the start, will never be edited again.
    pub(crate) fn committed(&self) -> usize {
        self.floor.saturating_sub(self.window)
    }

    /// The first word whose label is still here.
    pub(crate) fn first(&self) -> usize {
        self.labels.base()
    }

    /// The labels of the words from [`first`](Self::first) on.
    pub(crate) fn labels(&self) -> &[u16] {
        self.labels.all()
    }

    /// The logits of step `step`, from 0, if they are still here.
    pub(crate) fn logits(&self, step: usize) -> Option<&[f32]> {
        (self.logits.base()..self.logits.len()).contains(&step).then(|| self.logits.row(step))
    }

    /// What was chosen at each step that is still here.
    pub(crate) fn steps(&self) -> &[Step] {
        self.steps.all()
    }

    /// How many leading words a hypothesis shares with the words read so far.
    pub(crate) fn shared(&self, words: &Words) -> usize {
        let base = self.identities.base();
        if words.len() < base
            || digest(Identity::EMPTY, words.identities().take(base)) != self.forgotten
        {
            return 0;
        }
        let pairs = self.identities.all().iter().zip(words.identities().skip(base));
        base + pairs.take_while(|(read, word)| *read == word).count()
    }

    /// How likely it is, as the recogniser last said, that a word stays; 1 if it is forgotten.
    pub(crate) fn heard(&self, word: usize) -> f32 {
        let held = (self.heard.base()..self.heard.len()).contains(&word);
        if held { self.heard.row(word)[0] } else { 1.0 }
    }

    /// What a new hypothesis says of the words that it shares with those read so far.
    pub(crate) fn hear_again(&mut self, words: &Words) {
        let (base, held) = (self.heard.base(), self.heard.len());
        let rows = self.heard.rows_mut(base..held).iter_mut();
        rows.zip(words.heard().skip(base)).for_each(|(heard, now)| *heard = now);
    }

    // What a step appends, in this order.

    /// Begins a step with its word.
    pub(crate) fn push_word(&mut self, word: Word, pieces: impl IntoIterator<Item = u32>) {
        self.identities.push(&[word.identity]);
        self.heard.push(&[word.heard]);
        self.rows.extend(word.read(self.rows.width()));
        if self.room.is_some() {
            self.pieces.push(pieces);
        }
    }

    /// What the processor made of the word.
    pub(crate) fn push_first_pass(&mut self, state: &[f32], logits: &[f32], intent: &[f32]) {
        self.states.push(state);
        self.logits.push(logits);
        self.push_intent(intent);
    }

    /// In place of a first pass, where there is none: room for what the revision gives.
    pub(crate) fn push_no_first_pass(&mut self) {
        self.logits.grow();
        if self.intent_outputs > 0 {
            self.heard_intents.grow();
            self.intents.grow();
        }
    }

    /// Adds what the word says of the intent to what is known of it: c ← c + g (a − a'), where a and
    /// a' are the first pass's logits after this word and before it.
    ///
    /// Logits are logarithms of odds, so that a − a' is the evidence that the first pass sees in the
    /// word alone, and g, fitted on validation, how far it can be trusted: it has seen much of it
    /// before, in words that the reviser has read, too. A revision replaces c by the reviser's
    /// logits; the words after it add theirs, and nothing that the reviser knew is forgotten. Before
    /// any revision c is a. Each row is a function of the one before it and of the word, so that
    /// taking words back is cutting rows off.
    fn push_intent(&mut self, heard: &[f32]) {
        if heard.is_empty() {
            return;
        }
        let t = self.len();
        self.heard_intents.push(heard);
        self.intents.grow();
        let (before, after) = (self.heard_intents.row(t - 1), self.heard_intents.row(t));
        let rows = self.intents.rows_mut(t - 1..t + 1);
        let (known, now) = rows.split_at_mut(heard.len());
        if *known == *before {
            // Nothing was revised yet.
            now.copy_from_slice(after);
            return;
        }
        for (i, now) in now.iter_mut().enumerate() {
            *now = known[i] + self.evidence * (after[i] - before[i]);
        }
    }

    /// The logits of the intent now, [intents]; none before the first word.
    pub(crate) fn intent(&self) -> Option<&[f32]> {
        (self.intent_outputs > 0 && self.len() > 0).then(|| self.intents.row(self.len()))
    }

    /// What the controller made of it, and room for its entry in the memory.
    pub(crate) fn push_control(&mut self, state: &[f32]) {
        self.controls.push(state);
        self.memory.grow();
    }

    /// Ends a step: notes what was chosen, and counts it as read.
    pub(crate) fn push_step(&mut self, step: Step) {
        self.steps.push(&[step]);
        self.floor = self.floor.max(self.len().saturating_sub(self.undo));
    }

    /// The pieces of the word of the step that has been begun, where a pass reads pieces.
    pub(crate) fn last_pieces(&self) -> &[u32] {
        self.room.map_or(&[], |_| self.pieces.lists(self.len() - 1..self.len()))
    }

    /// The processor's state after `step` steps.
    pub(crate) fn state(&self, step: usize) -> &[f32] {
        self.states.row(step)
    }

    /// What the controller reads at the step that has been begun: the entries of memory of the last
    /// steps, at most N, and its own states of those steps; at the first step no entry and its
    /// zeros.
    pub(crate) fn recall(&self) -> (&[f32], &[f32]) {
        let t = self.len();
        let entries = self.entries.min(t - 1);
        (self.memory.rows(t - 1 - entries..t - 1), self.controls.rows(t - entries.max(1)..t))
    }

    /// How many entries of memory there are to write after a change of the logits.
    pub(crate) fn entries(&self) -> usize {
        self.entries.min(self.len())
    }

    /// The logits of the last `steps` steps.
    pub(crate) fn last_logits(&self, steps: usize) -> &[f32] {
        self.logits.rows(self.len() - steps..self.len())
    }

    /// The last entries of memory, anew.
    pub(crate) fn write_memory(&mut self, entries: &[f32]) {
        let (t, count) = (self.len(), entries.len() / self.memory.width());
        self.memory.rows_mut(t - count..t).copy_from_slice(entries);
    }

    /// What the passes read of the word of the step that has been begun.
    pub(crate) fn last_row(&self) -> &[u32] {
        self.rows.row(self.len() - 1)
    }

    /// What the reviser reads: the words in the window, as rows of the vocabulary, with how they are
    /// written if the model reads that, or as word pieces. The one place from which its input comes.
    pub(crate) fn reviser_input(&self) -> &[u32] {
        let window = self.window_start()..self.len();
        if self.room.is_some() { self.pieces.lists(window) } else { self.rows.rows(window) }
    }

    /// How many words or word pieces that is.
    pub(crate) fn revision_size(&self) -> usize {
        if self.room.is_some() { self.reviser_input().len() } else { self.revised_words() }
    }

    /// How many words that is.
    pub(crate) fn revised_words(&self) -> usize {
        self.len() - self.window_start()
    }

    /// Where the window begins: of a reviser that reads pieces, as many of the newest words as its
    /// positions hold, and no more than of another.
    fn window_start(&self) -> usize {
        let start = self.len().saturating_sub(self.window);
        self.room.map_or(start, |room| self.pieces.last_within(start, room))
    }

    /// Takes the reviser's logits for [`reviser_input`](Self::reviser_input), and those of the
    /// intent.
    pub(crate) fn revise(&mut self, logits: &[f32], intent: &[f32], decoder: &Decoder) {
        let (t, width) = (self.len(), self.logits.width());
        let start = self.window_start();
        // The first d outputs of a delayed reviser belong to no word of its input; where the window
        // has moved on they would overwrite labels of words that have left it.
        let skip = if start == 0 { 0 } else { self.delay };
        let start = start + skip;

        let Overwritten { logits: mut old, labels: mut old_labels, intent: mut old_intent, .. } =
            self.spare.pop().unwrap_or_default();
        old.clear();
        old.extend_from_slice(self.logits.rows(start..t));
        old_labels.clear();
        old_labels.extend_from_slice(self.labels.rows(self.word(start)..self.labels.len()));
        old_intent.clear();
        if self.intent_outputs > 0 {
            let row = self.intents.rows_mut(t..t + 1);
            old_intent.extend_from_slice(row);
            row.copy_from_slice(intent);
        }
        self.revisions.push_back(Overwritten {
            step: t,
            start,
            logits: old,
            labels: old_labels,
            intent: old_intent,
        });

        self.logits
            .rows_mut(start..t)
            .copy_from_slice(&logits[skip * width..(skip + t - start) * width]);
        let (word, first) = (self.word(start), start.max(self.delay));
        if first < t {
            while self.labels.len() < t - self.delay {
                self.labels.push(&[0]);
            }
            let (before, end) = (self.label_before(word), self.labels.len());
            let labels = self.labels.rows_mut(word..end);
            decoder.sequence(before, self.logits.rows(first..t), &mut self.search, labels);
        }
    }

    /// Gives the last word that has logits its label. No other label changes.
    pub(crate) fn label_last(&mut self, decoder: &Decoder) {
        if let Some(word) = (self.len() - 1).checked_sub(self.delay) {
            let logits = self.logits.row(self.len() - 1);
            let label = decoder.next(self.label_before(word), logits);
            self.labels.push(&[label]);
        }
    }

    /// The first word that a step from `start` on labels.
    fn word(&self, start: usize) -> usize {
        start.saturating_sub(self.delay)
    }

    /// The label before that of a word; none at the start, or where it is forgotten: nothing that
    /// is still labelled lies next to what is forgotten.
    fn label_before(&self, word: usize) -> Option<u16> {
        (word > self.labels.base()).then(|| self.labels.row(word - 1)[0])
    }

    /// Cuts the last `words` steps off and restores what revisions among them overwrote. If that
    /// changed the logits of a step that stays, the last [`entries`](Self::entries) of memory are
    /// to be written again.
    #[must_use]
    pub(crate) fn take_back(&mut self, words: usize) -> bool {
        let t = self.len() - words;
        let mut changed = t;
        while let Some(revision) = self.revisions.pop_back_if(|revision| revision.step > t) {
            changed = changed.min(self.restore(revision, t));
        }
        self.cut(t);
        changed < t
    }

    /// Where it stands now.
    pub(crate) fn mark(&self) -> Mark {
        let (steps, labels) = (self.len(), self.labels.len());
        Mark { steps, labels, revisions: self.revisions.len(), floor: self.floor }
    }

    /// Goes back to a mark that was made before the step or the revision that was interrupted, and
    /// gives the word of that step back to the front of `unread`. It computes nothing, so that it
    /// can be done while a panic unwinds.
    ///
    /// Of an interrupted revision, entries of memory may stay that only the revision explains.
    /// Nothing but the revision comes next, and it writes them.
    pub(crate) fn roll_back(&mut self, mark: Mark, unread: &mut Words) {
        if mark.steps < self.len() {
            let step = mark.steps;
            let (identity, row) = (self.identities.row(step)[0], self.rows.row(step)[0]);
            let affixes = Affixes::read(&self.rows.row(step)[1..]);
            let pieces = self.room.map_or(&[][..], |_| self.pieces.lists(step..step + 1));
            unread.push_front(Word::new(identity, row, affixes, self.heard.row(step)[0]), pieces);
        }
        while self.revisions.len() > mark.revisions
            && let Some(revision) = self.revisions.pop_back()
        {
            self.restore(revision, mark.steps);
        }
        self.cut(mark.steps);
        // Where there is no first pass, a word has no label before its revision.
        self.labels.truncate(mark.labels);
        self.floor = mark.floor;
    }

    /// Gives the steps before `end` the logits and labels that they had before a revision; says
    /// where it begins.
    fn restore(&mut self, revision: Overwritten, end: usize) -> usize {
        let Overwritten { step, start, logits, labels, intent } = &revision;
        if *step <= end && self.intent_outputs > 0 {
            self.intents.rows_mut(*step..step + 1).copy_from_slice(intent);
        }
        let (start, width) = (*start, self.logits.width());
        let end = end.min(start + logits.len() / width);
        if start < end {
            self.logits.rows_mut(start..end).copy_from_slice(&logits[..(end - start) * width]);
        }
        let word = self.word(start);
        self.labels.rows_mut(word..word + labels.len()).copy_from_slice(labels);
        self.recycle(revision);
        start
    }

    fn recycle(&mut self, revision: Overwritten) {
        if self.spare.len() < 2 {
            self.spare.push(revision);
        }
    }

    fn cut(&mut self, steps: usize) {
        for tape in tapes!(self, mut) {
            tape.cut(steps);
        }
    }

    /// Forgets the words and labels that neither a revision nor undo can reach any more, once their
    /// labels were told.
    pub(crate) fn forget(&mut self) {
        // One more than a revision after undo reads: its first label may continue the one before.
        let keep = self.window.saturating_add(self.undo).saturating_add(1);
        let old = self.rows.excess(keep).unwrap_or(0);
        self.forgotten = digest(self.forgotten, self.identities.all()[..old].iter().copied());
        for tape in tapes!(self, mut) {
            if tape.reach() == Reach::Window {
                tape.forget(old);
            }
        }
        self.forget_states();
    }

    /// Forgets the states and overwritten logits that undo cannot reach any more. They are large,
    /// and of no use to whoever is told of the labels, so that this is done at every step of a long
    /// hypothesis.
    pub(crate) fn forget_states(&mut self) {
        let memory = self.undo.saturating_add(self.entries + 1);
        for tape in tapes!(self, mut) {
            if tape.reach() == Reach::Memory {
                tape.trim(memory);
            }
        }
        while let Some(revision) =
            self.revisions.pop_front_if(|revision| revision.step <= self.floor)
        {
            self.recycle(revision);
        }
    }

    /// As before the first word, with the memory it has.
    pub(crate) fn clear(&mut self) {
        for tape in tapes!(self, mut) {
            tape.clear();
        }
        while let Some(revision) = self.revisions.pop_back() {
            self.recycle(revision);
        }
        self.floor = 0;
        self.forgotten = Identity::EMPTY;
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let tapes = tapes!(self).iter().map(|tape| tape.bytes()).sum::<usize>();
        let old = self.revisions.iter().chain(&self.spare).map(Overwritten::bytes).sum::<usize>();
        tapes + old + self.search.bytes()
    }
}

/// The identity of a list of words, continued from that of the words before them.
fn digest(seed: Identity, words: impl IntoIterator<Item = Identity>) -> Identity {
    words.into_iter().fold(seed, Identity::then)
}
