//! Names of threads that were announced with the program's name because their process does not know another
//! one. The kernel's name is read when the announcement is found, if the thread is still alive.
//!
//! The first thread keeps the announced name: by the time it is read, the process may have executed another
//! program. The announced name is also kept if the kernel's cannot be read, or more than [`MOST`] are needed.
//! A process is free to announce what it likes, also here: it can cause a lookup of any process's thread,
//! whose name every user can read.

use std::fs;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tracewing_abi::event::CONTEXT;
use tracewing_proc::Stat;
use tracewing_units::{Cycles, Pid, Tid};
use tracewing_vocabulary::own;

use crate::clock::TraceClock;
use crate::packet_events::Walk;

/// The class of announcements: `i32` process id and the name, with a zero at its end.
pub const CLASS: &str = own::Thread::NAME;

/// Maximum number of announcements that wait to be taken.
const MOST_ANNOUNCED: usize = 1 << 14;
/// Maximum number of lookups per second.
const MOST: u32 = 1000;
/// The kernel's unit of thread start times in seconds, and the rounding error.
const TICK: f64 = 0.01;

/// Corrects the names of threads in events, from `/proc`.
#[derive(Debug)]
pub struct Names {
    /// The id of [`CLASS`]; 0 while no program may write any.
    id: AtomicU16,
    clock: TraceClock,
    /// Number of lookups in the second that began at this time.
    looked: Mutex<(u32, Instant)>,
    /// Announcements that wait to be taken; `None` if they are not kept.
    announced: Mutex<Option<Vec<Announced>>>,
}

/// A thread that has announced itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// The thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Its name.
    pub name: Vec<u8>,
    /// When.
    pub at: Cycles,
}

/// A thread, as its `tracewing:thread` event announces it.
struct Thread<'a> {
    tid: Tid,
    pid: Pid,
    name: &'a [u8],
    stamp: Cycles,
}

impl Names {
    /// For a recording with this clock.
    pub fn new(clock: TraceClock) -> Self {
        Self {
            id: AtomicU16::new(0),
            clock,
            looked: Mutex::new((0, Instant::now())),
            announced: Mutex::new(None),
        }
    }

    /// Keeps announcements from now on, and takes those that were kept so far.
    pub fn take_announced(&self) -> Vec<Announced> {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        announced.replace(Vec::new()).unwrap_or_default()
    }

    fn keep(&self, thread: &Thread<'_>, name: &[u8]) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(announced) = announced.as_mut().filter(|announced| announced.len() < MOST_ANNOUNCED) {
            let Thread { tid, pid, stamp: at, .. } = *thread;
            announced.push(Announced { tid, pid, name: name.to_vec(), at });
        }
    }

    /// Allows programs to announce threads, in the class with this id.
    pub fn begin(&self, id: u16) {
        self.id.store(id, Relaxed); // only compared with ids in packets, which programs write after the grant
    }

    /// Whether an event with this id is an announcement.
    pub(crate) fn is_one(&self, id: u16) -> bool {
        id == self.id.load(Relaxed) && id != 0
    }

    /// Replaces names in the announcements of a packet that has no event older than `begin`. `events` are
    /// whole.
    pub(crate) fn replace(&self, events: &mut Vec<u8>, begin: Cycles) {
        let mut renamed = Vec::new();
        let (mut copied, mut last) = (0, begin);
        for event in (Walk { bytes: events, at: 0 }) {
            last = event.stamp(events, last);
            if !self.is_one(event.id) {
                continue;
            }
            let (start, end) = (event.at + event.header + CONTEXT, event.at + event.length);
            let Some((pid, name)) = events[start..end].split_first_chunk() else { continue };
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let (pid, tid) = (Pid(i32::from_le_bytes(*pid)), event.tid(events));
            let thread = Thread { tid, pid, name, stamp: last };
            let kernels = self.name(&thread);
            self.keep(&thread, kernels.as_deref().unwrap_or(name));
            let Some(name) = kernels else { continue };
            let head = renamed.len() + event.at - copied;
            renamed.extend_from_slice(&events[copied..start + 4]);
            renamed.extend_from_slice(&name);
            renamed.push(0);
            let length = (renamed.len() - head) as u16; // 16 bytes more than it was, at most
            renamed[head + 6..head + 8].copy_from_slice(&length.to_le_bytes());
            copied = end;
        }
        if copied > 0 {
            renamed.extend_from_slice(&events[copied..]);
            *events = renamed;
        }
    }

    /// The kernel's name of a thread, if the thread is alive and was announced with only the program's name.
    fn name(&self, thread: &Thread<'_>) -> Option<Vec<u8>> {
        let Thread { tid, pid, .. } = *thread;
        if tid == pid.first_thread() || !self.may_look() || read(&format!("/proc/{pid}/comm"))? != thread.name
        {
            return None;
        }
        let task = format!("/proc/{pid}/task/{tid}");
        let name = read(&format!("{task}/comm"))?;
        // Checked last: what was read belongs to this thread, or to an earlier one with the same id.
        let began = Stat::of_thread(pid, tid)?.began()? as f64 * TICK;
        let is_it = began <= self.time(thread.stamp) + 2.0 * TICK;
        (is_it && name != thread.name && !name.is_empty() && str::from_utf8(&name).is_ok()).then_some(name)
    }

    fn may_look(&self) -> bool {
        let now = Instant::now();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(looked.1) >= Duration::from_secs(1) {
            *looked = (0, now);
        }
        looked.0 += 1;
        looked.0 <= MOST
    }

    /// Seconds since boot.
    fn time(&self, stamp: Cycles) -> f64 {
        let now = clock_gettime(ClockId::Boottime);
        let ago = self.clock.now().since(stamp).0 as f64 / self.clock.frequency() as f64;
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9 - ago
    }
}

