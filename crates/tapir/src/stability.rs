//! Will an answer still change? What a session knows of that, and what it makes of it.
//!
//! A stability is a function of what the session holds now, so that taking words back takes back
//! what they did to it, too.

use crate::calibration::{Evidence, inside, log_odds, margin, sigmoid};
use crate::{Session, Span};

/// What the last steps say of all labels alike.
pub(crate) struct Recent {
    /// The last step at which was revised, from 0.
    revision: Option<usize>,
    /// The log-odds of the last policy value; 0 after a revision.
    policy: f32,
    /// 1 if the last step was a revision.
    revised: f32,
}

impl Session {
    /// The probability that the label of a word will not change any more in this utterance. 1 where
    /// it cannot; none if the word has no label or is forgotten, or if the model was not
    /// [calibrated](crate::Config::calibration). If the recogniser said how sure it is of the word
    /// ([`push_with`](Self::push_with)), its stability is a factor of ours.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::with_intents(tapir::doctest::parts()))?;
    /// let mut session = model.session();
    /// session.push("play")?;
    /// let stability = session.stability(0).expect("a calibrated model");
    /// assert!(stability > 0.0 && stability <= 1.0);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn stability(&self, position: usize) -> Option<f32> {
        self.label_stability(position, &self.recent())
    }

    /// The [`stability`](Self::stability) of every label from [`first`](Self::first) on; none if
    /// the model was not calibrated.
    pub fn stabilities(&self) -> Option<Vec<f32>> {
        let recent = self.recent();
        let words = self.first()..self.first() + self.label_ids().len();
        words.map(|word| self.label_stability(word, &recent)).collect()
    }

    /// The probability that a span of [`spans`](Self::spans) will stay as it is: that its labels do,
    /// and that the word after it, which there may not be yet, does not continue it. The stability of
    /// the word of which the recogniser is least sure is a factor of it.
    pub fn span_stability(&self, span: &Span) -> Option<f32> {
        let end = self.first() + self.label_ids().len();
        if span.start < self.first() || span.start >= span.end || span.end > end {
            return None;
        }
        if self.is_final() {
            return Some(1.0);
        }
        let calibration = &self.model().config().calibration;
        let (spans, recent) = (calibration.labels.and(calibration.spans)?, self.recent());
        let words = span.start..(span.end + 1).min(end);
        let labels = words.filter_map(|word| self.label_log_odds(word, &recent));
        let ours = spans.probability(&Evidence::of_span(labels, span.end == end));
        let heard = (span.start..span.end).map(|word| self.heard(word)).fold(1.0, f32::min);
        Some(ours * heard)
    }

    /// The probability that the intent will not change any more in this utterance; none if there is
    /// no intent, or the model was not calibrated. A word that the recogniser replaces is to it as
    /// one more word, which it reckons with anyway.
    pub fn intent_stability(&self) -> Option<f32> {
        let evidence = self.intent_evidence(&self.recent())?;
        if self.is_final() {
            return Some(1.0);
        }
        Some(self.model().config().calibration.intent?.probability(&evidence))
    }

    /// How likely it is that the utterance is one of those that the model is for, as far as it was
    /// heard: the others are labelled, too, and mean nothing. None before the first word, or if the
    /// model did not learn what is not for it.
    ///
    /// ```
    /// # let parts = tapir::doctest::with_intents(tapir::doctest::parts());
    /// # let model = tapir::Model::from_parts(parts)?;
    /// let mut session = model.session();
    /// session.update(["my", "sister", "is", "a", "nurse"])?;
    /// if session.in_domain().is_some_and(|probability| probability < 0.5) {
    ///     println!("that was not for me");
    /// }
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn in_domain(&self) -> Option<f32> {
        let inside = self.inside()?;
        let weights = self.model().config().calibration.in_domain;
        Some(weights.map_or_else(|| sigmoid(inside), |weights| weights.probability(&[1.0, inside])))
    }

    /// What stability and [`in_domain`](Self::in_domain) are made of, for whoever fits them.
    pub fn evidence(&self) -> Evidence {
        let recent = self.recent();
        let words = self.first()..self.first() + self.label_ids().len();
        Evidence {
            labels: words.filter_map(|word| self.label_evidence(word, &recent)).collect(),
            intent: self.intent_evidence(&recent),
            in_domain: self.inside(),
        }
    }

    fn label_stability(&self, position: usize, recent: &Recent) -> Option<f32> {
        Some(sigmoid(self.label_log_odds(position, recent)?) * self.heard(position))
    }

    /// The log-odds that a label stays while its word does.
    pub(crate) fn label_log_odds(&self, position: usize, recent: &Recent) -> Option<f32> {
        let weights = self.model().config().calibration.labels?;
        let evidence = self.label_evidence(position, recent)?;
        Some(if self.may_change() { weights.log_odds(&evidence) } else { f32::INFINITY })
    }

    fn label_evidence(&self, position: usize, recent: &Recent) -> Option<[f32; 7]> {
        let label = *self.label_ids().get(position.checked_sub(self.first())?)?;
        let step = position + self.model().config().delay;
        let logits = self.step_logits(step)?;
        let first = self.model().labels().first();
        let age = self.words() - 1 - step;
        let flag = |is: bool| f32::from(u8::from(is));
        Some([
            1.0,
            margin(&logits[first..], usize::from(label) - first),
            (age as f32).ln_1p(),
            flag(age == 0),
            flag(recent.revision.is_none_or(|revision| revision < step)),
            recent.policy,
            recent.revised,
        ])
    }

    fn intent_evidence(&self, recent: &Recent) -> Option<[f32; 5]> {
        let (id, logits) = (self.intent_id()?, self.intent_logits()?);
        let words = (self.words() as f32).ln();
        Some([1.0, margin(logits, usize::from(id)), words, recent.policy, recent.revised])
    }

    fn inside(&self) -> Option<f32> {
        let outputs = self.history().intent().filter(|_| self.model().config().outside)?;
        let (outside, intents) = outputs.split_last()?;
        Some(inside(*outside, intents))
    }

    pub(crate) fn recent(&self) -> Recent {
        let steps = self.history().steps();
        let before = self.words() - steps.len();
        let last = steps.last();
        let revised = last.is_some_and(|step| step.revised);
        let policy = last.and_then(|step| step.policy).filter(|_| !revised);
        Recent {
            revision: steps.iter().rposition(|step| step.revised).map(|step| before + step),
            policy: policy.map_or(0.0, log_odds),
            revised: f32::from(u8::from(revised)),
        }
    }
}
