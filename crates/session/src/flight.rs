//! State of a flight recorder: the snapshots that it has taken, how many of them are kept, and how many more
//! may be requested.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::fstatvfs;
use tracewing_abi::message::snapshot::Asker;
use tracewing_files::Dir;
use tracewing_units::Pid;

use crate::limits::Budget;
use crate::options::{Rotate, SnapshotOn};
use crate::outcome::{SnapshotSummary, SnapshotTotals};
use crate::remover::Remover;
use crate::share::Share;

/// The state of a flight recorder, which has no trace folder.
pub(crate) struct Flight {
    /// Where the snapshots go.
    pub(crate) output: Dir,
    pub(crate) on: SnapshotOn,
    /// How much is kept.
    options: Rotate,
    /// What all may have of the room of a session.
    share: Option<Share>,
    next_look: Instant,
    pub(crate) begun: u64,
    pub(crate) totals: SnapshotTotals,
    /// How many events those have that are no longer listed.
    pub(crate) unlisted_events: u64,
    /// The last ones.
    pub(crate) taken: Vec<SnapshotSummary>,
    /// Those that are on the disk, the oldest first; none if neither a number nor a size bounds them.
    kept: VecDeque<Kept>,
    remover: Remover,
    /// Snapshots that programs may still request.
    asked: Budget,
}

/// A snapshot that is on the disk.
struct Kept {
    name: String,
    events: u64,
    bytes: u64,
}

/// Snapshots that may be requested in a row, and per second after that: a program may request them in a loop.
const ASKED: (u32, f64) = (32, 0.5);
/// Snapshots that are listed one by one; the first ones go.
const MOST_LISTED: usize = 1000;
/// Bytes that have to be free on the disk for each byte of the last snapshot, so that snapshots do not fill
/// it.
const FREE: u64 = 4;
/// Least time between two looks whether other recorders of the session have begun or ended, and how many
/// times as long as a look itself it is.
const LOOK: Duration = Duration::from_secs(1);
const PART: u32 = 20;

