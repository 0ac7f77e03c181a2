//! A load generator: many streams at a given rate, or as fast as they are answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connect::{Route, Socket};
use crate::script::Script;
use crate::speaker::{Shared, Speaker};
use tapir_eval::Percentiles;

use crate::Error;

/// What is asked of a server: every stream is a WebSocket of its own that says one sentence after
/// the other, word by word.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where it is.
    pub address: SocketAddr,
    /// Streams at once.
    pub streams: usize,
    /// Words a second and stream; none for the next as soon as one is answered.
    pub rate: Option<f64>,
    /// How long to measure, after a second of warming up.
    pub seconds: f64,
    /// What the streams say.
    pub sentences: Arc<Vec<Vec<String>>>,
}

/// What a server did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Streams at once.
    pub streams: usize,
    /// Words that were to be said a second; none if as many as possible.
    pub offered: Option<f64>,
    /// Words that were answered a second.
    pub held: f64,
    /// Streams and messages that failed.
    pub errors: usize,
    /// What the first failure was.
    pub error: Option<String>,
    /// Milliseconds from when a word was due to the first answer.
    pub first: Percentiles,
    /// Milliseconds from when a word was due to the last answer.
    pub last: Percentiles,
    /// Share of words at which the policy revised.
    pub revised: f64,
}

/// The most that the 99th percentile of a first answer may take, milliseconds.
pub(crate) const PROMISE: f64 = 50.0;
/// A rate is held if so much of it was answered.
const HELD: f64 = 0.98;
/// Streams that connect at the same time: more would only fill the server's queue of connections.
const CONNECTING: usize = 64;

impl Measured {
    /// Was the rate held: nearly all words answered, none failed, and first answers soon?
    pub fn is_held(&self) -> bool {
        let offered = self.offered.unwrap_or(0.0);
        self.errors == 0 && self.held >= HELD * offered && self.first.p99 <= PROMISE
    }
}

impl Load {
    /// Connects all streams, lets them speak, and gives what they saw.
    pub async fn run(&self) -> Result<Measured, Error> {
        let script = Arc::new(Script::new(&self.sentences)?);
        let sockets = self.connect().await?;
        let seen = Shared::default();
        let start = Instant::now();
        let from = start + Duration::from_secs(1);
        let until = from + Duration::from_secs_f64(self.seconds);
        let mut speaking = JoinSet::new();
        for (index, socket) in sockets {
            let interval = self.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
            // Streams do not speak in step: each starts at another moment, at another sentence,
            // and at another word of it. In step, all would be at the end of theirs at once.
            let phase = interval.unwrap_or_default().mul_f64(index as f64 / self.streams as f64);
            let sentence = index % script.sentences.len();
            let word = index / script.sentences.len() * 3 % script.sentences[sentence].pushes.len();
            let (script, seen, at) = (script.clone(), seen.clone(), (sentence, word));
            let speaker = Speaker { script, at, interval, from, until, seen };
            speaking.spawn(speaker.speak(socket, start + phase));
        }
        while let Some(joined) = speaking.join_next().await {
            joined.map_err(|error| Error::Generator(error.to_string()))?;
        }
        let seen = seen.take();
        Ok(Measured {
            streams: self.streams,
            offered: self.rate.map(|rate| rate * self.streams as f64),
            held: seen.words as f64 / self.seconds,
            errors: seen.errors,
            error: seen.error,
            revised: seen.revised as f64 / seen.words.max(1) as f64,
            first: Percentiles::of(seen.first),
            last: Percentiles::of(seen.last),
        })
    }

    async fn connect(&self) -> Result<Vec<(usize, Socket)>, Error> {
        let doors = Arc::new(Semaphore::new(CONNECTING));
        let mut connecting = JoinSet::new();
        for index in 0..self.streams {
            let (doors, route) = (doors.clone(), Route::of_stream(self.address, index));
            connecting.spawn(async move {
                let _door = doors.acquire_owned().await;
                let connected = route.websocket("").await;
                connected
                    .map(|socket| (index, socket))
                    .map_err(|cause| Error::Connect { index, cause })
            });
        }
        let mut sockets = Vec::with_capacity(self.streams);
        while let Some(joined) = connecting.join_next().await {
            sockets.push(joined.map_err(|error| Error::Generator(error.to_string()))??);
        }
        Ok(sockets)
    }
}
