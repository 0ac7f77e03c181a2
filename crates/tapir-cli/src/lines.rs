//! Lines of a text, in batches, worked on by several threads; what comes out is in order.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};

/// Longer lines than this are refused: no sentence is as long, and a file without lines should not
/// fill the memory.
const LONGEST_LINE: u64 = 1 << 20;
/// A batch ends when it has so many lines or bytes: enough that passing it on costs nothing, little
/// enough to share.
const LINES: usize = 16;
const BYTES: u64 = 1 << 16;

/// Some lines of a text.
pub(crate) struct LineBatch {
    /// The number of the first line, from 1.
    pub(crate) first: usize,
    pub(crate) lines: Vec<String>,
    /// Their length in the text.
    pub(crate) bytes: u64,
    /// Why there are no more lines, if not because the text has ended.
    pub(crate) error: Option<anyhow::Error>,
}

/// The batches of a text. A batch waits for its first line and then takes only lines that are there
/// already, so that whoever types a line, or pipes one now and then, is answered at once.
pub(crate) struct Batches<R> {
    input: BufReader<R>,
    name: String,
    number: usize,
    ended: bool,
}

impl<R: Read> Batches<R> {
    /// Of a text that errors call `name`.
    pub(crate) fn new(input: R, name: &str) -> Self {
        Self {
            input: BufReader::with_capacity(BYTES as usize, input),
            name: name.to_owned(),
            number: 1,
            ended: false,
        }
    }

    fn line(&mut self, bytes: &mut u64) -> Result<Option<String>> {
        let (name, number) = (&self.name, self.number);
        let mut line = Vec::new();
        let read = (&mut self.input)
            .take(LONGEST_LINE + 1)
            .read_until(b'\n', &mut line)
            .with_context(|| name.clone())?;
        if read as u64 > LONGEST_LINE {
            bail!(
                "{name}, line {number}: longer than {LONGEST_LINE} bytes; put a sentence on each line"
            );
        }
        *bytes += read as u64;
        self.number += 1;
        let text = String::from_utf8(line).with_context(|| {
            format!("{name}, line {number}: not a text file; UTF-8 is expected")
        })?;
        Ok((read > 0).then_some(text))
    }
}

impl<R: Read> Iterator for Batches<R> {
    type Item = LineBatch;

    fn next(&mut self) -> Option<LineBatch> {
        let mut batch = LineBatch { first: self.number, lines: Vec::new(), bytes: 0, error: None };
        let ready = |input: &BufReader<R>| input.buffer().contains(&b'\n');
        while !self.ended
            && (batch.lines.is_empty()
                || batch.lines.len() < LINES && batch.bytes < BYTES && ready(&self.input))
        {
            match self.line(&mut batch.bytes) {
                Ok(Some(line)) => batch.lines.push(line),
                Ok(None) => self.ended = true,
                Err(error) => (batch.error, self.ended) = (Some(error), true),
            }
        }
        (!batch.lines.is_empty() || batch.error.is_some()).then_some(batch)
    }
}

/// Gives every item to one of so many workers, in turn, and what they make of it to `sink`, in
/// order.
///
/// Taking turns keeps the order without counting, and channels of one item bound the memory. When
/// `sink` fails the threads are left behind, since the one that reads may be waiting for input that
/// never comes: the program is ending.
pub(crate) fn in_order<I, O, W>(
    items: impl Iterator<Item = I> + Send + 'static,
    workers: impl Iterator<Item = W>,
    mut sink: impl FnMut(O) -> Result<()>,
) -> Result<()>
where
    I: Send + 'static,
    O: Send + 'static,
    W: FnMut(I) -> O + Send + 'static,
{
    let (inputs, mut outputs): (Vec<_>, Vec<_>) = workers.map(start).unzip();
    std::thread::spawn(move || {
        for (item, input) in items.zip(inputs.iter().cycle()) {
            if input.send(item).is_err() {
                break;
            }
        }
    });
    for turn in 0.. {
        let turn = turn % outputs.len();
        let Ok(output) = outputs[turn].0.recv() else {
            // No more items; or the worker has panicked, and then so do we.
            let (_, worker) = outputs.swap_remove(turn);
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            break;
        };
        sink(output)?;
    }
    Ok(())
}

fn start<I, O, W>(mut work: W) -> (SyncSender<I>, (Receiver<O>, JoinHandle<()>))
where
    I: Send + 'static,
    O: Send + 'static,
    W: FnMut(I) -> O + Send + 'static,
{
    let (input, items) = sync_channel(1);
    let (done, output) = sync_channel(1);
    let thread = std::thread::spawn(move || {
        for item in items {
            if done.send(work(item)).is_err() {
                break;
            }
        }
    });
    (input, (output, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a line a read, as a person does.
    struct Slow(std::vec::IntoIter<&'static str>);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let line = self.0.next().unwrap_or_default().as_bytes();
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }

    #[test]
    fn a_batch_takes_the_lines_that_are_there() {
        let slow = Slow(vec!["one\n", "two\nthree\nfo", "ur\n", "five"].into_iter());
        let batches: Vec<_> =
            Batches::new(slow, "x").map(|batch| (batch.first, batch.lines)).collect();
        let lines =
            |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            batches,
            [
                (1, lines(&["one\n"])),
                (2, lines(&["two\n", "three\n"])),
                (4, lines(&["four\n"])),
                (5, lines(&["five"]))
            ]
        );
    }

    #[test]
    fn batches_are_bounded_and_lose_nothing() {
        let text = "a line\n".repeat(100);
        let batches: Vec<_> = Batches::new(text.as_bytes(), "x").collect();
        assert!(batches.iter().all(|batch| batch.lines.len() <= LINES));
        assert_eq!(batches.iter().flat_map(|batch| &batch.lines).count(), 100);
        assert_eq!(batches.iter().map(|batch| batch.bytes).sum::<u64>(), text.len() as u64);
        assert!(Batches::new(&b""[..], "x").next().is_none());
    }

    #[test]
    fn lines_before_an_error_are_kept() {
        let batches: Vec<_> = Batches::new(&b"good\n\xff\nnever"[..], "x").collect();
        assert_eq!((batches.len(), batches[0].lines.len()), (1, 1));
        assert!(
            format!("{:#}", batches[0].error.as_ref().unwrap())
                .starts_with("x, line 2: not a text")
        );
    }

    #[test]
    fn results_are_in_order_whatever_the_threads() {
        for threads in 1..6 {
            let workers = (0..threads).map(|_| |n: usize| n * 2);
            let mut seen = Vec::new();
            in_order(0..100, workers, |n| {
                seen.push(n);
                Ok(())
            })
            .unwrap();
            assert_eq!(seen, (0..100).map(|n| n * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "at three")]
    fn a_panic_is_not_the_end_of_the_text() {
        let worker = |n: usize| assert!(n != 3, "at three");
        let _ = in_order(0..100, [worker; 2].into_iter(), |()| Ok(()));
    }
}
