//! JSON Lines: `{"tokens": ["play", "westbam"], "labels": ["O", "B-artist"]}`, one sentence per line,
//! and if it is known `"intent": "PlayMusic"`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::check_word;
use crate::{Result, Sentence, Text, lines::Lines};

#[derive(Serialize, Deserialize)]
struct Record<T> {
    #[serde(alias = "words")]
    tokens: Vec<T>,
    #[serde(alias = "tags")]
    labels: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<T>,
}

/// Opens a JSON Lines file.
pub(super) fn open(path: &Path) -> Result<impl Iterator<Item = Result<Sentence>> + use<>> {
    Ok(sentences(Lines::open(path)?))
}

/// The sentences of these lines.
pub(super) fn sentences(mut lines: Lines) -> impl Iterator<Item = Result<Sentence>> + use<> {
    std::iter::from_fn(move || {
        let parsed = loop {
            match lines.next_line() {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => break parse(line),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        };
        Some(parsed.map_err(|reason| lines.error(reason)))
    })
}

fn parse(line: &str) -> Result<Sentence, String> {
    let record: Record<Text> = serde_json::from_str(line).map_err(|error| {
        format!(
            "{error}; expected an object such as {{\"tokens\": [\"play\"], \"labels\": [\"O\"]}}"
        )
    })?;
    let (words, labels) = (record.tokens.len(), record.labels.len());
    if words != labels || words == 0 {
        return Err(format!(
            "{words} tokens and {labels} labels; expected one label for each of at least one token"
        ));
    }
    if record.tokens.iter().chain(&record.labels).chain(&record.intent).any(Text::is_empty) {
        return Err("a token, label or intent is empty; expected text".into());
    }
    record.tokens.iter().try_for_each(|word| check_word(word))?;
    Ok(Sentence { words: record.tokens, labels: record.labels, intent: record.intent })
}

pub(super) fn looks_like(lines: &[&str]) -> bool {
    lines.iter().find(|line| !line.trim().is_empty()).is_some_and(|line| {
        line.starts_with('{')
            && line.contains("\"labels\"")
                | line.contains("\"tokens\"")
                | line.contains("\"words\"")
    })
}

/// A sentence as one line of JSON.
pub(super) fn render(sentence: &Sentence, text: &mut String) -> Result<(), String> {
    let record = Record {
        tokens: sentence.words.iter().map(Text::as_str).collect(),
        labels: sentence.labels.iter().map(Text::as_str).collect(),
        intent: sentence.intent.as_deref(),
    };
    if record.tokens.iter().chain(&record.labels).chain(&record.intent).any(|text| text.is_empty())
    {
        return Err("a word, label or intent is empty".into());
    }
    text.push_str(&serde_json::to_string(&record).map_err(|error| error.to_string())?);
    text.push('\n');
    Ok(())
}
