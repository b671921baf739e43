//! Prints a recording by slices of time on all CPUs; the output is the same as that of a single thread.
//!
//! Slices go to the threads in order, a few at a time, and each thread prints into a channel of bounded size,
//! from which the lines are handed on in order. The thread that prints a slice's first line does not know the
//! time since the previous event: the thread that passes the lines on prints that stamp.

use crate::Error;
use crate::merge::messages::{Handoff, Merge};
use crate::merge::slices::Slice;
use crate::open::recording::Recording;
use crate::print::lines::BATCH_OF_SLICE;
use crate::print::listing::Sink;
use crate::print::printer::Printer;
use crate::print::stamp::PrintedStamp;
use crate::threads::start;
use crate::time::stamp::Stamp;
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use tracewing_units::Timestamp;

/// Maximum number of printing threads; the thread that passes on their output could not keep up with more.
const MOST_THREADS: usize = 16;

/// How much is printed by how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Events and losses that are printed before other threads are set to work.
    pub(crate) alone: u64,
    /// Bytes of a slice at least.
    pub(crate) slice: u64,
    /// Threads that print slices, at most; where it is one, there are no slices.
    pub(crate) threads: usize,
    /// Makes one of them.
    pub(crate) new: fn() -> Builder,
}

impl Default for Plan {
    fn default() -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Plan { alone: 1 << 16, slice: 2 << 20, threads: cpus.min(MOST_THREADS), new: Builder::new }
    }
}

/// How many batches of lines of a slice may wait.
const WAITING: usize = 64;

/// What comes out of a slice, in this order.
enum Part<'r> {
    Begin(Handoff),
    /// The line of its first event without its stamp, and the stamp.
    First(Vec<u8>, Option<Stamp>),
    Events(Vec<u8>),
    Warning(Vec<u8>),
    /// Its lines before this time are all there.
    Reached(Timestamp),
    End(Box<End<'r>>),
}

/// Memory of lines that have been passed on, for other lines. Without it, each batch would be memory that one
/// thread takes from the system and another gives back.
#[derive(Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    fn memory(&self) -> Vec<u8> {
        self.all().pop().unwrap_or_else(|| Vec::with_capacity(2 * BATCH_OF_SLICE))
    }

    fn give_back(&self, mut memory: Vec<u8>) {
        memory.clear();
        self.all().push(memory);
    }

    fn all(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a slice ended.
struct End<'r> {
    result: Result<(), Error>,
    /// The last stamp that was printed, as the next one's distance is reckoned from it.
    last: Option<PrintedStamp>,
    /// Stands at the slice's end.
    merge: Merge<'r>,
}

/// A slice, and where what comes out of it goes.
type Job<'r> = (Slice, SyncSender<Part<'r>>);

/// Prints `slices`, the first of which begins in the state of `merge`, with the threads of `plan`, or fewer
/// if the system refuses some. Returns the state at their end, or where they cannot be continued, or where
/// they begin if there are no threads: the rest must be printed sequentially.
pub(crate) fn print<'r>(
    printer: &mut Printer<'_>,
    recording: &'r Recording,
    mut merge: Merge<'r>,
    slices: &[Slice],
    plan: Plan,
    sink: &mut impl Sink,
) -> Result<Merge<'r>, Error> {
    let printers: Result<Vec<_>, _> = (0..plan.threads).map(|_| printer.for_slices(recording)).collect();
    let (jobs, queue) = mpsc::channel::<Job<'r>>();
    let (queue, spare) = (Mutex::new(queue), Spare::default());
    thread::scope(|scope| {
        let (queue, spare) = (&queue, &spare);
        let works = printers?.into_iter().map(|mut printer| {
            move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((slice, parts)) = job else { return };
                    // If the receiver is gone, the output is not needed any more.
                    let _ = print_slice(&mut printer, recording, slice, &parts, spare);
                }
            }
        });
        let threads = start(scope, plan.new, works);
        if threads == 0 {
            return Ok(merge);
        }
        let mut slices = slices.iter();
        let mut running: VecDeque<Receiver<Part<'r>>> = VecDeque::new();
        loop {
            while running.len() <= threads
                && let Some(slice) = slices.next()
            {
                let (parts, output) = mpsc::sync_channel(WAITING);
                if jobs.send((*slice, parts)).is_ok() {
                    running.push_back(output);
                }
            }
            let Some(output) = running.pop_front() else { break };
            match hand_on(printer, &merge, &output, spare, sink)? {
                Some(end) => merge = end,
                None => break,
            }
        }
        // What is still running has nowhere to go, and ends.
        drop((jobs, running));
        Ok(merge)
    })
}

