//! Lines of NDJSON without end, of which no answer is read.

use tokio::io::AsyncWriteExt;

use super::{Attack, Ended, WORDS};

pub(super) async fn live(attack: &Attack) -> Ended {
    let mut stream = attack.connect_small().await?;
    let head = "POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let line = serde_json::json!({ "tokens": WORDS }).to_string() + "\n";
    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
    loop {
        stream.write_all(chunk.as_bytes()).await?;
        attack.tally.sent();
    }
}
