//! Prints time stamps and the time between them, as babeltrace2 does; but the date of a time before the
//! clock's origin, of which babeltrace2 drops the sign.

use crate::append::number;
use crate::print::style::{ClockStyle, Style};
use crate::time::stamp::Stamp;
use std::io::Write;
use tracewing_units::Timestamp;

const NS_PER_S: i64 = 1_000_000_000;

/// A stamp in the unit that is printed: cycles, or nanoseconds since the origin in two's complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrintedStamp(u64);

impl PrintedStamp {
    /// babeltrace2's "there is none"; a stamp of that very value is taken for none there, and here.
    const NONE: PrintedStamp = PrintedStamp(NO_DISTANCE);
}

/// The same for distances.
const NO_DISTANCE: u64 = u64::MAX;

/// Bytes of a stamp in the most common form, with its distance.
const COMMON: usize = 36;

/// Prints stamps; remembers the previous one and the previous second.
#[derive(Debug)]
pub(crate) struct StampPrinter {
    clock: ClockStyle,
    delta: bool,
    names: bool,
    last: PrintedStamp,
    /// The next stamp, if another printer prints it, which knows the previous one.
    withheld: Option<Option<Stamp>>,
    distance: u64,
    /// The second whose date and time of day `text` holds.
    second: Option<i64>,
    text: Vec<u8>,
    /// Whether stamps are printed as most people want them: time of day, distance, no names.
    is_common: bool,
}

impl StampPrinter {
    pub(crate) fn new(style: &Style) -> Self {
        StampPrinter {
            clock: style.clock,
            delta: style.delta,
            names: style.names.header,
            last: PrintedStamp::NONE,
            withheld: None,
            distance: NO_DISTANCE,
            second: None,
            text: Vec::new(),
            is_common: style.clock == ClockStyle { zone: style.clock.zone, ..ClockStyle::default() }
                && style.delta
                && !style.names.header,
        }
    }

    /// Starts over, and leaves the first stamp to a printer that knows the previous one: it is
    /// [`StampPrinter::withheld`].
    pub(crate) fn withhold(&mut self) {
        (self.last, self.withheld) = (PrintedStamp::NONE, Some(None));
    }

    /// The stamp that has not been printed.
    pub(crate) fn withheld(&mut self) -> Option<Stamp> {
        self.withheld.take().flatten()
    }

    /// The last stamp, in what [`StampPrinter::continue_after`] takes.
    pub(crate) fn last(&self) -> Option<PrintedStamp> {
        Some(self.last).filter(|last| *last != PrintedStamp::NONE)
    }

    /// Has the next stamp follow this one.
    pub(crate) fn continue_after(&mut self, last: PrintedStamp) {
        self.last = last;
    }

    /// Appends an event's stamp, and its distance from the previous event.
    pub(crate) fn event(&mut self, out: &mut Vec<u8>, stamp: Stamp) {
        match self.common_event(stamp) {
            Some(text) => out.extend_from_slice(&text),
            None => self.any_event(out, stamp),
        }
    }

    /// The text that [`StampPrinter::event`] appends, in one piece: `[04:25:40.934685633] (+0.000000451) ` in
    /// a second that has been printed before. `None` of another form.
    #[inline(always)]
    pub(crate) fn common_event(&mut self, stamp: Stamp) -> Option<[u8; COMMON]> {
        let ns = u64::try_from(stamp.time.as_ns()).ok()?;
        let (second, rest) = (ns / NS_PER_S as u64, ns % NS_PER_S as u64);
        let distance = ns.wrapping_sub(self.last.0);
        let is_common = self.is_common
            && self.last != PrintedStamp::NONE
            && self.second == Some(second as i64)
            && distance < NS_PER_S as u64;
        if !is_common {
            return None;
        }
        let mut text = *b"[hh:mm:ss.nnnnnnnnn] (+0.nnnnnnnnn) ";
        if let (Some(time), Some(digits)) = (self.text.first_chunk::<8>(), text[1..].first_chunk_mut()) {
            *digits = *time;
        }
        if let Some(digits) = text[10..].first_chunk_mut() {
            number::nine(digits, rest as u32);
        }
        if let Some(digits) = text[25..].first_chunk_mut() {
            number::nine(digits, distance as u32);
        }
        (self.last, self.distance) = (PrintedStamp(ns), distance);
        Some(text)
    }

    /// The same in every style.
    fn any_event(&mut self, out: &mut Vec<u8>, stamp: Stamp) {
        if let Some(withheld @ None) = &mut self.withheld {
            *withheld = Some(stamp);
            self.last = self.number(stamp);
            return;
        }
        out.extend_from_slice(if self.names { b"timestamp = " } else { b"[" });
        match self.clock.cycles {
            true => number::padded::<20>(out, stamp.cycles.0),
            false => self.wall(out, stamp.time),
        }
        let now = self.number(stamp);
        let goes_back = self.last != PrintedStamp::NONE && self.is_before(now, self.last);
        self.distance = match (self.last, goes_back) {
            (PrintedStamp::NONE, _) => NO_DISTANCE,
            (last, false) => now.0.wrapping_sub(last.0),
            (last, true) => last.0.wrapping_sub(now.0),
        };
        self.last = now;
        if !self.names {
            out.extend_from_slice(b"] ");
        }
        if self.delta {
            out.extend_from_slice(if self.names { b", delta = " } else { b"(" });
            out.push(if goes_back { b'-' } else { b'+' });
            self.distance(out);
            if !self.names {
                out.extend_from_slice(b") ");
            }
        }
    }

