//! Damaged, lying and impossible models and words: each is an error that names what is wrong;
//! nothing panics.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tapir::{
    Bytes, Config, Error, ImportOptions, Labels, Mode, Model, Parts, Precision, SessionOptions,
    TensorWriter, Vocabulary,
};

/// A model directory to damage.
fn saved() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    tapir::doctest::parts().save(&model).unwrap();
    (dir, model)
}

fn message(model: &Path) -> String {
    Model::open(model).expect_err("the model should be refused").to_string()
}

/// The message names the file and says all of `parts`.
fn assert_says(model: &Path, file: &str, parts: &[&str]) {
    let message = message(model);
    for part in parts.iter().chain([&file]) {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

#[test]
fn missing_files_are_named() {
    for file in ["config.json", "labels.txt", "vocab.txt", "model.safetensors"] {
        let (_dir, model) = saved();
        fs::remove_file(model.join(file)).unwrap();
        assert_says(&model, file, &["No such file"]);
    }
    assert_says(Path::new("no/such/model"), "no/such/model", &["no such directory", "config.json"]);
    let (_dir, model) = saved();
    assert_says(&model.join("labels.txt"), "labels.txt", &["not a directory"]);
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    for (from, to, says) in [
        ("\"version\": 1", "\"version\": 2", "version 2"),
        ("\"version\": 1", "\"version\": \"one\"", "invalid type"),
        ("\"version\": 1,", "", "no `version`"),
        ("\"heads\": 2", "\"heads\": 3", "must divide"),
        ("\"heads\": 2", "\"heads\": 0", "`reviser.heads` is 0"),
        ("\"layers\": 1", "\"layers\": 99999999999", "99999999999"),
        ("\"threshold\": 0.5", "\"threshold\": 1.5", "`threshold` is 1.5"),
        ("\"delay\": 0", "\"delay\": 4000", "`max_length`"),
        ("\"delay\": 0", "\"delay\": 18446744073709551615", "`delay` is 18446744073709551615"),
        ("\"delay\": 0", "\"delay\": 18446744073709551614", "`delay` is 18446744073709551614"),
        ("\"memory\": 3", "\"memory\": 18446744073709551615", "`controller.memory` is 1844"),
        (
            "\"delay\": 0",
            "\"delay\": 0, \"vectors\": \"config.json\"",
            "`vectors` is \"config.json\"",
        ),
        ("\"delay\": 0", "\"delay\": 0, \"vectors\": \"../x\"", "expected a file name"),
        ("\"delay\": 0", "\"delay\": 0, \"colour\": 1", "colour"),
        ("\"embedding_dim\": 8", "\"embedding_dim\": 9", "expected"),
        ("\"hidden\": 8", "\"hidden\": 4096", "expected"),
        ("{", "", "line 2"),
    ] {
        let (_dir, model) = saved();
        let json = fs::read_to_string(model.join("config.json")).unwrap();
        assert!(json.contains(from), "{from}");
        fs::write(model.join("config.json"), json.replacen(from, to, 1)).unwrap();
        let message = message(&model);
        assert!(message.contains(says), "{from} -> {to}: {message}");
    }
}

#[test]
fn label_and_word_lists_must_fit_the_weights() {
    let (_dir, model) = saved();
    fs::write(model.join("labels.txt"), "O\nB-artist\n").unwrap();
    assert_says(
        &model,
        "model.safetensors",
        &["processor.output.weight", "[4, 8]", "expected [2, 8]"],
    );

    let (_dir, model) = saved();
    fs::write(model.join("vocab.txt"), "<pad>\n<unk>\n<null>\nplay\n").unwrap();
    assert_says(&model, "model.safetensors", &["embedding", "expected [4, 8]"]);

    let (_dir, model) = saved();
    fs::write(model.join("labels.txt"), [0xff, 0xfe, b'\n']).unwrap();
    assert_says(&model, "labels.txt", &["UTF-8"]);
}

#[test]
fn weights_that_are_not_whole_are_refused() {
    let (_dir, model) = saved();
    let path = model.join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    let header = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let mut cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("seven bytes", whole[..7].to_vec()),
        ("no data", whole[..8 + header].to_vec()),
        ("half the data", whole[..8 + header + (whole.len() - header) / 2].to_vec()),
        ("a byte too many", [&whole[..], &[0]].concat()),
    ];
    for length in [u64::MAX, 1 << 62, 1 << 40, 99_999_999, 0, 1] {
        let mut lying = whole.clone();
        lying[..8].copy_from_slice(&length.to_le_bytes());
        cases.push(("a header of a length that is not there", lying));
    }
    for (from, to) in
        [("[8,16]", "[9,16]"), ("[8,16]", "[99999999999,99999999999]"), ("\"F32\"", "\"F64\"")]
    {
        let text = String::from_utf8(whole[8..8 + header].to_vec()).unwrap();
        assert!(text.contains(from), "{text}");
        let text = text.replacen(from, to, 1);
        let bytes = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &whole[8 + header..]]
            .concat();
        cases.push(("a lying shape or type", bytes));
    }
    for (what, bytes) in cases {
        fs::write(&path, bytes).unwrap();
        let message = message(&model);
        assert!(message.contains("model.safetensors"), "{what}: {message}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_says(&model, "model.safetensors", &["is a directory"]);
}

#[test]
fn weights_that_are_not_numbers_are_refused() {
    for bad in [f32::NAN, f32::INFINITY] {
        for precision in [Precision::F32, Precision::Int8] {
            let parts = tapir::doctest::parts().quantize(precision).unwrap();
            let mut bytes = parts.weights.to_vec();
            let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            let at = 8 + header; // the first value of the first tensor, which is f32 at every precision: vectors are
            bytes[at..at + 4].copy_from_slice(&bad.to_le_bytes());
            let error = Parts { weights: bytes.into(), ..parts }.load().unwrap_err().to_string();
            assert!(error.contains("holds") && error.contains("tensor `"), "{error}");
        }
    }
}

#[test]
fn tensors_must_be_of_a_known_type_with_their_scales() {
    let parts = tapir::doctest::parts().quantize(Precision::Int8).unwrap();
    let bytes = parts.weights.to_vec();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..8 + header].to_vec()).unwrap();
    let text = text.replacen("memory.phi.weight.scale", "memory.phi.weight.scala", 1);
    let bytes = [&bytes[..8], text.as_bytes(), &bytes[8 + header..]].concat();
    let error = Parts { weights: bytes.into(), ..parts }.load().unwrap_err().to_string();
    assert!(error.contains("`memory.phi.weight.scale` is missing"), "{error}");
}

