//! Any text as messages of a stream: never a panic, always an answer, and JSON again.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tapir::{Model, SessionOptions};
use tapir::protocol::{Request, Response, Streams};

fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| tapir::doctest::parts().load().expect("a good model"))
}

fuzz_target!(|text: &str| {
    let mut streams = Streams::new(4, model(), SessionOptions::new()).expect("defaults");
    for line in text.lines() {
        let answer = streams.answer(line);
        let json = serde_json::to_string(&answer).expect("an answer is JSON");
        let again: Response = serde_json::from_str(&json).expect("which can be read");
        assert_eq!(again.error, answer.error);
        if let Ok(request) = Request::parse(line) {
            let json = serde_json::to_string(&request).expect("a request is JSON");
            assert_eq!(Request::parse(&json).expect("which can be read").operation().is_ok(), request.operation().is_ok());
        }
    }
});
