//! Sessions that change while they are started: channels come and go, what was recorded is cleared, old
//! archives make room.

use crate::background::{Background, Pilot};
use crate::counted;
use crate::harness::Printed;
use crate::soak::size;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tracewing_testing::wait_until;

#[test]
fn channels_and_triggers_come_and_go() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    let folder = sessions.start("web");
    let mut pilot = Pilot::start(&sessions);
    let before = pilot.emit(100);
    sessions.succeeds("channel add web late -e pilot:*");
    wait_until("the program takes part", || sessions.channel("web", "late")["programs"].as_u64() >= Some(1));
    sessions.succeeds("trigger add web hit -e pilot:count --where number>100 --do pause");
    wait_until("the trigger has it", || sessions.channel("web", "hit")["programs"].as_u64() >= Some(1));
    let (main, late) = (sessions.channel("web", "main"), sessions.channel("web", "late"));
    assert_ne!(main["recorder"], late["recorder"]);
    sessions.succeeds("channel add web last -e pilot:*");
    wait_until("it takes part in the third one", || {
        sessions.channel("web", "last")["programs"].as_u64() >= Some(1)
    });
    // Also of the channel that was not there when the trigger was added.
    for channel in ["main", "late", "last"] {
        wait_until("it is paused", || {
            pilot.emit(1);
            sessions.channel("web", channel)["state"] == "paused"
        });
    }
    sessions.succeeds("trigger remove web hit");
    let removed = sessions.succeeds("channel remove web late").notes();
    assert!(removed.contains("web/late: "), "{removed}");
    assert_eq!(sessions.recorders().len(), 2);
    assert_eq!(sessions.channel("web", "main")["recorder"], main["recorder"]);
    assert!(sessions.fails("channel add web late -e pilot:*").contains("an earlier late has recorded"));
    assert!(sessions.fails("channel add web wrong --pid 999999999").contains("999999999"));
    assert!(sessions.fails("channel add web wrong --pid 999999999").contains("999999999"), "as before");
    assert!(sessions.fails("trigger add web x -e a:b --do notify --context pid").contains("--context"));
    let started = sessions.recorders();
    assert_eq!(started.len(), 2);
    assert!(!sessions.succeeds("channel list web").text().contains("late"));
    assert!(sessions.fails("trigger add web full --when-full 50 --do notify").contains("session stop web"));
    sessions.succeeds("session stop web");
    let (main, late) = (counted(&folder.join("main")), counted(&folder.join("late")));
    assert!(main > before && 0 < late && late <= main - before, "{late} of {main}");
}

#[test]
fn what_is_cleared_is_gone_and_is_counted() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:* --on-archive /bin/echo");
    sessions.succeeds("channel add web other -e pilot:*");
    sessions.succeeds("trigger add web hit -e pilot:count --where number==1 --do notify");
    let folder = sessions.start("web");
    let mut pilot = Pilot::start(&sessions);
    let first = pilot.emit(100);
    wait_until("it is recorded", || sessions.channel("web", "main")["events"].as_u64() >= Some(first));
    let printed = sessions.succeeds("clear web").text();
    assert_eq!(printed.lines().count(), 2, "two channels: {printed}");
    for path in printed.lines() {
        let parent = Path::new(path).parent().unwrap();
        assert!(Path::new(path).is_dir() && parent.ends_with("archives"), "{path}");
    }
    let second = pilot.emit(20) - first;
    let archives = sessions.succeeds("rotate web").text();
    let third = pilot.emit(3) - first - second;
    sessions.succeeds("clear web/main");
    sessions.succeeds("session stop web");
    assert_eq!(counted(&folder.join("main")), second, "an archive before the second time stays");
    assert_eq!(counted(&folder.join("other")), second + third);
    assert!(counted(&folder.join("hit")) > 0, "what has fired is not cleared");
    let log = fs::read_to_string(folder.join("main.log")).unwrap();
    let kept = archives.lines().find(|path| path.contains("/main/")).unwrap();
    let handed: Vec<&str> = log.lines().filter(|line| line.starts_with('/')).collect();
    assert_eq!(handed.len(), 2, "the command gets what stays: {log}");
    assert_eq!(handed[0], kept);
    let about = sessions.succeeds(&format!("info {} --format json", folder.join("main").display())).text();
    assert!(about.contains("cleared by process"), "{about}");

    sessions.succeeds("session destroy web");
    sessions.succeeds("session create flight --flight-recorder");
    sessions.start("flight");
    assert!(sessions.fails("clear flight").contains("flight recorder"));
}