/// A safetensors file of nothing but the given header and data, true or not.
fn safetensors(header: &str, data: &[u8]) -> Bytes {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat().into()
}

/// Says what quantising weights of this header and data came to.
fn quantised(header: &str, data: &[u8], precision: Precision) -> String {
    let parts = Parts { weights: safetensors(header, data), ..tapir::doctest::parts() };
    parts.quantize(precision).expect_err("the weights should be refused").to_string()
}

#[test]
fn a_tensor_without_rows_has_no_scales() {
    let header = r#"{"a":{"dtype":"I8","shape":[],"data_offsets":[0,1]},
        "a.scale":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}"#;
    for precision in [Precision::F32, Precision::F16, Precision::Int8] {
        let error = quantised(header, &[0; 5], precision);
        assert!(error.contains("tensor `a` is I8 of shape []"), "{error}");
    }
}

#[test]
fn a_tensor_that_holds_nothing_is_refused() {
    for shape in ["[1099511627776,0]", "[0,1099511627776]", "[0]"] {
        let header = format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,0]}}}}"#);
        for precision in [Precision::F32, Precision::F16, Precision::Int8] {
            let error = quantised(&header, &[], precision);
            assert!(
                error.contains("tensor `a` has shape [") && error.contains("holds nothing"),
                "{error}"
            );
        }
    }
}

