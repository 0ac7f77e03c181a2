//! As much of HTTP as a probe needs: a request over a connection that stays open.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::connect::{PATIENCE, Route};

/// A connection that stays open from request to request.
pub(crate) struct Http {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The server closes the connection after it.
    pub(crate) closes: bool,
    pub(crate) body: Vec<u8>,
}

/// The bytes of a request with a JSON body, or without a body if it is empty.
pub(crate) fn request(route: Route, line: &str, headers: &str, body: &str) -> Vec<u8> {
    let (to, length) = (route.to, body.len());
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    format!(
        "{line} HTTP/1.1\r\nhost: {to}\r\n{headers}{kind}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Http {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, received: Vec::new() }
    }

    pub(crate) async fn connect(route: Route) -> io::Result<Self> {
        Ok(Self::new(route.connect().await?))
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        let exchange = async {
            self.stream.write_all(request).await?;
            self.answer().await
        };
        timeout(PATIENCE, exchange).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        loop {
            if let Some((answer, length)) = parse(&self.received)? {
                self.received.drain(..length);
                return Ok(answer);
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// An answer at the start of these bytes, and how many of them it is; none if it is not whole.
fn parse(bytes: &[u8]) -> io::Result<Option<(Answer, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| invalid("an answer without a status"))?;
    let header = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let length = length.ok_or_else(|| invalid("an answer without a length"))?;
    let start = end + 4;
    let Some(body) = bytes.get(start..start + length) else { return Ok(None) };
    let closes = header("connection") == Some("close");
    Ok(Some((Answer { status, closes, body: body.to_vec() }, start + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_it_is_whole() {
        let bytes = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1";
        for end in 0..bytes.len() - 8 {
            assert_eq!(parse(&bytes[..end]).unwrap(), None);
        }
        let (answer, length) = parse(bytes).unwrap().unwrap();
        assert_eq!(
            (answer.status, answer.closes, answer.body.as_slice()),
            (429, false, &b"hi"[..])
        );
        assert_eq!(&bytes[length..], b"HTTP/1.1");
        let (answer, _) =
            parse(b"HTTP/1.1 408 x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .unwrap()
                .unwrap();
        assert!(answer.closes);
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
