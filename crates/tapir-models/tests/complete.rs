//! Every file of the crate's folders is in its tables, under its own name.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

/// The names of the files or folders in a folder of this crate.
fn names(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.trim_end_matches(".toml").to_owned()
    };
    std::fs::read_dir(folder).unwrap().map(name).collect()
}

#[test]
fn every_task_and_preset_is_there() {
    let tasks = tapir_models::tasks().iter().map(|(name, _)| (*name).to_owned());
    assert_eq!(tasks.collect::<BTreeSet<_>>(), names("tasks"));
    let files = |group: &'static str| {
        let name = move |name: String| format!("{group}/{name}");
        names(&format!("presets/{group}")).into_iter().map(name)
    };
    let presets = tapir_models::presets().iter().map(|(name, _)| (*name).to_owned());
    let files = files("paper").chain(files("small")).chain(files("pretrained"));
    assert_eq!(presets.collect::<BTreeSet<_>>(), files.collect());
}

#[cfg(feature = "models")]
#[test]
fn every_model_is_there() {
    let models = tapir_models::models().iter().map(|model| model.name.to_owned());
    // One is a crate of its own.
    let files: BTreeSet<String> = names("models").into_iter().chain(["snips".to_owned()]).collect();
    assert_eq!(models.collect::<BTreeSet<_>>(), files);
}

#[cfg(feature = "corpus")]
#[test]
fn every_corpus_is_there_and_belongs_to_a_task() {
    let corpora = tapir_models::corpora().iter().map(|corpus| corpus.task.to_owned());
    assert_eq!(corpora.collect::<BTreeSet<_>>(), names("data"));
    assert!(tapir_models::corpora().iter().all(|corpus| tapir_models::task(corpus.task).is_some()));
}
