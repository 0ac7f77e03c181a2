//! Corpora whose licence lets them ship, named as their task.

/// The three splits of a corpus.
#[derive(Clone, Copy)]
pub struct CorpusFiles {
    /// The task that it is the corpus of.
    pub task: &'static str,
    /// To learn from.
    pub train: SplitFiles,
    /// To choose by.
    pub valid: SplitFiles,
    /// To measure on.
    pub test: SplitFiles,
    /// What recognisers heard of training sentences that were spoken, in JSON Lines.
    pub heard: &'static str,
}

/// The files of a split, one sentence per line.
#[derive(Clone, Copy)]
pub struct SplitFiles {
    /// `seq.in`: the words.
    pub words: &'static str,
    /// `seq.out`: their IOB labels.
    pub labels: &'static str,
    /// `label`: what the sentence wants.
    pub intents: &'static str,
}

/// The files of a folder of `data`.
macro_rules! split {
    ($folder:literal) => {
        SplitFiles {
            words: include_str!(concat!("../data/", $folder, "/seq.in")),
            labels: include_str!(concat!("../data/", $folder, "/seq.out")),
            intents: include_str!(concat!("../data/", $folder, "/label")),
        }
    };
}

static CORPORA: &[CorpusFiles] = &[CorpusFiles {
    task: "snips",
    train: split!("snips/train"),
    valid: split!("snips/valid"),
    test: split!("snips/test"),
    heard: include_str!("../data/snips/heard.jsonl"),
}];

/// Every corpus.
///
/// ```
/// assert!(tapir_models::corpora().iter().any(|corpus| corpus.task == "snips"));
/// ```
pub fn corpora() -> &'static [CorpusFiles] {
    CORPORA
}

/// The corpus of that task.
///
/// ```
/// let snips = tapir_models::corpus("snips").expect("it ships");
/// assert_eq!(snips.test.words.lines().count(), 700);
/// assert!(tapir_models::corpus("ewt").is_none(), "it is to be had elsewhere");
/// ```
pub fn corpus(task: &str) -> Option<&'static CorpusFiles> {
    CORPORA.iter().find(|corpus| corpus.task == task)
}
