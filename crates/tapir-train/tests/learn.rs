//! Learning, from end to end, on a part of the shipped SNIPS: what an untrained or broken model
//! cannot do.

#![allow(clippy::unwrap_used)] // in the helpers of tests, too

use std::path::Path;

use tapir_train::{Preset, RunOptions, train};

const PRESET: &str = r#"
task = "snips"
[words]
open = true
vectors = "en_300d.tapirvec"
min_count = 2
[generator]
hidden = 64
feed_forward = 64
heads = 4
[training.generator]
epochs = 6
batch = 32
learning_rate = 3e-3
schedule.warm_up = 1
[reviser]
kind = "transformer"
layers = 1
hidden = 64
feed_forward = 128
heads = 4
[training.reviser]
epochs = 8
batch = 16
learning_rate = 2e-3
clip = 1.0
schedule.warm_up = 1
[processor]
layers = 1
hidden = 64
projection = 48
[controller]
layers = 1
hidden = 32
memory = 5
[training.first_pass]
epochs = 8
batch = 16
learning_rate = 4e-3
clip = 1.0
schedule.warm_up = 1
"#;

/// The first sentences of two intents of each split, as a corpus of its own.
fn part_of_snips(folder: &Path) {
    let snips = tapir_models::corpus("snips").unwrap();
    for (split, files, count) in
        [("train", snips.train, 1000), ("valid", snips.valid, 60), ("test", snips.test, 100)]
    {
        let chosen = |intent: &str| ["GetWeather", "RateBook"].contains(&intent.trim());
        std::fs::create_dir_all(folder.join(split)).unwrap();
        for (file, text) in
            [("seq.in", files.words), ("seq.out", files.labels), ("label", files.intents)]
        {
            let lines = text.lines().zip(files.intents.lines());
            let lines = lines.filter(|(_, intent)| chosen(intent)).take(count);
            let text: String = lines.flat_map(|(line, _)| [line, "\n"]).collect();
            std::fs::write(folder.join(split).join(file), text).unwrap();
        }
    }
}

#[test]
fn a_small_model_learns_to_label_and_to_revise_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    part_of_snips(&data);
    let preset = Preset::parse(PRESET, "test", &[]).unwrap();
    let options = RunOptions { data: Some(data), ..RunOptions::new(folder.path().join("run")) };
    let run = train(&preset, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let test = run.test.unwrap();
    println!("{test:?}");
    assert!(test.reviser.score > 70.0, "the reviser scores {}", test.reviser.score);
    assert!(test.first_pass.score > 50.0, "the first pass scores {}", test.first_pass.score);
    assert!(test.tapir.score > 60.0, "TAPIR scores {}", test.tapir.score);
    let revised = test.tapir.revised.unwrap();
    assert!((1.0..50.0).contains(&revised), "{revised} % of words are revised");
    // All stages are there: a second call trains nothing.
    let again = train(&preset, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(again.reports.is_empty());
    assert_eq!(again.test.unwrap().tapir, test.tapir);
    assert!(tapir::Model::open(again.model.unwrap()).is_ok());
    // Another preset does not write over this one's work.
    let other = Preset::parse(PRESET, "test", &["seed=1".to_owned()]).unwrap();
    assert!(
        train(&other, &options, &mut |_| std::ops::ControlFlow::Continue(()))
            .unwrap_err()
            .to_string()
            .contains("another preset")
    );
}
