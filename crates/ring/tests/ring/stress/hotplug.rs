//! A CPU that is taken away and given back, again and again. Whatever happens to this process, the CPU comes back: a
//! child looks after that.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::Duration;

use crate::machine::{self, Random, StopAtEnd};

/// The file that switches a CPU, if the machine lets this process do that: the last CPU that is on.
fn switch() -> Option<PathBuf> {
    let path = |cpu: usize| PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    let is_on = |path: &PathBuf| {
        fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
            && fs::OpenOptions::new().write(true).open(path).is_ok()
    };
    (1..machine::possible_cpus()).rev().map(path).find(is_on)
}

/// Waits until this process has closed the other end of the pipe, by its death if need be, and switches the CPU on.
fn keep(path: &PathBuf, pipe: OwnedFd) -> i32 {
    // SAFETY: changes only the calling process: no signal of the terminal, and none for the parent's death.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, 0);
    }
    let _ = fs::File::from(pipe).read(&mut [0]);
    fs::write(path, "1").is_err().into()
}

/// Runs `run` while a CPU comes and goes; gives how often it went, 0 where that is not possible.
pub fn during<T>(seed: u64, run: impl FnOnce() -> T) -> (T, u64) {
    let Some(path) = switch() else { return (run(), 0) };
    let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    let raw = std::os::fd::AsRawFd::as_raw_fd(&ours);
    let keeper = machine::fork(|| {
        // SAFETY: the child's copy of the writing end, which its parent's alone shall keep open.
        unsafe { libc::close(raw) };
        keep(&path, theirs)
    });
    let done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let _stop = StopAtEnd(&done);
        let times = scope.spawn(|| {
            let (mut random, mut times) = (Random(seed), 0);
            while !done.load(Acquire) {
                // Refused while the kernel is at it; then the next time.
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
    drop(ours);
    assert_eq!(machine::wait(keeper), 0, "{} could not be switched on again", path.display());
    result
}
