//! Processes that cannot be attached to give the reason.

use super::*;
use crate::waiting::CLONE3;
use tracewing_testing::{Cause, installed, skip, wait_until};
use tracewing_units::Pid;

#[test]
fn processes_that_cannot_be_attached_to() {
    let program = Waiting::new("poll", 60_000);
    let signal = |signal| {
        // SAFETY: two numbers; the process is this test's child.
        unsafe { libc::kill(program.pid.0, signal) }
    };
    signal(libc::SIGSTOP);
    while !matches!(program.attach_at_once(), Err(Refusal::Stopped(_))) {
        std::thread::yield_now();
    }
    signal(libc::SIGCONT);
    // The stop may have come in the middle of a call, which is finished now.
    let called = loop {
        match program.attach() {
            Err(Refusal::Taken(_)) => std::thread::yield_now(),
            result => break result.unwrap(),
        }
    };
    assert_eq!(called.result, 42);
    signal(libc::SIGKILL);
    while !matches!(program.attach_at_once(), Err(Refusal::Zombie(_))) {
        std::thread::yield_now();
    }
    drop(program);
    assert!(matches!(Target::open(Pid(i32::MAX)), Err(Refusal::Gone(Pid(i32::MAX)))));
    assert!(matches!(Target::open(Pid(-1)), Err(Refusal::Gone(Pid(-1)))));
    if is_root() {
        assert!(matches!(Target::open(Pid(2)), Err(Refusal::Kernel(Pid(2)))), "kthreadd");
    }
}

/// A plug-in is unloaded before the thread is stopped, or after that.
#[test]
fn an_entry_that_is_gone_is_no_harm() {
    let program = Waiting::new("poll", 1500);
    let caught = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid)).unwrap();
        // `SigQ` is a number of all processes of the user.
        let is_own = |line: &&str| line.starts_with("Sig") && !line.starts_with("SigQ");
        status.lines().filter(is_own).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = caught();
    let call = |entry| {
        Target::open(program.pid).unwrap().call(Place { entry, word: None }, &CLONE3, Duration::from_secs(30))
    };
    // Something that can be read and not executed.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.pid)).unwrap();
    let data = maps.lines().find(|line| line.contains(" r--p ")).unwrap().split('-').next().unwrap();
    let data = u64::from_str_radix(data, 16).unwrap();
    for _ in 0..20 {
        assert!(matches!(call(4096), Err(Refusal::NotReady(_))));
        assert!(matches!(call(data), Err(Refusal::Fault(_))));
    }
    // What is there by now is another object: its first word is not what was read.
    let other = Place { entry: program.entry, word: Some((data, 1)) };
    let refusal = Target::open(program.pid).unwrap().call(other, &CLONE3, Duration::from_secs(30));
    assert!(matches!(refusal, Err(Refusal::NotReady(_))));
    assert_eq!(caught(), before);
    assert_eq!(program.attach().unwrap().result, 42);
    let waited = program.end();
    assert!((waited.result, waited.calls) == (0, 1) && waited.milliseconds >= 1499, "{waited:?}");
}

#[test]
fn a_traced_process_names_its_tracer() {
    let program = Waiting::new("poll", 60_000);
    let tid = program.pid.0;
    // SAFETY: numbers. This thread traces it until it ends.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0_usize, 0_usize) };
    assert_eq!(seized, 0);
    let refusal = program.attach().unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Traced { by, .. } if by.as_unsigned() == std::process::id()),
        "{refusal}"
    );
}

#[test]
fn under_a_debugger_and_under_a_tracer() {
    let program = Waiting::new("poll", 60_000);
    let pid = program.pid.to_string();
    let tools: [(&str, &[&str]); 2] =
        [("strace", &["-o", "/dev/null"]), ("gdb", &["-quiet", "-nx", "-batch", "-ex", "continue"])];
    for (tool, options) in tools {
        if !installed(&[tool]) {
            continue;
        }
        let mut command = Command::new(tool);
        command.args(options).args(["-p", &pid]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut tracer = command.spawn().unwrap();
        let is_traced = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            status.contains(&format!("TracerPid:\t{}\n", tracer.id()))
        };
        wait_until(tool, is_traced);
        let refusal = program.attach().unwrap_err().to_string();
        let expected =
            format!("process {pid} is traced by process {} ({tool}): detach that first", tracer.id());
        tracer.kill().unwrap();
        tracer.wait().unwrap();
        assert_eq!(refusal, expected);
        // Before gdb, which may leave breakpoints when it is killed.
        if tool == "strace" {
            assert_eq!(program.attach().unwrap().result, 42);
        }
    }
}

#[test]
fn a_process_whose_first_thread_has_ended() {
    let program = Waiting::new("no_first_thread", 60_000);
    wait_until("its first thread ends", || matches!(program.attach_at_once(), Err(Refusal::FirstThread(_))));
}

/// Waits for a signal, by the calls of 32-bit programs.
const OF_32_BITS: &str = "
.globl _start
_start:
    mov $29, %eax
    int $0x80
    jmp _start
";

#[test]
fn programs_of_32_bits() {
    let folder = PROGRAM.with_file_name("of-32-bits");
    std::fs::create_dir_all(&folder).unwrap();
    let [source, object, program] = ["pause.s", "pause.o", "pause"].map(|name| folder.join(name));
    std::fs::write(&source, OF_32_BITS).unwrap();
    let made = [
        Command::new("as").args(["--32", "-o"]).args([&object, &source]).status(),
        Command::new("ld").args(["-m", "elf_i386", "-o"]).args([&program, &object]).status(),
    ];
    assert!(made.iter().all(|status| status.as_ref().is_ok_and(|status| status.success())), "{made:?}");
    let mut child = match Command::new(&program).spawn() {
        Ok(child) => child,
        Err(error) => return skip(Cause::Listed("32-bit programs"), error),
    };
    let refusal = Target::open(Pid::from_unsigned(child.id())).unwrap_err();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(refusal, Refusal::Bits(_)), "{refusal}");
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
        Target::open(pid)?.call(Place { entry, word: None }, &[], Duration::ZERO)
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
            Target::open(pid)?.call(Place { entry, word: None }, &[], Duration::from_secs(30))
        });
        match (attempt.join().unwrap(), expected) {
            (Ok(called), Ok(expected)) => assert_eq!(called.result, expected),
            (Err(refusal), Err(text)) => assert!(refusal.to_string().contains(text), "{refusal}"),
            (result, _) => panic!("{way}: {result:?}"),
        }
    }
}
