//! A value, and how each format shows it.

use crate::output::shown;
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::io::{Result as IoResult, Write};
use tracewing_trace::Zone;
use tracewing_units::{Cpu, Duration, Pid, Task, Tid, Timestamp};
use unicode_width::UnicodeWidthStr;

/// A value of a table, and how it is printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value: `-` in text, empty in CSV, null in JSON.
    None,
    /// There is none in this row, and another one has it: text is blank.
    Blank,
    /// A text, which may come from a trace: it is made harmless for a terminal.
    Text(String),
    /// A number without a unit.
    Count(u64),
    /// A number of a summary, shown with separators between its thousands. Numbers in other tables have none,
    /// so that they can be copied into the next command.
    Total(u64),
    /// A number that may be negative.
    Number(i64),
    /// A duration, printed in ms; in ns in CSV and JSON.
    Ns(Duration),
    /// A moment, shown as the time of day in a zone.
    Time(Timestamp, Zone),
    /// A period that may be short: it is shown with the unit that suits it.
    Period(Duration),
    /// By how much a period is longer than another, in nanoseconds.
    Longer(i64),
    /// A figure that is shown with one decimal.
    Rate(f64),
    /// A part of 1, shown in %.
    Share(f64),
    /// What makes up a sum of periods, the greatest first; parts without a name are of unknown origin.
    Parts(Box<[(Option<String>, Duration)]>),
    /// A lower bound of a number that is unknown. CSV and JSON have no value: another column has the bound.
    AtLeast(u64),
    /// A size in bytes, shown with the unit that suits it.
    Bytes(u64),
    /// A list: JSON has each member with its structure, other formats one text.
    List(Box<List>),
}

// All cells of a table are in memory while it is printed.
const _: () = assert!(size_of::<Cell>() <= 24);

/// What a list is in text, and in JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    text: String,
    members: serde_json::Value,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<Tid> for Cell {
    fn from(Tid(number): Tid) -> Self {
        Cell::Number(number.into())
    }
}

impl From<Pid> for Cell {
    fn from(Pid(number): Pid) -> Self {
        Cell::Number(number.into())
    }
}

impl From<Option<Tid>> for Cell {
    fn from(tid: Option<Tid>) -> Self {
        tid.map_or(Cell::None, Cell::from)
    }
}

impl From<Option<Pid>> for Cell {
    fn from(pid: Option<Pid>) -> Self {
        pid.map_or(Cell::None, Cell::from)
    }
}

impl From<Option<Task>> for Cell {
    fn from(task: Option<Task>) -> Self {
        Cell::count(task.map(|Task(number)| number))
    }
}

