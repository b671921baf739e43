//! The kernel's own text against ours: a second instance records the same events of the same process, its
//! `trace` file with the option `fields` (Linux 6.4) prints every field; event for event and field for field
//! they must agree.

mod common;

use common::{Actor, Line, babeltrace, gate, number, options, role, say, traceable};
use rustix::process::{Signal, getpid, getppid, kill_process};
use rustix::thread::gettid;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tracewing_kernel::choose::{DEFAULT, choose};
use tracewing_kernel::format::{Format, Shape};
use tracewing_kernel::lttng::{event_name, field_name};
use tracewing_kernel::{Scope, Tracefs};

/// Besides the default set: masks, tables of arguments, many flags and enumerations.
const MORE: &[&str] = &[
    "kmem:*",
    "timer:*",
    "task:*",
    "sched:*",
    "raw_syscalls:*",
    "filemap:*",
    "mmap_lock:*",
    "tlb:*",
    "vmalloc:*",
];

/// An actor that does a bit of everything.
#[test]
fn busy() {
    if role("busy").is_none() {
        return;
    }
    say("tid", gettid());
    gate();
    for round in 0..50 {
        std::hint::black_box(getppid());
        let _ = fs::read("/proc/self/stat");
        let _ = fs::metadata(format!("/no/such/file/{round}"));
        let memory = vec![round as u8; 400_000];
        std::hint::black_box(&memory);
        std::thread::sleep(std::time::Duration::from_micros(200));
        if round % 10 == 0 {
            std::thread::spawn(|| std::hint::black_box(gettid())).join().unwrap();
            // The default of SIGCHLD is to do nothing.
            kill_process(getpid(), Signal::CHILD).unwrap();
        }
    }
    say("done", "");
    gate();
}

/// Waits until a thread sleeps: what it does before it reaches a gate must not be in only one of the two
/// recordings.
fn wait_until_asleep(tid: i32) {
    while !fs::read_to_string(format!("/proc/{tid}/stat")).unwrap().contains(") S ") {
        std::thread::yield_now();
    }
}

/// An instance that is read as text, removed when dropped. Its name is not one that recorders take for
/// theirs.
struct Oracle(PathBuf);

impl Oracle {
    fn create(tracefs: &Tracefs, events: &[(String, String)], pid: u32) -> Option<Self> {
        let oracle =
            Self(tracefs.root().join(format!("instances/tracewing-test-oracle-{}", std::process::id())));
        fs::create_dir(&oracle.0).unwrap();
        if !oracle.0.join("options/fields").exists() {
            tracewing_testing::skip(
                tracewing_testing::Cause::Kernel(6, 4),
                "this kernel cannot print the fields of every event (Linux 6.4 can)",
            );
            return None;
        }
        for (file, value) in [
            ("tracing_on", "0"),
            ("trace_clock", "mono"),
            ("buffer_size_kb", "16384"),
            ("options/fields", "1"),
            ("options/event-fork", "1"),
            ("options/overwrite", "0"),
        ] {
            oracle.set(file, value);
        }
        for (system, name) in events {
            oracle.set(&format!("events/{system}/{name}/enable"), "1");
        }
        oracle.set("set_event_pid", &pid.to_string());
        oracle.set("tracing_on", "1");
        Some(oracle)
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    }

