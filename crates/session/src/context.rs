//! Context of threads that does not change from event to event: process, names, user, control group,
//! namespaces. The recorder reads it in `/proc`, and writes it once for each thread and whenever it finds it
//! changed; programs do nothing for it. Readers join it with the events by thread and time.
//!
//! Programs are looked at when they join, and then at an interval. A thread that has come and gone between
//! two looks is known by its announcement, which has its process and its name; the rest is its process's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tracewing_abi::message::{ClassesWriter, decode_classes};
use tracewing_abi::schema::{Class, Field, Scalar, Shape};
use tracewing_consumer::Error;
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::names::Announced;
use tracewing_consumer::snapshot::Snapshot;
use tracewing_proc::guarded::{self, NAMESPACES};
use tracewing_proc::{Stat, Status};
use tracewing_units::{Cycles, Pid, Tid};
use tracewing_vocabulary::FieldKind;
use tracewing_vocabulary::recorder::ThreadContext;

use crate::options::ContextField;

/// The stream of the events with context.
pub(crate) const STREAM: &str = "context";
/// The stream of those with which an archive begins.
pub(crate) const STATE_STREAM: &str = "context_state";

/// Minimum time between two looks; at least 100 times as long as a look takes.
const INTERVAL: Duration = Duration::from_millis(100);
/// Above this number, threads that have ended are forgotten.
const MOST: usize = 1 << 16;
/// Events that wait for the disk. What comes beyond is unknown to readers.
const MOST_PENDING: usize = 1 << 16;
/// Versions of a thread's context that are kept for snapshots.
const MOST_VERSIONS: usize = 16;
/// The kernel's unit of thread start times in seconds, and the rounding error.
const TICK: f64 = 0.01;
/// A number that is unknown.
const UNKNOWN: u32 = u32::MAX;

/// What is recorded of threads, and what is known of each.
pub(crate) struct Contexts {
    fields: Vec<ContextField>,
    /// Of the class of the events.
    id: u16,
    clock: TraceClock,
    threads: BTreeMap<Tid, Thread>,
    /// Events that are not written yet.
    pending: Vec<(Tid, Vec<u8>)>,
    due: Instant,
}

struct Thread {
    is_there: bool,
    /// When it was last seen to live.
    seen: Cycles,
    /// At least one, by time.
    versions: Vec<Version>,
}

#[derive(Clone)]
struct Version {
    since: Cycles,
    values: Values,
}

/// The context of a thread; an empty text is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Values {
    pid: Pid,
    process: Vec<u8>,
    thread: Vec<u8>,
    uid: u32,
    gid: u32,
    cgroup: Vec<u8>,
    namespaces: Vec<u8>,
}

impl Contexts {
    /// Records these fields; `None` if there are none.
    pub(crate) fn new(fields: &[ContextField], clock: TraceClock, classes: &mut Classes) -> Option<Self> {
        let of_threads = |field: &ContextField| fields.contains(field) && *field != ContextField::Ip;
        let fields: Vec<_> = ContextField::ALL.into_iter().filter(of_threads).collect();
        let (threads, pending, due) = (BTreeMap::new(), Vec::new(), Instant::now());
        let id = if fields.is_empty() { return None } else { class(&fields, classes)? };
        Some(Self { fields, id, clock, threads, pending, due })
    }

    /// Looks at the threads of processes, if it is time for that.
    pub(crate) fn look(&mut self, processes: impl Iterator<Item = Pid>) {
        let begin = Instant::now();
        if begin >= self.due {
            self.look_now(processes);
            self.due = begin + INTERVAL.max(100 * begin.elapsed());
        }
    }

    /// Looks at the threads of these processes, which are all.
    pub(crate) fn look_now(&mut self, processes: impl Iterator<Item = Pid>) {
        self.threads.values_mut().for_each(|thread| thread.is_there = false);
        processes.for_each(|process| self.see(process));
        if self.threads.len() > MOST {
            self.threads.retain(|_, thread| thread.is_there);
        }
    }

