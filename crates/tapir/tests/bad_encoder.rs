//! Damaged, lying and impossible encoders, word pieces and words of many pieces: each is an error
//! that names what is wrong, or runs; nothing panics.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use half::{bf16, f16};
use proptest::prelude::*;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};
use tapir::{
    BertConfig, Bytes, Encoder, EncoderFiles, EncoderOptions, Mode, Model, Parts, Precision,
    Session, SessionOptions, WordPieces,
};

fn import(files: &EncoderFiles) -> tapir::Result<Model> {
    tapir::import_encoder(files, &EncoderOptions::default())?.load()
}

/// The JSON with another value at a place; null takes the place away.
fn with(json: &str, place: &str, value: Value) -> String {
    let mut json: Value = serde_json::from_str(json).unwrap();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = json.pointer_mut(parent).unwrap();
    match parent {
        Value::Object(fields) if value.is_null() => drop(fields.remove(key)),
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value)),
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        _ => panic!("{place} is nowhere"),
    }
    json.to_string()
}

/// The message names the file and says why.
#[track_caller]
fn assert_refused(files: &EncoderFiles, file: &str, says: &str) {
    let message = import(files).expect_err(says).to_string();
    assert!(message.contains(file) && message.contains(says), "`{message}` does not say `{says}`");
}

#[test]
fn what_a_tokenizer_has_that_is_not_supported_is_named() {
    let good = tapir::doctest::encoder();
    import(&good).unwrap();
    let token = |id: u32, content: &str, special: bool| json!([{"id": id, "content": content, "special": special}]);
    for (place, value, says) in [
        ("/normalizer/type", json!("NFC"), "unknown variant `NFC`"),
        ("/normalizer", json!(null), "missing field `normalizer`"),
        ("/normalizer/colour", json!(1), "unknown field `colour`"),
        ("/pre_tokenizer/type", json!("Whitespace"), "`pre_tokenizer` is \"Whitespace\""),
        ("/model/type", json!("BPE"), "`model.type` is \"BPE\", expected WordPiece"),
        ("/model/dropout", json!(0.1), "`model`: unknown field `dropout`"),
        ("/model/unk_token", json!("<unk>"), "`model.unk_token` is \"<unk>\""),
        ("/model/continuing_subword_prefix", json!("@@"), "is \"@@\", expected \"##\""),
        ("/model/max_input_chars_per_word", json!(-1), "invalid value"),
        ("/model/vocab/new", json!(99), "18 pieces, but \"new\" has the id 99"),
        ("/model/vocab/new", json!(3), "\"[SEP]\" and \"new\" the same id 3"),
        ("/model/vocab/new", json!(1_u64 << 40), "expected u32"),
        ("/model/vocab", json!({"[UNK]": 0, "[SEP]": 1}), "no piece `[CLS]`"),
        ("/model/vocab", json!({"[UNK]": 0, "[CLS]": 1}), "no piece `[SEP]`"),
        ("/model/vocab", json!({"[CLS]": 0, "[SEP]": 1}), "no piece `[UNK]`"),
        ("/model/vocab", json!({"": 0}), "cannot be a piece"),
        ("/model/vocab", json!({"a\nb": 0}), "cannot be a piece"),
        ("/added_tokens", token(99, "<new>", true), "\"<new>\" with id 99"),
        ("/added_tokens", token(3, "[CLS]", true), "\"[CLS]\" with id 3"),
        ("/added_tokens", token(4, "[MASK]", true), "\"[MASK]\" with id 4"),
        ("/added_tokens", token(17, "[MASK]", false), "\"[MASK]\" with id 17"),
        ("/added_tokens", token(4, "play", false), "\"play\" with id 4"),
        ("/added_tokens", token(4, "play", true), "\"play\" with id 4"),
        ("/post_processor/type", json!("RobertaProcessing"), "between [CLS] and [SEP]"),
        ("/post_processor/single/0/SpecialToken/id", json!("[SEP]"), "between [CLS] and [SEP]"),
        ("/post_processor/single/1/Sequence/type_id", json!(1), "between [CLS] and [SEP]"),
        ("/post_processor/single", json!([]), "between [CLS] and [SEP]"),
        ("/post_processor/special_tokens", json!(null), "between [CLS] and [SEP]"),
        ("/post_processor/special_tokens/[CLS]/ids", json!([3]), "with the ids that these have"),
        ("/post_processor/special_tokens/[SEP]/ids", json!([3, 3]), "with the ids that these have"),
        ("/post_processor/special_tokens/[SEP]/ids", json!(3), "with the ids that these have"),
        ("/something", json!(1), "unknown field `something`"),
    ] {
        let tokenizer = with(&good.tokenizer, place, value);
        let files = EncoderFiles { tokenizer, ..good.clone() };
        assert_refused(&files, "encoder/tokenizer.json", says);
    }
    let ends =
        |sep: u32| json!({"type": "BertProcessing", "sep": ["[SEP]", sep], "cls": ["[CLS]", 2]});
    let tokenizer = with(&good.tokenizer, "/post_processor", ends(3));
    import(&EncoderFiles { tokenizer, ..good.clone() }).unwrap();
    let tokenizer = with(&good.tokenizer, "/post_processor", ends(4));
    let files = EncoderFiles { tokenizer, ..good.clone() };
    assert_refused(&files, "encoder/tokenizer.json", "with the ids that these have");
    // As `transformers` writes it for a list without this piece.
    let tokenizer = with(&good.tokenizer, "/added_tokens", token(17, "[MASK]", true));
    import(&EncoderFiles { tokenizer, ..good.clone() }).unwrap();
    // As old versions wrote it, and as `tokenizers` does after training.
    for place in ["/model/type", "/post_processor"] {
        let tokenizer = with(&good.tokenizer, place, json!(null));
        import(&EncoderFiles { tokenizer, ..good.clone() }).unwrap();
    }
    // A sequence of one part is that part; one of two is not read.
    for (part, list) in [
        ("normalizer", "normalizers"),
        ("pre_tokenizer", "pretokenizers"),
        ("post_processor", "processors"),
    ] {
        let all: Value = serde_json::from_str(&good.tokenizer).unwrap();
        let sequence = |count: usize| {
            let sequence = json!({"type": "Sequence", list: vec![&all[part]; count]});
            let tokenizer = with(&good.tokenizer, &format!("/{part}"), sequence);
            EncoderFiles { tokenizer, ..good.clone() }
        };
        import(&sequence(1)).unwrap();
        assert_refused(&sequence(2), "encoder/tokenizer.json", part);
    }
    for text in ["", "{", "[]", "null", "\u{0}"] {
        let files = EncoderFiles { tokenizer: text.to_owned(), ..good.clone() };
        assert_refused(&files, "encoder/tokenizer.json", "");
    }
}

