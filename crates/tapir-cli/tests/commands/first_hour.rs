//! What a newcomer tries, with the natural mistakes: nothing goes wrong in silence.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};

use crate::support::output;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("tapir").unwrap();
    command.args(arguments);
    command
}

#[test]
fn a_file_that_is_not_there_is_not_a_text() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["notes.txt", "./notes", "some/notes"] {
        let mut command = program(&["tag", path]);
        command.current_dir(&folder);
        command.assert().failure().stderr(contains(path).and(contains("--text")));
    }
    let mut command = program(&["tag", "."]);
    command.assert().failure().stderr(contains("is a folder"));
    let text = output(&mut program(&["tag", "--text", "notes.txt", "--format", "conll"]));
    assert!(text.lines().any(|line| line.starts_with("notes.txt\t")), "{text}");
    // Words are no paths, whatever stands between them.
    for text in ["jazz", "play AC/DC songs", "play jazz.", "book it for 3.50"] {
        program(&["tag", text]).assert().success();
    }
}

#[test]
fn a_run_that_has_the_name_of_a_model_that_ships_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let info = |folder: &std::path::Path| -> serde_json::Value {
        let mut command = program(&["info", "snips-small", "--json"]);
        serde_json::from_str(&output(command.current_dir(folder))).unwrap()
    };
    assert_eq!(info(folder.path())["config"]["task"], "snips");
    let run = folder.path().join("snips-small");
    std::fs::create_dir(&run).unwrap();
    program(&["quantize", "pos"]).arg(run.join("model")).assert().success();
    assert_eq!(info(folder.path())["config"]["task"], "ewt");
    std::fs::remove_dir_all(run.join("model")).unwrap();
    std::fs::write(run.join("preset.toml"), "").unwrap();
    let mut unfinished = program(&["info", "snips-small"]);
    unfinished.current_dir(&folder).assert().failure().stderr(contains("training run"));
}

#[test]
fn every_line_in_is_a_line_of_json_out() {
    let text = "play jazz\n\n...\n🎉\r\nWhat's on, Zoë?\n";
    let json = output(program(&["tag", "-", "--format", "json"]).write_stdin(text));
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    for (number, (line, text)) in (1..).zip(lines.iter().zip(text.lines())) {
        assert_eq!((&line["line"], &line["text"]), (&number.into(), &text.into()));
        let characters: Vec<char> = text.chars().collect();
        let words = line["words"].as_array().unwrap();
        let offsets = line["offsets"].as_array().unwrap();
        assert_eq!(
            (words.len(), words.len()),
            (offsets.len(), line["labels"].as_array().unwrap().len())
        );
        for (word, offset) in words.iter().zip(offsets) {
            let at = |i: usize| offset[i].as_u64().unwrap() as usize;
            let original: String = characters[at(0)..at(1)].iter().collect();
            assert_eq!(original.to_lowercase(), *word, "in {text}");
        }
    }
    assert_eq!(lines[1]["words"].as_array().unwrap().len(), 0);
    let mut command = program(&["tag", "play some jazz", "--format", "json"]);
    let line: serde_json::Value = serde_json::from_str(&output(&mut command)).unwrap();
    let span = &line["spans"][0];
    assert_eq!((&span["text"], &span["offset"]), (&"jazz".into(), &serde_json::json!([10, 14])));
}

#[test]
fn a_table_folds_at_the_width_of_the_terminal_and_wide_letters_align() {
    let mut command =
        program(&["tag", "--model", "pos", "東京 is a large city in Japan , you know"]);
    let text = output(command.env("COLUMNS", "30"));
    assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
    let mut lines = text.lines();
    let (words, labels) = (lines.next().unwrap(), lines.next().unwrap());
    // Two letters that are two columns wide each, over whatever a model calls them.
    let width = labels.find(' ').unwrap().max(4);
    assert!(words.starts_with(&format!("東京{}is", " ".repeat(width - 4 + 2))), "{words}");
    assert_eq!(&labels[width..width + 5], "  AUX", "{labels}");
}