/// Each channel by its own options, the one that the session is made with, too; and what a stop says of it.
#[test]
fn a_channel_has_room_of_its_own() {
    let sessions = Background::new();
    sessions.succeeds(
        "session create web -e pilot:* --max-size 1M --total-size 1G --keep 4 --sub-buffers 2 --sub-buffer-size 8K",
    );
    sessions.succeeds("channel add web all -e pilot:*");
    let saved = sessions.succeeds("session save web").text();
    let (of_session, of_main) = saved.split_once("[channel.main]").unwrap();
    assert!(of_session.contains("total-size = \"1G\"") && of_main.contains("max-size = \"1M\""), "{saved}");
    assert!(!of_main.contains("total-size"), "{saved}");
    sessions.succeeds("session save web -o web.toml");
    sessions.succeeds("session destroy web");
    sessions.succeeds("session load web.toml");
    assert_eq!(sessions.succeeds("session save web").text(), saved);
    let folder = sessions.start("web");
    let mut pilot = Pilot::start(&sessions);
    wait_until("archives are removed", || {
        pilot.emit(1000);
        fs::read_to_string(folder.join("main/tracewing.json")).unwrap().contains("is_removed")
    });
    let emitted = pilot.emit(0);
    let status = sessions.channel("web", "main");
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    assert!(number(&status, "removed") > 0 && number(&status, "removed_bytes") >= 1 << 18, "{status}");
    assert_eq!(number(&sessions.channel("web", "all"), "removed"), 0);
    let text =
        sessions.succeeds("session status web --columns channel,removed,removed_events,removed_bytes").text();
    assert!(text.lines().next().unwrap().contains("removed events"), "{text}");
    let notes = sessions.succeeds("session stop web").notes();
    let whole = fs::read(folder.join("main/tracewing.json")).unwrap();
    let totals = serde_json::from_slice::<Value>(&whole).unwrap()["archive_totals"].clone();
    for name in ["removed", "removed_events", "removed_bytes"] {
        assert!(number(&totals, name) >= number(&status, name), "{name}: {totals}, before {status}");
    }
    let line = |channel: &str| notes.lines().find(|line| line.starts_with(channel)).unwrap();
    assert!(line("web/main: ").contains("; archives removed: "), "{notes}");
    assert!(!line("web/all: ").contains("removed"), "{notes}");
    let archives = fs::read_dir(folder.join("main/archives")).unwrap().count();
    assert!((2..=4).contains(&archives), "{archives}");
    let main = counted(&folder.join("main"));
    assert!(main > 0 && main < emitted && counted(&folder.join("all")) == emitted, "{main} of {emitted}");
}

/// A flight recorder that runs for weeks.
#[test]
fn snapshots_go_like_archives() {
    let sessions = Background::new();
    sessions.succeeds("session create flight --flight-recorder -e pilot:* --keep 2 --sub-buffers 2");
    sessions.succeeds("channel add flight big --flight-recorder -e pilot:* --max-size 512K");
    let folder = sessions.start("flight");
    let mut pilot = Pilot::start(&sessions);
    let has = |name: &str| folder.join(name).exists();
    for _ in 0..3 {
        pilot.emit(10_000);
        sessions.succeeds("snapshot flight/main");
    }
    assert!(!has("main/snapshot-1") && has("main/snapshot-2") && has("main/snapshot-3"));
    assert_eq!(sessions.channel("flight", "main")["snapshots"], 3, "they were taken");
    assert!(counted(&folder.join("main/snapshot-3")) > 0);
    // One alone is larger.
    sessions.succeeds("snapshot flight/big");
    assert!(size(&folder.join("big")) > 512 << 10);
    sessions.succeeds("snapshot flight/big");
    assert!(!has("big/snapshot-1") && has("big/snapshot-2"));
    sessions.succeeds("session stop flight");
    // The end takes one, too.
    assert_eq!([2, 3, 4].map(|number| has(&format!("main/snapshot-{number}"))), [false, true, true]);
    assert_eq!(fs::read_dir(folder.join("main")).unwrap().count(), 2, "what was removed is gone");
    let last = sessions.succeeds(&format!("info {}", folder.join("main/snapshot-4").display())).text();
    assert!(last.contains(", earlier ones removed: 1 ("), "{last}");
}

