//! The time range that a user requests: parses its ends, and decides what lies in it.

use crate::time::zone::{Civil, Zone};
use crate::{Error, UsageFault};
use tracewing_rules::Glob;
use tracewing_units::{Duration, Timestamp};

const NS_PER_S: i64 = 1_000_000_000;

/// One end of a range, as a user gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimePoint {
    /// A moment on the recording's clock.
    Absolute(Timestamp),
    /// So long after midnight on the day on which the trace begins.
    TimeOfDay(Duration),
    /// So long after the trace's beginning.
    FromBegin(Duration),
    /// When an event of such a name occurs.
    Occurrence {
        /// Pattern for the event's name.
        event: Glob,
        /// For which time since the trace's beginning, from 1 on.
        number: u64,
    },
}

impl TimePoint {
    /// Reads what a user writes; civil time is in `zone` unless it names its own.
    ///
    /// | form | example |
    /// |---|---|
    /// | after the beginning | `+1.5s`, `+200ms`, `+10us`, `+5ns`, `+2min`, `+1h`, `+0.25` (seconds) |
    /// | date and time | `2026-11-21 04:25`, `2026-11-21 04:25:40.5`, `2026-11-21T04:25:40Z`, `…+02:00` |
    /// | date | `2026-11-21` (its midnight) |
    /// | time on the day of the beginning | `04:25`, `04:25:40.934685633` |
    /// | seconds since the origin | `1795235140.934685633`, `-3.5` |
    /// | third event of a name, or of names that match | `shop:served#3`, `shop:*#3` |
    ///
    /// # Errors
    /// [`Error::Usage`] where the text has none of these forms.
    pub fn parse(text: &str, zone: Zone) -> Result<Self, Error> {
        let trimmed = text.trim();
        parse(trimmed, zone).ok_or_else(|| UsageFault::NoTime(text.to_owned()).into())
    }

    /// The moment in a trace that begins at `begin`. An occurrence has been replaced by its time.
    ///
    /// # Errors
    /// [`Error::Usage`] where 64 bits cannot hold it.
    pub fn resolve(&self, begin: Timestamp, zone: Zone) -> Result<Timestamp, Error> {
        let point = match *self {
            TimePoint::Occurrence { .. } => None,
            TimePoint::Absolute(time) => Some(time),
            TimePoint::FromBegin(after) => begin.checked_add(after),
            TimePoint::TimeOfDay(after) => zone
                .civil(begin.as_seconds().0)
                .and_then(|civil| {
                    let second = after.as_ns() / NS_PER_S as u64;
                    zone.seconds(Civil {
                        hour: (second / 3600) as u32,
                        minute: (second / 60 % 60) as u32,
                        second: (second % 60) as u32,
                        ..civil
                    })
                })
                .and_then(|seconds| {
                    let second = Timestamp::from_ns(seconds.checked_mul(NS_PER_S)?);
                    second.checked_add(Duration::from_ns(after.as_ns() % NS_PER_S as u64))
                }),
        };
        point.ok_or_else(|| UsageFault::OutsideClock.into())
    }
}

fn parse(text: &str, zone: Zone) -> Option<TimePoint> {
    if let Some((event, number)) = text.rsplit_once('#') {
        let number = parse_digits(number, 1, 18).filter(|number| *number > 0 && !event.is_empty())?;
        return Some(TimePoint::Occurrence { event: Glob::new(event), number: number.unsigned_abs() });
    }
    if let Some(duration) = text.strip_prefix('+') {
        return parse_duration(duration).map(TimePoint::FromBegin);
    }
    let bytes = text.as_bytes();
    if bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && text.is_char_boundary(10) {
        let date = parse_date(&text[..10])?;
        let rest = &text[10..];
        if rest.is_empty() {
            return absolute(zone.seconds(date)?, 0);
        }
        let (time, offset) = split_offset(rest.strip_prefix([' ', 'T'])?)?;
        let (hour, minute, second, ns) = parse_time(time)?;
        let civil = Civil { hour, minute, second, ..date };
        return match offset {
            Some(offset) => absolute(Zone::Utc.seconds(civil)?.checked_sub(offset)?, ns),
            None => absolute(zone.seconds(civil)?, ns),
        };
    }
    if text.contains(':') {
        let (hour, minute, second, ns) = parse_time(text)?;
        let seconds = i64::from(hour * 3600 + minute * 60 + second);
        return Some(TimePoint::TimeOfDay(Duration::from_ns((seconds * NS_PER_S + ns).unsigned_abs())));
    }
    match text.strip_prefix('-') {
        Some(rest) => parse_scaled(rest, NS_PER_S).map(|ns| TimePoint::Absolute(Timestamp::from_ns(-ns))),
        None => parse_scaled(text, NS_PER_S).map(|ns| TimePoint::Absolute(Timestamp::from_ns(ns))),
    }
}

