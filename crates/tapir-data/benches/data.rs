//! How fast corpora are read and words are looked up: `cargo bench -p tapir-data`.
//!
//! Reading is also given as a ratio to counting the lines of the same file in the same run, which
//! does not depend on the machine. With `TAPIR_BENCH_GIGABYTE=1` it also reads a file of a gigabyte
//! and prints the memory that this takes.

#![allow(clippy::unwrap_used, reason = "a benchmark should stop at the first surprise")]

use std::{
    fmt::Write as _,
    fs::{self, File},
    hint::black_box,
    io::{BufWriter, Read, Write},
    path::Path,
    time::Duration,
};

use tapir::WordVectors;
use tapir_data::{Format, Options, Random, Sentence, Task, read};

const SIZE: usize = 32 << 20;

fn main() {
    let corpus = Task::open("snips").unwrap().load(None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Columns, Format::Conllu] {
        let path = folder.path().join(format.name());
        generate(&path, format, &corpus.train, SIZE);
        reading(&path, format);
        fs::remove_file(&path).unwrap();
    }
    if std::env::var_os("TAPIR_BENCH_GIGABYTE").is_some() {
        for format in [Format::Columns, Format::Conllu] {
            let path = folder.path().join("gigabyte");
            generate(&path, format, &corpus.train, 1 << 30);
            memory(&path, format);
            fs::remove_file(&path).unwrap();
        }
    }
    vectors(folder.path(), &corpus.test);
}

/// Writes the sentences again and again, with as much in a line as real files have.
fn generate(path: &Path, format: Format, sentences: &[Sentence], size: usize) {
    let mut block = String::new();
    for sentence in sentences {
        for (number, (word, label)) in sentence.tokens().enumerate() {
            let number = number + 1;
            match format {
                Format::Conllu => writeln!(
                    block,
                    "{number}\t{word}\t{word}\tNOUN\tNN\tNumber=Sing\t{number}\tnsubj\t{number}:nsubj\tSpaceAfter=No"
                ),
                _ => writeln!(block, "{word}\t{label}"),
            }
            .unwrap();
        }
        block.push('\n');
    }
    let mut out = BufWriter::new(File::create(path).unwrap());
    for _ in 0..size.div_ceil(block.len()) {
        out.write_all(block.as_bytes()).unwrap();
    }
    out.flush().unwrap();
}

fn options(format: Format) -> Options {
    Options { format: Some(format), ..Options::default() }
}

fn reading(path: &Path, format: Format) {
    let size = fs::metadata(path).unwrap().len() as f64 / 1e6;
    // Both in turn, so that a busy machine slows both.
    let (mut counting, mut reading) = (Duration::MAX, Duration::MAX);
    for _ in 0..9 {
        counting = counting.min(time(|| count_lines(path)));
        reading = reading.min(time(|| {
            read(path, &options(format))
                .unwrap()
                .map(|sentence| sentence.unwrap().len())
                .sum::<usize>()
        }));
    }
    println!(
        "read {format:<8} {:>5.0} MB/s, {:.1} times a line count ({:.0} MB/s)",
        size / reading.as_secs_f64(),
        reading.as_secs_f64() / counting.as_secs_f64(),
        size / counting.as_secs_f64(),
    );
}

fn count_lines(path: &Path) -> usize {
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => return lines,
            read => lines += memchr::memchr_iter(b'\n', &buffer[..read]).count(),
        }
    }
}

fn memory(path: &Path, format: Format) {
    let size = fs::metadata(path).unwrap().len() as f64 / 1e6;
    // Linux: forget the peak so far.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    let words: usize =
        read(path, &options(format)).unwrap().map(|sentence| sentence.unwrap().len()).sum();
    println!(
        "memory {format:<8} {size:.0} MB, {words} words: peak {:.1} MB before, {:.1} MB after",
        before,
        peak()
    );
}

/// The peak of resident memory in MB, where the system tells.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(f64::NAN, |kb| kb / 1e3)
}

fn vectors(folder: &Path, sentences: &[Sentence]) {
    let path = folder.join(tapir_models::VECTORS.name);
    fs::write(&path, tapir_models::VECTORS.bytes).unwrap();
    let opened: Vec<Duration> =
        (0..20).map(|_| time(|| WordVectors::open(&path).unwrap())).collect();
    println!("open vectors  {:.1?} first, {:.1?} best", opened[0], opened.iter().min().unwrap());

    let vectors = WordVectors::open(&path).unwrap();
    let text: Vec<String> =
        sentences.iter().flat_map(|sentence| &sentence.words).map(ToString::to_string).collect();
    let missing: Vec<String> = text.iter().map(|word| format!("{word}qx")).collect();
    let mut all: Vec<String> = vectors.words().map(|(word, _)| word).collect();
    Random::new(1).shuffle(&mut all);
    for (name, words) in
        [("running text", text), ("all words, shuffled", all), ("words without vector", missing)]
    {
        let chunks = words.chunks(2000).map(|words| {
            let taken = time(|| words.iter().filter(|word| vectors.row(word).is_some()).count());
            taken.as_secs_f64() * 1e9 / words.len() as f64
        });
        let mut chunks: Vec<f64> = chunks.collect();
        chunks.sort_by(f64::total_cmp);
        println!("look up       {:.0} ns a word, median ({name})", chunks[chunks.len() / 2]);
    }
}

/// How long some work takes.
fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = clock();
    black_box(work());
    clock().saturating_sub(start)
}

/// The time that this thread has spent on a core, so that other programs do not count.
#[cfg(unix)]
fn clock() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The time since the start, where the system does not tell a thread's own.
#[cfg(not(unix))]
fn clock() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}
