//! Messages of a stream: what a recogniser sends, what it is answered. JSON in, JSON out; see
//! `docs/protocol.md`.
//!
//! A client's words are what it calls words: `tomorrow.`, `What's`, `PLAY`. A model has words of
//! its own, which its [`Tokenizer`] makes of them. A [`ClientSession`] stands between the two: it
//! is given the client's words, and takes back as many of them as it is asked to.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::edit::is_false;
use crate::heard::check_heard;
use crate::session_options::{check_settled, check_threshold};
use crate::{Error, Label, Model, Result, Session, SessionOptions, Span, Tokenizer, Update};

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
    /// From the next answer on, says what will stay as it is with this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<f32>,
    /// With `push` or `update`: how sure the recogniser is that its words stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stability: Option<Stability>,
}

/// How likely it is, as a recogniser has it, that its words stay, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a list of one for each word")]
pub enum Stability {
    /// Of all words of a message alike.
    All(f32),
    /// Of each of them.
    Each(Vec<f32>),
}

impl Stability {
    /// One number for each of so many words; an error if there are more or fewer.
    pub fn each(self, words: usize) -> Result<Vec<f32>> {
        match self {
            Self::All(stability) => Ok(vec![stability; words]),
            Self::Each(stabilities) if stabilities.len() == words => Ok(stabilities),
            Self::Each(stabilities) => {
                let reason = format!("has {} numbers for {words} words", stabilities.len());
                Err(Error::invalid("`stability`", reason))
            }
        }
    }
}

/// The one thing that a message asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Reads a word of the client's.
    Push(Words),
    /// Takes a whole new hypothesis.
    Update(Words),
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
    /// From the next answer on, says what will stay as it is with this probability.
    Settled(f32),
}

impl Operation {
    /// Refuses numbers that no session takes.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Threshold(threshold) => check_threshold(*threshold),
            Self::Settled(probability) => check_settled(*probability),
            Self::Push(words) | Self::Update(words) => {
                words.stabilities.iter().try_for_each(|stability| check_heard(*stability))
            }
            _ => Ok(()),
        }
    }

    /// The words that are read, where they are others than the client's.
    pub fn words(&self) -> Option<Vec<String>> {
        match self {
            Self::Push(words) | Self::Update(words) if words.changed => Some(words.made.clone()),
            _ => None,
        }
    }

    /// A message that asks for the same of a session that takes words as they are, apart by spaces:
    /// for whoever passes on what it was asked. An error if a word has a space in it.
    ///
    /// ```
    /// use tapir::{Tokenizer, protocol::Request};
    /// let operation = Request::parse(r#"{"push": "What's"}"#)?.operation(Tokenizer::Spoken)?;
    /// let passed_on = operation.to_request()?;
    /// assert_eq!(passed_on.push.as_deref(), Some("what s"));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn to_request(&self) -> Result<Request> {
        let mut request = Request::default();
        match self {
            Self::Push(words) => {
                request.push = Some(words.to_given()?.concat());
                request.stability = words.stability();
            }
            Self::Update(words) => {
                request.update = Some(words.to_given()?);
                request.stability = words.stability();
            }
            Self::Revoke(words) => request.revoke = Some(*words),
            Self::Finish => request.finish = true,
            Self::Reset => request.reset = true,
            Self::Close => request.close = true,
            Self::Threshold(threshold) => request.threshold = Some(*threshold),
            Self::Settled(probability) => request.settled = Some(*probability),
        }
        Ok(request)
    }
}

/// Words of a client, as a model reads them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    /// The model's words.
    made: Vec<String>,
    /// How many of them each of the client's words became.
    sizes: Vec<usize>,
    /// How sure the recogniser is of each of the client's words; none if it did not say.
    stabilities: Vec<f32>,
    /// Are they others than the client's?
    changed: bool,
}

impl Words {
    /// What a tokenizer makes of each of a client's words: one word, several, or none at all.
    ///
    /// ```
    /// use tapir::{Tokenizer, protocol::Words};
    /// let words = Words::new(["What's", "on", ",", "tomorrow?"], Tokenizer::Spoken);
    /// assert_eq!(words.words(), ["what", "s", "on", "tomorrow"]);
    /// ```
    pub fn new<W: AsRef<str>>(given: impl IntoIterator<Item = W>, tokenizer: Tokenizer) -> Self {
        let mut all = Self::default();
        for given in given {
            let given = given.as_ref();
            let before = all.made.len();
            all.made.extend(tokenizer.words(given));
            all.changed |= all.made[before..] != [given];
            all.sizes.push(all.made.len() - before);
        }
        all
    }

