//! Why there is nothing to print: the recording has no such events, they were lost, or the filter leaves none
//! of them.

use crate::format::TableFormat;
use crate::input::Input;
use crate::losses;
use crate::output::{print_note, print_warning};
use anyhow::Result;
use std::io::Write;
use tracewing_analysis::Ran;
use tracewing_rules::Glob;
use tracewing_trace::{Filter, Losses, Recording, Statistics, described};
use tracewing_units::Timestamp;
use tracewing_vocabulary::{kernel, user_thread};

/// Events without which an analysis finds nothing.
#[derive(Debug, Clone, Copy)]
pub struct Needed {
    /// What they are about, after `events`: `about locks`; empty where any will do.
    pub what: &'static str,
    /// Patterns for their names; one has to fit.
    pub names: &'static [&'static str],
    /// How there would be some.
    pub how: How,
}

/// How there would be events.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// Requires an option of `tracewing record`: which one, and what is missing without it.
    Option(&'static str, &'static str),
    /// Something else, in words.
    Else(&'static str),
}

/// Prints a line below a table for people, otherwise on standard error.
///
/// # Errors
/// It cannot be written.
pub fn say(out: &mut impl Write, format: TableFormat, line: &str) -> Result<()> {
    match format {
        TableFormat::Table => print_note(out, line)?,
        TableFormat::Csv | TableFormat::Json => print_warning(line),
    }
    Ok(())
}

/// The events that show when threads ran.
pub const SWITCHES: Needed = Needed {
    what: "about thread switches",
    names: &[kernel::Switch::NAME],
    how: How::Else("record kernel events, as root"),
};

/// The events of user threads.
pub const TASKS: Needed = Needed {
    what: "about tasks",
    names: &[user_thread::GLOB],
    how: How::Else("record a program whose tasks are instrumented (tracewing-tokio, user_thread)"),
};

/// Whether a folder with events of programs is gone: of what is in none of the others, there may be any
/// number.
///
/// # Errors
/// See [`Input::open`].
pub fn lacks_programs(input: &Input) -> Result<bool> {
    let (recording, _) = input.open()?;
    Ok(recording.gone().iter().any(|trace| trace.name.rsplit('/').next() != Some("kernel")))
}

/// Says of tasks without any name which events have names.
///
/// # Errors
/// See [`Input::open`]; the line cannot be written.
pub fn explain_nameless(out: &mut impl Write, format: TableFormat, input: &Input) -> Result<()> {
    let named = Needed {
        what: "that name tasks",
        names: &[user_thread::Origin::NAME, user_thread::Name::NAME],
        how: How::Else("`tracewing record -e user_thread:create` records them"),
    };
    let (recording, _) = input.open()?;
    let all = named.count(recording, &Filter::default())?;
    match all.events {
        0 => say(out, format, &named.none_recorded(&all, &asked_for(recording))),
        _ => Ok(()),
    }
}

pub const ANY: Needed =
    Needed { what: "", names: &["*"], how: How::Else("nothing happened that it should record") };

/// What is in a recording.
struct Found {
    /// Events that are needed.
    events: u64,
    /// Events of any other name.
    others: u64,
    lost: Losses,
    /// Whether files of it are gone or cut off, or it could not be written to its end.
    is_incomplete: bool,
    /// Whether the recording is an extract of another one.
    is_part: bool,
    /// When the first and the last of all events happened.
    range: Option<(Timestamp, Timestamp)>,
}

impl Needed {
    /// Explains why an analysis has found nothing: below a table for people, otherwise on standard error.
    ///
    /// # Errors
    /// See [`Needed::why_empty`].
    pub fn explain(&self, out: &mut impl Write, format: TableFormat, input: &Input, ran: &Ran) -> Result<()> {
        say(out, format, &self.why_empty(input, ran)?)
    }

    /// The same as one line. The recording is counted once more for that.
    ///
    /// # Errors
    /// See [`Input::open`].
    pub fn why_empty(&self, input: &Input, ran: &Ran) -> Result<String> {
        match ran.stopped || ran.failure.is_some() {
            true => Ok(format!("What was read has no {}.", self.events())),
            false => self.why_empty_in(input),
        }
    }

    /// The same where all of the input was read.
    ///
    /// # Errors
    /// See [`Needed::why_empty`].
    pub fn why_empty_in(&self, input: &Input) -> Result<String> {
        let left = if input.chooses() { " left" } else { "" };
        let missing = || {
            format!("There are {}{left}, but other events that the command needs are missing.", self.events())
        };
        Ok(self.why_no_event(input)?.unwrap_or_else(missing))
    }

