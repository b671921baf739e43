//! Every kind of system call that waits returns what it would have returned, when it would have: whether its
//! thread is borrowed, or is stopped for nothing, since it came to the call after the recorder looked.

use super::*;

/// How long a call is tried, and how many are at a time.
const TIME: Duration = Duration::from_secs(2);
const AT_A_TIME: usize = 4;

#[test]
fn every_call_returns_what_it_would_have() {
    let names = Command::new(&*PROGRAM).arg("names").output().unwrap();
    let names = String::from_utf8(names.stdout).unwrap();
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() > 30, "{names:?}");
    for some in names.chunks(AT_A_TIME) {
        std::thread::scope(|scope| some.iter().for_each(|name| drop(scope.spawn(|| is_unchanged(name)))));
    }
}

fn is_unchanged(name: &str) {
    // On a loaded machine the recorder may come between two waits only after a while.
    let mut times = (0..5).map(|doubled| TIME * (1 << doubled));
    assert!(times.any(|time| is_called(name, time)), "{name}: no thread was borrowed");
}

/// Attaches again and again while the call is made for so long; whether one attempt came through.
fn is_called(name: &str, time: Duration) -> bool {
    let mut program = Waiting::by_call(name, time.as_millis() as u64);
    let begin = Instant::now();
    // A wait that begins anew each time ends then.
    while program.is_waiting() && begin.elapsed() < 5 * time {
        // Between two waits it can be borrowed.
        match program.attach_at_once() {
            Ok(called) => assert_eq!(called.result, 42, "{name}"),
            Err(Refusal::Busy { .. } | Refusal::Gone(_) | Refusal::Zombie(_)) => {}
            // Where the recorder gets no turn, the thread continues by itself, which may take as long.
            Err(Refusal::Late(_) | Refusal::Taken(_)) => {}
            Err(refusal) => panic!("{name}: {refusal}"),
        }
    }
    let waited = program.end();
    assert_eq!(waited.result, 0, "{name}: {waited:?}");
    waited.calls > 0
}
