//! What an utterance is about, as a session has it.

use crate::{Intent, Session};

impl Session {
    /// What the utterance is about, as far as it was heard; none before the first word, or if the
    /// model knows no intents.
    ///
    /// ```
    /// # let mut parts = tapir::doctest::parts();
    /// # parts = tapir::doctest::with_intents(parts);
    /// # let model = tapir::Model::from_parts(parts)?;
    /// let mut session = model.session();
    /// let update = session.push("play")?;
    /// let intent = session.intent().expect("a model that knows intents");
    /// println!("{} at {:.2}", intent.label, intent.probability);
    /// assert!(update.intent.unwrap().changed, "it is the first answer");
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn intent(&self) -> Option<Intent> {
        let (intents, id) = (self.model().intents()?, self.intent_id()?);
        let probability = intents.probability(self.intent_logits()?, id);
        let changed = self.told_intent() != Some(id);
        Some(Intent {
            label: intents.get(id).clone(),
            probability,
            changed,
            stability: self.intent_stability(),
            in_domain: self.in_domain(),
        })
    }

    /// Its id in [`Model::intents`](crate::Model::intents).
    pub fn intent_id(&self) -> Option<u16> {
        Some(self.model().intents()?.best(self.intent_logits()?))
    }

    /// The logits of the intents, by their ids.
    pub(crate) fn intent_logits(&self) -> Option<&[f32]> {
        self.history().intent().map(|outputs| &outputs[..self.model().config().intents])
    }

    /// The probability of every intent, by its id in [`Model::intents`](crate::Model::intents); none
    /// where there is no [`intent`](Self::intent).
    pub fn intent_distribution(&self) -> Option<Vec<f32>> {
        Some(self.model().intents()?.distribution(self.intent_logits()?))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Mode, Model, Session, SessionOptions, doctest};

    const WORDS: [&str; 4] = ["play", "some", "jazz", "by"];

    fn logits(session: &Session) -> Vec<f32> {
        session.intent_logits().expect("a word was read").to_vec()
    }

    /// The logits of the intent after each of the words.
    fn read(model: &Model, options: SessionOptions) -> Vec<Vec<f32>> {
        let mut session = model.session_with(options).unwrap();
        let mut read = |word: &&str| {
            session.push(word).unwrap();
            logits(&session)
        };
        WORDS.iter().map(&mut read).collect()
    }

    #[test]
    fn what_the_first_pass_hears_is_added_to_what_the_reviser_said() {
        let parts = doctest::with_intents(doctest::parts());
        let evidence = parts.config.calibration.evidence.unwrap();
        let model = Model::from_parts(parts).unwrap();
        let first = read(&model, SessionOptions::new().mode(Mode::FirstPass));
        let restart = read(&model, SessionOptions::new().mode(Mode::Restart));
        let unrevised = read(&model, SessionOptions::new().threshold(1.0));
        assert_eq!(unrevised, first, "before any revision it is what the first pass says");

        let mut session = model.session_with(SessionOptions::new().threshold(0.0)).unwrap();
        session.push(WORDS[0]).unwrap();
        session.push(WORDS[1]).unwrap();
        assert_eq!(logits(&session), restart[1], "a revision is what the reviser says");
        session.set_threshold(1.0).unwrap();
        session.push(WORDS[2]).unwrap();
        let expected: Vec<f32> = (0..restart[1].len())
            .map(|i| restart[1][i] + evidence * (first[2][i] - first[1][i]))
            .collect();
        assert_eq!(logits(&session), expected);
        session.revoke(1).unwrap();
        assert_eq!(logits(&session), restart[1]);
    }
}
