//! Text of several domains, a sentence per line: what a model learns not to be for it.

/// These files of `text`.
macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../text/", $name, ".txt")))),*]
    };
}

static TEXTS: &[(&str, &str)] = texts!["alarms" "english" "requests"];

/// Every text: its name and its lines.
///
/// ```
/// assert!(tapir_models::texts().iter().any(|(name, _)| *name == "english"));
/// ```
pub fn texts() -> &'static [(&'static str, &'static str)] {
    TEXTS
}

/// The text of that name.
///
/// ```
/// let text = tapir_models::text("alarms").expect("it ships");
/// assert_eq!(text.lines().count(), 1000);
/// ```
pub fn text(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(text, _)| *text == name).map(|(_, lines)| *lines)
}