/// Sizes that each fit but whose sum wraps round to the length of the file.
#[test]
fn offsets_that_wrap_round_are_refused() {
    const LARGEST: u64 = (1 << 61) - 1;
    let tensors = (0..9).map(|i| {
        let (start, end) = (i * LARGEST, if i == 8 { u64::MAX } else { (i + 1) * LARGEST });
        let size = end - start;
        format!(r#""{i}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{start},{end}]}}"#)
    });
    let header = format!("{{{}}}", tensors.collect::<Vec<_>>().join(","));
    let error = quantised(&header, &[], Precision::F32);
    assert!(error.contains("model.safetensors: not a whole safetensors file"), "{error}");
    // 2^64 - 1 + 8 + header = header + 7, one byte less than an honest file without data.
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    let cut: Bytes = bytes[..bytes.len() - 1].to_vec().into();
    assert!(Parts { weights: cut, ..tapir::doctest::parts() }.load().is_err());
    let options = ImportOptions::default();
    assert!(tapir::import(bytes.into(), "state", &options, None, None).is_err());
}

#[test]
fn scales_that_no_row_can_have_are_refused() {
    let parts = tapir::doctest::parts().quantize(Precision::Int8).unwrap();
    let header = u64::from_le_bytes(parts.weights[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&parts.weights[8..8 + header]).unwrap();
    for name in ["memory.phi.weight", "processor.embedding", "reviser.projection.weight"] {
        let name = format!("{name}.scale");
        let at = 8 + header + json[&name]["data_offsets"][0].as_u64().unwrap() as usize;
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, f32::MAX] {
            let mut bytes = parts.weights.to_vec();
            bytes[at..at + 4].copy_from_slice(&bad.to_le_bytes());
            let parts = Parts { weights: bytes.into(), ..parts.clone() };
            for error in [parts.clone().load().err(), parts.quantize(Precision::F32).err()] {
                let error = error.expect("the scale should be refused").to_string();
                assert!(
                    error.contains(&format!("tensor `{name}` holds {bad} at index 0")),
                    "{error}"
                );
            }
        }
    }
}

/// What is too large for int8 is said when it is written, not when it is read.
#[test]
fn weights_that_no_scale_reaches_are_refused() {
    let mut writer = TensorWriter::default();
    writer.f32("a", &[2, 1], &[f32::MAX, 1.0]).unwrap();
    let weights: Bytes = writer.to_bytes().unwrap().into();
    let parts = Parts { weights, ..tapir::doctest::parts() };
    parts.quantize(Precision::F32).unwrap();
    for precision in [Precision::F16, Precision::Int8] {
        let error = parts.quantize(precision).unwrap_err().to_string();
        assert!(error.contains("`a`") && error.contains("too large"), "{precision:?}: {error}");
    }
}

#[test]
fn label_and_word_lists_end() {
    let error = Labels::new((0..).map(|i: u64| i.to_string())).unwrap_err().to_string();
    assert!(error.contains("more than 65535 labels"), "{error}");
    let many = (0..70_000).map(|i| i.to_string()).collect::<Vec<_>>().join("\n");
    let (_dir, model) = saved();
    fs::write(model.join("labels.txt"), many).unwrap();
    assert_says(&model, "labels.txt", &["more than 65535 labels"]);
}

/// Neither a device nor a pipe: reading one would not end, or not begin.
#[cfg(unix)]
#[test]
fn only_plain_files_are_read() {
    for file in ["config.json", "labels.txt", "vocab.txt", "model.safetensors"] {
        let (_dir, model) = saved();
        let path = model.join(file);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_says(&model, file, &["is not a plain file"]);
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|status| status.success()) {
            assert_says(&model, file, &["is not a plain file"]);
        }
    }
}

