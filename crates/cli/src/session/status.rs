//! `tracewing session status`: what the channels of sessions record, as a table.

use super::definition::{Definition, parse_word};
use super::earlier::{self, Removed};
use super::ended;
use super::recorders::{self, Found};
use super::store::Store;
use crate::format::TableFormat;
use crate::output::print_warning;
use crate::owner::{no_answer, not_asked};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, TableOptions, columns, heads};
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;
use tracewing_abi::message::snapshot::{Commands, KernelBuffers};
use tracewing_session::MOST_RECORDERS;
use tracewing_session::running::{Recordings, Running, Silent};
use tracewing_units::{Duration as Nanoseconds, Pid};

/// Time between the two looks that a rate takes.
const BRIEFLY: Duration = Duration::from_millis(200);
/// Time between two tables.
const PERIOD: Duration = Duration::from_secs(1);
const CLEAR: &str = "\x1b[H\x1b[J";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  tracewing session status
      of all sessions, and of recordings that are of none
  tracewing session status web --watch
      every second, until Ctrl-C
{}", reference::help(&views())))]
pub struct Args {
    /// The session [default: all, and other recordings]
    #[arg(value_name = "SESSION", value_parser = parse_word)]
    session: Option<String>,

    /// Print the table again every second, and warnings when they come up
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    table: TableOptions,
}

/// A channel, and its recorder if it has one; or a recording that is of no session.
struct Row {
    /// Empty for a recording that is of no session.
    session: String,
    /// The name of the channel; of a recording that is of no session, its name, or its command.
    channel: String,
    is_trigger: bool,
    /// Whether it is a trigger that the recorders of channels have, and one of these runs.
    is_watched: bool,
    running: Option<Running>,
    /// What may be its recorder, and does not answer.
    silent: Option<Silent>,
    /// Why it is unknown whether it has a recorder.
    unknown: Option<String>,
    /// Why its recorder has ended by itself.
    ended: Option<String>,
    /// Whether programs that start now do not join its recorder, since they join too many others before it.
    is_crowded_out: bool,
    /// What was removed of the channel's earlier recorders since the session was started; `None` if that is
    /// unknown.
    earlier: Option<Removed>,
    /// Events since an earlier look, and the time since then in seconds.
    since: Option<(u64, f64)>,
}

impl Row {
    fn of_no_session(running: &Running) -> Self {
        let channel = if running.name.is_empty() { &running.command } else { &running.name };
        Self {
            session: String::new(),
            channel: channel.clone(),
            is_trigger: false,
            is_watched: false,
            is_crowded_out: running.is_crowded_out(),
            running: Some(running.clone()),
            silent: None,
            unknown: None,
            ended: None,
            earlier: Some(Removed::default()),
            since: None,
        }
    }

    fn state(&self) -> &'static str {
        match &self.running {
            None if self.silent.is_some() => "does not answer",
            None if self.unknown.is_some() => "unknown",
            None if self.ended.is_some() => "ended",
            None if self.is_watched => "trigger",
            None => "stopped",
            Some(_) if self.is_trigger => "trigger",
            Some(running) if running.figures.is_paused => "paused",
            Some(running) if running.is_flight_recorder => "flight recorder",
            Some(_) => "recording",
        }
    }

    fn pid(&self) -> Option<Pid> {
        let running = self.running.as_ref().map(|one| one.pid);
        running.or(self.silent.as_ref().map(|one| one.pid)).map(|pid| Pid(pid.0))
    }

    fn figure(&self, figure: impl FnOnce(&Running) -> Cell) -> Cell {
        self.running.as_ref().map_or(Cell::None, figure)
    }
}

impl Row {
    fn command(&self, figure: fn(&Commands) -> u64) -> Cell {
        let commands = self.running.as_ref().and_then(|one| one.figures.commands);
        commands.map_or(Cell::None, |commands| Cell::Count(figure(&commands)))
    }

