//! Messages of a stream: what a recogniser sends, what it is answered. JSON in, JSON out; see `docs/protocol.md`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Label, Model, Result, Session, SessionOptions, Span, Update};

/// What a client asks: exactly one of the operations, and the session it is for.
///
/// ```
/// let request: tapir::protocol::Request = serde_json::from_str(r#"{"push": "play"}"#).unwrap();
/// assert_eq!(request.push.as_deref(), Some("play"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Which session; none is a session, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Reads a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// Takes a whole new hypothesis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Vec<String>>,
    /// Takes back so many words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoke: Option<usize>,
    /// Ends the utterance.
    #[serde(skip_serializing_if = "is_false")]
    pub finish: bool,
    /// Starts a new utterance.
    #[serde(skip_serializing_if = "is_false")]
    pub reset: bool,
    /// Forgets the session.
    #[serde(skip_serializing_if = "is_false")]
    pub close: bool,
    /// Sets the threshold from the next word on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f32>,
}

/// The one thing that a message asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Reads a word.
    Push(String),
    /// Takes a whole new hypothesis.
    Update(Vec<String>),
    /// Takes back so many words.
    Revoke(usize),
    /// Ends the utterance.
    Finish,
    /// Starts a new utterance.
    Reset,
    /// Forgets the session.
    Close,
    /// Sets the threshold from the next word on.
    Threshold(f32),
}

impl Operation {
    /// Gives the session what it is asked for, without computing it: see
    /// [`batch`](crate::batch). An error changes nothing.
    pub fn begin(&self, session: &mut Session) -> Result<()> {
        match self {
            Self::Push(word) => session.begin_push(word),
            Self::Update(words) => session.begin_update(words),
            Self::Revoke(words) => session.begin_revoke(*words),
            Self::Finish => session.begin_finish(),
            Self::Reset | Self::Close => {
                session.reset();
                Ok(())
            }
            Self::Threshold(threshold) => session.set_threshold(*threshold),
        }
    }

    /// What is answered when everything is computed; before that it is [`Error::Busy`], and changes
    /// nothing.
    pub fn respond(&self, session: &mut Session) -> Result<Response> {
        let mut response = Response::default();
        if !matches!(self, Self::Reset | Self::Close | Self::Threshold(_)) {
            if *self == Self::Finish {
                // Asked for before the update, after which the session may forget old rows.
                response.first = Some(session.first());
                response.labels = Some(session.labels());
                response.spans = Some(session.spans());
            }
            response.update = Some(session.take_update()?);
        }
        Ok(response)
    }
}

