//! What many streams need, from what was measured here: the table of `docs/scale.md`.
//!
//!     cargo bench -p tapir-nats --bench cost -- --nodes 3 --seconds 10 --out cost.json
//!     cargo run -p tapir-nats --example scale -- cost.json
//!
//! `--streams` (a million) and `--rate` (3 words a second) may follow.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::Value;

/// Machines should not be fuller than this: above it queues grow.
const LOAD: f64 = 0.5;
/// Answers of a session that the broker keeps: `CellSettings::answers_per_session`.
const ANSWERS: f64 = 256.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match calculate(&arguments) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("scale: {error}");
            ExitCode::FAILURE
        }
    }
}

fn calculate(arguments: &[String]) -> Result<String, String> {
    let (path, flags) = arguments.split_first().ok_or("the file of `--bench cost` is missing")?;
    let (mut streams, mut rate) = (1e6, 3.0);
    for pair in flags.chunks(2) {
        let value = pair.get(1).and_then(|value| value.parse::<f64>().ok());
        match (pair[0].as_str(), value) {
            ("--streams", Some(value)) => streams = value,
            ("--rate", Some(value)) => rate = value,
            _ => return Err(format!("unknown or incomplete: {}", pair.join(" "))),
        }
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let cost: Value = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
    let number = |value: &Value, what: &str| {
        value.as_f64().ok_or_else(|| format!("{path}: `{what}` is missing; measure again"))
    };
    let row = |name: &str| {
        let rows = cost["rows"].as_array().into_iter().flatten();
        rows.into_iter()
            .find(|row| row["what"].as_str().is_some_and(|what| what.starts_with(name)))
            .ok_or_else(|| format!("{path}: no row `{name}`; measure again"))
    };
    let of = |row: &Value, what: &str| number(&row[what], what);
    let alone = of(row("server, 1")?, "words_per_second")?;
    let nats = row("NATS, 1")?;
    let broker_ms = of(nats, "broker_cpu_ms_per_word")?;
    let stored = number(&cost["broker_messages_per_second"], "broker_messages_per_second")?;
    let sizes = &cost["sizes"];
    let (input, answer) = (of(sizes, "input_bytes")?, of(sizes, "answer_bytes")?);
    let answers = of(sizes, "answers_per_message")?;
    let session = number(&cost["session_bytes_of_ten_words"], "session_bytes_of_ten_words")?;
    let copies = number(&cost["nodes"], "nodes")?.min(3.0);

    let words = streams * rate;
    let messages = words * (1.0 + answers);
    let bytes = words * (input + answers * answer);
    // In: to the leader, from it to the other copies, to the worker. Out: to the leader, to the
    // copies, to the client.
    let traffic = bytes * (2.0 + (copies - 1.0));
    let cells = messages / 2.0 / (stored * LOAD);
    let rows = [
        ("words a second", format!("{words:.0}"), format!("{streams:.0} streams × {rate}")),
        (
            "cores that compute",
            format!("{:.0}", words / (alone * LOAD)),
            format!("{alone:.0} words a second a core (server, 1 thread), half full"),
        ),
        (
            "cores of NATS",
            format!("{:.0}", words * broker_ms / 1e3 / LOAD),
            format!("{broker_ms:.3} ms a word, {copies} copies, half full"),
        ),
        (
            "memory of sessions",
            format!("{:.0} GB", streams * session / 1e9),
            format!("{session:.0} bytes of ten words"),
        ),
        ("messages a second", format!("{messages:.0}"), format!("{answers:.2} answers a message")),
        (
            "cells",
            format!("{:.0}", cells.ceil()),
            format!("{stored:.0} messages a second a stream, two streams a cell, half full"),
        ),
        (
            "network",
            format!("{:.1} Gbit/s", traffic * 8.0 / 1e9),
            format!("{input:.0} + {answers:.2} × {answer:.0} bytes a word, {copies} copies"),
        ),
        (
            "disks",
            format!("{:.1} TB", ANSWERS * answer * streams * copies / 1e12),
            format!("{ANSWERS} answers a session at most, {copies} copies; inputs go with a reset"),
        ),
    ];
    let mut table = String::from("| | needed | from |\n| --- | --- | --- |\n");
    for (what, needed, from) in rows {
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {what} | {needed} | {from} |");
    }
    Ok(table)
}
