//! What `tapir live` knows, and what keys do to it. No terminal here.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tapir::{Action, Intent, Label, Model, Result, Session, SessionOptions, Span, Update};

/// How far an arrow key moves the threshold.
const STEP: f32 = 0.05;

/// Letters beyond this are not taken: no word is as long, and the session would refuse one of 4096
/// bytes.
const LONGEST: usize = 200;

/// A word that has been read, and what the policy made of it.
pub(super) struct Word {
    pub(super) text: String,
    pub(super) label: Option<Label>,
    /// The label that the last key replaced.
    pub(super) old: Option<Label>,
    pub(super) policy: Option<f32>,
    pub(super) action: Option<Action>,
    /// Is it unlikely to change any more?
    pub(super) settled: bool,
}

/// The probability from which on a label counts as settled, if the model knows it.
const SETTLED: f32 = 0.95;

/// A sentence that has ended.
pub(super) struct Sentence {
    pub(super) words: Vec<String>,
    pub(super) spans: Vec<Span>,
    pub(super) intent: Option<Label>,
    pub(super) revisions: usize,
    /// Labels that changed at the very end.
    pub(super) mended: usize,
}

/// What was typed between two spaces: one word or, where the model's tokeniser splits it, several
/// or none.
struct Chunk {
    text: String,
    words: usize,
}

/// The sentences so far, the words of this one, and the word that is being typed.
pub(super) struct LiveState {
    model: Model,
    session: Session,
    threshold: f32,
    chunks: Vec<Chunk>,
    words: Vec<Word>,
    typing: String,
    sentences: Vec<Sentence>,
    problem: Option<String>,
    left: bool,
}

impl LiveState {
    pub(super) fn new(model: Model, threshold: f32) -> Result<Self> {
        Ok(Self {
            session: session(&model, threshold)?,
            model,
            threshold,
            chunks: Vec::new(),
            words: Vec::new(),
            typing: String::new(),
            sentences: Vec::new(),
            problem: None,
            left: false,
        })
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn threshold(&self) -> f32 {
        self.threshold
    }

    /// What is being said, as far as it was heard.
    pub(super) fn intent(&self) -> Option<Intent> {
        self.session.intent()
    }

    pub(super) fn words(&self) -> &[Word] {
        &self.words
    }

    pub(super) fn typing(&self) -> &str {
        &self.typing
    }

    pub(super) fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// What went wrong at the last key.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Has the person left?
    pub(super) fn left(&self) -> bool {
        self.left
    }

    /// Does what a key asks for; what cannot be done is said and changes nothing.
    pub(super) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.problem = None;
        if let Err(error) = self.act(key) {
            self.problem = Some(error.to_string());
        }
    }

