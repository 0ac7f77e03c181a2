//! One training step, as a ratio to what the machine's matrix products take for the same work.
//!
//! (a) the reviser at 4 layers / 512 / 2048, 16 sentences of 12 words; (b) step 2 at LSTM 512,
//! controller 256, the same batch; (c) an encoder of MiniLM's sizes, 32 sentences of 12 pieces. The
//! peak is measured in the same run: large products on all
//! cores. Where a Python with PyTorch is there (`PYTHON` names it), the same steps are timed there
//! too.

use std::time::Instant;

use burn::tensor::{Device, Distribution, Tensor};
use tapir::{Config, Vocabulary, WordPieces};
use tapir_data::Example;
use tapir_train::{AdamW, Lexicon, Noise, Objective, Shards, Update, Weights};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SENTENCES: usize = 16;
const WORDS: usize = 12;
const LABELS: usize = 72;
const VOCABULARY: usize = 11_765;
const PIECES: usize = 30_522;
const ROUNDS: usize = 20;

fn main() {
    let device = Device::flex();
    let peak = peak(&device);
    println!("matrix products: {:.1} GFLOP/s", peak / 1e9);
    let reviser = r#"{"version": 1, "embedding_dim": 300,
        "reviser": {"kind": "transformer", "layers": 4, "hidden": 512, "feed_forward": 2048, "heads": 8}}"#;
    let first_pass = r#"{"version": 1, "embedding_dim": 300, "processor": {"layers": 1, "hidden": 512},
        "controller": {"layers": 1, "hidden": 256, "memory": 5}}"#;
    let encoder = r#"{"version": 1, "embedding_dim": 0, "reviser": {"kind": "bert", "layers": 6,
        "hidden": 384, "feed_forward": 1536, "heads": 12, "bert": {"pieces": 30522, "positions": 512,
        "epsilon": 1e-12, "activation": "gelu", "rules": {"clean": true, "split_chinese": true,
        "strip_accents": true, "lowercase": true, "longest": 100}}}}"#;
    let torch = torch();
    for (name, json, objective) in [
        ("(a) reviser 4/512/2048", reviser, Objective::Reviser),
        ("(b) step 2, 512/256", first_pass, Objective::FirstPass),
        ("(c) encoder 6/384/1536", encoder, Objective::Reviser),
    ] {
        let config = Config::from_json(json, "bench").expect("a valid configuration");
        for shards in [1, 2] {
            let (seconds, parameters) = step(&config, objective, shards, &device);
            // Forward and both gradients: three products of two operations for each weight and
            // word.
            let ideal = 6.0 * parameters as f64 * (sentences(&config) * WORDS) as f64 / peak;
            println!(
                "{name}, {shards} part(s): {:.1} ms, {:.2} times its products at peak ({:.1} ms)",
                1e3 * seconds,
                seconds / ideal,
                1e3 * ideal
            );
            for peer in torch.lines().filter(|line| line.starts_with(name)) {
                let time = peer.rsplit(' ').nth(1).and_then(|time| time.parse::<f64>().ok());
                println!(
                    "    {:.2} times that of {peer}",
                    1e3 * seconds / time.unwrap_or(f64::NAN)
                );
            }
        }
    }
}

/// What `benches/peers/train_step.py` prints, a line per step; nothing without PyTorch.
fn torch() -> String {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/train_step.py");
    let output = std::process::Command::new(python).arg(script).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Operations a second of large products.
fn peak(device: &Device) -> f64 {
    let n: u16 = 1024;
    let random =
        || Tensor::<2>::random([usize::from(n), usize::from(n)], Distribution::Default, device);
    let (a, b) = (random(), random());
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        let product = a.clone().matmul(b.clone());
        std::hint::black_box(product.into_data());
        best = best.min(start.elapsed().as_secs_f64());
    }
    2.0 * f64::from(n).powi(3) / best
}

/// Sentences of a batch: as many as the presets have.
fn sentences(config: &Config) -> usize {
    if config.reads_pieces() { 2 * SENTENCES } else { SENTENCES }
}

/// Median seconds of one step, and the numbers in its matrices.
fn step(config: &Config, objective: Objective, shards: usize, device: &Device) -> (f64, usize) {
    let vocabulary =
        Vocabulary::new((0..VOCABULARY).map(|i| format!("word-{i}"))).expect("distinct words");
    let special = ["[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
    let pieces = special.into_iter().chain((3..PIECES).map(|i| format!("p{i}")));
    let pieces = WordPieces::new(pieces).expect("distinct pieces");
    let lexicon = Lexicon {
        vocabulary: &vocabulary,
        pieces: Some(&pieces).filter(|_| config.reads_pieces()),
        spellings: None,
    };
    let mut weights = Weights::new(config, LABELS, &vocabulary, None, 1, device);
    let mut adamw = AdamW::default();
    let shards = Shards::new(shards, &device.clone().autodiff()).expect("threads");
    // [CLS] and [SEP] are two of the pieces.
    let words = if config.reads_pieces() { WORDS - 2 } else { WORDS };
    let example = |b: usize| {
        let ids = (0..words).map(|t| (3 + (b * 131 + t * 37) % 11_000) as u32);
        Example {
            words: ids.clone().map(|id| format!("p{id}").into()).collect(),
            ids: ids.collect(),
            labels: (0..words).map(|t| Some(((b + t) % LABELS) as u16)).collect(),
            actions: (0..words).map(|t| t % 5 == 4).collect(),
            ..Example::default()
        }
    };
    let examples: Vec<Example> = (0..sentences(config)).map(example).collect();
    let examples: Vec<&Example> = examples.iter().collect();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let start = Instant::now();
            let noise = Noise {
                dropout: 0.1,
                unknown: 0.02,
                place: [1, 0, round as u64],
                ..Noise::default()
            };
            let parts = shards.gradients(&weights, config, lexicon, objective, &examples, noise);
            let how = Update { learning_rate: 1e-4, weight_decay: 0.01, ..Update::default() };
            adamw.update(&mut weights, &parts, how);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let tables: usize = config
        .tensors(LABELS, vocabulary.len())
        .iter()
        .filter(|(name, _)| {
            [".embedding", ".pieces", ".positions"].iter().any(|end| name.ends_with(end))
        })
        .map(|(_, shape)| shape.iter().product::<usize>())
        .sum();
    (times[ROUNDS / 2], weights.count() - tables)
}
