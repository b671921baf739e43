//! Processes that the recorder attaches to, and the connections that come by their doors: under the same
//! rules as those that are made at its socket (`accept`).

use std::path::Path;
use std::time::{Duration, Instant};

use tracewing_abi::message::door::Knock;
use tracewing_attach::Refusal;
use tracewing_programs::Entry;
use tracewing_units::Pid;

use super::Recorder;
use crate::attached::{Answers, NotAttached};
use crate::attacher::{Arriving, Attempt, MOST_LATE};
use crate::doors::{BATCH, Knocked};
use crate::poll::Purpose;
use crate::processes::{Processes, all_of_user};
use crate::program::Program;

/// How long programs of another recording have to follow its invitation. Those that cannot, as in another
/// mount namespace, or that have not been invited, are attached to then.
const INVITED: Duration = Duration::from_secs(3);

impl Recorder<'_> {
    /// Attaches to recorded processes that were already running, and to their children that have executed a
    /// program. Children that were only forked join by themselves. Results arrive later.
    pub(super) fn attach_to_processes(&mut self) {
        let pids = self.processes.as_ref().map(Processes::pids).unwrap_or_default();
        self.attaching.forget_all_but(&pids);
        let patience = if self.options.with.is_some() { INVITED } else { Duration::ZERO };
        for pid in pids {
            let is_member = !self.connections.of_process(pid).is_empty();
            if !is_member && self.attaching.mark_asked(Program::of(pid), patience) {
                self.attach(pid);
            }
        }
    }

    /// Attaches to all programs that are running, if they are instrumented. Those that start later join by
    /// themselves.
    pub(super) fn attach_to_all(&mut self) {
        for pid in all_of_user() {
            if self.connections.of_process(pid).is_empty()
                && self.attaching.mark_asked(Program::of(pid), Duration::ZERO)
            {
                self.attach(pid);
            }
        }
    }

    /// If the next round is due: looks for plug-ins of recorded processes whose copies of tracewing have not
    /// joined.
    pub(super) fn look_for_new_copies(&mut self, now: Instant) {
        if !self.attaching.take_due(now) {
            return;
        }
        for pid in self.processes.as_ref().map(Processes::pids).unwrap_or_default() {
            let members = self.connections.copies_of(pid);
            if let Err(error) = self.attaching.look(pid, members, &self.poll) {
                self.join.note(format!("plug-ins that process {pid} loads are not recorded: {error}"));
            }
        }
        self.attaching.end_round(Instant::now());
    }

    fn attach(&mut self, pid: Pid) {
        if let Err(error) = self.attaching.ask(pid, &self.poll) {
            self.join.note(format!("process {pid} is not attached to: {error}"));
        }
    }

    pub(crate) fn attempts_ended(&mut self) {
        while let Some(attempt) = self.attaching.next() {
            self.attempt_ended(attempt);
        }
    }

    /// Ends the attempts, at the recording's end. The doors that they have opened are closed next.
    pub(super) fn end_attempts(&mut self) {
        self.attaching.end(&self.poll).into_iter().for_each(|attempt| self.attempt_ended(attempt));
    }

    fn attempt_ended(&mut self, attempt: Attempt) {
        let is_late = attempt.is_late();
        let Attempt { pid, is_look, is_last, outcome } = attempt;
        self.attaching.longest_stop = self.attaching.longest_stop.max(outcome.longest_stop);
        let what = if is_look { "a plug-in of " } else { "" };
        match outcome.result {
            Ok(Answers { entered, declined }) => {
                if let Some(declined) = declined {
                    self.join.note(format!("the events of {what}{} are not recorded: {declined}", name(pid)));
                }
                for one in entered {
                    if is_look {
                        let (entry, now) = (one.entry.clone(), Instant::now());
                        let loaded = one.age.and_then(|age| now.checked_sub(age));
                        self.attaching.arriving.push(Arriving { pid, entry, loaded });
                    }
                    self.attaching.doors.add(pid, one, &self.poll);
                }
            }
            // It has ended, and so has nothing to record.
            Err(NotAttached::Refused(Refusal::Gone(_) | Refusal::Zombie(_))) => {}
            // Nothing was found by then, or will be missed by the recording's end.
            Err(_) if is_look && is_late => {
                if is_last {
                    self.join.note(format!(
                        "plug-ins that {} loads from now on are not recorded: {MOST_LATE} looks for them in a row were not done in time",
                        name(pid)
                    ));
                }
            }
            Err(NotAttached::NoHelper) if is_look => {
                if !std::mem::replace(&mut self.attaching.is_loss_noted, true) {
                    let why = NotAttached::NoHelper;
                    self.join.note(format!("plug-ins that are loaded from now on are not recorded: {why}"));
                }
            }
            Err(refusal) => {
                self.join.note(format!("the events of {what}{} are not recorded: {refusal}", name(pid)));
            }
        }
    }

    /// Reports plug-ins that were attached to and have joined: from now on they are recorded.
    pub(super) fn note_arrived(&mut self) {
        let connections = &self.connections;
        let has_joined = |Arriving { pid, entry, .. }: &mut Arriving| {
            connections.copies_of(*pid).iter().any(|copy| entry.range.contains(copy))
        };
        let arrived: Vec<Arriving> = self.attaching.arriving.extract_if(.., has_joined).collect();
        let now = self.timers.started.elapsed();
        for Arriving { pid, entry, loaded } in arrived {
            let since = loaded.map_or_else(String::new, |at| {
                let at = at.saturating_duration_since(self.timers.started).as_secs_f64();
                format!(", which it has loaded at {at:.3} s,")
            });
            self.join.note(format!(
                "{}: {}{since} is recorded from {:.3} s on: what it emitted before that is unknown",
                name(pid),
                file_name(&entry),
                now.as_secs_f64()
            ));
        }
    }

    /// At the recording's end: plug-ins that were attached to and have not joined.
    pub(super) fn note_not_arrived(&mut self) {
        self.note_arrived();
        for Arriving { pid, entry, .. } in std::mem::take(&mut self.attaching.arriving) {
            self.join.note(format!(
                "{}: {} is not recorded: it has not joined",
                name(pid),
                file_name(&entry)
            ));
        }
    }

    /// Handles what has arrived at a door.
    pub(crate) fn knocked(&mut self, number: u64) {
        for _ in 0..BATCH {
            let now = Instant::now();
            if !self.connections.wasted.refill(now) {
                return self.attaching.doors.close(&self.poll);
            }
            let Some(door) = self.attaching.doors.get(number) else { return };
            let filters = door.filters;
            match door.knocked() {
                Knocked::Nothing => return,
                Knocked::Connection(socket, knock) => {
                    let purpose = if knock == Knock::Join { Purpose::Join } else { Purpose::Control };
                    if self.arrive(socket, purpose, filters, now).is_none() {
                        self.connections.wasted.take(now);
                    }
                }
                Knocked::End => {
                    self.connections.wasted.take(now);
                    return self.end_door(number);
                }
            }
        }
    }

    fn end_door(&mut self, number: u64) {
        if let Some(door) = self.attaching.doors.remove(number, &self.poll) {
            self.note_unless_joined(door.pid);
        }
    }

    /// Closes all doors, at the recording's end.
    pub(super) fn close_doors(&mut self) {
        self.note_not_arrived();
        for pid in self.attaching.doors.clear(&self.poll) {
            self.note_unless_joined(pid);
        }
    }

    fn note_unless_joined(&mut self, pid: Pid) {
        // A copy that has already joined closes the connection.
        let is_member = self.connections.members().any(|(_, member)| member.program.pid == pid);
        if !is_member && !self.join.has_joined(pid) && Program::of(pid).is_alive() {
            self.join.note(format!("the events of {} are not recorded: it has not joined", name(pid)));
        }
    }
}

fn file_name(entry: &Entry) -> String {
    Path::new(&entry.object).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn name(pid: Pid) -> String {
    let Program { name, .. } = Program::of(pid);
    if name.is_empty() { format!("process {pid}") } else { format!("process {pid} ({name})") }
}
