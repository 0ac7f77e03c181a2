//! The life of a session, and what an answer says of it: all that another worker needs to go on.

use async_nats::header::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use tapir::protocol::Operation;

/// Headers that a client may set on the first message of a session; they are the parameters of the
/// server's address.
const MODEL: &str = "Tapir-Model";
const THRESHOLD: &str = "Tapir-Threshold";
const SETTLED: &str = "Tapir-Settled";
const PROVISIONAL: &str = "Tapir-Provisional";
const PRETOKENIZED: &str = "Tapir-Pretokenized";
/// The sequence of the message that an answer answers.
pub(crate) const INPUT: &str = "Tapir-Input";
/// Whether it is the last answer to that message, or another follows.
const ANSWER: &str = "Tapir-Answer";
/// The session's life after this answer; absent when it has ended.
const LIFE: &str = "Tapir-Life";

const LAST: &str = "last";
const PROVISIONAL_ANSWER: &str = "provisional";

/// How a client wants its session run.
///
/// ```
/// use tapir_nats::Options;
/// let options = Options { threshold: Some(0.3), ..Options::default() };
/// assert_eq!(Options::from_headers(Some(&options.headers())), Ok(options));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Which model; the workers' default without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Revise when the policy value reaches this, 0 to 1; the model's own without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f32>,
    /// Say what will stay as it is with this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<f32>,
    /// One answer per message: none before a revision.
    pub one_answer: bool,
    /// Take words as they are, instead of giving them to the model's tokenizer.
    pub pretokenized: bool,
}

impl Options {
    /// As headers of a session's first message.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(model) = &self.model {
            headers.insert(MODEL, model.as_str());
        }
        if let Some(threshold) = self.threshold {
            headers.insert(THRESHOLD, threshold.to_string());
        }
        if let Some(settled) = self.settled {
            headers.insert(SETTLED, settled.to_string());
        }
        if self.one_answer {
            headers.insert(PROVISIONAL, "false");
        }
        if self.pretokenized {
            headers.insert(PRETOKENIZED, "true");
        }
        headers
    }

    /// From headers; what is wrong with them, and what to do.
    pub fn from_headers(headers: Option<&HeaderMap>) -> Result<Self, String> {
        let text = |name| headers.and_then(|headers| headers.get(name)).map(HeaderValue::as_str);
        let flag = |name, default| match text(name) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(format!("`{name}` is `{other}`, expected true or false")),
        };
        let number = |name, operation: fn(f32) -> Operation| {
            let read = |text: &str| {
                let number = text.parse::<f32>();
                let number =
                    number.map_err(|_| format!("`{name}` is `{text}`, expected a number"))?;
                operation(number).check().map_err(|error| format!("`{name}`: {error}"))?;
                Ok::<f32, String>(number)
            };
            text(name).map(read).transpose()
        };
        Ok(Self {
            model: text(MODEL).map(str::to_owned),
            threshold: number(THRESHOLD, Operation::Threshold)?,
            settled: number(SETTLED, Operation::Settled)?,
            one_answer: !flag(PROVISIONAL, true)?,
            pretokenized: flag(PRETOKENIZED, false)?,
        })
    }
}

/// A session from its first message, or its last reset, on. Its state is a function of this and of
/// the messages from `start` on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Life {
    /// The message from which on it is read again.
    pub(crate) start: u64,
    /// Which model runs it.
    pub(crate) digest: String,
    /// How; the threshold is that at `start`.
    #[serde(flatten)]
    pub(crate) options: Options,
}

/// Which answer of a session: they are totally ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// The sequence of the message that it answers.
    pub(crate) input: u64,
    /// The last answer to it, not the provisional one.
    pub(crate) last: bool,
}

/// The headers of an answer.
pub(crate) fn answer_headers(position: Position, life: Option<&Life>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(INPUT, position.input.to_string());
    headers.insert(ANSWER, if position.last { LAST } else { PROVISIONAL_ANSWER });
    if let Some(life) = life {
        // Numbers and names, which JSON can always say.
        headers.insert(LIFE, serde_json::to_string(life).unwrap_or_default());
    }
    headers
}

/// What an answer's headers say.
pub(crate) fn read_answer_headers(headers: &HeaderMap) -> Result<(Position, Option<Life>), String> {
    let text = |name| headers.get(name).map(HeaderValue::as_str);
    let input = text(INPUT).and_then(|text| text.parse().ok());
    let input = input.ok_or_else(|| format!("`{INPUT}` is missing or not a number"))?;
    let last = match text(ANSWER) {
        Some(LAST) => true,
        Some(PROVISIONAL_ANSWER) => false,
        other => return Err(format!("`{ANSWER}` is {other:?}")),
    };
    let life = text(LIFE).map(serde_json::from_str).transpose();
    let life = life.map_err(|error| format!("`{LIFE}`: {error}"))?;
    Ok((Position { input, last }, life))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_ordered_by_what_they_answer() {
        let at = |input, last| Position { input, last };
        let order = [at(0, true), at(3, false), at(3, true), at(4, false)];
        assert!(order.is_sorted());
    }

    #[test]
    fn headers_say_what_they_were_told() {
        let options = Options {
            threshold: Some(0.1),
            settled: Some(0.95),
            pretokenized: true,
            ..Options::default()
        };
        let life = Life { start: 7, digest: "ab".into(), options };
        let position = Position { input: 9, last: false };
        let headers = answer_headers(position, Some(&life));
        assert_eq!(read_answer_headers(&headers), Ok((position, Some(life))));
        assert!(read_answer_headers(&HeaderMap::new()).unwrap_err().contains(INPUT));
    }

    #[test]
    fn wrong_headers_are_named() {
        for (name, value) in
            [(THRESHOLD, "2"), (SETTLED, "0"), (PROVISIONAL, "maybe"), (PRETOKENIZED, "")]
        {
            let mut headers = HeaderMap::new();
            headers.insert(name, value);
            assert!(Options::from_headers(Some(&headers)).unwrap_err().contains(name));
        }
    }
}
