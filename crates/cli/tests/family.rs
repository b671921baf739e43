//! A program with eight threads and three forked children, one of which is killed with `kill -9`, knows how
//! many events it emitted: the recording has exactly those, in order per thread, and babeltrace2 prints them
//! as `tracewing list` does.
//!
//! The program is this test itself, started again with a variable set.

mod harness;

use harness::{Printed, RunExt};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tracewing::{Event, emit};

const ROLE: &str = "TRACEWING_TEST_FAMILY";
const THREADS: u32 = 8;
const PER_THREAD: u64 = 20_000;
const CHILDREN: u32 = 3;
const PER_CHILD: u64 = 5_000;

#[derive(Event)]
#[event(provider = "family")]
struct Numbered {
    emitter: u32,
    number: u64,
}

/// The program. Writes into the file that the variable names how many events each emitted: one line per
/// thread or child.
#[test]
fn program() {
    let Some(report) = std::env::var_os(ROLE) else { return };
    // SAFETY: a new shared mapping of a page at an address that the kernel chooses.
    let page = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: the page is zeroed, large enough for the counters, and never unmapped.
    let counts = unsafe { &*page.cast::<[AtomicU64; (THREADS + CHILDREN) as usize]>() };
    let emit_numbers = |emitter: u32, numbers: u64| {
        for number in 0..numbers {
            emit!(Numbered { emitter, number });
            counts[emitter as usize].store(number + 1, Ordering::Relaxed);
        }
    };
    let children: Vec<libc::pid_t> = (THREADS..THREADS + CHILDREN)
        .map(|emitter| {
            // SAFETY: the child only emits, which may be done there, and exits.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // The last one continues until it is killed, or the test has failed.
                let is_last = emitter == THREADS + CHILDREN - 1;
                emit_numbers(emitter, if is_last { 100 * PER_CHILD } else { PER_CHILD });
                if is_last {
                    loop {
                        // SAFETY: a plain system call.
                        unsafe { libc::pause() };
                    }
                }
                // SAFETY: ends the child without running what belongs to the parent.
                unsafe { libc::_exit(0) };
            }
            pid
        })
        .collect();
    std::thread::scope(|scope| {
        for emitter in 0..THREADS {
            scope.spawn(move || emit_numbers(emitter, PER_THREAD));
        }
    });
    let last = &counts[(THREADS + CHILDREN - 1) as usize];
    while last.load(Ordering::Relaxed) < PER_CHILD {
        std::thread::yield_now();
    }
    // SAFETY: the children are this process's own; the last one is killed where it is.
    unsafe {
        libc::kill(children[CHILDREN as usize - 1], libc::SIGKILL);
        for pid in children {
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
    let lines: Vec<String> = counts.iter().map(|count| count.load(Ordering::Relaxed).to_string()).collect();
    fs::write(report, lines.join("\n")).unwrap();
}

/// Records the program, as a shell script that ends with `"$@"` starts the recorder.
fn record(folder: &Path, script: &str, options: &[&str]) -> (Vec<u64>, serde_json::Value) {
    let report = folder.join("report");
    let output = Command::new("sh")
        .args(["-c", script, "sh", harness::TRACEWING])
        .current_dir(folder)
        .env(ROLE, &report)
        .args(["record", "--no-kernel", "--format", "json", "-o", "t", "--sub-buffers", "64"])
        .args(options)
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["program", "--exact", "--test-threads", "1"])
        .ran();
    let stderr = output.notes();
    assert!(output.status.success(), "{stderr}");
    let counts = fs::read_to_string(report).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    (counts, serde_json::from_str(stderr.lines().last().unwrap()).unwrap())
}

fn lines(command: &mut Command) -> (Vec<String>, String) {
    let output = command.succeeds();
    let text = output.text();
    (text.lines().map(str::to_owned).collect(), output.notes())
}

