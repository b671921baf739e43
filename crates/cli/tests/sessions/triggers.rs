//! Triggers: what is done when an event comes.

use crate::background::{Background, Pilot};
use crate::harness::Printed;
use crate::recorded::list;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tracewing_testing::wait_until;

/// The numbers and stamps of the pilot's events with a number.
fn with_number(trace: &std::path::Path, number: u64) -> Vec<u64> {
    let events = list(trace);
    let counts = events.iter().filter(|event| event.name == "pilot:count");
    counts.filter(|event| event.payload["number"] == number).map(|event| event.stamp).collect()
}

#[test]
fn a_snapshot_has_the_event_that_has_fired() {
    let sessions = Background::new();
    sessions.succeeds("session create flight --flight-recorder");
    sessions.succeeds(
        "trigger add flight hit -e pilot:count --where number==777 --do snapshot --exec /bin/echo --at-most-every 3600",
    );
    let folder = sessions.start("flight");
    let mut pilot = Pilot::start(&sessions);
    pilot.emit(776);
    assert_eq!(sessions.channel("flight", "hit")["events"], 0);
    pilot.emit(1000);
    wait_until("the snapshot is taken", || sessions.channel("flight", "main")["snapshots"] == 1);
    // It fires once an hour.
    let mut second = Pilot::start(&sessions);
    second.emit(1000);
    wait_until("all that fires is recorded", || {
        let fired = sessions.channel("flight", "hit")["events"].as_u64().unwrap();
        fired == pilot.emit(0) / 1776 + second.emit(0) / 1000
    });
    let said = sessions.succeeds("session stop flight");
    let snapshot = folder.join("main/snapshot-1");
    let fired = with_number(&folder.join("hit"), 777);
    let found = with_number(&snapshot, 777);
    // A program writes an event to its recordings one after the other, and to the trigger last.
    assert!(fired.iter().min() > found.iter().min() && !found.is_empty(), "{fired:?}, {found:?}");
    let log = fs::read_to_string(folder.join("hit.log")).unwrap();
    assert_eq!(log.matches("fired: snapshot").count(), 1, "{log}");
    assert!(log.contains(&format!("{}\n", snapshot.display())), "the program that has run: {log}");
    assert!(said.notes().contains("flight/hit: "), "{}", said.notes());
    let others = list(&folder.join("hit")).into_iter().filter(|event| event.name != "pilot:count").count();
    assert_eq!(others, 0, "events of tracewing would fire it, too");
}

#[test]
fn a_program_that_hangs_holds_up_nothing_and_ends_with_the_session() {
    let sessions = Background::new();
    let script = sessions.folder().join("hangs");
    fs::write(&script, "#!/bin/sh\necho $$ > pid\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    sessions.succeeds("session create flight --flight-recorder");
    sessions.succeeds(
        "trigger add flight hit -e pilot:count --where number==100 --do snapshot --exec ./hangs --at-most-every 0.001",
    );
    let folder = sessions.start("flight");
    for snapshots in 1..=3 {
        Pilot::start(&sessions).emit(100);
        wait_until("the snapshot is taken", || {
            sessions.channel("flight", "main")["snapshots"].as_u64().unwrap() >= snapshots
        });
    }
    let pid: u32 = fs::read_to_string(sessions.folder().join("pid")).unwrap().trim().parse().unwrap();
    assert!(crate::is_running(pid));
    let said = sessions.ran("session stop flight").notes();
    assert!(
        said.contains("flight/hit: fired, but not done: ./hangs: killed, since it was not over"),
        "{said}"
    );
    assert!(said.contains("flight/hit: ./hangs: not run again while it was running: "), "{said}");
    assert!(!crate::is_running(pid));
    assert!(!with_number(&folder.join("main/snapshot-3"), 100).is_empty());
}

#[test]
fn sizes_and_full_buffers_fire_as_well() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("trigger add web big --when-size 64K --do rotate --at-most-every 3600");
    sessions.succeeds("trigger add web larger --when-size 128K --do notify --at-most-every 3600");
    sessions.succeeds("trigger add web full --when-full 50 --exec /bin/true");
    let saved = sessions.succeeds("session save web").text();
    assert_eq!(saved.matches("when-size").count(), 2, "{saved}");
    assert!(sessions.fails("channel add web x --when-full 50").contains("is an option of triggers"));
    let both = sessions.fails("trigger add web both --when-full 50 --do notify -e pilot:*");
    assert!(both.contains("--event cannot be used with --when-full"), "{both}");
    let states = || ["big", "larger", "full"].map(|name| sessions.channel("web", name)["state"].clone());
    assert_eq!(states(), ["stopped"; 3]);
    let folder = sessions.start("web");
    assert_eq!(states(), ["trigger"; 3]);
    let mut pilot = Pilot::start(&sessions);
    let emitted = pilot.emit(10_000);
    wait_until("an archive is complete", || folder.join("main/archives").exists());
    wait_until("it is said", || {
        let log = fs::read_to_string(folder.join("main.log")).unwrap();
        log.contains("big fired: rotate") && log.contains("larger fired: noted")
    });
    sessions.succeeds("session stop web");
    assert_eq!(crate::counted(&folder.join("main")), emitted);

    sessions.succeeds("trigger remove web big");
    sessions.succeeds("channel add web small -e pilot:* --sub-buffers 2 --sub-buffer-size 4K --flush 1000");
    let folder = sessions.start("web");
    let mut pilot = Pilot::start(&sessions);
    wait_until("it fires", || {
        pilot.emit(1000);
        fs::read_to_string(folder.join("small.log")).unwrap().contains("full fired: /bin/true has run")
    });
}