impl Request {
    /// Reads a message.
    ///
    /// ```
    /// use tapir::protocol::{Operation, Request};
    /// let request = Request::parse(r#"{"revoke": 2}"#)?;
    /// assert_eq!(request.operation()?, Operation::Revoke(2));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        // Of an array serde takes the elements as the fields, in their order.
        let array = text.trim_start().starts_with('[');
        let parsed = serde_json::from_str(text).and_then(|request| {
            if array { Err(serde::de::Error::custom("an array, not an object")) } else { Ok(request) }
        });
        parsed.map_err(|error| {
            Error::invalid(
                "not a message",
                format!(
                    "{error}; expected one of {{\"push\": \"word\"}}, {{\"update\": [\"whole\", \
                     \"hypothesis\"]}}, {{\"revoke\": 1}}, {{\"finish\": true}}, {{\"reset\": true}}"
                ),
            )
        })
    }

    /// What is asked for: exactly one thing.
    pub fn operation(self) -> Result<Operation> {
        let Self { session: _, push, update, revoke, finish, reset, close, threshold } = self;
        let mut given = [
            push.map(Operation::Push),
            update.map(Operation::Update),
            revoke.map(Operation::Revoke),
            finish.then_some(Operation::Finish),
            reset.then_some(Operation::Reset),
            close.then_some(Operation::Close),
            threshold.map(Operation::Threshold),
        ]
        .into_iter()
        .flatten();
        match (given.next(), given.next()) {
            (Some(Operation::Threshold(threshold)), None) if !(0.0..=1.0).contains(&threshold) => {
                Err(Error::invalid("`threshold`", format!("is {threshold}, expected 0 to 1")))
            }
            (Some(operation), None) => Ok(operation),
            _ => Err(Error::invalid(
                "the message",
                "has none or several of push, update, revoke, finish, reset, close and threshold; expected one",
            )),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_false(value: &bool) -> bool {
    !value
}

/// What a client is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The session that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// This is the first pass's answer; the revision that the policy asked for follows as an answer of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub provisional: bool,
    /// What changed.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    /// After `finish`: the word, from 0, at which `labels` begin. It is 0 unless the session was so long
    /// that it has forgotten its first words; whoever replays the edits has their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// After `finish`: the labels of all words from `first` on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<Label>>,
    /// After `finish`: the labelled stretches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Vec<Span>>,
    /// What was wrong; the session is as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Response {
    /// The answer to what is not a message.
    pub fn refusal(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }
}

/// The sessions of one connection, by name.
pub struct Streams {
    model: Model,
    options: SessionOptions,
    sessions: HashMap<Option<String>, Session>,
    limit: usize,
}

impl Streams {
    /// At most `limit` sessions of a model at once, each with these options; an error if the model
    /// cannot run so.
    ///
    /// ```
    /// use tapir::{SessionOptions, protocol::Streams};
    /// # let model = tapir::doctest::parts().load()?;
    /// let mut streams = Streams::new(100, &model, SessionOptions::new().undo(8))?;
    /// let answer = streams.answer(r#"{"push": "play", "session": "a"}"#);
    /// assert_eq!(answer.session.as_deref(), Some("a"));
    /// assert!(streams.answer("{").error.is_some());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn new(limit: usize, model: &Model, options: SessionOptions) -> Result<Self> {
        options.check(model)?;
        Ok(Self { model: model.clone(), options, sessions: HashMap::new(), limit })
    }

    /// Answers a line of JSON; whatever is wrong with it is said in the answer.
    pub fn answer(&mut self, line: &str) -> Response {
        match Request::parse(line) {
            Ok(request) => self.handle(request),
            Err(error) => Response::refusal(error.to_string()),
        }
    }

    /// Answers a message.
    pub fn handle(&mut self, request: Request) -> Response {
        let name = request.session.clone();
        let mut response = Response { session: name, ..Response::default() };
        if let Err(error) = self.run(request, &mut response) {
            response.error = Some(error.to_string());
        }
        response
    }

    fn run(&mut self, request: Request, response: &mut Response) -> Result<()> {
        let name = request.session.clone();
        let operation = request.operation()?;
        if operation == Operation::Close {
            self.sessions.remove(&name);
            return Ok(());
        }
        if !self.sessions.contains_key(&name) && self.sessions.len() >= self.limit {
            let reason = format!("there are {} already; close one first", self.limit);
            return Err(Error::invalid("a new session", reason));
        }
        let start = || Session::new(self.model.clone(), self.options);
        let session = self.sessions.entry(name).or_insert_with(start);
        operation.begin(session)?;
        session.compute();
        *response = Response { session: response.session.take(), ..operation.respond(session)? };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams() -> Streams {
        let model = crate::doctest::parts().load().unwrap();
        Streams::new(2, &model, SessionOptions::new()).unwrap()
    }

    #[test]
    fn messages_are_answered_in_json() {
        let mut streams = streams();
        let answer = serde_json::to_value(streams.answer(r#"{"push": "play"}"#)).unwrap();
        assert_eq!((&answer["step"], &answer["edits"][0]["position"]), (&1.into(), &0.into()));
        assert_eq!(answer.get("session"), None);
        streams.answer(r#"{"update": ["play", "jazz"]}"#);
        assert_eq!(streams.answer(r#"{"revoke": 1}"#).update.unwrap().length, 1);
        let end = streams.answer(r#"{"finish": true}"#);
        assert_eq!(end.labels.unwrap().len(), 1);
        let text = serde_json::to_string(&streams.answer(r#"{"reset": true}"#)).unwrap();
        assert_eq!(text, "{}");
        let request = Request { push: Some("a".into()), ..Request::default() };
        assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"push":"a"}"#);
    }

    #[test]
    fn errors_are_answers() {
        let mut streams = streams();
        let mut error = |line: &str| streams.answer(line).error.unwrap_or_default();
        assert!(error("{").contains("not a message"));
        assert!(error(r#"{"pull": "x"}"#).contains("unknown field `pull`"));
        assert!(error(r#"{"push": "x", "revoke": 1}"#).contains("expected one"));
        assert!(error(r#"{"push": ""}"#).contains("empty word"));
        assert!(error(r#"{"revoke": 1}"#).contains("cannot be taken back"));
        assert!(error(r#"{"threshold": 3}"#).contains("is 3, expected 0 to 1"));
        assert_eq!(error(r#"{"push": "x", "session": "a"}"#), "");
        assert!(error(r#"{"push": "x", "session": "b"}"#).contains("close one first"));
        assert_eq!(error(r#"{"close": true, "session": "a"}"#), "");
        assert_eq!(error(r#"{"push": "x", "session": "b"}"#), "");
    }
}
