//! The loop of a recording: waits for descriptors and for the next look at the buffers, and deals with what
//! comes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tracewing_abi::message::snapshot::{Figures, KernelBuffers, Removed};
use tracewing_consumer::pace::LONGEST_INTERVAL;
use tracewing_units::Pid;

use super::{Progress, Recorder};
use crate::archives::Archives;
use crate::course::Stop;
use crate::poll::Token;
use crate::regions::Totals;
use crate::trigger::Reached;

impl Recorder<'_> {
    /// Records until the command ends or something stops the recording.
    pub(crate) fn run(&mut self) {
        self.listen();
        while self.continues() {
            let regions = self.join.regions.remaining().unwrap_or(LONGEST_INTERVAL);
            let archives = self.archives.as_ref().and_then(|archives| archives.remaining(Instant::now()));
            let soonest = self.timers.remaining().min(regions).min(archives.unwrap_or(LONGEST_INTERVAL));
            self.wait(soonest);
            if let Err(error) = self.join.regions.poll() {
                self.cannot_write(&error);
            }
            self.join.note_damages();
            self.describe_found();
            self.ask_parents();
            if self.timers.is_due() {
                self.look();
            }
            self.look_at_archives();
            self.fire();
            self.show_notes();
        }
    }

    /// Has done what is to be done for what has come to pass.
    fn fire(&mut self) {
        if self.firing.is_empty() {
            return;
        }
        let Totals { events, bytes, .. } = self.so_far();
        // What a state dump says has come to pass before.
        let events = events.saturating_sub(self.drains.kernel.progress().dumped);
        let reached = Reached { events, bytes, fullest: self.fullest() };
        let lines: Vec<String> = self.firing.iter_mut().flat_map(|firing| firing.look(reached)).collect();
        lines.iter().for_each(|line| self.observer.note(line));
    }

    /// After the recording: the command's exit status, for which a signal ends the wait.
    pub(crate) fn wait_for_child(&mut self) -> i32 {
        let Some(child) = &self.course.child else { return 0 };
        if self.course.exit_status.is_none() && !matches!(self.course.stop, Stop::AtOnce { .. }) {
            let pid = child.pid();
            self.observer
                .note(&format!("the recording is over; waiting for the command (process {pid}) to end"));
        }
        loop {
            match (self.course.exit_status, self.course.stop) {
                (Some(status), _) => return status,
                (None, Stop::AtOnce { signal }) => return 128 + signal,
                _ => self.wait(LONGEST_INTERVAL),
            }
        }
    }

    fn continues(&self) -> bool {
        self.course.continues()
            && self.options.duration.is_none_or(|duration| self.timers.started.elapsed() < duration)
    }

    pub(super) fn wait(&mut self, timeout: Duration) {
        let answer_due = self.changes.deadline().map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = answer_due.map_or(timeout, |due| due.min(timeout));
        for token in self.poll.wait(timeout) {
            match token {
                Token::Listener(purpose) => self.accept(purpose),
                Token::Signals => {
                    if self.course.take_signals() {
                        self.snapshot_on_signal();
                    }
                }
                Token::Child => self.child_ended(),
                Token::Processes => self.look_at_endings(),
                Token::Attacher => self.attempts_ended(),
                Token::Door(number) => self.knocked(number),
                Token::Client(number) => self.client_ready(number),
            }
        }
        self.settle();
    }

    /// Its descriptor stays ready, so that later waits would end at once.
    fn child_ended(&mut self) {
        let Some(child) = &self.course.child else { return };
        self.course.exit_status = child.ended();
        if self.course.exit_status.is_some() {
            self.poll.remove(child);
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        let longest = self.timers.look(now);
        if let Err(error) = self.drains.kernel.poll(now, longest, &mut |line| self.join.note(line)) {
            self.cannot_write(&error);
        }
        let executed = self.drains.kernel.executed();
        self.note_executed(executed);
        if let Err(error) = self.drains.profile.poll(now, longest) {
            self.cannot_write(&error);
        }
        if let Some(threads) = &mut self.drains.threads {
            threads.look(self.connections.members().map(|(_, member)| member.program.pid));
        }
        self.look_at_contexts();
        self.look_for_processes(now);
        self.look_for_new_copies(now);
        self.note_arrived();
        if self.watches.places.are_due(now) {
            self.check_places(false);
            self.note_lost_helpers();
            self.note_lost_place();
        }
        self.look_at_share(now);
        self.end_rest();
        self.look_for_filters();
        self.look_for_left_out();
        self.disconnect_overdue(now);
        self.listen();
        if self.timers.shows(now, self.observer.progress_interval()) {
            self.show_progress();
        }
    }

    /// Looks at the context of programs' threads, and writes what is new.
    fn look_at_contexts(&mut self) {
        let Some(contexts) = self.join.regions.contexts() else { return };
        contexts.look(self.connections.living());
        if let Err(error) = self.join.regions.report_contexts() {
            self.cannot_write(&error);
        }
    }

    /// The same at the end of the recording, and for a snapshot: whether or not it is time for it.
    pub(super) fn look_at_contexts_now(&mut self) {
        if let Some(contexts) = self.join.regions.contexts() {
            contexts.look_now(self.connections.living());
        }
    }

    fn so_far(&self) -> Totals {
        let here = self.drains.totals(self.join.regions.totals());
        here.and(self.archives.as_ref().map_or(Totals::default(), Archives::so_far))
    }

    /// How full the fullest buffer was at the last look at it, in hundredths, of programs and of the kernel.
    fn fullest(&self) -> u8 {
        let of_programs = (self.join.regions.fullest() * 100.0) as u8;
        of_programs.max(self.drains.kernel.progress().fullest)
    }

    /// What is on the disk no more.
    fn removed(&self) -> Removed {
        let of_archives = self.archives.as_ref().map(|archives| archives.all.removed);
        let of_snapshots = self.flight.as_ref().map(|flight| flight.totals.removed);
        let removed = of_archives.or(of_snapshots).unwrap_or_default();
        removed.into()
    }

    /// How far the recording is, for those that ask.
    pub(super) fn figures(&self) -> Figures {
        let Totals { events, lost, is_lost_unknown, bytes } = self.so_far();
        let programs: BTreeSet<Pid> =
            self.connections.members().map(|(_, member)| member.program.pid).collect();
        Figures {
            elapsed: self.timers.started.elapsed().as_nanos() as u64,
            events,
            lost,
            is_lost_unknown,
            bytes,
            removed: self.removed(),
            commands: self.archives.as_ref().and_then(Archives::commands),
            snapshots: self.flight.as_ref().map_or(0, |flight| flight.totals.taken),
            programs: programs.len() as u32,
            fullest: self.fullest(),
            is_paused: self.changes.is_paused,
            left_out: self.join.lists.left_out,
            kernel: self.drains.kernel.buffers().map_or_else(KernelBuffers::default, |buffers| {
                KernelBuffers {
                    sub_buffers: buffers.sub_buffers,
                    sub_buffer_bytes: buffers.sub_buffer_bytes,
                    overwrites: buffers.overwrites,
                }
            }),
        }
    }

    fn show_progress(&mut self) {
        let Totals { events, lost, is_lost_unknown, bytes } = self.so_far();
        self.observer.progress(&Progress {
            elapsed: self.timers.started.elapsed(),
            events,
            lost,
            is_lost_unknown,
            bytes,
            snapshots: self.flight.as_ref().map(|flight| flight.totals.taken as usize),
        });
    }

    /// Shows the observer the notes that are new.
    pub(crate) fn show_notes(&mut self) {
        for note in &self.join.description.notes[self.shown_notes..] {
            self.observer.note(note);
        }
        self.shown_notes = self.join.description.notes.len();
    }

    /// Stops because the trace cannot be written; reported once.
    pub(crate) fn cannot_write(&mut self, error: &tracewing_consumer::Error) {
        if self.course.stop != Stop::CannotWrite {
            self.course.stop = Stop::CannotWrite;
            let why = if error.is_disk_full() { "the disk is full" } else { "the trace cannot be written" };
            self.join.note(format!("recording stopped, {why}: {error}; what was written before is readable"));
        }
    }
}