    /// Looks at the threads of a process.
    pub(crate) fn see(&mut self, pid: Pid) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
        let process = read(Path::new(&format!("/proc/{pid}/comm")));
        for task in tasks.flatten() {
            let Some(tid) = task.file_name().to_str().and_then(|tid| tid.parse().ok()).map(Tid) else {
                continue;
            };
            if let Some(values) = self.read((pid, tid), &process, &task.path()) {
                self.found(tid, values);
            }
        }
    }

    fn has(&self, field: ContextField) -> bool {
        self.fields.contains(&field)
    }

    /// Reads what is recorded of a thread with this folder; `None` if it has ended.
    fn read(&self, (pid, tid): (Pid, Tid), process: &[u8], task: &Path) -> Option<Values> {
        use ContextField::{Cgroup, Gid, Namespaces, Process, Thread, Uid};
        let text = |field, read: &dyn Fn() -> Vec<u8>| if self.has(field) { read() } else { Vec::new() };
        let (mut uid, mut gid) = (UNKNOWN, UNKNOWN);
        if self.has(Uid) || self.has(Gid) {
            let status = Status::read(task.join("status"))?;
            let real = |name| status.field(name)?.split_whitespace().next()?.parse().ok();
            uid = real("Uid").filter(|_| self.has(Uid)).unwrap_or(UNKNOWN);
            gid = real("Gid").filter(|_| self.has(Gid)).unwrap_or(UNKNOWN);
        }
        Some(Values {
            pid,
            process: text(Process, &|| process.to_vec()),
            thread: text(Thread, &|| read(&task.join("comm"))),
            uid,
            gid,
            cgroup: text(Cgroup, &|| group(&fs::read_to_string(task.join("cgroup")).unwrap_or_default())),
            namespaces: text(Namespaces, &|| namespaces(pid, tid)),
        })
    }

    /// A thread lives, and has this context now.
    fn found(&mut self, tid: Tid, values: Values) {
        let now = self.clock.now();
        let pid = values.pid;
        let since = match self.threads.get_mut(&tid) {
            Some(thread) if thread.versions.last().is_some_and(|last| last.values.pid == pid) => {
                (thread.is_there, thread.seen) = (true, now);
                if thread.versions.last().is_some_and(|last| last.values == values) {
                    return;
                }
                now
            }
            _ => Stat::of_thread(pid, tid).and_then(|stat| self.time(stat.began()?)).unwrap_or(now),
        };
        self.add(tid, Version { since, values }, now);
    }

    /// Threads have announced themselves. Of those that were not seen, the rest is their process's.
    pub(crate) fn announced(&mut self, announced: Vec<Announced>) {
        for Announced { tid, pid, name, at } in announced {
            let of = |tid: &Tid| Some(&self.threads.get(tid)?.versions.last()?.values);
            let own = of(&tid).filter(|values| values.pid == pid);
            if own.is_some() && self.threads.get(&tid).is_some_and(|thread| thread.seen >= at) {
                continue;
            }
            let is_first = tid == pid.first_thread();
            let unknown = || Values {
                pid,
                process: if is_first && self.has(ContextField::Process) { name.clone() } else { Vec::new() },
                thread: Vec::new(),
                uid: UNKNOWN,
                gid: UNKNOWN,
                cgroup: Vec::new(),
                namespaces: Vec::new(),
            };
            let known = own.or_else(|| of(&pid.first_thread()).filter(|values| values.pid == pid)).cloned();
            let thread = if self.has(ContextField::Thread) { name.clone() } else { Vec::new() };
            let values = Values { thread, ..known.unwrap_or_else(unknown) };
            if own != Some(&values) {
                self.add(tid, Version { since: at, values }, at);
            }
        }
    }

    /// Adds a version of a thread that lived at the time `seen`; the next look shows whether it still does.
    fn add(&mut self, tid: Tid, version: Version, seen: Cycles) {
        if self.threads.len() >= MOST && !self.threads.contains_key(&tid) {
            self.threads.retain(|_, thread| thread.is_there);
        }
        // Programs decide how many threads they announce.
        if self.threads.len() >= 2 * MOST || self.pending.len() >= MOST_PENDING {
            return;
        }
        self.pending.push((tid, self.payload(tid, &version)));
        let new = Thread { is_there: true, seen, versions: Vec::new() };
        let thread = self.threads.entry(tid).or_insert(new);
        (thread.is_there, thread.seen) = (true, thread.seen.max(seen));
        if thread.versions.len() == MOST_VERSIONS {
            thread.versions.remove(0);
        }
        thread.versions.push(version);
    }

    /// When a thread has begun, on the recording's clock, or a little earlier.
    fn time(&self, began: u64) -> Option<Cycles> {
        let now = clock_gettime(ClockId::Boottime);
        let ago = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9 - (began as f64 - 1.0) * TICK;
        let ago = (ago.max(0.0) * self.clock.frequency() as f64) as u64;
        Some(Cycles(self.clock.now().0.saturating_sub(ago)))
    }

    /// The id of the class of these events, and those that are not written yet.
    pub(crate) fn pending(&self) -> (u16, &[(Tid, Vec<u8>)]) {
        (self.id, &self.pending)
    }

    /// How many bytes those have, about.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|(_, payload)| payload.len() + 2 * size_of::<u64>()).sum()
    }

    /// They are written.
    pub(crate) fn written(&mut self) {
        self.pending.clear();
    }

    /// The id of the class of these events, and the context of all threads that lived at the last look, with
    /// which an archive begins.
    pub(crate) fn state(&self) -> (u16, impl Iterator<Item = (Tid, Vec<u8>)>) {
        let living = self.threads.iter().filter(|(_, thread)| thread.is_there);
        let last = living.filter_map(|(tid, thread)| Some((*tid, thread.versions.last()?)));
        (self.id, last.map(|(tid, version)| (tid, self.payload(tid, version))))
    }

    /// What was read of a process was not read of the program that was meant.
    pub(crate) fn forget(&mut self, pid: Pid) {
        let is_other = |thread: &Thread| thread.versions.last().is_none_or(|last| last.values.pid != pid);
        self.threads.retain(|_, thread| is_other(thread));
        self.pending.retain(|(_, payload)| payload.get(4..8) != Some(&pid.0.to_le_bytes()[..]));
    }

    /// Writes all that is known into a snapshot.
    ///
    /// # Errors
    /// A file of it cannot be written.
    pub(crate) fn write_into(&self, snapshot: &mut Snapshot) -> Result<(), Error> {
        snapshot.report(STREAM, self.id, self.events())
    }

    fn events(&self) -> impl Iterator<Item = (Tid, Vec<u8>)> {
        self.threads.iter().flat_map(|(tid, thread)| {
            thread.versions.iter().map(|version| (*tid, self.payload(*tid, version)))
        })
    }

    fn payload(&self, tid: Tid, Version { since, values }: &Version) -> Vec<u8> {
        let mut payload = [tid.0, values.pid.0].into_iter().flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
        payload.extend_from_slice(&since.0.to_le_bytes());
        let text = |payload: &mut Vec<u8>, text: &[u8]| {
            payload.extend(text.iter().copied().filter(|byte| *byte != 0).chain([0]));
        };
        for field in &self.fields {
            match field {
                ContextField::Pid | ContextField::Ip => {}
                ContextField::Process => text(&mut payload, &values.process),
                ContextField::Thread => text(&mut payload, &values.thread),
                ContextField::Uid => payload.extend_from_slice(&values.uid.to_le_bytes()),
                ContextField::Gid => payload.extend_from_slice(&values.gid.to_le_bytes()),
                ContextField::Cgroup => text(&mut payload, &values.cgroup),
                ContextField::Namespaces => text(&mut payload, &values.namespaces),
            }
        }
        payload
    }
}

