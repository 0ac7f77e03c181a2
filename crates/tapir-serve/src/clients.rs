//! Who the clients are, and what each of them has taken.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, StatusCode};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;
use crate::error::ApiError;
use crate::fair::Flow;
use crate::metrics::Counted;

/// Every so many bytes of a body count as one more request.
const BYTES_PER_REQUEST: usize = 64 << 10;
/// Every so many bytes of a message count as one more message.
const BYTES_PER_MESSAGE: usize = 1 << 10;

/// All clients that have been here lately, and what all of them have taken together.
pub(crate) struct Clients {
    limits: Limits,
    proxies: Vec<IpAddr>,
    known: Mutex<HashMap<IpAddr, Arc<Client>>>,
    connections: Arc<AtomicUsize>,
    sessions: Arc<AtomicUsize>,
    ids: AtomicU64,
}

/// Somebody who is served: what it has taken, and how fast it may ask.
pub(crate) struct Client {
    id: u64,
    connections: Arc<AtomicUsize>,
    sessions: Arc<AtomicUsize>,
    words: Arc<Semaphore>,
    requests: DefaultDirectRateLimiter,
    messages: DefaultDirectRateLimiter,
}

/// A connection of a client, as its requests know it.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) client: Arc<Client>,
    connection: u64,
    is_proxy: bool,
}

impl Peer {
    /// Whose work its requests are.
    pub(crate) fn flow(&self) -> Flow {
        Flow { client: self.client.id, connection: self.connection }
    }
}

/// One of a limited number, in all and for its client, given back when it is dropped.
pub(crate) struct Permit {
    _taken: Option<Taken>,
    _counted: Option<Counted>,
}

impl Permit {
    /// For a session that is counted, and limited by somebody else.
    pub(crate) fn unlimited(gauge: &Gauge) -> Self {
        Self { _taken: None, _counted: Some(Counted::in_gauge(gauge)) }
    }
}

/// One in all, and one of the client's.
struct Taken([Arc<AtomicUsize>; 2]);

impl Drop for Taken {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Clients {
    pub(crate) fn new(limits: Limits, proxies: Vec<IpAddr>) -> Self {
        Self {
            limits,
            proxies,
            known: Mutex::default(),
            connections: Arc::default(),
            sessions: Arc::default(),
            ids: AtomicU64::new(0),
        }
    }

    /// Takes a connection from an address, unless it or all have too many.
    pub(crate) fn connect(&self, address: IpAddr) -> Result<(Peer, Permit), ApiError> {
        let client = self.client(address);
        let is_proxy = self.proxies.contains(&address.to_canonical());
        let all = self.limits.connections;
        // A proxy has the connections of all its clients.
        let one = if is_proxy { all } else { self.limits.connections_per_client };
        let taken = take([&self.connections, &client.connections], (all, one), "connections")?;
        let permit = Permit { _taken: Some(taken), _counted: None };
        let connection = self.ids.fetch_add(1, Ordering::Relaxed);
        Ok((Peer { client, connection, is_proxy }, permit))
    }

    /// Whose request it is: the peer's own, or that of the client for whom a proxy passes it on.
    pub(crate) fn behind_proxy(&self, peer: Peer, headers: &HeaderMap) -> Peer {
        if !peer.is_proxy {
            return peer;
        }
        let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
        let last = forwarded
            .and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
        match last {
            Some(address) => Peer { client: self.client(address), ..peer },
            None => peer,
        }
    }

    /// Takes a session for a client, unless it or all have too many.
    pub(crate) fn open_session(&self, client: &Client, gauge: &Gauge) -> Result<Permit, ApiError> {
        let limits = (self.limits.sessions, self.limits.sessions_per_client);
        let taken = take([&self.sessions, &client.sessions], limits, "sessions")?;
        Ok(Permit { _taken: Some(taken), _counted: Some(Counted::in_gauge(gauge)) })
    }

    /// Forgets clients that have gone. One that comes back at once may ask a little faster for
    /// once.
    pub(crate) fn forget(&self) {
        let mut clients = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, client| Arc::strong_count(client) > 1);
        clients.shrink_to_fit();
    }

    fn client(&self, address: IpAddr) -> Arc<Client> {
        let mut clients = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let rate = |per_second| {
                RateLimiter::direct(Quota::per_second(
                    NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN),
                ))
            };
            Arc::new(Client {
                id: self.ids.fetch_add(1, Ordering::Relaxed),
                connections: Arc::default(),
                sessions: Arc::default(),
                words: Arc::new(Semaphore::new(self.limits.words_per_client)),
                requests: rate(self.limits.requests_per_second),
                messages: rate(self.limits.messages_per_second_per_client),
            })
        };
        clients.entry(network(address)).or_insert_with(new).clone()
    }
}

