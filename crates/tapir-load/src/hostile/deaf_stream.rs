//! Hypotheses over a WebSocket, of which no answer is read.

use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::Message;

use super::{Attack, Ended, hypothesis};

/// Words of a hypothesis: long ones have long answers, which fill the socket's buffers soon.
const WORDS: usize = 40;

pub(super) async fn live(attack: &Attack) -> Ended {
    let stream = attack.connect_small().await?;
    let mut socket = attack.route.upgrade(stream, "").await?;
    let messages = [hypothesis("play", WORDS), hypothesis("hear", WORDS)];
    for message in messages.iter().cycle() {
        socket.send(Message::Text(message.clone())).await?;
        attack.tally.sent();
    }
    Ok(())
}
