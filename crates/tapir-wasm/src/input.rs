//! What a user may give. Nothing is taken for what it should be: JavaScript gives anything.
//!
//! Whatever may run code of the user's, such as a getter or a proxy, is called by what catches. An
//! exception that passes through the module unwinds nothing: the object that is at work would stay
//! borrowed for good.

use js_sys::{Array, JSON, JsString, Object, Reflect, Uint8Array};
use serde::{Deserialize, Deserializer};
use tapir::{Bytes, FinalPass, Mode, Model, SessionOptions};
use wasm_bindgen::prelude::*;

use crate::error::{Result, error, type_error};

/// Longer texts are refused, before they are copied to memory that is never given back: UTF-16
/// units, as many as a line for `tapir tag` may have bytes.
const LONGEST_TEXT: usize = 1 << 20;

#[wasm_bindgen]
extern "C" {
    /// Throws where a proxy was revoked.
    #[wasm_bindgen(catch, js_namespace = Array, js_name = isArray)]
    fn is_array(value: &JsValue) -> std::result::Result<bool, JsValue>;
    /// Throws where a proxy does.
    #[wasm_bindgen(catch, js_namespace = Object, js_name = keys)]
    fn keys(object: &JsValue) -> std::result::Result<Array, JsValue>;
}

/// Something to label.
pub(crate) enum Given {
    /// A text, of which the model's tokenizer makes words.
    Text(String),
    /// Words, taken as they are.
    Words(Vec<String>),
}

impl Given {
    pub(crate) fn of(value: &JsValue) -> Result<Self> {
        if value.is_string() {
            return text(value, "a text").map(Self::Text);
        }
        if is_array(value)? {
            return words(value).map(Self::Words);
        }
        Err(type_error(format!("expected a text or an array of words, not {}", kind(value))))
    }

    /// The words that a model reads.
    pub(crate) fn words(self, model: &Model) -> Vec<String> {
        match self {
            Self::Text(text) => model.config().tokenizer.words(&text),
            Self::Words(words) => words,
        }
    }
}

/// The words of an array.
fn words(array: &JsValue) -> Result<Vec<String>> {
    let length = count(&Reflect::get(array, &"length".into())?, "the length of an array")?;
    // No word is empty, and as a text they would have something between them.
    if length > LONGEST_TEXT / 2 {
        let most = LONGEST_TEXT / 2;
        return Err(error(format!("{length} words are more than the limit of {most}; split them")));
    }
    let mut words = Vec::new();
    let mut total = 0;
    for index in 0..length {
        let word = Reflect::get_u32(array, index as u32)?;
        total += units(&word, "a word")? + 1;
        if total > LONGEST_TEXT {
            return Err(too_long("words", total));
        }
        words.push(text(&word, "a word")?);
    }
    Ok(words)
}

/// A text. Halves of surrogate pairs that stand alone become U+FFFD, as everywhere on the web.
pub(crate) fn text(value: &JsValue, what: &str) -> Result<String> {
    let units = units(value, what)?;
    if units > LONGEST_TEXT {
        return Err(too_long(what, units));
    }
    Ok(value.as_string().unwrap_or_default())
}

/// How long a text is, as JavaScript counts.
fn units(value: &JsValue, what: &str) -> Result<usize> {
    match value.dyn_ref::<JsString>() {
        Some(text) => Ok(text.length() as usize),
        None => Err(type_error(format!("{what} is a string, not {}", kind(value)))),
    }
}

fn too_long(what: &str, units: usize) -> JsValue {
    error(format!("{what}: {units} characters are more than the limit of {LONGEST_TEXT}; split it"))
}

/// A whole number that is not negative.
pub(crate) fn count(value: &JsValue, what: &str) -> Result<usize> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0);
    match number {
        Some(number) if number <= f64::from(i32::MAX) => Ok(number as usize),
        Some(number) => Err(error(format!("{what} is {number}, expected at most {}", i32::MAX))),
        None => Err(type_error(format!("{what} is a whole number from 0 on, not {}", kind(value)))),
    }
}

