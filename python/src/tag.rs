//! Many sentences on all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use tapir::{Model, Session, SessionOptions};

use crate::error::{error, refused};
use crate::input::{Given, Options, misleads};
use crate::tagged::Tagged;
use crate::watch::{PATIENCE, Watch};

/// Longer sentences than this are refused, as by `tapir tag`: all their labels are kept.
const LONGEST_SENTENCE: usize = 10_000;

/// What can come of a sentence.
enum Fault {
    /// Somebody said stop.
    Stopped,
    /// It cannot be labelled.
    Refused(String),
}

/// Labels the words of one sentence.
pub(crate) fn tag_words<'py>(
    model: &Model,
    what: &Bound<'py, PyAny>,
    options: &Options,
) -> PyResult<Bound<'py, PyAny>> {
    let py = what.py();
    if what.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("words=True: expected a list of words, not str"));
    }
    let tagged = one(py, model, checked(model, options)?, Given::of(what)?)?;
    Ok(tagged.into_pyobject(py)?.into_any())
}

/// Labels a text, or each item of an iterable.
pub(crate) fn tag<'py>(
    model: &Model,
    what: &Bound<'py, PyAny>,
    options: &Options,
    threads: Option<usize>,
    progress: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = what.py();
    let options = checked(model, options)?;
    if what.is_instance_of::<PyString>() {
        let tagged = one(py, model, options, Given::of(what)?)?;
        return Ok(tagged.into_pyobject(py)?.into_any());
    }
    let wrong = |what: &Bound<'_, PyAny>| {
        let name = what.get_type().name().map_or_else(|_| "it".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "expected a text, or a list of texts or of lists of words, not {name}"
        ))
    };
    if misleads(what) {
        return Err(wrong(what));
    }
    let items = what.try_iter().map_err(|_| wrong(what))?;
    let given = items.enumerate().map(|(i, item)| {
        Given::of(&item?).map_err(|fault| {
            // Only what we say ourselves gets a place; Python's own exceptions stay as they are.
            if fault.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(format!("item {i}: {}", fault.value(py)))
            } else {
                fault
            }
        })
    });
    let given = given.collect::<PyResult<Vec<_>>>()?;
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.unwrap_or_else(cores).clamp(1, 256).min(given.len().max(1));
    let watch = Watch::new(py, "labelling", given.len(), progress)?;
    let result = py.detach(|| many(model, options, given, threads, &watch));
    let tagged = watch.close(py, result)?;
    Ok(PyList::new(py, tagged)?.into_any())
}

/// The options of a sentence's session.
fn checked(model: &Model, options: &Options) -> PyResult<SessionOptions> {
    // With so much undo a session holds every label until the sentence is taken.
    let options = options.build()?.undo(LONGEST_SENTENCE);
    options.check(model).map_err(refused)?;
    Ok(options)
}

/// For any attachment to Python: a method would be for one.
fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Labels one text on the caller's own thread: most are short, and a thread takes time to start.
fn one(py: Python<'_>, model: &Model, options: SessionOptions, given: Given) -> PyResult<Tagged> {
    py.detach(|| {
        let mut session = model.session_with(options).map_err(refused)?;
        let mut last = Instant::now();
        let mut interrupt = None;
        let result = sentence(&mut session, given, &mut || {
            if last.elapsed() > PATIENCE {
                last = Instant::now();
                interrupt = Python::attach(check_signals).err();
            }
            interrupt.is_some()
        });
        result.map_err(|fault| match fault {
            Fault::Refused(reason) => error(reason),
            Fault::Stopped => interrupt.unwrap_or_else(|| error("stopped")),
        })
    })
}

/// Labels all of them; the calling thread looks after Python meanwhile.
///
/// Threads are started for each call: those of a pool would be missing in a process that was
/// forked.
fn many(
    model: &Model,
    options: SessionOptions,
    given: Vec<Given>,
    threads: usize,
    watch: &Watch,
) -> PyResult<Vec<Tagged>> {
    let total = given.len();
    let given: Vec<_> = given.into_iter().map(|given| std::sync::Mutex::new(Some(given))).collect();
    let (next, done, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let work = || -> Result<Vec<(usize, Tagged)>, (usize, Fault)> {
        let refused = |error: tapir::Error| (0, Fault::Refused(error.to_string()));
        let mut session = model.session_with(options).map_err(refused)?;
        let mut tagged = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(given) = given.get(i) else { return Ok(tagged) };
            // Each is taken once.
            let Some(given) = given.lock().ok().and_then(|mut given| given.take()) else {
                continue;
            };
            let stopped = &mut || stop.load(Ordering::Relaxed);
            tagged.push((i, sentence(&mut session, given, stopped).map_err(|fault| (i, fault))?));
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let (alive, ended) = channel::<()>();
        let start = |alive| {
            scope.spawn(|| {
                let result = work();
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                drop::<std::sync::mpsc::Sender<()>>(alive);
                result
            })
        };
        let workers: Vec<_> = (0..threads).map(|_| start(alive.clone())).collect();
        drop(alive);
        let mut interrupt = None;
        while ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            if interrupt.is_none() {
                let done = done.load(Ordering::Relaxed);
                interrupt = Python::attach(|py| watch.look(py, done)).err();
                stop.fetch_or(interrupt.is_some(), Ordering::Relaxed);
            }
        }
        let mut tagged: Vec<Option<Tagged>> = (0..total).map(|_| None).collect();
        let mut fault: Option<(usize, String)> = None;
        for worker in workers {
            match worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(some) => some.into_iter().for_each(|(i, one)| tagged[i] = Some(one)),
                Err((_, Fault::Stopped)) => {}
                // Of several the first, whichever thread was quicker.
                Err((i, Fault::Refused(reason))) => {
                    if fault.as_ref().is_none_or(|(first, _)| i < *first) {
                        fault = Some((i, reason));
                    }
                }
            }
        }
        match (interrupt, fault) {
            (Some(interrupt), _) => Err(interrupt),
            (None, Some((i, reason))) => Err(error(format!("item {i}: {reason}"))),
            (None, None) => Ok(tagged.into_iter().flatten().collect()),
        }
    })
}

/// Reads a sentence word by word and finishes it.
fn sentence(
    session: &mut Session,
    given: Given,
    stopped: &mut impl FnMut() -> bool,
) -> Result<Tagged, Fault> {
    let refused = |error: tapir::Error| Fault::Refused(error.to_string());
    let (words, offsets) = match given {
        Given::Words(words) => (words, None),
        Given::Text(text) => {
            let tokens = session.model().config().tokenizer.tokens(&text);
            let offsets = tokens.iter().map(|token| (token.start, token.end)).collect();
            (tokens.into_iter().map(|token| token.word).collect(), Some(offsets))
        }
    };
    if words.len() > LONGEST_SENTENCE {
        return Err(Fault::Refused(format!(
            "{} words are more than the {LONGEST_SENTENCE} of the longest sentence; split it",
            words.len()
        )));
    }
    session.reset();
    for word in &words {
        if stopped() {
            return Err(Fault::Stopped);
        }
        session.push(word).map_err(refused)?;
    }
    session.finish().map_err(refused)?;
    Ok(Tagged::of(session, words, offsets))
}
