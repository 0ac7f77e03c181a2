//! Random models and sequences of operations for the property tests.
#![allow(dead_code)] // each test file uses its part

use proptest::prelude::*;
use tapir::{
    Activation, BertConfig, Config, ControllerConfig, ControllerInput, Decoding, Labels, Parts,
    PieceRules, ProcessorConfig, ReviserConfig, ReviserKind, Vocabulary, WordPieces,
};

/// How many words the random models know.
pub(crate) const WORDS: usize = 20;

/// So many cases, or as many as `PROPTEST_CASES` asks for.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        config
    } else {
        ProptestConfig { cases, ..config }
    }
}

/// A word of one to eight pieces.
pub(crate) fn word(index: usize) -> String {
    format!("w{index}{}", ",;".repeat(index % 4))
}

/// The pieces of the random models.
const PIECES: [&str; 18] = [
    "[SEP]", "[CLS]", "w", "##0", "##1", "##2", "##3", "##4", "##5", "##6", "##7", "##8", "##9",
    "w1", "w3", "w10", ",", "[UNK]",
];

/// Any small model: all revisers, one or two layers of everything, all delays, odd sizes, both ways
/// to choose labels. A reviser that reads pieces may have positions for few of them.
pub(crate) fn parts() -> impl Strategy<Value = Parts> {
    parts_with(5..50)
}

/// The same with more positions than any test has pieces.
pub(crate) fn roomy_parts() -> impl Strategy<Value = Parts> {
    parts_with(300..310)
}

fn parts_with(positions: std::ops::Range<usize>) -> impl Strategy<Value = Parts> {
    let first_pass = (1..4usize, 1..10usize, proptest::option::of(1..7usize));
    let kind = prop_oneof![
        1 => Just((ReviserKind::Transformer, None)),
        1 => Just((ReviserKind::LinearTransformer, None)),
        2 => bert(positions).prop_map(|bert| (ReviserKind::Bert, Some(bert))),
    ];
    let second_pass = (kind, 1..3usize, 1..4usize, 1..4usize, 1..20usize);
    let controller = (1..3usize, 1..10usize, 1..6usize);
    (
        first_pass,
        second_pass,
        controller,
        0..3usize,
        1..8usize,
        2..7usize,
        any::<u64>(),
        0.3..0.7f32,
    )
        .prop_map(
            |(
                (layers, hidden, projection),
                ((kind, bert), r_layers, heads, head, ff),
                (c_layers, c, memory),
                delay,
                e,
                n,
                seed,
                tau,
            )| {
                let (state, output) = (ControllerInput::State, ControllerInput::Output);
                let inputs: [&[_]; 4] = [&[], &[state], &[output], &[output, state]];
                let inputs = inputs[seed as usize / 2 % 4];
                let pieces = bert.as_ref().map(|_| WordPieces::new(PIECES).unwrap());
                let config = Config {
                    task: "random".into(),
                    delay,
                    decoding: if seed.is_multiple_of(2) {
                        Decoding::Legal
                    } else {
                        Decoding::Argmax
                    },
                    threshold: tau,
                    max_length: 24,
                    embedding_dim: e,
                    intents: [0, 1, 4][seed as usize / 5 % 3],
                    outside: seed as usize / 5 % 3 == 2,
                    calibration: calibration(seed),
                    processor: Some(ProcessorConfig {
                        layers,
                        hidden,
                        projection,
                        spelling: bert.as_ref().filter(|_| seed % 3 > 0).map(|_| heads * head),
                        affixes: [None, Some(1), Some(9)][seed as usize / 7 % 3],
                    }),
                    controller: Some(ControllerConfig {
                        layers: c_layers,
                        hidden: c,
                        memory,
                        inputs: inputs.to_vec(),
                    }),
                    reviser: Some(ReviserConfig {
                        kind,
                        layers: r_layers,
                        hidden: heads * head,
                        feed_forward: ff,
                        heads,
                        norm: None,
                        affixes: [None, Some(6)][seed as usize / 11 % 2].filter(|_| bert.is_none()),
                        bert,
                    }),
                    ..Config::default()
                };
                // B-0, I-0, B-1, …: sequences that may be legal or not.
                let name =
                    |i: usize| format!("{}-{}", if i.is_multiple_of(2) { "B" } else { "I" }, i / 2);
                let labels = Labels::new((0..n).map(name)).unwrap();
                let vocabulary = Vocabulary::new((0..WORDS).map(word)).unwrap();
                let parts = Parts::random(config, labels, vocabulary, seed).unwrap();
                Parts { pieces, ..parts }
            },
        )
}

