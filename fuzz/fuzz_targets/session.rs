//! Any sequence of operations: never a panic, and always the labels of a fresh session on the same
//! words.
#![no_main]

use std::sync::OnceLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tapir::{Model, Session, SessionOptions};

#[derive(Arbitrary, Debug)]
enum Operation {
    Push(Word),
    Revoke(u8),
    Update(u8, Vec<Word>),
    Threshold(f32),
    Reset,
    Finish,
}

#[derive(Arbitrary, Debug, Clone)]
enum Word {
    Known(u8),
    Any(String),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Self::Known(i) => ["play", "some", "jazz", "by", "miles", "davis"][usize::from(*i) % 6].to_owned(),
            Self::Any(text) => text.clone(),
        }
    }
}

fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| tapir::doctest::parts().load().expect("a good model"))
}

fn start(window: u8, undo: u8, threshold: f32) -> Session {
    let options = SessionOptions::new().window(usize::from(window)).undo(usize::from(undo));
    model().session_with(options.threshold(threshold)).expect("a threshold from 0 to 1")
}

fuzz_target!(|input: (u8, u8, f32, Vec<Operation>)| {
    let (window, undo, threshold, operations) = input;
    let refused = model().session_with(SessionOptions::new().threshold(threshold)).is_err();
    assert_eq!(refused, !(0.0..=1.0).contains(&threshold));
    let mut threshold = if refused { 0.5 } else { threshold };
    let mut session = start(window, undo, threshold);
    let mut words: Vec<String> = Vec::new();
    let mut screen = Vec::new();
    let mut thresholds_changed = false;
    for operation in operations {
        let result = match operation {
            Operation::Push(word) => {
                let word = word.text();
                session.push(&word).inspect(|_| words.push(word))
            }
            Operation::Revoke(n) => {
                session.revoke(usize::from(n)).inspect(|_| words.truncate(words.len() - usize::from(n)))
            }
            Operation::Update(keep, rest) => {
                let hypothesis: Vec<String> =
                    words.iter().take(usize::from(keep)).cloned().chain(rest.iter().map(Word::text)).collect();
                session.update(&hypothesis).inspect(|_| words = hypothesis)
            }
            Operation::Threshold(value) => {
                if session.set_threshold(value).is_ok() {
                    threshold = value;
                    thresholds_changed |= !words.is_empty();
                }
                continue;
            }
            Operation::Reset => {
                session.reset();
                words.clear();
                screen.clear();
                thresholds_changed = false;
                continue;
            }
            Operation::Finish => {
                if let Ok(end) = session.finish() {
                    end.update.apply(&mut screen);
                    assert_eq!(end.labels, screen[session.first()..]);
                }
                session.reset();
                words.clear();
                screen.clear();
                thresholds_changed = false;
                continue;
            }
        };
        if let Ok(update) = result {
            update.apply(&mut screen);
        }
        assert_eq!(session.labels(), screen[session.first()..]);
        assert_eq!(session.words(), words.len());
    }
    if !thresholds_changed {
        let mut fresh = start(window, undo, threshold);
        for word in &words {
            fresh.push(word).expect("a word that was read before");
        }
        let first = session.first().max(fresh.first());
        assert_eq!(session.labels()[first - session.first()..], fresh.labels()[first - fresh.first()..]);
    }
});
