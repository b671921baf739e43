//! The archives of a rotated recording: complete traces, one after the other, below its folder.
//!
//! A recording begins in its own folder. Its first rotation moves what is there to `archives/BEGIN-1`; each
//! later archive is written in its place from its begin. So no path of a completed archive changes, and a
//! recorder that is killed leaves each trace in a folder whose description says that it is incomplete.
//!
//! A rotation closes the files of the present archive at once ([`Archive`]); the archive is complete when the
//! queue to the disk has passed them. The recorder does not wait for that: it looks at each turn of its loop.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tracewing_abi::message::snapshot::Commands;
use tracewing_consumer::archive::Archive;
use tracewing_consumer::description::{AllArchives, ArchiveTotals, Description};
use tracewing_consumer::folder::Folder;
use tracewing_consumer::summary::StreamSummary;
use tracewing_files::Dir;
use tracewing_profile::Summary as ProfileSummary;
use tracewing_units::{Cycles, Pid};

use crate::archive_names::FOLDER;
use crate::client::Client;
use crate::ended::Ended;
use crate::kernel::KernelSummary;
use crate::limits::Budget;
use crate::on_archive::OnArchive;
use crate::options::Rotate;
use crate::regions::Totals;
use crate::remover::Remover;
use crate::shared::Shared;

/// Rotations that may be requested in a row, and per second after that: a program may request them in a loop.
const ASKED: (u32, f64) = (32, 0.5);
/// Requests that wait for the same rotation.
const MOST_ASKERS: usize = 64;
/// Completed archives that are listed one by one; the first ones go.
const MOST_LISTED: usize = 10_000;

/// What is to be done with the present archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It is completed.
    Rotate,
    /// It is removed.
    Clear,
}

/// Why a recording is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The process with this id has asked.
    Asked(Asked, Pid),
    /// `--rotate-size`.
    Size,
    /// `--rotate-every`.
    Period,
    /// The end of the recording.
    End,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Asked(Asked::Rotate, pid) => write!(f, "asked for by process {pid}"),
            Self::Asked(Asked::Clear, pid) => write!(f, "cleared by process {pid}"),
            Self::Size => f.write_str("--rotate-size"),
            Self::Period => f.write_str("--rotate-every"),
            Self::End => f.write_str("end of the recording"),
        }
    }
}

