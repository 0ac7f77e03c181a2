//! How a session is brought back: from its last answer, and the messages since its start.

use std::time::Duration;

use async_nats::jetstream::stream::LastRawMessageErrorKind;
use tokio::time::sleep;

use crate::cell::Cell;
use crate::direct::{self, Query};
use crate::inputs::Input;
use crate::life::{Life, Position, read_answer_headers};
use crate::{Error, Name};

/// Messages of one request; the server gives no more than a thousand.
const BATCH: usize = 500;
/// How often the leader is asked for messages that are missing.
const ATTEMPTS: u32 = 10;

/// A session as the streams have it.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The sequence of its last answer; 0 if it has none.
    pub(crate) last: u64,
    /// Which answer that is.
    pub(crate) position: Position,
    /// Its life, unless it has ended or never begun.
    pub(crate) life: Option<Life>,
    /// The messages of that life that were answered, if only provisionally.
    pub(crate) replay: Vec<Input>,
    /// It had a life that cannot be brought back: why.
    pub(crate) broken: Option<String>,
}

/// Reads what there is of a session, until it can be read.
pub(crate) async fn restore(cell: &Cell, session: &Name) -> Restored {
    let mut pause = Duration::from_millis(50);
    loop {
        match try_restore(cell, session).await {
            Ok(restored) => return restored,
            Err(error) => tracing::debug!(%session, %error, "cannot be restored yet"),
        }
        sleep(pause).await;
        pause = (2 * pause).min(Duration::from_secs(1));
    }
}

async fn try_restore(cell: &Cell, session: &Name) -> Result<Restored, Error> {
    let Some(answer) = cell.last_answer(session).await? else { return Ok(Restored::default()) };
    let last = answer.sequence;
    let (position, life) = match read_answer_headers(&answer.headers) {
        Ok(read) => read,
        Err(cause) => {
            // Somebody else than a worker wrote it: nothing can be built on it.
            tracing::error!(%session, %cause, "an answer that no worker gave");
            let broken = Some("its last answer cannot be read".to_owned());
            return Ok(Restored { last, broken, ..Restored::default() });
        }
    };
    let Some(life) = life else { return Ok(Restored { last, position, ..Restored::default() }) };
    // Messages go out of retention from the front, and a node that lags lacks those at the end: with
    // both ends, all between are there.
    let ends = [life.start, position.input].map(Some);
    let is_whole = |replay: &[Input]| {
        [replay.first(), replay.last()].map(|input| input.map(|input| input.sequence)) == ends
    };
    // Any node may say what there is; only the leader may say that something is not.
    let mut replay = messages(cell, session, life.start, position.input).await?;
    for _ in 0..ATTEMPTS {
        if is_whole(&replay) {
            return Ok(Restored { last, position, life: Some(life), replay, broken: None });
        }
        sleep(Duration::from_millis(100)).await;
        replay = messages_of_leader(cell, session, life.start, position.input).await?;
    }
    let broken = Some("its first words are older than what the cell keeps".to_owned());
    Ok(Restored { last, position, broken, ..Restored::default() })
}

/// The same from the leader, one by one.
async fn messages_of_leader(
    cell: &Cell,
    name: &Name,
    start: u64,
    end: u64,
) -> Result<Vec<Input>, Error> {
    let subject = cell.names.kept_input("*", name.as_str());
    let mut found = Vec::new();
    let mut next = start;
    while next <= end {
        match cell.inputs.get_first_raw_message_by_subject(&subject, next).await {
            Ok(kept) if kept.sequence <= end => {
                next = kept.sequence + 1;
                found.push(Input {
                    session: name.clone(),
                    sequence: kept.sequence,
                    headers: Some(kept.headers),
                    payload: kept.payload,
                });
            }
            Ok(_) => break,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => break,
            Err(error) => return Err(Error::jetstream("read messages", error)),
        }
    }
    Ok(found)
}

/// The messages of a session from one to another, from any node.
async fn messages(cell: &Cell, name: &Name, start: u64, end: u64) -> Result<Vec<Input>, Error> {
    let stream = cell.names.input_stream();
    let mut found: Vec<Input> = Vec::new();
    let mut seq = start;
    while seq <= end {
        let next_by_subj = cell.names.kept_input("*", name.as_str());
        let query = Query::From { seq, next_by_subj, batch: BATCH };
        let batch = direct::get(&cell.client, &stream, &query).await?;
        let Some(last) = batch.last() else { break };
        seq = last.sequence + 1;
        found.extend(batch.into_iter().filter(|kept| kept.sequence <= end).map(|kept| Input {
            session: name.clone(),
            sequence: kept.sequence,
            headers: Some(kept.headers),
            payload: kept.payload,
        }));
    }
    Ok(found)
}