#[test]
fn what_a_configuration_has_that_is_not_supported_is_named() {
    let good = tapir::doctest::encoder();
    let huge = json!(usize::MAX);
    for (place, value, says) in [
        ("/model_type", json!("roberta"), "`model_type` is roberta, expected bert"),
        ("/model_type", json!(null), "`model_type` is missing, expected bert"),
        ("/architectures", json!(["BertModel"]), "is not BertForTokenClassification"),
        ("/architectures", json!(["BertForSequenceClassification"]), "is not BertForToken"),
        ("/is_decoder", json!(true), "`is_decoder` is true"),
        ("/position_embedding_type", json!("relative_key"), "is relative_key, expected absolute"),
        ("/hidden_act", json!("silu"), "`hidden_act` is silu"),
        ("/hidden_size", huge.clone(), "`reviser.hidden` is 18446744073709551615"),
        ("/hidden_size", json!(16), "expected [17, 16]"),
        ("/num_hidden_layers", huge.clone(), "`reviser.layers` is 18446744073709551615"),
        ("/num_hidden_layers", json!(0), "`reviser.layers` is 0"),
        ("/num_hidden_layers", json!(2), "`bert.encoder.layer.1.attention.self.query.weight`"),
        ("/num_attention_heads", json!(3), "must divide"),
        ("/intermediate_size", huge.clone(), "`reviser.feed_forward` is 18446744073709551615"),
        ("/intermediate_size", json!(15), "expected [15, 8]"),
        ("/max_position_embeddings", huge.clone(), "`reviser.bert.positions` is 18446744073709"),
        (
            "/max_position_embeddings",
            json!(2),
            "`reviser.bert.positions` is 2, expected at least 3",
        ),
        ("/max_position_embeddings", json!(512), "expected [512, 8]"),
        ("/vocab_size", json!(16), "`vocab_size` is 16, but tokenizer.json has 17 pieces"),
        ("/vocab_size", json!(18), "expected [18, 8]"),
        ("/vocab_size", huge, "expected [18446744073709551615, 8]"),
        ("/layer_norm_eps", json!(0.0), "`reviser.bert.epsilon` is 0e0"),
        ("/layer_norm_eps", json!(-1.0), "`reviser.bert.epsilon` is -1e0"),
        ("/layer_norm_eps", json!("1e-12"), "invalid type"),
        ("/id2label", json!({}), "there is no label in it"),
        ("/id2label", json!(null), "`classifier.weight` has shape [3, 8], expected [2, 8]"),
        ("/type_vocab_size", json!(3), "expected [3, 8]"),
        ("/id2label", json!({"0": "O", "1": "A"}), "`classifier.weight` has shape [3, 8]"),
        ("/id2label", json!({"0": "O", "1": "A", "3": "B"}), "`id2label`: there is no label 2"),
        ("/id2label", json!({"0": "O", "1": "A", "2": "A"}), "`A` stands here twice"),
        ("/id2label", json!({"0": "O", "1": "A", "2": ""}), "cannot be a label"),
        ("/id2label", json!({"0": "<pad>", "1": "A", "2": "O"}), "label 0 is \"<pad>\""),
    ] {
        let config = with(&good.config, place, value);
        assert_refused(&EncoderFiles { config, ..good.clone() }, "encoder/", says);
    }
    for act in ["gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "relu"] {
        let config = with(&good.config, "/hidden_act", json!(act));
        import(&EncoderFiles { config, ..good.clone() }).unwrap();
    }
}