/// Why a recording is not rotated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRotated {
    #[error("this is a flight recorder, whose snapshots are its archives: use `tracewing snapshot`")]
    FlightRecorder,
    #[error(
        "a flight recorder cannot be cleared: it has nothing on disk except its snapshots, which are folders to delete"
    )]
    NotCleared,
    #[error("too many were asked for in too short a time")]
    TooMany,
    #[error("the recording is ending")]
    Ending,
    /// The kernel gives no random bytes for the trace's UUID.
    #[error("{0}")]
    Uuid(io::Error),
    #[error(transparent)]
    User(#[from] tracewing_consumer::Error),
    #[error(transparent)]
    Kernel(#[from] tracewing_kernel::Error),
    #[error(transparent)]
    Profile(#[from] tracewing_profile::Error),
}

/// The archive that is being written.
#[derive(Clone)]
pub(crate) struct Current {
    pub folder: Folder,
    /// Its name in the folder of all; `None` before the first rotation, in the recording's own folder.
    pub name: Option<String>,
    /// Counted from 1.
    pub number: u64,
    pub begin: Cycles,
    /// Bytes of the state with which it begins. They do not count for `--rotate-size`: each archive has them
    /// again.
    pub state_bytes: u64,
    pub begun: Instant,
    /// The recording's numbers of notes, changes and programs when it began.
    pub before: [usize; 3],
    /// Programs that had joined before, and lived.
    pub alive: Vec<Pid>,
    /// Event rules and major classes when it began.
    pub rules: (Vec<String>, Option<String>),
}

/// An archive that is closed, and of which packets may still be in the queue to the disk.
pub(crate) struct Closing {
    pub folder: Folder,
    pub name: String,
    pub archive: Archive,
    pub kernel: KernelSummary,
    pub profile: ProfileSummary,
    /// Something of the kernel's events or of the samples could not be written.
    pub is_cut_short: bool,
    pub description: Description,
    pub totals: ArchiveTotals,
    /// What was written of it when it was closed.
    pub so_far: Totals,
    pub askers: Vec<Client>,
    /// Whether it is removed once it is complete.
    pub is_cleared: bool,
}

/// A complete archive on the disk.
struct Kept {
    number: u64,
    name: String,
    events: u64,
    bytes: u64,
}

/// What all complete archives amount to.
#[derive(Default)]
pub(crate) struct Whole {
    pub totals: Totals,
    streams: [BTreeMap<String, StreamSummary>; 3],
    /// Losses and what was overwritten.
    pub ranges: Ended,
}

impl Whole {
    fn add(&mut self, archive: &Description) {
        let Description { user_streams, kernel_streams, profile_streams, .. } = archive;
        for (all, streams) in self.streams.iter_mut().zip([user_streams, kernel_streams, profile_streams]) {
            for stream in streams {
                match all.get_mut(&stream.name) {
                    Some(known) => known.add(stream),
                    None => drop(all.insert(stream.name.clone(), stream.clone())),
                }
            }
        }
        archive.losses.iter().for_each(|range| self.ranges.lose(range.clone()));
        archive.overwritten.iter().for_each(|range| self.ranges.overwrite(range.clone()));
    }

    /// The streams of programs, those of the kernel, and those of samples.
    pub(crate) fn streams(&self) -> [Vec<StreamSummary>; 3] {
        self.streams.each_ref().map(|streams| streams.values().cloned().collect())
    }
}

/// The archives of a recording.
pub(crate) struct Archives {
    pub root: Folder,
    /// The folder of all, once there is one.
    pub parent: Option<Dir>,
    pub options: Rotate,
    pub current: Current,
    pub closing: Option<Closing>,
    /// Connections that wait for the next rotation, or until the archive is removed, in their order.
    pub asked: Vec<(Asked, Client)>,
    budget: Budget,
    shared: Option<Shared>,
    /// The command for each archive, if there is one.
    pub on_archive: Option<OnArchive>,
    /// Complete archives that are on the disk, the oldest first.
    kept: VecDeque<Kept>,
    remover: Remover,
    /// No rotation by itself before this time, since one has failed.
    pub not_before: Option<Instant>,
    /// Those that are complete, the last ones if there are many.
    pub complete: Vec<ArchiveTotals>,
    /// How many are complete, and how many of them were removed.
    pub all: AllArchives,
    /// What they amount to, streams by name.
    pub whole: Whole,
}

impl Archives {
    /// None yet: the recording is written to its own folder.
    pub(crate) fn new(root: Folder, options: Rotate, on_archive: Option<OnArchive>, begin: Cycles) -> Self {
        let folder = root.clone();
        let shared = options.shared.map(|most| Shared::new(most, root.dir()));
        let now = Instant::now();
        Self {
            root,
            parent: None,
            options,
            current: Current {
                folder,
                name: None,
                number: 1,
                begin,
                state_bytes: 0,
                begun: now,
                before: [0; 3],
                alive: Vec::new(),
                rules: Default::default(),
            },
            closing: None,
            asked: Vec::new(),
            budget: Budget::new(ASKED.0, ASKED.1, now),
            shared,
            on_archive,
            kept: VecDeque::new(),
            remover: Remover::default(),
            not_before: None,
            complete: Vec::new(),
            all: AllArchives::default(),
            whole: Whole::default(),
        }
    }

    /// Whether there is an archive besides the first one, or will be.
    pub(crate) fn are_several(&self) -> bool {
        self.current.number > 1
    }

    /// A process waits for a rotation.
    ///
    /// # Errors
    /// There are too many such requests.
    pub(crate) fn ask(&mut self, what: Asked, client: Client) -> Result<(), (Client, NotRotated)> {
        if self.asked.len() >= MOST_ASKERS || !self.budget.take(Instant::now()) {
            return Err((client, NotRotated::TooMany));
        }
        self.asked.push((what, client));
        Ok(())
    }

    /// Takes those that wait for a rotation with this reason.
    pub(crate) fn take_askers(&mut self, reason: Reason) -> Vec<Client> {
        let what = if let Reason::Asked(what, _) = reason { what } else { Asked::Rotate };
        self.asked.extract_if(.., |(asked, _)| *asked == what).map(|(_, client)| client).collect()
    }

    /// Why there is to be a rotation now, of an archive with so many bytes.
    pub(crate) fn due(&self, now: Instant, bytes: u64) -> Option<Reason> {
        if self.closing.is_some() {
            return None;
        }
        let Rotate { size, every, .. } = &self.options;
        let may = self.not_before.is_none_or(|time| now >= time);
        match self.asked.first() {
            Some((what, client)) => Some(Reason::Asked(*what, client.pid())),
            None if may
                && size.is_some_and(|size| bytes.saturating_sub(self.current.state_bytes) >= size) =>
            {
                Some(Reason::Size)
            }
            None if may && every.is_some_and(|every| now.duration_since(self.current.begun) >= every) => {
                Some(Reason::Period)
            }
            None => None,
        }
    }

    /// Time until a rotation is due by itself, or until the next look whether an archive is complete.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        const LOOK: Duration = Duration::from_millis(2);
        if self.closing.is_some() {
            return Some(LOOK);
        }
        let every = self.options.every?;
        let wait = every.saturating_sub(now.duration_since(self.current.begun));
        Some(wait.max(self.not_before.map_or(Duration::ZERO, |time| time.saturating_duration_since(now))))
    }

    /// What was recorded before the present archive.
    pub(crate) fn so_far(&self) -> Totals {
        let closing = self.closing.as_ref().map_or(Totals::default(), |closing| closing.so_far);
        self.whole.totals.and(closing)
    }

    /// What the command for each archive has done.
    pub(crate) fn commands(&self) -> Option<Commands> {
        self.on_archive.as_ref().map(OnArchive::so_far)
    }

    /// The path of an archive.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        crate::flight::absolute(&self.root.path().join(FOLDER).join(name))
    }

    /// Adds an archive that is complete to the whole, and hands it to the command.
    pub(crate) fn add(&mut self, description: &Description, totals: ArchiveTotals) {
        let (number, path) = (totals.number, self.path(totals.name()));
        self.add_to_whole(description, totals);
        if let Some(command) = &mut self.on_archive {
            command.push(number, path);
        }
    }

    /// Adds an archive that is complete to the whole, and removes it from the disk.
    ///
    /// # Errors
    /// It cannot be removed; it is kept.
    pub(crate) fn add_cleared(&mut self, description: &Description, totals: ArchiveTotals) -> io::Result<()> {
        self.add_to_whole(description, totals);
        let Some(parent) = self.parent.clone() else { return Ok(()) };
        self.kept.pop_back().map_or(Ok(()), |kept| self.hide(&parent, &kept).map(drop))
    }

    fn add_to_whole(&mut self, description: &Description, totals: ArchiveTotals) {
        let sum = &mut self.whole.totals;
        sum.events += totals.events;
        sum.lost = sum.lost.saturating_add(totals.lost);
        sum.is_lost_unknown |= totals.is_lost_unknown;
        sum.bytes += totals.bytes;
        self.whole.add(description);
        let name = totals.name().to_owned();
        let ArchiveTotals { number, events, bytes, .. } = totals;
        self.kept.push_back(Kept { number, name, events, bytes });
        self.all.completed += 1;
        if self.complete.len() >= MOST_LISTED {
            self.complete.remove(0);
        }
        self.complete.push(totals);
    }

    /// Removes the oldest complete archives, except for that on which the command works, until there are no
    /// more than are kept, and all have at most the bytes that they may have, and so have those of the whole
    /// session. `bytes`: of the present
    /// archive; `None` when the recording is over. Says whether one was removed. One that the user has moved
    /// or removed counts no more.
    ///
    /// # Errors
    /// One cannot be removed; it is kept, and counts no more.
    pub(crate) fn make_room(&mut self, bytes: Option<u64>) -> io::Result<bool> {
        let Some(parent) = self.parent.clone() else { return Ok(false) };
        let mut has_removed = false;
        loop {
            let all = self.kept.iter().map(|kept| kept.bytes).sum::<u64>().saturating_add(bytes.unwrap_or(0));
            let busy = self.on_archive.as_ref().and_then(|command| Some(command.working_on()?.0));
            let oldest = self.kept.iter().position(|kept| Some(kept.number) != busy);
            let count = self.kept.len() + usize::from(bytes.is_some());
            let is_too_many = self.options.keep.is_some_and(|most| count > most.get());
            let Some(at) = oldest.filter(|at| is_too_many || self.is_too_much(all, *at, bytes.is_none()))
            else {
                return Ok(has_removed);
            };
            let Some(kept) = self.kept.remove(at) else { return Ok(has_removed) };
            has_removed |= self.hide(&parent, &kept)?;
        }
    }

    /// Whether all archives have more bytes than they may have, or those of the session have, so that the one
    /// at this place is to be removed.
    fn is_too_much(&mut self, all: u64, oldest: usize, is_over: bool) -> bool {
        let Some(oldest) = self.kept.get(oldest) else { return false };
        let (shared, is_last) = (self.shared.as_mut(), self.kept.len() == 1);
        self.options.total.is_some_and(|most| all > most)
            || shared.is_some_and(|shared| match is_over {
                true => !is_last && shared.is_due_at_end(all, &oldest.name),
                false => shared.is_due(all, &oldest.name, Instant::now()),
            })
    }

    /// Takes an archive away from readers, and has it removed. Says whether it was there.
    fn hide(&mut self, parent: &Dir, Kept { number, name, events, bytes }: &Kept) -> io::Result<bool> {
        if !self.remover.remove(parent, name)? {
            return Ok(false);
        }
        self.all.removed.add(*events, *bytes);
        self.on_archive.iter_mut().for_each(|command| command.skip(*number));
        // In their order.
        if let Ok(at) = self.complete.binary_search_by_key(number, |it| it.number) {
            self.complete[at].is_removed = true;
        }
        Ok(true)
    }

    /// Waits until all that was removed is gone.
    pub(crate) fn finish_removing(&mut self) {
        self.remover.finish();
    }
}

#[cfg(test)]
mod tests;