/// A name as the kernel shows it, without the newline.
fn read(path: &str) -> Option<Vec<u8>> {
    let mut name = fs::read(path).ok()?;
    name.pop_if(|byte| *byte == b'\n');
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockChoice;
    use std::process::id;
    use std::sync::mpsc::channel;
    use tracewing_abi::event::{HEADER, header_word};

    const CLASS: u16 = 3;

    fn event(id: u16, stamp: u64, tid: i32, payload: &[u8]) -> Vec<u8> {
        let length = (HEADER + CONTEXT + payload.len()) as u16;
        [&header_word(stamp, id, length).to_le_bytes()[..], &tid.to_le_bytes(), payload].concat()
    }

    fn announced(stamp: u64, tid: i32, name: &[u8]) -> Vec<u8> {
        event(CLASS, stamp, tid, &[&(id() as i32).to_le_bytes(), name, &[0]].concat())
    }

    #[test]
    fn names_are_read_of_living_threads_of_that_time() {
        let clock = TraceClock::new(ClockChoice::Auto).unwrap();
        let names = Names::new(clock);
        names.begin(CLASS);
        let program = read(&format!("/proc/{}/comm", id())).unwrap();
        let (send, receive) = channel();
        let (end, wait) = channel::<()>();
        let before = clock.now().0.saturating_sub(clock.frequency());
        let body = move || {
            // SAFETY: takes nothing and cannot fail.
            send.send(unsafe { libc::syscall(libc::SYS_gettid) } as i32).unwrap();
            let _ = wait.recv();
        };
        let thread = std::thread::Builder::new().name("a name".to_owned()).spawn(body).unwrap();
        let tid = receive.recv().unwrap();
        let Cycles(now) = clock.now();
        let replaced = |events: &[Vec<u8>]| {
            let mut events = events.concat();
            names.replace(&mut events, Cycles(now));
            events
        };
        let around = [event(4, now, tid, b"before"), event(5, now, tid, b"after")];
        let [one, other] = around.clone();
        let expected = [one.clone(), announced(now, tid, b"a name"), other.clone()].concat();
        assert_eq!(replaced(&[one, announced(now, tid, &program), other]), expected);
        for kept in [
            announced(now, tid, b"its own"),
            announced(now, id() as i32, &program),
            announced(now, i32::MAX, &program),
            event(CLASS, now, tid, b"??"),
        ] {
            assert_eq!(replaced(std::slice::from_ref(&kept)), kept);
        }
        let mut old = announced(before, tid, &program);
        names.replace(&mut old, Cycles(before));
        assert_eq!(old, announced(before, tid, &program), "another thread had the id then");
        drop(end);
        thread.join().unwrap();
    }
}