#[test]
fn archives_end_and_recording_stops_and_starts_when_events_come() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    let add = |line: &str| sessions.succeeds(&format!("trigger add web {line}"));
    add("round -e pilot:count --where number==100 --do rotate --do stop");
    add("go -e pilot:count --where number==400 --do start --do exec --do notify --exec /bin/echo");
    add("wrong -e pilot:count --where number==100 --do snapshot --exec /no/such/program");
    let folder = sessions.start("web");
    let state_is = |state: &str| {
        let is = || sessions.channel("web", "main")["state"] == state;
        wait_until("it is in this state", is);
    };
    let mut pilot = Pilot::start(&sessions);
    let threads = pilot.emit(99) / 99;
    pilot.emit(1);
    state_is("paused");
    pilot.emit(250);
    state_is("paused");
    pilot.emit(50);
    state_is("recording");
    pilot.emit(100);
    sessions.succeeds("session stop web");
    let main = folder.join("main");
    let archives: Vec<PathBuf> =
        fs::read_dir(main.join("archives")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(archives.len(), 2, "{archives:?}");
    let mut times = vec![0; 501];
    for event in list(&main).iter().filter(|event| event.name == "pilot:count") {
        times[event.payload["number"].as_u64().unwrap() as usize] += 1;
    }
    assert!(times[1..=99].iter().chain(&times[401..]).all(|times| *times == threads), "{times:?}");
    assert!(times[101..=350].iter().all(|times| *times == 0), "{times:?}");
    let log = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let wrong = log("wrong.log");
    assert!(
        wrong.contains("no channel of the session can snapshot") && wrong.contains("/no/such/program: "),
        "{wrong}"
    );
    assert!(log("round.log").contains("fired: stop web/main"), "{}", log("round.log"));
    let go = log("go.log");
    assert!(go.contains("fired: start web/main") && go.contains("fired: /bin/echo has run"), "{go}");
}

#[test]
fn actions_have_the_names_that_they_had_before_and_exec_needs_a_program() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    let fails = |line: &str, why: &str| {
        let said = sessions.fails(&format!("trigger add web x -e pilot:count {line}"));
        assert!(said.contains(why), "{line}: {said}");
    };
    fails("--do exec", "--exec <CMD>");
    fails("--do nothing", "[possible values: snapshot, rotate, start, stop, notify, exec]");
    sessions.succeeds("trigger add web x -e pilot:count --do pause --do resume --at-most-every 3600");
    let folder = sessions.start("web");
    let mut pilot = Pilot::start(&sessions);
    pilot.emit(1);
    let log = || fs::read_to_string(folder.join("x.log")).unwrap();
    wait_until("both are done", || log().contains("fired: start web/main"));
    assert!(log().contains("fired: stop web/main"), "{}", log());
    sessions.succeeds("session stop web");
}