fn absolute(seconds: i64, ns: i64) -> Option<TimePoint> {
    // The first second that 64 bits can hold begins before them.
    let ns = i128::from(seconds) * i128::from(NS_PER_S) + i128::from(ns);
    Some(TimePoint::Absolute(Timestamp::from_ns(ns.try_into().ok()?)))
}

/// Parses a duration such as `1.5s`, `200ms`, `10us`, `5ns`, `2min`, `1h` or `0.25` (seconds); `None` if the
/// text is invalid.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let unit = match text[digits..].trim_start() {
        "" | "s" => NS_PER_S,
        "ms" => 1_000_000,
        "us" | "µs" => 1_000,
        "ns" => 1,
        "m" | "min" => 60 * NS_PER_S,
        "h" => 3600 * NS_PER_S,
        _ => return None,
    };
    parse_scaled(&text[..digits], unit).map(|ns| Duration::from_ns(ns.unsigned_abs()))
}

/// A decimal number with at most nine digits after the point, times `unit`.
fn parse_scaled(text: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = parse_digits(whole, 1, 19)?.checked_mul(unit)?;
    let fraction = match text.contains('.') {
        true => i128::from(parse_fraction(fraction)?) * i128::from(unit) / i128::from(NS_PER_S),
        false => 0,
    };
    whole.checked_add(i64::try_from(fraction).ok()?)
}

/// One to nine digits after the point, as nanoseconds.
fn parse_fraction(text: &str) -> Option<i64> {
    Some(parse_digits(text, 1, 9)? * 10_i64.pow(9 - text.len() as u32))
}

fn parse_digits(text: &str, least: usize, most: usize) -> Option<i64> {
    let fits = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

fn parse_date(text: &str) -> Option<Civil> {
    let two = |text: &str| parse_digits(text, 2, 2).map(|number| number as u32);
    let (month, day) = (two(text.get(5..7)?)?, two(text.get(8..10)?)?);
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    valid.then_some(Civil { year: parse_digits(text.get(..4)?, 4, 4)?, month, day, ..Civil::default() })
}

/// `hh:mm[:ss[.fraction]]`: hour, minute, second, nanosecond.
fn parse_time(text: &str) -> Option<(u32, u32, u32, i64)> {
    let two = |text: &str, below: i64| {
        parse_digits(text, 2, 2).filter(|number| *number < below).map(|number| number as u32)
    };
    let mut parts = text.splitn(3, ':');
    let (hour, minute) = (two(parts.next()?, 24)?, two(parts.next()?, 60)?);
    let Some(seconds) = parts.next() else { return Some((hour, minute, 0, 0)) };
    match seconds.split_once('.') {
        Some((second, fraction)) => Some((hour, minute, two(second, 61)?, parse_fraction(fraction)?)),
        None => Some((hour, minute, two(seconds, 61)?, 0)),
    }
}

/// Splits `Z` or `±hh[:]mm` off; the offset is in seconds east of Greenwich.
fn split_offset(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, Some(0)));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, None)) };
    let digits = text[at + 1..].replacen(':', "", 1);
    let number = parse_digits(&digits, 4, 4)?;
    let offset = number / 100 * 3600 + number % 100 * 60;
    Some((&text[..at], Some(if text[at..].starts_with('-') { -offset } else { offset })))
}

/// A range of time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The first nanosecond in it.
    pub begin: Timestamp,
    /// The last nanosecond in it.
    pub end: Timestamp,
}

impl TimeRange {
    /// Every time that a stamp can have: leaves out nothing.
    pub const ALL: TimeRange = TimeRange { begin: Timestamp::MIN, end: Timestamp::MAX };