#[test]
fn words_that_cannot_be_are_refused_and_change_nothing() {
    let model = Model::from_parts(tapir::doctest::parts()).unwrap();
    let mut session = model.session();
    session.push("play").unwrap();
    let labels = session.labels();
    assert!(matches!(session.push(""), Err(Error::EmptyWord)));
    let megabyte = "x".repeat(1 << 20);
    assert!(matches!(
        session.push(&megabyte),
        Err(Error::LongWord { bytes: 1_048_576, limit: 4096 })
    ));
    assert!(matches!(session.update(["play", "some", ""]), Err(Error::EmptyWord)));
    assert!(matches!(session.update(["some", &megabyte]), Err(Error::LongWord { .. })));
    assert!(matches!(session.push_id(9), Err(Error::UnknownId { id: 9, ids: 9 })));
    let error = session.revoke(5).unwrap_err();
    assert!(matches!(error, Error::Undo { asked: 5, available: 1 }), "{error}");
    assert!(matches!(session.revoke(usize::MAX), Err(Error::Undo { .. })));
    assert_eq!((session.words(), session.labels()), (1, labels));
    session.push("\u{0}\u{200d}🎷 not one word\n").unwrap();
    session.finish().unwrap();
    for error in [
        session.push("x").err(),
        session.revoke(0).err(),
        session.finish().err(),
        session.update(["x"]).err(),
    ] {
        assert!(matches!(error, Some(Error::Finished)));
    }
}

#[test]
fn options_that_cannot_be_are_refused_and_missing_parts_named() {
    let parts = tapir::doctest::parts();
    let model = parts.clone().load().unwrap();
    let options = SessionOptions::new;
    for threshold in [-1.0, 2.0, f32::NAN, f32::INFINITY] {
        let error = model.session_with(options().threshold(threshold)).unwrap_err();
        assert!(error.to_string().contains(&format!("is {threshold}, expected 0")), "{error}");
        let mut session = model.session();
        assert!(matches!(session.set_threshold(threshold), Err(Error::Threshold { .. })));
    }
    for window in [0, usize::MAX] {
        let mut session = model.session_with(options().window(window).undo(usize::MAX)).unwrap();
        (0..300).for_each(|_| _ = session.push("play").unwrap());
    }
    let model = |config: &Config| {
        let (labels, words) = (parts.labels.clone(), parts.vocabulary.clone());
        Parts::random(config.clone(), labels, words, 1).unwrap().load().unwrap()
    };
    let mut config = parts.config.clone();
    config.controller = None;
    let two_pass = options().mode(Mode::TwoPass);
    let error = model(&config).session_with(two_pass).unwrap_err();
    assert!(error.to_string().contains("needs a controller"), "{error}");
    config.reviser = None;
    let restart = options().mode(Mode::Restart);
    let error = model(&config).session_with(restart).unwrap_err();
    assert!(error.to_string().contains("needs a reviser"), "{error}");
    config.processor = None;
    assert!(config.validate("it").unwrap_err().to_string().contains("nothing to run"));
}

/// Of a file with more layers than its configuration, only some would run.
#[test]
fn a_configuration_with_fewer_layers_than_the_file_is_refused() {
    let parts = tapir::doctest::parts();
    let mut config = parts.config.clone();
    config.reviser.as_mut().unwrap().layers = 2;
    let (labels, words) = (parts.labels.clone(), parts.vocabulary.clone());
    let deeper = Parts::random(config, labels, words, 1).unwrap();
    assert!(deeper.clone().load().is_ok());
    let error = Parts { config: parts.config, ..deeper }.load().unwrap_err().to_string();
    assert!(error.contains("`reviser.layers.1.") && error.contains("same model"), "{error}");
}

