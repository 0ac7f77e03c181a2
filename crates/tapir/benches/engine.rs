//! The engine against the machine's limits and against itself: ratios measured in one run, on one
//! thread unless said.
//!
//! `cargo bench -p tapir --bench engine`; `-- --best` takes shortest times instead of medians, for
//! a busy machine, and `-- reviser` measures only what has such a name.

mod yardstick;

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

use tapir::batch::{self, Work};
use tapir::{
    BertConfig, Config, ControllerConfig, ControllerInput, FinalPass, Labels, Mode, Model, Parts,
    Precision, ProcessorConfig, ReviserConfig, ReviserKind, Session, SessionOptions, Vocabulary,
    WordPieces,
};
use yardstick::{fastest, race, read};

/// Words of the random models.
const WORDS: usize = 1000;

/// The paper's SNIPS-Trf sizes: 73 labels, LSTM 512, controller 256, memory 5, reviser 4 × 512 /
/// 2048, 8 heads.
fn snips() -> Parts {
    let config = Config {
        task: "random".into(),
        processor: Some(ProcessorConfig::default()),
        controller: Some(ControllerConfig::default()),
        reviser: Some(ReviserConfig::default()),
        ..Config::default()
    };
    let labels = Labels::new((0..73).map(|i| format!("B-{i}"))).expect("labels");
    let vocabulary = Vocabulary::new((0..WORDS).map(|i| format!("w{i}"))).expect("words");
    Parts::random(config, labels, vocabulary, 1).expect("sizes that fit")
}

/// A reviser of the sizes of MiniLM-L6: 6 × 384 / 1536, 12 heads, and the first pass and controller
/// of the presets `pretrained/`. Words that are given by their id have one piece each.
fn pretrained() -> Parts {
    let Parts { mut config, labels, vocabulary, .. } = snips();
    config.processor = Some(ProcessorConfig {
        layers: 1,
        hidden: 256,
        projection: Some(192),
        ..ProcessorConfig::default()
    });
    config.controller = Some(ControllerConfig {
        hidden: 128,
        inputs: vec![ControllerInput::State, ControllerInput::Output],
        ..ControllerConfig::default()
    });
    config.reviser = Some(ReviserConfig {
        kind: ReviserKind::Bert,
        layers: 6,
        hidden: 384,
        feed_forward: 1536,
        heads: 12,
        norm: None,
        affixes: None,
        bert: Some(BertConfig { pieces: 3, ..BertConfig::default() }),
    });
    let parts = Parts::random(config, labels, vocabulary, 1).expect("sizes that fit");
    Parts { pieces: Some(WordPieces::new(["[UNK]", "[CLS]", "[SEP]"]).expect("pieces")), ..parts }
}

/// The same model without some of its parts.
fn only(parts: &Parts, leave: impl FnOnce(&mut Config)) -> Parts {
    let Parts { mut config, labels, vocabulary, pieces, .. } = parts.clone();
    leave(&mut config);
    let parts = Parts::random(config, labels, vocabulary, 1).expect("sizes that fit");
    Parts { pieces, ..parts }
}

/// Ids of `words` words that differ from each other and from sentence to sentence.
fn sentence(number: usize, words: usize) -> impl Iterator<Item = u32> {
    (0..words).map(move |i| (3 + (number * 31 + i * 17) % WORDS) as u32)
}

fn run(session: &mut Session, words: usize, mut before: impl FnMut(&mut Session, usize)) {
    session.reset();
    for (i, id) in sentence(0, words).enumerate() {
        before(session, i);
        black_box(session.push_id(id).expect("a word"));
    }
}

/// A pass of the model in f32 and int8 against plain reads of as many bytes as the f32 weights, as
/// often.
fn limits(
    name: &str,
    bytes: usize,
    words: usize,
    mut f32: Session,
    mut int8: Session,
    repetitions: usize,
) {
    if !wanted(name) {
        return;
    }
    let plain = vec![1_u64; bytes / 8];
    let best = fastest(&plain);
    let times = race(
        repetitions,
        [
            &mut || (0..words).for_each(|_| _ = black_box(read::<1>(black_box(&plain)))),
            &mut || (0..words).for_each(|_| _ = black_box(best(black_box(&plain)))),
            &mut || run(&mut f32, words, |_, _| {}),
            &mut || run(&mut int8, words, |_, _| {}),
        ],
    );
    let [sequential, best, f32, int8] = times;
    println!(
        "{name}: {:.1} MB of f32 weights, {words} words; {:.2} ms in f32, {:.2} ms in int8",
        bytes as f64 / 1e6,
        f32 * 1e3,
        int8 * 1e3
    );
    println!(
        "  f32 time / plain read             {:>6.2}   (its speed is {:.2} of it)",
        f32 / sequential,
        sequential / f32
    );
    println!(
        "  f32 time / read from 1 to 8 places{:>6.2}   (its speed is {:.2} of it)",
        f32 / best,
        best / f32
    );
    println!("  int8 speed / f32 speed            {:>6.2}", f32 / int8);
}