    /// The stamp in the unit that is printed.
    fn number(&self, stamp: Stamp) -> PrintedStamp {
        PrintedStamp(if self.clock.cycles { stamp.cycles.0 } else { stamp.time.as_ns() as u64 })
    }

    /// Whether a stamp is earlier than another one, in the unit that is printed.
    fn is_before(&self, PrintedStamp(stamp): PrintedStamp, PrintedStamp(other): PrintedStamp) -> bool {
        if self.clock.cycles { stamp < other } else { (stamp as i64) < other as i64 }
    }

    fn distance(&self, out: &mut Vec<u8>) {
        match (self.clock.cycles, self.distance) {
            (true, NO_DISTANCE) => out.extend_from_slice(b"????????????"),
            (true, distance) => number::padded::<12>(out, distance),
            (false, NO_DISTANCE) => out.extend_from_slice(b"?.?????????"),
            (false, distance) => {
                number::unsigned(out, distance / NS_PER_S as u64);
                out.push(b'.');
                number::padded::<9>(out, distance % NS_PER_S as u64);
            }
        }
    }

    /// Appends a stamp as date, time of day or seconds. Before the origin, a time of day alone would be taken
    /// for one of the day that begins with it.
    pub(crate) fn wall(&mut self, out: &mut Vec<u8>, time: Timestamp) {
        let (second, rest) = time.as_seconds();
        if !self.clock.seconds && self.remember(second) {
            out.extend_from_slice(&self.text);
            out.push(b'.');
            number::padded::<9>(out, rest.into());
            return;
        }
        let ns = time.as_ns();
        if ns < 0 {
            out.push(b'-');
        }
        number::unsigned(out, ns.unsigned_abs() / NS_PER_S as u64);
        out.push(b'.');
        number::padded::<9>(out, ns.unsigned_abs() % NS_PER_S as u64);
    }

    /// Formats `second` as date and time of day in `text`; false if it is out of range.
    fn remember(&mut self, second: i64) -> bool {
        if self.second == Some(second) {
            return true;
        }
        let Some(civil) = self.clock.zone.civil(second) else { return false };
        self.text.clear();
        let written = if self.clock.date || second < 0 {
            write!(
                self.text,
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
                civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
            )
        } else {
            write!(self.text, "{:02}:{:02}:{:02}", civil.hour, civil.minute, civil.second)
        };
        self.second = written.is_ok().then_some(second);
        self.second.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::zone::Zone;
    use tracewing_units::Cycles;

    fn print(clock: ClockStyle, stamps: &[i64]) -> Vec<String> {
        let style = Style { clock, ..Style::default() };
        let mut printer = StampPrinter::new(&style);
        stamps
            .iter()
            .map(|&ns| {
                let mut out = Vec::new();
                printer.event(&mut out, Stamp { cycles: Cycles(ns as u64), time: Timestamp::from_ns(ns) });
                String::from_utf8(out).unwrap()
            })
            .collect()
    }

    #[test]
    fn every_clock_style() {
        let stamps = [1_795_235_140_934_685_633, 1_795_235_142_000_000_001];
        let utc = ClockStyle { zone: Zone::Utc, ..ClockStyle::default() };
        assert_eq!(
            print(utc, &stamps),
            ["[04:25:40.934685633] (+?.?????????) ", "[04:25:42.000000001] (+1.065314368) "]
        );
        assert_eq!(
            print(ClockStyle { date: true, ..utc }, &stamps)[1],
            "[2026-11-21 04:25:42.000000001] (+1.065314368) "
        );
        assert_eq!(
            print(ClockStyle { seconds: true, ..utc }, &stamps)[1],
            "[1795235142.000000001] (+1.065314368) "
        );
        assert_eq!(
            print(ClockStyle { cycles: true, ..utc }, &stamps),
            ["[01795235140934685633] (+????????????) ", "[01795235142000000001] (+001065314368) "]
        );
    }

    #[test]
    fn a_stamp_that_goes_back_has_a_negative_distance() {
        let utc = ClockStyle { zone: Zone::Utc, ..ClockStyle::default() };
        assert_eq!(print(utc, &[3_000_000_000, 1_500_000_000])[1], "[00:00:01.500000000] (-1.500000000) ");
        let cycles = print(ClockStyle { cycles: true, ..utc }, &[30, 7, -1, 9]);
        assert_eq!(cycles[1], "[00000000000000000007] (-000000000023) ");
        assert_eq!(cycles[3], "[00000000000000000009] (+????????????) ", "-1 is babeltrace2's none");
    }

    #[test]
    fn times_before_the_origin_have_their_date() {
        let utc = ClockStyle { zone: Zone::Utc, ..ClockStyle::default() };
        for clock in [utc, ClockStyle { date: true, ..utc }] {
            assert_eq!(
                print(clock, &[-4_000_000_000, -1_500_000_000, -1_400_000_000]),
                [
                    "[1969-12-31 23:59:56.000000000] (+?.?????????) ",
                    "[1969-12-31 23:59:58.500000000] (+2.500000000) ",
                    "[1969-12-31 23:59:58.600000000] (+0.100000000) ",
                ]
            );
        }
        assert_eq!(print(utc, &[-500_000_000, 500_000_000])[1], "[00:00:00.500000000] (+1.000000000) ");
    }

    #[test]
    fn stamps_before_the_origin() {
        let clock = ClockStyle { seconds: true, zone: Zone::Utc, ..ClockStyle::default() };
        assert_eq!(
            print(clock, &[-1_500_000_000, i64::MIN, -2]),
            [
                "[-1.500000000] (+?.?????????) ",
                "[-9223372036.854775808] (-9223372035.354775808) ",
                "[-0.000000002] (+9223372036.854775806) "
            ]
        );
    }
}
