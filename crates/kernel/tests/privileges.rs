//! Messages to a user without privileges, and that tracefs is mounted where only that is missing.

mod common;

use common::{Actor, role, say, traceable};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{Uid, UnshareFlags, set_thread_uid, unshare_unsafe};
use std::path::Path;
use tracewing_kernel::privileges;

/// An actor: a user other than root asks.
#[test]
fn stranger() {
    if role("stranger").is_none() {
        return;
    }
    set_thread_uid(Uid::from_raw(65534)).unwrap();
    say("answer", privileges().map_or_else(|missing| missing.to_string(), |()| "yes".to_owned()));
}

/// An actor: root asks in a mount namespace without tracefs.
#[test]
fn unmounted() {
    if role("unmounted").is_none() {
        return;
    }
    // SAFETY: only the mount table is unshared, which no reference of this program depends on.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap();
    for line in mounts.lines().filter(|line| line.contains(" tracefs ")) {
        unmount(line.split(' ').nth(1).unwrap(), UnmountFlags::DETACH).unwrap();
    }
    let gone = !Path::new("/sys/kernel/tracing/events").exists();
    let answer = privileges().map_or_else(|missing| missing.to_string(), |()| "yes".to_owned());
    // In the second place where debugfs mounts it by itself.
    let places = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];
    let back = places.iter().any(|place| Path::new(place).exists());
    say("answer", format!("{gone} {answer} {back}"));
}

#[test]
fn without_privileges_one_line_says_what_to_do() {
    if !traceable() {
        return;
    }
    let mut actor = Actor::start("stranger", Path::new(""));
    assert_eq!(actor.expect("answer"), "kernel events need root: run the same command with sudo");
    assert!(actor.wait().success());
}

#[test]
fn tracefs_is_mounted_where_it_is_not() {
    if !traceable() {
        return;
    }
    let mut actor = Actor::start("unmounted", Path::new(""));
    assert_eq!(actor.expect("answer"), "true yes true");
    assert!(actor.wait().success());
}