/// Sentences of nine words with a revision at every so manieth word, against the reviser at every
/// word and, where it was measured, against an encoder of the same sizes in PyTorch.
fn two_pass(name: &str, model: &Model, every: usize, torch: Option<(f64, &str)>) {
    if !wanted(name) {
        return;
    }
    let options = SessionOptions::new().final_pass(FinalPass::Policy);
    let start = |mode| model.session_with(options.mode(mode)).expect("both passes");
    let [mut tapir, mut first, mut reference] =
        [Mode::TwoPass, Mode::FirstPass, Mode::Restart].map(start);
    let mut word = 0;
    let five = |session: &mut Session, before: &mut dyn FnMut(&mut Session)| {
        for number in 0..5 {
            session.reset();
            for id in sentence(number, 9) {
                before(session);
                black_box(session.push_id(id).expect("a word"));
            }
        }
    };
    let [reference, tapir, first] = race(
        15,
        [
            &mut || five(&mut reference, &mut |_| {}),
            &mut || {
                // 45 words, their revisions spread over the positions in a sentence
                five(&mut tapir, &mut |session| {
                    let revise = word % every == every - 1;
                    session.set_threshold(if revise { 0.0 } else { 1.0 }).expect("a threshold");
                    word += 1;
                });
            },
            &mut || five(&mut first, &mut |_| {}),
        ],
    );
    println!("{name}: sentences of 9 words, a revision at one word in {every}");
    println!(
        "  TAPIR speed / restart-incremental {:>6.2}   (the paper's claim: 4.5)",
        reference / tapir
    );
    println!("  first pass / restart-incremental  {:>6.2}", reference / first);
    println!("  TAPIR, sentences a second         {:>6.0}", 5.0 / tapir);
    if let Some((seconds, version)) = torch {
        println!("  restart-incremental / {version:<12}{:>6.2}", seconds / reference);
        println!("  TAPIR / {version:<26}{:>6.2}", seconds / tapir);
    }
}

/// What `benches/peers/encoder.py` measures: seconds of five sentences, and the version; nothing
/// without a Python that has PyTorch (`PYTHON` names it).
fn torch() -> Option<(f64, String)> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/encoder.py");
    let output = std::process::Command::new(python).arg(script).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (seconds, version) = text.trim().split_once(' ')?;
    Some((seconds.parse().ok()?, version.to_owned()))
}

/// Thousands of sessions that share one model, a word to each in turn, on one thread and on two.
fn many(name: &str, model: &Model, sessions: usize) {
    if !wanted(name) {
        return;
    }
    let words = 4;
    let first_pass = SessionOptions::new().threshold(1.0);
    let round = |threads: usize| {
        let start = Instant::now();
        let bytes: usize = std::thread::scope(|scope| {
            let work = |_| {
                scope.spawn(|| {
                    let mut all: Vec<_> = (0..sessions / threads)
                        .map(|_| model.session_with(first_pass).expect("a threshold"))
                        .collect();
                    for word in 0..words {
                        for (number, session) in all.iter_mut().enumerate() {
                            let id = sentence(number, words).nth(word).expect("a word");
                            black_box(session.push_id(id).expect("a word"));
                        }
                    }
                    all.iter().map(Session::bytes).sum::<usize>()
                })
            };
            let handles: Vec<_> = (0..threads).map(work).collect();
            handles.into_iter().map(|handle| handle.join().expect("no panic")).sum()
        });
        ((sessions * words) as f64 / start.elapsed().as_secs_f64(), bytes / sessions)
    };
    let mut speeds = [const { Vec::new() }; 2];
    let mut bytes = 0;
    for _ in 0..5 {
        for (threads, speeds) in (1..).zip(&mut speeds) {
            let (speed, each) = round(threads);
            speeds.push(speed);
            bytes = each;
        }
    }
    let [one, two] = speeds.map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        speeds[speeds.len() / 2]
    });
    println!("{name}: {sessions} sessions share one model, {words} words each, every word WRITE");
    println!("  words a second, 1 thread, 2       {one:>6.0}, {two:.0}");
    println!("  scaling from 1 thread to 2        {:>6.2}", two / one);
    println!("  bytes a session                   {bytes:>6}");
}

