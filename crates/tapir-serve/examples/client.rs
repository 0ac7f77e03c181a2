//! A client of `tapir serve`, word by word:
//!
//!     tapir serve &
//!     cargo run -p tapir-serve --example client -- ws://127.0.0.1:8642/v1/stream play some jazz by miles davis

use futures_util::{SinkExt, StreamExt};
use tapir::Label;
use tapir::protocol::{Request, Response};
use tokio_tungstenite::tungstenite::Message;

type Error = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .ok_or("expected an address, such as ws://127.0.0.1:8642/v1/stream, and words")?;
    let said: Vec<String> = arguments.collect();
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await?;

    let pushes = said.iter().map(|word| Request { push: Some(word.clone()), ..Request::default() });
    let finish = Request { finish: true, ..Request::default() };
    // Follows the server: what it holds is always the session's labels.
    let mut labels: Vec<Label> = Vec::new();
    // The words as the model reads them: "What's" may be two, "..." none.
    let mut words: Vec<String> = Vec::new();
    for request in pushes.chain([finish]) {
        socket.send(Message::text(serde_json::to_string(&request)?)).await?;
        let before = words.len();
        // A provisional answer is followed by another.
        loop {
            let message = socket.next().await.ok_or("the server closed the stream")??;
            let Message::Text(text) = message else { continue };
            let answer: Response = serde_json::from_str(text.as_str())?;
            if let Some(error) = answer.error {
                return Err(error.into());
            }
            words.truncate(before);
            words.extend(answer.words.unwrap_or_else(|| request.push.iter().cloned().collect()));
            if let Some(update) = &answer.update {
                update.apply(&mut labels);
            }
            let line: Vec<String> =
                words.iter().zip(&labels).map(|(word, label)| format!("{word}/{label}")).collect();
            println!("{} {}", if answer.provisional { "?" } else { " " }, line.join(" "));
            if !answer.provisional {
                break;
            }
        }
    }
    socket.close(None).await?;
    Ok(())
}