    fn act(&mut self, key: KeyEvent) -> Result<()> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => self.left = true,
            KeyCode::Char('c' | 'd') if control => self.left = true,
            KeyCode::Char('u') if control => self.clear()?,
            KeyCode::Char(' ') => self.read()?,
            KeyCode::Char(letter) if !control && self.typing.chars().count() < LONGEST => {
                self.typing.push(letter);
            }
            KeyCode::Backspace => self.back()?,
            KeyCode::Enter => self.end()?,
            KeyCode::Up | KeyCode::Right => self.retune(STEP)?,
            KeyCode::Down | KeyCode::Left => self.retune(-STEP)?,
            _ => {}
        }
        Ok(())
    }

    /// The word that was being typed is complete.
    fn read(&mut self) -> Result<()> {
        if self.typing.is_empty() {
            return Ok(());
        }
        let words = self.model.config().tokenizer.words(&self.typing);
        self.settle();
        for word in &words {
            self.push(word)?;
        }
        self.chunks.push(Chunk { text: std::mem::take(&mut self.typing), words: words.len() });
        Ok(())
    }

    fn push(&mut self, word: &str) -> Result<()> {
        let update = self.session.push(word)?;
        let (policy, action) = (update.policy, update.action);
        let (text, settled) = (word.to_owned(), false);
        self.words.push(Word { text, label: None, old: None, policy, action, settled });
        self.apply(&update);
        Ok(())
    }

    /// Takes a letter back, or the space behind the last word: then the word is being typed again.
    fn back(&mut self) -> Result<()> {
        if self.typing.pop().is_some() {
            return Ok(());
        }
        if let Some(chunk) = self.chunks.pop() {
            let update = self.session.revoke(chunk.words)?;
            self.settle();
            self.words.truncate(self.words.len() - chunk.words);
            self.apply(&update);
            self.typing = chunk.text;
        }
        Ok(())
    }

    /// Ends the sentence: a last revision, and the next one begins.
    fn end(&mut self) -> Result<()> {
        self.read()?;
        if !self.words.is_empty() {
            let end = self.session.finish()?;
            self.sentences.push(Sentence {
                words: self.words.iter().map(|word| word.text.clone()).collect(),
                spans: self.session.spans(),
                intent: self.session.intent().map(|intent| intent.label),
                revisions: self
                    .words
                    .iter()
                    .filter(|word| word.action == Some(Action::Revise))
                    .count(),
                mended: end.update.edits.iter().filter(|edit| edit.old.is_some()).count(),
            });
        }
        self.clear()
    }

    fn clear(&mut self) -> Result<()> {
        self.session = session(&self.model, self.threshold)?;
        self.chunks.clear();
        self.words.clear();
        self.typing.clear();
        Ok(())
    }

    /// Moves the threshold and reads the sentence again; labels that come out different are marked.
    fn retune(&mut self, by: f32) -> Result<()> {
        // Steps of 0.05 are not exact: rounding keeps them from drifting away from 0.5 and 1.
        self.threshold = (((self.threshold + by) * 100.0).round() / 100.0).clamp(0.0, 1.0);
        self.session.set_threshold(self.threshold)?;
        self.session.reset();
        let before = std::mem::take(&mut self.words);
        for word in &before {
            self.push(&word.text)?;
        }
        for (word, before) in self.words.iter_mut().zip(before) {
            word.old = before.label.filter(|label| word.label.as_ref() != Some(label));
        }
        Ok(())
    }

    /// Marks of the key before go away.
    fn settle(&mut self) {
        self.words.iter_mut().for_each(|word| word.old = None);
    }

    fn apply(&mut self, update: &Update) {
        for edit in &update.edits {
            if let Some(word) = self.words.get_mut(edit.position) {
                let old = word.label.replace(edit.label.clone());
                // Two words of one chunk may edit a label twice: what was seen before is the first
                // of them.
                word.old = word.old.take().or(old);
                word.settled = false;
            }
        }
        for position in update.settled.iter().flat_map(|settled| &settled.words) {
            if let Some(word) = self.words.get_mut(*position) {
                word.settled = true;
            }
        }
    }
}

