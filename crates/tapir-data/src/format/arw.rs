//! Alarm, Reminder & Weather (Schuster et al., 2019), in its two layouts. `NoLabel` means `O`.
//!
//! CoNLL layout: `number TAB word TAB intent TAB label`, with `#` comments and a blank line between
//! utterances. TSV layout: `intent TAB start:end:slot,… TAB utterance TAB locale TAB tokens as
//! JSON`; spans count characters.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Parse},
    check_word, writable,
};
use crate::{Result, Sentence, Text, lines::Lines};

const NO_LABEL: &str = "NoLabel";

struct Conll;

/// Opens the CoNLL layout.
pub(super) fn open_conll(path: &Path) -> Result<impl Iterator<Item = Result<Sentence>> + use<>> {
    Ok(Blocks::new(Lines::open(path)?, Conll))
}

impl Parse for Conll {
    fn parse(&self, line: &str, sentence: &mut Sentence) -> Result<(), String> {
        if line.starts_with('#') {
            return Ok(());
        }
        let mut columns = line.split('\t');
        let fields = [0; 4].map(|_| columns.next().unwrap_or(""));
        let [number, word, intent, label] = fields;
        if number.parse::<u32>().is_err()
            || word.is_empty()
            || label.is_empty()
            || columns.next().is_some()
        {
            return Err(format!(
                "{line:?}; expected number, word, intent and label, separated by tabs"
            ));
        }
        sentence.push(word, if label == NO_LABEL { "O" } else { label });
        set_intent(sentence, intent);
        Ok(())
    }
}

/// What is in place of an intent that is not known.
const NO_INTENT: &str = "_";

/// The intent stands at every word; the first is taken.
fn set_intent(sentence: &mut Sentence, intent: &str) {
    if sentence.intent.is_none() && !intent.is_empty() && intent != NO_INTENT {
        sentence.intent = Some(Text::new(intent));
    }
}

/// The intent of a sentence as both layouts write it.
fn written_intent(sentence: &Sentence) -> Result<&str, String> {
    let holds = |c| !matches!(c, '\t' | '\n' | '\r');
    match sentence.intent.as_deref() {
        None => Ok(NO_INTENT),
        Some(NO_INTENT) => Err("the intent _ would be read as none; write jsonl instead".into()),
        Some(intent) => writable("intent", intent, holds),
    }
}

/// The first utterance decides: four columns, of which the first counts from 1.
pub(super) fn looks_like_conll(lines: &[&str]) -> bool {
    let words =
        lines.iter().filter(|line| !line.starts_with('#')).skip_while(|line| line.is_empty());
    let mut number = 0;
    for line in words.take_while(|line| !line.is_empty()) {
        number += 1;
        let columns: Vec<&str> = line.split('\t').collect();
        if columns.len() != 4 || columns[0].parse() != Ok(number) {
            return false;
        }
    }
    number > 0
}

/// A sentence in the CoNLL layout.
pub(super) fn render_conll(sentence: &Sentence, text: &mut String) -> Result<(), String> {
    let intent = written_intent(sentence)?;
    let holds = |c| !matches!(c, '\t' | '\n' | '\r');
    for (number, (word, label)) in sentence.tokens().enumerate() {
        let label = match label {
            "O" => NO_LABEL,
            NO_LABEL => {
                return Err("the label NoLabel would be read as O; write jsonl instead".into());
            }
            label => writable("label", label, holds)?,
        };
        text.extend([
            &(number + 1).to_string(),
            "\t",
            writable("word", word, holds)?,
            "\t",
            intent,
            "\t",
            label,
            "\n",
        ]);
    }
    text.push('\n');
    Ok(())
}

