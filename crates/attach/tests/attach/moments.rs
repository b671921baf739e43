//! What a process may be doing at the moment in which it is attached to.

use super::*;
use std::fs;
use tracewing_units::Pid;

/// Its threads allocate all the time, as does what is called in it: that returns only if the borrowed thread
/// has no lock of the allocator's.
#[test]
fn while_threads_allocate() {
    let mut program = Waiting::new("malloc", 3000);
    let begin = Instant::now();
    let mut called = 0;
    while begin.elapsed() < Duration::from_millis(1500) && program.is_waiting() {
        match program.attach() {
            Ok(done) => {
                assert_eq!(done.result, 42);
                called += 1;
            }
            Err(refusal) => panic!("after {called} calls: {refusal}"),
        }
    }
    let waited = program.end();
    assert_eq!((waited.result, waited.calls), (0, called), "{waited:?}");
    assert!(called > 0);
}

/// Whatever it has come to, it ends as it would have, with all that it prints. Another process attaches: its
/// parent could collect it in the tracer's stead.
#[test]
fn while_it_exits() {
    let mut called = 0;
    for microseconds in (0..40).map(|round| round * 150) {
        let program = Waiting::new("exit", microseconds);
        let (pid, entry) = (program.pid.to_string(), program.entry.to_string());
        let mut command = Command::new(&*PROGRAM);
        command.args(["attach", &pid, &entry, "1000000"]).stdout(Stdio::piped());
        let mut recorder = command.spawn().unwrap();
        let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        let gone =
            [Refusal::Gone(program.pid), Refusal::Zombie(program.pid)].map(|refusal| refusal.to_string());
        for line in &mut lines {
            // On a busy machine its threads may end without having waited for so long.
            if gone.contains(&line) || line.contains(": none of its ") {
                break;
            }
            // The first thread has ended, and the other has not yet; or destructors run.
            let ending = [Refusal::FirstThread(program.pid), Refusal::NotReady(program.pid)];
            let is_called = line.starts_with("42 ");
            assert!(is_called || ending.iter().any(|refusal| line == refusal.to_string()), "{line}");
            called += u32::from(is_called);
        }
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        let waited = program.end();
        assert_eq!((waited.result, waited.error), (0, 0), "{waited:?}");
    }
    assert!(called > 0);
}

/// The state of a process's first thread.
fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// A thread that waits for its child of vfork sleeps without being interruptible.
#[test]
fn while_it_cannot_be_interrupted() {
    let program = Waiting::new("vfork", 1500);
    while state(program.pid) != Some('D') {
        std::thread::yield_now();
    }
    assert!(matches!(program.attach_at_once(), Err(Refusal::Busy { threads: 1, .. })));
    let waited = program.end();
    assert_eq!(waited.calls, 0);
    assert!(waited.result > 0 && waited.milliseconds >= 1499, "{waited:?}");
    // Another thread is borrowed.
    let program = Waiting::new("vfork_beside", 1500);
    let called = program.attach().unwrap();
    assert_eq!((called.result, called.tid), (42, program.pid.first_thread()));
    let waited = program.end();
    assert_eq!((waited.result, waited.calls), (0, 1), "{waited:?}");
}
