//! Takes snapshots of a flight recorder, and answers processes that request one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tracewing_abi::message::snapshot::{Asker, LARGEST_ANSWER, Question, Status, Taken};
use tracewing_consumer::description::{SnapshotDescription, State};
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::snapshot::Snapshot;
use tracewing_units::Pid;

use super::Recorder;
use crate::archive_names::SNAPSHOT;
use crate::flight::{NoSnapshot, Reason, absolute};
use crate::options::Trigger;
use crate::outcome::SnapshotSummary;
use crate::processes::Processes;

impl Recorder<'_> {
    /// Handles the request of process `pid`; returns the encoded answer.
    pub(crate) fn answer(&mut self, question: Question, pid: Pid) -> Vec<u8> {
        let mut message = vec![0; LARGEST_ANSWER];
        let len = match question {
            Question::Status => {
                let command = match &self.processes {
                    Some(processes) => processes.called(),
                    None if self.listing.is_some() => "all programs".to_owned(),
                    None => self.options.words().collect::<Vec<_>>().join(" "),
                };
                let child = self.course.child.as_ref().map(|child| child.pid().as_unsigned());
                let mut pids: BTreeSet<Pid> =
                    self.processes.as_ref().map(Processes::pids).unwrap_or_default().into_iter().collect();
                pids.extend(self.connections.members().map(|(_, member)| member.program.pid));
                let mut processes = [0; Status::PROCESSES];
                processes.iter_mut().zip(pids).for_each(|(place, pid)| *place = pid.as_unsigned());
                let output = absolute(&self.options.output);
                Status {
                    pid: std::process::id(),
                    // Without a command, what records the same programs ends with this recorder.
                    command_pid: child.unwrap_or_else(std::process::id),
                    processes,
                    is_flight_recorder: self.flight.is_some(),
                    is_trigger: self.options.triggers.iter().any(Trigger::waits_for_events),
                    figures: self.figures(),
                    name: self.options.name.as_deref().unwrap_or_default(),
                    command: &command,
                    output: &output.to_string_lossy(),
                }
                .encode(&mut message)
            }
            // Answered once the archive is complete.
            Question::Rotate | Question::Clear => Ok(0),
            Question::Snapshot(asker) => {
                let taken = match &mut self.flight {
                    None => Err(Taken::NotFlightRecorder),
                    Some(flight) if asker == Asker::Panic && !flight.on.panic => Err(Taken::NotWanted),
                    Some(flight) => match flight.refusal() {
                        Some(why) => Err(Taken::Failed(why)),
                        None => Ok(self.snapshot(Reason::Asked(asker, pid))),
                    },
                };
                match &taken {
                    Ok(Ok(taken)) => Taken::Folder(&taken.folder.to_string_lossy()).encode(&mut message),
                    Ok(Err(why)) => Taken::Failed(&why.to_string()).encode(&mut message),
                    Err(taken) => taken.encode(&mut message),
                }
            }
        };
        message.truncate(len.unwrap_or(0));
        message
    }

    /// Takes a snapshot, and reports it to the user.
    ///
    /// # Errors
    /// The snapshot has failed; a note says so too, and recording continues.
    pub(crate) fn snapshot(&mut self, reason: Reason) -> Result<SnapshotSummary, NoSnapshot> {
        match self.take_snapshot(reason) {
            Ok(summary) => {
                self.observer.snapshot(&summary);
                let added = self.flight.as_mut().map_or(Ok(()), |flight| flight.add(summary.clone()));
                if let Err(error) = added {
                    self.join.note(format!("an old snapshot cannot be removed: {error}"));
                }
                Ok(summary)
            }
            Err(why) => {
                self.join.note(format!("no snapshot ({reason}): {why}"));
                Err(why)
            }
        }
    }

    /// Removes the oldest snapshots if other recorders of the session have begun since the last look.
    pub(super) fn look_at_share(&mut self, now: Instant) {
        let looked = self.flight.as_mut().map_or(Ok(()), |flight| flight.look(now));
        if let Err(error) = looked {
            self.join.note(format!("an old snapshot cannot be removed: {error}"));
        }
    }

    /// The signal came. After the recording's end nothing is left to be taken.
    pub(crate) fn snapshot_on_signal(&mut self) {
        if self.flight.is_some() {
            let _ = self.snapshot(Reason::Signal);
        }
    }

    /// Closes the buffers at the end of the recording, and takes the last snapshot if that is enabled.
    /// Returns `false` if the snapshot could not be written completely.
    pub(crate) fn last_snapshot(&mut self) -> bool {
        let Some(flight) = &self.flight else { return true };
        let is_requested = flight.on.exit;
        self.join.regions.close();
        self.drains.kernel.stop(&mut |line| self.join.note(line));
        !is_requested || self.snapshot(Reason::Exit).is_ok_and(|taken| taken.state == State::Complete)
    }

    fn take_snapshot(&mut self, reason: Reason) -> Result<SnapshotSummary, NoSnapshot> {
        let flight = self.flight.as_mut().ok_or(NoSnapshot::NotFlightRecorder)?;
        let elapsed: Duration = self.timers.started.elapsed();
        flight.begun += 1;
        let (number, removed) = (flight.begun, flight.totals.removed);
        let (parent, name) = (flight.output.clone(), format!("{SNAPSHOT}{number}"));
        let folder = absolute(&parent.path().join(&name));
        let uuid = || random_uuid().map_err(NoSnapshot::Uuid);
        let mut snapshot = Snapshot::within(&parent, name.into(), uuid()?, &self.join.clock)?;
        self.join.resolve_firsts(); // of programs that have ended
        self.join.regions.add_past(&mut snapshot)?;
        // Writers are not stopped: each region is copied as it is at its turn, and what it has of later than
        // the snapshot's moment is left out.
        for key in self.join.regions.keys() {
            let Some(contents) = self.join.regions.copy(key, reason == Reason::Exit) else { continue };
            self.join.resolve_firsts();
            snapshot.add(&contents, self.join.regions.firsts())?;
        }
        if let Some(threads) = &mut self.drains.threads {
            threads.look_now(self.connections.members().map(|(_, member)| member.program.pid));
            threads.write_names(&mut self.join.classes, &mut snapshot)?;
        }
        if reason != Reason::Exit {
            self.look_at_contexts_now();
        }
        self.join.regions.contexts().map_or(Ok(()), |contexts| contexts.write_into(&mut snapshot))?;
        let kernel = self.drains.kernel.snapshot(snapshot.dir(), uuid()?, snapshot.taken())?;

        let mut description = self.join.description.clone();
        description.kernel_streams = kernel.streams;
        description.losses = kernel.losses;
        description.overwritten = kernel.overwritten;
        description.clock.end = Some(self.join.clock.calibrate());
        let about =
            SnapshotDescription { number, reason: reason.to_string(), taken: snapshot.taken(), removed };
        if kernel.error.is_some() {
            description.state = State::CutShort;
        }
        let written = snapshot.dir().clone();
        let description = snapshot.finish(&self.join.classes, about, description)?;
        if let Some(error) = kernel.error {
            self.join.note(format!("the kernel trace of snapshot {number} is cut short: {error}"));
        }
        let streams = description.user_streams.iter().chain(&description.kernel_streams);
        Ok(SnapshotSummary {
            state: description.state,
            reason: reason.to_string(),
            seconds: elapsed.as_secs_f64(),
            events: streams.map(|stream| stream.events).sum(),
            bytes: written.size(),
            folder,
            user_streams: description.user_streams,
            kernel_streams: description.kernel_streams,
            is_removed: false,
        })
    }
}
