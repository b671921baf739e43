//! Stream files that are still being written: how much of them is whole packets, and up to when they reach.

use crate::open::recording::{Recording, Stream};
use crate::stream::file::StreamFile;
use crate::stream::packet::{PacketFile, Whole};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracewing_units::Timestamp;

/// How long an event waits for earlier ones of streams that are not known yet. tracewing's recorder writes
/// each event within 0.2 s.
const SETTLE: Duration = Duration::from_millis(300);

/// A packet that cannot be decoded for so long is damaged: the metadata will not explain it any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// The stream files of a recording, looked at again and again.
#[derive(Debug)]
pub(crate) struct Tails {
    files: HashMap<PathBuf, Tail>,
    /// For how long an event waits for earlier ones of streams in which nothing happens.
    hold: Duration,
}

impl Tails {
    pub(crate) fn new(hold: Duration) -> Self {
        Self { files: HashMap::new(), hold }
    }

    /// Observes the files of `recording` from now on; earlier knowledge of them is kept.
    pub(crate) fn open(&mut self, recording: &Recording) {
        for stream in recording.streams() {
            for file in &stream.files {
                match self.files.get_mut(&file.path) {
                    Some(tail) => tail.reopen(recording.reader(stream, file, false), file.is_known),
                    None => {
                        let tail = Tail::new(recording.reader(stream, file, true), file.is_known);
                        self.files.insert(file.path.clone(), tail);
                    }
                }
            }
        }
    }

    /// Looks for packets that have become complete; returns whether there are any, or damage must be
    /// reported.
    pub(crate) fn look(&mut self, now: Instant) -> bool {
        self.files.values_mut().filter_map(|tail| tail.look(now).then_some(())).count() > 0
    }

    /// Up to when events can be printed, in nanoseconds since the clock's origin: before the ends of all
    /// streams as they were [`SETTLE`] ago, and up to the end of what has waited long enough.
    pub(crate) fn until(&mut self, recording: &Recording, now: Instant) -> Timestamp {
        self.files.values_mut().for_each(|tail| tail.forget(now, self.hold));
        let reach = |file: &StreamFile| self.files.get(&file.path)?.reach(now);
        let reach = |stream: &Stream| stream.files.iter().filter_map(reach).max().unwrap_or(Timestamp::MIN);
        let all = recording.streams().iter().map(reach).min().unwrap_or(Timestamp::MIN);
        let overdue = self.files.values().map(|tail| tail.overdue).max().unwrap_or(Timestamp::MIN);
        all.previous().max(overdue)
    }

    /// Whether there are packets of unknown streams, which were added after the recording was opened.
    pub(crate) fn has_unknown(&self) -> bool {
        self.files.values().any(|tail| !tail.is_known && tail.file.place().1 > 0)
    }

    /// Up to where a file can be read, in bytes.
    pub(crate) fn whole(&self, path: &Path) -> u64 {
        self.files.get(path).map_or(0, Tail::whole)
    }
}

#[derive(Debug)]
struct Tail {
    /// After the last complete packet.
    file: PacketFile,
    /// Whether the recording knows to which stream it belongs.
    is_known: bool,
    /// Up to when its packets reach, in nanoseconds since the clock's origin.
    reach: Timestamp,
    /// The same when packets came a short time ago.
    arrivals: VecDeque<(Instant, Timestamp)>,
    /// The same for packets that came before.
    overdue: Timestamp,
    /// Since when the next packet cannot be decoded.
    stuck: Option<Instant>,
    damaged: bool,
}

impl Tail {
    /// Takes packets before that at hand in `file` for whole.
    fn new(file: PacketFile, is_known: bool) -> Self {
        Tail {
            file,
            is_known,
            reach: Timestamp::MIN,
            arrivals: VecDeque::new(),
            overdue: Timestamp::MIN,
            stuck: None,
            damaged: false,
        }
    }

    /// The same file and what is known of it, read by another recording.
    fn reopen(&mut self, mut file: PacketFile, is_known: bool) {
        let (offset, index) = self.file.place();
        file.seek(offset, index, 0);
        self.file = file;
        self.is_known = is_known;
    }

    /// Looks for packets that have become complete; returns whether there are any, or damage must be
    /// reported.
    fn look(&mut self, now: Instant) -> bool {
        let mut found = false;
        let rest = loop {
            match self.file.try_packet() {
                Whole::Yes { reach } => self.reach = self.reach.max(reach),
                rest => break rest,
            }
            self.file.leave_packet();
            found = true;
        };
        self.file.rest();
        if found {
            self.arrivals.push_back((now, self.reach));
        }
        self.stuck = match self.stuck {
            Some(since) if rest == Whole::Damaged && !found => Some(since),
            _ => (rest == Whole::Damaged).then_some(now),
        };
        let was_damaged = self.damaged;
        self.damaged = self.stuck.is_some_and(|since| now.duration_since(since) > PATIENCE);
        found || self.damaged != was_damaged
    }

    /// Up to where the file can be read, in bytes.
    fn whole(&self) -> u64 {
        match (self.damaged, self.is_known) {
            (true, _) => u64::MAX,
            (false, true) => self.file.place().0,
            (false, false) => 0,
        }
    }

    /// Up to when its packets reached [`SETTLE`] ago; `None` where there were none. Packets without stamps
    /// hold nothing up.
    fn reach(&self, now: Instant) -> Option<Timestamp> {
        let settled = self.arrivals.iter().rev().find(|(when, _)| now.duration_since(*when) >= SETTLE);
        let reach = settled.map_or(self.overdue, |(_, reach)| *reach);
        match self.arrivals.is_empty() && reach == Timestamp::MIN {
            true if self.file.place().1 == 0 => None,
            true => Some(Timestamp::MAX),
            false => Some(reach),
        }
    }

    /// Notes what came this long ago as overdue.
    fn forget(&mut self, now: Instant, hold: Duration) {
        while let Some((_, reach)) = self.arrivals.pop_front_if(|(when, _)| now.duration_since(*when) >= hold)
        {
            self.overdue = reach;
        }
    }
}

#[cfg(test)]
mod tests;
