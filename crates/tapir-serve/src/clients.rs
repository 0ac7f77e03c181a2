//! Who the clients are, and what each of them has taken.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;
use crate::error::Refusal;
use crate::fair::Flow;

/// Every so many bytes of a body count as one more request.
const BYTES_PER_REQUEST: usize = 64 << 10;
/// Every so many bytes of a message count as one more message.
const BYTES_PER_MESSAGE: usize = 1 << 10;

/// All clients that have been here lately, and what all of them have taken together.
pub(crate) struct Clients {
    limits: Limits,
    clients: Mutex<HashMap<IpAddr, Arc<Client>>>,
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
}

impl Peer {
    /// Whose work its requests are.
    pub(crate) fn flow(&self) -> Flow {
        Flow { client: self.client.id, connection: self.connection }
    }
}

/// One of a limited number, in all and for its client, given back when it is dropped.
pub(crate) struct Permit {
    taken: [Arc<AtomicUsize>; 2],
    gauge: Option<Gauge>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        for taken in &self.taken {
            taken.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(gauge) = &self.gauge {
            gauge.dec();
        }
    }
}

impl Clients {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            clients: Mutex::default(),
            connections: Arc::default(),
            sessions: Arc::default(),
            ids: AtomicU64::new(0),
        }
    }

    /// Takes a connection from an address, unless it or all have too many.
    pub(crate) fn connect(&self, address: IpAddr) -> Result<(Peer, Permit), Refusal> {
        let client = self.client(address);
        let limits = (self.limits.connections, self.limits.connections_per_client);
        let permit = take([&self.connections, &client.connections], limits, "connections")?;
        let connection = self.ids.fetch_add(1, Ordering::Relaxed);
        Ok((Peer { client, connection }, permit))
    }

    /// Takes a session for a client, unless it or all have too many.
    pub(crate) fn open_session(&self, client: &Client, gauge: &Gauge) -> Result<Permit, Refusal> {
        let limits = (self.limits.sessions, self.limits.sessions_per_client);
        let mut permit = take([&self.sessions, &client.sessions], limits, "sessions")?;
        gauge.inc();
        permit.gauge = Some(gauge.clone());
        Ok(permit)
    }

    /// Forgets clients that have gone. One that comes back at once may ask a little faster for once.
    pub(crate) fn forget(&self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, client| Arc::strong_count(client) > 1);
        clients.shrink_to_fit();
    }

    fn client(&self, address: IpAddr) -> Arc<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let rate = |per_second| {
                RateLimiter::direct(Quota::per_second(NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN)))
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
fn take(counts: [&Arc<AtomicUsize>; 2], (all, one): (usize, usize), what: &str) -> Result<Permit, Refusal> {
    // Dropped, a permit gives both back.
    let before = counts.map(|count| count.fetch_add(1, Ordering::Relaxed));
    let permit = Permit { taken: counts.map(Arc::clone), gauge: None };
    if before[1] >= one {
        let reason = format!("your address has {one} {what} already; close one first");
        return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason));
    }
    if before[0] >= all {
        let reason = format!("all {all} {what} are taken; try again later");
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason));
    }
    Ok(permit)
}

impl Client {
    /// Counts a request against the client's rate.
    pub(crate) fn count_request(&self) -> Result<(), Refusal> {
        self.requests.check().map_err(|_| too_fast())
    }

    /// Counts the body of a request, which arrived, against the client's rate.
    pub(crate) fn count_body(&self, bytes: usize, limits: &Limits) -> Result<(), Refusal> {
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
    pub(crate) async fn queue_words(&self, words: usize, limits: &Limits) -> Option<OwnedSemaphorePermit> {
        let words = words.clamp(1, limits.words_per_client);
        self.words.clone().acquire_many_owned(words as u32).await.ok()
    }
}

fn too_fast() -> Refusal {
    let reason = "too many requests per second from your address; wait a second";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason)
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
    fn what_is_taken_is_given_back() {
        let limits = Limits { connections: 3, connections_per_client: 2, ..Limits::default() };
        let clients = Clients::new(limits);
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
        assert!(clients.clients.lock().unwrap().is_empty());
        assert_eq!(clients.connections.load(Ordering::Relaxed), 0);
    }
}
