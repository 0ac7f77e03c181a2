//! Every format: what it reads, that reading gives back what was written, and what bad input says.

#![allow(clippy::unwrap_used, reason = "a test should stop at the first surprise")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use tapir_data::{
    Column, Columns, Conllu, Error, Format, Options, Result, Sentence, Tag, Writer, read,
};
use tempfile::TempDir;

fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("corpus");
    fs::write(&path, content).unwrap();
    (folder, path)
}

fn sentences(path: &Path, options: &Options) -> Result<Vec<Sentence>> {
    read(path, options)?.collect()
}

fn read_text(content: &str) -> (Format, Vec<Sentence>) {
    let (_folder, path) = file(content);
    let reader = read(&path, &Options::default()).unwrap();
    (reader.format(), reader.collect::<Result<_>>().unwrap())
}

fn labelled(pairs: &[(&str, &str)]) -> Sentence {
    Sentence::new(pairs.iter().map(|pair| pair.0), pairs.iter().map(|pair| pair.1))
}

/// The message of the first error, with the name of the file in place of its path.
fn message(content: impl AsRef<[u8]>, options: &Options) -> String {
    let (folder, path) = file(content);
    let error = sentences(&path, options).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

fn format(format: Format) -> Options {
    Options { format: Some(format), ..Options::default() }
}

const CONLL_2003: &str =
    "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n\nBlackburn NNP B-NP B-PER\n";

#[test]
fn conll_2003_gives_three_tasks_from_one_file() {
    let (_folder, path) = file(CONLL_2003);
    let labels = |column: Column| {
        let columns = Columns { label: Some(column), ..Columns::default() };
        let options = Options { columns, ..Options::default() };
        let all = sentences(&path, &options).unwrap();
        assert_eq!(all.len(), 2);
        all[0].labels.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(labels("ner".into()), ["B-ORG", "O"]);
    assert_eq!(labels("chunk".into()), ["B-NP", "B-VP"]);
    assert_eq!(labels("pos".into()), ["NNP", "VBZ"]);
    assert_eq!(labels(Column::Number(2)), ["NNP", "VBZ"]);
    assert_eq!(labels(Column::Number(-1)), ["B-ORG", "O"]);
}

#[test]
fn two_columns_come_in_either_order() {
    let expected =
        [labelled(&[("bruce", "B-ACTOR"), ("willis", "I-ACTOR")]), labelled(&[("what", "O")])];
    for text in [
        "bruce\tB-ACTOR\nwillis\tI-ACTOR\n\nwhat\tO\n",
        "B-ACTOR\tbruce\nI-ACTOR\twillis\n\nO\twhat\n",
    ] {
        assert_eq!(read_text(text), (Format::Columns, expected.to_vec()));
    }
}

/// Comments as treebanks and MultiCoNER have them, before a sentence; `#` is a word all the same.
#[test]
fn comments_and_blanks_at_the_ends_of_columns_are_no_part_of_a_sentence() {
    for content in [
        "# sent_id = 1\n# text = Play # 1\nplay O\n# O\n1 B-n\n",
        "# id 0001\tdomain=en\nplay O\n# O\n1 B-n\n",
        "play\tO   \n#\tO\n1 \tB-n\t\n".trim_end_matches("\t\n"),
    ] {
        let (_, all) = read_text(content);
        assert_eq!(all, [labelled(&[("play", "O"), ("#", "O"), ("1", "B-n")])], "{content}");
    }
    let (_, all) = read_text("# O\nplay O\n");
    assert_eq!(all, [labelled(&[("#", "O"), ("play", "O")])]);
}

#[test]
fn carriage_returns_a_missing_last_newline_and_a_byte_order_mark_change_nothing() {
    let expected = vec![labelled(&[("a", "O"), ("b", "B-x")]), labelled(&[("c", "O")])];
    assert_eq!(read_text("\u{feff}a\tO\r\nb\tB-x\r\n\r\nc\tO").1, expected);
    assert_eq!(read_text("\u{feff}a O\nb B-x\n \t\nc O").1, expected);
    let jsonl = "\u{feff}{\"tokens\":[\"a\",\"b\"],\"labels\":[\"O\",\"B-x\"]}\r\n\r\n{\"tokens\":[\"c\"],\"labels\":[\"O\"]}";
    assert_eq!(read_text(jsonl), (Format::Jsonl, expected));
}

const ARW: &str = "# text: set alarm\n# intent: alarm/set_alarm\n1\tset\talarm/set_alarm\tNoLabel\n\
                   2\talarm\talarm/set_alarm\tNoLabel\n3\ttonight\talarm/set_alarm\tB-datetime\n\n";

#[test]
fn alarm_reminder_weather_in_both_layouts() {
    let expected = labelled(&[("set", "O"), ("alarm", "O"), ("tonight", "B-datetime")]);
    assert_eq!(read_text(ARW), (Format::Arw, vec![expected.about("alarm/set_alarm")]));

    let tsv = "reminder/set_reminder\t19:31:reminder/todo,32:41:datetime\tRemind me about my trip to D.C. Next week\t\
               en_XX\t{\"tokenizations\":[{\"tokens\":[\"remind\",\"me\",\"about\",\"my\",\"trip\",\"to\",\"d.c\",\".\",\
               \"next\",\"week\"],\"tokenSpans\":[{\"start\":0,\"length\":6},{\"start\":7,\"length\":2},\
               {\"start\":10,\"length\":5},{\"start\":16,\"length\":2},{\"start\":19,\"length\":4},\
               {\"start\":24,\"length\":2},{\"start\":27,\"length\":3},{\"start\":30,\"length\":1},\
               {\"start\":32,\"length\":4},{\"start\":37,\"length\":4}],\"tokenizerType\":2}]}\n\
               weather/find\t\tIs it hot\ten_XX\t{\"tokenizations\":[{\"tokens\":[\"is\",\"it\",\"hot\"],\
               \"tokenSpans\":[{\"start\":0,\"length\":2},{\"start\":3,\"length\":2},{\"start\":6,\"length\":3}]}]}\n";
    let (format, all) = read_text(tsv);
    assert_eq!(format, Format::ArwTsv);
    assert_eq!(all[1], labelled(&[("is", "O"), ("it", "O"), ("hot", "O")]).about("weather/find"));
    let labels = [
        "O",
        "O",
        "O",
        "O",
        "B-reminder/todo",
        "I-reminder/todo",
        "I-reminder/todo",
        "I-reminder/todo",
    ];
    assert_eq!(all[0].labels[..8], labels);
    assert_eq!(all[0].labels[8..], ["B-datetime", "I-datetime"]);
}

#[test]
fn character_spans_count_characters_not_bytes() {
    let (_, all) = read_text("_\t3:7:city,8:12:datetime\tà Thün demà\tde_XX\n");
    assert_eq!(all, [labelled(&[("à", "O"), ("Thün", "B-city"), ("demà", "B-datetime")])]);
}

#[test]
fn a_mistake_does_not_change_the_format() {
    for (text, format) in [(ARW, Format::Arw), (CONLLU, Format::Conllu)] {
        let (_folder, path) = file(format!("{text}1\tbad\n"));
        assert_eq!(Format::detect(&path).unwrap(), format);
        assert!(sentences(&path, &Options::default()).unwrap_err().is_bad_line());
    }
}

const CONLLU: &str = "# sent_id = 1\n# text = I don't\n1\tI\tI\tPRON\tPRP\t_\t0\troot\t_\t_\n\
                      2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tdo\tdo\tAUX\tVBP\t_\t1\taux\t_\t_\n\
                      3\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_\n\n";

#[test]
fn conllu_counts_syntactic_words_or_as_the_paper_does() {
    let (_folder, path) = file(CONLLU);
    let all = |tag, multiword| {
        let options = Options { conllu: Conllu { tag, multiword }, ..Options::default() };
        sentences(&path, &options).unwrap().remove(0)
    };
    assert_eq!(Format::detect(&path).unwrap(), Format::Conllu);
    assert_eq!(all(Tag::Upos, false), labelled(&[("I", "PRON"), ("do", "AUX"), ("n't", "PART")]));
    assert_eq!(all(Tag::Xpos, false), labelled(&[("I", "PRP"), ("do", "VBP"), ("n't", "RB")]));
    let paper = labelled(&[("I", "PRON"), ("don't", "_"), ("do", "AUX"), ("n't", "PART")]);
    assert_eq!(all(Tag::Upos, true), paper);
}

#[test]
fn seq_in_and_seq_out_are_read_together() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("seq.in"), "add  step to me \n\nplay it").unwrap();
    fs::write(folder.path().join("seq.out"), "O B-name I-name I-name\n\nO O \n").unwrap();
    let all = sentences(folder.path(), &Options::default()).unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all, sentences(&folder.path().join("seq.in"), &Options::default()).unwrap());

    fs::write(folder.path().join("seq.out"), "O B-name I-name\n\nO O\nO\n").unwrap();
    let mut reader = read(folder.path(), &Options::default()).unwrap();
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(error.ends_with(
        "seq.out:1: 3 label(s) for the 4 word(s) on the same line of seq.in; expected as many"
    ));
    assert_eq!(reader.next().unwrap().unwrap(), labelled(&[("play", "O"), ("it", "O")]));
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(
        error
            .ends_with("seq.out:4: seq.in ends after line 3; expected as many lines as in seq.out"),
        "{error}"
    );
    assert!(reader.next().is_none());
}