/// Without options of its own, by the size of the session.
#[test]
fn snapshots_of_a_session_with_a_size_are_bounded() {
    let sessions = Background::new();
    sessions.succeeds("session create flight --flight-recorder -e pilot:* --total-size 2M");
    let folder = sessions.start("flight");
    let mut pilot = Pilot::start(&sessions);
    wait_until("a snapshot is removed", || {
        pilot.emit(10_000);
        sessions.succeeds("snapshot flight");
        !folder.join("main/snapshot-1").exists()
    });
    sessions.succeeds("session stop flight");
    let largest = fs::read_dir(folder.join("main")).unwrap().map(|entry| size(&entry.unwrap().path())).max();
    assert!(size(&folder) <= largest.unwrap().max(2 << 20) + (1 << 20), "{}", size(&folder));
}

/// Each flight recorder has its part of what those that live share.
#[test]
fn the_room_is_divided_anew_when_channels_come_and_go() {
    const MOST: u64 = 2 << 20;
    let sessions = Background::new();
    let options = "--flight-recorder -e pilot:* --sub-buffers 2 --sub-buffer-size 64K";
    sessions.succeeds(&format!("session create flight {options} --total-size 2M"));
    let folder = sessions.start("flight");
    let mut pilot = Pilot::start(&sessions);
    let main = folder.join("main");
    // With what is being removed, which is hidden.
    let has = || {
        let names = fs::read_dir(&main).unwrap().map(|entry| entry.unwrap().path());
        let names = names.filter(|path| path.file_name().unwrap().as_encoded_bytes()[0] != b'.');
        names.map(|path| size(&path)).sum::<u64>()
    };
    let mut fill = |what: &str, least: u64| {
        wait_until(what, || {
            pilot.emit(10_000);
            sessions.succeeds("snapshot flight/main");
            has() > least
        });
    };
    fill("it has more than a half", MOST / 2);
    assert_eq!(sessions.channel("flight", "main")["removed"], 0);
    sessions.succeeds(&format!("channel add flight other {options}"));
    wait_until("the other one has a half", || has() <= MOST / 2);
    assert!(sessions.channel("flight", "main")["removed"].as_u64() > Some(0));
    sessions.succeeds("channel remove flight other");
    fill("it has more than a half again", MOST / 2);
    assert!(size(&folder) <= MOST + MOST / 4, "{}", size(&folder));
    sessions.succeeds("session stop flight");
}

#[test]
fn channels_share_the_room_of_their_session() {
    const MOST: u64 = 1 << 20;
    let sessions = Background::new();
    // Small buffers, so that no archive has much more than an eighth of the room.
    sessions.succeeds("session create web -e pilot:* --total-size 1M --sub-buffers 2 --sub-buffer-size 8K");
    assert!(sessions.succeeds("session save web").text().contains("\ntotal-size = \"1M\""));
    sessions.succeeds("channel add web other -e pilot:* --sub-buffers 2 --sub-buffer-size 8K");
    sessions.succeeds("channel add web rare -e pilot:* --where number==1");
    let folder = sessions.start("web");
    let mut pilot = Pilot::start(&sessions);
    let has_removed = |channel: &str| {
        let text = fs::read_to_string(folder.join(channel).join("tracewing.json")).unwrap();
        text.contains("is_removed")
    };
    wait_until("both have removed archives", || {
        pilot.emit(1000);
        has_removed("main") && has_removed("other")
    });
    let emitted = pilot.emit(0);
    sessions.succeeds("session stop web");
    let size = size(&folder);
    assert!(size <= MOST + MOST / 2, "{size} bytes");
    let (main, other) = (counted(&folder.join("main")), counted(&folder.join("other")));
    assert!(main < emitted && other < emitted && main > 0 && other > 0, "{main}, {other} of {emitted}");
    assert!(counted(&folder.join("rare")) > 0, "it has no archive that could go");
}
