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
