//! `tapir serve`: streams over a port.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::FalseyValueParser;
use tapir_serve::{Server, Settings, Tls};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Serve streams: WebSocket and HTTP over one port, and a page to watch one
///
/// Flags come before the environment (TAPIR_LISTEN, …), and both before the file given by --config.
/// The file has more keys, such as all limits: docs/serve.md describes them. SIGHUP reads the
/// models anew; SIGTERM and Ctrl-C finish the words in hand and stop.
#[derive(Args)]
#[command(after_help = "Examples:
  tapir serve
  tapir serve --model runs/snips/model --listen 0.0.0.0:8642 --token-file tokens.txt --certificate tls.pem --key tls.key
  curl localhost:8642/v1/tag -H 'content-type: application/json' -d '{\"text\": \"play some jazz\"}'")]
pub(crate) struct Serve {
    /// A settings file, TOML
    #[arg(long, value_name = "FILE", env = "TAPIR_CONFIG")]
    config: Option<PathBuf>,
    /// Where to listen: an address or a name such as localhost, and a port [default:
    /// 127.0.0.1:8642]
    #[arg(long, value_name = "ADDRESS:PORT", env = "TAPIR_LISTEN", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Models to serve, the first by default: the directory of one or the name of one that ships,
    /// each with a name of its own in front if it is to be called otherwise [default: all that
    /// ship]
    #[arg(long, value_name = "[NAME=]MODEL", env = "TAPIR_MODELS", value_delimiter = ',')]
    model: Vec<String>,
    /// Model workers [default: one per core]
    #[arg(long, value_name = "N", env = "TAPIR_WORKERS")]
    workers: Option<usize>,
    /// The most words, each of another stream, that a worker reads at once [default: 64]
    #[arg(long, value_name = "N", env = "TAPIR_BATCH")]
    batch: Option<usize>,
    /// The most sessions at once [default: 10000]
    #[arg(long, value_name = "N", env = "TAPIR_SESSIONS")]
    sessions: Option<usize>,
    /// The most requests and new streams a second from one address [default: 200]
    #[arg(long, value_name = "N", env = "TAPIR_REQUESTS")]
    requests: Option<u32>,
    /// Close streams that are silent so many seconds [default: 300]
    #[arg(long, value_name = "SECONDS", env = "TAPIR_IDLE")]
    idle: Option<u64>,
    /// A file of bearer tokens, a line each: only who gives one is served
    #[arg(long, value_name = "FILE", env = "TAPIR_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// A file with the bearer token of /admin/reload
    #[arg(long, value_name = "FILE", env = "TAPIR_ADMIN_TOKEN_FILE")]
    admin_token_file: Option<PathBuf>,
    /// The certificate chain for TLS, PEM
    #[arg(long, value_name = "FILE", env = "TAPIR_CERTIFICATE", requires = "key")]
    certificate: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", env = "TAPIR_KEY", requires = "certificate")]
    key: Option<PathBuf>,
    /// Web origins, scheme and host, whose pages may use the server
    #[arg(long, value_name = "ORIGIN", env = "TAPIR_ORIGINS", value_delimiter = ',')]
    origin: Vec<String>,
    /// Names under which a server without tokens is reached, besides localhost and addresses
    #[arg(long, value_name = "NAME", env = "TAPIR_HOSTS", value_delimiter = ',')]
    host: Vec<String>,
    /// Addresses of proxies whose X-Forwarded-For names the client
    #[arg(long, value_name = "ADDRESS", env = "TAPIR_PROXIES", value_delimiter = ',')]
    proxy: Vec<IpAddr>,
    /// Log lines as JSON; TAPIR_LOG says how much is logged (info, debug, …)
    #[arg(long, env = "TAPIR_LOG_JSON", value_parser = FalseyValueParser::new())]
    log_json: bool,
    #[cfg(feature = "nats")]
    #[command(flatten)]
    nats: crate::nats::Gateway,
    /// Write the words of users, as they come over streams, into the log
    #[arg(long, env = "TAPIR_LOG_WORDS", value_name = "YES", value_parser = FalseyValueParser::new(),
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    log_words: Option<bool>,
}

impl Serve {
    pub(crate) fn run(self) -> Result<()> {
        crate::log::start(self.log_json)?;
        #[cfg(feature = "nats")]
        let nats = self.nats.clone();
        let settings = self.settings()?;
        raise_file_limit();
        use_small_pages();
        // The model workers need the cores more than the sockets do: half as many threads gave
        // shorter waits.
        let threads =
            std::thread::available_parallelism().map_or(1, |cores| usize::from(cores).div_ceil(2));
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(threads).enable_all().build().context("no threads")?;
        runtime.block_on(async {
            // Before anybody can know that there is somebody to signal to.
            let signals = Signals::new()?;
            let scheme = if settings.tls.is_some() { "https" } else { "http" };
            #[cfg(feature = "nats")]
            let server = nats.start(settings).await?;
            #[cfg(not(feature = "nats"))]
            let server = Server::start(settings).await?;
            println!("listening on {scheme}://{}", server.address());
            signals.until_stopped(&server).await?;
            server.stop().await;
            Ok(())
        })
    }

