//! A gateway: `tapir serve` whose sessions are computed by the workers of a cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tapir::protocol::{Request, Response};
use tapir_serve::{Remote, RemoteOpening, RemoteSession};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cell::{Cell, CellSettings};
use crate::worker::random_name;
use crate::{Answers, Client, Connection, Error, Options, Sender};

/// Passes the sessions of a server on to a cell.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tapir_nats::{CellSettings, Connection, Gateway};
/// let connection = Connection::new("nats://localhost:4222");
/// let gateway = Gateway::connect(&connection, &CellSettings::default()).await?;
/// let settings = tapir_serve::Settings::default();
/// let server = tapir_serve::Server::start_before(settings, gateway).await?;
/// println!("http://{}", server.address());
/// # Ok(())
/// # }
/// ```
pub struct Gateway {
    client: Client,
    runtime: Handle,
    /// Sessions are called by this and a number, so that no two gateways share one.
    name: String,
    sessions: AtomicU64,
}

impl Gateway {
    /// Connects, and makes the cell if nobody has. Must be called in a tokio runtime.
    pub async fn connect(
        connection: &Connection,
        cell: &CellSettings,
    ) -> Result<Arc<dyn Remote>, Error> {
        let link = connection.link("tapir gateway").await?;
        let client = Client::of(Cell::open(&link, cell).await?);
        let (runtime, name) = (Handle::current(), random_name());
        Ok(Arc::new(Self { client, runtime, name, sessions: AtomicU64::new(0) }))
    }
}

impl Remote for Gateway {
    fn open(&self, opening: RemoteOpening) -> Box<dyn RemoteSession> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.name);
        let (requests, asked) = unbounded_channel();
        self.runtime.spawn(pass_on(self.client.clone(), name, opening, asked));
        Box::new(Passed(requests))
    }
}

/// A session that is passed on. Dropping it closes the session.
struct Passed(UnboundedSender<Request>);

impl RemoteSession for Passed {
    fn ask(&self, request: Request) {
        // Who has failed to pass a message on has said so.
        let _ = self.0.send(request);
    }
}

/// Passes the messages of one session on, and its answers back.
async fn pass_on(
    client: Client,
    name: String,
    opening: RemoteOpening,
    mut asked: UnboundedReceiver<Request>,
) {
    let RemoteOpening { model, threshold, provisional, answers } = opening;
    let options = Options {
        model: Some(model),
        threshold,
        settled: None,
        one_answer: !provisional,
        pretokenized: true,
    };
    let fail = |error: Error| {
        tracing::warn!(session = name, %error, "not passed on");
        let reason = match &error {
            Error::Full(_) => "it has had as many messages as it may have without a reset",
            _ => "the workers cannot be reached",
        };
        let reason = format!("{reason}: this session was closed; start it anew");
        answers(Response::refusal(reason), true);
    };
    let (mut sender, mut answered) = match client.session(&name, &options).await {
        Ok(session) => session,
        Err(error) => {
            // There is nobody to tell before something was asked.
            if asked.recv().await.is_some() {
                fail(error);
            }
            return;
        }
    };
    let mut is_closed = false;
    let mut waiting = 0_usize;
    loop {
        tokio::select! {
            request = asked.recv() => match request {
                Some(request) => {
                    is_closed = request.close;
                    match sender.send(&request).await {
                        Ok(_) => waiting += 1,
                        Err(error @ (Error::Refused(_) | Error::Full(_))) => {
                            // Those before it are answered first, or their client would take this
                            // for their answer.
                            let drained = drain(&mut answered, &*answers, &mut waiting).await;
                            match (drained, error) {
                                (Ok(()), Error::Full(_)) if request.close => {
                                    return answers(Response::default(), true);
                                }
                                (Err(error), _) | (Ok(()), error @ Error::Full(_)) => {
                                    return fail(error);
                                }
                                // This message alone is at fault.
                                (Ok(()), error) => {
                                    answers(Response::refusal(error.to_string()), false);
                                }
                            }
                        }
                        Err(error) => return fail(error),
                    }
                }
                None => break,
            },
            answer = answered.next(), if waiting > 0 => match answer {
                Ok(answer) => {
                    waiting -= usize::from(answer.last);
                    answers(answer.response, false);
                }
                Err(error) => return fail(error),
            },
        }
    }
    finish(sender, answered, &*answers, is_closed, waiting).await;
}

/// After the last message: gives the answers that are due, or has the workers forget a session
/// whose client has gone.
async fn finish(
    mut sender: Sender,
    mut answered: Answers,
    answers: &(dyn Fn(Response, bool) + Send + Sync),
    is_closed: bool,
    mut waiting: usize,
) {
    if !is_closed {
        let _ = sender.send(&Request { close: true, ..Request::default() }).await;
        return;
    }
    // Who cannot be answered any more has not been forgotten: the workers will do that.
    let _ = drain(&mut answered, answers, &mut waiting).await;
}

/// Gives the answers that are due.
async fn drain(
    answered: &mut Answers,
    answers: &(dyn Fn(Response, bool) + Send + Sync),
    waiting: &mut usize,
) -> Result<(), Error> {
    while *waiting > 0 {
        let answer = answered.next().await?;
        *waiting -= usize::from(answer.last);
        answers(answer.response, false);
    }
    Ok(())
}
