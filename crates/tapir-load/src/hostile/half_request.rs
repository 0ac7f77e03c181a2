//! Requests that never end: their head, or their body.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::interval;

use super::{Attack, Ended, until_closed};

/// A head that goes on a byte a second.
pub(super) async fn head(attack: &Attack) -> Ended {
    let mut stream = attack.connect().await?;
    stream.write_all(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-filler: ").await?;
    let (mut reader, mut writer) = stream.split();
    let trickle = async {
        let mut seconds = interval(Duration::from_secs(1));
        loop {
            seconds.tick().await;
            writer.write_all(b"a").await?;
            attack.tally.sent();
        }
    };
    let mut nowhere = tokio::io::sink();
    // Whichever ends first: the server may close only its side.
    tokio::select! {
        ended = trickle => ended,
        copied = tokio::io::copy(&mut reader, &mut nowhere) => {
            copied?;
            Err("the server closed the connection".into())
        }
    }
}

/// A body that is announced and never sent.
pub(super) async fn body(attack: &Attack) -> Ended {
    let mut stream = attack.connect().await?;
    let head = "POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 100000\r\n\r\n{\"text\": \"pl";
    stream.write_all(head.as_bytes()).await?;
    attack.tally.sent();
    Err(until_closed(&mut stream).await.into())
}