    /// Why none of the events is left, if so.
    ///
    /// # Errors
    /// See [`Needed::why_empty`].
    pub fn why_no_event(&self, input: &Input) -> Result<Option<String>> {
        let events_of = self.events();
        let (recording, filter) = input.open()?;
        let all = self.count(recording, &Filter::default())?;
        Ok(match all.events {
            0 => Some(self.none_recorded(&all, &asked_for(recording))),
            events if self.count(recording, &filter)?.events == 0 => {
                let none = format!("The filter leaves out all of the recording's {events} {events_of}.");
                Some(none + &self.none_in_time(&all, recording, filter)?)
            }
            _ => None,
        })
    }

    /// That it is the chosen time that has none of the events, if so.
    fn none_in_time(&self, all: &Found, recording: &Recording, filter: Filter) -> Result<String> {
        let Filter { from, to, zone, .. } = filter;
        let in_time = Filter { from, to, zone, ..Filter::default() };
        if self.count(recording, &in_time)?.events > 0 {
            return Ok(String::new());
        }
        let asked = in_time.range(recording)?;
        Ok(match all.range {
            Some((_, last)) if asked.begin > last => {
                format!(" --from is after the last event ({}).", zone.format(last))
            }
            Some((first, _)) if asked.end < first => {
                format!(" --to is before the first event ({}).", zone.format(first))
            }
            _ => " None of them happened in the chosen time.".to_owned(),
        })
    }

    fn none_lost(&self, asked_for: &[String], is_part: bool) -> String {
        let is_asked = |option| asked_for.iter().any(|asked| asked.split(' ').next() == Some(option));
        let none = format!("The recording has no {}", self.events());
        match self.how {
            _ if is_part => format!("{none}: it is an extract of another one."),
            How::Else(how) => format!("{none}: {how}."),
            How::Option(option, why) if is_asked(option) => {
                format!("{none}, though {option} was given: {why}.")
            }
            How::Option(option, _) => format!("{none}: `tracewing record {option}` records them."),
        }
    }

    fn events(&self) -> String {
        format!("events {}", self.what).trim_end().to_owned()
    }

    fn count(&self, recording: &Recording, filter: &Filter) -> Result<Found> {
        let globs: Vec<Glob> = self.names.iter().map(|name| Glob::new(*name)).collect();
        let counted = Statistics::collect(recording, filter)?;
        let needed = counted.events.iter().filter(|class| globs.iter().any(|glob| glob.matches(&class.name)));
        let events = needed.map(|class| class.count.events).sum();
        Ok(Found {
            events,
            others: counted.total.events - events,
            lost: counted.lost(),
            is_incomplete: !recording.missing().is_empty(),
            is_part: recording.is_extract(),
            range: counted.range,
        })
    }

    fn none_recorded(&self, found: &Found, asked_for: &[String]) -> String {
        let kept = match found.others {
            0 => "The recording has no events at all".to_owned(),
            _ => format!("The recording has no {}", self.events()),
        };
        if found.is_incomplete {
            return format!("{kept}, but part of it is missing.");
        }
        if found.lost.is_nothing() {
            return self.none_lost(asked_for, found.is_part);
        }
        let lost = losses::text(&found.lost);
        format!(
            "{kept}, but {lost} were lost: larger buffers lose fewer (`tracewing record --sub-buffer-size`)."
        )
    }
}

/// The options that the recordings were made with, if they declare them.
fn asked_for(recording: &Recording) -> Vec<String> {
    let all = described(recording);
    let options = all.iter().filter_map(|note| note.get("options")?.as_array()).flatten();
    options.filter_map(|option| Some(option.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_named_where_events_are_missing() {
        let needed = Needed { what: "about locks", names: &["lock:*"], how: How::Option("--locks", "why") };
        let line = |others, least_events, least_packets| {
            let asked_for = ["--locks".to_owned()];
            let has_more_events = least_packets > 0;
            let lost = Losses { least_events, least_packets, has_more_events, ..Losses::default() };
            let found = Found { events: 0, others, lost, is_incomplete: false, is_part: false, range: None };
            needed.none_recorded(&found, &asked_for)
        };
        assert_eq!(line(7, 0, 0), "The recording has no events about locks, though --locks was given: why.");
        let text = line(7, 3, 0);
        assert!(
            text.starts_with("The recording has no events about locks, but 3 events were lost"),
            "{text}"
        );
        let text = line(0, 3, 2);
        assert!(
            text.starts_with("The recording has no events at all, but at least 3 events and 2 packets"),
            "{text}"
        );
    }
}