/// Passes on the output of a slice; `None`, with nothing passed on, if it does not begin in the state
/// `before`.
fn hand_on<'r>(
    printer: &mut Printer<'_>,
    before: &Merge<'r>,
    output: &Receiver<Part<'r>>,
    spare: &Spare,
    sink: &mut impl Sink,
) -> Result<Option<Merge<'r>>, Error> {
    for part in output {
        match part {
            Part::Begin(begin) if before.handoff().as_ref() == Some(&begin) => {}
            Part::Begin(_) => return Ok(None),
            Part::First(line, stamp) => {
                let line = printer.with_stamp(stamp, line);
                sink.events(&line).map_err(Error::Output)?;
            }
            Part::Events(lines) => {
                sink.events(&lines).map_err(Error::Output)?;
                spare.give_back(lines);
            }
            Part::Warning(line) => sink.warning(&line).map_err(Error::Output)?,
            Part::Reached(time) if sink.reached(time).is_break() => return Err(Error::Stopped),
            Part::Reached(_) => {}
            Part::End(end) => {
                let End { result, last, merge } = *end;
                result?;
                printer.continue_after(last);
                return Ok(Some(merge));
            }
        }
    }
    Ok(None)
}

/// Prints a slice into `parts`.
fn print_slice<'r>(
    printer: &mut Printer<'_>,
    recording: &'r Recording,
    slice: Slice,
    parts: &SyncSender<Part<'r>>,
    spare: &Spare,
) -> Result<(), mpsc::SendError<Part<'r>>> {
    let mut merge = Merge::of_slice(recording, printer.range(), slice);
    let Some(begin) = merge.handoff() else { return Ok(()) };
    parts.send(Part::Begin(begin))?;
    let mut sink = Parts { parts, spare };
    let (line, stamp, mut result) = printer.first_of_slice(&mut merge, &mut sink);
    parts.send(Part::First(line, stamp))?;
    if result.is_ok() {
        result = printer.print(&mut merge, &mut sink);
    }
    let result = printer.finish(result, &mut sink);
    parts.send(Part::End(Box::new(End { result, last: printer.last_stamp(), merge })))
}

/// Sends lines to the thread that passes them on.
struct Parts<'p, 'r> {
    parts: &'p SyncSender<Part<'r>>,
    spare: &'p Spare,
}

impl Parts<'_, '_> {
    fn closed<T>(_: mpsc::SendError<T>) -> io::Error {
        io::ErrorKind::BrokenPipe.into()
    }
}

impl Sink for Parts<'_, '_> {
    fn events(&mut self, lines: &[u8]) -> io::Result<()> {
        self.parts.send(Part::Events(lines.to_vec())).map_err(Self::closed)
    }

    fn take(&mut self, lines: &mut Vec<u8>) -> io::Result<()> {
        let lines = std::mem::replace(lines, self.spare.memory());
        self.parts.send(Part::Events(lines)).map_err(Self::closed)
    }

    fn warning(&mut self, line: &[u8]) -> io::Result<()> {
        self.parts.send(Part::Warning(line.to_vec())).map_err(Self::closed)
    }

    fn reached(&mut self, time: Timestamp) -> ControlFlow<()> {
        match self.parts.send(Part::Reached(time)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
