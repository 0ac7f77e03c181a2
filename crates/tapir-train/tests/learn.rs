//! Learning, from end to end, on a part of the shipped SNIPS: what an untrained or broken model
//! cannot do.

#![allow(clippy::unwrap_used)] // in the helpers of tests, too

use std::collections::BTreeSet;
use std::path::Path;

use tapir_train::{PassScores, Preset, RunOptions, Validation, train};

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
    assert!(run.choice.is_none());
    assert!(test.reviser.score > 70.0, "the reviser scores {}", test.reviser.score);
    assert!(test.first_pass.score > 50.0, "the first pass scores {}", test.first_pass.score);
    assert!(test.tapir.score > 60.0, "TAPIR scores {}", test.tapir.score);
    let revised = test.tapir.revised.unwrap();
    assert!((1.0..50.0).contains(&revised), "{revised} % of words are revised");
    // All stages are there: a second call trains nothing.
    let again = train(&preset, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(again.reports.is_empty());
    let stages: Vec<&str> = again.stages.iter().map(|report| report.part.as_str()).collect();
    assert_eq!(stages, ["generator", "reviser", "first-pass"]);
    assert_eq!(again.test.unwrap().tapir, test.tapir);
    let model = tapir::Model::open(again.model.unwrap()).unwrap();
    // Its reviser serves another run, which trains the rest; a model of other words does not.
    let stages = Some(vec![tapir_train::StageName::Reviser]);
    let out = folder.path().join("taken");
    let taken = |reviser| RunOptions {
        reviser,
        stages: stages.clone(),
        out: out.clone(),
        ..options.clone()
    };
    let mut skipped = 0;
    let mut count = |event: tapir_train::Event| {
        skipped += usize::from(matches!(event, tapir_train::Event::Skipped(_)));
        std::ops::ControlFlow::Continue(())
    };
    train(&preset, &taken(Some(model)), &mut count).unwrap();
    assert_eq!(skipped, 1);
    let file =
        |run: &str| std::fs::read(folder.path().join(run).join("reviser.safetensors")).unwrap();
    assert_eq!(file("taken"), file("run"));
    let error = train(&preset, &taken(Some(tapir::Model::embedded().unwrap())), &mut |_| {
        std::ops::ControlFlow::Continue(())
    });
    assert!(error.unwrap_err().to_string().contains("differ"), "a reviser of other sizes");
    // Another reviser, by which the rest was not taught, does not take its place.
    let path = folder.path().join("run/reviser.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let model = tapir::Model::open(folder.path().join("run/model")).unwrap();
    let error =
        train(&preset, &RunOptions { reviser: Some(model), ..options.clone() }, &mut |_| {
            std::ops::ControlFlow::Continue(())
        });
    assert!(error.unwrap_err().to_string().contains("another reviser is here already"));
    // A stage that is done is one of this corpus, and of no other.
    let corpus = options.data.as_ref().unwrap().join("train/seq.in");
    let words = std::fs::read_to_string(&corpus).unwrap();
    std::fs::write(&corpus, words.replacen("weather", "whether", 1)).unwrap();
    let error = train(&preset, &options, &mut |_| std::ops::ControlFlow::Continue(()));
    assert!(error.unwrap_err().to_string().contains("work on another corpus"));
    // Another preset does not write over this one's work.
    let other = Preset::parse(PRESET, "test", &["seed=1".to_owned()]).unwrap();
    assert!(
        train(&other, &options, &mut |_| std::ops::ControlFlow::Continue(()))
            .unwrap_err()
            .to_string()
            .contains("another preset")
    );
}

#[test]
fn training_ends_with_a_word_where_revising_does_not_pay() {
    let advice = |reviser: f64, tapir: f64, revised: f64, first_pass: f64| {
        let pass = |score| Validation { score, revised: None, intent: None };
        let tapir = Validation { revised: Some(revised), ..pass(tapir) };
        PassScores { reviser: pass(reviser), tapir, first_pass: pass(first_pass) }.advice(None)
    };
    assert_eq!(advice(92.0, 91.0, 10.0, 85.0), None);
    for (found, expected) in [
        (advice(72.8, 73.6, 10.0, 74.3), "the reviser scores 72.80, the first pass 74.30"),
        (advice(92.0, 84.0, 10.0, 85.0), "at this threshold: TAPIR scores 84.00"),
        (advice(85.1, 85.0, 0.0, 85.0), "the policy never revises"),
        (advice(85.0, 85.0, 0.0, 85.0), "reviser and first pass both have 85.00"),
    ] {
        let found = found.unwrap();
        assert!(found.contains(expected), "{found}");
    }
}

/// Without a span to judge by, the first epoch would be the best; without any validation nothing is
/// judged.
#[test]
fn a_split_that_cannot_judge_is_refused_before_any_time_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    part_of_snips(&data);
    let labels = data.join("valid/seq.out");
    let text = std::fs::read_to_string(&labels).unwrap();
    let unlabelled = |line: &str| "O ".repeat(line.split_whitespace().count()) + "\n";
    std::fs::write(&labels, text.lines().map(unlabelled).collect::<String>()).unwrap();
    let options = RunOptions { data: Some(data), ..RunOptions::new(folder.path().join("run")) };
    let preset = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        Preset::parse(PRESET, "test", &settings).unwrap()
    };
    let mut stop = |_: tapir_train::Event| std::ops::ControlFlow::Break(());
    let error = train(&preset(&[]), &options, &mut stop).unwrap_err().to_string();
    assert!(error.contains("no span to judge F1 by"), "{error}");
    let judged_by_nothing = preset(&["with_valid=true"]);
    let error = train(&judged_by_nothing, &options, &mut stop).unwrap_err();
    assert!(matches!(error, tapir_train::Error::Stopped { .. }), "{error}");
}

