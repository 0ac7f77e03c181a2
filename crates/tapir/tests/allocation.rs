//! No allocation per word once a session is warm.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // a counting allocator cannot be written without

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;
use tapir::{Mode, Model, Parts, Precision, Session, SessionOptions, TensorWriter};

mod support;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes asked for, those given back included.
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
    BYTES.with(|count| count.set(count.get().saturating_add(bytes)));
}

// SAFETY: every call goes to the system's allocator unchanged; the counter is a plain cell of this
// thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WORDS: [&str; 7] = ["play", "some", "jazz", "unheard-of", "by", "miles", "davis"];

fn read(session: &mut Session, words: usize) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    for i in 0..words {
        session.push(WORDS[i % WORDS.len()]).unwrap();
    }
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn a_warm_session_allocates_nothing_per_word() {
    let tiny =
        [tapir::doctest::parts(), tapir::doctest::with_intents(tapir::doctest::pretrained())];
    let precisions = [Precision::F32, Precision::Int8];
    for (parts, precision) in tiny.iter().flat_map(|parts| precisions.map(|to| (parts, to))) {
        let model: Model = parts.quantize(precision).unwrap().load().unwrap();
        for mode in [Mode::TwoPass, Mode::FirstPass] {
            let options = SessionOptions::new().mode(mode).threshold(1.0).window(20).undo(8);
            let mut session = model.session_with(options).unwrap();
            assert!(read(&mut session, 500) > 0, "the counter counts");
            assert_eq!(read(&mut session, 1_000), 0, "{precision:?}, {mode:?}: a long session");

            session.reset();
            read(&mut session, 12);
            session.reset();
            assert_eq!(read(&mut session, 12), 0, "{precision:?}, {mode:?}: a session used again");
        }
    }
}

#[test]
fn revisions_reuse_their_buffers() {
    for parts in
        [tapir::doctest::parts(), tapir::doctest::with_intents(tapir::doctest::pretrained())]
    {
        let model: Model = parts.load().unwrap();
        let options = SessionOptions::new().threshold(0.0).window(20).undo(8);
        let mut session = model.session_with(options).unwrap();
        read(&mut session, 500);
        // Only an update with more than two edits may allocate: its list belongs to the caller.
        let allocations = read(&mut session, 1_000);
        assert!(allocations <= 1_000, "{allocations} allocations in 1000 revisions");
    }
}

/// Loads a model and says how many bytes were asked for on the way, and how large its files are.
fn load(parts: Parts) -> (tapir::Result<Model>, usize, usize) {
    let text = parts.config.to_json().len()
        + parts.labels.to_text().len()
        + parts.vocabulary.to_text().len()
        + parts.pieces.as_ref().map_or(0, |pieces| pieces.to_text().len());
    let files = text + parts.weights.len();
    let before = BYTES.with(Cell::get);
    let model = parts.load();
    (model, BYTES.with(Cell::get) - before, files)
}

/// A long `max_length` is a promise about inputs that may come, and costs nothing before they do.
#[test]
fn memory_is_not_asked_for_because_a_configuration_says_so() {
    let mut parts = tapir::doctest::parts();
    parts.config.max_length = 1 << 16;
    let (model, bytes, files) = load(parts);
    let mut session = model.unwrap().session_with(SessionOptions::new().threshold(1.0)).unwrap();
    assert!(bytes < 40 * files, "{bytes} bytes for files of {files}");
    read(&mut session, 300);
    assert_eq!(
        session.finish().unwrap().labels.len(),
        300,
        "more words than positions are ready for"
    );
}

/// Only the first matrix of a wide reviser is there: what the others would be must not be asked
/// for.
#[test]
fn a_model_that_is_not_there_costs_nothing() {
    let mut parts = tapir::doctest::parts();
    let (wide, words) = (1 << 16, parts.vocabulary.len());
    (parts.config.processor, parts.config.controller) = (None, None);
    (parts.config.max_length, parts.config.embedding_dim) = (wide, 1);
    parts.config.reviser.as_mut().unwrap().hidden = wide;
    let mut writer = TensorWriter::default();
    writer.f32("reviser.embedding", &[words, 1], &vec![0.5; words]).unwrap();
    writer.f32("reviser.projection.weight", &[wide, 1], &vec![0.5; wide]).unwrap();
    writer.f32("reviser.projection.bias", &[wide], &vec![0.5; wide]).unwrap();
    parts.weights = writer.to_bytes().unwrap().into();
    let (model, bytes, files) = load(parts);
    assert!(model.unwrap_err().to_string().contains("qkv.weight` is missing"));
    assert!(bytes < 40 * files, "{bytes} bytes for files of {files}");
}

proptest! {
    #![proptest_config(support::cases(256))]

    #[test]
    fn loading_asks_for_no_more_than_the_files_hold(
        parts in support::tiny(),
        changes in prop::collection::vec((0..14usize, prop_oneof![1..=1usize << 16, any::<usize>()]), 1..5),
        precision in prop_oneof![Just(Precision::F32), Just(Precision::F16), Just(Precision::Int8)],
    ) {
        let mut parts = parts.quantize(precision).unwrap();
        for (field, size) in changes {
            support::set_size(&mut parts.config, field, size);
        }
        let (_, bytes, files) = load(parts);
        prop_assert!(bytes < 40 * files, "{bytes} bytes for files of {files}");
    }
}
