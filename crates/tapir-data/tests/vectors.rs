//! Word vectors: every reader, the form that ships, and what bad input says.

#![allow(clippy::unwrap_used, reason = "a test should stop at the first surprise")]

use std::{fs, io::Write};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tapir::WordVectors;
use tapir::vectors::checksum;
use tapir_data::{Result, VectorFormat, VectorOptions, VectorTable};

const GLOVE: &str = "the 0.5 -1 2\nplay 1 0 0.25\n. . . 3 2 1\n";

fn read_bytes(bytes: &[u8]) -> Result<(VectorTable, u64)> {
    read_with(bytes, &VectorOptions::default())
}

fn read_with(bytes: &[u8], options: &VectorOptions) -> Result<(VectorTable, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v");
    fs::write(&path, bytes).unwrap();
    VectorTable::read(&path, options)
}

fn message(bytes: &[u8]) -> String {
    let error = read_bytes(bytes).unwrap_err().to_string();
    let start = error.rfind("/v").unwrap() + 1;
    error[start..].to_owned()
}

fn word2vec(count: usize, words: &[(&str, [f32; 3])]) -> Vec<u8> {
    let mut bytes = format!("{count} 3\n").into_bytes();
    for (word, vector) in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(b' ');
        bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        bytes.push(b'\n');
    }
    bytes
}

fn reopened(table: &VectorTable) -> WordVectors {
    WordVectors::from_bytes(table.to_bytes().unwrap(), "test").unwrap()
}

#[test]
fn text_binary_and_gzip_give_the_same_table() {
    let (glove, _) = read_bytes(GLOVE.as_bytes()).unwrap();
    let (text, _) = read_bytes(format!("3 3\n{GLOVE}").as_bytes()).unwrap();
    assert_eq!(glove, text);
    let vectors = reopened(&glove);
    assert_eq!(vectors.row(". . ."), Some(2));
    for (vector, expected) in [("the", [0.5, -1.0, 2.0]), ("Play", [1.0, 0.0, 0.25])] {
        for (number, expected) in vectors.vector(vector).unwrap().into_iter().zip(expected) {
            assert!((number - expected).abs() <= 2.0 / 254.0 + 1e-6);
        }
    }
    let (short, _) = read_bytes(b"the 0.5 -1 2\nplay 1 0 0.25\n").unwrap();
    let binary = word2vec(2, &[("the", [0.5, -1.0, 2.0]), ("play", [1.0, 0.0, 0.25])]);
    assert_eq!(read_bytes(&binary).unwrap().0, short);

    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(GLOVE.as_bytes()).unwrap();
    assert_eq!(read_bytes(&zipped.finish().unwrap()).unwrap().0, glove);
}

#[test]
fn the_compact_form_is_a_table_and_a_list_of_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.safetensors");
    let header = r#"{"vectors":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend([1.0f32, 2.0, -3.0, 4.0].iter().flat_map(|number| number.to_le_bytes()));
    fs::write(&path, &bytes).unwrap();
    fs::write(folder.path().join("v.words.tsv"), "play\t1\nsing\t0\nsong\t1\n").unwrap();
    let (table, _) = VectorTable::read(&path, &VectorOptions::default()).unwrap();
    assert_eq!((table.len(), table.rows(), table.dim()), (3, 2, 2));
    assert_eq!(reopened(&table).row("song"), Some(1));

    fs::write(folder.path().join("v.words.tsv"), "play\t1\nsing\t2\n").unwrap();
    let error = VectorTable::read(&path, &VectorOptions::default()).unwrap_err().to_string();
    assert!(
        error.ends_with("v.words.tsv:2: \"sing\\t2\"; expected word TAB row, the row below 2"),
        "{error}"
    );
    let skip = VectorOptions { skip_bad: true, ..VectorOptions::default() };
    assert_eq!(VectorTable::read(&path, &skip).unwrap().1, 1);
}