/// `transformers` leaves out what has its default: two labels among it, or many by their number.
#[test]
fn what_a_configuration_leaves_out_has_the_default_of_transformers() {
    let good = tapir::doctest::encoder();
    let tensors = SafeTensors::deserialize(&good.weights).unwrap();
    let expected = tensors.tensor("classifier.bias").unwrap().shape()[0];
    let config = with(&good.config, "/id2label", Value::Null);
    let config = with(&config, "/num_labels", json!(expected));
    let model = import(&EncoderFiles { config, ..good.clone() }).unwrap();
    let names: Vec<_> = model.labels().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["LABEL_0", "LABEL_1", "LABEL_2"]);

    let same = import(&good).unwrap();
    let mut config = good.config.clone();
    for default in ["/layer_norm_eps", "/hidden_act", "/type_vocab_size"] {
        config = with(&config, default, Value::Null);
    }
    let model = import(&EncoderFiles { config, ..good }).unwrap();
    assert_eq!(model.parts().config, same.parts().config);

    let two = changed(|tensors| {
        for (name, _, shape, data) in tensors {
            if name.starts_with("classifier.") {
                data.truncate(data.len() / 3 * 2);
                shape[0] = 2;
            }
        }
    });
    let config = with(&two.config, "/id2label", Value::Null);
    assert_eq!(import(&EncoderFiles { config, ..two }).unwrap().labels().len(), 2);
}

/// What is not there says what to do.
#[test]
fn a_folder_that_lacks_a_file_says_how_to_write_it() {
    let dir = tempfile::tempdir().unwrap();
    let files = tapir::doctest::encoder();
    fs::write(dir.path().join("config.json"), &files.config).unwrap();
    let message = || EncoderFiles::open(dir.path()).unwrap_err().to_string();
    assert!(message().contains("model.safetensors: no such file; pytorch_model.bin"));
    fs::write(dir.path().join("model.safetensors"), &*files.weights).unwrap();
    assert!(message().contains("tokenizer.json: no such file; vocab.txt"));
    fs::write(dir.path().join("tokenizer.json"), &files.tokenizer).unwrap();
    EncoderFiles::open(dir.path()).unwrap();
}

type Tensor = (String, Dtype, Vec<usize>, Vec<u8>);

