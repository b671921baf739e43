//! Attaching to real processes: what they were doing continues as if nothing had happened, and a process that
//! cannot be attached to gives the reason.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tracewing_attach::{Called, Refusal, SystemCall, Target};
use tracewing_testing::{NOBODY, become_user, is_root};

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let package = ["--package", "tracewing-attach", "--example", "target"];
    tracewing_testing::build(env!("CARGO_TARGET_TMPDIR"), &package).join("examples/target")
});

const CLONE3: [SystemCall; 1] =
    [SystemCall { name: "clone3", number: libc::SYS_clone3, arguments: [0; 6], without: None }];

/// A program that waits.
struct Waiting {
    child: Child,
    output: BufReader<ChildStdout>,
    /// What it reads from.
    input: Option<ChildStdin>,
    pid: i32,
    entry: u64,
}

/// What a program says of its wait.
#[derive(Debug, PartialEq, Eq)]
struct Waited {
    result: i64,
    error: i32,
    milliseconds: u64,
    calls: u64,
}

impl Waiting {
    fn new(way: &str, milliseconds: u64) -> Self {
        Self::spawn(Command::new(&*PROGRAM).args([way, &milliseconds.to_string()]))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let (pid, entry) = line.trim().split_once(' ').unwrap();
        let (pid, entry) = (pid.parse().unwrap(), entry.parse().unwrap());
        let input = child.stdin.take();
        Self { child, output, input, pid, entry }
    }

    fn attach(&self) -> Result<Called, Refusal> {
        Target::open(self.pid)?.call(self.entry, &CLONE3, Duration::from_secs(30))
    }

    /// An attempt that does not wait for a thread.
    fn attach_at_once(&self) -> Result<Called, Refusal> {
        Target::open(self.pid)?.call(self.entry, &CLONE3, Duration::ZERO)
    }