#[test]
fn bad_lines_are_named() {
    assert_eq!(
        message(b"a 1 2 3\nb 1 2\n"),
        "v:2: 2 numbers for the word \"b\"; expected 3, as on the first line"
    );
    assert_eq!(
        message(b"a 1 2\nb 1 2 3\n"),
        "v:2: 3 numbers for the word \"b\"; expected 2, as on the first line"
    );
    assert_eq!(
        message(b"a 1 2\nb 1 x\n"),
        "v:2: \"x\" is no number, 0 before the end; expected 2 numbers"
    );
    assert_eq!(message(b"a 1 nan\n"), "v:1: the number \"nan\" is not finite");
    assert_eq!(message(b""), "v: is empty; expected word vectors");
    assert_eq!(message(b"\n"), "v: holds no word; expected the format text");
    assert_eq!(
        message(b"word\n"),
        "v:1: no number after \"word\"; expected a word and its numbers, separated by spaces"
    );
    assert!(
        message(b"a 1 2\n\xFF 1 2\n").starts_with("v:2: byte 0xFF at column 1 is not valid UTF-8")
    );
    let skip = VectorOptions { skip_bad: true, ..VectorOptions::default() };
    let (table, skipped) = read_with(b"a 1 2\nb 1\nc 3 4\n", &skip).unwrap();
    assert_eq!((table.len(), skipped), (2, 1));
}

#[test]
fn a_header_that_claims_too_much_is_an_error_not_an_allocation() {
    let short = word2vec(1_000_000_000_000, &[("the", [0.5, -1.0, 2.0])]);
    assert_eq!(message(&short), "v: ends within word 2; expected 1000000000000 words of 3 numbers");
    let wide = VectorOptions { format: Some(VectorFormat::Word2vec), ..VectorOptions::default() };
    let error = read_with(b"2 9999999999\na \x00\x00", &wide).unwrap_err().to_string();
    assert!(error.contains("its first line is not `words dim`"), "{error}");
}

#[test]
fn a_directory_is_no_table() {
    let folder = tempfile::tempdir().unwrap();
    for error in [
        VectorTable::read(folder.path(), &VectorOptions::default()).unwrap_err().to_string(),
        WordVectors::open(folder.path()).unwrap_err().to_string(),
    ] {
        assert!(error.contains("is a directory; expected a file"), "{error}");
    }
}

#[test]
fn pruning_changes_no_lookup_of_what_is_kept() {
    let vectors = reopened(&{
        let mut table = VectorTable::new(1);
        for (number, word) in ["play", "Play", "PARIS", "Paris", "rest", "ÉTÉ"].iter().enumerate()
        {
            table.push(word, &[number as f32 + 1.0]).unwrap();
        }
        table
    });
    let wanted = ["play", "paris", "été"];
    let mut table = VectorTable::from_vectors(&vectors);
    table.prune(wanted);
    assert_eq!((table.len(), table.rows()), (5, 5));
    let pruned = reopened(&table);
    for word in wanted {
        assert_eq!(pruned.vector(word), vectors.vector(word));
    }
    assert_eq!(pruned.row("rest"), None);
    assert!((pruned.scale() - vectors.scale()).abs() < 1e-6);
}

#[test]
fn the_vectors_that_ship_are_whole() {
    assert!(tapir_models::VECTORS.bytes.len() < 9_000_000);
    let vectors = WordVectors::embedded().unwrap();
    assert_eq!((vectors.len(), vectors.rows(), vectors.dim()), (514_092, 20_000, 300));
    assert_eq!(vectors.words().count(), 514_092);
    assert!(vectors.words().all(|(word, row)| vectors.row(&word) == Some(row)));
    assert!(vectors.notice().contains("CC0") && vectors.notice().contains("en_core_web_md 3.7.1"));
    let mut vector = vec![0.0; 300];
    let norms = (0..20_000).map(|row| {
        vectors.read(row, &mut vector);
        f64::from(vector.iter().map(|number| number * number).sum::<f32>()).sqrt()
    });
    let mean = norms.sum::<f64>() / 20_000.0;
    assert!(
        (mean - 44.47).abs() < 0.01 && (vectors.scale() - 2.716).abs() < 0.001,
        "{mean} {}",
        vectors.scale()
    );
}

