//! Starts and stops the recorders of a session: one process for each channel, in the background, which is
//! `tracewing record` with the channel's options. What it says is in a file next to its trace.

use super::buffers;
use super::definition::{Definition, given, words};
use super::earlier::{self, Earlier};
use super::ended::{self, Ended, log_name, next_place};
use super::store::Locked;
use crate::output::{print_warning, shown};
use crate::owner::{no_answer, not_asked};
use crate::record::default_name;
use crate::record_summary;
use crate::screen::{self, Form};
use crate::table::bytes;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use toml::Table;
use tracewing_files::Dir;
use tracewing_session::running::{AskError, Recordings, Running, Silent, Unseen};

/// How long recorders may take to begin: they attach to programs only afterwards.
const BEGINNING: Duration = Duration::from_secs(60);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Lines that a recorder has said, and that are printed at its end: the last ones.
const MOST_SAID: usize = 50;

/// Milliseconds within which a trigger's recorder takes what programs write, and how much of what has fired
/// it keeps.
const LOOK_OF_TRIGGERS: &str = "5";
const SIZE_OF_TRIGGERS: &str = "16M";

/// The recorders of a session.
pub struct Found {
    pub running: Vec<Running>,
    /// Those that may be its recorders, and do not answer.
    pub silent: Vec<Silent>,
    /// Where others may run that could not be asked.
    pub unseen: Vec<Unseen>,
}

impl Found {
    /// Those of a session among all.
    pub fn of(definition: &Definition, recordings: &Recordings) -> Self {
        let running = running(recordings, &definition.name);
        let mut silent = recordings.silent_of(&definition.name);
        // What they are is known only if something is missing.
        let is_whole = missing(definition, &running).next().is_none();
        silent.retain(|one| one.name.is_some() || !is_whole);
        let unseen = if is_whole { Vec::new() } else { recordings.unseen.clone() };
        Self { running, silent, unseen }
    }

    /// What is said of the session as a whole.
    pub fn state(&self) -> &'static str {
        match (self.silent.is_empty(), self.running.is_empty()) {
            (false, _) => "does not answer",
            (true, false) => "started",
            (true, true) if !self.unseen.is_empty() => "unknown",
            (true, true) => "stopped",
        }
    }

    /// Whether it is sure that there are none.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.silent.is_empty() && self.unseen.is_empty()
    }

    /// The one that may be the recorder of a channel or trigger, and does not answer.
    pub fn silent_as(&self, called: &str) -> Option<&Silent> {
        let mut all = self.silent.iter();
        all.find(|one| one.name.as_deref().is_none_or(|name| name == called))
    }

    /// # Errors
    /// One does not answer, or could not be asked.
    fn answer(&self) -> Result<()> {
        self.silent.first().map(no_answer).or(not_asked(&self.unseen)).map_or(Ok(()), Err)
    }

    /// The channels and triggers of this session whose recorders have ended by themselves: the names by which
    /// other commands find them, and how they have ended.
    pub fn ended(&self, definition: &Definition) -> Vec<(String, Ended)> {
        if !self.unseen.is_empty() {
            return Vec::new();
        }
        let parts = missing(definition, &self.running).map(|(part, _)| part);
        let parts = parts.map(|part| (called(&definition.name, part), part));
        let parts = parts.filter(|(called, _)| self.silent_as(called).is_none());
        parts.filter_map(|(called, part)| Some((called, ended::of(definition, part)?))).collect()
    }
}

/// What is said of a session as a whole. If that is unknown, a warning says why.
pub fn state(definition: &Definition) -> &'static str {
    let found = find(definition);
    if let Some(why) = not_asked(&found.unseen) {
        print_warning(&format!("{}: {why}", definition.name));
    }
    found.state()
}

/// The recorders of a session, at present.
pub fn find(definition: &Definition) -> Found {
    Found::of(definition, &Recordings::find())
}

fn running(recordings: &Recordings, session: &str) -> Vec<Running> {
    let of = |one: &&Running| one.name.split_once('/').is_some_and(|(of, _)| of == session);
    recordings.running.iter().filter(of).cloned().collect()
}

/// The recorders of a session, if it is sure that these are all.
///
/// # Errors
/// One of its recorders does not answer, or could not be asked.
pub fn all_of(definition: &Definition) -> Result<Vec<Running>> {
    let found = find(definition);
    found.answer()?;
    Ok(found.running)
}

/// The name by which other commands find a channel's recorder.
pub fn called(session: &str, channel: &str) -> String {
    format!("{session}/{channel}")
}