    fn is_waiting(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn end(mut self) -> Waited {
        drop(self.input.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {text}");
        let numbers: Vec<i64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [result, error, milliseconds, calls] = numbers[..] else { panic!("{text}") };
        Waited { result, error: error as i32, milliseconds: milliseconds as u64, calls: calls as u64 }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn calls_keep_their_time_outs_and_results() {
    for way in ["poll", "ppoll", "select", "nanosleep", "epoll_wait"] {
        let begin = Instant::now();
        let program = Waiting::new(way, 1000);
        while begin.elapsed() < Duration::from_millis(600) {
            let called = program.attach().unwrap();
            assert_eq!((called.result, called.tid), (42, program.pid), "{way}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let waited = program.end();
        assert_eq!((waited.result, waited.error), (0, 0), "{way}: {waited:?}");
        // No sooner than it was asked for; each repetition from the beginning would add as much again.
        assert!(waited.calls > 1 && waited.milliseconds >= 999, "{way}: {waited:?}");
        let all = begin.elapsed().as_millis() as u64;
        assert!(waited.milliseconds <= all && waited.milliseconds < 2000, "{way}: {waited:?} in {all}");
    }
}

#[test]
fn a_read_goes_on() {
    let program = Waiting::new("read", 0);
    (0..20).for_each(|_| assert_eq!(program.attach().unwrap().result, 42));
    let waited = program.end();
    assert_eq!((waited.result, waited.error, waited.calls), (0, 0, 20), "{waited:?}");
}

#[test]
fn registers_stay() {
    let program = Waiting::new("registers", 1500);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        assert_eq!(program.attach().unwrap().result, 42);
    }
    let waited = program.end();
    assert!(waited.result == 0 && waited.calls > 20, "{waited:?}");
}

#[test]
fn signals_interrupt_what_they_would_have() {
    let program = Waiting::new("interrupted", 2000);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        assert_eq!(program.attach().unwrap().result, 42);
    }
    let waited = program.end();
    assert!(waited.result == 0 && waited.calls > 20, "{waited:?}");
}

#[test]
fn one_of_many_threads_is_borrowed() {
    for way in ["threads", "join"] {
        let program = Waiting::new(way, 3000);
        assert_eq!(program.attach().unwrap().result, 42);
        let waited = program.end();
        assert_eq!((waited.result, waited.error, waited.calls), (0, 0, 1), "{way}: {waited:?}");
    }
}

#[test]
fn threads_that_may_hold_locks_are_left_alone() {
    for way in ["busy", "lock", "handler"] {
        let program = Waiting::new(way, 5000);
        let begin = Instant::now();
        let is_handler = way == "handler";
        while begin.elapsed() < Duration::from_millis(700) {
            let refusal = program.attach_at_once().unwrap_err();
            assert!(matches!(refusal, Refusal::Busy { threads, .. } if threads > 0), "{way}: {refusal}");
        }
        if is_handler {
            assert_eq!(program.end().calls, 0);
        }
    }
}

#[test]
fn filters_for_system_calls_are_heeded() {
    if !is_root() {
        return;
    }
    let program = Waiting::new("allow", 1000);
    assert_eq!(program.attach().unwrap().result, 42);
    assert_eq!(program.end().calls, 1);
    let program = Waiting::new("no_clone", 1000);
    let refusal = program.attach().unwrap_err();
    assert!(matches!(refusal, Refusal::Filtered { call: "clone3", .. }), "{refusal}");
    assert_eq!(program.end().calls, 0);
}

#[test]
fn processes_that_cannot_be_attached_to() {
    let program = Waiting::new("poll", 60_000);
    let signal = |signal| {
        // SAFETY: two numbers; the process is this test's child.
        unsafe { libc::kill(program.pid, signal) }
    };
    signal(libc::SIGSTOP);
    while !matches!(program.attach_at_once(), Err(Refusal::Stopped(_))) {
        std::thread::yield_now();
    }
    signal(libc::SIGCONT);
    assert_eq!(program.attach().unwrap().result, 42);
    signal(libc::SIGKILL);
    while !matches!(program.attach_at_once(), Err(Refusal::Zombie(_))) {
        std::thread::yield_now();
    }
    drop(program);
    assert!(matches!(Target::open(i32::MAX), Err(Refusal::Gone(i32::MAX))));
    assert!(matches!(Target::open(-1), Err(Refusal::Gone(-1))));
    if is_root() {
        assert!(matches!(Target::open(2), Err(Refusal::Kernel(2))), "kthreadd");
    }
}

#[test]
fn a_traced_process_names_its_tracer() {
    let program = Waiting::new("poll", 60_000);
    let tid = program.pid;
    // SAFETY: numbers. This thread traces it until it ends.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0_usize, 0_usize) };
    assert_eq!(seized, 0);
    let refusal = program.attach().unwrap_err();
    assert!(matches!(&refusal, Refusal::Traced { by, .. } if *by == std::process::id() as i32), "{refusal}");
}

#[test]
fn a_child_in_its_parents_memory_is_left_alone() {
    let program = Waiting::new("vfork", 3000);
    let children = format!("/proc/{0}/task/{0}/children", program.pid);
    let child = loop {
        let text = std::fs::read_to_string(&children).unwrap();
        if let Some(child) = text.split_whitespace().next() {
            break child.parse().unwrap();
        }
        std::thread::yield_now();
    };
    assert!(matches!(Target::open(child), Err(Refusal::SharedMemory(_))));
    // Its parent sleeps, and not in a call that can be interrupted.
    assert!(matches!(program.attach_at_once(), Err(Refusal::Busy { .. })));
    assert_eq!(program.end().calls, 0);
}

#[test]
fn other_users_cannot() {
    if !is_root() {
        return;
    }
    let program = Waiting::new("poll", 60_000);
    let (pid, entry) = (program.pid, program.entry);
    let attempt = std::thread::spawn(move || {
        become_user(NOBODY);
        Target::open(pid)?.call(entry, &[], Duration::ZERO)
    });
    let refusal = attempt.join().unwrap().unwrap_err();
    assert!(matches!(refusal, Refusal::OtherUser { uid: 0, .. }), "{refusal}");
}

/// Users attach to their own programs, but for those that have kept them out.
#[test]
fn users_attach_to_their_own() {
    if !is_root() {
        return;
    }
    for (way, expected) in [("poll", Ok(42)), ("undumpable", Err("does not let its user look into it"))] {
        let mut command = Command::new(&*PROGRAM);
        // SAFETY: calls that are allowed between `fork` and `exec`.
        unsafe {
            command.args([way, "60000"]).pre_exec(|| {
                become_user(NOBODY);
                Ok(())
            })
        };
        let program = Waiting::spawn(&mut command);
        let (pid, entry) = (program.pid, program.entry);
        let attempt = std::thread::spawn(move || {
            become_user(NOBODY);
            Target::open(pid)?.call(entry, &[], Duration::from_secs(30))
        });
        match (attempt.join().unwrap(), expected) {
            (Ok(called), Ok(expected)) => assert_eq!(called.result, expected),
            (Err(refusal), Err(text)) => assert!(refusal.to_string().contains(text), "{refusal}"),
            (result, _) => panic!("{way}: {result:?}"),
        }
    }
}

/// A recorder is killed at any moment, and the process continues, with its registers and its call. Only
/// `epoll_wait` may return early, with `EINTR`, as after every stop.
#[test]
fn a_killed_recorder_leaves_a_process_that_goes_on() {
    for way in ["registers", "poll", "epoll_wait", "interrupted"] {
        let mut program = Waiting::new(way, 4000);
        let begin = Instant::now();
        let mut seed = 1_u64;
        while begin.elapsed() < Duration::from_millis(2500) && program.is_waiting() {
            let (pid, entry) = (program.pid.to_string(), program.entry.to_string());
            let arguments = ["attach", &pid, &entry, "1000"];
            let mut recorder =
                Command::new(&*PROGRAM).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
            // It has begun; and then any moment.
            let mut output = BufReader::new(recorder.stdout.take().unwrap());
            output.read_line(&mut String::new()).unwrap();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let until = Instant::now() + Duration::from_nanos((seed >> 33) % 2_000_000);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            recorder.kill().unwrap();
            recorder.wait().unwrap();
        }
        let waited = program.end();
        // A recorder killed before it repeats the interrupted `epoll_wait` leaves the kernel's EINTR.
        let is_interrupted = way == "epoll_wait" && waited.error == libc::EINTR;
        assert!(waited.result == 0 || is_interrupted, "{way}: {waited:?}");
        assert!(is_interrupted || waited.calls > 20, "{way}: {waited:?}");
    }
}