    /// Words that are taken as they are.
    pub fn as_they_are(words: Vec<String>) -> Self {
        Self { sizes: vec![1; words.len()], made: words, ..Self::default() }
    }

    /// With what the recogniser says of the client's words; an error if it says it of more of them
    /// or of fewer.
    pub fn with_stability(mut self, stability: Stability) -> Result<Self> {
        self.stabilities = stability.each(self.sizes.len())?;
        Ok(self)
    }

    fn stability(&self) -> Option<Stability> {
        (!self.stabilities.is_empty()).then(|| Stability::Each(self.stabilities.clone()))
    }

    /// The model's words, each as sure as the client's that it was made of.
    fn heard(&self) -> impl Iterator<Item = (&str, f32)> {
        let said = self.stabilities.iter().copied().chain(std::iter::repeat(1.0));
        let each = self.sizes.iter().zip(said);
        let each = each.flat_map(|(size, stability)| std::iter::repeat_n(stability, *size));
        self.made.iter().map(String::as_str).zip(each)
    }

    /// The model's words.
    pub fn words(&self) -> &[String] {
        &self.made
    }

    /// Words of a client of which [`Tokenizer::Whitespace`] makes these.
    fn to_given(&self) -> Result<Vec<String>> {
        if let Some(word) = self.made.iter().find(|word| word.contains(char::is_whitespace)) {
            let reason = "has a space in it, and words are passed on apart by spaces; leave it out";
            return Err(Error::invalid(format!("the word `{word}`"), reason));
        }
        let mut made = self.made.iter().map(String::as_str);
        let mut join = |size: &usize| {
            let words: Vec<&str> = made.by_ref().take(*size).collect();
            // Of which nothing is made, but which counts as a word of the client's.
            if words.is_empty() { " ".to_owned() } else { words.join(" ") }
        };
        Ok(self.sizes.iter().map(&mut join).collect())
    }
}

/// A session as a client sees it: in its own words.
pub struct ClientSession {
    /// What computes. Words are given to it through [`begin`](Self::begin) alone.
    pub session: Session,
    /// How many of the model's words each of the client's last words became.
    sizes: VecDeque<usize>,
}

/// The client's words of which the sizes are known: more than any session takes back.
const MOST_SIZES: usize = 1 << 16;

impl ClientSession {
    /// Of a session that has read nothing.
    pub fn new(session: Session) -> Self {
        Self { session, sizes: VecDeque::new() }
    }

    /// Gives the session what it is asked for, without computing it: see
    /// [`batch`](crate::batch). An error changes nothing.
    pub fn begin(&mut self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Push(words) => {
                self.session.begin_read_with(words.heard())?;
                self.sizes.extend(&words.sizes);
            }
            Operation::Update(words) => {
                self.session.begin_update_with(words.heard())?;
                self.sizes.clear();
                self.sizes.extend(&words.sizes);
            }
            Operation::Revoke(words) => {
                let known = self.sizes.len();
                if *words > known {
                    let available = self.session.undoable().min(known);
                    return Err(Error::Undo { asked: *words, available });
                }
                let left = known - words;
                self.session.begin_revoke(self.sizes.range(left..).sum())?;
                self.sizes.truncate(left);
            }
            Operation::Finish => self.session.begin_finish()?,
            Operation::Reset | Operation::Close => {
                self.session.reset();
                self.sizes.clear();
            }
            Operation::Threshold(threshold) => self.session.set_threshold(*threshold)?,
            Operation::Settled(probability) => self.session.set_settled(*probability)?,
        }
        let excess = self.sizes.len().saturating_sub(MOST_SIZES);
        self.sizes.drain(..excess);
        Ok(())
    }

    /// What is answered when everything is computed; before that it is [`Error::Busy`], and changes
    /// nothing.
    pub fn respond(&mut self, operation: &Operation) -> Result<Response> {
        let Self { session, .. } = self;
        let mut response = Response { words: operation.words(), ..Response::default() };
        match operation {
            Operation::Reset
            | Operation::Close
            | Operation::Threshold(_)
            | Operation::Settled(_) => return Ok(response),
            Operation::Finish => {
                // Asked for before the update, after which the session may forget old rows.
                response.first = Some(session.first());
                response.labels = Some(session.labels());
                response.spans = Some(session.spans());
            }
            _ => {}
        }
        response.update = Some(session.take_update()?);
        Ok(response)
    }
}