/// The id of the class of events with these fields.
fn class(fields: &[ContextField], classes: &mut Classes) -> Option<u16> {
    let is_recorded = |name: &str| match ContextField::ALL.iter().find(|field| field.name() == name) {
        None | Some(ContextField::Pid) => true, // `tid`, `pid`, `since`
        Some(field) => fields.contains(field),
    };
    let recorded: Vec<Field<'_>> = ThreadContext::FIELDS
        .iter()
        .filter(|field| is_recorded(field.name))
        .map(|field| match field.kind {
            FieldKind::Text => Field::plain(field.name, Shape::Text, Scalar::U8),
            _ if field.name == ThreadContext::since.name => Field::plain(field.name, Shape::One, Scalar::U64),
            _ if [ThreadContext::tid.name, ThreadContext::pid.name].contains(&field.name) => {
                Field::plain(field.name, Shape::One, Scalar::I32)
            }
            _ => Field::plain(field.name, Shape::One, Scalar::U32),
        })
        .collect();
    let class = Class {
        description: "The context of a thread, from a time on",
        print: "thread {tid} of process {pid}",
        fields: &recorded,
        ..Class::named(ThreadContext::NAME)
    };
    let mut message = [0; 1024];
    let message = ClassesWriter::new(&mut message).and_then(|mut writer| {
        writer.push(&class)?;
        Ok(writer.finish())
    });
    let class = message.ok().and_then(|message| decode_classes(message).ok()?.next()?.ok())?;
    classes.register([class]).ok()?.ids.pop().filter(|id| *id != 0)
}