/// A table of 200 words whose header and data were changed, with a checksum that agrees.
fn forged(change: impl FnOnce(&mut serde_json::Value, &mut Vec<u8>)) -> Vec<u8> {
    let mut table = VectorTable::new(4);
    for number in 0..200 {
        table.push(&format!("word{number:03}"), &[number as f32, 1.0, -1.0, 0.5]).unwrap();
    }
    let bytes = table.to_bytes().unwrap();
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let mut header: serde_json::Value = serde_json::from_slice(header).unwrap();
    let mut data = data.to_vec();
    change(&mut header, &mut data);
    header["__metadata__"]["checksum"] = format!("{:016x}", checksum(&data)).into();
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

/// Why a forged table is refused.
fn refusal(change: impl FnOnce(&mut serde_json::Value, &mut Vec<u8>)) -> String {
    let bytes = forged(change);
    WordVectors::from_bytes(bytes, "forged").expect_err("the table should be refused").to_string()
}

/// Where a tensor starts in the data.
fn start(header: &serde_json::Value, tensor: &str) -> usize {
    header[tensor]["data_offsets"][0].as_u64().unwrap() as usize
}

#[test]
fn scales_that_no_row_can_have_are_refused() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, f32::MAX] {
        let error = refusal(|header, data| {
            let at = start(header, "scales") + 4 * 7;
            data[at..at + 4].copy_from_slice(&bad.to_le_bytes());
        });
        assert!(error.contains(&format!("the scale of row 7 is {bad};")), "{error}");
    }
    for bad in ["inf", "NaN", "-1", "1e39", "much"] {
        let error = refusal(|header, _| header["__metadata__"]["scale"] = bad.into());
        assert!(
            error.contains(&format!("`scale` is \"{bad}\"; expected a finite number")),
            "{error}"
        );
    }
    let mut table = VectorTable::new(1);
    assert!(table.push("a", &[f32::MAX]).unwrap_err().to_string().contains("too large"));
}

#[test]
fn sizes_that_are_not_there_are_refused() {
    for bad in ["1e30", "NaN", "-1", "18446744073709551616", "200.5", ""] {
        let error = refusal(|header, _| header["__metadata__"]["words"] = bad.into());
        assert!(error.contains(&format!("`words` is {bad:?}; expected a whole number")), "{error}");
    }
    let error =
        refusal(|header, _| header["__metadata__"]["words"] = usize::MAX.to_string().into());
    assert!(error.contains("do not agree"), "{error}");
    // No rows, each of them of more numbers than there is memory for.
    for shape in [[0, 1_u64 << 60], [0, 0], [1 << 60, 0]] {
        let error = refusal(|header, data| {
            let at = start(header, "rows");
            data.drain(at..at + 800);
            for tensor in ["rows", "scales", "words", "blocks", "word_rows"] {
                for end in 0..2 {
                    let offset = &mut header[tensor]["data_offsets"][end];
                    let old = offset.as_u64().unwrap() as usize;
                    *offset = (old - 800.min(old.saturating_sub(at))).into();
                }
            }
            header["rows"]["shape"] = serde_json::json!(shape);
        });
        assert!(error.contains("`rows` has shape"), "{error}");
    }
}

/// Blocks that share their bytes would be a small file of many long words.
#[test]
fn blocks_of_words_that_overlap_are_refused() {
    for order in [[0_u32, 0, 0, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5, u32::MAX]] {
        let result = WordVectors::from_bytes(
            forged(|header, data| {
                let at = start(header, "blocks");
                for (number, start) in order.iter().enumerate() {
                    data[at + 4 * number..][..4].copy_from_slice(&start.to_le_bytes());
                }
            }),
            "forged",
        );
        let error = result.expect_err("the table should be refused").to_string();
        assert!(error.contains("damaged: "), "{error}");
    }
    let error = refusal(|header, data| {
        // The first letter of the second block's first word, so that it sorts before the first's.
        let second = start(header, "blocks") + 4;
        let second = u32::from_le_bytes(*data[second..].first_chunk().unwrap()) as usize;
        let at = start(header, "words") + second + 1;
        data[at] = b'a';
    });
    assert!(error.contains("not in order"), "{error}");
}

