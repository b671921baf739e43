//! Recordings in which something goes wrong: processes killed and stopped, recorders killed and stopped,
//! events that are too large, probes in the middle of the event path. Whatever happens is accounted for, and
//! the program is none the worse.

mod harness;
mod recorded;

use harness::{Printed, RunExt};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tracewing_testing::{signal, wait_until};

use recorded::{UNREADY, counts, ended, list, program, record, recorder};

fn tasks() -> String {
    program("tasks").to_str().unwrap().to_owned()
}

/// The one child of a process.
fn child_of(process: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    children.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

/// A recorder whose program emits until a file is there. The program's output goes to a file.
struct Endless {
    folder: tempfile::TempDir,
    recorder: Child,
    program: u32,
}

impl Endless {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("trap '' TERM; exec {} endless stop > out", tasks());
        let recorder = recorder(folder.path(), options).args(["sh", "-c", &script]).spawn().unwrap();
        let this = Self { program: 0, recorder, folder };
        wait_until("the program did not start", || this.out().starts_with("ready"));
        Self { program: child_of(this.recorder.id()), ..this }
    }

    fn out(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }

    /// Lets the program end by itself, which it must do well.
    fn stop_program(&self) {
        fs::write(self.folder.path().join("stop"), "").unwrap();
        wait_until("the program does not end", || self.out().contains("1 "));
    }

    fn end(self) -> recorded::Recording {
        self.stop_program();
        let out = self.out();
        let mut recording = ended(self.folder, self.recorder);
        recording.stdout = out;
        recording
    }
}

#[test]
fn children_killed_while_they_emit() {
    for options in [&["--sub-buffers", "64"][..], &["--buffers", "process"], &["--clock", "mono"]] {
        let recording = record(options, &[&tasks(), "kills"]);
        // All that was emitted is there, and of each child at most one event that had only begun; but for
        // what it emits before it has buffers, where its parent has none for it yet.
        recording.account(None);
        let mut reasons = recording.reasons();
        reasons.remove("process died while emitting");
        reasons.remove(UNREADY);
        assert!(reasons.is_empty(), "{}", recording.summary);
        recording.compare_with_babeltrace2();
    }
    let small = record(&["--sub-buffers", "2", "--sub-buffer-size", "4K"], &[&tasks(), "kills"]);
    small.account(None);
    let (emitted, begun) = small
        .counts()
        .into_values()
        .fold((0, 0), |(emitted, begun), count| (emitted + count.start(), begun + count.end()));
    // Between 1 and 201 tasks were announced before they were killed.
    let found = small.events().len() as u64 + small.lost();
    assert!((emitted + 1..=begun + 201).contains(&found), "{found} of {emitted} to {begun}");
}

#[test]
fn events_that_are_too_large_are_lost_for_that_reason() {
    for (options, too_large, listed) in [
        // Larger than the length field can say: 70,000 bytes, and 65,520.
        (&[][..], 20, 40),
        (&["--clock", "mono"], 20, 40),
        // Larger than half a sub-buffer: 3,000 bytes, as a field of constant size and as a slice.
        (&["--sub-buffer-size", "4K", "--sub-buffers", "256"], 40, 20),
        (&["--sub-buffer-size", "4K", "--sub-buffers", "256", "--clock", "mono"], 40, 20),
    ] {
        let recording = record(options, &[&tasks(), "large"]);
        let mut reasons = recording.reasons();
        let unready = if options.contains(&"mono") { reasons.remove(UNREADY).unwrap_or(0) } else { 0 };
        // Nothing announces a child of which every event is lost.
        recording.account((unready == 0).then_some(1));
        assert_eq!(reasons.into_iter().collect::<Vec<_>>(), [("event too large", too_large)]);
        let events = recording.events();
        let found = events.iter().filter(|event| event.name != "tracewing:thread").count() as u64;
        assert_eq!(found + unready, listed, "{options:?}");
        recording.compare_with_babeltrace2();
    }
}

