//! The loop of a recording: waits for descriptors and for the next look at the buffers, and deals with what comes.

use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use tracewing_consumer::drain::Found;
use tracewing_consumer::pace::LONGEST_INTERVAL;

use crate::accept::Door;
use crate::recorder::{CHILD, CONTROL, LISTENER, Progress, Recorder, SIGNALS, Stop};
use crate::signals::SNAPSHOT;

/// Time that the command has to end after a stopping signal while it is still recorded.
const GRACE: Duration = Duration::from_secs(2);
/// Descriptors, or signals, taken from the kernel at once.
const BATCH: usize = 64;

impl Recorder<'_> {
    /// Records until the command ends or something stops the recording.
    pub(crate) fn run(&mut self) {
        self.listen();
        while self.goes_on() {
            let regions = self.join.regions.remaining().unwrap_or(LONGEST_INTERVAL);
            self.wait(self.pace.remaining().min(regions));
            if let Err(error) = self.join.regions.poll() {
                self.cannot_write(&error);
            }
            self.describe_found();
            self.ask_parents();
            if self.pace.remaining().is_zero() {
                self.look();
            }
            self.tell_notes();
        }
    }

    /// After the recording: the command's exit status, for which a signal ends the wait.
    pub(crate) fn wait_for_child(&mut self) -> i32 {
        if !self.child.is_ours() {
            return 0;
        }
        if self.exit_status.is_none() && !matches!(self.stop, Stop::AtOnce { .. }) {
            let pid = self.child.pid().as_raw_nonzero();
            self.observer
                .note(&format!("the recording is over; waiting for the command (process {pid}) to end"));
        }
        loop {
            match (self.exit_status, self.stop) {
                (Some(status), _) => return status,
                (None, Stop::AtOnce { signal }) => return 128 + signal,
                _ => self.wait(LONGEST_INTERVAL),
            }
        }
    }

    fn goes_on(&self) -> bool {
        self.exit_status.is_none()
            && self.options.duration.is_none_or(|duration| self.started.elapsed() < duration)
            && match self.stop {
                Stop::No => true,
                Stop::Asked { until } => Instant::now() < until,
                Stop::AtOnce { .. } | Stop::CannotWrite | Stop::Over => false,
            }
    }

    fn wait(&mut self, timeout: Duration) {
        let answer_due = self.changes.deadline().map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = answer_due.map_or(timeout, |due| due.min(timeout));
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; BATCH];
        let ready = epoll::wait(&self.epoll, &mut events, Some(&timeout)).unwrap_or_default();
        for event in &events[..ready] {
            match event.data.u64() {
                LISTENER => self.accept(Door::Join),
                CONTROL => self.accept(Door::Control),
                SIGNALS => self.take_signals(),
                CHILD => self.exit_status = self.child.ended(),
                number => self.client_ready(number),
            }
        }
        self.settle();
    }

    fn look(&mut self) {
        let now = Instant::now();
        self.pace.looked(now, now, &Found::default());
        let longest = self.pace.longest();
        if let Err(error) = self.kernel.poll(now, longest, &mut |line| self.join.note(line)) {
            self.cannot_write(&error);
        }
        let executed = self.kernel.executed();
        self.tell_of_executed(executed);
        if let Err(error) = self.profile.poll(now, longest) {
            self.cannot_write(&error);
        }
        if let Some(threads) = &mut self.threads {
            threads.look(self.connections.members().map(|(_, member)| member.program.pid));
        }
        if self.places.are_due(now) {
            self.check_places(false);
        }
        self.end_rest();
        self.look_for_filters();
        self.look_for_left_out();
        self.disconnect_overdue(now);
        self.listen();
        if self
            .observer
            .progress_interval()
            .is_some_and(|interval| now.duration_since(self.shown) >= interval)
        {
            self.shown = now;
            self.show_progress();
        }
    }

    fn show_progress(&mut self) {
        let (user, kernel) = (self.join.regions.totals(), self.kernel.progress());
        let (events, lost, bytes) = self.profile.progress();
        self.observer.progress(&Progress {
            elapsed: self.started.elapsed(),
            events: user.events + kernel.events + events,
            lost: user.lost.saturating_add(kernel.lost).saturating_add(lost),
            bytes: user.bytes + kernel.bytes + bytes,
            snapshots: self.flight.as_ref().map(|flight| flight.taken.len()),
        });
    }

    /// Shows the observer the notes that are new.
    pub(crate) fn tell_notes(&mut self) {
        for note in &self.join.description.notes[self.told..] {
            self.observer.note(note);
        }
        self.told = self.join.description.notes.len();
    }

    /// Stops because the trace cannot be written; told once.
    pub(crate) fn cannot_write(&mut self, error: &tracewing_consumer::Error) {
        if self.stop != Stop::CannotWrite {
            self.stop = Stop::CannotWrite;
            let why = if error.is_disk_full() { "the disk is full" } else { "the trace cannot be written" };
            self.join.note(format!("recording stopped, {why}: {error}; what was written before is readable"));
        }
    }

    fn take_signals(&mut self) {
        // However fast the signal for snapshots comes again: one snapshot, and then whatever else there is to do.
        let mut snapshot = false;
        for _ in 0..BATCH {
            let Some(signal) = self.signals.next() else { break };
            if signal.number == SNAPSHOT {
                snapshot = true;
                continue;
            }
            // What the terminal sends, the command has got already.
            if signal.from_process {
                self.child.signal(signal.number);
            }
            self.stop = match self.stop {
                Stop::No | Stop::Over if !self.child.is_ours() => Stop::Over,
                Stop::No => Stop::Asked { until: Instant::now() + GRACE },
                Stop::CannotWrite => Stop::CannotWrite,
                Stop::Asked { .. } | Stop::AtOnce { .. } | Stop::Over => {
                    Stop::AtOnce { signal: signal.number }
                }
            };
        }
        if snapshot {
            self.snapshot_on_signal();
        }
    }
}
