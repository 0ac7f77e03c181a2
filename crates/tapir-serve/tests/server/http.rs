//! Texts, models, health, metrics and the page over HTTP.

use tapir::Model;

use crate::support::{SENTENCES, get, http, metric, post, settings, start, until};

fn labels(sentence: &str) -> Vec<String> {
    let mut session = Model::embedded_named("snips-small").unwrap().session();
    session.update(sentence.split(' ')).unwrap();
    session.finish().unwrap().labels.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_labelled_one_by_one_and_many_at_once() {
    let server = start(settings()).await;
    let address = server.address();
    let one =
        post(address, "/v1/tag", r#"{"text": "Play some jazz by Miles Davis!"}"#).await.json();
    assert_eq!(one["model"], "snips");
    assert_eq!(
        one["results"][0]["words"],
        serde_json::json!(["play", "some", "jazz", "by", "miles", "davis"])
    );
    assert_eq!(one["results"][0]["labels"], serde_json::json!(labels(SENTENCES[0])));
    let artist = &one["results"][0]["spans"]
        .as_array()
        .unwrap()
        .iter()
        .find(|span| span["label"] == "artist")
        .unwrap();
    assert_eq!(artist["text"], "miles davis");

    let inputs: Vec<_> = SENTENCES
        .iter()
        .enumerate()
        .map(|(i, sentence)| match i % 2 {
            0 => serde_json::json!({ "text": sentence }),
            _ => serde_json::json!({ "tokens": sentence.split(' ').collect::<Vec<_>>() }),
        })
        .collect();
    let many = post(
        address,
        "/v1/tag",
        &serde_json::json!({ "inputs": inputs, "model": "snips" }).to_string(),
    )
    .await;
    for (result, sentence) in many.json()["results"].as_array().unwrap().iter().zip(SENTENCES) {
        assert_eq!(result["labels"], serde_json::json!(labels(sentence)), "{sentence}");
    }
    // The threshold is obeyed: with 1 the policy never asks for a revision, with 0 at every word.
    let revisions = || metric(address, "tapir_actions_total{model=\"snips\",action=\"REVISE\"}");
    let words: usize = SENTENCES.iter().map(|sentence| sentence.split(' ').count()).sum();
    for (threshold, expected) in [(1, 0), (0, words as u64)] {
        let before = revisions().await;
        let body = serde_json::json!({ "inputs": inputs, "threshold": threshold }).to_string();
        let answer = post(address, "/v1/tag", &body).await.json();
        assert_eq!(answer["results"].as_array().unwrap().len(), SENTENCES.len());
        assert_eq!(revisions().await - before, expected, "threshold {threshold}");
    }
    let empty = post(address, "/v1/tag", r#"{"text": ""}"#).await.json();
    assert_eq!(empty["results"][0]["labels"], serde_json::json!([]));
    until("texts leave no session behind", || async {
        metric(address, "tapir_sessions").await == 0
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_answered_by_lines() {
    let server = start(settings()).await;
    let lines: Vec<String> = SENTENCES
        .iter()
        .cycle()
        .take(60)
        .map(|sentence| format!(r#"{{"text": "{sentence}"}}"#))
        .collect();
    let body = lines.join("\n")
        + "\n\n{not json\n{\"text\": \"play\", \"tokens\": []}\n{\"text\": \"play\"}";
    let answer =
        http(server.address(), "POST", "/v1/tag", "content-type: application/x-ndjson\r\n", &body)
            .await;
    assert_eq!(answer.status, 200);
    assert!(answer.headers.contains("content-type: application/x-ndjson"));
    let lines: Vec<serde_json::Value> =
        answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 63);
    for (line, sentence) in lines.iter().zip(SENTENCES.iter().cycle()).take(60) {
        assert_eq!(line["results"][0]["labels"], serde_json::json!(labels(sentence)));
    }
    assert!(lines[60]["error"].as_str().unwrap().contains("key must be a string"));
    assert!(lines[61]["error"].as_str().unwrap().contains("one of them"));
    assert_eq!(lines[62]["results"][0]["words"], serde_json::json!(["play"]));

    let long = format!("{{\"text\": \"{}\"}}\n{{\"text\": \"play\"}}\n", "x ".repeat(100_000));
    let answer =
        http(server.address(), "POST", "/v1/tag", "content-type: application/x-ndjson\r\n", &long)
            .await;
    assert!(answer.body.contains("a line longer than 65536 bytes"), "{}", answer.body);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_with_a_status() {
    let mut settings = settings();
    settings.limits.body_bytes = 5_000;
    settings.limits.words = 50;
    settings.limits.texts = 3;
    let server = start(settings).await;
    let address = server.address();
    let long = serde_json::json!({ "tokens": vec!["a"; 51] }).to_string();
    let many =
        serde_json::json!({ "inputs": vec![serde_json::json!({ "text": "a" }); 4] }).to_string();
    for (body, status, expected) in [
        ("{", 400, "EOF"),
        (r#"{"txt": "a"}"#, 422, "unknown field"),
        (r#"{"text": 3}"#, 422, "invalid type"),
        ("{}", 400, "`text` or `tokens`"),
        (r#"[null, null, "play"]"#, 422, "an object"),
        (r#"{"inputs": [["play"]]}"#, 422, "an object"),
        (r#"{"text": "a", "threshold": 1.0000000000000002}"#, 400, "expected 0 to 1"),
        (r#"{"text": "a", "inputs": []}"#, 400, "only one"),
        (r#"{"text": "a", "model": "nix"}"#, 404, "there are: snips"),
        (r#"{"text": "a", "threshold": 2}"#, 400, "expected 0 to 1"),
        (r#"{"tokens": ["a", ""]}"#, 400, "empty word"),
        (long.as_str(), 400, "more than the limit of 50"),
        (many.as_str(), 413, "more than 3"),
    ] {
        let answer = post(address, "/v1/tag", body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(expected), "{body}: {error}");
    }
    let large = format!(r#"{{"text": "{}"}}"#, "a ".repeat(3_000));
    assert_eq!(post(address, "/v1/tag", &large).await.status, 413);
    assert_eq!(
        http(address, "POST", "/v1/tag", "content-type: text/plain\r\n", "a").await.status,
        415
    );
    assert_eq!(get(address, "/v1/tag").await.status, 405);
    assert_eq!(get(address, "/v1/stream").await.status, 400);
    assert_eq!(get(address, "/v1/stream?model=nix").await.status, 404);
    assert_eq!(get(address, "/v1/stream?threshold=7").await.status, 400);
    assert_eq!(get(address, "/v1/stream?colour=blue").await.status, 400);
    // No path reaches the file system.
    for path in [
        "/nix",
        "/assets/../src/lib.rs",
        "/assets/..%2f..%2fCargo.toml",
        "//etc/passwd",
        "/assets/",
    ] {
        let answer = get(address, path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()["error"].is_string());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_words_health_and_description() {
    let mut settings = settings();
    settings.models.insert("pos".into(), "embedded:pos".into());
    settings.default_model = Some("snips".into());
    let server = start(settings).await;
    let address = server.address();
    let models = get(address, "/v1/models").await.json();
    let names: Vec<_> = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["snips", "pos"]);
    assert_eq!(
        (&models["models"][0]["default"], &models["models"][1]["scheme"]),
        (&true.into(), &"plain".into())
    );
    assert!(models["models"][0]["labels"].as_array().unwrap().contains(&"B-artist".into()));

    let words = post(address, "/v1/tokenize", r#"{"text": "What's on?"}"#).await.json();
    assert_eq!(words["words"], serde_json::json!(["what", "s", "on"]));
    let words =
        post(address, "/v1/tokenize", r#"{"text": "What's on?", "model": "pos"}"#).await.json();
    assert_eq!(words["words"], serde_json::json!(["What", "'s", "on", "?"]));

    assert_eq!(get(address, "/healthz").await.body, "ok\n");
    assert_eq!(get(address, "/readyz").await.status, 200);
    let api = get(address, "/openapi.json").await.json();
    assert_eq!(api["openapi"], "3.1.0");
    for path in [
        "/v1/stream",
        "/v1/tag",
        "/v1/tokenize",
        "/v1/models",
        "/metrics",
        "/healthz",
        "/readyz",
        "/admin/reload",
    ] {
        assert!(api["paths"][path].is_object(), "{path} is described");
    }

    let page = get(address, "/").await;
    assert!(page.headers.contains("content-security-policy: default-src 'none'"));
    assert!(page.headers.contains("x-content-type-options: nosniff"));
    for (path, kind) in [
        ("/docs", "text/html"),
        ("/assets/page.js", "text/javascript"),
        ("/assets/page.css", "text/css"),
    ] {
        let file = get(address, path).await;
        assert_eq!(file.status, 200);
        assert!(file.headers.contains(kind), "{path}");
        assert!(!file.body.contains("https://"), "{path} names another host");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_was_done() {
    let server = start(settings()).await;
    let address = server.address();
    post(address, "/v1/tag", r#"{"text": "play some jazz by miles davis"}"#).await;
    until("the session is gone", || async { metric(address, "tapir_sessions").await == 0 }).await;
    let text = get(address, "/metrics").await.body;
    assert!(text.contains("tapir_words_total{model=\"snips\"} 6"), "{text}");
    let count = |action: &str| {
        let line =
            text.lines().find(|line| line.contains(&format!("action=\"{action}\""))).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(count("WRITE") + count("REVISE"), 6);
    for name in
        ["tapir_first_answer_seconds_bucket", "tapir_last_answer_seconds_count", "tapir_queue 0"]
    {
        assert!(text.contains(name), "{name} in {text}");
    }
    server.stop().await;
}