/// Offsets whose sum wraps round to the length of the file.
#[test]
fn tables_that_claim_more_than_there_is_are_refused() {
    let largest = (1_u64 << 61) - 1;
    let tensors = (0..9).map(|i| {
        let (start, end) = (i * largest, if i == 8 { u64::MAX } else { (i + 1) * largest });
        let shape = [1, end - start];
        (
            i.to_string(),
            serde_json::json!({"dtype": "U8", "shape": shape, "data_offsets": [start, end]}),
        )
    });
    let header = serde_json::Value::Object(tensors.collect()).to_string();
    let whole = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    let compact = VectorOptions { format: Some(VectorFormat::Compact), ..VectorOptions::default() };
    for bytes in [&whole[..], &whole[..whole.len() - 1]] {
        let error = read_with(bytes, &compact).unwrap_err().to_string();
        assert!(error.contains("not safetensors, or cut short"), "{error}");
        assert!(WordVectors::from_bytes(bytes.to_vec(), "forged").is_err());
    }
    for shape in [[0, 1_u64 << 60], [1 << 60, 0]] {
        let header =
            serde_json::json!({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}});
        let header = header.to_string();
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
        let error = read_with(&bytes, &compact).unwrap_err().to_string();
        assert!(error.contains("holds no table"), "{error}");
    }
    let binary = VectorOptions { format: Some(VectorFormat::Word2vec), ..VectorOptions::default() };
    for header in
        ["9 0\n", "18446744073709551615 0\n", "18446744073709551615 18446744073709551615\n"]
    {
        let error = read_with(header.as_bytes(), &binary).unwrap_err().to_string();
        assert!(error.contains("its first line is not `words dim`"), "{error}");
    }
}

#[test]
fn no_damage_makes_the_reader_panic() {
    let mut table = VectorTable::new(4);
    for number in 0..200 {
        table.push(&format!("word{number}"), &[number as f32, 1.0, -1.0, 0.5]).unwrap();
    }
    let bytes = table.to_bytes().unwrap();
    for end in (0..bytes.len()).step_by(7) {
        let error =
            WordVectors::from_bytes(bytes[..end].to_vec(), "cut.tapirvec").unwrap_err().to_string();
        assert!(error.starts_with("cut.tapirvec: "), "{error}");
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x55;
        if let Ok(vectors) = WordVectors::from_bytes(bytes, "damaged") {
            // Only the words of the metadata, such as its notice, can change unnoticed.
            vectors.words().for_each(drop);
            assert!(vectors.row("word7").is_some());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_word_is_found_and_no_other(
        words in prop::collection::btree_set("\\PC{1,20}|[ab]{1,40}|[\u{0}-\u{1f}]{1,2}", 1..300),
        others in prop::collection::vec("\\PC{1,4}|[ab]{1,9}", 0..50),
    ) {
        let mut table = VectorTable::new(1);
        for (number, word) in words.iter().enumerate() {
            table.push(word, &[number as f32]).unwrap();
        }
        let vectors = reopened(&table);
        let expected: Vec<(String, u32)> = words.iter().cloned().zip(0..).collect();
        prop_assert_eq!(vectors.words().collect::<Vec<_>>(), expected.clone());
        for (word, row) in expected {
            prop_assert_eq!(vectors.row(&word), Some(row));
        }
        for other in others {
            let capital: String = other.chars().take(1).flat_map(char::to_uppercase)
                .chain(other.chars().skip(1).collect::<String>().to_lowercase().chars()).collect();
            let forms = [other.clone(), other.to_lowercase(), capital, other.to_uppercase()];
            let expected = forms.iter().find_map(|form| words.iter().position(|word| word == form));
            prop_assert_eq!(vectors.row(&other), expected.map(|row| row as u32));
        }
    }

    /// Any bytes behind a header that agrees with them: the checksum is no defence against those
    /// who can compute it.
    #[test]
    fn no_forgery_makes_the_reader_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let bytes = forged(|_, data| for (index, byte) in damage {
            let at = index.index(data.len());
            data[at] = byte;
        });
        if let Ok(vectors) = WordVectors::from_bytes(bytes, "forged") {
            let total: usize = vectors.words().map(|(word, _)| word.len()).sum();
            prop_assert!(total <= 32 * vectors.bytes().len() * 3);
            for word in ["word007", "", "word", "zebra", "\u{0}"] {
                vectors.vector(word);
            }
            VectorTable::from_vectors(&vectors).to_bytes().unwrap();
        }
    }

    #[test]
    fn no_number_moves_by_more_than_half_a_step(rows in prop::collection::vec(prop::collection::vec(-1e6f32..1e6, 5), 1..20)) {
        let mut table = VectorTable::new(5);
        for (number, row) in rows.iter().enumerate() {
            table.push(&format!("w{number}"), row).unwrap();
        }
        let vectors = reopened(&table);
        for (number, row) in rows.iter().enumerate() {
            let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            for (stored, value) in vectors.vector(&format!("w{number}")).unwrap().iter().zip(row) {
                prop_assert!((stored - value).abs() <= largest / 254.0 * 1.0001);
            }
        }
    }
}
