//! Long sessions with a revision at every word, always as many words in flight as allowed.

use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{Attack, Ended, WORDS, push};

/// Messages of a connection that a server takes unless it is told otherwise.
const IN_FLIGHT: usize = 16;
/// Words until a new session.
const WORDS_OF_SESSION: usize = 1_500;

pub(super) async fn live(attack: &Attack) -> Ended {
    let mut socket = attack.websocket("?threshold=0").await?;
    let pushes: Vec<Utf8Bytes> = (0..WORDS.len()).map(|index| push(index).into()).collect();
    let (mut words, mut in_flight) = (0, 0);
    loop {
        while in_flight < IN_FLIGHT {
            let message = if words < WORDS_OF_SESSION {
                pushes[words % pushes.len()].clone()
            } else {
                Utf8Bytes::from_static(r#"{"reset":true}"#)
            };
            words = if words < WORDS_OF_SESSION { words + 1 } else { 0 };
            socket.feed(Message::Text(message)).await?;
            attack.tally.sent();
            in_flight += 1;
        }
        socket.flush().await?;
        attack.hear(&mut socket).await?;
        in_flight -= 1;
    }
}
