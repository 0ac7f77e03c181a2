//! `tokenizer.json` of Hugging Face's `tokenizers`, as far as it is a BERT's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{PREFIX, PieceRules, SPECIAL, WordPieces};
use crate::vocabulary::shorten;
use crate::{Error, Result};

/// The file. What only matters to texts that are cut, filled up or put together again is ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenizerJson {
    #[serde(rename = "version")]
    _version: Option<IgnoredAny>,
    #[serde(rename = "truncation")]
    _truncation: Option<IgnoredAny>,
    #[serde(rename = "padding")]
    _padding: Option<IgnoredAny>,
    #[serde(rename = "decoder")]
    _decoder: Option<IgnoredAny>,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Value,
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    model: Value,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum Normalizer {
    BertNormalizer {
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: Option<bool>,
        lowercase: bool,
    },
}

/// `model`, once it is known to be of this type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordPiece {
    #[serde(rename = "type")]
    _type: Option<IgnoredAny>,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: BTreeMap<String, u32>,
}

/// Special pieces that stand for no part of a text.
const UNREAD: [&str; 2] = ["[PAD]", "[MASK]"];

/// May this be an added token? `tokenizers` cuts one out of a text before it makes words of it, and
/// we do not: that is the same only for tokens which nobody writes.
fn is_never_written(token: &str) -> bool {
    SPECIAL.contains(&token) || UNREAD.contains(&token) || token.starts_with("[unused")
}

pub(super) fn read(json: &str, file: &str) -> Result<(WordPieces, PieceRules)> {
    let invalid = |reason: String| Error::invalid(file, reason);
    let tokenizer: TokenizerJson =
        serde_json::from_str(json).map_err(|error| Error::invalid(file, error))?;
    // Files of old versions do not say it: bert-base-uncased's, for one.
    if let Some(kind) = tokenizer.model.get("type").filter(|kind| *kind != "WordPiece") {
        return Err(invalid(format!("`model.type` is {kind}, expected WordPiece")));
    }
    let model = serde_json::from_value(tokenizer.model);
    let WordPiece {
        unk_token,
        continuing_subword_prefix,
        max_input_chars_per_word: longest,
        vocab,
        ..
    } = model.map_err(|error| invalid(format!("`model`: {error}")))?;
    for (name, found, expected) in [
        ("unk_token", &unk_token, SPECIAL[0]),
        ("continuing_subword_prefix", &continuing_subword_prefix, PREFIX),
    ] {
        if found != expected {
            let found = shorten(found);
            return Err(invalid(format!("`model.{name}` is {found:?}, expected {expected:?}")));
        }
    }
    let pre_tokenizer = &only(&tokenizer.pre_tokenizer, "pretokenizers")["type"];
    if pre_tokenizer != "BertPreTokenizer" {
        let reason = format!("`pre_tokenizer` is {pre_tokenizer}, expected BertPreTokenizer");
        return Err(invalid(reason));
    }
    let pieces = by_id(&vocab).map_err(invalid)?;
    let pieces = WordPieces::build(pieces, file)?;
    if let Some(token) = tokenizer.added_tokens.iter().find(|token| {
        // A special piece of the list is no other by being named again. Those that no word is made
        // of are added behind it where it lacks them.
        let id = vocab.get(&token.content);
        let unread =
            id.is_none() && UNREAD.contains(&&*token.content) && token.id as usize >= vocab.len();
        let known = id == Some(&token.id) && is_never_written(&token.content);
        !token.special || !(known || unread)
    }) {
        let reason = format!(
            "`added_tokens` has {:?} with id {}: tokens beside the pieces of the model are not \
             supported",
            shorten(&token.content),
            token.id
        );
        return Err(invalid(reason));
    }
    let processor = only(&tokenizer.post_processor, "processors");
    // Each end by its name and by its id: one that lied about the other would be another piece. A
    // file that says nothing of ends, as a newly trained one, leaves it to the encoder, which wants
    // them.
    let expected = SPECIAL[1..].iter().map(|end| (*end, vec![vocab.get(*end).copied()]));
    if !processor.is_null() && ends(processor) != Some(expected.collect()) {
        let reason = format!(
            "`post_processor` is {}, expected one that puts a text between [CLS] and [SEP], all of \
             type 0, with the ids that these have in `model.vocab`",
            shorten(&processor.to_string())
        );
        return Err(invalid(reason));
    }
    let normalizer = Normalizer::deserialize(only(&tokenizer.normalizer, "normalizers"));
    let Normalizer::BertNormalizer { clean_text, handle_chinese_chars, strip_accents, lowercase } =
        normalizer.map_err(|error| invalid(format!("`normalizer`: {error}")))?;
    let rules = PieceRules {
        clean: clean_text,
        split_chinese: handle_chinese_chars,
        strip_accents: strip_accents.unwrap_or(lowercase),
        lowercase,
        longest,
    };
    Ok((pieces, rules))
}

/// A part of a tokenizer, also where it is the only one of a sequence.
fn only<'a>(part: &'a Value, list: &str) -> &'a Value {
    match part[list].as_array().map(Vec::as_slice) {
        Some([part]) if part["type"] != "Sequence" => part,
        _ => part,
    }
}

/// The pieces in the order of their ids, of which each from 0 on must be there once.
fn by_id(vocab: &BTreeMap<String, u32>) -> Result<Vec<&str>, String> {
    let mut pieces = vec![None; vocab.len()];
    for (piece, id) in vocab {
        let count = vocab.len();
        let place = pieces.get_mut(*id as usize).ok_or_else(|| {
            let piece = shorten(piece);
            format!("`model.vocab` has {count} pieces, but {piece:?} has the id {id}")
        })?;
        if let Some(other) = place.replace(piece.as_str()) {
            let (a, b) = (shorten(other), shorten(piece));
            return Err(format!("`model.vocab` gives {a:?} and {b:?} the same id {id}"));
        }
    }
    // As many ids as pieces, each below their number and none twice: all are there.
    Ok(pieces.into_iter().flatten().collect())
}

/// A special token: its name and the ids of its pieces.
type End<'a> = (&'a str, Vec<Option<u32>>);

/// What a post-processor puts before and after a text, if that is all it does.
fn ends(processor: &Value) -> Option<Vec<End<'_>>> {
    match processor["type"].as_str()? {
        "BertProcessing" => {
            let end = |name| Some((processor[name][0].as_str()?, vec![id(&processor[name][1])]));
            ["cls", "sep"].into_iter().map(end).collect()
        }
        "TemplateProcessing" => {
            let [before, text, after] = &processor["single"].as_array()?[..] else { return None };
            let text = &text["Sequence"];
            (text["id"] == "A" && text["type_id"] == 0).then_some(())?;
            let end = |part| {
                let name = special(part)?;
                let ids = processor["special_tokens"][name]["ids"].as_array()?;
                Some((name, ids.iter().map(id).collect()))
            };
            [before, after].into_iter().map(end).collect()
        }
        _ => None,
    }
}

fn id(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

/// The special token of a template's part, if its type is 0.
fn special(part: &Value) -> Option<&str> {
    let token = &part["SpecialToken"];
    token["id"].as_str().filter(|_| token["type_id"] == 0)
}
