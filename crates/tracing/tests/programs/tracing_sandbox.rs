//! Reaches call sites for the first time where a system call could end the process: `tracing_sandbox SCENE`.
//! First it prints how many events it emits, each with a `number` of its own.

use std::io::Write;
use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

/// Applies a macro to ten names, one call site each.
macro_rules! ten {
    ($number:ident, $of:ident) => {
        ten!(@ $number, $of; "0" "1" "2" "3" "4" "5" "6" "7" "8" "9")
    };
    (@ $number:ident, $of:ident; $($name:literal)*) => {
        $({
            $of!($name, $number);
            $number += 1;
        })*
    };
}

macro_rules! said {
    ($name:literal, $number:ident) => {
        for _ in 0..2 {
            info!(name: concat!("said", $name), $number, "a number and text")
        }
    };
}

macro_rules! counted {
    ($name:literal, $number:ident) => {
        info!(name: concat!("counted", $name), $number)
    };
}

macro_rules! disabled {
    ($name:literal, $number:ident) => {
        info!(name: concat!("disabled", $name), target: "disabled", $number)
    };
}

macro_rules! span {
    ($name:literal, $number:ident) => {
        drop(info_span!(concat!("span", $name), $number).entered())
    };
}

/// Numbers 0 to 9 twice, 10 to 19, and in spans 20 to 29; no recording enables 30 to 39.
fn emit() {
    let mut number = 0;
    ten!(number, said);
    ten!(number, counted);
    ten!(number, span);
    ten!(number, disabled);
}

/// From now on every system call ends the process, except those for memory, those for locks (`tracing` has
/// some, the C library's memory, too), and those of the strict mode.
fn sandbox() {
    const ALLOWED: &[i64] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_exit_group,
        libc::SYS_rt_sigreturn,
        libc::SYS_futex,
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
    ];
    let (allow, kill) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS);
    let mut program = tracewing_testing::filter(ALLOWED, allow, kill);
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: numbers, and a complete filter.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
}

fn leave() -> ! {
    // SAFETY: ends the process, by a call that is allowed.
    unsafe { libc::_exit(0) }
}

/// A child that emits and exits at once.
fn fork() {
    // SAFETY: the child emits and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        sandbox();
        emit();
        leave();
    }
    let mut status = 0;
    // SAFETY: a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

/// Emits until the recorder has disabled the event: its number is then no longer evaluated.
fn wait_for_answer() {
    let (begin, mut evaluated) = (std::time::Instant::now(), 0_u64);
    loop {
        let before = evaluated;
        info!(target: "disabled", number = {
            evaluated += 1;
            evaluated
        });
        if evaluated == before {
            return println!("answered");
        }
        if begin.elapsed().as_secs() >= 30 {
            return println!("no answer");
        }
    }
}

fn main() {
    let scene = std::env::args().nth(1).unwrap_or_default();
    tracing_subscriber::registry().with(tracewing_tracing::layer()).init();
    println!("ready");
    std::io::stdout().flush().unwrap();
    match scene.as_str() {
        "filtered" => {
            sandbox();
            emit();
            leave();
        }
        "killed" => {
            emit();
            // SAFETY: a signal to this process.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        "alone" => {
            // SAFETY: numbers; the recorder is the parent.
            unsafe { libc::kill(libc::getppid(), libc::SIGKILL) };
            emit();
        }
        "stopped" => {
            let recorder = std::env::args().nth(2).unwrap().parse().unwrap();
            // SAFETY: numbers.
            unsafe {
                libc::alarm(120);
                assert_eq!(libc::kill(recorder, libc::SIGSTOP), 0);
            }
            emit();
        }
        "forked" => fork(),
        "answered" => wait_for_answer(),
        _ => panic!("no scene {scene:?}"),
    }
}