    fn kernel(&self, figure: fn(&KernelBuffers) -> Cell) -> Cell {
        let kernel = self.running.as_ref().map(|one| &one.figures.kernel);
        kernel.filter(|kernel| kernel.sub_buffers > 0).map_or(Cell::None, figure)
    }
}

fn columns() -> Vec<Column<Row>> {
    let mut columns = columns! { row: Row;
        text "session" "session" key, "name of the session; none of other recordings, which are shown without SESSION"
            => if row.session.is_empty() { Cell::None } else { row.session.as_str().into() };
        text "channel" "channel" key, "name of the channel or the trigger; of other recordings, their name or command"
            => row.channel.as_str().into();
        text "state" "state" key, "recording, paused, flight recorder, trigger, stopped, ended (by itself), does not answer, or unknown" => row.state().into();
        number "recorder" "recorder" low, "process id of the channel's recorder"
            => row.pid().into();
        period "since" "elapsed" normal, "time since it was started"
            => row.figure(|one| Cell::Period(Nanoseconds::from_ns(one.figures.elapsed)));
        number "programs" "programs" normal, "programs that take part at present"
            => row.figure(|one| Cell::Count(one.figures.programs.into()));
        number "events" "events" high, "events written so far; none of a flight recorder's before a snapshot"
            => row.figure(|one| Cell::Total(one.figures.events));
        rate "events/s" "per_second" high, "events per second, since the last look"
            => row.since.map_or(Cell::None, |(events, seconds)| Cell::Rate(events as f64 / seconds));
        number "lost" "lost" high, "events lost; at least so many if more may be lost"
            => row.figure(|one| match one.figures.is_lost_unknown {
                true => Cell::AtLeast(one.figures.lost),
                false => Cell::Total(one.figures.lost),
            });
        size "size" "bytes" normal, "bytes written so far" => row.figure(|one| Cell::Bytes(one.figures.bytes));
        number "removed" "removed" low, "archives or snapshots that were removed: for want of room, or by clear"
            => row.figure(|one| match row.earlier {
                Some(earlier) => Cell::Count(one.figures.removed.count + earlier.count),
                None => Cell::AtLeast(one.figures.removed.count),
            });
        number "removed events" "removed_events" low, "events in those that were removed"
            => row.figure(|one| match (one.figures.removed.events, row.earlier) {
                (events, Some(earlier)) if !earlier.has_more => Cell::Total(events + earlier.events),
                (events, earlier) => Cell::AtLeast(events + earlier.map_or(0, |earlier| earlier.events)),
            });
        size "removed size" "removed_bytes" low, "size of those that were removed"
            => row.figure(|one| {
                row.earlier.map_or(Cell::None, |earlier| Cell::Bytes(one.figures.removed.bytes + earlier.bytes))
            });
        number "archives run" "on_archive_run" low, "archives for which the command of --on-archive has ended"
            => row.command(|command| command.run);
        number "run failed" "on_archive_failed" low, "for how many of these it has failed" => row.command(|it| it.failed);
        number "run skipped" "on_archive_skipped" low, "archives that were removed before it was run for them"
            => row.command(|command| command.skipped);
        number "to run" "on_archive_waiting" low, "for how many it is still to be run" => row.command(|it| it.waiting);
    };
    columns.extend(more_columns());
    columns
}

