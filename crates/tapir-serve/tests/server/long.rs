//! No answer is shorter than its words, up to the limit: through HTTP, over streams, and in the
//! library.

use std::net::SocketAddr;

use proptest::test_runner::{Config, TestRunner};
use tapir::{Label, Model, spans};

use crate::support::{Client, http, post, settings, start};

const LIMIT: usize = 2_000;

/// Words of which the small model knows some.
fn words(length: usize) -> Vec<String> {
    let known = ["play", "some", "jazz", "book", "a", "table"];
    (0..length)
        .map(|i| if i % 5 == 3 { format!("w{i}") } else { known[i * 7 % 6].to_owned() })
        .collect()
}

/// What the library gives when every update is replayed.
fn expected(model: &Model, words: &[String], threshold: f32) -> Vec<Label> {
    let options = tapir::SessionOptions::new().window(128).threshold(threshold);
    let mut session = model.session_with(options).unwrap();
    let mut labels = Vec::new();
    for word in words {
        session.push(word).unwrap().apply(&mut labels);
    }
    let end = session.finish().unwrap();
    end.update.apply(&mut labels);
    assert_eq!(labels.len(), words.len());
    assert_eq!(labels[end.first..], end.labels, "{} words", words.len());
    assert_eq!(end.first + end.labels.len(), words.len());
    labels
}

fn as_text(labels: &[Label]) -> serde_json::Value {
    labels.iter().map(ToString::to_string).collect::<Vec<_>>().into()
}

fn check_tagged(result: &serde_json::Value, model: &Model, words: &[String], labels: &[Label]) {
    assert_eq!(result["words"].as_array().unwrap().len(), words.len());
    assert_eq!(result["labels"], as_text(labels));
    let expected = spans(labels, model.config().scheme);
    let given = result["spans"].as_array().unwrap();
    assert_eq!(given.len(), expected.len());
    for (given, expected) in given.iter().zip(expected) {
        assert_eq!(given["start"], expected.start);
        assert_eq!(given["text"], words[expected.start..expected.end].join(" "));
    }
}

async fn check(address: SocketAddr, model: &Model, length: usize) {
    let words = words(length);
    // Long ones are revised at their end alone, to save time.
    let threshold = if length > 500 { 1.0 } else { 0.5 };
    let labels = expected(model, &words, threshold);
    let body = serde_json::json!({ "tokens": words, "threshold": threshold }).to_string();
    let answer = post(address, "/v1/tag", &body).await;
    check_tagged(&answer.json()["results"][0], model, &words, &labels);
    let kind = "content-type: application/x-ndjson\r\n";
    let lines = http(address, "POST", "/v1/tag", kind, &format!("{body}\n")).await;
    for line in lines.body.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        check_tagged(&line["results"][0], model, &words, &labels);
    }
    assert_eq!(lines.body.lines().count(), 1);

    // Word by word, and as one hypothesis.
    let pushes: Vec<String> =
        words.iter().map(|word| serde_json::json!({ "push": word }).to_string()).collect();
    let update = vec![serde_json::json!({ "update": words }).to_string()];
    for messages in [pushes, update] {
        let mut client = Client::connect_to(address, &format!("?threshold={threshold}")).await;
        let mut screen = Vec::new();
        let end = r#"{"finish": true}"#.to_owned();
        for messages in messages.iter().chain([&end]).collect::<Vec<_>>().chunks(8) {
            for message in messages {
                client.send(message).await;
            }
            let mut left = messages.len();
            while left > 0 {
                let answer = client.hear().await.unwrap();
                assert_eq!(answer.error, None);
                answer.update.unwrap().apply(&mut screen);
                left -= usize::from(!answer.provisional);
                if let Some(last) = answer.labels {
                    let first = answer.first.unwrap();
                    assert_eq!(first + last.len(), words.len());
                    assert_eq!(last, labels[first..]);
                }
            }
        }
        assert_eq!(screen, labels, "{length} words over a stream");
    }
}

#[test]
fn every_word_has_its_label() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small");
    tapir::doctest::parts().save(&path).unwrap();
    let model = Model::open(&path).unwrap();
    let mut settings = settings();
    settings.models.insert("small".into(), path.display().to_string());
    settings.default_model = Some("small".into());
    assert_eq!(settings.limits.words, LIMIT);
    let server = runtime.block_on(start(settings));
    let address = server.address();
    for length in [0, 1, 160, 161, 320, 321, 464, 465, LIMIT] {
        runtime.block_on(check(address, &model, length));
    }
    let config = Config { failure_persistence: None, ..Config::with_cases(4) };
    TestRunner::new(config)
        .run(&(1..=LIMIT), |length| {
            runtime.block_on(check(address, &model, length));
            Ok(())
        })
        .unwrap();
    // The real model, once.
    let snips = Model::embedded_named("snips-small").unwrap();
    let words = words(400);
    let body = serde_json::json!({ "tokens": words, "model": "snips", "threshold": 1 }).to_string();
    let answer = runtime.block_on(post(address, "/v1/tag", &body)).json();
    let options = tapir::SessionOptions::new().window(128).threshold(1.0);
    let mut session = snips.session_with(options).unwrap();
    let mut labels = Vec::new();
    session.update(&words).unwrap().apply(&mut labels);
    session.finish().unwrap().update.apply(&mut labels);
    check_tagged(&answer["results"][0], &snips, &words, &labels);
    runtime.block_on(server.stop());
}
