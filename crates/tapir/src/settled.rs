//! What is settled, and what of it the user was told.

use serde::{Deserialize, Serialize};

use crate::{Scheme, Session, Span};

/// What is settled since the answer before: it will stay as it is, as likely as
/// [`SessionOptions::settled`](crate::SessionOptions::settled) asks for. It is said once; if the
/// label or intent changes all the same, that is an edit like any other, and it may settle anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settled {
    /// The words whose labels are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<usize>,
    /// The spans that are: all their words, and the one after them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
    /// Is the intent?
    #[serde(skip_serializing_if = "crate::edit::is_false")]
    pub intent: bool,
}

impl Settled {
    /// Has nothing settled?
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.spans.is_empty() && !self.intent
    }
}

/// What a user knows to be settled.
pub(crate) struct Settling {
    /// The probability from which on something is.
    least: f32,
    /// Of each word that is still held: its label, if that is.
    words: Vec<Option<u16>>,
    intent: Option<u16>,
    /// Has the utterance ended?
    ended: bool,
}

impl Settling {
    pub(crate) fn new(least: f32) -> Self {
        Self { least, words: Vec::new(), intent: None, ended: false }
    }

    pub(crate) fn set(&mut self, least: f32) {
        self.least = least;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.least);
    }

    /// Only the first labels stay settled.
    pub(crate) fn unsettle(&mut self, labels: usize) {
        self.words.truncate(labels);
    }

    /// The first words are no longer held.
    pub(crate) fn forget(&mut self, words: usize) {
        self.words.drain(..words.min(self.words.len()));
    }

    /// What has settled since the user was last told, and counts as told now.
    pub(crate) fn settle(&mut self, session: &Session) -> Settled {
        let (first, labels) = (session.first(), session.label_ids());
        let mut settled = Settled::default();
        self.words.resize(labels.len(), None);
        let recent = session.recent();
        for (i, label) in labels.iter().enumerate() {
            if self.words[i] == Some(*label) {
                continue;
            }
            // As log-odds, since 1 is not what the sigmoid is rounded to. Where the recogniser is
            // less sure of the word than is asked for, the bound is no number, and nothing is above.
            let least = self.least / session.heard(first + i);
            let bound = (least / (1.0 - least)).ln();
            let log_odds = session.label_log_odds(first + i, &recent);
            self.words[i] = log_odds.filter(|log_odds| *log_odds >= bound).map(|_| *label);
            settled.words.extend(self.words[i].map(|_| first + i));
        }
        // A span has settled when the last of its words has, or the one after them; at the end of
        // the utterance none comes after them.
        let ends = session.is_final() && !self.ended;
        self.ended |= ends;
        let has_spans = session.model().config().scheme != Scheme::Plain;
        if has_spans && (ends || !settled.words.is_empty()) {
            let end = first + labels.len();
            let is_new =
                |word: usize| settled.words.binary_search(&word).is_ok() || (ends && word == end);
            let is_settled = |word: usize| match self.words.get(word - first) {
                Some(word) => word.is_some(),
                None => session.is_final(),
            };
            settled.spans = session.spans();
            settled.spans.retain(|span| {
                let mut words = span.start..=span.end;
                words.clone().any(is_new) && words.all(is_settled)
            });
        }
        let intent = session.intent_id();
        if self.intent != intent {
            let stability = session.intent_stability();
            settled.intent = stability.is_some_and(|stability| stability >= self.least);
            self.intent = intent.filter(|_| settled.intent);
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use crate::{FinalPass, Model, SessionOptions, Span};

    /// A span at the end of the utterance settles when nothing can come after it, even if all its
    /// words were settled before.
    #[test]
    fn every_span_of_settled_words_is_said_once() {
        let parts = crate::doctest::with_intents(crate::doctest::parts());
        let model = Model::from_parts(parts).unwrap();
        let words = ["play", "some", "jazz", "by", "miles", "davis"];
        let mut last = 0;
        for start in 0..36 {
            // All that is said settles at once, and nothing is revised.
            let options = SessionOptions::new().settled(0.01).threshold(1.0);
            let options = options.final_pass(FinalPass::Policy);
            let mut session = model.session_with(options).unwrap();
            let mut said: Vec<Span> = Vec::new();
            let sentence: Vec<&str> = (0..4).map(|i| words[(start / 6 + i * start) % 6]).collect();
            for word in &sentence {
                let settled = session.push(word).unwrap().settled.unwrap_or_default();
                assert!(settled.spans.iter().all(|span| span.end < session.words()), "{settled:?}");
                said.extend(settled.spans);
            }
            let finish = session.finish().unwrap();
            let settled = finish.update.settled.unwrap_or_default();
            said.extend(settled.spans);
            assert_eq!(said, finish.spans, "{sentence:?}");
            last += finish.spans.iter().filter(|span| span.end == sentence.len()).count();
        }
        assert!(last > 0, "no utterance ends with a span");
    }
}
