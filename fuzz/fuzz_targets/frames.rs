//! Any bytes as WebSocket frames, read with the server's limits, their messages answered: never a
//! panic, and never more memory than the limit.
#![no_main]

use std::io::{Cursor, Read, Write};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tapir::{Model, SessionOptions};
use tapir::protocol::Streams;
use tungstenite::Message;
use tungstenite::protocol::{Role, WebSocket, WebSocketConfig};

/// A client that has sent everything, and reads nothing.
struct Socket<'a>(Cursor<&'a [u8]>);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| tapir::doctest::parts().load().expect("a good model"))
}

fuzz_target!(|bytes: &[u8]| {
    const LIMIT: usize = 1 << 10;
    let config = WebSocketConfig::default().max_message_size(Some(LIMIT)).max_frame_size(Some(LIMIT));
    let mut socket = WebSocket::from_raw_socket(Socket(Cursor::new(bytes)), Role::Server, Some(config));
    let mut streams = Streams::new(4, model(), SessionOptions::new()).expect("defaults");
    while let Ok(message) = socket.read() {
        assert!(message.len() <= LIMIT);
        if let Message::Text(text) = message {
            let answer = streams.answer(text.as_str());
            let _ = socket.send(Message::text(serde_json::to_string(&answer).expect("an answer is JSON")));
        }
    }
});
