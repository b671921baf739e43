//! Prints a recording that is complete: by one thread, or from slices of time by several.

use crate::Error;
use crate::merge::slices::slices;
use crate::open::recording::Recording;
use crate::print::listing::{Listing, Sink};
use crate::print::parallel::{self, Plan};
use crate::print::printer::Printer;
use tracewing_units::Timestamp;

impl Listing {
    /// Prints `recording` to `sink`; much of it by as many threads as there are CPUs, 16 at most.
    ///
    /// # Errors
    /// A stream is damaged: everything before that has been printed. The time range does not fit the
    /// recording, or `sink` fails ([`Error::Output`]) or ends it ([`Error::Stopped`]).
    pub fn print(&self, recording: &Recording, sink: &mut impl Sink) -> Result<(), Error> {
        let range = self.filter.range(recording)?;
        let mut printer = Printer::new(self, range, recording)?;
        if let Some(last) = self.last {
            printer.keep_last(last, recording)?;
        }
        let result = print_all(&mut printer, recording, Plan::default(), sink);
        printer.finish(result, sink)
    }
}

/// Prints the recording, by several threads if `plan` says so and that is possible.
fn print_all(
    printer: &mut Printer<'_>,
    recording: &Recording,
    plan: Plan,
    sink: &mut impl Sink,
) -> Result<(), Error> {
    let mut merge = printer.merge(recording, sink)?;
    if plan.threads == 1 || printer.is_sequential() || !merge.is_orderly() {
        return printer.print_some(&mut merge, u64::MAX, sink).map(|_| ());
    }
    // Up to a time that all streams have reached, so that other threads can continue from there.
    if !printer.print_some(&mut merge, plan.alone, sink)? {
        return Ok(());
    }
    let last = merge.last_ns();
    merge.advance_to(last);
    printer.print(&mut merge, sink)?;
    printer.finish(Ok(()), sink)?;
    let range = printer.range();
    let slices = match last {
        _ if last >= Timestamp::ORIGIN && last < range.end => {
            slices(recording, range, last.next(), plan.slice)
        }
        _ => Vec::new(),
    };
    if !slices.is_empty() {
        merge = parallel::print(printer, recording, merge, &slices, plan, sink)?;
        printer.forget_packets();
    }
    merge.advance_to(range.end);
    printer.print(&mut merge, sink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::messages::Merge;
    use crate::merge::slices::{Slice, slices};
    use crate::print::style::{ClockStyle, Format, Style};
    use crate::select::filter::Filter;
    use crate::threads::tests::refused;
    use crate::time::range::TimeRange;
    use crate::time::zone::Zone;
    use std::fs;
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::thread::Builder;
    use tracewing_rules::Predicate;

    const ALONE: Plan = Plan { alone: 0, slice: 0, threads: 1, new: Builder::new };

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
        write_packets(folder, stray, 20);
    }

    fn write_packets(folder: &Path, stray: Option<u64>, packets: u64) {
        fs::write(folder.join("metadata"), METADATA).unwrap();
        for stream in 0..2_u8 {
            let mut bytes = Vec::new();
            for packet in 0..packets {
                // Beginning and end of a packet, and equal stamps in both streams.
                let begin = packet * 1000 + u64::from(stream) * 300;
                let mut events = Vec::new();
                for event in 0..8_u64 {
                    let mut stamp = begin + event * 100;
                    if let Some(stray) = stray.filter(|_| (stream, packet, event) == (1, 9, 7)) {
                        stamp = stray;
                    }
                    events.extend((stamp as u32).to_le_bytes());
                    events.extend([event as u8, b'a' + (packet % 26) as u8, 0]);
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
        let result = print_all(&mut printer, &recording, plan, &mut out);
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
                let one = print(folder.path(), &listing, ALONE);
                assert_eq!(one.0.lines().count(), 320 + usize::from(format == Format::Csv));
                assert!(one.1.lines().count() > 10 && one.2.is_none(), "{one:?}");
                for (alone, slice, threads) in [(1, 1, 3), (7, 200, 2), (100, 1000, 2), (319, 1, 2)] {
                    let several = print(folder.path(), &listing, Plan { alone, slice, threads, ..ALONE });
                    assert_eq!(several, one, "{stray:?} {format:?} {alone} {slice}");
                }
            }
        }
    }

    /// Looks at how far a listing is, and ends it after some looks.
    struct Watched {
        stamps: Vec<i64>,
        looks: Vec<(Timestamp, usize)>,
        most: usize,
    }

    impl Sink for Watched {
        fn events(&mut self, lines: &[u8]) -> std::io::Result<()> {
            let stamp = |line: &str| -> Option<i64> {
                line.split_once("\"ns\":")?.1.split(',').next()?.trim().parse().ok()
            };
            self.stamps.extend(std::str::from_utf8(lines).unwrap().lines().map(|line| stamp(line).unwrap()));
            Ok(())
        }

        fn warning(&mut self, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }

        fn reached(&mut self, time: Timestamp) -> ControlFlow<()> {
            self.looks.push((time, self.stamps.len()));
            if self.looks.len() == self.most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }

    #[test]
    fn a_listing_says_how_far_it_is_and_ends_when_told_even_where_no_event_is_chosen() {
        let folder = tempfile::tempdir().unwrap();
        write_packets(folder.path(), None, 4000);
        let recording = Recording::open(&[folder.path()]).unwrap();
        for (condition, expected) in [("n == 100", 0), ("n == 3 && text == \"c\"", 2 * 154), ("n == 3", 8000)]
        {
            let filter =
                Filter { predicate: Some(Predicate::parse(condition).unwrap()), ..Filter::default() };
            let listing = Listing { filter, format: Format::Json, ..Listing::default() };
            for plan in [ALONE, Plan { alone: 1000, slice: 1 << 17, threads: 3, ..ALONE }] {
                let print = |most| {
                    let mut watched = Watched { stamps: Vec::new(), looks: Vec::new(), most };
                    let mut printer = Printer::new(&listing, TimeRange::ALL, &recording).unwrap();
                    let result = print_all(&mut printer, &recording, plan, &mut watched);
                    (printer.finish(result, &mut watched), watched)
                };
                let (result, Watched { stamps, looks, .. }) = print(usize::MAX);
                result.unwrap();
                assert_eq!(stamps.len(), expected, "{condition}");
                assert!(
                    looks.len() > 3 && looks.is_sorted_by_key(|(time, _)| *time),
                    "{condition} {looks:?}"
                );
                for (time, count) in &looks {
                    let before = stamps.partition_point(|stamp| Timestamp::from_ns(*stamp) < *time);
                    assert!(before <= *count, "{condition} {time:?}: {before} {count}");
                }
                let (result, ended) = print(2);
                assert!(matches!(result, Err(Error::Stopped)), "{condition} {result:?}");
                assert_eq!((ended.looks.len(), ended.stamps.len()), (2, looks[1].1), "{condition}");
            }
        }
    }

    #[test]
    fn one_thread_prints_the_slices_where_the_system_refuses_others() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), None);
        let one = print(folder.path(), &Listing::default(), ALONE);
        let plan = Plan { alone: 1, slice: 1, threads: 3, new: refused };
        assert_eq!(print(folder.path(), &Listing::default(), plan), one);
    }

    #[test]
    fn events_before_the_origin_have_their_date() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), None);
        let metadata = METADATA.replace("offset_s = 1000000", "offset_s = -1");
        fs::write(folder.path().join("metadata"), metadata).unwrap();
        let style =
            Style { clock: ClockStyle { zone: Zone::Utc, ..ClockStyle::default() }, ..Style::default() };
        for super_trace in [false, true] {
            let listing = Listing { super_trace, style, ..Listing::default() };
            let (events, warnings, _) = print(folder.path(), &listing, ALONE);
            assert!(events.contains("1969-12-31 23:59:59.000000000"), "{events}");
            let begin = "between [1969-12-31 23:59:59.";
            assert!(
                warnings.lines().count() > 1 && warnings.lines().all(|line| line.contains(begin)),
                "{warnings}"
            );
        }
    }

    /// All of it, where packets say the truth; else up to where they do not.
    #[test]
    fn slices_are_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let last = 1_000_000_000_000_000 + 19_300 + 700;
        let before_end = |ns: i64| Timestamp::from_ns(last - ns);
        for (stray, reached) in
            [(None, before_end(0)..=before_end(0)), (Some(15_555), before_end(12_000)..=before_end(5_000))]
        {
            write(folder.path(), stray);
            let recording = Recording::open(&[folder.path()]).unwrap();
            let listing = Listing::default();
            let mut printer = Printer::new(&listing, TimeRange::ALL, &recording).unwrap();
            let from = recording.begin().unwrap();
            let slices = slices(&recording, TimeRange::ALL, from, 1);
            assert!(slices.len() > 5, "{slices:?}");
            let merge = Merge::of_slice(&recording, TimeRange::ALL, Slice { from, to: from.previous() });
            let mut out = (Vec::new(), Vec::new());
            let plan = Plan { threads: 2, ..Plan::default() };
            let merge = parallel::print(&mut printer, &recording, merge, &slices, plan, &mut out).unwrap();
            assert!(reached.contains(&merge.last_ns()), "{stray:?}: {:?}", merge.last_ns());
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
        let one = print(folder.path(), &Listing::default(), ALONE);
        assert!(one.2.is_some() && one.0.lines().count() > 100, "{one:?}");
        assert_eq!(
            print(folder.path(), &Listing::default(), Plan { alone: 1, slice: 1, threads: 3, ..ALONE }),
            one
        );
    }
}