/// A number.
pub(crate) fn number(value: &JsValue, what: &str) -> Result<f32> {
    let number = value.as_f64().map(|number| number as f32);
    number.ok_or_else(|| type_error(format!("{what} is a number, not {}", kind(value))))
}

/// What a value is, for messages.
fn kind(value: &JsValue) -> String {
    match value.as_f64() {
        Some(number) => number.to_string(),
        None if value.is_null() => "null".into(),
        None if is_array(value).is_ok_and(|is_array| is_array) => "an array".into(),
        None => value.js_typeof().as_string().unwrap_or_default(),
    }
}

/// The files of a model, by their names: `Uint8Array`s or, where they are texts, strings.
pub(crate) fn files(value: &JsValue) -> Result<impl FnMut(&str) -> Option<Bytes>> {
    let wrong = || {
        type_error("expected the files of a model: an object of Uint8Arrays by the files' names")
    };
    if !value.is_object() || is_array(value)? {
        return Err(wrong());
    }
    let object: &Object = value.unchecked_ref();
    for name in keys(object)?.iter() {
        let file = Reflect::get(object, &name)?;
        if file.dyn_ref::<Uint8Array>().is_none() && file.as_string().is_none() {
            let name = name.as_string().unwrap_or_default();
            return Err(type_error(format!(
                "{name}: expected a Uint8Array or a string, not {}",
                kind(&file)
            )));
        }
    }
    let object = object.clone();
    Ok(move |name: &str| {
        // A getter might give something else now than a moment ago.
        let file = Reflect::get(&object, &name.into()).ok()?;
        match file.dyn_ref::<Uint8Array>() {
            Some(bytes) => Some(bytes.to_vec().into()),
            None => file.as_string().map(|text| text.into_bytes().into()),
        }
    })
}

/// A value of JavaScript as one of ours, by its JSON.
pub(crate) fn parse<T: for<'a> Deserialize<'a>>(value: &JsValue, what: &str) -> Result<T> {
    let json = JSON::stringify(value)?.as_string();
    let json = json.ok_or_else(|| type_error(format!("{what}: not {}", kind(value))))?;
    serde_json::from_str(&json).map_err(|reason| type_error(format!("{what}: {reason}")))
}

/// How a session runs.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Options {
    #[serde(deserialize_with = "given")]
    threshold: Option<f32>,
    #[serde(deserialize_with = "given")]
    undo: Option<u32>,
    #[serde(deserialize_with = "given")]
    window: Option<u32>,
    #[serde(deserialize_with = "given")]
    mode: Option<Mode>,
    #[serde(deserialize_with = "given")]
    final_pass: Option<bool>,
    #[serde(deserialize_with = "given")]
    settled: Option<f32>,
}

/// What is left out is none; null, which NaN becomes, is an error.
fn given<'a, T: Deserialize<'a>, D: Deserializer<'a>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

impl Options {
    /// Options that a user gave, or left out.
    pub(crate) fn of(value: &JsValue) -> Result<Self> {
        if value.is_undefined() {
            return Ok(Self::default());
        }
        if !value.is_object() || is_array(value)? {
            return Err(type_error(format!("options are an object, not {}", kind(value))));
        }
        parse(value, "options")
    }

    /// The same for the library.
    pub(crate) fn build(self) -> SessionOptions {
        let mut options = SessionOptions::new();
        if let Some(threshold) = self.threshold {
            options = options.threshold(threshold);
        }
        if let Some(undo) = self.undo {
            options = options.undo(undo as usize);
        }
        if let Some(window) = self.window {
            options = options.window(window as usize);
        }
        if let Some(mode) = self.mode {
            options = options.mode(mode);
        }
        if self.final_pass == Some(false) {
            options = options.final_pass(FinalPass::Policy);
        }
        if let Some(settled) = self.settled {
            options = options.settled(settled);
        }
        options
    }
}
