//! No allocation per word once a session is warm.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // a counting allocator cannot be written without

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tapir::{Mode, Model, Precision, Session};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the counter is a plain cell of this thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
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
    for precision in [Precision::F32, Precision::Int8] {
        let model: Model = tapir::doctest::parts().quantize(precision).unwrap().load().unwrap();
        for mode in [Mode::TwoPass, Mode::FirstPass] {
            let mut session = model.session().mode(mode).unwrap().threshold(1.0).window(20).undo(8);
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
    let model: Model = tapir::doctest::parts().load().unwrap();
    let mut session = model.session().threshold(0.0).window(20).undo(8);
    read(&mut session, 500);
    // Only an update with more than two edits may allocate: its list belongs to the caller.
    let allocations = read(&mut session, 1_000);
    assert!(allocations <= 1_000, "{allocations} allocations in 1000 revisions");
}
