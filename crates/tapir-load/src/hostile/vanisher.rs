//! Streams that are gone in the middle of a word, with a farewell of TCP or without.

use std::sync::atomic::Ordering;

use futures_util::SinkExt;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use super::{Attack, Ended, WORDS, push};

/// The first half of a frame, masked with zeros.
const HALF: &[u8] = b"\x81\x90\0\0\0\0{\"push\"";

pub(super) async fn live(attack: &Attack) -> Ended {
    let mut socket = attack.websocket("").await?;
    for index in 0..WORDS.len() / 2 {
        socket.feed(Message::text(push(index))).await?;
        attack.tally.sent();
    }
    socket.flush().await?;
    let stream = socket.get_mut();
    stream.write_all(HALF).await?;
    if attack.tally.connections.load(Ordering::Relaxed).is_multiple_of(2) {
        // Closing then resets the connection, as when a machine loses its network.
        stream.set_zero_linger()?;
    }
    Ok(())
}
