//! For tests: compares what we print with what babeltrace2 prints for the same folder and options.
//!
//! One difference is allowed, and only there: for an empty string babeltrace2 2.0.4 prints what an earlier
//! event left in the same memory (it sets the length to 0 and keeps the text). Where we print `""`, any
//! string of its will do.

#![warn(unreachable_pub)]

use std::path::Path;
use std::process::Command;
use tracewing_trace::{Error, FieldStyle, Listing, NameStyle, Recording, Style, UsageFault, Zone};

/// Options worth comparing: each of babeltrace2's, and combinations.
pub const OPTIONS: &[&[&str]] = &[
    &[],
    &["--clock-cycles"],
    &["--clock-seconds"],
    &["--clock-date"],
    &["--clock-gmt"],
    &["--no-delta"],
    &["--clock-date", "--clock-gmt", "--no-delta"],
    &["--clock-cycles", "--clock-seconds", "--clock-date"],
    &["--fields=all"],
    &["--fields=trace"],
    &["--fields=loglevel"],
    &["--fields=trace:hostname,trace:domain"],
    &["--fields=trace:procname,trace:vpid,emf"],
    &["--names=all"],
    &["--names=none"],
    &["--names=header"],
    &["--names=scope"],
    &["--names=context"],
    &["--names=payload"],
    &["--fields=all", "--names=all"],
    &["--fields=all", "--names=header", "--clock-cycles", "--no-delta"],
    &["--fields=trace,loglevel", "--names=scope,header", "--clock-seconds"],
];

/// Whether babeltrace2 is installed; prints a note if not.
pub fn is_available() -> bool {
    let available =
        Command::new("babeltrace2").arg("--version").output().is_ok_and(|output| output.status.success());
    if !available {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    }
    available
}

/// Checks that `tracewing list` and babeltrace2 print the same events and the same losses.
///
/// `options` are babeltrace2's: those of [`OPTIONS`], `--begin=TIME` and `--end=TIME` (which are our `--from`
/// and `--to`). Does nothing where babeltrace2 is not installed.
///
/// # Panics
/// Something differs, or a trace cannot be read. The message shows the first difference.
pub fn assert_same_as_babeltrace2(folder: impl AsRef<Path>, options: &[&str]) {
    let folder = folder.as_ref();
    if !is_available() {
        return;
    }
    let theirs = Command::new("babeltrace2").args(options).arg(folder).output().expect("babeltrace2 runs");
    let theirs_stderr = String::from_utf8_lossy(&theirs.stderr);
    assert!(theirs.status.success(), "babeltrace2 {options:?} {}: {theirs_stderr}", folder.display());
    let mut ours = (Vec::new(), Vec::new());
    let recording = Recording::open(&[folder]).unwrap_or_else(|error| panic!("{error}"));
    let listing = listing(options).unwrap_or_else(|error| panic!("{error}"));
    listing.print(&recording, &mut ours).unwrap_or_else(|error| panic!("{error}"));
    for (what, ours, theirs) in [("events", ours.0, theirs.stdout), ("losses", ours.1, theirs.stderr)] {
        if let Some(difference) = difference(&ours, &theirs) {
            panic!("{what} of {} with {options:?} differ from babeltrace2's{difference}", folder.display());
        }
    }
}

/// A comparison of printed events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// babeltrace2 is not installed, or does not read the trace.
    NoReference,
    /// The same events.
    Same,
    /// Other events; the text says where they first differ, and how.
    Different(String),
}

/// Compares the events that `tracewing list` prints with babeltrace2's.
///
/// # Errors
/// A trace that babeltrace2 reads cannot be read here.
pub fn compare_events(folder: &Path) -> Result<Comparison, Error> {
    let theirs = match Command::new("babeltrace2").arg(folder).output() {
        Ok(theirs) if theirs.status.success() => theirs.stdout,
        _ => return Ok(Comparison::NoReference),
    };
    let mut ours = (Vec::new(), Vec::new());
    Listing::default().print(&Recording::open(&[folder])?, &mut ours)?;
    Ok(difference(&ours.0, &theirs).map_or(Comparison::Same, Comparison::Different))
}

/// [`assert_same_as_babeltrace2`] with all of [`OPTIONS`].
///
/// # Panics
/// As there.
pub fn assert_always_same_as_babeltrace2(folder: impl AsRef<Path>) {
    for options in OPTIONS {
        assert_same_as_babeltrace2(&folder, options);
    }
}