/// A file of one line, without the newline; empty if it cannot be read, or is no UTF-8.
fn read(path: &Path) -> Vec<u8> {
    let mut text = fs::read(path).unwrap_or_default();
    text.pop_if(|byte| *byte == b'\n');
    if str::from_utf8(&text).is_ok() {
        text
    } else {
        String::from_utf8_lossy(&text).into_owned().into_bytes()
    }
}

/// The control group in `/proc/PID/cgroup`: that of version 2, else that of systemd, else the first.
fn group(text: &str) -> Vec<u8> {
    let path = |controllers: &str| {
        text.lines().find_map(|line| line.split_once(':')?.1.strip_prefix(controllers)?.strip_prefix(':'))
    };
    let first = || text.lines().next()?.splitn(3, ':').nth(2);
    path("").or_else(|| path("name=systemd")).or_else(first).unwrap_or_default().as_bytes().to_vec()
}

/// The namespaces in `/proc/PID/ns`; empty if they cannot be read, which needs the right to trace the
/// process.
fn namespaces(pid: Pid, tid: Tid) -> Vec<u8> {
    let all = NAMESPACES.iter().zip(guarded::namespaces(pid, tid)).filter(|(_, number)| *number != 0);
    all.map(|(name, number)| format!("{name}:{number}")).collect::<Vec<_>>().join(" ").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_consumer::clock::ClockChoice;
    use tracewing_ctf::model::ClockClass;

    #[test]
    fn the_control_group_of_version_2_is_preferred() {
        for (text, expected) in [
            ("0::/user.slice/a b:c\n", "/user.slice/a b:c"),
            ("9:name=systemd:/s\n8:pids:/p\n0::/two\n", "/two"),
            ("9:pids:/p\n8:name=systemd:/s\n", "/s"),
            ("9:cpu,cpuacct:/c:d\n8:pids:/p\n", "/c:d"),
            ("", ""),
            ("nonsense\n", ""),
        ] {
            assert_eq!(group(text), expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn context_is_reported_once_and_when_it_has_changed() {
        let clock = TraceClock::new(ClockChoice::Auto).unwrap();
        let mut classes = Classes::new(&[], [1; 16], ClockClass::new("c", 1)).unwrap();
        let mut contexts = Contexts::new(&ContextField::ALL, clock, &mut classes).unwrap();
        let pid = Pid(std::process::id() as i32);
        let tid = Tid(77);
        let values = Values {
            pid,
            process: b"p".to_vec(),
            thread: b"t".to_vec(),
            uid: 1,
            gid: 2,
            cgroup: b"/".to_vec(),
            namespaces: Vec::new(),
        };
        contexts.found(tid, values.clone());
        contexts.found(tid, values.clone());
        assert_eq!(contexts.pending().1.len(), 1);
        contexts.written();
        contexts.found(tid, Values { uid: 3, ..values });
        assert_eq!(contexts.pending().1.len(), 1);
        assert_eq!(contexts.events().count(), 2);
        let announced = |tid, at| Announced { tid: Tid(tid), pid, name: b"n".to_vec(), at };
        contexts.written();
        contexts.announced(vec![announced(77, Cycles(1)), announced(78, clock.now())]);
        let (_, [(tid, payload)]) = contexts.pending() else { panic!("{:?}", contexts.pending()) };
        assert_eq!((*tid, &payload[4..8]), (Tid(78), &pid.0.to_le_bytes()[..]));
    }
}