fn check(options: &[&str], has_own_buffers: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (counts, summary) = record(folder.path(), "exec \"$@\"", options);
    let trace = folder.path().join("t");
    let (listed, _) = lines(harness::tracewing().arg("list").arg(&trace));

    let mut numbers: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for line in listed.iter().filter(|line| line.contains("family:numbered")) {
        let value = |name: &str| -> u64 {
            let (_, rest) = line.split_once(&format!("{name} = ")).unwrap();
            rest.split([',', ' ']).next().unwrap().parse().unwrap()
        };
        numbers.entry(value("emitter") as usize).or_default().push(value("number"));
    }
    // Under the protocol that has such a thing, the killed child can have left an event half done. Children
    // that need buffers of their own do not wait for them.
    let (mut half_done, mut unready) = (0, 0);
    for loss in summary["losses"].as_array().unwrap() {
        let events = loss["events"].as_u64().unwrap();
        match loss["reason"].as_str().unwrap() {
            "process died while emitting" => half_done += events,
            "forked child without buffers yet" if has_own_buffers => unready += events,
            other => panic!("{other}"),
        }
    }
    assert!(half_done <= 1, "{summary}");
    let killed = (THREADS + CHILDREN - 1) as usize;
    let mut missing = 0;
    for (emitter, count) in counts.iter().enumerate() {
        let found = numbers.get(&emitter).map_or(&[][..], |found| found);
        let first = found.first().copied().unwrap_or(*count);
        assert!(
            first == 0 || has_own_buffers && emitter >= THREADS as usize,
            "events of {emitter} begin at {first}"
        );
        missing += first;
        // The killed child can have died between an event and its count.
        let end = first + found.len() as u64;
        assert!(
            (*count..=count + u64::from(emitter == killed)).contains(&end),
            "{end} events of {emitter}, not {count}"
        );
        assert!(found.iter().copied().eq(first..end), "events of {emitter}");
    }
    // One that has died may have counted its loss, and not itself.
    assert!((missing..=missing + 1).contains(&unready), "{unready} counted, {missing} missing");

    match Command::new("babeltrace2").arg("--version").output() {
        Err(_) => tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        ),
        Ok(_) => {
            let (printed, warnings) = lines(Command::new("babeltrace2").arg(&trace));
            assert!(warnings.lines().all(|line| line.contains("Tracer discarded")), "{warnings}");
            assert_eq!(warnings.is_empty(), summary["lost_events"] == 0);
            assert!(printed == listed, "babeltrace2 and tracewing list differ");
        }
    }
}

#[test]
fn a_full_disk_stops_the_recording_and_nothing_else() {
    let mounts = "mount -t tmpfs -o size=2m tmpfs /tmp";
    if !Command::new("unshare").args(["-m", "sh", "-c", mounts]).status().is_ok_and(|status| status.success())
    {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Root,
            "a small file system to fill needs root",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("disk")).unwrap();
    let inside = "mount -t tmpfs -o size=2m tmpfs disk && (cd disk && \"$@\"; test $? = 1) && cp -r disk/t .";
    let script = format!("exec unshare -m sh -c '{inside}' sh \"$@\"");
    let (counts, summary) = record(folder.path(), &script, &[]);
    assert!(counts[..8].iter().all(|count| *count == PER_THREAD), "the program was disturbed: {counts:?}");
    assert_eq!(summary["state"], "cut_short", "{summary}");
    // The killed child may also be reported, as one that waited without success.
    let mut notes = summary["notes"].as_array().unwrap().iter();
    assert!(notes.any(|note| note.as_str().unwrap().contains("the disk is full")), "{summary}");
    assert!(summary["lost_events"].as_u64().unwrap() > 0, "{summary}");
    let trace = folder.path().join("t");
    let (listed, _) = lines(harness::tracewing().arg("list").arg(&trace));
    assert_eq!(Some(listed.len() as u64), summary["events"].as_u64());
    assert!(!listed.is_empty());
    // What could not be written is reported.
    let (info, warnings) = lines(harness::tracewing().args(["info", "--format", "json"]).arg(&trace));
    let info: serde_json::Value = serde_json::from_str(&info[0]).unwrap();
    let streams = info["traces"].as_array().unwrap().iter().flat_map(|it| it["streams"].as_array().unwrap());
    let lost: u64 = streams.map(|stream| stream["lost_events"].as_u64().unwrap()).sum();
    assert_eq!(Some(lost), summary["lost_events"].as_u64());
    assert!(warnings.contains("the recording was cut short"), "{warnings}");
    let index = fs::read_dir(trace.join("user/index")).unwrap();
    assert!(index.flatten().all(|file| file.metadata().unwrap().len() % 72 == 16), "a torn index");
}

#[test]
fn shared_buffers_have_every_event() {
    // SAFETY: a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    check(&["--buffers", "program"], is_root);
}

#[test]
fn buffers_per_process_have_every_event() {
    check(&[], true);
}

#[test]
fn the_protocol_without_restartable_sequences_has_every_event() {
    check(&["--clock", "mono"], true);
}
