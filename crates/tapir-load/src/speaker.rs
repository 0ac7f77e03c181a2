//! One stream's side of a load: says a sentence after the other, word by word.
//!
//! Latency is counted from the moment a word was due, not from when it was sent, so that a server
//! that makes its clients wait cannot hide it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::connect::{PATIENCE, Socket};
use crate::script::Script;

/// Words of a stream that are not answered yet; the next ones wait, and their latency grows.
const IN_FLIGHT: usize = 8;

/// What streams saw; times in milliseconds from when a word was due.
#[derive(Default)]
pub(crate) struct Seen {
    /// To the first answer.
    pub(crate) first: Vec<f64>,
    /// To the last answer.
    pub(crate) last: Vec<f64>,
    /// Words that were answered.
    pub(crate) words: usize,
    /// Words at which the policy revised.
    pub(crate) revised: usize,
    /// Sentences whose labels were compared with those that are right.
    pub(crate) compared: usize,
    pub(crate) errors: usize,
    pub(crate) error: Option<String>,
}

impl Seen {
    pub(crate) fn fail(&mut self, error: String) {
        self.errors += 1;
        self.error.get_or_insert(error);
    }
}

/// What all streams saw. They run on one thread, so that nobody waits for the lock.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Seen>>);

impl Shared {
    pub(crate) fn note<T>(&self, note: impl FnOnce(&mut Seen) -> T) -> T {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was seen since this was asked last.
    pub(crate) fn take(&self) -> Seen {
        self.note(std::mem::take)
    }
}

/// One stream's side.
#[derive(Clone)]
pub(crate) struct Speaker {
    pub(crate) script: Arc<Script>,
    /// At which sentence it is, and at which word of it.
    pub(crate) at: (usize, usize),
    /// Between words; none for the next as soon as one is answered.
    pub(crate) interval: Option<Duration>,
    /// Words that are due before this are not counted.
    pub(crate) from: Instant,
    /// It ends when it has been answered what was due before this.
    pub(crate) until: Instant,
    pub(crate) seen: Shared,
}

/// A message that is not answered yet.
struct Sent {
    due: Instant,
    what: What,
    answered: bool,
}

impl Sent {
    /// Since it was due.
    fn milliseconds(&self) -> f64 {
        self.due.elapsed().as_secs_f64() * 1e3
    }
}

/// What was asked.
enum What {
    Word,
    /// The sentence that is finished, if its labels are known: a stream may begin in its middle.
    Finish(Option<usize>),
    Reset,
}

/// What is read of the answer to `finish`.
#[derive(Deserialize)]
struct Finished {
    /// The word at which the labels start.
    #[serde(default)]
    first: usize,
    labels: Vec<String>,
}

impl Speaker {
    /// Speaks from `due` on; false if the stream failed, which is noted.
    pub(crate) async fn speak(mut self, socket: Socket, mut due: Instant) -> bool {
        let (mut sink, mut source) = socket.split();
        let mut sent: VecDeque<Sent> = VecDeque::new();
        let mut whole = self.at.1 == 0;
        loop {
            let now = Instant::now();
            if now >= self.until && sent.is_empty() {
                break;
            }
            let room = if self.interval.is_some() { IN_FLIGHT } else { 1 };
            let may_speak = now < self.until && sent.len() < room;
            let waited = sent.front().map_or(self.until, |head| head.due + PATIENCE);
            let next = if self.interval.is_none() { now } else { due };
            let result = tokio::select! {
                biased;
                answer = source.next(), if !sent.is_empty() => self.hear(answer, &mut sent),
                () = sleep_until(next.min(self.until)), if may_speak => {
                    if next >= self.until {
                        continue;
                    }
                    due += self.interval.unwrap_or_default();
                    self.say(&mut sink, &mut whole, next, &mut sent).await
                }
                () = sleep_until(waited), if !may_speak => {
                    if sent.is_empty() { Ok(()) } else { Err(late()) }
                }
            };
            if let Err(error) = result {
                // An answer that never comes is a late one.
                let missing = sent.iter().filter(|sent| !sent.answered && self.counts(sent));
                self.seen.note(|seen| {
                    seen.first.extend(missing.map(Sent::milliseconds));
                    seen.fail(error);
                });
                return false;
            }
        }
        leave(sink, source).await;
        true
    }