/// Those after what was recorded: buffers, limits, and why something is as it is.
fn more_columns() -> Vec<Column<Row>> {
    columns! { row: Row;
        share "full" "fullest" normal, "how full the fullest buffer was at the last look at it"
            => row.figure(|one| Cell::Share(f64::from(one.figures.fullest) / 100.0));
        number "kernel buffers" "kernel_sub_buffers" low,
            "sub-buffers that the kernel has for each CPU, if events of the kernel are recorded"
            => row.kernel(|kernel| Cell::Count(kernel.sub_buffers.into()));
        size "of size" "kernel_sub_buffer_bytes" low, "size of such a sub-buffer, as the kernel has made it"
            => row.kernel(|kernel| Cell::Bytes(kernel.sub_buffer_bytes.into()));
        text "when full" "kernel_on_full" low, "what a full buffer of the kernel loses: discard, the new event, or overwrite, its oldest sub-buffer"
            => row.kernel(|kernel| if kernel.overwrites { "overwrite" } else { "discard" }.into());
        number "snapshots" "snapshots" low, "snapshots so far" => row.figure(|one| Cell::Count(one.figures.snapshots.into()));
        number "notes left out" "notes_left_out" low, "notes that found no room, or that processes cause beyond what they may, and that are only counted"
            => row.figure(|one| Cell::Count(one.figures.left_out.notes));
        number "unlisted" "unlisted" low, "times that a program has joined that is not listed, since there are too many"
            => row.figure(|one| Cell::Count(one.figures.left_out.programs));
        text "new programs" "new_programs" low, "crowded out, if programs that start now are not recorded since they join too many recordings of root first"
            => if row.is_crowded_out { "crowded out".into() } else { Cell::None };
        text "folder" "folder" low, "the folder that it writes to"
            => row.figure(|one| one.output.to_string_lossy().as_ref().into());
        text "why" "why" low, "why its recorder has ended by itself, in the recorder's words, or why it is unknown"
            => row.ended.as_deref().or(row.unknown.as_deref()).map_or(Cell::None, Into::into);
    }
}

pub fn views() -> Vec<View> {
    vec![View::new("session status", heads(columns()))]
}

pub fn run(store: &Store, args: &Args) -> Result<ExitCode> {
    let (sessions, others, is_whole) = match &args.session {
        Some(name) => (vec![store.get(name)?], Others::LeftOut, true),
        None => {
            let (all, is_whole) = store.all()?;
            (all, Others::Shown, is_whole)
        }
    };
    let status = print(store, &sessions, others, &args.table, args.watch)?;
    Ok(if is_whole { status } else { ExitCode::FAILURE })
}

/// Whether recordings that are of no session are shown, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    Shown,
    LeftOut,
}

/// Prints what the channels of these sessions do: once, or every second.
pub fn print(
    store: &Store,
    sessions: &[Definition],
    others: Others,
    table: &TableOptions,
    watch: bool,
) -> Result<ExitCode> {
    let layout = table.layout(&columns())?;
    let format = table.format();
    let mut before = rows(store, sessions, others);
    let (mut pause, mut said) = (BRIEFLY, BTreeSet::new());
    let clears = watch && format == TableFormat::Table && std::io::stdout().is_terminal();
    loop {
        sleep(pause);
        let mut now = rows(store, sessions, others);
        now.iter_mut().for_each(|row| row.since = since(row, &before));
        let mut out = screen::stdout(format.into());
        if clears {
            out.write_all(CLEAR.as_bytes())?;
        }
        layout.table(&now).write(&mut out, format, ("channels", &[]), |_| Ok(()))?;
        out.flush()?;
        let (complaints, status) = complaints(&now);
        // Those that stay are said once, unless the screen was cleared.
        complaints.iter().filter(|line| clears || !said.contains(*line)).for_each(|line| print_warning(line));
        if !watch {
            return Ok(status);
        }
        said = complaints.into_iter().collect();
        (before, pause) = (now, PERIOD);
    }
}

