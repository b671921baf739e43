//! Channels for events of the kernel: in buffers of their own, of sizes and modes of their own.

use crate::background::{Background, Pilot};
use crate::counted;
use crate::recorded::{Event, list};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tracewing_testing::{traceable, wait_until};

/// System calls at once: more than small buffers hold, and fewer than large ones do.
const CALLS: u64 = 100_000;

/// The kernel's side of the recorder of a channel.
fn instance(channel: &Value) -> PathBuf {
    let root = tracewing_kernel::Tracefs::open().unwrap().root().join("instances");
    let prefix = format!("tracewing-{}-", channel["recorder"]);
    let mut instances = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let is_meant = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix);
    instances.find(is_meant).unwrap()
}

fn setting(instance: &Path, file: &str) -> String {
    fs::read_to_string(instance.join(file)).unwrap_or_default().trim().to_owned()
}

#[test]
fn channels_for_kernel_events_have_buffers_of_their_own() {
    if !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    let add = |line: &str| sessions.succeeds(&format!("channel add web {line} -k sys_enter_getppid"));
    sessions.succeeds("session create web -e pilot:*");
    add("small --sub-buffers 4 --sub-buffer-size 4K");
    add("newest --sub-buffers 2 --sub-buffer-size 16K --on-full overwrite");
    add("large --sub-buffers 16 --sub-buffer-size 512K");
    add("more --sub-buffers 4");
    sessions.start("web");
    let sizes =
        [("small", 4, 4096, "discard"), ("newest", 2, 16384, "overwrite"), ("large", 16, 524_288, "discard")];
    for (name, number, bytes, on_full) in sizes {
        let channel = sessions.channel("web", name);
        let instance = instance(&channel);
        let total = channel["kernel_sub_buffers"].as_u64().unwrap()
            * channel["kernel_sub_buffer_bytes"].as_u64().unwrap();
        assert_eq!(total, number * bytes, "{channel}");
        let page = setting(&instance, "buffer_subbuf_size_kb");
        if !page.is_empty() {
            assert_eq!(page, (bytes / 1024).to_string(), "{name}");
            assert_eq!(channel["kernel_sub_buffers"], number, "{name}");
        }
        // Without the headers of sub-buffers, and rounded down.
        let kib: u64 = setting(&instance, "buffer_size_kb").parse().unwrap();
        let headers = channel["kernel_sub_buffers"].as_u64().unwrap() * 16 / 1024;
        assert!((total / 1024 - 2 - headers..=total / 1024).contains(&kib), "{name}: {kib}");
        assert_eq!(setting(&instance, "options/overwrite"), u8::from(on_full == "overwrite").to_string());
        assert_eq!(channel["kernel_on_full"], on_full);
    }
    assert!(sessions.channel("web", "main")["kernel_sub_buffers"].is_null(), "no events of the kernel");
    let more = instance(&sessions.channel("web", "more"));
    let kib: u32 = setting(&more, "buffer_size_kb").parse().unwrap();
    let default = tracewing_kernel::default_buffer_kib();
    assert!(kib >= default - default / 64, "{kib}: one option alone makes them no smaller");

    for _ in 0..CALLS {
        std::hint::black_box(rustix::process::getppid());
    }
    let figure = |name: &str, figure: &str| sessions.channel("web", name)[figure].as_u64().unwrap();
    for (name, ..) in sizes {
        wait_until("all are recorded, or counted as lost", || {
            figure(name, "events") + figure(name, "lost") >= CALLS
        });
    }
    let lost = sizes.map(|(name, ..)| figure(name, "lost"));
    assert!(lost[0] > 0 && lost[1] > 0 && lost[2] == 0, "{lost:?}");
    sessions.succeeds("session stop web");
}

#[test]
fn full_buffers_of_the_kernel_fire_triggers() {
    if !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    let mark = sessions.folder().join("fired");
    sessions.succeeds("session create web -k sys_enter_getppid --sub-buffers 2 --sub-buffer-size 4K");
    sessions.succeeds(&format!("trigger add web full --when-full 90 --exec {}", touch(&mark).display()));
    sessions.start("web");
    assert!(!mark.exists(), "nothing has come to pass");
    wait_until("it fires", || {
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
        mark.exists()
    });
    sessions.succeeds("session stop web");
}

