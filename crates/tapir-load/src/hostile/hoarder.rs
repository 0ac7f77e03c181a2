//! As many connections as it gets, as many sessions on each, held for ever.

use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::{Attack, Ended, PAUSE};
use crate::connect::Socket;

/// Connections of one client. All clients of the kind together want more than a server gives to
/// one address unless it is told otherwise, and so few that this machine has files for them.
const CONNECTIONS: usize = 750;
/// Sessions that are asked for on each: more than a server gives.
const SESSIONS: usize = 110;

/// How long a server may take to give or refuse them.
const WAIT: Duration = Duration::from_secs(1);

pub(super) async fn live(attack: &Attack) -> Ended {
    let mut held: Vec<Socket> = Vec::new();
    let mut next = 0;
    loop {
        if held.len() < CONNECTIONS {
            match open(attack).await {
                Ok(socket) => held.push(socket),
                Err(_) => attack.tally.refused(),
            }
        }
        sleep(PAUSE).await;
        // One is pinged each time round, so that none is silent.
        next = (next + 1) % held.len().max(1);
        if next < held.len() && !is_kept(&mut held[next]).await {
            held.swap_remove(next);
            attack.tally.refused();
        }
    }
}

/// A connection with as many sessions as it gets.
async fn open(attack: &Attack) -> Result<Socket, Box<dyn std::error::Error + Send + Sync>> {
    let mut socket = attack.websocket("").await?;
    for session in 0..SESSIONS {
        let message = format!(r#"{{"session":"{session}","push":"play"}}"#);
        socket.feed(Message::text(message)).await?;
        attack.tally.sent();
    }
    socket.flush().await?;
    // After a refusal the rest would only be refused, too. A server that takes its time is not
    // waited for: what it has not answered is left unread until a ping.
    let until_refused = async {
        for _ in 0..SESSIONS {
            if !attack.hear(&mut socket).await? {
                break;
            }
        }
        Ok::<(), String>(())
    };
    if let Ok(ended) = timeout(WAIT, until_refused).await {
        ended?;
    }
    Ok(socket)
}

/// Pings, and reads what has come; false if the server has ended the stream.
async fn is_kept(socket: &mut Socket) -> bool {
    let ping = socket.send(Message::Ping(Vec::new().into()));
    if !matches!(timeout(WAIT, ping).await, Ok(Ok(()))) {
        return false;
    }
    loop {
        match socket.next().now_or_never() {
            None => return true,
            Some(Some(Ok(message))) if !message.is_close() => {}
            Some(_) => return false,
        }
    }
}
