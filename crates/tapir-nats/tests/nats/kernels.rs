//! What of an answer depends on the machine: the same kernels give the same bits in every process;
//! other kernels round otherwise in the last places. That is why all workers of a cell must have
//! the same.

use std::process::Command;

use tapir::protocol::{Response, Streams};
use tapir::{Model, Precision, SessionOptions};

const SENTENCES: [&str; 2] = [
    "add step to me to the fifty clasicos playlist",
    "what is the weather going to be like in boston tomorrow at noon",
];

/// The program that `cargo test` runs, as another process of other kernels: prints every answer of
/// the models as they ship, in int8, and of the same in f32.
#[test]
#[ignore = "started by the test below"]
fn print_answers() {
    for precision in [Precision::Int8, Precision::F32] {
        for name in ["snips-small", "snips", "pos"] {
            let parts = Model::embedded_named(name).unwrap().parts().quantize(precision).unwrap();
            print_answers_of(&parts.load().unwrap());
        }
    }
}

fn print_answers_of(model: &Model) {
    let mut streams = Streams::new(9, model, SessionOptions::new()).unwrap();
    let mut print = |message: &str| {
        println!("answer {}", serde_json::to_string(&streams.answer(message)).unwrap());
    };
    for (index, text) in SENTENCES.iter().enumerate() {
        for word in text.split(' ') {
            print(&format!(r#"{{"session": "{index}", "push": "{word}"}}"#));
        }
        print(&format!(r#"{{"session": "{index}", "finish": true}}"#));
    }
}

/// All answers that a process with these kernels gives.
fn answers(kernels: &str) -> Vec<String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["kernels::print_answers", "--exact", "--ignored", "--nocapture"])
        .env("TAPIR_KERNELS", kernels)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<String> =
        text.lines().filter_map(|line| line.split_once("answer ")).map(|(_, a)| a.into()).collect();
    assert!(answers.len() > 60, "{text}");
    answers
}

#[test]
fn the_same_kernels_give_the_same_bits_and_others_the_same_labels() {
    let names: Vec<&str> =
        tapir::kernels::Isa::available().map(tapir::kernels::Isa::name).collect();
    let all: Vec<Vec<String>> = names.iter().map(|kernels| answers(kernels)).collect();
    assert_eq!(all[0], answers(names[0]), "a second process with the same kernels");
    let read = |text: &String| serde_json::from_str::<Response>(text).unwrap();
    for (name, answers) in names.iter().zip(&all).skip(1) {
        let equal = all[0].iter().zip(answers).filter(|(a, b)| a == b).count();
        println!(
            "{name} and {}: {equal} of {} answers are equal to the bit",
            names[0],
            answers.len()
        );
        let pairs = all[0].iter().map(read).zip(answers.iter().map(read));
        for (i, (a, b)) in pairs.enumerate() {
            // The first half are of int8: where f32 sums differ in their last bits, an activation
            // may be rounded to the next of its 15 bits, and layers behind it make more of that.
            let tolerance = if 2 * i < answers.len() { 1e-3 } else { 1e-5 };
            assert_eq!((&a.labels, &a.spans), (&b.labels, &b.spans));
            let (Some(a), Some(b)) = (a.update, b.update) else { continue };
            assert_eq!((a.action, a.length), (b.action, b.length));
            for (a, b) in a.edits.iter().zip(&b.edits) {
                assert_eq!((a.position, &a.label, &a.old), (b.position, &b.label, &b.old));
                assert!((a.probability - b.probability).abs() < tolerance, "{a:?} and {b:?}");
            }
        }
    }
}