    /// The range between two points, in a trace that begins at `trace_begin`; an end that is not given is
    /// open.
    ///
    /// # Errors
    /// [`Error::Usage`] where a point cannot be represented or the range ends before it begins.
    pub fn between(
        from: Option<&TimePoint>,
        to: Option<&TimePoint>,
        trace_begin: Timestamp,
        zone: Zone,
    ) -> Result<Self, Error> {
        let resolve = |point: Option<&TimePoint>, open: Timestamp| match point {
            Some(point) => point.resolve(trace_begin, zone),
            None => Ok(open),
        };
        let range = TimeRange { begin: resolve(from, Timestamp::MIN)?, end: resolve(to, Timestamp::MAX)? };
        if range.begin > range.end {
            return Err(UsageFault::EndBeforeBegin.into());
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let ns = |ns: i64| Duration::from_ns(ns.unsigned_abs());
        let cases = [
            ("+1.5s", TimePoint::FromBegin(ns(1_500_000_000))),
            ("+200ms", TimePoint::FromBegin(ns(200_000_000))),
            ("+1.25us", TimePoint::FromBegin(ns(1250))),
            ("+7 ns", TimePoint::FromBegin(ns(7))),
            ("+2min", TimePoint::FromBegin(ns(120 * NS_PER_S))),
            ("+1h", TimePoint::FromBegin(ns(3600 * NS_PER_S))),
            ("+0.25", TimePoint::FromBegin(ns(250_000_000))),
            ("2026-11-21 04:25", TimePoint::Absolute(Timestamp::from_ns(1_795_235_100 * NS_PER_S))),
            (
                "2026-11-21 04:25:40.5",
                TimePoint::Absolute(Timestamp::from_ns(1_795_235_140 * NS_PER_S + 500_000_000)),
            ),
            ("2026-11-21T04:25:40Z", TimePoint::Absolute(Timestamp::from_ns(1_795_235_140 * NS_PER_S))),
            ("2026-11-21T06:25:40+02:00", TimePoint::Absolute(Timestamp::from_ns(1_795_235_140 * NS_PER_S))),
            ("2026-11-20T23:25:40-0500", TimePoint::Absolute(Timestamp::from_ns(1_795_235_140 * NS_PER_S))),
            ("2026-11-21", TimePoint::Absolute(Timestamp::from_ns(1_795_219_200 * NS_PER_S))),
            ("04:25", TimePoint::TimeOfDay(ns(15_900 * NS_PER_S))),
            ("04:25:40.000000001", TimePoint::TimeOfDay(ns(15_940 * NS_PER_S + 1))),
            ("1795235140.934685633", TimePoint::Absolute(Timestamp::from_ns(1_795_235_140_934_685_633))),
            ("-3.5", TimePoint::Absolute(Timestamp::from_ns(-3_500_000_000))),
            ("shop:*#12", TimePoint::Occurrence { event: Glob::new("shop:*"), number: 12 }),
        ];
        for (text, expected) in cases {
            assert_eq!(TimePoint::parse(text, Zone::Utc).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn reads_what_is_printed() {
        for ns in [i64::MIN, -4_000_000_000, -1_000_000_001, -1_000_000_000, -999_999_999, -1, 0, 1, i64::MAX]
        {
            let time = Timestamp::from_ns(ns);
            for zone in [Zone::Utc, Zone::Local] {
                let text = zone.format(time);
                assert_eq!(TimePoint::parse(&text, zone).ok(), Some(TimePoint::Absolute(time)), "{text}");
            }
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "+",
            "+1x",
            "+-1s",
            "1.",
            ".5",
            "1e3",
            "24:00",
            "12:60",
            "1:2",
            "12:30:",
            "2026-13-01",
            "2026-11-21x",
            "2026-11-21T04:25+2",
            "99999999999999999999",
            "1.0000000001",
            "noon",
            "#3",
            "shop:served#0",
            "shop:served#+1",
            "shop:served#",
            "é",
            "2026-11-2é",
        ] {
            assert!(TimePoint::parse(text, Zone::Utc).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_are_resolved_from_the_begin() {
        let begin = Timestamp::from_ns(1_795_235_140 * NS_PER_S + 7);
        let point = |text| Some(TimePoint::parse(text, Zone::Utc).unwrap());
        let range =
            TimeRange::between(point("+1s").as_ref(), point("04:25:42").as_ref(), begin, Zone::Utc).unwrap();
        assert_eq!(
            range,
            TimeRange {
                begin: begin + Duration::from_ns(NS_PER_S as u64),
                end: Timestamp::from_ns(1_795_235_142 * NS_PER_S),
            }
        );
        assert!(TimeRange::between(point("+2s").as_ref(), point("+1s").as_ref(), begin, Zone::Utc).is_err());
        assert!(
            TimeRange::between(
                point("+9000000000").as_ref(),
                None,
                Timestamp::from_ns(i64::MAX - 5),
                Zone::Utc
            )
            .is_err()
        );
    }
}
