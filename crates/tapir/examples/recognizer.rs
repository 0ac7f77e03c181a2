//! A speech recogniser in front of tapir: whole hypotheses go in, changes of labels come out.
//!
//!     cargo run -p tapir --example recognizer

use tapir::{Action, Model};

/// What a recogniser has understood after each stretch of sound. It takes its first guess at the
/// city back.
const HYPOTHESES: [&str; 6] = [
    "what",
    "what is the weather",
    "what is the weather in new",
    "what is the weather in newark",
    "what is the weather in new york",
    "what is the weather in new york tomorrow",
];

fn main() -> tapir::Result<()> {
    let model = Model::embedded()?;
    let mut session = model.session();
    let mut labels = Vec::new();
    for hypothesis in HYPOTHESES {
        let words: Vec<&str> = hypothesis.split(' ').collect();
        // Words that the hypothesis shares with the last one are kept; the others are taken back,
        // exactly.
        let update = session.update(&words)?;
        update.apply(&mut labels);
        let action = if update.action == Some(Action::Revise) { "REVISE" } else { "WRITE" };
        println!("{hypothesis}\n  {action}");
        for edit in &update.edits {
            let old = edit.old.as_ref().map_or(String::new(), |old| format!(" (was {old})"));
            println!("  {}: {}{old}", words[edit.position], edit.label);
        }
    }
    let end = session.finish()?;
    end.update.apply(&mut labels);
    assert_eq!(labels, end.labels, "the updates are all that a program needs to keep");
    let words: Vec<&str> = HYPOTHESES[HYPOTHESES.len() - 1].split(' ').collect();
    println!("final");
    for span in session.spans() {
        println!("  {}: {}", span.label, words[span.start..span.end].join(" "));
    }
    Ok(())
}
