//! The corpus that ships: its counts are those of the paper's appendix.

#![allow(clippy::unwrap_used, reason = "a test should stop at the first surprise")]

use std::{collections::BTreeSet, path::Path, sync::Arc};

use tapir::{Labels, Vocabulary, WordVectors};
use tapir_data::{Scheme, Stats, Task, Text, examples};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn snips_counts_as_in_the_paper() {
    let task = Task::open("snips").unwrap();
    // Both the folder itself and the one above it will do.
    let corpus = task.load(Some(&root().join("data/snips"))).unwrap();
    assert_eq!(corpus, task.load(Some(&root().join("data"))).unwrap());

    let vectors = WordVectors::open(root().join("assets/en_300d.tapirvec")).unwrap();
    let stats = Stats::of(&corpus, Scheme::Iob, Some(&vectors));
    assert_eq!(stats.sentences, [13_084, 700, 700]);
    assert_eq!((stats.labels, stats.vocabulary), (72, 11_765));
    assert_eq!((stats.tokens_train_valid, stats.tokens_test), (124_084, 6_354));
    assert_eq!(format!("{:.3} {:.3}", stats.mean_length_train_valid, stats.mean_length_test), "9.002 9.077");
    assert_eq!(stats.health.invalid_iob, Some([0; 3]));
    let covered = stats.health.vocabulary_with_vector.unwrap() as f64 / stats.vocabulary as f64;
    assert!((0.85..0.87).contains(&covered), "{covered}");

    let vocabulary = Vocabulary::new::<&str>([]).unwrap().with_vectors(Arc::new(vectors));
    let names: BTreeSet<&str> = corpus.train.iter().flat_map(|s| &s.labels).map(Text::as_str).collect();
    let labels = Labels::new(names).unwrap();
    let test: Vec<_> = corpus.test.iter().collect();
    let examples = examples(&test, &[], &vocabulary, &labels, 0).unwrap();
    let words: Vec<u32> = examples.into_iter().flat_map(|example| example.ids).collect();
    assert_eq!(words.len(), 6_354);
    assert!(words.iter().filter(|word| **word == Vocabulary::UNK).count() < 200);
}