/// The channels and triggers of a session that have no recorder among those that run.
pub fn missing<'a>(
    definition: &'a Definition,
    running: &'a [Running],
) -> impl Iterator<Item = (&'a String, &'a Table)> {
    let has = |part: &str| running.iter().any(|one| one.name == called(&definition.name, part));
    definition.channels.iter().chain(definition.waiting()).filter(move |(name, _)| !has(name))
}

/// Starts the recorders of channels that have none. If one does not begin, none of the new ones stays.
pub fn start(locked: &Locked<'_>, definition: &Definition) -> Result<ExitCode> {
    let name = &definition.name;
    let running = all_of(definition)?;
    let missing = missing(definition, &running);
    let (triggers, channels): (Vec<_>, Vec<_>) =
        missing.partition(|(name, _)| definition.triggers.contains_key(*name));
    if channels.is_empty() && triggers.is_empty() {
        bail!("{name} is started already: `tracewing session status {name}` shows it");
    }
    let earlier = Earlier::of(locked, definition)?;
    // Those that are missing write next to the others, with which they share the size of the session.
    let (output, folder) = match folder_of(&running) {
        Some(folder) => (None, folder),
        None => new_folder(&definition.output).map(|(output, folder)| (Some(output), folder))?,
    };
    let places = Places::new(earlier, definition, &running, folder, output.is_some())?;
    let folder = &places.folder;
    let mut started = Vec::new();
    // Triggers last: programs write to the channels first, then.
    for parts in [channels, triggers] {
        if let Err(error) = places.start_all(definition, &parts, &mut started) {
            end_all(started);
            // Nothing in it was asked for.
            match (output, folder.path().file_name().and_then(OsStr::to_str)) {
                (Some(output), Some(name)) => drop(output.remove_all(name)),
                _ => places.remove(),
            }
            return Err(error);
        }
    }
    writeln!(screen::stdout(Form::Text), "{}", shown(&folder.path().to_string_lossy()))?;
    Ok(ExitCode::SUCCESS)
}

/// Continues a session that is started with these recorders in another form: starts the recorders of what is
/// new, below the folder of the others, and ends those of what is gone. Its other recorders notice nothing.
///
/// # Errors
/// A new recorder does not start, or the change requires restarting a running one. Then the session is as
/// before.
pub fn adjust(
    locked: &Locked<'_>,
    running: &[Running],
    before: &Definition,
    after: &Definition,
) -> Result<ExitCode> {
    let name = &after.name;
    if !before.of_channels().eq(after.of_channels()) {
        bail!(
            "{name} is started; triggers with --when-full or --when-size cannot be changed until it is stopped: \
             `tracewing session stop {name}`"
        );
    }
    let is_new = |part: &(&String, &Table)| !before.has(part.0);
    let new: Vec<_> = after.channels.iter().chain(after.waiting()).filter(is_new).collect();
    let is_gone = |one: &&Running| one.name.split_once('/').is_some_and(|(_, part)| !after.has(part));
    let gone: Vec<&Running> = running.iter().filter(is_gone).collect();
    if new.is_empty() {
        // This takes no room, so what earlier starts have left does not matter.
        let status = end(&gone)?;
        return locked.replace(after).map(|()| status);
    }
    let mut started = Vec::new();
    if let Some(path) = running.iter().filter_map(|one| one.output.parent()).max() {
        let folder = Dir::parent(path).with_context(|| format!("cannot write to {}", path.display()))?;
        if let Some((part, _)) = new.iter().find(|(part, _)| folder.has(part) || folder.has(log_name(part))) {
            bail!("{} has what an earlier {part} has recorded: choose another name", path.display());
        }
        let places = Places::new(Earlier::of(locked, after)?, after, running, folder, false)?;
        let done = places.start_all(after, &new, &mut started).and_then(|()| locked.replace(after));
        if let Err(error) = done {
            end_all(started);
            places.remove();
            return Err(error);
        }
    }
    end(&gone)
}

/// The folder of a start in which recorders run that are all in their places.
fn folder_of(running: &[Running]) -> Option<Dir> {
    let path = running.iter().filter_map(|one| one.output.parent()).max()?;
    Dir::parent(path).ok().filter(|folder| running.iter().all(|one| is_in_place(folder, one)))
}

fn is_in_place(folder: &Dir, one: &Running) -> bool {
    let is_locked = |name| folder.below(name).is_ok_and(|output: Dir| output.is_locked());
    one.output.parent() != Some(folder.path()) || one.output.file_name().is_some_and(is_locked)
}