#[test]
fn a_recorder_killed_leaves_the_program_alone_and_a_readable_trace() {
    for options in [&[][..], &["--clock", "mono"], &["--sub-buffer-size", "4K", "--sub-buffers", "2"]] {
        let mut endless = Endless::start(&[options, &["--flush", "20"]].concat());
        let trace = endless.folder.path().join("t");
        let has_packets = || {
            let files = fs::read_dir(trace.join("user")).unwrap().flatten();
            let sizes = files.filter(|file| file.path().is_file() && file.file_name() != "metadata");
            sizes.map(|file| file.metadata().unwrap().len()).sum::<u64>() > 20_000
        };
        wait_until("nothing is written", has_packets);
        signal(endless.recorder.id(), libc::SIGKILL);
        endless.recorder.wait().unwrap();
        // Continues to emit into buffers that no recorder reads.
        sleep(Duration::from_millis(50));
        endless.stop_program();
        let events = list(&trace);
        assert!(events.len() > 100, "{} events", events.len());
        let counts = counts(&endless.out());
        assert!(*counts[&1].start() > events.len() as u64);
        let sequences = events
            .iter()
            .filter(|event| event.name != "tracewing:thread")
            .map(|event| event.number("sequence"));
        let mut sorted: Vec<u64> = sequences.collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() > 90);
    }
}

#[test]
fn a_program_that_outlives_its_recording_notices() {
    for options in [&["--clock", "tsc"][..], &["--clock", "mono"], &["--buffers", "process"]] {
        let mut endless =
            Endless::start(&[options, &["--sub-buffer-size", "4K", "--sub-buffers", "2"]].concat());
        // The second signal ends the recorder at once; two that come together are one.
        while endless.recorder.try_wait().unwrap().is_none() {
            signal(endless.recorder.id(), libc::SIGTERM);
            sleep(Duration::from_millis(20));
        }
        endless.stop_program();
        assert!(endless.out().contains("on 0"), "{options:?}: {}", endless.out());
    }
}

#[test]
fn a_recorder_that_was_stopped_counts_what_was_lost_meanwhile() {
    for options in [&["--clock", "tsc"][..], &["--clock", "mono"]] {
        let endless = Endless::start(&[options, &["--sub-buffer-size", "4K", "--sub-buffers", "2"]].concat());
        signal(endless.recorder.id(), libc::SIGSTOP);
        // At its end it emits more than the buffers hold.
        endless.stop_program();
        signal(endless.recorder.id(), libc::SIGCONT);
        let recording = endless.end();
        recording.account(Some(1));
        assert!(recording.reasons()["buffer full"] > 0, "nothing was lost");
        recording.compare_with_babeltrace2();
    }
}

