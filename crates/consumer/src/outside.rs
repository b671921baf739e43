//! Programs of other PID namespaces, containers for example: their events have the numbers that threads and
//! processes have inside. Before packets are written, the numbers that the recorder sees, which the kernel's
//! events have, take their place.
//!
//! The kernel shows both numbers of a thread as long as it lives (`NSpid`, proc_pid_status(5)). What a thread
//! has written that ended before it was seen gets a number that no thread has, from [`UNSEEN`] on: always the
//! same one for a thread. A region whose numbers are replaced is one process's alone.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tracewing_abi::event::CONTEXT;
use tracewing_abi::first::DESCRIPTION;
use tracewing_proc::Status;
use tracewing_units::{Pid, Tid};

use crate::firsts::Firsts;
use crate::packet_events::{Event, Walk};

/// The first number of threads that were not seen: more than a thread can have (`PID_MAX_LIMIT`).
pub const UNSEEN: i32 = 1 << 30;
/// Time between two looks, where nothing waits for them.
const INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of threads that one look sees and whose numbers are kept.
const MOST: usize = 1 << 14;
/// Bytes between the beginning of a first event's payload and its process.
const KEY: usize = 16;

/// What the programs of other namespaces have in common.
#[derive(Debug)]
pub struct Outside {
    /// The id of announcements of threads; 0 while no program may write any.
    announcement: AtomicU16,
    firsts: Arc<Firsts>,
    /// Threads that were not seen.
    unseen: AtomicI32,
}

impl Outside {
    /// In a recording with these first events.
    pub fn new(firsts: Arc<Firsts>) -> Self {
        Self { announcement: AtomicU16::new(0), firsts, unseen: AtomicI32::new(0) }
    }

    /// Programs may announce threads from now on, in the class with this id.
    pub fn begin(&self, id: u16) {
        self.announcement.store(id, Relaxed); // as `Names::begin`
    }

    /// How many threads have ended before they were seen.
    pub fn unseen(&self) -> u32 {
        self.unseen.load(Relaxed).cast_unsigned() // of the thread that reads the buffers, which asks
    }

    fn next(&self) -> Tid {
        Tid(UNSEEN.saturating_add(self.unseen.fetch_add(1, Relaxed)))
    }

    /// Distance from an event's payload to the number of its process, where it has one.
    fn process_at(&self, id: u16) -> Option<usize> {
        match id {
            0 => None,
            id if id == self.announcement.load(Relaxed) => Some(0),
            id => self.firsts.is_first(id).then_some(KEY),
        }
    }
}

/// Whether a process is of another PID namespace than the recorder, which can see it, so that this is one
/// below its own. `None` where it has ended.
pub fn is_of_other_namespace(pid: Pid) -> Option<bool> {
    let count = |status: Option<Status>| Some(status?.numbers()?.count());
    Some(count(Status::of(pid))? > count(Status::own())?)
}

/// A process of another namespace, whose region this is for.
#[derive(Debug)]
pub struct Insider {
    outside: Arc<Outside>,
    /// `None` for a child that is not known yet.
    process: Option<Process>,
    threads: RefCell<Threads>,
}

#[derive(Debug)]
struct Process {
    pid: Pid,
    /// Its folder in `/proc`, which is never another one's with the same number.
    folder: File,
}

/// A thread's number in the namespace of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Inside(i32);

impl Inside {
    /// The thread that has emitted an event.
    fn of(event: &Event, bytes: &[u8]) -> Self {
        Self(event.tid(bytes).0)
    }
}

/// What is known of the threads' numbers outside.
#[derive(Debug)]
struct Threads {
    known: HashMap<Inside, Tid>,
    looked: Instant,
    /// How long the last look took.
    took: Duration,
    /// The number of a process that is not known.
    unseen_process: Option<Pid>,
}

impl Insider {
    /// A child that has not said yet which it is.
    pub fn child(outside: Arc<Outside>) -> Self {
        let (looked, took) = (Instant::now(), Duration::ZERO);
        let threads = Threads { known: HashMap::new(), looked, took, unseen_process: None };
        Self { outside, process: None, threads: RefCell::new(threads) }
    }

    /// Same as [`child`](Self::child), for a process that is known to be `pid`.
    pub fn of(outside: Arc<Outside>, pid: Pid) -> Self {
        let mut this = Self::child(outside);
        this.is(pid);
        this
    }

    /// It is this process.
    pub fn is(&mut self, pid: Pid) {
        self.process = File::open(format!("/proc/{pid}")).ok().map(|folder| Process { pid, folder });
        self.look();
    }

    /// Looks at its threads, if it is time for that.
    pub(crate) fn look_at_times(&self) {
        let threads = self.threads.borrow();
        let is_due = threads.looked.elapsed() >= INTERVAL.max(100 * threads.took);
        drop(threads);
        if is_due {
            self.look();
        }
    }

