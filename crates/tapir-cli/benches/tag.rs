//! The program as a whole, on the SNIPS test sentences: `cargo bench -p tapir-cli --bench tag`.
//!
//! Words a second with one thread, with two, and with two programs of one thread side by side,
//! which is all that the machine can give just now; the time from start to the first label and the
//! peak of memory, against what was promised.
#![allow(clippy::unwrap_used)] // a benchmark that cannot run should say where

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tapir");
const FIRST_LABEL: Duration = Duration::from_millis(100);
const MEMORY: f64 = 150.0;

fn main() {
    let words = sentences().split_whitespace().count();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sentences.txt");
    std::fs::write(&file, sentences()).unwrap();
    let file = file.to_str().unwrap();

    // Turn by turn, so that a busy moment of the machine meets all of them.
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..5 {
        for ((programs, threads), times) in
            [(1, "1"), (1, "2"), (2, "1")].into_iter().zip(&mut times)
        {
            times.push(whole_file(file, programs, threads));
        }
    }
    let [one, two, side_by_side] = times.map(median);
    let speed = |files: usize, time: Duration| (files * words) as f64 / time.as_secs_f64();
    let [one, two, limit] = [speed(1, one), speed(1, two), speed(2, side_by_side)];
    println!("one thread    {one:>8.0} words a second");
    println!("two threads   {two:>8.0} words a second, {:.2} times as many", two / one);
    println!("two programs  {limit:>8.0} words a second, {:.2} times as many", limit / one);

    let first = median((0..20).map(|_| first_label()).collect());
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "first label   {:>8.1} ms, median of 20, against {:.0}: {}",
        milliseconds(first),
        milliseconds(FIRST_LABEL),
        verdict(first <= FIRST_LABEL)
    );
    match peak_memory() {
        Some(memory) => {
            println!(
                "peak memory   {memory:>8.1} MB, against {MEMORY:.0}: {}",
                verdict(memory <= MEMORY)
            );
        }
        None => println!("peak memory   is measured where there is /proc"),
    }
}

fn sentences() -> &'static str {
    tapir_models::corpus("snips").unwrap().test.words
}

fn verdict(kept: bool) -> &'static str {
    if kept { "kept" } else { "MISSED" }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn tag(text: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["tag", text, "--format", "json"]);
    command
}

/// The whole file by each of some programs at once, start-up included.
fn whole_file(file: &str, programs: usize, threads: &str) -> Duration {
    let start = Instant::now();
    let program = || tag(file).args(["--threads", threads]).stdout(Stdio::null()).spawn().unwrap();
    let children: Vec<_> = (0..programs).map(|_| program()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    start.elapsed()
}

/// From starting the program to the first byte that it prints.
fn first_label() -> Duration {
    let start = Instant::now();
    let mut child = tag("play some jazz by miles davis").stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let time = start.elapsed();
    child.wait_with_output().unwrap();
    time
}

/// The most memory that the program held, in megabytes, after it has labelled the whole file and
/// waits for more.
fn peak_memory() -> Option<f64> {
    let mut child = Command::new(PROGRAM)
        .args(["tag", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let text = sentences();
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let writer = std::thread::spawn(move || {
        std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
        input
    });
    for _ in 0..lines {
        std::io::BufRead::read_line(&mut output, &mut String::new()).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok();
    drop(writer.join().unwrap());
    child.wait().unwrap();
    let status = status?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().trim_end_matches(" kB").parse::<f64>().ok()? * 1024.0 / 1e6)
}
