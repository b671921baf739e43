//! Prints a recording by slices of time on all CPUs; what comes out is what one thread would print.
//!
//! Slices go to the threads in order, a few at a time, and each thread prints into a channel of bounded size, from which the lines
//! are handed on in order. Only the time since the event before is not known to who prints a slice's first line: its stamp
//! is printed by who hands it on.

use crate::Error;
use crate::listing::{Printer, Sink};
use crate::merge::Merge;
use crate::open::Recording;
use crate::slices::{Handoff, Slice};
use crate::stamp::Stamp;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Threads that print at once; who hands on what they print could not keep up with more.
const MOST_THREADS: usize = 16;

/// How much is printed by how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Events and losses that are printed before other threads are set to work.
    pub(crate) alone: u64,
    /// Bytes of a slice at least.
    pub(crate) slice: u64,
    /// Threads that print slices; where it is one, there are no slices.
    pub(crate) threads: usize,
}

impl Default for Plan {
    fn default() -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Plan { alone: 1 << 16, slice: 2 << 20, threads: cpus.min(MOST_THREADS) }
    }
}

/// How many batches of lines of a slice may wait.
const WAITING: usize = 256;

/// What comes out of a slice, in this order.
enum Part<'r> {
    /// Where it begins.
    Begin(Handoff),
    /// The line of its first event without its stamp, and the stamp.
    First(Vec<u8>, Option<Stamp>),
    Events(Vec<u8>),
    Warning(Vec<u8>),
    End(Box<End<'r>>),
}

/// How a slice ended.
struct End<'r> {
    result: Result<(), Error>,
    /// The last stamp that was printed, as the next one's distance is reckoned from it.
    last: Option<u64>,
    /// Stands at the slice's end.
    merge: Merge<'r>,
}

/// A slice, and where what comes out of it goes.
type Job<'r> = (Slice, SyncSender<Part<'r>>);

/// Prints `slices`, of which the first begins where `merge` stands, by as many `threads`. Gives where they end, or where they can not
/// be gone on with: what is left there is to be printed as usual.
pub(crate) fn print<'r>(
    printer: &mut Printer<'_>,
    recording: &'r Recording,
    mut merge: Merge<'r>,
    slices: &[Slice],
    threads: usize,
    sink: &mut impl Sink,
) -> Result<Merge<'r>, Error> {
    let printers: Result<Vec<_>, _> = (0..threads).map(|_| printer.for_slices(recording)).collect();
    let (jobs, queue) = mpsc::channel::<Job<'r>>();
    let queue = Mutex::new(queue);
    thread::scope(|scope| {
        let queue = &queue;
        for mut printer in printers? {
            scope.spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((slice, parts)) = job else { return };
                    // Who does not take the parts does not want them any more.
                    let _ = print_slice(&mut printer, recording, slice, &parts);
                }
            });
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
            match hand_on(printer, &merge, &output, sink)? {
                Some(end) => merge = end,
                None => break,
            }
        }
        // What is still running has nowhere to go, and ends.
        drop((jobs, running));
        Ok(merge)
    })
}

/// Hands on what comes out of a slice; `None`, and nothing has been handed on, where it does not begin where `before` stands.
fn hand_on<'r>(
    printer: &mut Printer<'_>,
    before: &Merge<'r>,
    output: &Receiver<Part<'r>>,
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
            Part::Events(lines) => sink.events(&lines).map_err(Error::Output)?,
            Part::Warning(line) => sink.warning(&line).map_err(Error::Output)?,
            Part::End(end) => {
                let End { result, last, merge } = *end;
                result?;
                printer.go_on_behind(last);
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
) -> Result<(), mpsc::SendError<Part<'r>>> {
    let mut merge = Merge::of_slice(recording, printer.range(), slice);
    let Some(begin) = merge.handoff() else { return Ok(()) };
    parts.send(Part::Begin(begin))?;
    let mut sink = Parts(parts);
    let (line, stamp, mut result) = printer.first_of_slice(&mut merge, &mut sink);
    parts.send(Part::First(line, stamp))?;
    if result.is_ok() {
        result = printer.print(&mut merge, &mut sink);
    }
    let result = printer.finish(result, &mut sink);
    parts.send(Part::End(Box::new(End { result, last: printer.last_stamp(), merge })))
}

/// Sends lines to who hands them on.
struct Parts<'p, 'r>(&'p SyncSender<Part<'r>>);

impl Parts<'_, '_> {
    fn closed<T>(_: mpsc::SendError<T>) -> io::Error {
        io::ErrorKind::BrokenPipe.into()
    }
}

impl Sink for Parts<'_, '_> {
    fn events(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.send(Part::Events(lines.to_vec())).map_err(Self::closed)
    }

    fn warning(&mut self, line: &[u8]) -> io::Result<()> {
        self.0.send(Part::Warning(line.to_vec())).map_err(Self::closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::{Format, Listing};
    use crate::slices::slices;
    use crate::time_range::TimeRange;
    use std::fs;
    use std::path::Path;

    const METADATA: &str = r#"/* CTF 1.8 */
        typealias integer { size = 8; align = 8; signed = false; } := u8;
        typealias integer { size = 32; align = 8; signed = false; } := u32;
        clock { name = c; freq = 1000000000; offset_s = 1000000; };
        typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp;
        typealias integer { size = 32; align = 8; signed = false; map = clock.c.value; } := short;
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u8 stream_instance_id; }; };
        stream {
            packet.context := struct {
                u32 content_size; u32 packet_size; stamp timestamp_begin; stamp timestamp_end; u32 events_discarded; u8 note;
            };
            event.header := struct { short timestamp; };
        };
        event { name = tick; fields := struct { u8 n; string text; }; };"#;