#[test]
fn a_program_waits_for_a_recorder_that_is_stopped_when_it_starts_if_it_is_to() {
    for buffers in ["program", "process"] {
        let folder = tempfile::tempdir().unwrap();
        let script =
            format!("echo here; read line; TRACEWING_WAIT=60000 exec {}", program("pilot").display());
        let mut command = recorder(folder.path(), &["--buffers", buffers]);
        let mut recorder = command.args(["sh", "-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        let mut orders = recorder.stdin.take().unwrap();
        let mut answers = BufReader::new(recorder.stdout.take().unwrap()).lines();
        assert_eq!(answers.next().unwrap().unwrap(), "here");
        signal(recorder.id(), libc::SIGSTOP);
        writeln!(orders, "go\nemit 10").unwrap();
        sleep(Duration::from_millis(2500));
        signal(recorder.id(), libc::SIGCONT);
        let emitted = answers.next().unwrap().unwrap();
        drop(orders);
        let recording = ended(folder, recorder);
        let counts = recording.events().iter().filter(|event| event.name == "pilot:count").count();
        assert_eq!(counts, 10 * emitted.split(' ').count(), "{}", recording.summary);
    }
}

#[test]
fn a_program_that_was_stopped_loses_nothing() {
    for options in [&["--clock", "tsc"][..], &["--clock", "mono"]] {
        let endless = Endless::start(options);
        for _ in 0..20 {
            signal(endless.program, libc::SIGSTOP);
            sleep(Duration::from_millis(5));
            signal(endless.program, libc::SIGCONT);
            sleep(Duration::from_millis(5));
        }
        let recording = endless.end();
        recording.account(Some(1));
        assert_eq!(recording.lost(), 0);
    }
}

/// A probe of the kernel's on one instruction, removed at the end.
struct Probe {
    tracefs: PathBuf,
    instance: PathBuf,
    name: String,
}

impl Probe {
    fn new(program: &str, offset: u64) -> io::Result<Self> {
        let tracefs = PathBuf::from("/sys/kernel/tracing");
        let name = format!("twtest{}/at_{offset:x}", std::process::id());
        let instance = tracefs.join(format!("instances/twtest-{}-{offset:x}", std::process::id()));
        change_probes(&tracefs, &format!("p:{name} {program}:{offset:#x}\n"))?;
        let this = Self { tracefs, instance, name };
        fs::create_dir(&this.instance)?;
        this.enable("1")?;
        Ok(this)
    }

    fn enable(&self, value: &str) -> io::Result<()> {
        fs::write(self.instance.join("events").join(&self.name).join("enable"), value)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.enable("0");
        let remove = || {
            fs::remove_dir(&self.instance).or_else(not_there)?;
            change_probes(&self.tracefs, &format!("-:{}\n", self.name)).or_else(not_there)
        };
        // The kernel refuses to remove what it still uses.
        for _ in 0..1000 {
            match remove() {
                Ok(()) => break,
                Err(error) => eprintln!("{}: {error}", self.name),
            }
            sleep(Duration::from_millis(5));
        }
    }
}

fn not_there(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// The kernel takes a command per call.
fn change_probes(tracefs: &Path, command: &str) -> io::Result<()> {
    let mut events = fs::OpenOptions::new().append(true).open(tracefs.join("uprobe_events"))?;
    events.write_all(command.as_bytes())
}

/// File offsets of a program's instructions in a stretch of its code.
fn instructions(program: &str, begin: u64, end: u64) -> Vec<(u64, String)> {
    // Code lies at the same distance from its file offset everywhere in a segment.
    let headers = Command::new("readelf").args(["-lW", program]).ran().stdout;
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let headers = String::from_utf8(headers).unwrap();
    let code = headers.lines().find(|line| line.contains("LOAD") && line.contains("R E")).unwrap();
    let parts: Vec<&str> = code.split_ascii_whitespace().collect();
    let distance = hex(parts[2]) - hex(parts[1]);
    let (begin, end) = (begin + distance, end + distance);
    let range = [format!("--start-address={begin:#x}"), format!("--stop-address={end:#x}")];
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).args(range).arg(program).ran();
    let text = output.text();
    let instruction = |line: &str| {
        let (address, code) = line.trim().split_once(":\t")?;
        Some((u64::from_str_radix(address, 16).ok()? - distance, code.trim().to_owned()))
    };
    text.lines().filter_map(instruction).collect()
}

/// The kernel runs a probed instruction elsewhere, where the thread may be preempted without the sequence
/// being restarted: it clears the sequence's mark instead, which the sequence checks before its last store.
/// So with a probe on the last store of the payload no position is ever taken back. An earlier probe is
/// worse, and nothing is done about it: what the thread writes after the probe may overwrite events that
/// other threads have completed meanwhile.
#[test]
fn probes_in_the_middle_of_an_event_take_no_event_back() {
    if let Err(missing) = tracewing_kernel::privileges() {
        return tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, format_args!("{missing}"));
    }
    if !Path::new("/sys/kernel/tracing/uprobe_events").exists() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Uprobes,
            "probes need tracefs with uprobes",
        );
    }
    if ["objdump", "readelf"].iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("objdump"),
            "objdump is not installed",
        );
    }
    let tasks = tasks();
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path(), &["--sub-buffers", "64"]);
        let mut recorder = recorder.args([&tasks, "sequences"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(recorder.stdout.take().unwrap());
        let mut sequences = Vec::new();
        loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).unwrap() > 0, "the program ended early");
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            match line.split_ascii_whitespace().skip(1).map(number).collect::<Vec<_>>()[..] {
                [begin, length] => sequences.push(instructions(&tasks, begin, begin + length)),
                _ => break,
            }
        }
        let is = |name: &'static str| move |(_, code): &(u64, String)| code.split(' ').next() == Some(name);
        // The event path for constant sizes is the shortest one that takes the time, without a fence.
        sequences.retain(|code| code.iter().any(is("rdtsc")) && !code.iter().any(is("lfence")));
        let code = sequences.iter().min_by_key(|code| code.len()).unwrap();
        // Without the last four: address of the descriptor, comparison, jump, store.
        let (offset, _) = code[..code.len() - 4].iter().rfind(|code| is("mov")(code)).unwrap();
        let mut probe = None;
        wait_until("a probe on an instruction", || {
            probe = Probe::new(&tasks, *offset).inspect_err(|error| eprintln!("{error}")).ok();
            probe.is_some()
        });
        sleep(Duration::from_millis(500));
        drop(recorder.stdin.take());
        let mut stdout = String::new();
        out.read_to_string(&mut stdout).unwrap();
        drop(probe);
        let recording = ended(folder, recorder);
        let emitted: u64 = counts(&stdout).into_values().map(|count| *count.start()).sum();
        let events = recording.events();
        assert_eq!(events.len() as u64 + recording.lost(), emitted + 3, "{}", recording.summary);
    }
}