    fn text(&self, cpu: u32) -> String {
        let text = fs::read(self.0.join(format!("per_cpu/cpu{cpu}/trace"))).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("tracing_on"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// `(tid, event, fields)` of a line `   comm-TID   [CPU] flags stamp: event: fields`.
fn parse(line: &str) -> Option<(i32, &str, &str)> {
    let (head, rest) = line.split_once(" [")?;
    let tid = head.trim().rsplit_once('-')?.1.parse().ok()?;
    let (_, rest) = rest.split_once(": ")?;
    let (name, fields) = rest.split_once(": ")?;
    Some((tid, name, fields))
}

/// The text of each field, in the order of the format.
fn split<'a>(format: &Format, mut text: &'a str) -> Vec<(String, &'a str)> {
    let mut starts = Vec::new();
    let mut at = 0;
    for field in &format.fields {
        let key = format!("{}=", field.name);
        let Some(found) = text[at..].find(&key) else { continue };
        starts.push((field.name.clone(), at + found, at + found + key.len()));
        at += found + key.len();
    }
    text = text.trim_end();
    let ends = starts.iter().skip(1).map(|(_, begin, _)| begin - 1).chain([text.len()]).collect::<Vec<_>>();
    starts
        .iter()
        .zip(ends)
        .map(|((name, _, from), to)| (name.clone(), text.get(*from..to).unwrap_or("")))
        .collect()
}

/// Whether the kernel's text of a field and babeltrace2's mean the same; `None` if they cannot be compared.
fn agree(system: &str, format: &Format, name: &str, kernel: &str, ours: &str) -> Option<bool> {
    let field = format.fields.iter().find(|field| field.name == name)?;
    match field.shape {
        // The kernel prints where in its buffer such a pointer lies, not the pointer.
        Shape::One(_) if field.c_type.ends_with("char *") => None,
        Shape::One(element) => {
            let kernel = match kernel.split_once('(') {
                Some((_, inner)) => number(inner.trim_end_matches(')'))?,
                // `bool`
                None => number(kernel)?,
            };
            let ours = ours.rsplit_once(" = ").map_or(ours, |(_, value)| value.trim_end_matches([' ', ')']));
            let mut ours = number(ours)?;
            if system == "sched" && name.ends_with("prio") {
                ours += 100;
            }
            // System calls record words, of which ours has the part that the argument's type has.
            let bits = if system == "syscalls" { 16 } else { element.size as u32 * 8 };
            Some((ours - kernel).rem_euclid(1 << bits) == 0)
        }
        Shape::Array(element, _) | Shape::Elsewhere(element, _) if element.text => {
            Some(kernel == ours.trim_matches('"'))
        }
        _ => None,
    }
}

/// How many fields of an event are the same in both texts; else what differs.
fn compare(system: &str, name: &str, format: &Format, ours: &Line, theirs: &str) -> Result<usize, String> {
    let mut compared = 0;
    for (field, value) in split(format, theirs) {
        if field == "__syscall_nr" {
            continue;
        }
        let mine = ours.field(&field_name(system, &field));
        match agree(system, format, &field, value, mine) {
            Some(true) => compared += 1,
            Some(false) => {
                return Err(format!("{name}.{field}: the kernel says {value}, we say {mine}; {theirs}"));
            }
            None => {}
        }
    }
    Ok(compared)
}

/// Finds for each of ours its partner among theirs. Both are in the order of their instance. An event is
/// recorded in one instance after the other, and an interrupt that comes between records its own events of
/// the same name in both: these few are in another order there.
fn pair<O, T, R>(
    ours: &[O],
    theirs: Vec<T>,
    mut compare: impl FnMut(&O, &T) -> Result<R, String>,
) -> Result<Vec<R>, String> {
    const MOST_IN_AN_INTERRUPT: usize = 32;
    let mut theirs = std::collections::VecDeque::from(theirs);
    let partner = |ours| {
        let mut first = Err("there are fewer".to_owned());
        for place in 0..theirs.len().min(1 + MOST_IN_AN_INTERRUPT) {
            match compare(ours, &theirs[place]) {
                Ok(found) => {
                    theirs.remove(place);
                    return Ok(found);
                }
                differs if place == 0 => first = differs,
                Err(_) => {}
            }
        }
        first
    };
    ours.iter().map(partner).collect()
}

#[test]
fn events_of_an_interrupt_between_two_records_of_one_event_are_paired() {
    let pairs = |ours: &[i32], theirs: &[i32]| {
        pair(ours, theirs.to_vec(), |ours, theirs| match ours == theirs {
            true => Ok(*ours),
            false => Err(format!("{theirs}, not {ours}")),
        })
    };
    assert_eq!(pairs(&[1, 2, 3], &[1, 2, 3]), Ok(vec![1, 2, 3]));
    assert_eq!(
        pairs(&[1, 7, 8, 2], &[7, 8, 1, 2]),
        Ok(vec![1, 7, 8, 2]),
        "7 and 8 came between the records of 1"
    );
    assert_eq!(pairs(&[1, 2], &[2, 3]), Err("2, not 1".to_owned()));
    assert_eq!(pairs(&[1, 1], &[1, 2]), Err("2, not 1".to_owned()), "each has a partner of its own");
}

#[test]
fn every_field_is_what_the_kernel_prints() {
    if !traceable() {
        return;
    }
    let tracefs = Tracefs::open().unwrap();
    let globs: Vec<&str> = DEFAULT.iter().chain(MORE).copied().collect();
    let events = choose(tracefs.events().unwrap(), &globs).unwrap().events;
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let mut recorder = common::start_in(&trace, &options(Scope::Tree, &globs)).unwrap();
    let mut actor = Actor::start("busy", Path::new(""));
    let tid: i32 = actor.expect("tid").parse().unwrap();
    wait_until_asleep(tid);
    recorder.set_root_pid(tracewing_units::Pid(tid)).unwrap();
    let Some(oracle) = Oracle::create(&tracefs, &events, tid as u32) else { return };
    actor.go();
    actor.expect("done");
    wait_until_asleep(tid);
    oracle.set("tracing_on", "0");
    let summary = recorder.finish().unwrap();
    actor.go();
    assert!(actor.wait().success());
    assert!(summary.streams.iter().all(|stream| stream.losses.events == 0));
    let Some(lines) = babeltrace(&trace) else { return };

    let formats: BTreeMap<String, (String, Format)> = events
        .iter()
        .map(|(system, name)| {
            (name.clone(), (system.clone(), tracefs.format(system, name).unwrap().unwrap()))
        })
        .collect();
    let (mut compared, mut kinds) = (0, BTreeMap::new());
    for cpu in summary.streams.iter().map(|stream| stream.cpu) {
        let text = oracle.text(cpu.0);
        let kernel: Vec<_> = text.lines().filter_map(parse).filter(|(by, ..)| *by == tid).collect();
        for (name, (system, format)) in &formats {
            // An interrupt may come between the two instances' records of one event: order is kept per event,
            // but for those of the interrupt itself.
            let theirs: Vec<&str> =
                kernel.iter().filter(|(_, n, _)| n == name).map(|(.., fields)| *fields).collect();
            let traced = event_name(system, name);
            let same = |line: &&Line| line.name == traced && line.cpu == cpu.0 && line.tid == tid;
            let ours: Vec<&Line> = lines.iter().filter(same).collect();
            assert_eq!(ours.len(), theirs.len(), "{system}:{name} on CPU {cpu}");
            let fields = pair(&ours, theirs, |ours, theirs| compare(system, name, format, ours, theirs));
            for fields in fields.unwrap_or_else(|differs| panic!("{differs}")).into_iter().filter(|n| *n > 0)
            {
                compared += fields;
                *kinds.entry(name.as_str()).or_insert(0) += fields;
            }
        }
    }
    assert!(compared > 2000 && kinds.len() > 30, "{compared} fields of {} kinds of events", kinds.len());
    println!("{compared} fields of {} kinds of events agree: {kinds:?}", kinds.len());
}