    /// Two streams of 20 packets with 8 events each; `stray` changes the stamp of one event.
    fn write(folder: &Path, stray: Option<u64>) {
        fs::write(folder.join("metadata"), METADATA).unwrap();
        for stream in 0..2_u8 {
            let mut bytes = Vec::new();
            for packet in 0..20_u64 {
                // Beginning and end of a packet, and equal stamps in both streams.
                let begin = packet * 1000 + u64::from(stream) * 300;
                let mut events = Vec::new();
                for event in 0..8_u64 {
                    let mut stamp = begin + event * 100;
                    if let Some(stray) = stray.filter(|_| (stream, packet, event) == (1, 9, 7)) {
                        stamp = stray;
                    }
                    events.extend((stamp as u32).to_le_bytes());
                    events.extend([event as u8, b'a' + packet as u8, 0]);
                }
                let bits = ((34 + events.len()) as u32 * 8).to_le_bytes();
                bytes.extend(0xC1FC_1FC1_u32.to_le_bytes());
                bytes.push(stream);
                bytes.extend([bits, bits].concat());
                bytes.extend([begin, begin + 800].map(u64::to_le_bytes).concat());
                bytes.extend((packet as u32 / 3).to_le_bytes());
                bytes.push(packet as u8);
                bytes.extend(events);
            }
            fs::write(folder.join(format!("stream{stream}")), bytes).unwrap();
        }
    }

    fn print(folder: &Path, listing: &Listing, plan: Plan) -> (String, String, Option<String>) {
        let recording = Recording::open(&[folder]).unwrap();
        let mut printer = Printer::new(listing, TimeRange::ALL, &recording).unwrap();
        let mut out = (Vec::new(), Vec::new());
        let result = printer.print_all(&recording, plan, &mut out);
        let result = printer.finish(result, &mut out);
        let [events, warnings] = [out.0, out.1].map(|bytes| String::from_utf8(bytes).unwrap());
        (events, warnings, result.err().map(|error| error.to_string()))
    }

    #[test]
    fn slices_make_the_same_lines() {
        let folder = tempfile::tempdir().unwrap();
        // As packets say; late and early for its packet, and out of the stream's order.
        for stray in [None, Some(15_555), Some(1_234)] {
            write(folder.path(), stray);
            for format in [Format::Text, Format::Pretty, Format::Json, Format::Csv] {
                let listing = Listing { format, ..Listing::default() };
                let one = print(folder.path(), &listing, Plan { alone: 0, slice: 0, threads: 1 });
                assert_eq!(one.0.lines().count(), 320 + usize::from(format == Format::Csv));
                assert!(one.1.lines().count() > 10 && one.2.is_none(), "{one:?}");
                for (alone, slice, threads) in [(1, 1, 3), (7, 200, 2), (100, 1000, 2), (319, 1, 2)] {
                    let several = print(folder.path(), &listing, Plan { alone, slice, threads });
                    assert_eq!(several, one, "{stray:?} {format:?} {alone} {slice}");
                }
            }
        }
    }

    /// All of it, where packets say the truth; else up to where they do not.
    #[test]
    fn slices_are_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let end = 1_000_000_000_000_000 + 19_300 + 700;
        for (stray, reached) in [(None, end..=end), (Some(15_555), end - 12_000..=end - 5_000)] {
            write(folder.path(), stray);
            let recording = Recording::open(&[folder.path()]).unwrap();
            let listing = Listing::default();
            let mut printer = Printer::new(&listing, TimeRange::ALL, &recording).unwrap();
            let from = recording.begin().unwrap();
            let slices = slices(&recording, TimeRange::ALL, from, 1);
            assert!(slices.len() > 5, "{slices:?}");
            let merge = Merge::of_slice(&recording, TimeRange::ALL, Slice { from, to: from - 1 });
            let mut out = (Vec::new(), Vec::new());
            let merge = super::print(&mut printer, &recording, merge, &slices, 2, &mut out).unwrap();
            assert!(reached.contains(&merge.last_ns()), "{stray:?}: {}", merge.last_ns());
        }
    }

    #[test]
    fn damage_ends_it_where_one_thread_would() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), None);
        let path = folder.path().join("stream1");
        let mut bytes = fs::read(&path).unwrap();
        // The last event of packet 11 has no end.
        let at = 12 * 90 - 1;
        assert_eq!(bytes[at], 0);
        bytes[at] = b'x';
        fs::write(&path, bytes).unwrap();
        let one = print(folder.path(), &Listing::default(), Plan { alone: 0, slice: 0, threads: 1 });
        assert!(one.2.is_some() && one.0.lines().count() > 100, "{one:?}");
        assert_eq!(print(folder.path(), &Listing::default(), Plan { alone: 1, slice: 1, threads: 3 }), one);
    }
}
