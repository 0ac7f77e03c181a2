//! Long hypotheses that are read again from their first word on.

use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{Attack, Ended, hypothesis};

/// Words of a hypothesis: as many as a server takes unless it is told otherwise.
const LONG: usize = 2_000;
/// So few words that no label is committed: another first word is then no error, and all of them
/// are read again.
const SHORT: usize = 200;
/// Messages that are not answered yet.
const IN_FLIGHT: usize = 4;

pub(super) async fn live(attack: &Attack) -> Ended {
    let mut socket = attack.websocket("").await?;
    let reset = Utf8Bytes::from_static(r#"{"reset":true}"#);
    let messages = [
        hypothesis("play", LONG),
        // Refused, since labels of a long hypothesis are committed; the reset makes room for it.
        hypothesis("hear", LONG),
        reset.clone(),
        hypothesis("hear", LONG),
        reset.clone(),
        hypothesis("play", SHORT),
        hypothesis("hear", SHORT),
        hypothesis("play", SHORT),
        hypothesis("hear", SHORT),
        reset,
    ];
    for (sent, message) in messages.iter().cycle().enumerate() {
        socket.send(Message::Text(message.clone())).await?;
        attack.tally.sent();
        if sent + 1 >= IN_FLIGHT {
            attack.hear(&mut socket).await?;
        }
    }
    Ok(())
}
