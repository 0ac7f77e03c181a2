//! Connections from an address of our own choice.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// A WebSocket of the generator.
pub(crate) type Socket = WebSocketStream<TcpStream>;

/// Who is not answered so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The receive buffer of clients that read little, so that the server notices soon.
const SMALL_BUFFER: u32 = 4 << 10;

/// Streams of one address: fewer than a server takes from one client.
const STREAMS_PER_ADDRESS: usize = 500;

/// One end of a connection: where it goes, and the address of this machine that it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) to: SocketAddr,
    pub(crate) from: Option<IpAddr>,
}

impl Route {
    /// The route of a stream of a load. A server tells clients apart by their address, and takes
    /// so many connections of each: on the loopback there are enough addresses to be many clients.
    pub(crate) fn of_stream(to: SocketAddr, index: usize) -> Self {
        Self { to, from: loopback(to, 1, index / STREAMS_PER_ADDRESS) }
    }

    /// From the loopback address 127.0.`net`.`host + 1`.
    pub(crate) fn local(to: SocketAddr, net: u8, host: usize) -> Self {
        Self { to, from: loopback(to, net, host) }
    }

    /// A TCP connection.
    pub(crate) async fn connect(self) -> std::io::Result<TcpStream> {
        self.open(None).await
    }

    /// A TCP connection with little room for what is not read.
    pub(crate) async fn connect_small(self) -> std::io::Result<TcpStream> {
        self.open(Some(SMALL_BUFFER)).await
    }

    async fn open(self, receive_buffer: Option<u32>) -> std::io::Result<TcpStream> {
        let socket = if self.to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if let Some(from) = self.from {
            socket.bind(SocketAddr::new(from, 0))?;
        }
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        let stream = timeout(PATIENCE, socket.connect(self.to)).await.map_err(late)??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A stream: `/v1/stream` with this query, which may be empty.
    pub(crate) async fn websocket(self, query: &str) -> Result<Socket, String> {
        let stream = self.connect().await.map_err(|error| error.to_string())?;
        self.upgrade(stream, query).await
    }

    /// Makes a stream of a connection.
    pub(crate) async fn upgrade(self, stream: TcpStream, query: &str) -> Result<Socket, String> {
        // Answers are short; the default buffer of 128 KiB, cleared at every read, took half of
        // the generator's time.
        let config =
            WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10);
        let url = format!("ws://{}/v1/stream{query}", self.to);
        let upgrade = tokio_tungstenite::client_async_with_config(url, stream, Some(config));
        match timeout(PATIENCE, upgrade).await {
            Ok(Ok((socket, _))) => Ok(socket),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer for {} seconds", PATIENCE.as_secs())),
        }
    }
}

/// An address of the loopback, where the system has more than one.
fn loopback(to: SocketAddr, net: u8, host: usize) -> Option<IpAddr> {
    let many = cfg!(target_os = "linux") && to.is_ipv4() && to.ip().is_loopback();
    many.then(|| IpAddr::V4(Ipv4Addr::new(127, 0, net, host as u8 + 1)))
}