/// What recognisers heard is learnt from as if it were part of the training split, where the preset
/// says so.
#[test]
fn what_was_heard_is_learnt_from() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    part_of_snips(&data);
    let line = |words: &str, labels: &str| {
        let (words, labels): (Vec<_>, Vec<_>) =
            (words.split(' ').collect(), labels.split(' ').collect());
        serde_json::json!({"tokens": words, "labels": labels, "intent": "RateBook"}).to_string()
    };
    let heard = [line("rate it zero", "O O B-new"), line("great this novel", "O O B-object_type")];
    std::fs::write(data.join("heard.jsonl"), heard.join("\n")).unwrap();
    let run = |heard: bool| {
        let settings = [format!("heard={heard}"), "training.reviser.epochs=1".to_owned()];
        let preset = Preset::parse(PRESET, "test", &settings).unwrap();
        let out = folder.path().join(heard.to_string());
        let options = RunOptions {
            data: Some(data.clone()),
            stages: Some(vec![tapir_train::StageName::Reviser]),
            ..RunOptions::new(&out)
        };
        let mut started = 0;
        train(&preset, &options, &mut |event| {
            if let tapir_train::Event::Started(_, sentences) = event {
                started = sentences;
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        let weights = std::fs::read(out.join("reviser.safetensors")).unwrap();
        let weights = safetensors::SafeTensors::deserialize(&weights).unwrap();
        (started, weights.tensor("reviser.output.bias").unwrap().shape()[0])
    };
    let (sentences, labels) = run(false);
    assert_eq!(run(true), (sentences + 2, labels + 1), "two sentences and a label of their own");
    // A validation split that is cut out of training would hold sentences that were heard.
    let task = folder.path().join("task.toml");
    let text = "name = 'cut'\ndata = 'data'\ntrain = 'train'\ntest = 'test'\n\
                heard = 'heard.jsonl'\nscheme = 'iob'\nscore = 'f1'";
    std::fs::write(&task, text).unwrap();
    let settings = ["heard=true".to_owned(), format!("task={}", task.display())];
    let preset = Preset::parse(PRESET, "test", &settings).unwrap();
    let options = RunOptions::new(folder.path().join("cut"));
    let error = train(&preset, &options, &mut |_| std::ops::ControlFlow::Continue(()));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("validation split of its own"), "{error}");
}

/// The reviser of the paper's recipe above teaches first pass and policy instead. Each of two folds is
/// taught by the other's.
#[test]
fn a_reviser_teaches_a_policy_when_it_pays() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    part_of_snips(&data);
    let policy = "training.policy={epochs = 6, batch = 16, learning_rate = 2e-3, clip = 1.0, \
                  schedule = {warm_up = 1}}";
    let settings = [
        "actions=reviser",
        "teaching={distillation = 0.5, rounds = 2, folds = 2, recombined = 0.2}",
        "choose=within=1",
        "intents=0.5",
        "outside=[\"alarms\"]",
        "controller.inputs=[\"state\", \"output\"]",
        policy,
    ]
    .map(str::to_owned);
    let preset = Preset::parse(PRESET, "test", &settings).unwrap();
    let options = RunOptions { data: Some(data), ..RunOptions::new(folder.path().join("run")) };
    let mut stages = Vec::new();
    let run = train(&preset, &options, &mut |event| {
        if let tapir_train::Event::Started(stage, _) = event {
            stages.push(stage.name());
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(stages, ["reviser", "first-pass", "reviser", "reviser", "policy", "policy"]);
    let (valid, test, choice) = (run.valid.unwrap(), run.test.unwrap(), run.choice.unwrap());
    println!("{test:?} {choice}");
    // The chosen threshold is the model's, and is not worse than the better pass by more than asked.
    let model = tapir::Model::open(run.model.unwrap()).unwrap();
    assert_eq!(model.config().threshold.to_bits(), choice.threshold.to_bits());
    let better = valid.reviser.score.max(valid.first_pass.score);
    assert!(valid.tapir.score >= better - 1.0 - 1e-6, "{valid:?}");
    let says_so = valid.advice(None).is_some_and(|advice| advice.contains("the reviser scores"));
    let is_worse = valid.reviser.score < valid.first_pass.score;
    assert_eq!(says_so, is_worse, "{valid:?}");
    assert_eq!(model.config().final_pass == tapir::FinalPass::Policy, is_worse);
    // Two intents are easily told apart, by both passes and by the two together.
    for scores in [test.reviser, test.tapir, test.first_pass] {
        assert!(scores.intent.unwrap() > 90.0, "{scores:?}");
    }
    assert_eq!(model.intents().unwrap().len(), 2);
    // What is about something else is known as such, whichever pass answers.
    let in_domain = |sentence: &str, mode| {
        let options = tapir::SessionOptions::new().mode(mode);
        let mut session = model.session_with(options).unwrap();
        session.update(sentence.split_whitespace()).unwrap();
        session.in_domain().unwrap()
    };
    for mode in [tapir::Mode::TwoPass, tapir::Mode::Restart, tapir::Mode::FirstPass] {
        let alarm = in_domain("wake me up at six in the morning", mode);
        let weather = in_domain("will it rain in boston tomorrow", mode);
        assert!(alarm < 0.5 && weather > 0.5, "{mode:?}: {alarm} and {weather}");
    }
    // The policy revises now and then, and more often than not where that changes something.
    let (mut words, mut revised, mut changed) = (0, 0, 0);
    let sentences = std::fs::read_to_string(options.data.as_ref().unwrap().join("test/seq.in"));
    for sentence in sentences.unwrap().lines() {
        let options = tapir::SessionOptions::new().threshold(0.3);
        let mut session = model.session_with(options).unwrap();
        for word in sentence.split_whitespace() {
            words += 1;
            session.begin_push(word).unwrap();
            tapir::batch::read(&mut [&mut session]).unwrap();
            if session.take_provisional().is_some() {
                tapir::batch::revise(&mut [&mut session]).unwrap();
                revised += 1;
                changed += usize::from(!session.take_update().unwrap().edits.is_empty());
            } else {
                session.take_update().unwrap();
            }
        }
    }
    println!("{revised} of {words} words revised, {changed} of these changed something");
    assert!((words / 100..words / 2).contains(&revised), "{revised} of {words} words revised");
    assert!(3 * changed > revised, "{changed} of {revised} revisions changed something");
    let again = train(&preset, &options, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(again.reports.is_empty());
    assert_eq!(again.test.unwrap().tapir, test.tapir);
}

/// An encoder in the layout of `transformers`, of random numbers: every word of a corpus is a piece,
/// but for every tenth, which has two.
fn write_encoder(folder: &Path, corpus: &Path) {
    let text = std::fs::read_to_string(corpus.join("train/seq.in")).unwrap();
    let words: BTreeSet<&str> = text.split_whitespace().collect();
    let mut pieces: BTreeSet<String> = BTreeSet::new();
    for (i, word) in words.into_iter().filter(|word| word.is_ascii()).enumerate() {
        if i % 10 == 0 && word.len() > 3 {
            pieces.extend([word[..2].to_owned(), format!("##{}", &word[2..])]);
        } else {
            pieces.insert(word.to_owned());
        }
    }
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
    let pieces: Vec<String> = special.into_iter().chain(pieces).collect();
    let files = tapir::doctest::encoder_of(&pieces, 64, 64);
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("config.json"), files.config).unwrap();
    std::fs::write(folder.join("tokenizer.json"), files.tokenizer).unwrap();
    std::fs::write(folder.join("model.safetensors"), &*files.weights).unwrap();
}

/// An encoder becomes the reviser, teaches the others, and can be started from again.
#[test]
fn an_encoder_is_fine_tuned_and_teaches() {
    let folder = tempfile::tempdir().unwrap();
    let (data, encoder) = (folder.path().join("data"), folder.path().join("encoder"));
    part_of_snips(&data);
    write_encoder(&encoder, &data);
    let preset = |pretrained: &Path, more: &[&str]| {
        let settings = [
            "actions=reviser".to_owned(),
            "teaching={distillation = 0.5, rounds = 1}".to_owned(),
            "reviser=".to_owned(),
            format!("reviser.pretrained={}", pretrained.display()),
            "training.reviser={epochs = 6, batch = 16, learning_rate = 3e-3, clip = 1.0, \
             layer_decay = 0.9, schedule = {warm_up = 1, decay = 5, smooth = true}}"
                .to_owned(),
            "training.policy={epochs = 2, batch = 16, learning_rate = 2e-3}".to_owned(),
        ];
        let more = more.iter().map(|setting| (*setting).to_owned());
        let settings: Vec<String> = settings.into_iter().chain(more).collect();
        Preset::parse(PRESET, "test", &settings).unwrap()
    };
    let options = |out: &str| RunOptions {
        data: Some(data.clone()),
        ..RunOptions::new(folder.path().join(out))
    };
    let go_on = |_: tapir_train::Event| std::ops::ControlFlow::Continue(());
    let run = train(&preset(&encoder, &[]), &options("run"), &mut { go_on }).unwrap();
    let test = run.test.unwrap();
    println!("{test:?}");
    assert!(test.reviser.score > 45.0, "the reviser scores {}", test.reviser.score);
    assert!(test.tapir.revised.unwrap() > 0.0);
    let model = tapir::Model::open(run.model.as_ref().unwrap()).unwrap();
    assert!(model.config().reads_pieces());

    // Another first pass and policy for the same reviser need no encoder. This one reads the words
    // that it does not know by their spelling.
    let gone = folder.path().join("gone");
    let spelled = ["training.policy.epochs=1", "words.spelling=true", "words.min_count=3"];
    let policy = preset(&gone, &spelled);
    let taken = RunOptions { reviser: Some(model), ..options("taken") };
    let again = train(&policy, &taken, &mut { go_on }).unwrap();
    assert_eq!(again.test.unwrap().reviser, test.reviser);
    let model = tapir::Model::open(again.model.unwrap()).unwrap();
    assert_eq!(model.config().processor.as_ref().unwrap().spelling, Some(64));
    let error = train(&policy, &options("none"), &mut { go_on }).unwrap_err().to_string();
    assert!(error.contains("gone: no such folder"), "{error}");

    // Its encoder is one that others can start from, and starts where it was.
    let stages = Some(vec![tapir_train::StageName::Reviser]);
    let one = RunOptions { stages, ..options("more") };
    let more = preset(run.model.as_ref().unwrap(), &["training.reviser.epochs=1"]);
    let report = train(&more, &one, &mut { go_on }).unwrap().reports.remove(0);
    // Stopped and gone on with, it is the same to the bit.
    let halves = RunOptions {
        checkpoint_every: std::time::Duration::ZERO,
        stages: one.stages.clone(),
        ..options("halves")
    };
    let stop = |event: tapir_train::Event| match event {
        tapir_train::Event::Progress(progress) if progress.batch == 5 => {
            std::ops::ControlFlow::Break(())
        }
        _ => std::ops::ControlFlow::Continue(()),
    };
    assert!(train(&more, &halves, &mut { stop }).unwrap_err().to_string().contains("stopped"));
    train(&more, &halves, &mut { go_on }).unwrap();
    let weights =
        |run: &str| std::fs::read(folder.path().join(run).join("reviser.safetensors")).unwrap();
    assert!(weights("halves") == weights("more"), "the weights differ after a stop");
    let score = report.valid.unwrap().score;
    let metrics = std::fs::read_to_string(folder.path().join("run/metrics.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(metrics.lines().next().unwrap()).unwrap();
    let untrained = first["score"].as_f64().unwrap();
    assert!(score > untrained + 5.0, "{score} after an epoch, {untrained} from the encoder itself");
}

/// A reviser that may take sixty epochs stops when validation gets no better, with a rate that has
/// fallen, and does so to the bit if it is stopped while the rate falls.
#[test]
fn a_stage_ends_behind_its_plateau() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    part_of_snips(&data);
    let reviser = "training.reviser={epochs = 60, batch = 32, learning_rate = 2e-3, clip = 1.0, \
                   schedule = {warm_up = 1, plateau = 1, decay = 2, smooth = true}}";
    let preset = Preset::parse(PRESET, "test", &[reviser.to_owned()]).unwrap();
    let options = |out: &str| RunOptions {
        data: Some(data.clone()),
        stages: Some(vec![tapir_train::StageName::Reviser]),
        checkpoint_every: std::time::Duration::ZERO,
        ..RunOptions::new(folder.path().join(out))
    };
    let mut rates = Vec::new();
    let mut listen = |event: tapir_train::Event| {
        if let tapir_train::Event::Progress(progress) = event {
            rates.push((progress.epoch, progress.learning_rate));
        }
        std::ops::ControlFlow::Continue(())
    };
    let report = train(&preset, &options("whole"), &mut listen).unwrap().reports.remove(0);
    assert!(report.epochs < 60, "it took all its epochs");
    let falls = |(_, rate): &&(usize, f64)| *rate < 2e-3;
    let (first, _) = rates.iter().filter(|(epoch, _)| *epoch > 1).find(falls).unwrap();
    assert_eq!(report.epochs, first + 1, "the fall takes two epochs and ends the stage");
    assert!(rates.last().unwrap().1 < 0.2 * 2e-3);

    let mut stop = |event: tapir_train::Event| match event {
        tapir_train::Event::Progress(progress)
            if progress.epoch > 1 && progress.learning_rate < 1.5e-3 =>
        {
            std::ops::ControlFlow::Break(())
        }
        _ => std::ops::ControlFlow::Continue(()),
    };
    assert!(train(&preset, &options("halves"), &mut stop).is_err(), "nobody stopped it");
    let go_on = &mut |_: tapir_train::Event| std::ops::ControlFlow::Continue(());
    let again = train(&preset, &options("halves"), go_on).unwrap().reports.remove(0);
    assert_eq!(again.epochs, report.epochs);
    let weights =
        |run: &str| std::fs::read(folder.path().join(run).join("reviser.safetensors")).unwrap();
    assert!(weights("halves") == weights("whole"), "the weights differ after a stop");
}
