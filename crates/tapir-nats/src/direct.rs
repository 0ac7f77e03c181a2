//! Many kept messages by one request. The client library asks for one at a time.

use std::time::Duration;

use async_nats::header::HeaderMap;
use async_nats::{Client, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;
use tokio::time::timeout;

use crate::Error;

/// How long a further message is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A message as a stream keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) subject: String,
    pub(crate) sequence: u64,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// What is asked for.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Query {
    /// The messages of a subject from a sequence on, so many at most.
    From { seq: u64, next_by_subj: String, batch: usize },
    /// The last message of every subject that matches.
    Last { multi_last: Vec<String> },
}

/// Asks any node that has the stream. It may not have the newest messages yet: whoever needs them
/// must see that they are missing.
pub(crate) async fn get(client: &Client, stream: &str, query: &Query) -> Result<Vec<Kept>, Error> {
    let failed = |cause: String| Error::jetstream(format!("read the stream {stream}"), cause);
    let inbox = client.new_inbox();
    let mut replies =
        client.subscribe(inbox.clone()).await.map_err(|error| failed(error.to_string()))?;
    let request = serde_json::to_vec(query).map_err(|error| failed(error.to_string()))?;
    client
        .publish_with_reply(format!("$JS.API.DIRECT.GET.{stream}"), inbox, request.into())
        .await
        .map_err(|error| failed(error.to_string()))?;
    let mut found = Vec::new();
    loop {
        let reply = timeout(PATIENCE, replies.next()).await.ok().flatten();
        let Some(reply) = reply else { return Err(failed("no answer".into())) };
        match reply.status {
            None => {}
            // The end of a batch, or nothing to begin with.
            Some(status) if status.as_u16() == 204 || status == StatusCode::NOT_FOUND => {
                return Ok(found);
            }
            Some(status) => {
                let said = reply.description.unwrap_or_default();
                return Err(failed(format!("{status} {said}")));
            }
        }
        let headers = reply.headers.unwrap_or_default();
        let text = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        let subject = text("Nats-Subject");
        let sequence = text("Nats-Sequence").and_then(|text| text.parse().ok());
        let (Some(subject), Some(sequence)) = (subject, sequence) else {
            return Err(failed("an answer without subject and sequence".into()));
        };
        found.push(Kept { subject, sequence, headers, payload: reply.payload });
    }
}