/// The first line that differs.
fn difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    let (mut our_lines, mut their_lines) =
        (ours.split(|byte| *byte == b'\n'), theirs.split(|byte| *byte == b'\n'));
    let mut number = 0;
    loop {
        number += 1;
        match (our_lines.next(), their_lines.next()) {
            (None, None) => return None,
            (Some(ours), Some(theirs))
                if ours == theirs
                    || same_but_for_empty_strings(ours, theirs)
                    || same_but_for_a_counter_that_goes_back(ours, theirs) => {}
            (ours, theirs) => {
                let show = |line: Option<&[u8]>| match line {
                    Some(line) => String::from_utf8_lossy(line).into_owned(),
                    None => "(nothing more)".to_owned(),
                };
                let (ours, theirs) = (show(ours), show(theirs));
                return Some(format!(" in line {number}\n  ours: {ours}\ntheirs: {theirs}"));
            }
        }
    }
}

/// Whether the lines are equal once every `""` of ours stands for any string.
fn same_but_for_empty_strings(ours: &[u8], theirs: &[u8]) -> bool {
    let Some(at) = ours.windows(2).position(|pair| pair == b"\"\"") else { return ours == theirs };
    let (before, after) = (&ours[..=at], &ours[at + 1..]);
    let Some(mut rest) = theirs.strip_prefix(before) else { return false };
    // Their string ends at the first quote that is not escaped.
    loop {
        match rest {
            [b'"', left @ ..] => return same_but_for_empty_strings(&after[1..], left),
            [b'\\', _, left @ ..] => rest = left,
            [_, left @ ..] => rest = left,
            [] => return false,
        }
    }
}

/// Whether both say that a counter of discarded events is lower than before, as LTTng's is now and then. Ours
/// does not know a number; theirs is below zero, without a sign.
fn same_but_for_a_counter_that_goes_back(ours: &[u8], theirs: &[u8]) -> bool {
    let Some(ours) = ours.strip_prefix(b"WARNING: Tracer may have discarded") else { return false };
    let Some(theirs) = theirs.strip_prefix(b"WARNING: Tracer discarded ") else { return false };
    let digits = theirs.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (count, rest) = theirs.split_at(digits);
    let count = str::from_utf8(count).ok().and_then(|count| count.parse::<u64>().ok());
    rest == ours && count.is_some_and(|count| i64::try_from(count).is_err())
}

fn listing(options: &[&str]) -> Result<Listing, Error> {
    let mut listing = Listing::default();
    let Style { clock, delta, names, fields } = &mut listing.style;
    let (mut from, mut to) = (None, None);
    for option in options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let words: Vec<&str> = value.split(',').collect();
        match key {
            "--clock-cycles" => clock.cycles = true,
            "--clock-seconds" => clock.seconds = true,
            "--clock-date" => clock.date = true,
            "--clock-gmt" => clock.zone = Zone::Utc,
            "--no-delta" => *delta = false,
            "--names" => *names = NameStyle::parse(&words)?,
            "--fields" => *fields = FieldStyle::parse(&words)?,
            "--begin" => from = Some(value),
            "--end" => to = Some(value),
            other => return Err(UsageFault::UnknownOption(other.to_owned()).into()),
        }
    }
    listing.filter.zone = listing.style.clock.zone;
    listing.filter.set_range(from, to)?;
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_strings_may_differ() {
        let ours = br#"{ a = "", b = "x", c = "" }"#;
        assert!(same_but_for_empty_strings(ours, br#"{ a = "old \" one", b = "x", c = "" }"#));
        assert!(!same_but_for_empty_strings(ours, br#"{ a = "old", b = "y", c = "" }"#));
        assert!(!same_but_for_empty_strings(ours, br#"{ a = "old", b = "x", c = "" }, more"#));
        assert!(!same_but_for_empty_strings(br#"{ a = "x" }"#, br#"{ a = "" }"#));
    }
    #[test]
    fn a_number_below_zero_is_unknown() {
        let ours = b"WARNING: Tracer may have discarded events between [1] and [2]";
        let theirs = |count| format!("WARNING: Tracer discarded {count} events between [1] and [2]");
        let is_same = |count| same_but_for_a_counter_that_goes_back(ours, theirs(count).as_bytes());
        assert!(is_same(u64::MAX - 2841));
        assert!(!is_same(1) && !is_same(i64::MAX as u64));
        let other = theirs(u64::MAX).replace("[2]", "[3]");
        assert!(!same_but_for_a_counter_that_goes_back(ours, other.as_bytes()));
    }
}
