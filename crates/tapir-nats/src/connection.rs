//! How a program reaches NATS: addresses, credentials, TLS.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions};

use crate::Error;

/// How a program reaches NATS.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Addresses, `nats://host:4222` or `tls://host:4222`, with commas between several.
    pub url: String,
    /// A file of credentials, as `nsc` makes it.
    pub credentials: Option<PathBuf>,
    /// Certificates of the authorities that are trusted besides the system's, PEM.
    pub authorities: Option<PathBuf>,
    /// Our own certificate and its key, PEM, for a server that asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Connection {
    /// Without credentials.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// Connects; from then on the client connects anew by itself, to whichever server is there.
    pub async fn connect(&self, name: &str) -> Result<Client, Error> {
        let mut options = ConnectOptions::new()
            .name(name)
            .max_reconnects(None)
            .connection_timeout(Duration::from_secs(2))
            .ping_interval(Duration::from_secs(5))
            .reconnect_delay_callback(|attempt| {
                Duration::from_millis((50 << attempt.min(5)).min(1000))
            });
        if let Some(path) = &self.credentials {
            let failed = |cause| Error::File { path: path.clone(), cause };
            options = options.credentials_file(path).await.map_err(failed)?;
        }
        if let Some(path) = &self.authorities {
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let addresses: Vec<&str> = self.url.split(',').map(str::trim).collect();
        options
            .connect(addresses)
            .await
            .map_err(|error| Error::Connect { url: self.url.clone(), cause: error.to_string() })
    }
}
