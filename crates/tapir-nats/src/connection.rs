//! How a program reaches NATS: addresses, credentials, TLS.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError,
};
use percent_encoding::percent_decode_str;

use crate::Error;

/// How a program reaches NATS.
#[derive(Clone, Default)]
pub struct Connection {
    /// Addresses, `nats://host:4222` or `tls://host:4222`, with commas between several. Before the
    /// host may stand `user:password@` or `token@`, the same in all of them; what is not a letter
    /// or a digit in these is percent-encoded.
    pub url: String,
    /// A file of credentials, as `nsc` makes it.
    pub credentials: Option<PathBuf>,
    /// Certificates of the authorities that are trusted instead of the system's, PEM.
    pub authorities: Option<PathBuf>,
    /// Our own certificate and its key, PEM, for a server that asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for Connection {
    /// Without passwords: settings are printed in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("url", &self.public_url())
            .field("credentials", &self.credentials)
            .field("authorities", &self.authorities)
            .field("certificate", &self.certificate)
            .finish()
    }
}

/// A connection, and what the server has refused on it.
pub(crate) struct Link {
    pub(crate) client: Client,
    forbidden: Arc<Mutex<Option<String>>>,
}

impl Link {
    /// What we asked for last and may not have. The server says so to the connection, and the one
    /// who asked hears nothing: it would wait, and take the silence for a missing leader.
    pub(crate) fn forbidden(&self) -> Option<String> {
        self.forbidden.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Connection {
    /// Without credentials.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// Connects; from then on the client connects anew by itself, to whichever server is there.
    pub async fn connect(&self, name: &str) -> Result<Client, Error> {
        Ok(self.link(name).await?.client)
    }

    /// The same, and listens to what the server refuses.
    pub(crate) async fn link(&self, name: &str) -> Result<Link, Error> {
        let forbidden = Arc::new(Mutex::new(None));
        let heard = forbidden.clone();
        let mut options = ConnectOptions::new()
            .name(name)
            .max_reconnects(None)
            .connection_timeout(Duration::from_secs(2))
            .ping_interval(Duration::from_secs(5))
            .event_callback(move |event| {
                if let Event::ServerError(ServerError::Other(refusal)) = event
                    && refusal.to_lowercase().contains("permissions violation")
                {
                    *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                }
                std::future::ready(())
            })
            .reconnect_delay_callback(|attempt| {
                Duration::from_millis((50 << attempt.min(5)).min(1000))
            });
        let addresses = self.addresses()?;
        // The client does not read these from an address by itself.
        options = match user(&addresses)? {
            Some((user, Some(password))) => options.user_and_password(user, password),
            Some((token, None)) => options.token(token),
            None => options,
        };
        if let Some(path) = &self.credentials {
            let failed = |cause| Error::File { path: path.clone(), cause };
            options = options.credentials_file(path).await.map_err(failed)?;
        }
        if let Some(path) = &self.authorities {
            check_pem(path, "CERTIFICATE-----")?;
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.certificate {
            check_pem(certificate, "CERTIFICATE-----")?;
            check_pem(key, "PRIVATE KEY-----")?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        // The client logs addresses as they are.
        let addresses: Vec<ServerAddr> = addresses.into_iter().map(anonymous).collect();
        let client = options.connect(addresses).await.map_err(|error| Error::Connect {
            url: self.public_url(),
            hint: hint(&error),
            cause: error.to_string(),
        })?;
        Ok(Link { client, forbidden })
    }

    fn addresses(&self) -> Result<Vec<ServerAddr>, Error> {
        let parse = |address: &str| {
            address.trim().parse().map_err(|error: io::Error| Error::Connect {
                url: without_user(address.trim()),
                cause: error.to_string(),
                hint: "expected nats://host:4222 or tls://host:4222, with commas between several",
            })
        };
        self.url.split(',').map(parse).collect()
    }

    /// The addresses without passwords, for people.
    fn public_url(&self) -> String {
        let addresses: Vec<String> = self.url.split(',').map(without_user).collect();
        addresses.join(",")
    }
}

/// An address without user, password or token, whether it can be read or not.
fn without_user(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        _ => address.to_owned(),
    }
}

/// An address without user, password or token.
fn anonymous(address: ServerAddr) -> ServerAddr {
    let mut url = address.clone().into_inner();
    // Only an address without a host cannot be without a user.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    ServerAddr::from_url(url).unwrap_or(address)
}

/// User and password that the addresses name, or a token alone. There is one login for all nodes,
/// for nodes that one of them tells us about have no address of ours.
fn user(addresses: &[ServerAddr]) -> Result<Option<(String, Option<String>)>, Error> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let named = |address: &ServerAddr| {
        let user = address.username()?;
        Some((decode(user), address.password().map(decode)))
    };
    let mut all = addresses.iter().filter_map(named);
    let first = all.next();
    if all.any(|other| Some(&other) != first.as_ref()) {
        let reason = "the addresses of NATS name different users; give one, or --nats-credentials";
        return Err(Error::Settings(reason.into()));
    }
    Ok(first)
}

/// Is there something of a kind in a PEM file? The client says of a missing file only that TLS
/// failed, and trusts nobody if there is no certificate in it.
fn check_pem(path: &Path, kind: &str) -> Result<(), Error> {
    let failed = |cause| Error::File { path: path.to_owned(), cause };
    let text = std::fs::read(path).map_err(failed)?;
    let text = String::from_utf8_lossy(&text);
    if text.lines().any(|line| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(kind)) {
        return Ok(());
    }
    let reason = format!("PEM is expected, and there is no line -----BEGIN … {kind} in it");
    Err(failed(io::Error::new(io::ErrorKind::InvalidData, reason)))
}

/// What a person can do about a connection that failed.
fn hint(error: &ConnectError) -> &'static str {
    /// A server that does not take our certificate, or misses it, says so in an alert and hangs up.
    /// Whether we read the alert, or find the line dead when we write, is chance.
    const HUNG_UP: [&str; 5] =
        ["fatal alert", "broken pipe", "reset by peer", "end of file", "close_notify"];
    let text = error.to_string();
    let lower = text.to_lowercase();
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            "give credentials that it takes: --nats-credentials, --nats-certificate, or \
             nats://user:password@host"
        }
        _ if text.contains("invalid peer certificate") => {
            "--nats-authorities names the authority of its certificate, which must be for the host \
             of the address"
        }
        _ if text.contains("corrupt message") => {
            "it does not speak TLS on this port, which tls:// and --nats-authorities ask for"
        }
        _ if HUNG_UP.iter().any(|ending| lower.contains(ending)) => {
            "it hung up; if it asks clients for a certificate, give one of an authority that it \
             trusts: --nats-certificate and --nats-key"
        }
        _ => "is there a nats-server, and may we use it?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(url: &str) -> Connection {
        Connection::new(url)
    }

    #[test]
    fn users_passwords_and_tokens_are_read_from_addresses() {
        let read = |url: &str| user(&connection(url).addresses().unwrap()).unwrap();
        let pair = |user: &str, password: Option<&str>| {
            Some((user.to_owned(), password.map(str::to_owned)))
        };
        assert_eq!(read("nats://a:4222, nats://b"), None);
        assert_eq!(read("nats://me:p%40ss%3A@a"), pair("me", Some("p@ss:")));
        assert_eq!(read("nats://t0ken@a,tls://b"), pair("t0ken", None));
        let two = connection("nats://me:1@a,nats://me:2@b").addresses().unwrap();
        assert!(user(&two).unwrap_err().to_string().contains("different users"));
    }

    #[test]
    fn passwords_are_not_printed() {
        for url in ["nats://me:secret@a:4222,tls://me:secret@b", "me:secret@a", "x://me:secret@"] {
            let connection = connection(url);
            let printed = match connection.addresses() {
                Ok(_) => format!("{connection:?}"),
                Err(error) => format!("{connection:?} {error} {error:?}"),
            };
            assert!(!printed.contains("secret"), "{printed}");
        }
        let connection = connection("nats://me:secret@a:4222,tls://b");
        let anonymous: Vec<_> =
            connection.addresses().unwrap().into_iter().map(super::anonymous).collect();
        assert!(!format!("{anonymous:?}").contains("secret"), "{anonymous:?}");
        assert_eq!(connection.public_url(), "nats://a:4222,tls://b");
    }
}
