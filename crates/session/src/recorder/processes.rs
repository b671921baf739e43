//! Handles processes that ran before the recording: those found at its beginning, new ones, and the end of
//! the last one.

use std::time::Instant;

use tracewing_consumer::description::AttachedDescription;

use super::Recorder;
use crate::processes::{Found, Process, Processes};

const MOST_DESCRIBED: usize = 10_000;

impl Recorder<'_> {
    /// Describes what was found when the recording began, and is recorded since.
    pub(super) fn attached_at_begin(&mut self, found: &Found) {
        found.refusals.iter().for_each(|refusal| self.join.note(refusal.to_string()));
        found.processes.iter().for_each(|process| self.describe_attached(process));
        self.attach_to_processes();
    }

    fn describe_attached(&mut self, process: &Process) {
        let attached = &mut self.join.description.attached;
        if attached.len() < MOST_DESCRIBED {
            attached.push(AttachedDescription {
                pid: process.pid,
                uid: process.uid,
                name: process.name.clone(),
                attached: self.join.clock.now(),
            });
        }
    }

    /// Some of the processes have ended: the recording is over if these were the last ones.
    pub(super) fn look_at_endings(&mut self) {
        if self.processes.as_mut().is_some_and(Processes::take_ended) {
            self.look_for_processes_now();
        }
    }

    /// Looks for processes that have come, if it is time for that.
    pub(super) fn look_for_processes(&mut self, now: Instant) {
        if self.processes.as_ref().is_some_and(|processes| processes.is_due(now)) {
            self.look_for_processes_now();
        }
    }

    fn look_for_processes_now(&mut self) {
        let Some(processes) = &mut self.processes else { return };
        let (kernel, profile) = (&mut self.drains.kernel, &mut self.drains.profile);
        let note = &mut |line| self.join.note(line);
        let new = processes.look(kernel.recorded().as_deref(), note);
        // Threads, too, that the kernel has not added by itself.
        let mut written = kernel.follow(&processes.pids(), note);
        for process in &new {
            written = written.and(profile.follow(process.pid, note));
        }
        if processes.is_over() {
            self.course.exit_status = Some(0);
        }
        if let Err(error) = written {
            self.cannot_write(&error);
        }
        new.iter().for_each(|process| self.describe_attached(process));
        self.attach_to_processes();
    }
}