/// Where new recorders of a session write to.
struct Places {
    folder: Dir,
    /// Bytes that all recorders of this start may have.
    size: Option<u64>,
    /// Channels and triggers that have no recorder, with the folders that theirs get.
    names: BTreeMap<String, String>,
}

impl Places {
    /// Makes room for them, and notes them, before any of them writes.
    fn new(
        earlier: Option<Earlier<'_>>,
        definition: &Definition,
        running: &[Running],
        folder: Dir,
        is_new: bool,
    ) -> Result<Self> {
        let entries = folder
            .below(".")
            .and_then(|all| all.entries())
            .with_context(|| format!("cannot read {}", folder.path().display()))?;
        let parts = missing(definition, running).map(|(name, _)| name);
        let names = parts.map(|name| (name.clone(), next_place(name, &entries))).collect::<BTreeMap<_, _>>();
        let mut size = None;
        if let Some(mut earlier) = earlier {
            earlier.find(&running.iter().map(|one| one.output.as_path()).collect::<Vec<_>>());
            size = Some(if is_new { earlier.begin(&folder)? } else { earlier.again(&folder) });
            names.iter().for_each(|(channel, place)| earlier.add(&folder, place, channel));
            earlier.finish();
        }
        Ok(Self { folder, size, names })
    }

    /// Starts recorders, and waits until they answer.
    fn start_all(
        &self,
        definition: &Definition,
        parts: &[(&String, &Table)],
        started: &mut Vec<Recorder>,
    ) -> Result<()> {
        let left = |(name, options): &(&String, &Table)| {
            (called(&definition.name, name), buffers::left(definition, name, options))
        };
        let left: Vec<_> = parts.iter().map(left).collect();
        for (name, options) in parts {
            let place = self.names.get(*name).unwrap_or(name);
            let mut words = words(&buffers::placed(definition, options, self.folder.path(), place))?;
            if definition.triggers.contains_key(*name) {
                words.extend(of_session(definition).chain(of_trigger(options)));
            } else {
                words.extend(of_channels(definition)?);
            }
            words.extend(self.size.iter().map(|size| format!("--session-size={size}").into()));
            started.push(Recorder::start(definition, name, words, &self.folder, place)?);
        }
        begun(&definition.name, started)?;
        left.iter().for_each(|(called, left)| buffers::report(called, left));
        Ok(())
    }

    /// Removes what recorders have written that did not start.
    fn remove(&self) {
        for place in self.names.values() {
            let _ = self.folder.remove_all(place).and_then(|()| self.folder.remove(&log_name(place)));
        }
    }
}

/// To whose channels a trigger does what it does: those that the session has at that time.
fn of_session(definition: &Definition) -> impl Iterator<Item = OsString> {
    [format!("--on={}", definition.name).into()].into_iter()
}

/// The triggers that the recorders of channels have.
fn of_channels(definition: &Definition) -> Result<Vec<OsString>> {
    let word = |(name, options): (&String, &Table)| {
        let mut words = vec![name.clone(), format!("--on={}", definition.name)];
        words.extend(given(options)?.iter().map(|word| word.to_string_lossy().into_owned()));
        Ok(format!("--session-trigger={}", serde_json::to_string(&words)?).into())
    };
    definition.of_channels().map(word).collect()
}

/// What the recorder of a trigger gets in addition to its options.
fn of_trigger(options: &Table) -> impl Iterator<Item = OsString> {
    let defaults = [("flush", LOOK_OF_TRIGGERS), ("total-size", SIZE_OF_TRIGGERS)];
    let missing = defaults.into_iter().filter(|(option, _)| !options.contains_key(*option));
    missing.map(|(option, value)| format!("--{option}={value}").into())
}

/// Prints which recorders have ended by themselves, and what each has recorded by then. Whether any has.
pub fn report_ended(definition: &Definition, found: &Found) -> bool {
    let ended = found.ended(definition);
    for (called, Ended { why, summary, output }) in &ended {
        print_warning(&format!("{called} has ended: {why}"));
        summary.iter().for_each(|summary| print_summary(called, summary, output));
    }
    !ended.is_empty()
}

/// Ends the recorders, and prints what each has recorded, and which have ended by themselves.
///
/// # Errors
/// There are none, or one does not answer, or could not be asked; the others have ended then.
pub fn stop(locked: &Locked<'_>, definition: &Definition) -> Result<ExitCode> {
    let found = find(definition);
    let has_ended = report_ended(definition, &found);
    if found.is_empty() {
        bail!("{0} is not started: `tracewing session start {0}` starts it", definition.name);
    }
    let status = end(&found.running.iter().collect::<Vec<_>>())?;
    let removed = report_removed(locked, definition);
    found.answer()?;
    removed?;
    if let Some(mut earlier) = Earlier::of(locked, definition)? {
        earlier.find(&[]);
        earlier.finish();
    }
    Ok(if has_ended { ExitCode::FAILURE } else { status })
}