impl Request {
    /// Reads a message.
    ///
    /// ```
    /// use tapir::{Tokenizer, protocol::{Operation, Request}};
    /// let request = Request::parse(r#"{"revoke": 2}"#)?;
    /// assert_eq!(request.operation(Tokenizer::Spoken)?, Operation::Revoke(2));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        // Of an array serde takes the elements as the fields, in their order.
        let array = text.trim_start().starts_with('[');
        let other = |what: &str| Err(serde::de::Error::custom(what));
        let parsed = match text.trim() {
            "" => other("an empty line"),
            _ if array => other("an array, not an object"),
            _ => serde_json::from_str(text),
        };
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

    /// What is asked for: exactly one thing. Words are made by a tokenizer: the model's, or
    /// [`Tokenizer::Whitespace`] for words that are to be read as they are.
    pub fn operation(self, tokenizer: Tokenizer) -> Result<Operation> {
        let Self {
            session: _,
            push,
            update,
            revoke,
            finish,
            reset,
            close,
            threshold,
            settled,
            stability,
        } = self;
        if push.as_ref().is_some_and(String::is_empty)
            || update.iter().flatten().any(String::is_empty)
        {
            return Err(Error::EmptyWord);
        }
        if stability.is_some() && push.is_none() && update.is_none() {
            return Err(Error::invalid("`stability`", "comes without push or update"));
        }
        let said = |words: Words| match stability.clone() {
            Some(stability) => words.with_stability(stability),
            None => Ok(words),
        };
        let push = push.map(|word| said(Words::new([word], tokenizer))).transpose()?;
        let update = update.map(|words| said(Words::new(words, tokenizer))).transpose()?;
        let mut given = [
            push.map(Operation::Push),
            update.map(Operation::Update),
            revoke.map(Operation::Revoke),
            finish.then_some(Operation::Finish),
            reset.then_some(Operation::Reset),
            close.then_some(Operation::Close),
            threshold.map(Operation::Threshold),
            settled.map(Operation::Settled),
        ]
        .into_iter()
        .flatten();
        match (given.next(), given.next()) {
            (Some(operation), None) => operation.check().map(|()| operation),
            _ => Err(Error::invalid(
                "the message",
                "has none or several of push, update, revoke, finish, reset, close, threshold and settled; expected one",
            )),
        }
    }
}