    fn look(&self) {
        let Some(Process { folder, .. }) = &self.process else { return };
        let begin = Instant::now();
        let mut threads = self.threads.borrow_mut();
        if threads.known.len() > MOST {
            threads.known.clear();
        }
        let tasks = fs::read_dir(format!("/proc/self/fd/{}/task", folder.as_raw_fd()));
        for task in tasks.into_iter().flatten().flatten().take(MOST) {
            let outside = task.file_name().to_str().and_then(|tid| tid.parse().ok());
            let inside = Status::read(task.path().join("status")).and_then(|status| status.numbers()?.last());
            threads.known.extend(inside.map(Inside).zip(outside));
        }
        (threads.looked, threads.took) = (begin, begin.elapsed());
    }

    /// Puts the numbers outside into the events of a packet, which are all complete. `false`, and nothing was
    /// done, where it is better to wait for them, which is not done where it `is_last`.
    pub(crate) fn replace(&self, events: &mut [u8], is_last: bool) -> bool {
        let is_new = |event: &Event| {
            self.outside.process_at(event.id) == Some(0)
                || !self.threads.borrow().known.contains_key(&Inside::of(event, events))
        };
        if (Walk { bytes: events, at: 0 }).any(|event| is_new(&event)) {
            let Threads { looked, took, .. } = *self.threads.borrow();
            // Looking does not take more than a tenth of the time.
            let is_due = looked.elapsed() >= 10 * took && self.process.is_some();
            if !is_due && !is_last {
                return false;
            }
            self.look();
        }
        let mut threads = self.threads.borrow_mut();
        let mut at = 0;
        while let Some(event) = (Walk { bytes: events, at }).next() {
            at = event.at + event.length;
            let inside = Inside::of(&event, events);
            let outside = *threads.known.entry(inside).or_insert_with(|| self.outside.next());
            let context = event.at + event.header;
            events[context..context + CONTEXT].copy_from_slice(&outside.0.to_le_bytes());
            let process = self.outside.process_at(event.id).map(|far| context + CONTEXT + far);
            let place =
                process.filter(|start| start + 4 <= at).and_then(|start| events.get_mut(start..start + 4));
            // A description is not a process's.
            if let Some(place) = place.filter(|place| **place != DESCRIPTION.to_le_bytes()) {
                let pid = match &self.process {
                    Some(process) => process.pid,
                    None => *threads.unseen_process.get_or_insert_with(|| self.outside.next().as_process()),
                };
                place.copy_from_slice(&pid.0.to_le_bytes());
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_abi::event::{HEADER, header_word};

    const ANNOUNCEMENT: u16 = 3;
    const FIRST: u16 = 4;

    fn event(id: u16, tid: i32, payload: &[u8]) -> Vec<u8> {
        let length = (HEADER + CONTEXT + payload.len()) as u16;
        [&header_word(1, id, length).to_le_bytes()[..], &tid.to_le_bytes(), payload].concat()
    }

    fn first(tid: i32, pid: i32) -> Vec<u8> {
        event(FIRST, tid, &[&[7; KEY][..], &pid.to_le_bytes(), &[0; 2]].concat())
    }

    fn outside() -> Arc<Outside> {
        let firsts = Arc::new(Firsts::default());
        firsts.begin(FIRST);
        let outside = Outside::new(firsts);
        outside.begin(ANNOUNCEMENT);
        Arc::new(outside)
    }

    #[test]
    fn a_process_out_of_sight_has_numbers_of_its_own() {
        let child = Insider::child(outside());
        let mut events =
            [event(9, 5, b"x"), first(6, 1), first(6, DESCRIPTION as i32), event(ANNOUNCEMENT, 5, &[1])]
                .concat();
        let before = events.clone();
        assert!(!child.replace(&mut events, false) && events == before, "it may yet say which it is");
        assert!(child.replace(&mut events, true));
        let expected = [
            event(9, UNSEEN, b"x"),
            first(UNSEEN + 1, UNSEEN + 2),
            first(UNSEEN + 1, DESCRIPTION as i32),
            event(ANNOUNCEMENT, UNSEEN, &[1]),
        ];
        assert_eq!(events, expected.concat());
    }

    #[test]
    fn threads_that_live_are_seen() {
        let pid = std::process::id() as i32;
        let mut insider = Insider::child(outside());
        insider.is(Pid(pid));
        let mut events =
            [event(ANNOUNCEMENT, pid, &[1; 6]), event(9, pid, b""), event(9, i32::MAX, b"")].concat();
        assert!(insider.replace(&mut events, true));
        let name = [&pid.to_le_bytes()[..], &[1; 2]].concat();
        let expected = [event(ANNOUNCEMENT, pid, &name), event(9, pid, b""), event(9, UNSEEN, b"")].concat();
        assert_eq!(events, expected);
        assert_eq!(insider.outside.unseen(), 1);
        assert_eq!([pid, i32::MAX].map(Pid).map(is_of_other_namespace), [Some(false), None]);
    }
}