/// Ends the recorders of a session whose definition cannot be read, if there are any, and prints what each
/// has recorded.
///
/// # Errors
/// One does not answer, or could not be asked; the others have ended then.
pub fn stop_named(session: &str) -> Result<ExitCode> {
    let recordings = Recordings::find();
    let running = running(&recordings, session);
    let status = end(&running.iter().collect::<Vec<_>>())?;
    Found { running, silent: recordings.silent_of(session), unseen: recordings.unseen }.answer()?;
    Ok(status)
}

/// Prints what was removed of earlier recorders since the session was started.
fn report_removed(locked: &Locked<'_>, definition: &Definition) -> Result<()> {
    for (channel, removed) in earlier::removed(locked.starts(&definition.name)?).unwrap_or_default() {
        let _ = writeln!(
            screen::stderr(Form::Text),
            "{}: removed of earlier recorders: {}, with {} events",
            called(&definition.name, &channel),
            crate::table::number(removed.count),
            record_summary::lost(removed.events, removed.has_more),
        );
    }
    Ok(())
}

/// Ends recorders, and prints what each has recorded.
///
/// # Errors
/// One could not be asked, and may still run; the others have ended then.
fn end(running: &[&Running]) -> Result<ExitCode> {
    let mut status = ExitCode::SUCCESS;
    let mut not_asked = None;
    // All at once, so that their traces end together.
    let ending: Vec<_> = running.iter().map(|one| (*one, one.end())).collect();
    for (one, ending) in ending {
        let ended = ending.and_then(|ending| ending.wait(one));
        let is_complete = match ended {
            Ok(()) => report(one),
            Err(error @ AskError::NotAsked(..)) => {
                not_asked = Some(error);
                false
            }
            Err(error) => {
                print_warning(&error.to_string());
                false
            }
        };
        if !is_complete {
            status = ExitCode::FAILURE;
        }
    }
    not_asked.map_or(Ok(status), |error| Err(error.into()))
}

/// A recorder that was just started.
struct Recorder {
    called: String,
    log: PathBuf,
    process: Child,
}

