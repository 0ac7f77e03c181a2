//! Connections that send a single byte, or none.

use tokio::io::AsyncWriteExt;

use super::{Attack, Ended, until_closed};

pub(super) async fn live(attack: &Attack, bytes: &[u8]) -> Ended {
    let mut stream = attack.connect().await?;
    if !bytes.is_empty() {
        stream.write_all(bytes).await?;
        attack.tally.sent();
    }
    Err(until_closed(&mut stream).await.into())
}
