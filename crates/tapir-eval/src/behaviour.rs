//! Tests of behaviour, in the manner of CheckList (Ribeiro et al., ACL 2020): sentences of some
//! kind, and what a model should find in each.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tapir::Model;

use crate::{Error, Result, Table};

/// A list of tests, read from a file of three columns apart by tabs: kind, sentence, expectation.
///
/// An expectation is a list of spans, `label: words` apart by `;`; or `none`; or `= another
/// sentence`, which must be answered alike; or `outside`: there is nothing to act on, for there is no
/// span, or the model says that the sentence is not for it ([`Intent::is_outside`]). Where spans or
/// `none` are expected, it must not say so. Lines that begin with `#` are comments.
///
/// [`Intent::is_outside`]: tapir::Intent::is_outside
///
/// ```
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// let text = "casing\tPLAY JAZZ\t= play jazz\nplain\tplay jazz\tgenre: jazz\n";
/// let results = tapir_eval::Behaviour::parse(text, "tests.tsv")?.run(&model)?;
/// assert_eq!(results.kinds.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Behaviour {
    tests: Vec<Test>,
}

#[derive(Clone, Debug)]
struct Test {
    kind: String,
    sentence: String,
    expected: Expected,
}

#[derive(Clone, Debug)]
enum Expected {
    Spans(Spans),
    SameAs(String),
    Outside,
}

/// Labels with their words, as the model reads them. Where they stand does not count: words around
/// a request move them.
type Spans = BTreeSet<(String, String)>;

/// What a model says of a sentence.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    spans: Spans,
    /// That it is not for it.
    outside: bool,
}

/// How a model behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BehaviourResults {
    /// Passed and failed, by kind, in the order of the file.
    pub kinds: Vec<KindResults>,
    /// Every test that failed.
    pub failures: Vec<Failure>,
}

/// The tests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindResults {
    /// What they have in common.
    pub kind: String,
    /// How many passed.
    pub passed: usize,
    /// Of how many.
    pub tests: usize,
}

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Its kind.
    pub kind: String,
    /// The sentence.
    pub sentence: String,
    /// What should have been found.
    pub expected: String,
    /// What was.
    pub found: String,
}

impl Behaviour {
    /// Reads tests; `file` names the source in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let mut tests = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid =
                |reason: &str| Error::results(Path::new(file), format!("line {number}: {reason}"));
            let [kind, sentence, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(invalid("expected kind, sentence and expectation, apart by tabs"));
            };
            let expected = match expected.strip_prefix('=') {
                Some(other) => Expected::SameAs(other.trim().to_owned()),
                None if expected.trim() == "none" => Expected::Spans(Spans::new()),
                None if expected.trim() == "outside" => Expected::Outside,
                None => {
                    let span = |part: &str| {
                        let (label, words) = part.split_once(':')?;
                        Some((label.trim().to_owned(), words.trim().to_owned()))
                    };
                    let spans = expected.split(';').map(span).collect::<Option<Spans>>();
                    let reason = "expected `label: words; label: words`, `none`, `outside` or \
                                  `= another sentence`";
                    Expected::Spans(spans.ok_or_else(|| invalid(reason))?)
                }
            };
            tests.push(Test { kind: kind.into(), sentence: sentence.into(), expected });
        }
        if tests.is_empty() {
            return Err(Error::results(Path::new(file), "there is no test in it"));
        }
        Ok(Self { tests })
    }

    /// Runs a model on every sentence.
    pub fn run(&self, model: &Model) -> Result<BehaviourResults> {
        let mut results = BehaviourResults { kinds: Vec::new(), failures: Vec::new() };
        for Test { kind, sentence, expected } in &self.tests {
            let found = found(model, sentence)?;
            let (passed, expected) = match expected {
                Expected::Spans(spans) => {
                    let wanted = Found { spans: spans.clone(), outside: false };
                    (found == wanted, wanted.to_string())
                }
                Expected::SameAs(other) => {
                    let wanted = self::found(model, other)?;
                    (found == wanted, wanted.to_string())
                }
                Expected::Outside => {
                    (found.outside || found.spans.is_empty(), "outside".to_owned())
                }
            };
            let at =
                results.kinds.iter().position(|known| known.kind == *kind).unwrap_or_else(|| {
                    results.kinds.push(KindResults { kind: kind.clone(), passed: 0, tests: 0 });
                    results.kinds.len() - 1
                });
            results.kinds[at].tests += 1;
            if passed {
                results.kinds[at].passed += 1;
            } else {
                let (kind, sentence) = (kind.clone(), sentence.clone());
                let found = found.to_string();
                results.failures.push(Failure { kind, sentence, expected, found });
            }
        }
        Ok(results)
    }
}

/// What a model finds in a sentence, read word by word as `tapir tag` does.
fn found(model: &Model, sentence: &str) -> Result<Found> {
    let words = model.config().tokenizer.words(sentence);
    let mut session = model.session();
    for word in &words {
        session.push(word)?;
    }
    session.finish()?;
    let first = session.first();
    let spans = session.spans().into_iter();
    let text = |start: usize, end: usize| words[start - first..end - first].join(" ");
    let spans = spans.map(|span| (span.label.to_string(), text(span.start, span.end))).collect();
    Ok(Found { spans, outside: session.intent().is_some_and(|intent| intent.is_outside()) })
}

/// As an expectation is written.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans = self.spans.iter().map(|(label, words)| format!("{label}: {words}"));
        let parts: Vec<String> =
            self.outside.then(|| "outside".into()).into_iter().chain(spans).collect();
        f.write_str(if parts.is_empty() { "none".into() } else { parts.join("; ") }.as_str())
    }
}

impl BehaviourResults {
    /// Passed in all, and how many tests there are.
    pub fn total(&self) -> (usize, usize) {
        let sum = |of: fn(&KindResults) -> usize| self.kinds.iter().map(of).sum();
        (sum(|kind| kind.passed), sum(|kind| kind.tests))
    }

    /// A row per kind.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["kind", "passed", "of", "rate"]);
        let (passed, tests) = self.total();
        let all = KindResults { kind: "all".into(), passed, tests };
        for KindResults { kind, passed, tests } in self.kinds.iter().chain([&all]) {
            let rate = 100.0 * *passed as f64 / (*tests).max(1) as f64;
            table.row([
                kind.clone(),
                passed.to_string(),
                tests.to_string(),
                format!("{rate:.0} %"),
            ]);
        }
        table
    }
}

/// A test that failed, in two lines.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, sentence, expected, found } = self;
        write!(f, "{kind}: {sentence}\n  expected  {expected}\n  found     {found}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_test_is_named_with_its_line() {
        let error = |text| Behaviour::parse(text, "x.tsv").unwrap_err().to_string();
        assert!(error("# only a comment\n").contains("no test"));
        assert!(error("plain\tplay jazz\n").contains("line 1"));
        assert!(error("\nplain\tplay jazz\tjazz\n").contains("line 2"));
    }
}
