//! A model: loaded once, shared by its sessions.

use tapir::{Config, Parts, Token};
use wasm_bindgen::prelude::*;

use crate::error::{Result, error, refused};
use crate::input::{Given, Options, files, text};
use crate::output::{Info, Tagged, object};
use crate::session::Session;
use crate::stream::Stream;

/// Longer sentences than this are refused, as by `tapir tag`: all their labels are kept.
const LONGEST_SENTENCE: usize = 10_000;

/// A model that labels words.
#[wasm_bindgen]
pub struct Model(tapir::Model);

#[wasm_bindgen]
impl Model {
    /// Of the files of a model directory, by their names.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<Self> {
        let parts = Parts::from_files(files(given)?).map_err(refused)?;
        Ok(Self(parts.load().map_err(refused)?))
    }

    /// The files that a model with this `config.json` has beside it; its vectors, if any, are last.
    pub fn files(config: &JsValue) -> Result<Vec<String>> {
        let json = text(config, "a configuration")?;
        let config = Config::from_json(&json, "config.json").map_err(refused)?;
        Ok(config.files().into_iter().map(str::to_owned).collect())
    }

    /// Starts a session.
    pub fn session(&self, options: &JsValue) -> Result<Session> {
        let options = Options::of(options)?.build();
        self.0.session_with(options).map(Session::new).map_err(refused)
    }

    /// Starts what answers messages of the protocol.
    pub fn stream(&self, options: &JsValue) -> Result<Stream> {
        Stream::new(&self.0, Options::of(options)?.build())
    }

    /// Labels a text, or words that are taken as they are.
    pub fn tag(&self, what: &JsValue, options: &JsValue) -> Result<JsValue> {
        // With so much undo a session holds every label until the sentence is taken.
        let options = Options::of(options)?.build().undo(LONGEST_SENTENCE);
        let mut session = self.0.session_with(options).map_err(refused)?;
        let (words, offsets) = match Given::of(what)? {
            Given::Words(words) => {
                check_length(words.len())?;
                (words, None)
            }
            Given::Text(text) => {
                let tokens = self.0.config().tokenizer.tokens(&text);
                check_length(tokens.len())?;
                let offsets = units(&text, &tokens);
                (tokens.into_iter().map(|token| token.word).collect(), Some(offsets))
            }
        };
        for word in &words {
            session.push(word).map_err(refused)?;
        }
        let labels = session.finish().map_err(refused)?.labels;
        object(&Tagged {
            words,
            labels,
            probabilities: session.probabilities(),
            offsets,
            spans: session.spans(),
            intent: session.intent(),
        })
    }

    /// The words that the model reads of a text.
    pub fn words(&self, what: &JsValue) -> Result<Vec<String>> {
        Ok(self.0.config().tokenizer.words(&text(what, "a text")?))
    }

    /// What can be known of the model.
    pub fn info(&self) -> Result<JsValue> {
        let (model, config) = (&self.0, self.0.config());
        let names = |labels: &'_ tapir::Labels| labels.iter().map(ToString::to_string).collect();
        let labels: Vec<String> = names(model.labels());
        let intents: Option<Vec<String>> = model.intents().map(names);
        object(&Info {
            task: &config.task,
            labels: labels.iter().map(String::as_str).collect(),
            intents: intents.as_ref().map(|all| all.iter().map(String::as_str).collect()),
            scheme: config.scheme,
            mode: model.default_mode(),
            threshold: config.threshold,
            delay: config.delay,
            max_length: config.max_length,
            calibrated: config.calibration.labels.is_some(),
            kernels: tapir::kernels::isa().name(),
        })
    }
}

fn check_length(words: usize) -> Result<()> {
    if words <= LONGEST_SENTENCE {
        return Ok(());
    }
    Err(error(format!(
        "{words} words are more than the {LONGEST_SENTENCE} of the longest sentence; split it"
    )))
}

/// Where tokens begin and end as JavaScript counts, in units of UTF-16; they themselves count
/// characters.
fn units(text: &str, tokens: &[Token]) -> Vec<[usize; 2]> {
    let mut starts: Vec<usize> = Vec::with_capacity(text.len() + 1);
    let mut length = 0;
    for c in text.chars() {
        starts.push(length);
        length += c.len_utf16();
    }
    starts.push(length);
    let unit = |character: usize| starts.get(character).copied().unwrap_or(length);
    tokens.iter().map(|token| [unit(token.start), unit(token.end)]).collect()
}