/// What a reviser that reads pieces has besides.
fn bert(positions: std::ops::Range<usize>) -> impl Strategy<Value = BertConfig> {
    let activation =
        prop::sample::select(vec![Activation::Gelu, Activation::GeluTanh, Activation::Relu]);
    (positions, activation, 1..4usize).prop_map(|(positions, activation, longest)| BertConfig {
        pieces: PIECES.len(),
        positions,
        epsilon: 1e-5,
        activation,
        rules: PieceRules { longest, ..PieceRules::default() },
    })
}

/// What a user does to a session.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Push(usize),
    Revoke(usize),
    /// A new hypothesis: keep so many of the last one's words (if there are so many), then these.
    Update(usize, Vec<usize>),
    Reset,
}

pub(crate) fn operations(length: usize) -> impl Strategy<Value = Vec<Operation>> {
    let word = 0..WORDS + 2; // two of them are unknown to the model
    let operation = prop_oneof![
        12 => word.clone().prop_map(Operation::Push),
        3 => (0..5usize).prop_map(Operation::Revoke),
        3 => (0..40usize, prop::collection::vec(word, 0..6)).prop_map(|(keep, words)| Operation::Update(keep, words)),
        1 => Just(Operation::Reset),
    ];
    prop::collection::vec(operation, 1..length)
}

/// Sets one of the fourteen sizes of a configuration that has all parts; the last two are of a
/// reviser that reads pieces.
pub(crate) fn set_size(config: &mut Config, field: usize, size: usize) {
    let (p, c, r) = (&mut config.processor, &mut config.controller, &mut config.reviser);
    let (p, c, r) = (p.as_mut().unwrap(), c.as_mut().unwrap(), r.as_mut().unwrap());
    match field {
        0 => config.delay = size,
        1 => config.max_length = size,
        2 => config.embedding_dim = size,
        3 => p.layers = size,
        4 => p.hidden = size,
        5 => p.projection = Some(size),
        6 => c.layers = size,
        7 => c.hidden = size,
        8 => c.memory = size,
        9 => r.layers = size,
        10 => r.hidden = size,
        11 => (r.feed_forward, r.heads) = (size, 2),
        12 => r.bert.iter_mut().for_each(|bert| bert.pieces = size),
        13 => r.bert.iter_mut().for_each(|bert| bert.positions = size),
        _ => unreachable!("there are fourteen"),
    }
}

/// The tiny model, with a reviser of words or of pieces.
pub(crate) fn tiny() -> impl Strategy<Value = Parts> {
    any::<bool>().prop_map(|pieces| {
        if pieces { tapir::doctest::pretrained() } else { tapir::doctest::parts() }
    })
}

/// Numbers in place of a calibration; some models have none.
fn calibration(seed: u64) -> tapir::Calibration {
    if seed.is_multiple_of(4) {
        return tapir::Calibration::default();
    }
    tapir::Calibration {
        labels: Some(tapir::Logistic([0.2, 2.0, 0.5, -0.4, -0.7, -0.2, 0.4])),
        spans: Some(tapir::Logistic([-0.2, 0.8, -1.0])),
        intent: Some(tapir::Logistic([0.1, 1.5, 0.3, -0.2, 0.4])),
        evidence: seed.is_multiple_of(3).then_some(0.4),
        in_domain: Some(tapir::Logistic([0.1, 1.5])),
    }
}
