//! What a server can be told, and the defaults: loopback only, limits on.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::faults::Faults;

/// What tokio's semaphores and timers can count to, and more than anybody needs.
const MOST: usize = 1 << 30;
/// More model workers than this help no machine.
const MOST_WORKERS: usize = 1024;

/// Everything about a server. The TOML file has the same keys.
///
/// ```
/// let settings = tapir_serve::Settings::from_toml(r#"
///     listen = "127.0.0.1:9000"
///     models.snips = "runs/snips/model"
///     limits.sessions = 500
/// "#, "serve.toml")?;
/// assert_eq!(settings.limits.sessions, 500);
/// # Ok::<(), tapir_serve::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Models by the name that requests use: the directory of one, or the name of one that ships.
    /// None for all that ship.
    pub models: BTreeMap<String, String>,
    /// The model of requests that name none; without it, the first.
    pub default_model: Option<String>,
    /// Model workers; 0 for one per core.
    pub workers: usize,
    /// The most words, each of another stream, that a worker reads at once.
    pub batch: usize,
    /// Whoever gives one of these as bearer token is served; none for everybody.
    pub tokens: Vec<String>,
    /// The bearer token of `/admin/reload`; without it there is no such address.
    pub admin_token: Option<String>,
    /// Certificate and key; without them, no TLS.
    pub tls: Option<Tls>,
    /// Other web origins, such as `https://example.org`, whose pages may use the server; `*` for
    /// all.
    pub origins: Vec<String>,
    /// Names under which the server is reached, such as `tapir.example.org`, besides `localhost`
    /// and addresses; `*` for any. Only servers without tokens check it: a foreign page whose name
    /// was made to point here (DNS rebinding) would otherwise pass for a page of ours.
    pub hosts: Vec<String>,
    /// Addresses of proxies in front of the server, whose header `X-Forwarded-For` is believed: the
    /// client is the last address in it.
    pub proxies: Vec<IpAddr>,
    /// What one client may use up.
    pub limits: Limits,
    /// How long a stop waits for words in hand.
    pub grace_seconds: u64,
    /// Writes the words of users into the log.
    pub log_words: bool,
    /// The word at which a worker panics, see `faults.rs`: for tests of what happens then.
    #[cfg(feature = "faults")]
    #[doc(hidden)]
    #[serde(skip)]
    pub fault: Option<String>,
}

/// What clients may use up. A client is an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Connections of all clients.
    pub connections: usize,
    /// Connections of one client.
    pub connections_per_client: usize,
    /// Sessions of all clients.
    pub sessions: usize,
    /// Sessions of one client.
    pub sessions_per_client: usize,
    /// Sessions of one connection.
    pub sessions_per_connection: usize,
    /// Words of a session, or of a text.
    pub words: usize,
    /// Words of one client that were given and are not labelled yet, and words of a request.
    /// Streams and lines wait until there is room.
    pub words_per_client: usize,
    /// Words, from the newest back, that a revision reads: what a stream of one client can cost the
    /// others.
    pub window: usize,
    /// Bytes of a message of a stream, or of a line of NDJSON.
    pub message_bytes: usize,
    /// Bytes of the body of a request.
    pub body_bytes: usize,
    /// Texts of a request.
    pub texts: usize,
    /// A connection whose next request has not arrived so long after the last answer, or after it
    /// was opened, is closed: TLS handshake and request head included.
    pub head_seconds: u64,
    /// A request whose body has not arrived after so long is refused.
    pub body_seconds: u64,
    /// A client that does not read for so long is cut off.
    pub write_seconds: u64,
    /// A stream that is silent so long is closed.
    pub idle_seconds: u64,
    /// Requests and new streams per second and client; every 64 KiB of a body count as one more.
    pub requests_per_second: u32,
    /// Messages per second and stream; those above wait.
    pub messages_per_second: u32,
    /// Messages per second and client; those above wait. Every KiB counts as one more.
    pub messages_per_second_per_client: u32,
    /// Messages of a connection that are not answered yet; the next ones are not read.
    pub in_flight: usize,
}

/// Files of TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8642)),
            models: BTreeMap::new(),
            default_model: None,
            workers: 0,
            batch: 64,
            tokens: Vec::new(),
            admin_token: None,
            tls: None,
            origins: Vec::new(),
            hosts: Vec::new(),
            proxies: Vec::new(),
            limits: Limits::default(),
            grace_seconds: 10,
            log_words: false,
            #[cfg(feature = "faults")]
            fault: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 2_500,
            sessions: 10_000,
            sessions_per_client: 2_500,
            sessions_per_connection: 100,
            words: 2_000,
            words_per_client: 20_000,
            window: 128,
            message_bytes: 64 << 10,
            body_bytes: 1 << 20,
            texts: 256,
            head_seconds: 10,
            body_seconds: 30,
            write_seconds: 30,
            idle_seconds: 300,
            requests_per_second: 200,
            messages_per_second: 200,
            messages_per_second_per_client: 20_000,
            in_flight: 16,
        }
    }
}

