//! What a user is given: plain objects, of the shape that the types of the library have as JSON.

use js_sys::JSON;
use serde::Serialize;
use tapir::{Intent, Label, Span};
use wasm_bindgen::prelude::*;

use crate::error::{Result, error};

/// A value of ours as one of JavaScript. By way of JSON, which engines read faster than they take
/// an object field by field.
pub(crate) fn object(value: &impl Serialize) -> Result<JsValue> {
    JSON::parse(&serde_json::to_string(value).map_err(error)?)
}

/// A text with its labels.
#[derive(Serialize)]
pub(crate) struct Tagged {
    pub(crate) words: Vec<String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) probabilities: Vec<f32>,
    /// Where each word begins and ends in the text, as JavaScript counts; none if words were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offsets: Option<Vec<[usize; 2]>>,
    pub(crate) spans: Vec<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) intent: Option<Intent>,
}

/// What can be known of a model.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Info<'a> {
    pub(crate) task: &'a str,
    pub(crate) labels: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) intents: Option<Vec<&'a str>>,
    pub(crate) scheme: tapir::Scheme,
    pub(crate) mode: tapir::Mode,
    pub(crate) threshold: f32,
    pub(crate) delay: usize,
    pub(crate) max_length: usize,
    pub(crate) calibrated: bool,
    pub(crate) kernels: &'static str,
}