/// The tensors of the tiny encoder after a change.
fn changed(change: impl FnOnce(&mut Vec<Tensor>)) -> EncoderFiles {
    let files = tapir::doctest::encoder();
    let tensors = SafeTensors::deserialize(&files.weights).unwrap();
    let mut list: Vec<Tensor> = tensors
        .iter()
        .map(|(name, view)| {
            (name.to_owned(), view.dtype(), view.shape().to_vec(), view.data().to_vec())
        })
        .collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    change(&mut list);
    let views = list.iter().map(|(name, dtype, shape, data)| {
        let view = safetensors::tensor::TensorView::new(*dtype, shape.clone(), data).unwrap();
        (name.clone(), view)
    });
    let weights = safetensors::serialize(views, None).unwrap().into();
    EncoderFiles { weights, ..files }
}

#[test]
fn every_tensor_must_be_there_and_fit() {
    let count = SafeTensors::deserialize(&tapir::doctest::encoder().weights).unwrap().len();
    for i in 0..count {
        let mut name = String::new();
        let missing = changed(|tensors| name = tensors.remove(i).0);
        assert_refused(&missing, "encoder/model.safetensors", &format!("`{name}` is missing"));
        let longer = changed(|tensors| {
            let (_, _, shape, data) = &mut tensors[i];
            data.resize(data.len() / shape[0] * (shape[0] + 1), 0);
            shape[0] += 1;
        });
        assert_refused(&longer, "encoder/model.safetensors", &format!("`{name}` has shape"));
        let nan = changed(|tensors| tensors[i].3[..4].copy_from_slice(&f32::NAN.to_le_bytes()));
        assert_refused(&nan, "encoder/model.safetensors", &format!("`{name}` holds NaN"));
    }
}

#[test]
fn tensors_without_a_place_are_named_and_unneeded_ones_left_out() {
    let add = |name: &str| {
        let tensor = (name.to_owned(), Dtype::F32, vec![1], vec![0; 4]);
        changed(|tensors| tensors.push(tensor))
    };
    for name in ["bert.encoder.layer.1.output.dense.bias", "bert.adapter.weight", "lora.weight"] {
        assert_refused(&add(name), "encoder/model.safetensors", &format!("`{name}` has no place"));
    }
    for name in ["bert.pooler.dense.bias", "bert.embeddings.position_ids", "cls.predictions.bias"] {
        import(&add(name)).unwrap();
    }
}

/// Saved alone, by an old version, or in fewer bits: the same encoder.
#[test]
fn other_names_and_types_are_the_same_encoder() {
    let logits = |model: Model| {
        let mut session = model.session();
        session.update(["play", "some", "zithers", "?"]).unwrap();
        let logits: Vec<f32> =
            (0..4).flat_map(|step| session.step_logits(step).unwrap().to_vec()).collect();
        logits
    };
    let expected = logits(import(&tapir::doctest::encoder()).unwrap());
    let old = changed(|tensors| {
        for (name, ..) in tensors {
            *name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
            *name = name.replace("LayerNorm.bias", "LayerNorm.beta");
            *name = name.strip_prefix("bert.").unwrap_or(name).to_owned();
        }
    });
    assert_eq!(logits(import(&old).unwrap()), expected);
    for dtype in [Dtype::F16, Dtype::BF16] {
        let smaller = changed(|tensors| {
            for (_, kind, _, data) in tensors {
                let values = data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                let narrow = |value| match dtype {
                    Dtype::F16 => f16::from_f32(value).to_le_bytes(),
                    _ => bf16::from_f32(value).to_le_bytes(),
                };
                (*kind, *data) = (dtype, values.flat_map(narrow).collect());
            }
        });
        let found = logits(import(&smaller).unwrap());
        let near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.2);
        assert!(near && found != expected, "{dtype:?}: {found:?} is not {expected:?}");
    }
    let files = changed(|tensors| tensors.retain(|(name, ..)| !name.starts_with("classifier")));
    let config = with(&files.config, "/architectures", json!(["BertModel"]));
    let encoder = Encoder::read(&EncoderFiles { config, ..files }).unwrap();
    assert!(encoder.classifier.is_none());
    let config = tapir::Config { reviser: Some(encoder.reviser), ..tapir::Config::default() };
    let ours =
        config.tensors(3, 0).into_iter().filter(|(name, _)| !name.contains("reviser.output"));
    let found = encoder.tensors.iter().map(|(name, (shape, _))| (name.clone(), shape.clone()));
    let mut ours: Vec<_> = ours.collect();
    ours.sort();
    assert_eq!(found.collect::<Vec<_>>(), ours, "the names and shapes of our own");
}

