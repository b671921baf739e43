//! Takes a CPU offline and back, again and again. Whatever ends this process, the CPU comes back: a child
//! takes care of that.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::Duration;

use crate::machine::{self, Random, StopAtEnd};

/// The file that switches a CPU, if this process may write it: that of the last online CPU.
fn switch() -> Option<PathBuf> {
    let path = |cpu: usize| PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    let is_on = |path: &PathBuf| {
        fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
            && fs::OpenOptions::new().write(true).open(path).is_ok()
    };
    (1..machine::possible_cpus()).rev().map(path).find(is_on)
}

/// Switches a CPU on when its standard input ends. Only `kill -9` prevents that; it is a program with a
/// different name, in a process group of its own, so that a signal that ends the test does not reach it.
const KEEPER: &str = "trap '' HUP INT QUIT TERM; read -r _
for attempt in 1 2 3 4 5 6 7 8 9; do echo 1 > \"$0\" && exit 0; sleep 0.2; done; exit 1";

/// Runs `run` while a CPU goes offline and comes back; returns how often it went, 0 where that is impossible.
pub fn during<T>(seed: u64, run: impl FnOnce() -> T) -> (T, u64) {
    let Some(path) = switch() else { return (run(), 0) };
    let mut keeper = Command::new("/bin/sh")
        .args(["-c", KEEPER])
        .arg(&path)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("/bin/sh starts");
    let done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let _stop = StopAtEnd(&done);
        let times = scope.spawn(|| {
            let (mut random, mut times) = (Random(seed), 0);
            while !done.load(Acquire) {
                // Refused while the kernel is busy with it; the next attempt works.
                times += u64::from(fs::write(&path, "0").is_ok());
                thread::sleep(Duration::from_millis(1 + random.below(20) as u64));
                let _ = fs::write(&path, "1");
                thread::sleep(Duration::from_millis(1 + random.below(50) as u64));
            }
            times
        });
        let result = run();
        done.store(true, Release);
        (result, times.join().expect("writes files"))
    });
    // Closes its standard input first.
    let kept = keeper.wait().expect("a child that no other thread waits for");
    assert!(kept.success(), "{} could not be switched on again", path.display());
    result
}
