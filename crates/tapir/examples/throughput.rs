//! Words a second on one core: reads sentences word by word, each to its end, with a model that
//! ships, and prints what `npm/bench` and `python/benches/boundary.py` compare with.
//!
//! Usage: `cargo run --release -p tapir --example throughput -- snips-small SENTENCES SECONDS [first-pass]`

use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, sentences, seconds, mode @ ..] = &arguments[..] else {
        return Err("expected a model, a file of sentences, and seconds".into());
    };
    let model = tapir::Model::embedded_named(name)?;
    let mode = match mode {
        [] => tapir::Mode::TwoPass,
        [mode] if mode == "first-pass" => tapir::Mode::FirstPass,
        other => return Err(format!("{other:?}: expected first-pass or nothing").into()),
    };
    let mut session = model.session_with(tapir::SessionOptions::new().mode(mode))?;
    session.push("play")?;
    println!("first label");

    let text = std::fs::read_to_string(sentences)?;
    let sentences: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    let mut pass = || -> tapir::Result<usize> {
        let mut words = 0;
        for sentence in &sentences {
            session.reset();
            for word in sentence {
                session.push(word)?;
                words += 1;
            }
            session.finish()?;
        }
        Ok(words)
    };
    pass()?;
    let (least, since) = (Duration::from_secs_f64(seconds.parse()?), Instant::now());
    let mut words = 0;
    while since.elapsed() < least {
        words += pass()?;
    }
    let rate = words as f64 / since.elapsed().as_secs_f64();
    println!("{}", serde_json::json!({ "rate": rate, "kernels": tapir::kernels::isa().name() }));
    Ok(())
}
