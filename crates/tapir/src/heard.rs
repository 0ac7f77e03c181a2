//! Words with what the recogniser says of them: how likely it is that it will not take them back.
//!
//! A label goes with its word. So the stability of a label is ours, that the label stays while the
//! word does, times the recogniser's, that the word does. It says nothing of the labels themselves:
//! they are the same with and without it.

use crate::{Error, Result, Session, Update};

impl Session {
    /// [`push`](Self::push) with the recogniser's own stability of the word: how likely it is, from
    /// 0 to 1, that the word will not be taken back. What it doubts does not
    /// [settle](crate::SessionOptions::settled).
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::with_intents(tapir::doctest::parts()))?;
    /// let mut session = model.session();
    /// session.push_with("play", 0.5)?;
    /// assert!(session.stability(0).expect("a calibrated model") <= 0.5);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn push_with(&mut self, word: &str, stability: f32) -> Result<Update> {
        self.begin_read_with([(word, stability)])?;
        Ok(self.run())
    }

    /// [`update`](Self::update) with the recogniser's own stability of each word. Of the words that
    /// stay, the new one counts: a recogniser grows surer of what it has heard.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::with_intents(tapir::doctest::parts()))?;
    /// let mut session = model.session();
    /// session.update_with([("play", 0.6), ("sum", 0.3)])?;
    /// session.update_with([("play", 0.9), ("some", 0.5)])?;
    /// assert!(session.stability(1).expect("a calibrated model") <= 0.5);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn update_with<W: AsRef<str>>(
        &mut self,
        words: impl IntoIterator<Item = (W, f32)>,
    ) -> Result<Update> {
        self.begin_update_with(words)?;
        Ok(self.run())
    }

    /// [`begin_read`](Self::begin_read) with the recogniser's own stability of each word.
    pub fn begin_read_with<W: AsRef<str>>(
        &mut self,
        words: impl IntoIterator<Item = (W, f32)>,
    ) -> Result<()> {
        self.with_words(words, Self::begin_following)
    }

    /// [`begin_update`](Self::begin_update) with the recogniser's own stability of each word.
    pub fn begin_update_with<W: AsRef<str>>(
        &mut self,
        words: impl IntoIterator<Item = (W, f32)>,
    ) -> Result<()> {
        self.with_words(words, Self::begin_hypothesis)
    }

    /// How likely it is that a word stays: as the recogniser said, and surely at the end.
    pub(crate) fn heard(&self, word: usize) -> f32 {
        if self.is_final() { 1.0 } else { self.history().heard(word) }
    }
}

/// Refuses what is no probability.
pub(crate) fn check_heard(stability: f32) -> Result<()> {
    if (0.0..=1.0).contains(&stability) { Ok(()) } else { Err(Error::Heard { stability }) }
}

#[cfg(test)]
mod tests {
    use crate::{Model, Session, SessionOptions, doctest};

    /// What the recogniser said of the first words, in hundredths.
    fn heard(session: &Session, words: usize) -> Vec<i32> {
        (0..words).map(|word| (session.heard(word) * 100.0).round() as i32).collect()
    }

    fn model() -> Model {
        Model::from_parts(doctest::with_intents(doctest::parts())).expect("a model")
    }

    #[test]
    fn labels_do_not_depend_on_what_the_recogniser_says_of_its_words() {
        let model = model();
        let (mut plain, mut heard) = (model.session(), model.session());
        for word in ["play", "some", "jazz"] {
            let (plain, heard) = (plain.push(word).unwrap(), heard.push_with(word, 0.5).unwrap());
            assert_eq!(plain.edits[0].label, heard.edits[0].label);
            let (sure, doubted) = (plain.edits[0].stability, heard.edits[0].stability);
            assert_eq!((sure.unwrap() * 0.5).to_bits(), doubted.unwrap().to_bits());
        }
        assert_eq!(plain.probabilities(), heard.probabilities());
    }

    #[test]
    fn a_word_that_stays_takes_the_new_stability_and_one_taken_back_leaves_none() {
        let model = model();
        let mut session = model.session();
        session.update_with([("play", 0.5), ("some", 0.25)]).unwrap();
        session.update_with([("play", 0.75), ("some", 0.5), ("jazz", 0.1)]).unwrap();
        assert_eq!(heard(&session, 3), [75, 50, 10]);
        session.revoke(2).unwrap();
        session.push("some").unwrap();
        assert_eq!(heard(&session, 2), [75, 100]);
        session.update(["play", "some"]).unwrap();
        assert_eq!(heard(&session, 2), [100, 100]);
    }

    #[test]
    fn nothing_settles_that_the_recogniser_doubts_until_it_no_longer_does() {
        let model = model();
        let options = SessionOptions::new().settled(0.01);
        let mut session = model.session_with(options).unwrap();
        let doubted = session.update_with([("play", 0.001)]).unwrap();
        assert!(doubted.settled.is_none_or(|settled| settled.words.is_empty()));
        let sure = session.update_with([("play", 1.0)]).unwrap();
        assert_eq!(sure.settled.expect("something settled").words, [0]);
        let mut session = model.session_with(options).unwrap();
        session.push_with("play", 0.0).unwrap();
        let end = session.finish().unwrap().update.settled.expect("the end settles all");
        assert_eq!(end.words, [0], "what is final is no longer doubted");
    }

    #[test]
    fn what_is_no_probability_is_refused_and_changes_nothing() {
        let mut session = model().session();
        session.push("play").unwrap();
        for stability in [-0.1, 1.5, f32::NAN, f32::INFINITY] {
            let error = session.push_with("some", stability).unwrap_err().to_string();
            assert!(error.contains("expected 0 to 1"), "{error}");
            assert!(session.update_with([("a", 1.0), ("b", stability)]).is_err());
        }
        assert_eq!(session.words(), 1);
    }
}
