//! What is not HTTP, not a frame, not UTF-8, not JSON, or ten megabytes of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Attack, Ended, until_closed};

/// A server that has not ended the connection after so long has taken it.
const WAIT: Duration = Duration::from_secs(2);
/// What an endless message ends with, if nobody ends it before.
const MOST_BYTES: usize = 10 << 20;
const CHUNK: usize = 32 << 10;

/// Bytes in the place of a request.
const NO_REQUESTS: [&[u8]; 8] = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 garbage\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x0f\0\0\0\0\0",
    b"GET / HTTP/1.1\r\n\xff\xfe: \0\r\n\r\n",
    // Lengths that are lies: too short, too long, two of them, negative, and with chunks.
    b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n{\"text\": \"play some jazz\"}",
    b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ncontent-length: 9\r\n\r\n{\"a",
    b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n{}",
    b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999\r\n\r\n{}",
    b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
      fffffffffffffffff\r\n{}",
];

/// Bytes in the place of a frame: not masked, not UTF-8, reserved bits, a reserved operation, a
/// fragment of nothing, a ping that is too long.
const NO_FRAMES: [&[u8]; 6] = [
    b"\x81\x05hello",
    b"\x81\x82\0\0\0\0\xff\xfe",
    b"\xf1\x80\0\0\0\0",
    b"\x83\x80\0\0\0\0",
    b"\x80\x80\0\0\0\0",
    b"\x89\xfe\x01\x00\0\0\0\0",
];

pub(super) async fn live(attack: &Attack) -> Ended {
    // A turn for every connection, whichever client of the kind makes it.
    let turn = attack.tally.connections.load(Ordering::Relaxed) as usize;
    match turn % (NO_REQUESTS.len() + NO_FRAMES.len() + 5) {
        turn if turn < NO_REQUESTS.len() => {
            let mut stream = attack.connect().await?;
            stream.write_all(NO_REQUESTS[turn]).await?;
            attack.tally.sent();
            end(&mut stream).await
        }
        turn if turn < NO_REQUESTS.len() + NO_FRAMES.len() => {
            write(attack, NO_FRAMES[turn - NO_REQUESTS.len()]).await
        }
        turn => match turn - NO_REQUESTS.len() - NO_FRAMES.len() {
            0 => endless_fragments(attack).await,
            1 => huge_frame(attack).await,
            2 => write(attack, &frame(&"[".repeat(60_000))).await,
            3 => write(attack, &frame(&format!(r#"{{"update": {}"#, "[".repeat(60_000)))).await,
            _ => nested_body(attack).await,
        },
    }
}

/// Writes bytes to a stream in the place of frames.
async fn write(attack: &Attack, bytes: &[u8]) -> Ended {
    let mut socket = attack.websocket("").await?;
    let stream = socket.get_mut();
    stream.write_all(bytes).await?;
    attack.tally.sent();
    end(stream).await
}

/// A message whose last fragment never comes.
async fn endless_fragments(attack: &Attack) -> Ended {
    let mut socket = attack.websocket("").await?;
    let mut fragment = frame(&"x".repeat(CHUNK));
    fragment[0] = 0x01;
    for _ in 0..MOST_BYTES / CHUNK {
        socket.get_mut().write_all(&fragment).await?;
        attack.tally.sent();
        fragment[0] = 0x00;
    }
    end(socket.get_mut()).await
}

/// A frame of ten megabytes.
async fn huge_frame(attack: &Attack) -> Ended {
    let mut socket = attack.websocket("").await?;
    let stream = socket.get_mut();
    stream.write_all(b"\x81\xff").await?;
    stream.write_u64(MOST_BYTES as u64).await?;
    stream.write_u32(0).await?;
    let chunk = vec![b'x'; CHUNK];
    for _ in 0..MOST_BYTES / CHUNK {
        stream.write_all(&chunk).await?;
        attack.tally.sent();
    }
    end(stream).await
}

/// A body of nothing but brackets.
async fn nested_body(attack: &Attack) -> Ended {
    let body = "[".repeat(1 << 20);
    let mut stream = attack.connect().await?;
    let request = crate::http::request(attack.route, "POST /v1/tag", "", &body);
    stream.write_all(&request).await?;
    attack.tally.sent();
    end(&mut stream).await
}

/// Waits for a while whether the server ends the connection.
async fn end(stream: &mut TcpStream) -> Ended {
    match timeout(WAIT, until_closed(stream)).await {
        Ok(closed) => Err(closed.into()),
        Err(_) => Ok(()),
    }
}

/// A text frame as a client sends it, masked with zeros.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = match u16::try_from(text.len()) {
        Ok(length) => [&b"\x81\xfe"[..], &length.to_be_bytes()].concat(),
        Err(_) => [&b"\x81\xff"[..], &(text.len() as u64).to_be_bytes()].concat(),
    };
    frame.extend([0; 4]);
    frame.extend(text.bytes());
    frame
}