/// The cause of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Signal,
    Exit,
    /// A request over the socket, by the process with this id.
    Asked(Asker, Pid),
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signal => f.write_str("SIGUSR2"),
            Self::Exit => f.write_str("exit"),
            Self::Asked(Asker::Program, pid) => write!(f, "asked for by process {pid}"),
            Self::Asked(Asker::Panic, pid) => write!(f, "panic in process {pid}"),
            Self::Asked(Asker::Command, _) => f.write_str("tracewing snapshot"),
        }
    }
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSnapshot {
    #[error("this is not a flight recorder")]
    NotFlightRecorder,
    /// The kernel gives no random bytes for the trace's UUID.
    #[error("{0}")]
    Uuid(io::Error),
    #[error(transparent)]
    User(#[from] tracewing_consumer::Error),
    #[error(transparent)]
    Kernel(#[from] tracewing_kernel::Error),
}

impl Flight {
    pub(crate) fn new(output: Dir, on: SnapshotOn, options: Rotate) -> Self {
        let asked = Budget::new(ASKED.0, ASKED.1, Instant::now());
        let share = options.shared.map(|most| Share::new(most, &output));
        Self {
            output,
            on,
            options,
            share,
            next_look: Instant::now(),
            begun: 0,
            totals: SnapshotTotals::default(),
            unlisted_events: 0,
            taken: Vec::new(),
            kept: VecDeque::new(),
            remover: Remover::default(),
            asked,
        }
    }

    /// Lists a snapshot, and removes the oldest ones, listed or not, if there are too many on the disk, or
    /// they have too many bytes. The new one is kept in any case. One that the user has moved or removed
    /// counts no more.
    ///
    /// # Errors
    /// One cannot be removed; it is kept, and counts no more.
    pub(crate) fn add(&mut self, summary: SnapshotSummary) -> io::Result<()> {
        if self.options.keep.is_some() || self.options.total.is_some() || self.share.is_some() {
            let name = summary.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.kept.push_back(Kept { name, events: summary.events, bytes: summary.bytes });
        }
        if self.taken.len() >= MOST_LISTED {
            self.unlisted_events += self.taken.remove(0).events;
        }
        self.taken.push(summary);
        self.totals.taken = self.totals.taken.saturating_add(1);
        self.make_room(Instant::now())
    }

    /// The same if others have come that take part of the room: looks at most every second, less often if
    /// that takes long.
    ///
    /// # Errors
    /// As of [`Flight::add`].
    pub(crate) fn look(&mut self, now: Instant) -> io::Result<()> {
        // The newest is kept.
        if self.share.is_none() || self.kept.len() < 2 || now < self.next_look {
            return Ok(());
        }
        self.make_room(now)
    }

    /// Bytes that all may have now.
    fn most(&mut self, now: Instant) -> Option<u64> {
        let begin = Instant::now();
        let share = self.share.as_mut().map(|share| share.bytes(now));
        self.next_look = now + LOOK.max(begin.elapsed() * PART);
        [self.options.total, share].into_iter().flatten().min()
    }

    fn make_room(&mut self, now: Instant) -> io::Result<()> {
        let most = self.most(now);
        let mut bytes = self.kept.iter().map(|one| one.bytes).sum::<u64>();
        while self.kept.len() > 1 {
            let are_too_many = self.options.keep.is_some_and(|most| self.kept.len() > most.get());
            if !are_too_many && most.is_none_or(|most| bytes <= most) {
                break;
            }
            let Some(oldest) = self.kept.pop_front() else { break };
            bytes -= oldest.bytes;
            if !self.remover.remove(&self.output, &oldest.name)? {
                continue;
            }
            self.totals.removed.add(oldest.events, oldest.bytes);
            let name = Some(OsStr::new(&oldest.name));
            let listed = self.taken.iter_mut().find(|one| one.folder.file_name() == name);
            listed.into_iter().for_each(|one| one.is_removed = true);
        }
        Ok(())
    }

    /// Waits until all that was removed is gone.
    pub(crate) fn finish_removing(&mut self) {
        self.remover.finish();
    }

    /// Why a process that asks gets no snapshot now.
    pub(crate) fn refusal(&mut self) -> Option<&'static str> {
        if !self.asked.take(Instant::now()) {
            return Some("too many were asked for in too short a time");
        }
        let last = self.taken.last().map_or(0, |taken| taken.bytes);
        let free =
            fstatvfs(&self.output).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        (free < last.saturating_mul(FREE)).then_some("the disk has too little room for many more")
    }
}

/// A path as processes in other folders need it.
pub(crate) fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::tests::Living;
    use std::num::NonZeroUsize;
    use std::path::Path;
    use tracewing_consumer::description::{Removed, State};

    fn flight(folder: &Path, keep: Option<usize>, total: Option<u64>) -> Flight {
        flight_with(folder, Rotate { keep: keep.and_then(NonZeroUsize::new), total, ..Rotate::default() })
    }

    fn flight_with(folder: &Path, options: Rotate) -> Flight {
        let on = SnapshotOn { signal: true, exit: true, panic: true };
        Flight::new(Dir::parent(folder).unwrap(), on, options)
    }

    /// Makes the folder of a snapshot of a byte and two events, and lists it.
    fn take(flight: &mut Flight) -> io::Result<()> {
        flight.begun += 1;
        let name = format!("snapshot-{}", flight.begun);
        let folder = flight.output.path().join(&name);
        flight.output.make(&name).unwrap();
        flight.output.release(&name);
        flight.add(SnapshotSummary {
            folder,
            state: State::Complete,
            reason: String::new(),
            seconds: 0.0,
            events: 2,
            bytes: 1,
            user_streams: Vec::new(),
            kernel_streams: Vec::new(),
            is_removed: false,
        })
    }

    /// How many folders are on the disk, without those that are being removed.
    fn on_disk(folder: &Path) -> usize {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("snapshot-")).count()
    }

    #[test]
    fn snapshots_that_are_no_longer_listed_are_removed_too() {
        let more = MOST_LISTED + 7;
        for (keep, total) in [(Some(MOST_LISTED + 2), None), (None, Some(MOST_LISTED as u64 + 2))] {
            let place = tempfile::tempdir().unwrap();
            let mut flight = flight(place.path(), keep, total);
            (0..more).for_each(|_| take(&mut flight).unwrap());
            flight.finish_removing();
            assert_eq!(on_disk(place.path()), MOST_LISTED + 2);
            let first = place.path().join("snapshot-6");
            assert!(first.exists() && !place.path().join("snapshot-5").exists(), "the oldest ones go");
            assert_eq!(flight.taken.len(), MOST_LISTED);
            assert!(flight.taken.iter().all(|one| !one.is_removed), "they are not listed");
            let removed = Removed { count: 5, events: 10, bytes: 5 };
            assert_eq!(flight.totals, SnapshotTotals { taken: more as u32, removed });
        }
    }

    /// A recorder of the same session begins, and takes part of the room.
    #[test]
    fn snapshots_go_when_another_recorder_needs_the_room() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path().join("start");
        let own = session.join("own");
        std::fs::create_dir_all(&own).unwrap();
        let mut flight = flight_with(&own, Rotate { shared: Some(6), ..Rotate::default() });
        (0..6).for_each(|_| take(&mut flight).unwrap());
        assert_eq!(on_disk(&own), 6);
        let (other, _) = Dir::create(&session.join("other")).unwrap();
        let other = Living::begins(other);
        flight.look(flight.next_look - Duration::from_nanos(1)).unwrap();
        assert_eq!(on_disk(&own), 6, "it has looked just now");
        flight.look(flight.next_look).unwrap();
        assert_eq!(on_disk(&own), 3, "the other one has a half");
        take(&mut flight).unwrap();
        assert_eq!(on_disk(&own), 3);
        other.ends();
        (0..6).for_each(|_| take(&mut flight).unwrap());
        assert_eq!((on_disk(&own), flight.totals.removed.count), (6, 7), "it has all again");
    }

    #[test]
    fn the_room_is_bounded_after_the_session_was_moved() {
        let place = tempfile::tempdir().unwrap();
        let (session, moved) = (place.path().join("start"), place.path().join("moved"));
        std::fs::create_dir_all(session.join("own")).unwrap();
        let mut flight = flight_with(&session.join("own"), Rotate { shared: Some(6), ..Rotate::default() });
        (0..6).for_each(|_| take(&mut flight).unwrap());
        std::fs::rename(&session, &moved).unwrap();
        (0..2).for_each(|_| take(&mut flight).unwrap());
        assert_eq!(on_disk(&moved.join("own")), 6);
        let (other, _) = Dir::create(&moved.join("other")).unwrap();
        let _other = Living::begins(other);
        flight.look(flight.next_look).unwrap();
        assert_eq!(on_disk(&moved.join("own")), 3, "the other one has a half");
    }

    #[test]
    fn without_a_bound_all_snapshots_stay() {
        let place = tempfile::tempdir().unwrap();
        let mut flight = flight(place.path(), None, None);
        (0..5).for_each(|_| take(&mut flight).unwrap());
        assert_eq!((on_disk(place.path()), flight.kept.len(), flight.totals.removed.count), (5, 0, 0));
    }

    #[test]
    fn only_what_was_there_was_removed() {
        let place = tempfile::tempdir().unwrap();
        let mut flight = flight(place.path(), Some(2), None);
        (0..2).for_each(|_| take(&mut flight).unwrap());
        // The user has moved the first one away.
        std::fs::rename(place.path().join("snapshot-1"), place.path().join("moved")).unwrap();
        (0..2).for_each(|_| take(&mut flight).unwrap());
        flight.finish_removing();
        let removed: Vec<bool> = flight.taken.iter().map(|one| one.is_removed).collect();
        assert_eq!((removed, flight.totals.removed.count), (vec![false, true, false, false], 1));
        assert!(place.path().join("moved").exists());
    }

    #[test]
    fn what_cannot_be_removed_is_not_reported_as_removed() {
        let place = tempfile::tempdir().unwrap();
        let mut flight = flight(place.path(), Some(2), None);
        (0..2).for_each(|_| take(&mut flight).unwrap());
        // Its name for the time of the removal is taken.
        std::fs::create_dir_all(place.path().join(".snapshot-1.removed/x")).unwrap();
        assert!(take(&mut flight).is_err());
        take(&mut flight).unwrap();
        flight.finish_removing();
        let removed: Vec<bool> = flight.taken.iter().map(|one| one.is_removed).collect();
        assert_eq!((removed, flight.totals.removed.count), (vec![false, true, false, false], 1));
        assert!(place.path().join("snapshot-1").exists());
    }
}