#[test]
fn rows_behind_the_last_piece_are_left_out() {
    let files = changed(|tensors| {
        let table = tensors.iter_mut().find(|tensor| tensor.0.contains("word_emb")).unwrap();
        table.2[0] += 7;
        table.3.resize(table.2[0] * 8 * 4, 0);
    });
    let config = with(&files.config, "/vocab_size", json!(24));
    let model = import(&EncoderFiles { config, ..files }).unwrap();
    let small = import(&tapir::doctest::encoder()).unwrap();
    assert_eq!(*model.parts().weights, *small.parts().weights);
}

/// A model directory whose reviser reads word pieces.
fn saved() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    tapir::doctest::pretrained().save(&model).unwrap();
    (dir, model)
}

#[test]
fn pieces_are_stored_with_their_model() {
    for parts in [tapir::doctest::pretrained(), tapir_encoder()] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        for precision in [Precision::F32, Precision::F16, Precision::Int8] {
            let parts = parts.quantize(precision).unwrap();
            parts.replace(&path).unwrap();
            let again = Parts::open(&path).unwrap();
            assert_eq!(again.config, parts.config);
            assert_eq!(again.pieces.unwrap().to_text(), parts.pieces.as_ref().unwrap().to_text());
            assert_eq!(*again.weights, *parts.weights);
            Model::open(&path).unwrap().session().push("zithers").unwrap();
        }
        // A model without them leaves none behind.
        tapir::doctest::parts().replace(&path).unwrap();
        assert!(!path.join("pieces.txt").exists());
    }
}

/// The parts of the tiny encoder, which has no first pass.
fn tapir_encoder() -> Parts {
    tapir::import_encoder(&tapir::doctest::encoder(), &EncoderOptions::default()).unwrap()
}

