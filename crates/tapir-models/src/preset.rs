//! Training presets, named for their size and task: TOML with every size and rate.

/// These files of `presets`.
macro_rules! presets {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../presets/", $name, ".toml")))),*]
    };
}

/// `paper/` has the paper's tables: seven tasks, two revisers, delays 0, 1 and 2. `small/` trains in
/// minutes, `pretrained/` starts from an encoder that a user brings.
#[rustfmt::skip]
static PRESETS: &[(&str, &str)] = presets![
    "paper/snips-trf" "paper/snips-trf-d1" "paper/snips-trf-d2"
    "paper/snips-lt" "paper/snips-lt-d1" "paper/snips-lt-d2"
    "paper/arw-trf" "paper/arw-trf-d1" "paper/arw-trf-d2"
    "paper/arw-lt" "paper/arw-lt-d1" "paper/arw-lt-d2"
    "paper/movie-trf" "paper/movie-trf-d1" "paper/movie-trf-d2"
    "paper/movie-lt" "paper/movie-lt-d1" "paper/movie-lt-d2"
    "paper/conll-ner-trf" "paper/conll-ner-trf-d1" "paper/conll-ner-trf-d2"
    "paper/conll-ner-lt" "paper/conll-ner-lt-d1" "paper/conll-ner-lt-d2"
    "paper/conll-chunk-trf" "paper/conll-chunk-trf-d1" "paper/conll-chunk-trf-d2"
    "paper/conll-chunk-lt" "paper/conll-chunk-lt-d1" "paper/conll-chunk-lt-d2"
    "paper/conll-pos-trf" "paper/conll-pos-trf-d1" "paper/conll-pos-trf-d2"
    "paper/conll-pos-lt" "paper/conll-pos-lt-d1" "paper/conll-pos-lt-d2"
    "paper/ewt-trf" "paper/ewt-trf-d1" "paper/ewt-trf-d2"
    "paper/ewt-lt" "paper/ewt-lt-d1" "paper/ewt-lt-d2"
    "small/snips" "small/arw" "small/movie"
    "small/conll-ner" "small/conll-chunk" "small/conll-pos" "small/ewt"
    "pretrained/snips" "pretrained/arw" "pretrained/movie"
    "pretrained/conll-ner" "pretrained/conll-chunk" "pretrained/conll-pos" "pretrained/ewt"
];

/// Every preset: its name and its text.
///
/// ```
/// assert_eq!(tapir_models::presets().len(), 7 * 2 * 3 + 7 + 7);
/// ```
pub fn presets() -> &'static [(&'static str, &'static str)] {
    PRESETS
}

/// The preset of that name.
///
/// ```
/// let preset = tapir_models::preset("small/ewt").expect("it ships");
/// assert!(preset.contains(r#"task = "ewt""#));
/// ```
pub fn preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}