/// Counts one more in all and for the client, or says whose limit is reached.
fn take(
    counts: [&Arc<AtomicUsize>; 2],
    (all, one): (usize, usize),
    what: &str,
) -> Result<Taken, ApiError> {
    let before = counts.map(|count| count.fetch_add(1, Ordering::Relaxed));
    // Dropped, it gives both back.
    let taken = Taken(counts.map(Arc::clone));
    if before[1] >= one {
        let reason = format!("your address has {one} {what} already; close one first");
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, reason));
    }
    if before[0] >= all {
        let reason = format!("all {all} {what} are taken; try again later");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason));
    }
    Ok(taken)
}

impl Client {
    /// Counts a request against the client's rate.
    pub(crate) fn count_request(&self) -> Result<(), ApiError> {
        self.requests.check().map_err(|_| too_fast())
    }

    /// Counts the body of a request, which arrived, against the client's rate.
    pub(crate) fn count_body(&self, bytes: usize, limits: &Limits) -> Result<(), ApiError> {
        let units = (bytes / BYTES_PER_REQUEST) as u32;
        match NonZeroU32::new(units.min(limits.requests_per_second)) {
            None => Ok(()),
            Some(units) => match self.requests.check_n(units) {
                Ok(Ok(())) => Ok(()),
                _ => Err(too_fast()),
            },
        }
    }

    /// Waits until the client may send a message of so many bytes.
    pub(crate) async fn count_message(&self, bytes: usize, limits: &Limits) {
        let units = 1 + (bytes / BYTES_PER_MESSAGE) as u32;
        let units = NonZeroU32::new(units.min(limits.messages_per_second_per_client));
        // It could only fail for more units than there are in a second.
        let _ = self.messages.until_n_ready(units.unwrap_or(NonZeroU32::MIN)).await;
    }

    /// Waits for room for words in the client's queue: at least one, at most all that there is.
    pub(crate) async fn queue_words(
        &self,
        words: usize,
        limits: &Limits,
    ) -> Option<OwnedSemaphorePermit> {
        let words = words.clamp(1, limits.words_per_client);
        self.words.clone().acquire_many_owned(words as u32).await.ok()
    }
}

fn too_fast() -> ApiError {
    let reason = "too many requests per second from your address; wait a second";
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, reason)
}

/// Whoever has an IPv6 address has 2^64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_client() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:1"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:127.0.0.1", "127.0.0.1"));
        assert!(!same("127.0.0.1", "127.0.0.2"));
    }

    #[test]
    fn a_proxy_is_believed_and_nobody_else() {
        let proxy: IpAddr = "127.0.0.1".parse().unwrap();
        let clients = Clients::new(Limits::default(), vec![proxy]);
        let client = |address: &str, forwarded: &'static [&'static str]| {
            let (peer, _permit) = clients.connect(address.parse().unwrap()).ok().unwrap();
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append("x-forwarded-for", axum::http::HeaderValue::from_static(value));
            }
            clients.behind_proxy(peer, &headers).client.id
        };
        let direct = client("192.0.2.7", &[]);
        assert_eq!(client("127.0.0.1", &["10.0.0.1, 192.0.2.7"]), direct);
        assert_eq!(client("127.0.0.1", &["10.0.0.1", "192.0.2.7"]), direct);
        // What a client says of itself counts as little as nonsense.
        let other = client("192.0.2.8", &["192.0.2.7"]);
        assert_eq!(other, client("192.0.2.8", &[]));
        assert_eq!(client("127.0.0.1", &["nonsense"]), client("127.0.0.1", &[]));
    }

    #[test]
    fn what_is_taken_is_given_back() {
        let limits = Limits { connections: 3, connections_per_client: 2, ..Limits::default() };
        let clients = Clients::new(limits, Vec::new());
        let connect = |address: &str| clients.connect(address.parse().unwrap());
        let reason = |address: &str| connect(address).err().unwrap().reason;
        let (a, b) = (connect("127.0.0.1").ok().unwrap(), connect("127.0.0.1").ok().unwrap());
        assert!(reason("127.0.0.1").contains("your address has 2 connections"));
        let c = connect("127.0.0.2").ok().unwrap();
        assert!(reason("127.0.0.2").contains("all 3 connections are taken"));
        drop(a);
        assert!(connect("127.0.0.1").is_ok());
        drop((b, c));
        clients.forget();
        assert!(clients.known.lock().unwrap().is_empty());
        assert_eq!(clients.connections.load(Ordering::Relaxed), 0);
    }
}