#[test]
fn pieces_that_do_not_fit_are_refused() {
    let (_dir, model) = saved();
    let path = model.join("pieces.txt");
    let good = fs::read_to_string(&path).unwrap();
    let message = || Model::open(&model).expect_err("the pieces should be refused").to_string();
    for (text, says) in [
        (good.clone() + "more\n", "18 pieces, but `reviser.bert.pieces` of config.json is 17"),
        (good.replacen("[CLS]\n", "", 1), "there is no piece `[CLS]`"),
        (good.replacen("play\n", "\n", 1), "line 5: \"\" cannot be a piece"),
        (good.replacen("play\n", "some\n", 1), "line 6: `some` stands on line 5 already"),
        (String::new(), "there is no piece `[UNK]`"),
    ] {
        fs::write(&path, text).unwrap();
        let message = message();
        assert!(message.contains("pieces.txt: ") && message.contains(says), "{message}: {says}");
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(message().contains("UTF-8"), "{}", message());
    fs::remove_file(&path).unwrap();
    assert!(message().contains("pieces.txt: No such file"), "{}", message());

    let none = Parts { pieces: None, ..tapir::doctest::pretrained() };
    assert!(none.load().unwrap_err().to_string().contains("none were given"));
    let pieces = tapir::doctest::pretrained().pieces;
    let unread = Parts { pieces, ..tapir::doctest::parts() };
    assert!(unread.load().unwrap_err().to_string().contains("no reviser reads them"));
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    let json = tapir::doctest::pretrained().config.to_json();
    for (place, value, says) in [
        ("/reviser/bert", json!(null), "`reviser.bert` belongs to a reviser of kind `bert`"),
        ("/reviser/kind", json!("transformer"), "`reviser.bert` belongs to a reviser of kind"),
        ("/reviser/kind", json!("roberta"), "unknown variant `roberta`"),
        ("/reviser/norm", json!("unbiased-std"), "`reviser.norm` must be `standard`"),
        ("/reviser/bert/epsilon", json!(0), "`reviser.bert.epsilon` is 0e0"),
        ("/reviser/bert/epsilon", json!(2), "`reviser.bert.epsilon` is 2e0"),
        ("/reviser/bert/activation", json!("silu"), "unknown variant `silu`"),
        ("/reviser/bert/pieces", json!(0), "`reviser.bert.pieces` is 0"),
        ("/reviser/bert/pieces", json!(1 << 30), "`reviser.bert.pieces` is 1073741824"),
        ("/reviser/bert/positions", json!(2), "expected at least 3"),
        ("/reviser/bert/positions", json!(1 << 20), "`reviser.bert.positions` is 1048576"),
        ("/reviser/bert/rules/lowercase", json!(1), "invalid type"),
        ("/reviser/bert/rules/colour", json!(1), "unknown field `colour`"),
        ("/delay", json!(12), "expected at least 15: [CLS], [SEP], and a piece of each word"),
        ("/delay", json!(usize::MAX), "expected at least 18446744073709551615"),
        ("/embedding_dim", json!(null), "`embedding_dim` is 0, expected 1 to"),
        ("/processor/spelling", json!(7), "expected the size of the reviser's pieces, 8"),
        ("/processor/affixes", json!(0), "`processor.affixes` is 0, expected 1 to"),
        ("/processor/affixes", json!(1 << 20), "`processor.affixes` is 1048576, expected 1 to"),
        ("/reviser/affixes", json!(9), "`reviser.affixes` are of words"),
    ] {
        let json = with(&json, place, value);
        let message = tapir::Config::from_json(&json, "config.json").expect_err(says).to_string();
        assert!(message.contains("config.json: ") && message.contains(says), "{message}: {says}");
    }
    let mut words = tapir::doctest::parts().config;
    words.processor.as_mut().unwrap().spelling = Some(8);
    let message =
        tapir::Config::from_json(&words.to_json(), "config.json").unwrap_err().to_string();
    assert!(message.contains("needs a reviser that reads word pieces"), "{message}");
    let alone = with(&tapir_encoder().config.to_json(), "/embedding_dim", json!(8));
    let message = tapir::Config::from_json(&alone, "config.json").unwrap_err().to_string();
    assert!(message.contains("no pass reads word vectors; leave it out"), "{message}");
}

/// What a word of many pieces, or of none, comes to: a label, as any word.
#[test]
fn words_of_many_pieces_and_of_none_have_a_label() {
    let many = "?".repeat(4096);
    let words = ["play", &many, "\u{301}", "jazz", "\u{200d}", &many, &many, "zithers", "\0", "by"];
    for delay in 0..4 {
        let mut parts = tapir::doctest::pretrained();
        parts.config.delay = delay;
        let model = parts.load().unwrap();
        for mode in [Mode::TwoPass, Mode::Restart, Mode::FirstPass] {
            let options = SessionOptions::new().mode(mode).threshold(0.5);
            let mut session = model.session_with(options).unwrap();
            for word in words {
                session.push(word).unwrap();
                assert!(session.revision_size() <= 12, "{}", session.revision_size());
            }
            let labels = session.labels();
            session.revoke(4).unwrap();
            session.update(words).unwrap();
            assert_eq!(session.labels(), labels, "delay {delay}, {mode:?}");
            assert_eq!(session.finish().unwrap().labels.len(), words.len());
        }
        // As by a session, though not all of it fits the reviser.
        let options = SessionOptions::new().mode(Mode::Restart).undo(words.len());
        let mut session = model.session_with(options).unwrap();
        session.update(words).unwrap();
        session.finish().unwrap();
        assert_eq!(model.revise_whole(words).unwrap().labels, session.label_ids());
        assert_eq!(model.revise_whole(["play", "zithers"]).unwrap().labels.len(), 2);
    }
}

/// The reviser on a whole input is a session that revises at each word.
#[test]
fn a_whole_input_is_revised_as_by_a_session() {
    let words = ["play", "zithers", "by", "miles", "?"];
    for delay in 0..3 {
        let mut parts = tapir::doctest::pretrained();
        parts.config.delay = delay;
        let model = parts.load().unwrap();
        let mut session = model.session_with(SessionOptions::new().mode(Mode::Restart)).unwrap();
        session.update(words).unwrap();
        session.finish().unwrap();
        assert_eq!(model.revise_whole(words).unwrap().labels, session.label_ids());
    }
}

/// The window is cut where the pieces end, and nowhere else: the labels of the words in it are
/// those of a session that has read nothing else.
#[test]
fn a_window_holds_the_newest_words_whose_pieces_fit() {
    let model = import(&tapir::doctest::encoder()).unwrap();
    let push = |session: &mut Session, words: &[&str]| {
        words.iter().for_each(|word| _ = session.push(word).unwrap());
        let labels = session.label_ids().to_vec();
        labels[labels.len() - words.len().min(4)..].to_vec()
    };
    // Pieces: 1 + 3 + 3 + 2 + 3; with one more word of one piece they are thirteen.
    let words = ["play", "zithers", "zithers", "miles", "zithers"];
    let (mut long, mut short) = (model.session(), model.session());
    push(&mut long, &words);
    assert_eq!(long.revision_size(), 12);
    let pushed = push(&mut long, &["by"]);
    assert_eq!(long.revision_size(), 12);
    push(&mut short, &words[1..]);
    assert_eq!(push(&mut short, &["by"]), pushed);
    for step in 0..5 {
        assert_eq!(long.step_logits(step + 1), short.step_logits(step), "step {step}");
    }
    // Back to where all of them fit.
    long.revoke(1).unwrap();
    let mut fresh = model.session();
    push(&mut fresh, &words);
    for step in 0..5 {
        assert_eq!(long.step_logits(step), fresh.step_logits(step), "step {step}");
    }
}

proptest! {
    #![proptest_config(support::cases(256))]

    /// Any text in the place of a part of a text file is refused or harmless.
    #[test]
    fn damaged_text_never_panics(
        text in any::<String>(), tokenizer in any::<bool>(),
        at in any::<prop::sample::Index>(), until in any::<prop::sample::Index>(),
    ) {
        let mut files = tapir::doctest::encoder();
        let content = if tokenizer { &mut files.tokenizer } else { &mut files.config };
        let (a, b) = (at.index(content.len()), until.index(content.len()));
        let range = content.floor_char_boundary(a.min(b))..content.floor_char_boundary(a.max(b));
        content.replace_range(range, &text);
        if let Ok(model) = import(&files) {
            model.session().push("zithers").unwrap();
        }
    }

    /// Any change of any byte of the weights is refused or harmless.
    #[test]
    fn damaged_weights_never_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        in_header in any::<bool>(),
    ) {
        let mut files = tapir::doctest::encoder();
        let mut bytes = files.weights.to_vec();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (index, byte) in damage {
            let at = index.index(if in_header { header } else { bytes.len() });
            bytes[at] = byte;
        }
        files.weights = Bytes::from(bytes);
        if let Ok(model) = import(&files) {
            model.session().update(["play", "zithers", "?"]).unwrap();
        }
    }

    /// Any words, and any pieces, give labels.
    #[test]
    fn any_words_and_pieces_run(
        words in prop::collection::vec("\\PC{1,12}", 1..20),
        more in prop::collection::hash_set("(##)?\\PC{1,3}", 0..20),
        positions in 3..20usize,
    ) {
        let special = ["[UNK]", "[CLS]", "[SEP]"];
        let more = more.iter().map(String::as_str).filter(|piece| !special.contains(piece));
        let pieces = WordPieces::new(special.into_iter().chain(more)).unwrap();
        let mut config = tapir_encoder().config;
        let reviser = config.reviser.as_mut().unwrap();
        reviser.bert = Some(BertConfig { pieces: pieces.len(), positions, ..BertConfig::default() });
        let Parts { labels, vocabulary, .. } = tapir_encoder();
        let parts = Parts::random(config, labels, vocabulary, 3).unwrap();
        let model = Parts { pieces: Some(pieces), ..parts }.load().unwrap();
        let mut session = model.session();
        for word in &words {
            session.push(word).unwrap();
            prop_assert!(session.revision_size() <= positions - 2);
        }
        prop_assert_eq!(session.finish().unwrap().labels.len(), words.len());
    }
}