/// Which recorders do not answer, could not be asked, or have ended by themselves: if there are any, with a
/// status of failure; and of which programs that start now are not recorded.
fn complaints(rows: &[Row]) -> (Vec<String>, ExitCode) {
    let (mut lines, mut status) = (Vec::new(), ExitCode::SUCCESS);
    for row in rows {
        let called = || match row.session.is_empty() {
            true => row.channel.clone(),
            false => recorders::called(&row.session, &row.channel),
        };
        let fault = match row {
            Row { silent: Some(silent), .. } => Some(no_answer(silent).to_string()),
            Row { ended: Some(why), .. } => Some(format!("{} has ended: {why}", called())),
            Row { unknown: Some(why), .. } => Some(format!("{}: {why}", row.session)),
            _ => None,
        };
        if fault.is_some() {
            status = ExitCode::FAILURE;
        }
        // Why it is unknown is said once for all channels of a session.
        lines.extend(fault.filter(|line| !lines.contains(line)));
        let commands = row.running.as_ref().and_then(|one| one.figures.commands);
        if let Some(Commands { skipped: 1.., .. }) = commands {
            lines.push(format!(
                "{}: archives were removed before the command of --on-archive was run for them: it is too slow, or \
                 hangs (see the columns on_archive_run, on_archive_failed, on_archive_skipped and on_archive_waiting)",
                called()
            ));
        }
        if row.is_crowded_out {
            lines.push(format!(
                "{} does not record programs that start now: they join {MOST_RECORDERS} recordings at most, and \
                 first those of root",
                called()
            ));
        }
    }
    (lines, status)
}

fn rows(store: &Store, sessions: &[Definition], others: Others) -> Vec<Row> {
    // A recorder that is just beginning or ending has not ended by itself.
    let locked = store.try_lock();
    let recordings = Recordings::find();
    let mut rows = Vec::new();
    for definition in sessions {
        let found = Found::of(definition, &recordings);
        let unknown = not_asked(&found.unseen).map(|why| why.to_string());
        let removed = match store.starts(&definition.name) {
            Ok(text) => earlier::removed(text),
            Err(error) => {
                print_warning(&format!("{}: {error:#}", definition.name));
                None
            }
        };
        let channels = definition.channels.keys().map(|name| (name, false));
        for (channel, is_trigger) in channels.chain(definition.waiting().map(|(name, _)| (name, true))) {
            let called = recorders::called(&definition.name, channel);
            let running = found.running.iter().find(|one| one.name == called).cloned();
            let silent = found.silent_as(&called).filter(|_| running.is_none()).cloned();
            let unknown = unknown.clone().filter(|_| running.is_none() && silent.is_none());
            let is_gone = locked.is_some() && running.is_none() && silent.is_none() && unknown.is_none();
            rows.push(Row {
                session: definition.name.clone(),
                channel: channel.clone(),
                is_trigger,
                is_watched: false,
                ended: if is_gone { ended::of(definition, channel).map(|it| it.why) } else { None },
                is_crowded_out: running.as_ref().is_some_and(Running::is_crowded_out),
                earlier: removed.as_ref().map(|removed| removed.get(channel).copied().unwrap_or_default()),
                since: None,
                running,
                silent,
                unknown,
            });
        }
        let is_watched = found.running.iter().any(|one| !one.is_trigger);
        rows.extend(definition.of_channels().map(|(trigger, _)| Row {
            session: definition.name.clone(),
            channel: trigger.clone(),
            is_trigger: true,
            is_watched,
            running: None,
            silent: None,
            unknown: unknown.clone().filter(|_| !is_watched),
            ended: None,
            is_crowded_out: false,
            earlier: Some(Removed::default()),
            since: None,
        }));
    }
    let is_other = |one: &&Running| others == Others::Shown && !one.name.contains('/');
    rows.extend(recordings.running.iter().filter(is_other).map(Row::of_no_session));
    rows
}

/// What a channel has recorded since an earlier look at the same recorder.
fn since(row: &Row, before: &[Row]) -> Option<(u64, f64)> {
    let now = row.running.as_ref()?;
    let before = before.iter().find_map(|row| row.running.as_ref().filter(|one| one.pid == now.pid))?;
    let nanoseconds = now.figures.elapsed.checked_sub(before.figures.elapsed).filter(|time| *time > 0)?;
    Some((now.figures.events.saturating_sub(before.figures.events), nanoseconds as f64 / 1e9))
}
