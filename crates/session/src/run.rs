//! The loop of a recording: waits for descriptors and for the next look at the buffers, and deals with what comes.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use tracewing_consumer::pace::LONGEST_INTERVAL;

use crate::client::{Client, Fate};
use crate::recorder::{CHILD, FIRST, LISTENER, Progress, Recorder, SIGNALS, Stop};
use crate::signals::SNAPSHOT;
use crate::socket::peer;

/// Time that the command has to end after a stopping signal while it is still recorded.
const GRACE: Duration = Duration::from_secs(2);
/// Handshakes at one time; more wait in the socket's backlog.
const MOST_CLIENTS: usize = 512;
/// Descriptors, or signals, taken from the kernel at once.
const BATCH: usize = 64;

impl Recorder<'_> {
    /// Records until the command ends or something stops the recording.
    pub(crate) fn run(&mut self) {
        self.listen();
        while self.goes_on() {
            self.wait(self.pace.remaining());
            if self.pace.remaining().is_zero() {
                self.look();
            }
            self.tell_notes();
        }
    }

    /// After the recording: the command's exit status, for which a signal ends the wait.
    pub(crate) fn wait_for_child(&mut self) -> i32 {
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
            && match self.stop {
                Stop::No => true,
                Stop::Asked { until } => Instant::now() < until,
                Stop::AtOnce { .. } | Stop::CannotWrite => false,
            }
    }

    fn wait(&mut self, timeout: Duration) {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; BATCH];
        let ready = epoll::wait(&self.epoll, &mut events, Some(&timeout)).unwrap_or_default();
        for event in &events[..ready] {
            match event.data.u64() {
                LISTENER => self.accept(),
                SIGNALS => self.take_signals(),
                CHILD => self.exit_status = self.child.ended(),
                number if number % 2 == 1 => self.process_ended(number),
                number => self.client_readable(number),
            }
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        match self.join.regions.poll(self.options.flush, self.pace.longest()) {
            Ok(found) => self.pace.looked(now, Instant::now(), &found),
            Err(error) => self.cannot_write(&error),
        }
        let longest = self.pace.longest();
        if let Err(error) = self.kernel.poll(now, longest, &mut |line| self.join.note(line)) {
            self.cannot_write(&error);
        }
        let overdue: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, client)| client.is_overdue(now))
            .map(|(number, _)| *number)
            .collect();
        overdue.into_iter().for_each(|number| self.disconnect(number));
        if !self.listening && self.clients.len() < MOST_CLIENTS {
            self.listen();
        }
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
        self.observer.progress(&Progress {
            elapsed: self.started.elapsed(),
            events: user.events + kernel.events,
            lost: user.lost.saturating_add(kernel.lost),
            bytes: user.bytes + kernel.bytes,
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

    fn listen(&mut self) {
        if let Some(listener) = &self.listener {
            let data = EventData::new_u64(LISTENER);
            self.listening = epoll::add(&self.epoll, listener, data, EventFlags::IN).is_ok();
        }
    }

    fn accept(&mut self) {
        let now = Instant::now();
        while let Some(listener) = &self.listener {
            match if self.clients.len() < MOST_CLIENTS { listener.accept() } else { Err(Errno::MFILE) } {
                Ok(socket) => {
                    let Some(peer) = peer(socket.as_fd()) else {
                        self.join.note("a process of another PID namespace is not recorded".to_owned());
                        continue;
                    };
                    let (number, data) = (self.next_client, EventData::new_u64(self.next_client));
                    if epoll::add(&self.epoll, &socket, data, EventFlags::IN).is_ok() {
                        self.clients.insert(number, Client::new(socket, peer, now));
                        self.next_client += 2;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Too many, or out of descriptors: those who wait get their turn at a later look.
                Err(_) => {
                    let _ = epoll::delete(&self.epoll, listener);
                    self.listening = false;
                    return;
                }
            }
        }
    }

    fn client_readable(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        match client.readable(&mut self.join, &mut self.message, Instant::now()) {
            Fate::Stays => {}
            Fate::Ends => self.disconnect(number),
            Fate::Asks(question) => {
                let pid = client.pid();
                let answer = self.answer(question, pid);
                if let Some(client) = self.clients.remove(&number) {
                    client.answer(&answer);
                }
            }
        }
        for (process, pidfd) in std::mem::take(&mut self.join.watches) {
            let number = FIRST + 1 + 2 * process;
            if epoll::add(&self.epoll, &pidfd, EventData::new_u64(number), EventFlags::IN).is_ok() {
                self.watched.insert(number, pidfd);
            }
        }
        if let Some(error) = self.join.error.take() {
            self.cannot_write(&error);
        }
    }

    fn disconnect(&mut self, number: u64) {
        // Closing takes it out of the epoll set: the descriptor has no copies.
        self.clients.remove(&number);
    }

    fn process_ended(&mut self, number: u64) {
        if let Some(pidfd) = self.watched.remove(&number) {
            // The region has a copy of this descriptor, so that closing it would not do.
            let _ = epoll::delete(&self.epoll, &pidfd);
        }
        if let Err(error) = self.join.regions.process_ended((number - FIRST - 1) / 2) {
            self.cannot_write(&error);
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
                Stop::No => Stop::Asked { until: Instant::now() + GRACE },
                Stop::CannotWrite => Stop::CannotWrite,
                Stop::Asked { .. } | Stop::AtOnce { .. } => Stop::AtOnce { signal: signal.number },
            };
        }
        if snapshot {
            self.snapshot_on_signal();
        }
    }
}