impl From<Option<Cpu>> for Cell {
    fn from(cpu: Option<Cpu>) -> Self {
        Cell::count(cpu.map(|Cpu(number)| number.into()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl Cell {
    /// A list with this text.
    pub fn list(text: String, members: serde_json::Value) -> Self {
        Cell::List(Box::new(List { text, members }))
    }

    /// A period, where it is known.
    pub fn ns(ns: Option<Duration>) -> Self {
        ns.map_or(Cell::None, Cell::Ns)
    }

    /// A period that may be short, where it is known.
    pub fn period(ns: Option<Duration>) -> Self {
        ns.map_or(Cell::None, Cell::Period)
    }

    /// A number, where it is known.
    pub fn count(count: Option<u64>) -> Self {
        count.map_or(Cell::None, Cell::Count)
    }

    /// A period, if such events were recorded: else it is not 0, but not known.
    pub fn ns_if(is_recorded: bool, ns: Duration) -> Self {
        if is_recorded { Cell::Ns(ns) } else { Cell::None }
    }

    /// A number of events, if such were recorded: else it is not 0, but not known.
    pub fn count_if(is_recorded: bool, count: u64) -> Self {
        if is_recorded { Cell::Count(count) } else { Cell::None }
    }

    /// A number of events, some of which may be lost: 0 of those that are left says nothing.
    pub fn least(is_lossy: bool, count: u64) -> Self {
        if is_lossy && count == 0 { Cell::None } else { Cell::Count(count) }
    }

    /// As a table shows it.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        match self {
            Cell::None => "-".into(),
            Cell::Blank => "".into(),
            Cell::Text(text) => shown(text),
            Cell::Count(count) => count.to_string().into(),
            Cell::Total(count) => number(*count).into(),
            Cell::Number(number) => number.to_string().into(),
            Cell::Ns(ns) => milliseconds(*ns).into(),
            Cell::Time(time, zone) => {
                let date = zone.format(*time);
                date.rsplit_once(' ').map_or(date.clone(), |(_, time)| time.to_owned()).into()
            }
            Cell::Period(ns) => period(*ns).into(),
            Cell::Longer(ns) => {
                format!("{}{}", if *ns < 0 { '-' } else { '+' }, period(Duration::from_ns(ns.unsigned_abs())))
                    .into()
            }
            Cell::Rate(rate) => format!("{rate:.1}").into(),
            Cell::Share(share) => format!("{} %", share * 100.0).into(),
            Cell::Parts(parts) => {
                parts.first().map_or("".into(), |(name, _)| name.as_deref().map_or("?".into(), shown))
            }
            Cell::AtLeast(0) => "unknown".into(),
            Cell::AtLeast(count) => (number(*count) + "+").into(),
            Cell::Bytes(count) => bytes(*count).into(),
            Cell::List(list) => shown(&list.text),
        }
    }

    /// Appends it as a table shows it.
    pub(super) fn show(&self, line: &mut String) {
        // A `String` takes everything.
        let _ = match self {
            Cell::Count(count) => write!(line, "{count}"),
            Cell::Number(number) => write!(line, "{number}"),
            Cell::Ns(ns) => write!(line, "{}", Milliseconds(*ns)),
            _ => line.write_str(&self.shown()),
        };
    }

    /// How wide a table shows it, in characters. Of many rows it is asked twice, so numbers and times are not
    /// written for it.
    pub(super) fn width(&self) -> usize {
        let digits = |number: u64| number.checked_ilog10().unwrap_or(0) as usize + 1;
        match self {
            Cell::None => 1,
            Cell::Count(count) => digits(*count),
            Cell::Number(number) => digits(number.unsigned_abs()) + usize::from(*number < 0),
            Cell::Ns(Duration::MAX) => "unknown".len(),
            Cell::Ns(ns) => digits(ns.as_ns() / 1_000_000) + ".000".len(),
            Cell::Time(..) => "00:00:00.000000000".len(),
            _ => self.shown().width(),
        }
    }

    /// As a value of a line of CSV (RFC 4180).
    pub(super) fn write_csv(&self, out: &mut impl Write) -> IoResult<()> {
        match self {
            Cell::None | Cell::Blank | Cell::AtLeast(_) => Ok(()),
            Cell::Text(text) => write_quoted(out, text),
            Cell::List(list) => write_quoted(out, &list.text),
            Cell::Count(count) | Cell::Total(count) | Cell::Bytes(count) => {
                write!(out, "{count}")
            }
            Cell::Ns(period) | Cell::Period(period) => write!(out, "{}", period.as_ns()),
            Cell::Number(number) | Cell::Longer(number) => write!(out, "{number}"),
            Cell::Time(time, _) => write!(out, "{}", time.as_ns()),
            Cell::Rate(rate) | Cell::Share(rate) => write!(out, "{rate}"),
            Cell::Parts(parts) => {
                let part = |(name, period): &(Option<String>, Duration)| {
                    format!("{}={}", name.as_deref().unwrap_or("?"), period.as_ns())
                };
                write_quoted(out, &parts.iter().map(part).collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// Which comes first: texts alphabetically, the largest figures; what is not there is last.
    pub(super) fn compare(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::List(a), Cell::List(b)) => a.text.cmp(&b.text),
            (Cell::Rate(a), Cell::Rate(b)) | (Cell::Share(a), Cell::Share(b)) => b.total_cmp(a),
            _ => other.rank().cmp(&self.rank()),
        }
    }

    fn rank(&self) -> Option<i128> {
        match self {
            Cell::None | Cell::Blank => None,
            Cell::Text(_) | Cell::List(_) => Some(i128::MAX),
            Cell::Count(count) | Cell::Total(count) | Cell::AtLeast(count) | Cell::Bytes(count) => {
                Some((*count).into())
            }
            Cell::Ns(period) | Cell::Period(period) => Some(period.as_ns().into()),
            Cell::Number(number) | Cell::Longer(number) => Some((*number).into()),
            Cell::Time(time, _) => Some(time.as_ns().into()),
            // Compared above; other figures are not in its column.
            Cell::Rate(rate) | Cell::Share(rate) => Some(*rate as i128),
            Cell::Parts(parts) => Some(parts.iter().map(|(_, period)| i128::from(period.as_ns())).sum()),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::None | Cell::Blank | Cell::AtLeast(_) => serializer.serialize_none(),
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Count(count) | Cell::Total(count) | Cell::Bytes(count) => serializer.serialize_u64(*count),
            Cell::Ns(period) | Cell::Period(period) => period.serialize(serializer),
            Cell::List(list) => list.members.serialize(serializer),
            Cell::Number(number) | Cell::Longer(number) => serializer.serialize_i64(*number),
            Cell::Time(time, _) => time.serialize(serializer),
            Cell::Rate(rate) | Cell::Share(rate) => serializer.serialize_f64(*rate),
            Cell::Parts(parts) => {
                serializer.collect_seq(parts.iter().map(|(on, ns)| serde_json::json!({ "on": on, "ns": ns })))
            }
        }
    }
}

fn write_quoted(out: &mut impl Write, text: &str) -> IoResult<()> {
    match text.contains(['"', ',', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}

/// A number with separators between its thousands.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds with all nine digits.
pub fn seconds(period: Duration) -> String {
    let ns = period.as_ns();
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Milliseconds with three digits; a sum that no number holds is unknown.
pub fn milliseconds(period: Duration) -> String {
    Milliseconds(period).to_string()
}

struct Milliseconds(Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ns() {
            u64::MAX => f.write_str("unknown"),
            ns => write!(f, "{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000),
        }
    }
}

/// A period as a figure of three digits or more with its unit.
pub fn period(period: Duration) -> String {
    let ns = period.as_ns();
    let unit = |divisor: u64, unit: &str| {
        let digits = match ns / divisor {
            ..10 => 2,
            10..100 => 1,
            100.. => 0,
        };
        format!("{:.digits$} {unit}", ns as f64 / divisor as f64)
    };
    match ns {
        u64::MAX => "unknown".to_owned(),
        ..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => unit(1_000, "µs"),
        1_000_000..1_000_000_000 => unit(1_000_000, "ms"),
        1_000_000_000.. => unit(1_000_000_000, "s"),
    }
}

/// A size in the unit that gives one to four digits.
pub fn bytes(count: u64) -> String {
    let mut size = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}
