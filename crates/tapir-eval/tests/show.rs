//! What people see: tables and traces of a record made by hand, so that no rounding of a model can
//! change them.
#![allow(clippy::unwrap_used, clippy::float_cmp)] // clippy.toml allows the first in tests, not in their helpers

use insta::assert_snapshot;
use tapir::{Action, Mode, Scheme};
use tapir_eval::{
    Agreement, Analysis, Bench, Dataset, Evaluation, GoldSentence, ModelInfo, Outputs, Percentiles,
    Policy, Provenance, Record, Report, Results, Revisions, SentenceRun, Setting, Summary, Sweep,
    System, Time, Trace,
};

fn dataset() -> Dataset {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    Dataset {
        task: "toy".into(),
        split: "test".into(),
        scheme: Scheme::Iob,
        score: tapir_data::Metric::F1,
        labels: ["O", "B-title", "I-title", "B-actor"].map(str::to_owned).to_vec(),
        known: 4,
        examples: vec![
            GoldSentence {
                words: words("did the woods have eyes"),
                gold: vec![0, 1, 2, 2, 2],
                intent: None,
            },
            GoldSentence { words: words("with woods"), gold: vec![0, 3], intent: None },
        ],
    }
}

fn record() -> Record {
    let run = |rows: &[&[u16]], revised: &[usize]| SentenceRun {
        outputs: Outputs::new(rows).unwrap(),
        actions: (0..rows.len())
            .map(|step| if revised.contains(&step) { Action::Revise } else { Action::Write })
            .collect(),
        policy: (0..rows.len())
            .map(|step| Some(if revised.contains(&step) { 0.75 } else { 0.125 }))
            .collect(),
        // The first pass says O of every word.
        provisional: (0..rows.len()).map(|step| revised.contains(&step).then_some(0)).collect(),
        intents: Vec::new(),
        nanos: (1..=rows.len() as u64).map(|step| 1000 * step).collect(),
    };
    let setting = Setting { mode: Mode::TwoPass, threshold: 0.5, delay: 0 };
    let first: [&[u16]; 5] = [&[0], &[0, 0], &[0, 0, 3], &[0, 1, 2, 0], &[0, 1, 2, 2, 2]];
    Record { setting, runs: vec![run(&first, &[3, 4]), run(&[&[0], &[0, 1]], &[])] }
}

fn model() -> tapir::Model {
    tapir::Model::from_parts(tapir::doctest::parts()).unwrap()
}

#[test]
fn the_tables_of_an_evaluation() {
    let evaluation = Evaluation::of(&model(), &dataset(), &record());
    let tables =
        [evaluation.incremental_table(), evaluation.measure_table(), evaluation.score_table()];
    assert_snapshot!(tables.map(|table| table.to_text()).join("\n"));
    assert_snapshot!(evaluation.incremental_table().to_markdown());
}

#[test]
fn the_tables_of_revisions() {
    let mut dataset = dataset();
    // Against gold the last revision makes its prefix worse.
    dataset.examples[0].gold = vec![0, 3, 2, 0, 2];
    let revisions = Revisions::of(&dataset, &record());
    assert_snapshot!(
        [revisions.quality_table(), revisions.kind_table()].map(|t| t.to_text()).join("\n")
    );
}

#[test]
fn the_counts_of_the_policy() {
    let policy = Policy::of(&record());
    // Sentence one: prefixes O, O O, O O B-actor, O B I O before steps 2 to 5; all but the first
    // differ from the end.
    assert_eq!(
        policy,
        Policy { revise_correct: 0, revise_incorrect: 2, write_incorrect: 1, write_correct: 4 }
    );
    assert!((policy.revise_share() - 2.0 / 7.0).abs() < 1e-9);
}

