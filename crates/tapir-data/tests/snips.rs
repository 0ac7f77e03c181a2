//! The corpus that ships: its counts are those of the paper's appendix.

#![allow(clippy::unwrap_used, reason = "a test should stop at the first surprise")]

use std::{collections::BTreeSet, sync::Arc};

use tapir::{Labels, Vocabulary, WordVectors};
use tapir_data::{CorpusScheme, Stats, Task, Text, examples};

#[test]
fn snips_counts_as_in_the_paper() {
    let task = Task::open("snips").unwrap();
    let corpus = task.load(None).unwrap();
    let vectors = WordVectors::embedded().unwrap();
    let stats = Stats::of(&corpus, CorpusScheme::Iob, Some(&vectors));
    assert_eq!(stats.sentences, [13_084, 700, 700]);
    assert_eq!((stats.labels, stats.vocabulary), (72, 11_765));
    assert_eq!((stats.tokens_train_valid, stats.tokens_test), (124_084, 6_354));
    assert_eq!(
        format!("{:.3} {:.3}", stats.mean_length_train_valid, stats.mean_length_test),
        "9.002 9.077"
    );
    assert_eq!(stats.health.invalid_iob, Some([0; 3]));
    let covered = stats.health.vocabulary_with_vector.unwrap() as f64 / stats.vocabulary as f64;
    assert!((0.85..0.87).contains(&covered), "{covered}");

    let vocabulary = Vocabulary::new::<&str>([]).unwrap().with_vectors(Arc::new(vectors));
    let names: BTreeSet<&str> =
        corpus.train.iter().flat_map(|s| &s.labels).map(Text::as_str).collect();
    let labels = Labels::new(names).unwrap();
    let test: Vec<_> = corpus.test.iter().collect();
    let examples = examples(&test, &[], &vocabulary, &labels, 0).unwrap();
    let words: Vec<u32> = examples.into_iter().flat_map(|example| example.ids).collect();
    assert_eq!(words.len(), 6_354);
    assert!(words.iter().filter(|word| **word == Vocabulary::UNK).count() < 200);
}

#[test]
fn a_folder_comes_before_the_corpus_in_the_program() {
    let folder = tempfile::tempdir().unwrap();
    for split in ["train", "valid", "test"] {
        let split = folder.path().join("snips").join(split);
        std::fs::create_dir_all(&split).unwrap();
        std::fs::write(split.join("seq.in"), "play jazz\n").unwrap();
        std::fs::write(split.join("seq.out"), "O B-genre\n").unwrap();
    }
    let task = Task::open("snips").unwrap();
    // Both the folder itself and the one above it will do.
    let corpus = task.load(Some(folder.path())).unwrap();
    assert_eq!(corpus, task.load(Some(&folder.path().join("snips"))).unwrap());
    assert_eq!((corpus.train.len(), corpus.test.len()), (1, 1));

    // A folder that was asked for, or a task of one's own, is never replaced by it.
    assert!(task.load(Some(&folder.path().join("elsewhere"))).is_err());
    let mine = Task { train: tapir_data::Files::One("mine.txt".into()), ..task };
    let error = mine.load(None).unwrap_err().to_string();
    assert!(error.contains("expected mine.txt here or in a folder snips"), "{error}");
}