#[test]
fn saving_never_writes_over_a_model_unasked() {
    let (dir, model) = saved();
    let before = fs::read(model.join("model.safetensors")).unwrap();
    let small = tapir::doctest::parts().quantize(Precision::Int8).unwrap();
    let error = small.save(&model).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
    assert_eq!(fs::read(model.join("model.safetensors")).unwrap(), before);
    small.replace(&model).unwrap();
    assert_eq!(fs::read(model.join("model.safetensors")).unwrap(), *small.weights);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    let error = small.save(model.join("labels.txt").join("model")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn imports_say_what_does_not_fit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/trf_base.safetensors");
    let state = Bytes::open(Path::new(path)).unwrap();
    let options = ImportOptions { prefix: "param.".into(), heads: 2, ..ImportOptions::default() };
    let error = |options: &ImportOptions, labels, words| {
        tapir::import(state.clone(), "state.safetensors", options, labels, words)
            .unwrap_err()
            .to_string()
    };
    let none = ImportOptions { prefix: String::new(), ..options.clone() };
    assert!(error(&none, None, None).contains("`embedding.weight` is missing"));
    let heads = ImportOptions { heads: 5, ..options.clone() };
    assert!(error(&heads, None, None).contains("must divide"));
    assert!(error(&options, Some(Labels::new(["O"]).unwrap()), None).contains("9 labels"));
    assert!(error(&options, None, Some(Vocabulary::new(["a"]).unwrap())).contains("60 word rows"));
    for shape in [[2, 2], [usize::MAX, 2], [usize::MAX, usize::MAX]] {
        let error = TensorWriter::default().f32("x", &shape, &[1.0]).unwrap_err().to_string();
        assert!(error.contains("does not hold 1 value"), "{error}");
    }
    for (heads, memory, delay) in [(2, usize::MAX, 0), (2, 5, usize::MAX), (usize::MAX, 5, 0)] {
        error(&ImportOptions { heads, memory, delay, ..options.clone() }, None, None);
    }
}

/// Replaces tensors of a recorded state dict, as (name, dtype, shape, data).
fn state(changes: &[(&str, &str, &[usize], &[u8])]) -> Bytes {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/trf_base.safetensors");
    let bytes = fs::read(path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    let old = tensors.iter().map(|(name, view)| {
        (
            name.to_owned(),
            format!("{:?}", view.dtype()),
            view.shape().to_vec(),
            view.data().to_vec(),
        )
    });
    let new = changes.iter().map(|(name, dtype, shape, data)| {
        (format!("param.{name}"), (*dtype).to_owned(), shape.to_vec(), data.to_vec())
    });
    let replaced = |name: &str| changes.iter().any(|(new, ..)| name == format!("param.{new}"));
    for (name, dtype, shape, bytes) in old.filter(|(name, ..)| !replaced(name)).chain(new) {
        let offsets = [data.len(), data.len() + bytes.len()];
        let entry = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": offsets});
        header.insert(name, entry);
        data.extend(bytes);
    }
    safetensors(&serde_json::Value::Object(header).to_string(), &data)
}

#[test]
fn lying_state_dicts_are_refused() {
    let options = ImportOptions { prefix: "param.".into(), heads: 2, ..ImportOptions::default() };
    let import = |changes: &[_]| tapir::import(state(changes), "state", &options, None, None);
    import(&[]).unwrap().load().unwrap();
    let (half, many) = (1 << 63, vec![0; 70_000]);
    let (ih, hh) = ("encoder.rnn.weight_ih_l0", "encoder.rnn.weight_hh_l0");
    let (query, key) =
        ("reviser.encoder.enc_list.0.multi_head_attn.linear_query.weight", "z_proj.bias");
    for changes in [
        &[("policy.bias", "F32", &[][..], &[0; 4][..]), (key, "I8", &[], &[0])][..],
        &[("v_policy.bias", "I8", &[], &[0]), ("v_policy.bias.scale", "F32", &[1], &[0; 4])],
        &[("v_policy.weight", "I8", &[], &[0])],
        &[(ih, "F32", &[0, half], &[]), (hh, "F32", &[0, half], &[])],
        &[(ih, "F32", &[half, 0], &[]), (hh, "F32", &[half, 0], &[])],
        &[("embedding.weight", "F32", &[half, 0], &[])],
        &[("embedding.weight", "F32", &[0, half], &[])],
        &[("encoder.proj.weight", "U8", &[70_000, 1], &many)],
        &[(query, "F32", &[usize::MAX, 0], &[])],
        &[("ctrl_list.0.W.bias", "F32", &[], &[0; 4])],
    ] {
        let error =
            import(changes).and_then(Parts::load).expect_err("the state dict should be refused");
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
}

/// A configuration is part of the file: sizes that it merely claims must not be asked for.
#[test]
fn random_models_of_impossible_sizes_are_refused() {
    let mut parts = tapir::doctest::parts();
    parts.config.processor.as_mut().unwrap().hidden = usize::MAX;
    let error =
        Parts::random(parts.config, parts.labels, parts.vocabulary, 1).unwrap_err().to_string();
    assert!(error.contains("`processor.hidden` is 18446744073709551615"), "{error}");
}

/// Sizes at which arithmetic goes wrong, and some at which it does not.
fn size() -> impl Strategy<Value = usize> {
    let edges =
        [0, 1, 2, 8, 199, 200, 1 << 16, (1 << 16) + 1, 1 << 31, 1 << 32, 1 << 62, usize::MAX / 2];
    prop_oneof![
        prop::sample::select(edges.to_vec()),
        (0..4usize).prop_map(|below| usize::MAX - below),
        any::<usize>(),
    ]
}

proptest! {
    #![proptest_config(support::cases(256))]

    /// Any change of any byte is refused or harmless.
    #[test]
    fn damaged_weights_never_panic(
        parts in support::tiny(),
        precision in prop_oneof![Just(Precision::F32), Just(Precision::F16), Just(Precision::Int8)],
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
        in_header in any::<bool>(),
    ) {
        let parts = parts.quantize(precision).unwrap();
        let mut bytes = parts.weights.to_vec();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (index, byte) in damage {
            let at = index.index(if in_header { header } else { bytes.len() });
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(model) = (Parts { weights: bytes.into(), ..parts }).load() {
            let mut session = model.session();
            for word in ["play", "some", "jazz", "now"] {
                session.push(word).unwrap();
            }
            session.revoke(2).unwrap();
            session.finish().unwrap();
        }
    }

    /// Any sizes in the configuration, and any settings of a session, are refused or harmless.
    #[test]
    fn huge_sizes_never_panic(
        parts in support::tiny(),
        changes in prop::collection::vec((0..14usize, size()), 1..4),
        window in size(), undo in size(),
    ) {
        let mut parts = parts;
        for (field, size) in changes {
            support::set_size(&mut parts.config, field, size);
        }
        if let Ok(model) = parts.load() {
            for mode in [Mode::TwoPass, Mode::FirstPass, Mode::Restart] {
                let options = SessionOptions::new().window(window).undo(undo).mode(mode);
                let mut session = model.session_with(options).unwrap();
                for word in ["play", "some", "jazz", "now"] {
                    session.push(word).unwrap();
                }
                session.revoke(session.undoable().min(2)).unwrap();
                // Every step of a delay is computed at the end.
                if model.config().delay < 100 {
                    session.finish().unwrap();
                }
            }
        }
    }

    /// Any text in the place of a text file is refused or harmless.
    #[test]
    fn damaged_text_never_panics(text in any::<String>(), file in 0..3usize, at in any::<prop::sample::Index>()) {
        let (_dir, model) = saved();
        let path = model.join(["config.json", "labels.txt", "vocab.txt"][file]);
        let mut content = fs::read_to_string(&path).unwrap();
        content.replace_range(at.index(content.len()).., &text);
        fs::write(&path, content).unwrap();
        if let Ok(model) = Model::open(&model) {
            model.session().push("play").unwrap();
        }
    }
}