#[test]
fn bad_input_is_named_with_its_line() {
    let columns = format(Format::Columns);
    assert_eq!(
        message("a O\nb\n", &columns),
        "corpus:2: 1 column(s) in \"b\"; expected at least 2, separated by tabs or spaces"
    );
    assert_eq!(
        message("a\tO\n\tO\n", &columns),
        "corpus:2: empty word or label in \"\\tO\"; expected a word and a label"
    );
    assert_eq!(
        message("a\tO\n\nb\tx\tO\n", &columns),
        "corpus:3: 3 columns in \"b\\tx\\tO\", where the lines before have 2; expected as many in \
         every line, or the number of each column (--word 1 --label 2)"
    );
    let long = "w".repeat(4097);
    for (content, format_) in [
        (format!("a O\n{long} O\n"), Format::Columns),
        (format!("\n{{\"tokens\": [\"{long}\"], \"labels\": [\"O\"]}}\n"), Format::Jsonl),
    ] {
        let error = message(content, &format(format_));
        assert_eq!(error, "corpus:2: a word of 4097 bytes; expected at most 4096");
    }
    let fourth = Columns { label: Some(Column::from("ner")), ..Columns::default() };
    assert_eq!(
        message("a b c\n", &Options { columns: fourth, ..columns.clone() }),
        "corpus:1: 3 column(s) in \"a b c\"; expected at least 4, separated by tabs or spaces"
    );
    assert_eq!(
        message(b"a O\nb\xE9 O\n", &columns),
        "corpus:2: byte 0xE9 at column 2 is not valid UTF-8; convert the file, for example: iconv -f latin1 -t utf8"
    );
    assert_eq!(
        message("1\tI\tI\tPRON\n", &format(Format::Conllu)),
        "corpus:1: 4 column(s) in \"1\\tI\\tI\\tPRON\"; expected the 10 of CoNLL-U, separated by tabs"
    );
    assert_eq!(
        message("x\tI\tI\tPRON\tPRP\t_\t0\troot\t_\t_\n", &format(Format::Conllu)),
        "corpus:1: \"x\" is no word number; expected one such as 3, 3-4 or 3.1"
    );
    assert_eq!(
        message("1\tset\tO\n", &format(Format::Arw)),
        "corpus:1: \"1\\tset\\tO\"; expected number, word, intent and label, separated by tabs"
    );
    assert_eq!(
        message("_\t3-4:city\tin Bonn\n", &format(Format::ArwTsv)),
        "corpus:1: the slot \"3-4:city\"; expected start:end:name, such as 6:14:datetime"
    );
    assert_eq!(
        message("{\"tokens\": [\"a\", \"b\"], \"labels\": [\"O\"]}", &Options::default()),
        "corpus:1: 2 tokens and 1 labels; expected one label for each of at least one token"
    );
    let json = message("{\"tokens\": [\"a\", 3], \"labels\": [\"O\"]}", &Options::default());
    assert!(json.starts_with("corpus:1: invalid type: integer `3`, expected a string"), "{json}");
}

