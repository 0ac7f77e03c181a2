//! Plain text: sentences without labels, a line each.

use std::borrow::Cow;
use std::path::Path;

use tapir::Tokenizer;

use crate::{Error, Result};

/// The sentences of a text as words: of a file with a line for each, or of a text that ships, by its
/// name. Lines without a word, or with more than `most`, are left out; an error if that leaves none.
///
/// ```
/// let sentences = tapir_data::read_text("alarms", tapir::Tokenizer::Spoken, 50)?;
/// assert!(sentences.iter().all(|words| words.len() <= 50));
/// assert!(tapir_data::read_text("no-such-text", tapir::Tokenizer::Spoken, 50).is_err());
/// # Ok::<(), tapir_data::Error>(())
/// ```
pub fn read_text(name: &str, tokenizer: Tokenizer, most: usize) -> Result<Vec<Vec<String>>> {
    let path = Path::new(name);
    let text = match shipped(name) {
        Some(text) if !path.exists() => Cow::from(text),
        None if !path.exists() => {
            return Err(Error::file(path, "no such file, and no text of that name ships"));
        }
        _ => Cow::from(std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?),
    };
    let sentences = text.lines().map(|line| tokenizer.words(line));
    let sentences: Vec<_> = sentences.filter(|words| (1..=most).contains(&words.len())).collect();
    if sentences.is_empty() {
        return Err(Error::file(path, format!("no line has 1 to {most} words")));
    }
    Ok(sentences)
}

/// The text of that name in the program, which has texts only with the feature `corpus`.
fn shipped(name: &str) -> Option<&'static str> {
    #[cfg(feature = "corpus")]
    return tapir_models::text(name);
    #[cfg(not(feature = "corpus"))]
    {
        let _ = name;
        None
    }
}
