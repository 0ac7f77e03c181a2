//! Labels words while they arrive, over NATS alone. Needs a nats-server with JetStream and a worker:
//!
//!     nats-server -js &
//!     tapir worker --nats nats://localhost:4222 &
//!     cargo run -p tapir-nats --example nats_client -- "add step to me to the fifty clasicos playlist"
//!
//! `NATS_URL` names another server.

use tapir::Label;
use tapir::protocol::Request;
use tapir_nats::{Client, Connection, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://localhost:4222".into());
    let said = std::env::args().nth(1).unwrap_or_else(|| "play some jazz by miles davis".into());
    let client = Client::connect(&Connection::new(url), "tapir").await?;
    let name = format!("example-{}", std::process::id());
    let (mut sender, mut answers) = client.session(&name, &Options::default()).await?;

    let push = |word: &str| Request { push: Some(word.to_owned()), ..Request::default() };
    let mut messages: Vec<Request> = said.split_whitespace().map(push).collect();
    messages.push(Request { finish: true, ..Request::default() });
    messages.push(Request { close: true, ..Request::default() });
    let mut labels: Vec<Label> = Vec::new();
    for message in &messages {
        let input = sender.send(message).await?;
        loop {
            let answer = answers.next().await?;
            // What an earlier program of this name left.
            if answer.input < input {
                continue;
            }
            if let Some(error) = answer.response.error {
                return Err(error.into());
            }
            if let Some(update) = &answer.response.update {
                update.apply(&mut labels);
                let kind = if answer.last { "final" } else { "provisional" };
                let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
                println!("{kind:<13}{}", labels.join(" "));
            }
            if answer.last {
                break;
            }
        }
    }
    Ok(())
}