/// It would be shown as paused, and still record.
#[test]
fn a_channel_of_kernel_events_alone_is_not_paused() {
    if !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("channel add web kernel -k sys_enter_getppid");
    sessions.succeeds("trigger add web halt -e pilot:count --do stop --at-most-every 3600");
    let folder = sessions.start("web");
    let why = "it records no programs, and events of the kernel, samples and probes cannot be paused";
    let state = |channel: &str| sessions.channel("web", channel)["state"].clone();
    for line in ["pause web/kernel", "resume web/kernel"] {
        let said = sessions.fails(line);
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(state("kernel"), "recording");
    Pilot::start(&sessions).emit(1);
    wait_until("the other channel has stopped", || state("main") == "paused");
    assert_eq!(state("kernel"), "recording");
    let log = || fs::read_to_string(folder.join("halt.log")).unwrap();
    wait_until("it is said", || log().contains("fired: "));
    assert!(log().contains("fired: stop web/main\n"), "{}", log());
    sessions.succeeds("session stop web");
}

#[test]
fn an_event_of_the_kernel_fires_a_snapshot_that_has_it() {
    if !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    // Nothing else makes this call.
    let call = "sys_enter_sched_rr_get_interval";
    sessions.succeeds(&format!("session create flight --flight-recorder -k {call}"));
    sessions.succeeds(&format!("trigger add flight hit -k {call} --do snapshot --do notify"));
    let folder = sessions.start("flight");
    let is_it = |event: &Event| event.name.ends_with("sched_rr_get_interval");
    let events = |trace: PathBuf| list(&trace).iter().filter(|event| is_it(event)).count();
    let snapshots = || sessions.channel("flight", "main")["snapshots"].as_u64().unwrap();
    assert_eq!(snapshots(), 0, "nothing has come to pass");
    let mut interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time lives through the call.
    assert_eq!(unsafe { libc::sched_rr_get_interval(0, &raw mut interval) }, 0);
    wait_until("the snapshot is taken", || snapshots() == 1);
    sessions.succeeds("session stop flight");
    assert_eq!([folder.join("hit"), folder.join("main/snapshot-1")].map(events), [1, 1]);
    let log = fs::read_to_string(folder.join("hit.log")).unwrap();
    assert!(log.contains("fired: snapshot") && log.contains("fired: noted"), "{log}");
}

#[test]
fn a_channel_of_probes_records_the_programs_of_the_machine() {
    if !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("channel add web probes --system-wide --no-kernel --probe libc.so.6:getppid");
    let folder = sessions.start("web");
    for _ in 0..100 {
        // SAFETY: it takes nothing.
        std::hint::black_box(unsafe { libc::getppid() });
    }
    let emitted = Pilot::start(&sessions).emit(10);
    sessions.succeeds("session stop web");
    // The kernel's number of this thread may be another one than it has here.
    let mut calls: BTreeMap<i64, u64> = BTreeMap::new();
    let probes = list(&folder.join("probes"));
    // At its begin it has what there was.
    for event in probes.iter().filter(|event| !event.name.starts_with("lttng_statedump_")) {
        assert_eq!(event.name, "libc.so.6:getppid", "no other events");
        *calls.entry(event.tid).or_default() += 1;
    }
    assert!(calls.values().any(|calls| *calls == 100), "{calls:?}");
    assert_eq!(counted(&folder.join("main")), emitted);
}

/// A program that makes a file.
fn touch(file: &Path) -> PathBuf {
    let script = file.with_extension("sh");
    fs::write(&script, format!("#!/bin/sh\n: > {}\n", file.display())).unwrap();
    rustix::fs::chmod(&script, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    script
}

#[test]
fn what_a_channel_cannot_do_with_kernel_events_is_said_in_its_words() {
    let sessions = Background::new();
    sessions.succeeds("session create web");
    for (line, why) in [
        ("channel add web k -k sched_switch --where prev_pid==1", "have no conditions"),
        ("trigger add web k -k sched_switch --where prev_pid==1 --do notify", "have no conditions"),
        ("trigger add web k --do notify", "a trigger waits for events"),
        ("channel add web k -k sched_switch --on-full block", "programs and the kernel never wait"),
        (
            "channel add web k --profile",
            "with --profile, a channel records the whole machine: add --system-wide",
        ),
        ("channel add web k --probe libc.so.6:malloc", "with --probe, a channel records the whole machine"),
    ] {
        let said = sessions.fails(line);
        assert!(said.contains(why) && !said.contains("--all"), "{said}");
    }
    if tracewing_kernel::privileges().is_ok() {
        sessions.succeeds("session start web");
        let said = sessions.fails("channel add web k -k no_such_event");
        assert!(said.contains("no_such_event") && said.matches("error:").count() == 1, "{said}");
    }
}