impl Settings {
    /// Reads a settings file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| Error::Settings(format!("{}: {cause}", path.display())))?;
        Self::from_toml(&text, &path.display().to_string())
    }

    /// Reads settings; `file` is named in errors.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Settings(format!("{file}: {error}")))
    }

    #[cfg_attr(not(feature = "faults"), allow(clippy::unused_self, reason = "no fault to ask for"))]
    pub(crate) fn faults(&self) -> Faults {
        Faults {
            #[cfg(feature = "faults")]
            word: self.fault.clone(),
        }
    }

    /// Refuses what cannot work, before anything is started.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let refuse = |reason: String| Err(Error::Settings(reason));
        let limits = &self.limits;
        let counts = [
            ("batch", self.batch),
            ("limits.connections", limits.connections),
            ("limits.connections_per_client", limits.connections_per_client),
            ("limits.sessions", limits.sessions),
            ("limits.sessions_per_client", limits.sessions_per_client),
            ("limits.sessions_per_connection", limits.sessions_per_connection),
            ("limits.words", limits.words),
            ("limits.window", limits.window),
            ("limits.message_bytes", limits.message_bytes),
            ("limits.body_bytes", limits.body_bytes),
            ("limits.texts", limits.texts),
            ("limits.head_seconds", limits.head_seconds as usize),
            ("limits.body_seconds", limits.body_seconds as usize),
            ("limits.write_seconds", limits.write_seconds as usize),
            ("limits.idle_seconds", limits.idle_seconds as usize),
            ("limits.requests_per_second", limits.requests_per_second as usize),
            ("limits.messages_per_second", limits.messages_per_second as usize),
            (
                "limits.messages_per_second_per_client",
                limits.messages_per_second_per_client as usize,
            ),
            ("limits.in_flight", limits.in_flight),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return refuse(format!("`{key}` is 0, which would serve nobody; expected at least 1"));
        }
        if let Some((key, count)) = counts.iter().find(|(_, count)| *count > MOST) {
            return refuse(format!("`{key}` is {count}; expected at most {MOST}"));
        }
        if limits.words_per_client < limits.words {
            let (all, one) = (limits.words_per_client, limits.words);
            return refuse(format!(
                "`limits.words_per_client` is {all}, less than the {one} of one session (`limits.words`)"
            ));
        }
        if self.workers > MOST_WORKERS {
            let workers = self.workers;
            return refuse(format!(
                "`workers` is {workers}; expected at most {MOST_WORKERS}, 0 for one per core"
            ));
        }
        if self.tokens.iter().chain(&self.admin_token).any(|token| token.len() < 16) {
            return refuse(
                "a token is shorter than 16 characters, which can be guessed; make a longer one"
                    .into(),
            );
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        if self.tokens.iter().chain(&self.admin_token).any(|token| !token.chars().all(plain)) {
            // A browser gives its token as a protocol of its WebSocket, where other characters
            // cannot stand.
            return refuse(
                "a token has other characters than letters, digits and -._~; make another one"
                    .into(),
            );
        }
        if !self.listen.ip().is_loopback() && self.tokens.is_empty() {
            tracing::warn!(listen = %self.listen, "anybody who can reach this address is served: set tokens");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_safe_and_written_as_read() {
        let settings = Settings::default();
        assert!(settings.listen.ip().is_loopback());
        settings.validate().unwrap();
        let text = toml::to_string(&settings).unwrap();
        assert_eq!(Settings::from_toml(&text, "x").unwrap(), settings);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| match Settings::from_toml(text, "serve.toml") {
            Ok(settings) => settings.validate().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error("lisen = 3").contains("serve.toml") && error("lisen = 3").contains("lisen"));
        assert!(error("limits.words = 0").contains("`limits.words` is 0"));
        assert!(error("limits.words_per_client = 7").contains("is 7, less than the 2000"));
        assert!(error("limits.idle_seconds = 999999999999").contains("expected at most"));
        assert!(error("workers = 5000").contains("`workers` is 5000"));
        assert!(error("tokens = ['short']").contains("shorter than 16"));
        assert!(error("admin_token = '0123456789abcdef/='").contains("other characters"));
        assert!(error("listen = 'nowhere'").contains("listen"));
    }
}
