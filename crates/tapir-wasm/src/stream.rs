//! Messages of the protocol, as `tapir stream` and `tapir serve` answer them.

use tapir::SessionOptions;
use tapir::protocol::Streams;
use wasm_bindgen::prelude::*;

use crate::error::{Result, error, refused};
use crate::input::text;

/// Sessions of one stream at once, as `tapir stream` has them.
const MOST_SESSIONS: usize = 1000;

/// Answers messages of the protocol.
#[wasm_bindgen]
pub struct Stream(Streams);

impl Stream {
    pub(crate) fn new(model: &tapir::Model, options: SessionOptions) -> Result<Self> {
        Streams::new(MOST_SESSIONS, model, options).map(Self).map_err(refused)
    }
}

#[wasm_bindgen]
impl Stream {
    /// Answers a message, both as JSON; what is wrong with it is said in the answer.
    pub fn answer(&mut self, message: &JsValue) -> Result<String> {
        let message = text(message, "a message")?;
        serde_json::to_string(&self.0.answer(&message)).map_err(error)
    }
}