#[test]
fn a_trace_as_text() {
    let trace = Trace::of(&dataset(), &record(), 0, true).unwrap();
    assert!(trace.right());
    assert_eq!(trace.edits(), 3);
    assert_snapshot!("trace_wide", trace.to_text(120, false));
    assert_snapshot!("trace_narrow", trace.to_text(50, false));
    assert_snapshot!("trace_coloured", trace.to_text(120, true).replace('\u{1b}', "ESC"));
    assert!(Trace::of(&dataset(), &record(), 9, true).is_none());
}

#[test]
fn a_trace_shows_where_the_first_pass_was_overruled() {
    let trace = Trace::of(&dataset(), &record(), 0, true).unwrap();
    assert_eq!(trace.steps[4].cells[4].first_pass.as_deref(), Some("O"));
    assert_eq!(trace.edits(), 3, "a label that was never shown was not edited");
    assert!(trace.to_text(120, false).contains("◇I-title"));
    assert_eq!(trace.to_svg(false).matches('◇').count(), 1);
}

#[test]
fn a_trace_as_a_figure() {
    let trace = Trace::of(&dataset(), &record(), 0, true).unwrap();
    let svg = trace.to_svg(false);
    assert_eq!(svg.matches('◆').count(), 3);
    assert_eq!(
        svg.matches("class=\"wrong\"").count(),
        trace_wrong(&trace) + edited_and_wrong(&trace)
    );
    assert!(trace.to_svg(true).contains("prefers-color-scheme"));
}

fn trace_wrong(trace: &Trace) -> usize {
    trace.steps.iter().flat_map(|step| &step.cells).filter(|cell| cell.wrong).count()
}

fn edited_and_wrong(trace: &Trace) -> usize {
    trace
        .steps
        .iter()
        .flat_map(|step| &step.cells)
        .filter(|cell| cell.wrong && cell.old.is_some())
        .count()
}

#[test]
fn the_telling_sentences_come_first() {
    let picked = Trace::pick(&dataset(), &record(), 3);
    assert_eq!(picked.len(), 1, "the other sentence is too short, and nothing in it was edited");
    assert_eq!(picked[0].sentence, 1);
}

fn bench() -> Bench {
    let system = |mode, precision: &str, rate: f64| System {
        mode,
        precision: precision.to_owned(),
        sentences_per_second: Summary { mean: rate, std: 1.0, count: 5 },
        words_per_second: Summary { mean: 9.0 * rate, std: 9.0, count: 5 },
        speedup: Summary { mean: rate / 20.0, std: 0.04, count: 5 },
        latency: Percentiles { median: 100.0, p95: 900.0, p99: 1500.0, max: 2000.0 },
    };
    Bench {
        setting: record().setting,
        sentences: 200,
        words: 1800,
        repetitions: 5,
        systems: vec![system(Mode::Restart, "f32", 20.0), system(Mode::TwoPass, "f32", 90.0)],
    }
}

#[test]
fn the_table_of_a_benchmark() {
    assert_snapshot!(bench().table().to_text());
}

/// Results of a model of the paper's task SNIPS, with a few figures set by hand.
fn results() -> Results {
    let (model, mut dataset) = (model(), dataset());
    dataset.task = "snips".into();
    let mut evaluation = Evaluation::of(&model, &dataset, &record());
    evaluation.scores.micro.f1 = 0.9;
    evaluation.incremental.edit_overhead.mean = 0.06;
    evaluation.incremental.correction_time.mean = 0.055;
    evaluation.incremental.relative_correctness.mean = 0.87;
    let mut half = evaluation.clone();
    half.setting.threshold = 0.25;
    let mut results = Results::new(
        &dataset,
        ModelInfo::of(&model, "runs/snips".as_ref()),
        Provenance::now(Some("abc123")),
    );
    results.model.preset = Some(serde_json::json!({
        "seed": 7,
        "processor": { "hidden": 256 },
        "controller": { "hidden": 128 },
        "reviser": { "layers": 3, "hidden": 256, "feed_forward": 1024 },
    }));
    results.sweep = Some(Sweep { evaluations: vec![evaluation.clone(), half] });
    results.evaluation = Some(evaluation);
    results
}