#[test]
fn what_ships_can_be_listed_and_printed() {
    let tasks = output(&mut program(&["tasks"]));
    assert!(tasks.contains("snips ") && tasks.contains("conll-pos"), "{tasks}");
    program(&["tasks", "ewt"]).assert().success().stdout(contains("name = \"ewt\""));
    program(&["tasks", "pos"]).assert().failure().stderr(contains("`tapir tasks` lists"));
    program(&["presets"]).assert().success().stdout(contains("small/snips"));
    program(&["presets", "small/ewt"]).assert().success().stdout(contains("[training.reviser]"));
}

#[test]
fn behaviour_is_checked_by_kind() {
    let table = output(&mut program(&["check"]));
    for kind in ["plain", "casing", "out-of-domain", "all"] {
        assert!(table.lines().any(|line| line.starts_with(kind)), "{table}");
    }
    // What the tokenizer makes equal must stay equal.
    let casing = table.lines().find(|line| line.starts_with("casing")).unwrap();
    assert!(casing.trim_end().ends_with("100 %"), "{casing}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tests.tsv");
    std::fs::write(&file, "mine\tplay jazz\tartist: jazz\n").unwrap();
    let mut command = program(&["check", "--failures"]);
    command.arg(&file).assert().success().stdout(contains("found     genre: jazz"));
    std::fs::write(&file, "mine\tplay jazz\n").unwrap();
    program(&["check"]).arg(&file).assert().failure().stderr(contains("line 1"));
}

#[test]
fn a_run_is_a_model_and_an_unfinished_one_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("preset.toml"), "").unwrap();
    let tag = |run: &std::path::Path| {
        let mut command = program(&["tag", "play jazz", "--model"]);
        command.arg(run);
        command
    };
    tag(&run).assert().failure().stderr(contains("has no model yet").and(contains("tapir train")));
    tapir::doctest::parts().save(run.join("model")).unwrap();
    tag(&run).assert().success();
    program(&["info"]).arg(&run).assert().success();
    let mut command = program(&["trace", "play jazz", "--model"]);
    command.arg(&run).assert().success();
    let mut command = program(&["eval", "runs/a", "snips", "--model"]);
    command.arg(&run).assert().failure().stderr(contains("given twice"));
}

#[test]
fn labels_that_ship_are_legal() {
    let text = tapir_models::corpus("snips").unwrap().test.words;
    let json =
        output(program(&["tag", "-", "--format", "json", "--no-final-pass"]).write_stdin(text));
    for line in json.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let mut before = "O".to_owned();
        for label in line["labels"].as_array().unwrap() {
            let label = label.as_str().unwrap();
            if let Some(kind) = label.strip_prefix("I-") {
                assert!(before[1..] == format!("-{kind}"), "{before} {label} in {}", line["text"]);
            }
            before = label.to_owned();
        }
    }
}

#[cfg(feature = "serve")]
#[test]
fn a_server_says_what_is_wrong_with_its_log_and_its_address() {
    let mut command = program(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("TAPIR_LOG", "loud");
    command.assert().failure().stderr(contains("`loud`").and(contains("debug")));
    program(&["serve", "--listen", "nowhere"])
        .assert()
        .failure()
        .stderr(contains("localhost:8642"));
    // A port that is taken, by the name of its address.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("localhost:{}", taken.local_addr().unwrap().port());
    let mut command = program(&["serve", "--listen", &address]);
    command.assert().failure().stderr(contains("127.0.0.1").and(contains("--listen")));
}

#[cfg(feature = "train")]
#[test]
fn a_task_is_not_a_preset() {
    program(&["train", "snips"]).assert().failure().stderr(contains("small/snips"));
    let mut command = program(&["train", "small/snips", "--set", "training.reviser.epocs=3"]);
    command.assert().failure().stderr(contains("epocs").and(starts_with("tapir: ")));
}