/// A session that can take back every word, and that is quick to read the same words with another
/// threshold.
fn session(model: &Model, threshold: f32) -> Result<Session> {
    let mut options = SessionOptions::new().undo(usize::MAX).threshold(threshold).keep_revisions();
    if model.config().calibration.labels.is_some() {
        options = options.settled(SETTLED);
    }
    model.session_with(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> LiveState {
        let mut parts = tapir::doctest::parts();
        parts.config.tokenizer = tapir::Tokenizer::Spoken;
        LiveState::new(parts.load().unwrap(), 0.5).unwrap()
    }

    fn press(state: &mut LiveState, code: KeyCode) {
        state.key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    fn write(state: &mut LiveState, text: &str) {
        for letter in text.chars() {
            press(state, KeyCode::Char(letter));
        }
    }

    fn control(state: &mut LiveState, letter: char) {
        state.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    }

    fn labels(state: &LiveState) -> Vec<Label> {
        state.words.iter().filter_map(|word| word.label.clone()).collect()
    }

    /// What a new session says of the words, at the state's threshold.
    fn fresh(state: &LiveState) -> Vec<Label> {
        let options = SessionOptions::new().threshold(state.threshold);
        let mut session = state.model.session_with(options).unwrap();
        session.update(state.words.iter().map(|word| &word.text)).unwrap();
        session.labels()
    }

    #[test]
    fn a_word_is_read_at_its_space() {
        let mut state = state();
        write(&mut state, "Play  some ja");
        assert_eq!(
            state.words.iter().map(|word| &*word.text).collect::<Vec<_>>(),
            ["play", "some"]
        );
        assert_eq!(state.typing, "ja");
        assert_eq!(labels(&state), fresh(&state));
        assert!(state.words.iter().all(|word| word.action.is_some() && word.policy.is_some()));
    }

    #[test]
    fn backspace_goes_back_letter_by_letter_and_word_by_word() {
        let mut state = state();
        write(&mut state, "play some what's ");
        assert_eq!(state.words.len(), 4);
        press(&mut state, KeyCode::Backspace);
        assert_eq!((state.words.len(), state.typing.as_str()), (2, "what's"));
        assert_eq!(labels(&state), fresh(&state));
        write(&mut state, " ");
        assert_eq!((state.words.len(), labels(&state)), (4, fresh(&state)));
        for _ in 0..40 {
            press(&mut state, KeyCode::Backspace);
        }
        assert_eq!((state.words.len(), state.typing.as_str(), state.problem()), (0, "", None));
    }

    #[test]
    fn any_number_of_words_can_be_taken_back() {
        let mut state = state();
        write(&mut state, &"play some jazz ".repeat(100));
        for _ in 0.."play some jazz ".len() * 99 {
            press(&mut state, KeyCode::Backspace);
        }
        assert_eq!(state.words.len(), 3);
        assert_eq!(labels(&state), fresh(&state));
    }

    #[test]
    fn the_threshold_relabels_the_sentence() {
        let mut state = state();
        write(&mut state, "play some jazz by miles davis ");
        for _ in 0..30 {
            press(&mut state, KeyCode::Down);
            assert_eq!(labels(&state), fresh(&state));
        }
        assert!((state.threshold - 0.0).abs() < f32::EPSILON);
        assert!(state.words.iter().all(|word| word.action == Some(Action::Revise)));
        for _ in 0..30 {
            press(&mut state, KeyCode::Right);
        }
        assert!((state.threshold - 1.0).abs() < f32::EPSILON);
        assert!(state.words.iter().all(|word| word.action == Some(Action::Write)));
        assert_eq!(labels(&state), fresh(&state));
    }

    #[test]
    fn edits_are_marked_until_the_next_word() {
        let mut state = state();
        state.retune(0.5).unwrap();
        write(&mut state, "play some jazz by miles davis ");
        let before = labels(&state);
        state.retune(-1.0).unwrap();
        let marks =
            |state: &LiveState| state.words.iter().map(|word| word.old.clone()).collect::<Vec<_>>();
        let changed = |before: &[Label], after: &[Label]| {
            before.iter().zip(after).map(|(a, b)| (a != b).then(|| a.clone())).collect::<Vec<_>>()
        };
        assert_eq!(marks(&state), changed(&before, &labels(&state)));
        assert!(marks(&state).iter().any(Option::is_some));
        write(&mut state, "jazz");
        assert!(marks(&state).iter().any(Option::is_some));
        let before = labels(&state);
        write(&mut state, " ");
        assert_eq!(marks(&state)[..6], changed(&before, &labels(&state)));
    }

    #[test]
    fn enter_keeps_the_sentence_and_begins_another() {
        let mut state = state();
        write(&mut state, "play some jazz");
        press(&mut state, KeyCode::Enter);
        press(&mut state, KeyCode::Enter);
        assert_eq!(state.sentences.len(), 1);
        assert_eq!(state.sentences[0].words, ["play", "some", "jazz"]);
        assert!(state.words.is_empty() && state.typing.is_empty());
        write(&mut state, "miles ");
        assert_eq!(labels(&state), fresh(&state));
        control(&mut state, 'u');
        assert!(state.words.is_empty());
    }

    #[test]
    fn punctuation_alone_is_no_word() {
        let mut state = state();
        write(&mut state, "?! ");
        press(&mut state, KeyCode::Enter);
        assert!(state.sentences.is_empty() && state.problem().is_none());
    }

    #[test]
    fn a_word_has_an_end() {
        let mut state = state();
        write(&mut state, &"İ'".repeat(tapir::LONGEST_WORD));
        write(&mut state, " ");
        assert_eq!((state.words.len(), state.problem()), (LONGEST / 2, None));
    }

    #[test]
    fn there_are_three_ways_out() {
        for (code, modifiers) in [
            (KeyCode::Esc, KeyModifiers::NONE),
            (KeyCode::Char('c'), KeyModifiers::CONTROL),
            (KeyCode::Char('d'), KeyModifiers::CONTROL),
        ] {
            let mut state = state();
            state.key(KeyEvent::new(code, modifiers));
            assert!(state.left());
        }
        let mut state = state();
        write(&mut state, "cd");
        assert!(!state.left());
    }
}