/// Streams that are read together.
const STREAMS: usize = 16;

/// The reviser at every word of these streams, of so many together as one batch: what
/// batching gains.
fn together(name: &str, model: &Model, repetitions: usize) {
    if !wanted(name) {
        return;
    }
    let options = SessionOptions::new().mode(Mode::Restart).final_pass(FinalPass::Policy);
    let start = || model.session_with(options).expect("a reviser");
    let streams: Vec<_> = std::iter::repeat_with(start).take(STREAMS).collect();
    let streams = RefCell::new(streams);
    let read = |size: usize| {
        let mut streams = streams.borrow_mut();
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.reset();
            let words = sentence(number, 9).map(|id| format!("w{}", id - 3));
            stream.begin_update(words.collect::<Vec<_>>()).expect("nothing to compute");
        }
        for batch in streams.chunks_mut(size) {
            let mut batch: Vec<&mut Session> = batch.iter_mut().collect();
            while let Some(work) = batch[0].work() {
                match work {
                    Work::Word => batch::read(&mut batch),
                    Work::Revision => batch::revise(&mut batch),
                }
                .expect("all have the same to do");
            }
            batch.iter_mut().for_each(|stream| _ = black_box(stream.take_update()));
        }
    };
    let times = race(
        repetitions,
        [&mut || read(1), &mut || read(2), &mut || read(4), &mut || read(8), &mut || read(STREAMS)],
    );
    println!("{name}: the reviser at every word of {STREAMS} streams of 9 words");
    for (size, time) in [2, 4, 8, STREAMS].iter().zip(&times[1..]) {
        println!("  speed of {size:>2} together / one by one{:>9.2}", times[0] / time);
    }
}

/// Whether the name is among the arguments, at least in part, or they name nothing.
fn wanted(name: &str) -> bool {
    let mut filters =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).peekable();
    filters.peek().is_none() || filters.any(|filter| name.contains(&filter))
}

fn main() {
    println!("kernels: {}", tapir::kernels::isa());
    let parts = snips();
    let f32 = parts.clone().load().expect("a model");
    let int8 = parts.quantize(Precision::Int8).expect("a smaller one").load().expect("a model");

    let lstm = only(&parts, |config| (config.controller, config.reviser) = (None, None));
    let lstm8 = lstm.quantize(Precision::Int8).expect("a smaller one").load().expect("a model");
    let lstm = lstm.load().expect("a model");
    limits(
        "LSTM step, 300 -> 512",
        lstm.weight_bytes().0,
        12,
        lstm.session(),
        lstm8.session(),
        101,
    );

    let options = SessionOptions::new().mode(Mode::Restart);
    let restart = |model: &Model| model.session_with(options).expect("a reviser");
    limits(
        "reviser at the 12 prefixes of 12 words",
        f32.weight_bytes().1,
        12,
        restart(&f32),
        restart(&int8),
        15,
    );

    let parts = pretrained();
    let small = parts.quantize(Precision::Int8).expect("a smaller one").load().expect("a model");
    let large = parts.load().expect("a model");
    limits(
        "pretrained reviser at the 12 prefixes of 12 words",
        large.weight_bytes().1,
        12,
        restart(&large),
        restart(&small),
        15,
    );

    together("together, f32", &f32, 9);
    together("together, int8", &int8, 9);
    together("together, encoder, f32", &large, 9);
    together("together, encoder, int8", &small, 9);

    two_pass("f32", &f32, 5, None);
    two_pass("int8", &int8, 5, None);
    let names = ["f32, pretrained", "int8, pretrained"];
    let torch = if names.iter().any(|name| wanted(name)) { torch() } else { None };
    let torch = torch.as_ref().map(|(seconds, version)| (*seconds, version.as_str()));
    for (name, model) in names.into_iter().zip([&large, &small]) {
        two_pass(name, model, 8, torch);
    }
    many("f32", &f32, 2000);
    many("int8", &int8, 2000);
}
