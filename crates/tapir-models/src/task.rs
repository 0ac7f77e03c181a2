//! The paper's seven tasks, named for their corpus: task files, TOML.

/// These files of `tasks`.
macro_rules! tasks {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../tasks/", $name, ".toml")))),*]
    };
}

static TASKS: &[(&str, &str)] =
    tasks!["snips" "arw" "movie" "conll-ner" "conll-chunk" "conll-pos" "ewt"];

/// Every task in the paper's order: its name and the text of its file.
///
/// ```
/// for (name, text) in tapir_models::tasks() {
///     assert!(text.contains(&format!("name = {name:?}")));
/// }
/// ```
pub fn tasks() -> &'static [(&'static str, &'static str)] {
    TASKS
}

/// The task file of that name.
///
/// ```
/// assert!(tapir_models::task("conll-pos").is_some());
/// assert!(tapir_models::task("pos").is_none(), "this is a model");
/// ```
pub fn task(name: &str) -> Option<&'static str> {
    TASKS.iter().find(|(task, _)| *task == name).map(|(_, text)| *text)
}

/// Tests of how a SNIPS model behaves on everyday text: kind, sentence and expectation, apart by
/// tabs.
pub static CHALLENGE: &str = include_str!("../challenge/snips.tsv");