/// What a client is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The session that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// This is the first pass's answer; the revision that the policy asked for follows as an answer
    /// of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub provisional: bool,
    /// The words that were read, where they are others than those that were sent: positions count
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<String>>,
    /// What changed.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    /// After `finish`: the word, from 0, at which `labels` begin. It is 0 unless the session was so
    /// long that it has forgotten its first words; whoever replays the edits has their labels.
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
    tokenizer: Tokenizer,
    sessions: HashMap<Option<String>, ClientSession>,
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
        let tokenizer = model.config().tokenizer;
        Ok(Self { model: model.clone(), options, tokenizer, sessions: HashMap::new(), limit })
    }

    /// Takes words as they are, apart by spaces, instead of giving them to the model's tokenizer.
    #[must_use]
    pub fn pretokenized(mut self) -> Self {
        self.tokenizer = Tokenizer::Whitespace;
        self
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
        let operation = request.operation(self.tokenizer)?;
        if operation == Operation::Close {
            self.sessions.remove(&name);
            return Ok(());
        }
        if !self.sessions.contains_key(&name) && self.sessions.len() >= self.limit {
            let reason = format!("there are {} already; close one first", self.limit);
            return Err(Error::invalid("a new session", reason));
        }
        let start = || ClientSession::new(Session::new(self.model.clone(), self.options));
        let stream = self.sessions.entry(name).or_insert_with(start);
        stream.begin(&operation)?;
        stream.session.compute();
        *response = Response { session: response.session.take(), ..stream.respond(&operation)? };
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
    fn words_are_those_of_the_models_tokenizer_and_taken_back_as_they_were_given() {
        let mut parts = crate::doctest::parts();
        parts.config.tokenizer = Tokenizer::Spoken;
        let model = parts.load().unwrap();
        let mut streams = Streams::new(2, &model, SessionOptions::new()).unwrap();
        let answer = streams.answer(r#"{"push": "PLAY"}"#);
        assert_eq!(answer.words.unwrap(), ["play"]);
        assert_eq!(streams.answer(r#"{"push": "jazz"}"#).words, None);
        let answer = streams.answer(r#"{"push": "What's on"}"#);
        assert_eq!(answer.words.unwrap(), ["what", "s", "on"]);
        assert_eq!(answer.update.unwrap().step, 5);
        // Nothing to read, and yet a word of the client's.
        let answer = streams.answer(r#"{"push": "..."}"#);
        assert_eq!((answer.words.unwrap().len(), answer.update.unwrap().step), (0, 5));
        assert_eq!(streams.answer(r#"{"revoke": 1}"#).update.unwrap().step, 5);
        assert_eq!(streams.answer(r#"{"revoke": 1}"#).update.unwrap().step, 2);
        assert!(streams.answer(r#"{"revoke": 3}"#).error.is_some());
        let answer = streams.answer(r#"{"update": ["Play,", "JAZZ", "now!"]}"#);
        assert_eq!(answer.words.unwrap(), ["play", "jazz", "now"]);
        assert_eq!(streams.answer(r#"{"revoke": 2}"#).update.unwrap().step, 1);

        let mut streams = Streams::new(2, &model, SessionOptions::new()).unwrap().pretokenized();
        assert_eq!(streams.answer(r#"{"push": "PLAY!"}"#).words, None);
    }

    #[test]
    fn a_recogniser_says_how_sure_it_is_of_its_words() {
        let parts = crate::doctest::with_intents(crate::doctest::parts());
        let model = Model::from_parts(parts).unwrap();
        let mut streams = Streams::new(2, &model, SessionOptions::new()).unwrap();
        let mut stabilities = |line: &str| -> Vec<f32> {
            let edits = streams.answer(line).update.expect("an update").edits;
            edits.iter().map(|edit| edit.stability.expect("a calibrated model")).collect()
        };
        assert!(stabilities(r#"{"push": "play", "stability": 0.25}"#)[0] <= 0.25);
        assert!(stabilities(r#"{"push": "jazz"}"#)[0] > 0.25);
        let two = r#"{"session": "b", "update": ["some", "rock"], "stability": [0.25, 1]}"#;
        let two = stabilities(two);
        assert!(two[0] <= 0.25 && two[1] > 0.25, "{two:?}");
        let mut error = |line: &str| streams.answer(line).error.unwrap_or_default();
        assert!(error(r#"{"push": "x", "stability": 2}"#).contains("is 2, expected 0 to 1"));
        let few = error(r#"{"update": ["a", "b"], "stability": [1]}"#);
        assert!(few.contains("has 1 numbers for 2 words"), "{few}");
        assert!(error(r#"{"revoke": 1, "stability": 1}"#).contains("without push or update"));
        assert!(error(r#"{"push": "x", "stability": "high"}"#).contains("expected a number"));
    }

    #[test]
    fn what_is_passed_on_says_the_same() {
        let line = r#"{"update": ["What's", "on"], "stability": [0.5, 0.75]}"#;
        let operation = Request::parse(line).unwrap().operation(Tokenizer::Spoken).unwrap();
        let again = operation.to_request().unwrap().operation(Tokenizer::Whitespace).unwrap();
        let (Operation::Update(words), Operation::Update(passed_on)) = (operation, again) else {
            panic!("not an update");
        };
        let heard: Vec<_> = words.heard().collect();
        assert_eq!(heard, [("what", 0.5), ("s", 0.5), ("on", 0.75)]);
        assert_eq!(passed_on.heard().collect::<Vec<_>>(), heard);
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
        assert!(error(r#"{"threshold": 3}"#).contains("is 3, expected 0 (revise"));
        assert_eq!(error(r#"{"push": "x", "session": "a"}"#), "");
        assert!(error(r#"{"push": "x", "session": "b"}"#).contains("close one first"));
        assert_eq!(error(r#"{"close": true, "session": "a"}"#), "");
        assert_eq!(error(r#"{"push": "x", "session": "b"}"#), "");
    }
}