#[test]
fn files_that_are_no_corpus_say_what_was_expected() {
    assert_eq!(message("", &Options::default()), "corpus: is empty; expected a corpus");
    for format_ in Format::ALL.into_iter().filter(|format| *format != Format::SeqInOut) {
        let error = message("\n\n", &format(format_));
        assert_eq!(error, format!("corpus: holds no sentence; expected the format {format_}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let error = sentences(folder.path(), &Options::default()).unwrap_err().to_string();
    assert!(
        error.ends_with("is a directory without seq.in and seq.out; expected those or a file"),
        "{error}"
    );
    let error = sentences(folder.path(), &format(Format::Conllu)).unwrap_err().to_string();
    assert!(error.ends_with("is a directory; expected a file"), "{error}");
    let missing = sentences(&folder.path().join("no"), &Options::default()).unwrap_err();
    assert!(matches!(missing, Error::Io { .. }));
}

#[test]
fn bad_sentences_can_be_skipped_and_counted() {
    let (_folder, path) = file(b"a O\nb\nc O\n\nd O\n\n\xFF O\n\ne O\n");
    let mut reader = read(&path, &format(Format::Columns)).unwrap().skip_bad();
    let all = reader.by_ref().collect::<Result<Vec<_>>>().unwrap();
    assert_eq!(all, [labelled(&[("d", "O")]), labelled(&[("e", "O")])]);
    assert_eq!(reader.skipped(), 2);
    assert!(reader.first().unwrap().to_string().contains(":2: 1 column(s)"));
}

#[test]
fn what_a_format_cannot_hold_is_refused_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut writer = Writer::create(&path, Format::Columns, &Options::default(), false).unwrap();
    writer.write(&labelled(&[("fine", "O")])).unwrap();
    let error = writer.write(&labelled(&[("a\tb", "O")])).unwrap_err().to_string();
    let expected = "sentence 2: the word \"a\\tb\" contains '\\t', which this format cannot hold; write jsonl instead";
    assert!(error.ends_with(expected), "{error}");
    drop(writer);
    drop(Writer::create(&path, Format::SeqInOut, &Options::default(), false).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Words of odd Unicode: quotes, backslashes, combining marks, other spaces, other scripts, labels
/// as words.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9'\"\\\\.,#_:-]{1,12}",
        "\\PC{1,6}",
        "[\u{a0}\u{2009}\u{3000}e\u{301}\u{feff}\u{200d}]{1,4}",
        Just("O".to_owned()),
        Just("-DOCSTART-".to_owned()),
        Just("NoLabel".to_owned()),
        Just("#".to_owned()),
        "[ a]{1,3}",
        "[\ta\r]{1,3}",
    ]
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof![Just("O".to_owned()), "[BI]-[a-z_/]{1,8}", "[A-Z]{1,5}", Just("_".to_owned())]
}

fn sentence() -> impl Strategy<Value = Sentence> {
    prop::collection::vec((word(), label()), 1..12).prop_map(|tokens| {
        let (words, labels): (Vec<String>, Vec<String>) = tokens.into_iter().unzip();
        Sentence::new(words, labels)
    })
}

/// Writes what the format can hold, reads it again, and compares.
fn round_trip(
    all: &[Sentence],
    format: Format,
    mangle: impl Fn(String) -> String,
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let columns = Columns {
        word: Some(Column::Number(1)),
        label: Some(Column::Number(2)),
        ..Columns::default()
    };
    let options = Options { format: Some(format), columns, ..Options::default() };
    let mut writer = Writer::create(&path, format, &options, false).unwrap();
    let mut held = Vec::new();
    for sentence in all {
        match writer.write(sentence) {
            Ok(()) => held.push(sentence.clone()),
            Err(error) => prop_assert!(error.is_bad_line() && format != Format::Jsonl, "{}", error),
        }
    }
    prop_assert_eq!(writer.finish().unwrap(), held.len() as u64);
    let files = if format == Format::SeqInOut {
        vec![path.join("seq.in"), path.join("seq.out")]
    } else {
        vec![path.clone()]
    };
    for file in files {
        fs::write(&file, mangle(fs::read_to_string(&file).unwrap())).unwrap();
    }
    if !held.is_empty() {
        prop_assert_eq!(sentences(&path, &options).unwrap(), held);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn reading_gives_back_what_was_written(all in prop::collection::vec(sentence(), 1..6)) {
        for format in Format::ALL {
            round_trip(&all, format, |text| text)?;
            round_trip(&all, format, |text| text.replace('\n', "\r\n"))?;
            round_trip(&all, format, |text| format!("\u{feff}{}", text.trim_end_matches('\n')))?;
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), text in "[1-3ab_:{}\"\t\n -]{0,300}") {
        for content in [bytes, text.into_bytes()] {
            let (_folder, path) = file(&content);
            for format_ in Format::ALL {
                if let Ok(reader) = read(&path, &format(format_)) {
                    reader.skip_bad().for_each(drop);
                }
            }
            let _ = read(&path, &Options::default()).map(|reader| reader.skip_bad().for_each(drop));
        }
    }
}

/// Every format keeps the intent; what cannot be kept is refused.
#[test]
fn intents_are_kept() {
    let sentences = [
        labelled(&[("play", "O"), ("westbam", "B-artist")]).about("PlayMusic"),
        labelled(&[("rain", "O")]).about("GetWeather"),
    ];
    for format in Format::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("corpus");
        let mut options = Options { format: Some(format), ..Options::default() };
        let mut writer = Writer::create(&path, format, &options, false).unwrap();
        sentences.iter().for_each(|sentence| writer.write(sentence).unwrap());
        assert_eq!(writer.finish().unwrap(), 2);
        options.columns.intent = Some(Column::Number(2));
        let again: Vec<Sentence> =
            read(&path, &options).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(again, sentences, "{format}");
        // By default a column file is words and labels, wherever the intent stands.
        if format == Format::Columns {
            let plain: Vec<Sentence> =
                read(&path, &Options::default()).unwrap().collect::<Result<_, _>>().unwrap();
            assert_eq!(plain[0].labels, sentences[0].labels);
            assert_eq!(plain[0].intent, None);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let mut writer =
        Writer::create(&folder.path().join("some"), Format::SeqInOut, &options, false).unwrap();
    writer.write(&sentences[0]).unwrap();
    let error = writer.write(&labelled(&[("rain", "O")])).unwrap_err().to_string();
    assert!(error.contains("only some sentences have an intent"), "{error}");

    // A corpus whose intents are fewer than its sentences.
    for (file, text) in [("seq.in", "play\nrain\n"), ("seq.out", "O\nO\n"), ("label", "Play\n")] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let all: Vec<_> = read(folder.path(), &options).unwrap().collect();
    assert!(all[0].is_ok());
    let error = all[1].as_ref().unwrap_err().to_string();
    assert!(error.contains("seq.in") && error.contains("the file label has no intent"), "{error}");
}
