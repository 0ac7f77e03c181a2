//! `tapir stream`: messages in, answers out, a line each.

use std::io::{BufRead, Read, Write};

use anyhow::{Context, Result};
use tapir::protocol::{Response, Streams};

/// Longer messages are answered with an error.
const LONGEST_MESSAGE: u64 = 1 << 20;

/// Answer a recogniser: JSON Lines in, JSON Lines out, flushed after every line
///
/// Messages: {"push": "word"}, {"update": ["whole", "hypothesis"]}, {"revoke": 1}, {"finish":
/// true}, {"reset": true}, {"threshold": 0.3}, {"close": true}; each may name its session:
/// {"session": "a", "push": "word"}. What is wrong is said in the answer: {"error": "..."}.
/// docs/protocol.md describes every message.
///
/// Example:
///   printf '{"push": "play"}\n{"push": "jazz"}\n{"finish": true}\n' | tapir stream
#[allow(clippy::doc_link_with_quotes)] // JSON, not a link
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Stream {
    #[command(flatten)]
    model: crate::model::Choice,
    /// The most sessions at once
    #[arg(long, default_value_t = 10_000)]
    sessions: usize,
    /// Take words as they are, instead of giving them to the model's tokenizer
    #[arg(long)]
    pretokenized: bool,
}

impl Stream {
    pub(crate) fn run(self) -> Result<()> {
        let model = self.model.open()?;
        let limit = self.sessions;
        let mut streams = Streams::new(limit, &model, self.model.session_options())?;
        if self.pretokenized {
            streams = streams.pretokenized();
        }
        let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut input)
                .take(LONGEST_MESSAGE)
                .read_until(b'\n', &mut line)
                .context("standard input")?;
            if read == 0 {
                return Ok(());
            }
            let answer = if read as u64 == LONGEST_MESSAGE && !line.ends_with(b"\n") {
                skip_line(&mut input)?;
                Response::refusal(format!(
                    "a message longer than {LONGEST_MESSAGE} bytes; send words one by one"
                ))
            } else {
                match std::str::from_utf8(&line).map(str::trim) {
                    Ok(text) => streams.answer(text),
                    Err(error) => {
                        Response::refusal(format!("not a message: {error}; UTF-8 is expected"))
                    }
                }
            };
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
    }
}

/// Passes over the rest of a line, without keeping it.
fn skip_line(input: &mut impl BufRead) -> Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() || length == 0 {
            return Ok(());
        }
    }
}