impl Recorder {
    fn start(
        definition: &Definition,
        channel: &str,
        words: Vec<OsString>,
        folder: &Dir,
        place: &str,
    ) -> Result<Self> {
        let output = folder.path().join(place);
        let log = log_of(&output);
        let file = folder.create_file(log_name(place));
        let file = file.with_context(|| format!("cannot write {}", log.display()))?;
        let called = called(&definition.name, channel);
        let mut command = Command::new(own_program()?);
        command.args(["record", "--session", &called, "--background", "--format", "json", "-o"]);
        command.arg(&output).args(words).current_dir(&definition.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let process = command.spawn().with_context(|| format!("cannot start the recorder of {called}"))?;
        Ok(Self { called, log, process })
    }

    /// Why it has ended, in its words.
    fn last_words(&mut self) -> Option<String> {
        self.process.try_wait().ok().flatten()?;
        let text = ended::said(&self.log).unwrap_or_default();
        Some(format!(
            "{}: {}",
            self.called,
            text.trim_end().trim_start_matches("tracewing: ").trim_start_matches("error: ")
        ))
    }
}

/// This program's file: if it was replaced since this process has started, the new one; if it was removed,
/// what this process runs.
pub fn own_program() -> Result<PathBuf> {
    let path = std::env::current_exe().context("this program's file is not known")?;
    if path.is_file() {
        return Ok(path);
    }
    let replaced = path.as_os_str().as_bytes().strip_suffix(b" (deleted)");
    let replaced = replaced.map(|path| PathBuf::from(OsStr::from_bytes(path)));
    // The process that looks for it has this one's program until it finds it.
    Ok(replaced.filter(|path| path.is_file()).unwrap_or_else(|| "/proc/self/exe".into()))
}

/// Waits until all recorders answer.
fn begun(session: &str, started: &mut [Recorder]) -> Result<()> {
    let until = Instant::now() + BEGINNING;
    loop {
        if let Some(words) = started.iter_mut().find_map(Recorder::last_words) {
            bail!("{words}");
        }
        let running = running(&Recordings::find(), session);
        if started.iter().all(|recorder| running.iter().any(|one| one.name == recorder.called)) {
            return Ok(());
        }
        if Instant::now() >= until {
            bail!("the recorders of {session} did not begin within {} s", BEGINNING.as_secs());
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends what was started.
fn end_all(started: Vec<Recorder>) {
    for mut recorder in started {
        if let Some(pid) = Pid::from_raw(recorder.process.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = recorder.process.wait();
    }
}

/// The session's folder, and a new one in it, named by the time.
fn new_folder(path: &Path) -> Result<(Dir, Dir)> {
    let failed = || format!("cannot make a folder in {}", path.display());
    let output = if path.exists() { Dir::parent(path) } else { Dir::create(path).map(|(dir, _)| dir) };
    let output = output.with_context(failed)?;
    let time = default_name();
    let mut number = 1;
    loop {
        let name = if number == 1 { time.clone() } else { format!("{time}-{number}") };
        match output.make(&name) {
            Ok(folder) => return Ok((output, folder)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error).with_context(failed),
        }
    }
}

/// The file with what the recorder says that writes to `output`.
fn log_of(output: &Path) -> PathBuf {
    output.with_file_name(log_name(&output.file_name().unwrap_or_default().to_string_lossy()))
}

/// Prints what a recorder has said at its end. Whether its trace is complete.
fn report(one: &Running) -> bool {
    let log = ended::said(&log_of(&one.output)).unwrap_or_default();
    let summary = ended::summary(&log);
    let others = log.lines().count() - usize::from(summary.is_some());
    let earlier = others.saturating_sub(MOST_SAID);
    if earlier > 0 {
        let path = log_of(&one.output);
        print_warning(&format!("{}: {earlier} earlier lines are in {}", one.name, path.display()));
    }
    for line in log.lines().take(others).skip(earlier) {
        print_warning(&format!("{}: {}", one.name, line.trim_start_matches("tracewing: ")));
    }
    let Some(summary) = summary else {
        print_warning(&format!("{}: its recorder has ended without a summary", one.name));
        return false;
    };
    print_summary(&one.name, &summary, &one.output);
    summary["state"] == "complete"
}

/// Prints what a recorder has recorded in all.
fn print_summary(called: &str, summary: &Value, output: &Path) {
    let number = |name: &str| summary[name].as_u64().unwrap_or(0);
    let _ = writeln!(
        screen::stderr(Form::Text),
        "{called}: {} events, {} lost, {} in {:.3} s in {}{}",
        crate::table::number(number("events")),
        record_summary::lost(number("lost_events"), loses_more(summary)),
        bytes(number("bytes")),
        summary["seconds"].as_f64().unwrap_or(0.0),
        shown(&output.to_string_lossy()),
        removed(summary),
    );
}

/// How many archives and snapshots were removed, for want of room or by `tracewing clear`, and how many
/// events these have had.
fn removed(summary: &Value) -> String {
    // Not by their lists, which have the last ones only.
    let of = |totals: &str, name: &str| summary[totals][name].as_u64().unwrap_or(0);
    let number = crate::table::number;
    [("archives", "archive_totals"), ("snapshots", "snapshot_totals")]
        .into_iter()
        .map(|(kind, totals)| (kind, of(totals, "removed"), of(totals, "removed_events")))
        .filter(|(_, count, _)| *count > 0)
        .map(|(kind, count, events)| {
            format!("; {kind} removed: {}, with {} events", number(count), number(events))
        })
        .collect()
}

/// Whether more was lost than is counted.
fn loses_more(summary: &Value) -> bool {
    let kinds = ["user_streams", "kernel_streams", "profile_streams"];
    let mut streams = kinds.iter().filter_map(|kind| summary[*kind].as_array()).flatten();
    streams.any(|stream| {
        stream["is_lost_unknown"] == true
            || stream["overwritten"]["sub_buffers"].as_u64().is_some_and(|count| count > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_that_was_removed_is_counted() {
        // Most are no longer listed.
        let totals = json!({ "completed": 20_000, "removed": 12_000, "removed_events": 24_000 });
        let listed = json!([{ "is_removed": true, "events": 1000 }, { "events": 5 }]);
        let summary = json!({ "archives": listed, "archive_totals": totals });
        assert_eq!(removed(&summary), "; archives removed: 12,000, with 24,000 events");
        let totals = json!({ "taken": 5000, "removed": 4998, "removed_events": 9996 });
        let summary =
            json!({ "snapshots": [{ "is_removed": true, "events": 2 }], "snapshot_totals": totals });
        assert_eq!(removed(&summary), "; snapshots removed: 4,998, with 9,996 events");
        assert_eq!(removed(&json!({ "archives": [{ "events": 5 }], "snapshots": [] })), "");
    }
}
