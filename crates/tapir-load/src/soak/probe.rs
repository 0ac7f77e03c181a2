//! A client that has six words labelled ten times a second, and looks at the labels.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tapir::Model;
use tokio::time::{Instant, sleep_until};

use crate::Error;
use crate::connect::Route;
use crate::http::{Answer, Http, request};
use crate::script::labels;
use crate::speaker::Shared;

/// Requests a second.
pub(super) const RATE: f64 = 10.0;
const TEXT: &str = "play some jazz by miles davis";

/// What is asked, and what the answer is.
#[derive(Clone)]
pub(super) struct Probe {
    labels: Arc<Vec<String>>,
}

/// What is read of an answer.
#[derive(Deserialize)]
struct Tagged {
    results: [Labels; 1],
}

#[derive(Deserialize)]
struct Labels {
    labels: Vec<String>,
}

impl Probe {
    pub(super) fn new(model: &Model) -> Result<Self, Error> {
        let words: Vec<String> = TEXT.split(' ').map(str::to_owned).collect();
        Ok(Self { labels: Arc::new(labels(model, &words)?) })
    }

    /// Asks over a connection that is kept open, or over one for each request.
    pub(super) async fn run(self, server: SocketAddr, keep: bool, seen: Shared, until: Instant) {
        let route = Route::local(server, 2, 0);
        let body = serde_json::json!({ "text": TEXT }).to_string();
        let request = request(route, "POST /v1/tag", "", &body);
        let mut open = None;
        let mut due = Instant::now();
        while due < until {
            sleep_until(due).await;
            let answer = ask(&mut open, route, &request).await;
            // The server may say that it closes a connection; then the next is made for the next.
            open = open.filter(|_| keep && answer.as_ref().is_ok_and(|answer| !answer.closes));
            let milliseconds = due.elapsed().as_secs_f64() * 1e3;
            let checked = match answer {
                Ok(answer) if answer.status == 200 => self.check(&answer.body),
                Ok(answer) => {
                    let text = String::from_utf8_lossy(&answer.body);
                    Err(format!("/v1/tag was answered {}: {text}", answer.status))
                }
                Err(error) => Err(format!("/v1/tag: {error}")),
            };
            seen.note(|seen| {
                // What failed took its time, too: an answer that never comes is a late one.
                seen.first.push(milliseconds);
                if let Err(error) = checked {
                    seen.fail(error);
                }
            });
            // What is late is caught up with, but not without end: a server that stood still for
            // a while is not to be flooded by us.
            due += Duration::from_secs_f64(1.0 / RATE);
            if due.elapsed() > Duration::from_secs(1) {
                due = Instant::now();
            }
        }
    }

    fn check(&self, body: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(body);
        let Tagged { results: [tagged] } =
            serde_json::from_slice(body).map_err(|error| format!("{error}: {text}"))?;
        if tagged.labels == *self.labels {
            Ok(())
        } else {
            Err(format!("expected the labels {:?}, was answered {text}", self.labels))
        }
    }
}

/// Asks over the connection that is open, or a new one.
async fn ask(open: &mut Option<Http>, route: Route, request: &[u8]) -> io::Result<Answer> {
    let http = match open {
        Some(http) => http,
        None => open.insert(Http::connect(route).await?),
    };
    http.ask(request).await
}
