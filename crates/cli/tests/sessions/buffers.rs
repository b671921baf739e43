//! Channels whose buffers are files: after kills, the next recorders have others, and those of the killed
//! ones stay until they are read.

use crate::background::{Background, Pilot};
use crate::harness::Printed;
use crate::{counted, is_running};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tracewing_testing::{signal, wait_until};

const CHANNELS: [&str; 2] = ["main", "more"];

fn recorder(sessions: &Background, channel: &str) -> u32 {
    sessions.channel("web", channel)["recorder"].as_u64().unwrap() as u32
}

fn wait_for_program(sessions: &Background) {
    wait_until("the program is recorded", || {
        CHANNELS.iter().all(|channel| sessions.channel("web", channel)["programs"] == 1)
    });
}

/// The folders with buffers.
fn folders(sessions: &Background) -> BTreeSet<String> {
    let entries = fs::read_dir(sessions.folder().join("buffers")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Stops recorders, has the program emit, and kills them: what it has emitted is in their buffers alone.
fn kill(sessions: &Background, pilot: &mut Pilot, channels: &[&str]) -> u64 {
    let pids: Vec<u32> = channels.iter().map(|channel| recorder(sessions, channel)).collect();
    pids.iter().for_each(|pid| signal(*pid, libc::SIGSTOP));
    let emitted = pilot.emit(100);
    pids.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
    wait_until("they are gone", || !pids.iter().any(|pid| is_running(*pid)));
    emitted
}

/// The events that a killed recorder has written, and those that were left in its buffers.
fn read_and_recovered(sessions: &Background, start: &str, place: &str) -> (u64, u64) {
    let recovered = format!("recovered-{place}");
    sessions.succeeds(&format!("recover buffers/web.{start}.{place} -o {recovered}"));
    let trace = sessions.folder().join("web").join(start).join(place);
    (counted(&trace), counted(&sessions.folder().join(recovered)))
}

#[test]
fn killed_recorders_are_replaced_and_their_buffers_are_kept() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:* --buffers-in buffers");
    sessions.succeeds("channel add web more -e pilot:* --buffers-in buffers");
    let name = |start: &Path| start.file_name().unwrap().to_str().unwrap().to_owned();
    let first = name(&sessions.start("web"));
    let mut pilot = Pilot::start(&sessions);
    wait_for_program(&sessions);
    let until_kill = kill(&sessions, &mut pilot, &["main"]);

    let said = sessions.succeeds("session start web").notes();
    let kept = format!("buffers/web.{first}.main");
    assert!(said.contains("web/main: what an earlier recorder has not written is kept"), "{said}");
    assert!(said.contains(&format!("{kept} -o DIR` reads it")) && !said.contains("web/more"), "{said}");
    wait_for_program(&sessions);
    // As when the machine restarts.
    let until_restart = kill(&sessions, &mut pilot, &CHANNELS);

    let said = sessions.succeeds("session start web").notes();
    assert!(said.contains("web/main: what 2 earlier recorders have not written is kept"), "{said}");
    assert!(said.contains("web/more: what an earlier recorder has not written is kept"), "{said}");
    wait_for_program(&sessions);
    let left = ["main", "main~2", "more"].map(|place| format!("web.{first}.{place}"));
    let all = folders(&sessions);
    assert!(left.iter().all(|folder| all.contains(folder)) && all.len() == 5, "{all:?}");
    for (place, expected) in
        [("main", until_kill), ("main~2", until_restart - until_kill), ("more", until_restart)]
    {
        let (read, recovered) = read_and_recovered(&sessions, &first, place);
        assert!(recovered > 0 && read + recovered == expected, "{place}: {read} + {recovered} of {expected}");
    }
    sessions.succeeds("session stop web");
    assert_eq!(folders(&sessions), left.into(), "those that could write all have left none");
}
