//! A session: words in, labels out, one word at a time; every word can be taken back.

use tapir::protocol::{Response, Stability};
use wasm_bindgen::prelude::*;

use crate::error::{Result, refused};
use crate::input::{Given, count, number, parse, text};
use crate::output::object;

/// A stream of words and their labels so far.
#[wasm_bindgen]
pub struct Session(tapir::Session);

impl Session {
    pub(crate) fn new(session: tapir::Session) -> Self {
        Self(session)
    }
}

#[wasm_bindgen]
impl Session {
    /// Reads one word, as it is, and says what changed.
    pub fn push(&mut self, word: &JsValue, stability: &JsValue) -> Result<JsValue> {
        let word = text(word, "a word")?;
        let stability =
            if stability.is_undefined() { 1.0 } else { number(stability, "a stability")? };
        object(&self.0.push_with(&word, stability).map_err(refused)?)
    }

    /// Takes a recogniser's whole new hypothesis.
    pub fn update(&mut self, words: &JsValue, stability: &JsValue) -> Result<JsValue> {
        let words = Given::of(words)?.words(self.0.model());
        let stability = if stability.is_undefined() {
            Stability::All(1.0)
        } else {
            parse(stability, "stabilities")?
        };
        let stabilities = stability.each(words.len()).map_err(refused)?;
        object(&self.0.update_with(words.into_iter().zip(stabilities)).map_err(refused)?)
    }

    /// Takes back the last words: one, unless it is told how many.
    pub fn revoke(&mut self, words: &JsValue) -> Result<JsValue> {
        let words = if words.is_undefined() { 1 } else { count(words, "how many words")? };
        object(&self.0.revoke(words).map_err(refused)?)
    }

    /// Ends the utterance.
    pub fn finish(&mut self) -> Result<JsValue> {
        let end = self.0.finish().map_err(refused)?;
        object(&Response {
            update: Some(end.update),
            first: Some(end.first),
            labels: Some(end.labels),
            spans: Some(end.spans),
            ..Response::default()
        })
    }

    /// Starts a new utterance with the same options.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// Changes the policy's threshold from the next word on.
    #[wasm_bindgen(js_name = setThreshold)]
    pub fn set_threshold(&mut self, threshold: &JsValue) -> Result<()> {
        self.0.set_threshold(number(threshold, "a threshold")?).map_err(refused)
    }

    /// From the next answer on, says what is settled.
    #[wasm_bindgen(js_name = setSettled)]
    pub fn set_settled(&mut self, probability: &JsValue) -> Result<()> {
        self.0.set_settled(number(probability, "a probability")?).map_err(refused)
    }

    /// The labels of the words from `first` on.
    pub fn labels(&self) -> Vec<String> {
        self.0.labels().iter().map(ToString::to_string).collect()
    }

    /// The model's probability for each of these labels.
    pub fn probabilities(&self) -> Vec<f32> {
        self.0.probabilities()
    }

    /// The probability that each of these labels will not change any more.
    pub fn stabilities(&self) -> Option<Vec<f32>> {
        self.0.stabilities()
    }

    /// The labelled stretches of the words from `first` on.
    pub fn spans(&self) -> Result<JsValue> {
        object(&self.0.spans())
    }

    /// The probability that a span will stay as it is.
    #[wasm_bindgen(js_name = spanStability)]
    pub fn span_stability(&self, span: &JsValue) -> Result<Option<f32>> {
        Ok(self.0.span_stability(&parse(span, "a span")?))
    }

    /// The probability of every label for one word, by the label's id.
    pub fn distribution(&self, position: &JsValue) -> Result<Option<Vec<f32>>> {
        Ok(self.0.distribution(count(position, "a position")?))
    }

    /// What the utterance is about, as far as it was heard.
    pub fn intent(&self) -> Result<JsValue> {
        self.0.intent().map_or(Ok(JsValue::UNDEFINED), |intent| object(&intent))
    }

    /// The probability of every intent, by its id.
    #[wasm_bindgen(js_name = intentDistribution)]
    pub fn intent_distribution(&self) -> Option<Vec<f32>> {
        self.0.intent_distribution()
    }

    /// The probability that the utterance is one of those that the model is for.
    #[wasm_bindgen(js_name = inDomain)]
    pub fn in_domain(&self) -> Option<f32> {
        self.0.in_domain()
    }

    /// Words read so far.
    pub fn words(&self) -> usize {
        self.0.words()
    }

    /// How many words can be taken back now.
    pub fn undoable(&self) -> usize {
        self.0.undoable()
    }

    /// How many labels, from the start, will never be edited again.
    pub fn committed(&self) -> usize {
        self.0.committed()
    }

    /// The first word whose label is still held.
    pub fn first(&self) -> usize {
        self.0.first()
    }

    /// Bytes that the session holds, its model not included.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