#[test]
fn a_report_in_markdown() {
    let report = Report::new([results()], "Made by hand.").unwrap();
    assert_snapshot!(report.to_markdown());
}

#[test]
fn a_report_keeps_splits_and_models_apart_and_joins_parts() {
    let mut parts = results();
    parts.evaluation = None;
    let (mut valid, mut other) = (results(), results());
    valid.split = "valid".into();
    other.model.name = "other".into();
    let markdown = Report::new([results(), parts, valid, other], "").unwrap().to_markdown();
    assert!(markdown.contains("3 models on 1 task,"), "{markdown}");
    assert!(markdown.contains("SNIPS (valid)"));
    let empty: [Results; 0] = [];
    assert!(Report::new(empty, "").unwrap_err().to_string().contains("empty"));
}

/// Runs of two tasks: one with a delay, one with the paper's actions.
fn several_runs() -> [Results; 4] {
    let run = |task: &str, name: &str, delay: usize, f1: f64, revise: usize| {
        let mut run = results();
        (run.task, run.model.name, run.model.delay) = (task.into(), name.into(), delay);
        let evaluation = run.evaluation.as_mut().unwrap();
        evaluation.scores.micro.f1 = f1;
        run.reference = Some(evaluation.clone());
        let sweep = run.sweep.as_mut().unwrap();
        let thresholds = [(0.0, 100), (0.5, revise), (1.0, 0)];
        sweep.evaluations = thresholds
            .map(|(threshold, revise)| {
                let mut evaluation = evaluation.clone();
                evaluation.setting.threshold = threshold;
                evaluation.scores.micro.f1 -= f64::from(threshold) / 100.0;
                (evaluation.actions.revise, evaluation.actions.write) = (revise, 100 - revise);
                evaluation
            })
            .to_vec();
        run.analysis = Some(Analysis {
            setting: record().setting,
            policy: Policy::of(&record()),
            revisions: None,
            agreement: Agreement {
                sentences: 0.75,
                words: 0.9,
                overhead_agree: Summary { mean: 0.01, std: 0.02, count: 3 },
                agree_percentiles: Percentiles { median: 0.0, p95: 0.02, p99: 0.1, max: 0.1 },
                ..Agreement::default()
            },
            time: Time { first_pass: 0.1, controller: 0.1, reviser: 0.8 },
        });
        run.bench = Some(bench());
        run
    };
    [
        run("snips", "snips-trf", 0, 0.92, 20),
        run("snips", "snips-trf-generator", 0, 0.91, 40),
        run("snips", "snips-trf-d1", 1, 0.93, 20),
        run("ewt", "ewt-trf", 0, 0.94, 5),
    ]
}

#[test]
fn a_report_of_several_runs() {
    let report = Report::new(several_runs(), "").unwrap();
    assert_snapshot!(report.to_markdown());
    let html = report.to_html();
    for part in [
        ">SNIPS, delay 1</text>",
        "snips-trf-generator: the paper's actions</span>",
        ">Edit overhead of the two-pass model in both cases</text>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains(">EWT, delay 1</text>"), "there is no such model");
}

#[test]
fn results_without_what_older_programs_did_not_measure_are_read() {
    let mut json = serde_json::to_value(results()).unwrap();
    let evaluation = json["evaluation"].as_object_mut().unwrap();
    assert!(evaluation.remove("revisions").is_some());
    let results: Results = serde_json::from_value(json).unwrap();
    assert_eq!(results.evaluation.as_ref().unwrap().revisions, None);
    let markdown = Report::new([results], "").unwrap().to_markdown();
    assert!(!markdown.contains("Revision quality"), "{markdown}");
}

#[test]
fn results_survive_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/results.json");
    // Made once: results carry the second in which they were made.
    let results = results();
    results.save(&path).unwrap();
    assert_eq!(Results::open(&path).unwrap(), results);
}
