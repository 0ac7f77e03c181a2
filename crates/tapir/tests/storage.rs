//! A model directory that is replaced, cut and written over while others read it, by processes that
//! are killed.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tapir::{Labels, Model, Parts, Precision, Vocabulary, WordVectors};

/// Names what a child process of these tests does, and where.
const TASK: &str = "TAPIR_STORAGE_TEST";

/// Two models that differ in every file, so that no file of one goes with those of the other
/// unnoticed.
fn two() -> [Parts; 2] {
    let first = tapir::doctest::parts();
    let mut config = first.config.clone();
    config.threshold = 0.25;
    let labels = Labels::new(["X", "Y", "Z", "W"]).unwrap();
    let vocabulary = Vocabulary::new(["a", "b", "c", "d", "e", "f"]).unwrap();
    let second = Parts::random(config, labels, vocabulary, 8).unwrap();
    [first, second.quantize(Precision::F16).unwrap()]
}

fn same(a: &Parts, b: &Parts) -> bool {
    a.config == b.config
        && a.labels == b.labels
        && a.vocabulary.to_text() == b.vocabulary.to_text()
        && *a.weights == *b.weights
}

/// Runs the test `name` of this program in a process of its own.
fn child(name: &str, dir: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(TASK, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// Where this process does its task, if it is a child.
fn task() -> Option<PathBuf> {
    std::env::var_os(TASK).map(PathBuf::from)
}

#[test]
fn a_model_that_is_replaced_is_read_as_one_or_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("model");
    let models = two();
    models[0].save(&dir).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let mut opened = 0;
            while opened < 200 || !done.load(Ordering::Relaxed) {
                let parts = Parts::open(&dir).unwrap();
                let known = models.iter().any(|model| same(model, &parts));
                assert!(known, "neither model: {:?} {:?}", parts.config.threshold, parts.labels);
                opened += 1;
            }
        };
        scope.spawn(read);
        scope.spawn(read);
        for i in 1..=200 {
            models[i % 2].replace(&dir).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

/// Several writers at once, each with models of its own: the last one stays, whole.
#[test]
fn writers_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("model");
    let models = two();
    std::thread::scope(|scope| {
        for model in &models {
            let dir = &dir;
            scope.spawn(move || (0..40).for_each(|_| model.replace(dir).unwrap()));
        }
        scope.spawn(|| {
            while Parts::open(&dir).is_err() {
                std::thread::yield_now();
            }
            (0..40).for_each(|i| tapir::amend(&dir, |config| config.delay = i % 2).unwrap());
        });
    });
    let mut parts = Parts::open(&dir).unwrap();
    parts.config.delay = 0;
    assert!(models.iter().any(|model| same(model, &parts)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[cfg(unix)]
#[test]
fn a_writer_can_be_killed_at_any_moment() {
    if let Some(dir) = task() {
        let models = two();
        println!("ready");
        for i in 0.. {
            models[i % 2].replace(&dir).unwrap();
            tapir::amend(&dir, |config| config.delay = 1).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("model");
    let models = two();
    models[0].save(&dir).unwrap();
    for round in 0..60_u64 {
        let mut child = child("a_writer_can_be_killed_at_any_moment", &dir);
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        while !line.contains("ready") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "the writer ended");
        }
        // Moments all over one replacement, in steps that do not divide it.
        std::thread::sleep(Duration::from_micros(round * 613 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut parts = Parts::open(&dir).unwrap();
        parts.clone().load().unwrap();
        parts.config.delay = 0;
        assert!(models.iter().any(|model| same(model, &parts)), "round {round}");
    }
    models[1].replace(&dir).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "what was left was removed");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 4);
}

/// What a session says of words that need rows of the tables and of the vectors.
fn labels(model: &Model, words: &[&str]) -> String {
    let mut session = model.session();
    words.iter().for_each(|word| _ = session.push(word).unwrap());
    format!("{:?} {:?}", session.labels(), session.probabilities())
}

/// Whatever is done to the files of a model that is in use, the model runs on: in a process of its
/// own, since a mapped file that is cut kills the process that reads it.
#[test]
fn a_model_in_use_does_not_need_its_files() {
    const WORDS: [&str; 5] = ["play", "some", "jazz", "unheard", "trumpets"];
    if let Some(dir) = task() {
        let model = Model::open(dir).unwrap();
        println!("ready");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        println!("labels {}", labels(&model, &WORDS));
        return;
    }
    let mut parts = tapir::doctest::parts();
    parts.config.embedding_dim = 300;
    parts.config.vectors = Some("words.tapirvec".to_owned());
    let vectors = WordVectors::embedded().unwrap();
    let vocabulary = parts.vocabulary.with_vectors(vectors.into());
    let parts = Parts::random(parts.config, parts.labels, vocabulary, 3).unwrap();
    let expected = labels(&parts.clone().load().unwrap(), &WORDS);
    for damage in [0, 1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("model");
        parts.save(&dir).unwrap();
        let mut child = child("a_model_in_use_does_not_need_its_files", &dir);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "the model could not be opened");
        }
        for file in
            ["config.json", "labels.txt", "vocab.txt", "model.safetensors", "words.tapirvec"]
        {
            let path = dir.join(file);
            match damage {
                0 => File::options().write(true).open(path).unwrap().set_len(0).unwrap(),
                1 => {
                    let length = fs::metadata(&path).unwrap().len() as usize;
                    File::options()
                        .write(true)
                        .open(path)
                        .unwrap()
                        .write_all(&vec![0x55; length])
                        .unwrap();
                }
                _ => fs::remove_file(path).unwrap(),
            }
        }
        writeln!(child.stdin.take().unwrap(), "go").unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "damage {damage}: {status}");
        assert!(rest.contains(&format!("labels {expected}\n")), "damage {damage}: {rest}");
    }
}

/// A directory that changes for ever is not a reason to wait for ever, nor is a file that is
/// missing.
#[test]
fn a_missing_file_is_still_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("model");
    tapir::doctest::parts().save(&dir).unwrap();
    fs::remove_file(dir.join("vocab.txt")).unwrap();
    assert!(Parts::open(&dir).unwrap_err().to_string().contains("vocab.txt"));
    let error = tapir::doctest::parts().replace(dir.join("labels.txt")).unwrap_err().to_string();
    assert!(error.contains("labels.txt: is a file"), "{error}");
    assert!(dir.join("labels.txt").is_file());
}

#[cfg(unix)]
#[test]
fn a_link_to_a_model_is_opened_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, link) = (folder.path().join("v1"), folder.path().join("current"));
    let models = two();
    models[0].save(&dir).unwrap();
    std::os::unix::fs::symlink("v1", &link).unwrap();
    assert!(same(&Parts::open(&link).unwrap(), &models[0]));
    models[1].replace(&link).unwrap();
    assert!(same(&Parts::open(&link).unwrap(), &models[1]));
    assert!(same(&Parts::open(&dir).unwrap(), &models[0]), "what the link stood for is as it was");
}