    /// Flags and environment over the file over the defaults.
    fn settings(self) -> Result<Settings> {
        let mut settings = match &self.config {
            Some(path) => Settings::open(path)?,
            None => Settings::default(),
        };
        if !self.model.is_empty() {
            let models: Vec<(String, String)> =
                self.model.iter().map(|given| named(given)).collect::<Result<_>>()?;
            settings.default_model = models.first().map(|(name, _)| name.clone());
            settings.models = models.into_iter().collect();
            if settings.models.len() < self.model.len() {
                bail!(
                    "--model: two models have the same name; give them names of their own: --model NAME=DIR"
                );
            }
        }
        set(self.listen, &mut settings.listen);
        set(self.workers, &mut settings.workers);
        set(self.batch, &mut settings.batch);
        set(self.sessions, &mut settings.limits.sessions);
        set(self.requests, &mut settings.limits.requests_per_second);
        set(self.idle, &mut settings.limits.idle_seconds);
        if let Some(path) = &self.token_file {
            settings.tokens = tokens(path)?;
        }
        if let Some(path) = &self.admin_token_file {
            settings.admin_token = tokens(path)?.into_iter().next();
        }
        if let (Some(certificate), Some(key)) = (self.certificate, self.key) {
            settings.tls = Some(Tls { certificate, key });
        }
        if !self.origin.is_empty() {
            settings.origins = self.origin;
        }
        if !self.host.is_empty() {
            settings.hosts = self.host;
        }
        if !self.proxy.is_empty() {
            settings.proxies = self.proxy;
        }
        set(self.log_words, &mut settings.log_words);
        Ok(settings)
    }
}

/// An address and a port; of a name that stands for several, an IPv4 one if there is one.
fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port, such as 127.0.0.1:8642 or localhost:8642";
    let found = text.to_socket_addrs().map_err(|error| format!("{error}; {expected}"))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| expected.to_owned())
}

/// Takes what was given.
fn set<T>(given: Option<T>, setting: &mut T) {
    if let Some(given) = given {
        *setting = given;
    }
}

/// `NAME=DIR`, or a directory that gives its name: the last part of its path that is not `model`.
pub(crate) fn named(given: &str) -> Result<(String, String)> {
    if let Some((name, source)) = given.split_once('=') {
        return Ok((name.to_owned(), source.to_owned()));
    }
    if let Some(name) = given.strip_prefix("embedded:") {
        return Ok((name.to_owned(), given.to_owned()));
    }
    let path = std::path::absolute(given).with_context(|| given.to_owned())?;
    let parts = path.components().rev().filter_map(|part| part.as_os_str().to_str());
    let name = parts.filter(|part| *part != "model" && *part != "/").map(str::to_owned).next();
    let name =
        name.with_context(|| format!("--model {given}: give it a name: --model NAME={given}"))?;
    Ok((name, given.to_owned()))
}

fn tokens(path: &std::path::Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let tokens: Vec<String> =
        text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect();
    if tokens.is_empty() {
        bail!(
            "{}: there is no token in it; write one per line, or leave the flag out",
            path.display()
        );
    }
    Ok(tokens)
}

/// The signals that the server obeys.
#[cfg(unix)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self> {
        let [interrupt, terminate, hang_up] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Self { interrupt: interrupt?, terminate: terminate?, hang_up: hang_up? })
    }

    /// Waits for the signal to stop; SIGHUP reads the models anew.
    async fn until_stopped(mut self, server: &Server) -> Result<()> {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Ok(()),
                _ = self.terminate.recv() => return Ok(()),
                // What went wrong is in the log; the old models go on.
                _ = self.hang_up.recv() => drop(server.reload().await),
            }
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self> {
        Ok(Self)
    }

    async fn until_stopped(self, _: &Server) -> Result<()> {
        Ok(tokio::signal::ctrl_c().await?)
    }
}

/// Keeps the kernel from joining small pages to huge ones. It does so minutes after they were used,
/// and makes resident what lies unused between the allocations of sessions that came and went: the
/// memory of a busy server grew by 7 % in its thirteenth minute.
pub(crate) fn use_small_pages() {
    #[cfg(target_os = "linux")]
    {
        // An old kernel cannot; then it grows.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}

/// Every stream is an open file: as many as the system allows.
pub(crate) fn raise_file_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // With fewer files there are fewer streams, and an error for those above.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