    /// Says the next word; after the last one of a sentence, that it is finished and a new one
    /// begins.
    async fn say(
        &mut self,
        sink: &mut SplitSink<Socket, Message>,
        whole: &mut bool,
        due: Instant,
        sent: &mut VecDeque<Sent>,
    ) -> Result<(), String> {
        let failed = |error: tungstenite::Error| error.to_string();
        let (index, word) = self.at;
        let sentence = &self.script.sentences[index];
        sink.feed(Message::Text(sentence.pushes[word].clone())).await.map_err(failed)?;
        sent.push_back(Sent { due, what: What::Word, answered: false });
        self.at.1 += 1;
        if self.at.1 == sentence.pushes.len() {
            self.at = ((index + 1) % self.script.sentences.len(), 0);
            let finished = What::Finish(whole.then_some(index));
            *whole = true;
            for (message, what) in
                [(r#"{"finish":true}"#, finished), (r#"{"reset":true}"#, What::Reset)]
            {
                sink.feed(Message::text(message)).await.map_err(failed)?;
                sent.push_back(Sent { due, what, answered: false });
            }
        }
        sink.flush().await.map_err(failed)
    }

    fn hear(
        &self,
        answer: Option<Result<Message, tungstenite::Error>>,
        sent: &mut VecDeque<Sent>,
    ) -> Result<(), String> {
        let text = match answer {
            None => return Err("the server closed the stream".to_owned()),
            Some(Err(error)) => return Err(error.to_string()),
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(frame))) => {
                return Err(format!("the server closed the stream: {frame:?}"));
            }
            Some(Ok(_)) => return Ok(()),
        };
        // Answers are looked at and not parsed: the generator shares the machine with the server.
        if text.contains("\"error\":") {
            return Err(text.to_string());
        }
        let provisional = text.contains("\"provisional\":true");
        let Some(head) = sent.front_mut() else {
            return Err(format!("an answer to nothing: {text}"));
        };
        if self.counts(head) {
            let milliseconds = head.milliseconds();
            self.seen.note(|seen| {
                if !head.answered {
                    seen.first.push(milliseconds);
                }
                if !provisional {
                    seen.last.push(milliseconds);
                    seen.words += 1;
                    seen.revised += usize::from(text.contains("\"REVISE\""));
                }
            });
        }
        if let What::Finish(Some(sentence)) = head.what {
            self.compare(sentence, &text)?;
        }
        head.answered = true;
        if !provisional {
            sent.pop_front();
        }
        Ok(())
    }

    /// Is it a word that is measured?
    fn counts(&self, sent: &Sent) -> bool {
        matches!(sent.what, What::Word) && sent.due >= self.from && sent.due < self.until
    }

    /// Are the labels of a sentence, where they are known, right?
    fn compare(&self, sentence: usize, answer: &str) -> Result<(), String> {
        let Some(expected) = &self.script.sentences[sentence].labels else { return Ok(()) };
        let finished: Finished =
            serde_json::from_str(answer).map_err(|error| format!("{error}: {answer}"))?;
        if expected.get(finished.first..) != Some(&finished.labels) {
            return Err(format!("expected the labels {expected:?}, was answered {answer}"));
        }
        self.seen.note(|seen| seen.compared += 1);
        Ok(())
    }
}

fn late() -> String {
    format!("no answer for {} seconds", PATIENCE.as_secs())
}

async fn leave(mut sink: SplitSink<Socket, Message>, mut source: SplitStream<Socket>) {
    let _ = timeout(PATIENCE, async {
        let _ = sink.send(Message::Close(None)).await;
        while let Some(Ok(_)) = source.next().await {}
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Sentence;

    #[test]
    fn labels_that_differ_are_noticed() {
        let labels = Some(vec!["O".to_owned(), "B-genre".to_owned()]);
        let script = Script { sentences: vec![Sentence { pushes: Vec::new(), labels }] };
        let (script, now) = (Arc::new(script), Instant::now());
        let seen = Shared::default();
        let speaker = Speaker {
            script,
            at: (0, 0),
            interval: None,
            from: now,
            until: now,
            seen: seen.clone(),
        };
        assert!(speaker.compare(0, r#"{"step":2,"labels":["O","B-genre"],"spans":[]}"#).is_ok());
        // A server that has let go of the first label says where the others start.
        assert!(speaker.compare(0, r#"{"first":1,"labels":["B-genre"]}"#).is_ok());
        assert_eq!(seen.take().compared, 2);
        for wrong in [
            r#"{"labels":["O","O"]}"#,
            r#"{"labels":["O"]}"#,
            r#"{"first":3,"labels":[]}"#,
            r#"{"step":2}"#,
        ] {
            assert!(speaker.compare(0, wrong).is_err(), "{wrong}");
        }
        assert_eq!(seen.take().compared, 0);
    }
}