/// The last column of the TSV layout.
#[derive(Serialize, Deserialize)]
struct Tokenizations {
    tokenizations: Vec<Tokenization>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokenization {
    tokens: Vec<String>,
    token_spans: Vec<Span>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Span {
    start: usize,
    length: usize,
}

/// A stretch of characters with a name.
struct Slot<'a> {
    start: usize,
    end: usize,
    name: &'a str,
}

/// Opens the TSV layout.
pub(super) fn open_tsv(path: &Path) -> Result<impl Iterator<Item = Result<Sentence>> + use<>> {
    let mut lines = Lines::open(path)?;
    Ok(std::iter::from_fn(move || {
        let parsed = loop {
            match lines.next_line() {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => break parse_tsv(line),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        };
        Some(parsed.map_err(|reason| lines.error(reason)))
    }))
}

fn parse_tsv(line: &str) -> Result<Sentence, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let (intent, slots, utterance, tokens) = match columns[..] {
        [intent, slots, utterance] | [intent, slots, utterance, _] => {
            (intent, slots, utterance, None)
        }
        [intent, slots, utterance, _locale, tokens] => (intent, slots, utterance, Some(tokens)),
        _ => {
            return Err(format!(
                "{} column(s); expected 3 to 5, separated by tabs: intent, slots, utterance, locale, tokens",
                columns.len()
            ));
        }
    };
    let slots = parse_slots(slots)?;
    let tokenization = match tokens {
        Some(json) => parse_tokens(json)?,
        None => split_at_spaces(utterance),
    };
    let mut sentence = Sentence::default();
    let mut previous = None;
    for (word, span) in tokenization.tokens.iter().zip(&tokenization.token_spans) {
        let end = span.start.saturating_add(span.length);
        let slot = slots.iter().position(|slot| span.start < slot.end && slot.start < end);
        let label = match slot {
            None => "O".to_owned(),
            Some(slot) if previous == Some(slot) => format!("I-{}", slots[slot].name),
            Some(slot) => format!("B-{}", slots[slot].name),
        };
        previous = slot;
        check_word(word)?;
        sentence.push(word, &label);
    }
    if sentence.is_empty() || sentence.words.iter().any(Text::is_empty) {
        return Err(format!("no word or an empty one in the utterance {utterance:?}"));
    }
    set_intent(&mut sentence, intent);
    Ok(sentence)
}

fn parse_slots(text: &str) -> Result<Vec<Slot<'_>>, String> {
    let mut slots: Vec<Slot> = Vec::new();
    for slot in text.split(',').filter(|slot| !slot.is_empty()) {
        let mut parts = slot.splitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        let (start, end) = (number(), number());
        let (Some(start), Some(end), Some(name)) =
            (start, end, parts.next().filter(|name| !name.is_empty()))
        else {
            return Err(format!(
                "the slot {slot:?}; expected start:end:name, such as 6:14:datetime"
            ));
        };
        if start >= end {
            return Err(format!("the slot {slot:?} ends before it starts"));
        }
        if slots.iter().any(|other: &Slot| start < other.end && other.start < end) {
            return Err(format!("the slot {slot:?} overlaps another; expected slots side by side"));
        }
        slots.push(Slot { start, end, name });
    }
    Ok(slots)
}

fn parse_tokens(json: &str) -> Result<Tokenization, String> {
    let all: Tokenizations = serde_json::from_str(json).map_err(|error| {
        format!("{error} in column 5; expected {{\"tokenizations\":[{{\"tokens\":[…],\"tokenSpans\":[…]}}]}}")
    })?;
    let first = all
        .tokenizations
        .into_iter()
        .next()
        .ok_or("column 5 holds no tokenization; expected one")?;
    if first.tokens.len() != first.token_spans.len() {
        let (tokens, spans) = (first.tokens.len(), first.token_spans.len());
        return Err(format!("{tokens} tokens and {spans} spans in column 5; expected as many"));
    }
    Ok(first)
}

fn split_at_spaces(utterance: &str) -> Tokenization {
    let mut tokenization = Tokenization { tokens: Vec::new(), token_spans: Vec::new() };
    let mut start = 0;
    for piece in utterance.split(' ') {
        let length = piece.chars().count();
        if length > 0 {
            tokenization.tokens.push(piece.to_owned());
            tokenization.token_spans.push(Span { start, length });
        }
        start += length + 1;
    }
    tokenization
}

/// The first line decides: slots in its second column, and tokens in its fifth if it has one.
pub(super) fn looks_like_tsv(lines: &[&str]) -> bool {
    let columns: Vec<&str> = lines
        .iter()
        .find(|line| !line.is_empty())
        .map_or(Vec::new(), |line| line.split('\t').collect());
    match columns[..] {
        [_, slots, _, _] => parse_slots(slots).is_ok(),
        [_, slots, _, _, tokens] => {
            parse_slots(slots).is_ok() && tokens.starts_with("{\"tokenizations\"")
        }
        _ => false,
    }
}

/// A sentence in the TSV layout, its locale unknown. Only well-formed IOB labels are
/// spans.
pub(super) fn render_tsv(sentence: &Sentence, text: &mut String) -> Result<(), String> {
    let mut slots: Vec<(usize, usize, &str)> = Vec::new();
    let mut tokenization = Tokenization { tokens: Vec::new(), token_spans: Vec::new() };
    let mut open = false;
    let mut start = 0;
    for (word, label) in sentence.tokens() {
        writable("word", word, |c| !matches!(c, '\t' | '\n' | '\r'))?;
        let length = word.chars().count();
        let end = start + length;
        if label == "O" {
            open = false;
        } else if let Some(name) = label.strip_prefix("B-") {
            let name = writable("label", name, |c| !matches!(c, '\t' | '\n' | '\r' | ','))?;
            slots.push((start, end, name));
            open = true;
        } else {
            let last =
                slots.last_mut().filter(|slot| open && label.strip_prefix("I-") == Some(slot.2));
            let last = last.ok_or_else(|| {
                format!(
                    "the label {label:?} continues no slot, so it has no span; write jsonl instead"
                )
            })?;
            last.1 = end;
        }
        tokenization.tokens.push(word.to_owned());
        tokenization.token_spans.push(Span { start, length });
        start = end + 1;
    }
    let slots: Vec<String> =
        slots.iter().map(|(start, end, name)| format!("{start}:{end}:{name}")).collect();
    let tokens = serde_json::to_string(&Tokenizations { tokenizations: vec![tokenization] })
        .map_err(|error| error.to_string())?;
    let intent = written_intent(sentence)?;
    text.extend([
        intent,
        "\t",
        &slots.join(","),
        "\t",
        &sentence.words.join(" "),
        "\t_\t",
        &tokens,
        "\n",
    ]);
    Ok(())
}
