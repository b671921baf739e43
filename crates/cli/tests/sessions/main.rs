//! Sessions: recorders in the background that record all programs of a user, those that run and those that
//! start later; their channels and triggers; other users.
//!
//! Root's sessions are found by all programs of the machine that start, so these tests run one at a time.

mod answers;
mod background;
mod books;
mod buffers;
mod changes;
mod confined;
mod earlier;
mod filtered;
mod fuse;
#[path = "../harness/mod.rs"]
mod harness;
mod kernel;
mod logs;
mod lttng;
mod permissions;
mod reaction;
#[path = "../recorded/mod.rs"]
mod recorded;
mod requests;
mod service;
mod soak;
mod state;
mod triggers;
mod users;
mod watch;
mod week;

use background::{Background, Holder, Pilot, Silent, as_user};
use harness::{Json, Printed, RunExt};
use recorded::list;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tracewing_testing::{NOBODY, STRANGER, am_root, wait_until};

/// How many events of the pilot a trace has.
fn counted(trace: &Path) -> u64 {
    list(trace).iter().filter(|event| event.name == "pilot:count").count() as u64
}

#[test]
fn programs_that_run_and_those_that_start_later_are_recorded() {
    let sessions = Background::new();
    let mut earlier = Pilot::start(&sessions);
    let threads = earlier.threads();
    sessions.succeeds("session create web -e pilot:* -o traces");
    let folder = sessions.start("web");
    wait_until("the running program is recorded", || sessions.channel("web", "main")["programs"] == 1);
    let mut later = Pilot::start(&sessions);
    let emitted: u64 = earlier.emit(1000) + later.emit(500);
    assert!(sessions.succeeds("session list").text().contains("web  started"));
    let stopped = sessions.succeeds("session stop web");
    assert!(
        stopped.notes().contains("web/main:") && stopped.notes().contains(" 0 lost"),
        "{}",
        stopped.notes()
    );
    assert_eq!(counted(&folder.join("main")), emitted);
    wait_until("nothing of tracewing is left in the program", || earlier.threads() == threads);

    // Programs that have taken part in a session take part in the next one.
    let folder = sessions.start("web");
    wait_until("both are recorded again", || sessions.channel("web", "main")["programs"] == 2);
    let again = earlier.emit(10) + later.emit(10) - emitted;
    sessions.succeeds("session destroy web");
    assert_eq!(counted(&folder.join("main")), again);
    assert!(sessions.fails("session start web").contains("there are no sessions"));
}

#[test]
fn the_end_of_a_session_says_how_much_was_lost() {
    let sessions = Background::new();
    sessions.succeeds("session create small -e pilot:* -o traces --sub-buffers 2 --sub-buffer-size 4K");
    sessions.start("small");
    let mut pilot = Pilot::start(&sessions);
    wait_until("the program is recorded", || sessions.channel("small", "main")["programs"] == 1);
    let emitted = pilot.emit(300_000);
    let stopped = sessions.succeeds("session stop small");
    let notes = stopped.notes();
    let figures = notes.lines().find_map(|line| line.strip_prefix("small/main: ")?.split_once(" events, "));
    let (events, rest) = figures.unwrap_or_else(|| panic!("{notes}"));
    let (lost, _) = rest.split_once(" lost").unwrap();
    let [events, lost] = [events, lost].map(|text| text.replace(',', "").parse::<u64>().unwrap());
    assert!(lost > 0 && events + lost >= emitted, "{notes}");
}

#[test]
fn an_event_goes_to_each_channel_that_wants_it() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("channel add web few -e pilot:* --where number<=10 --sub-buffers 2");
    assert!(sessions.fails("channel add web few -e x").contains("has a channel or trigger few already"));
    assert!(sessions.fails("channel add web main -o x").contains("-o is the session's"));
    assert!(sessions.fails("channel add web more -- ./x").contains("a session has no command"));
    let folder = sessions.start("web");
    assert!(sessions.fails("session start web").contains("is started already"));
    let mut pilot = Pilot::start(&sessions);
    let emitted = pilot.emit(1000);
    let rules = sessions.succeeds("rules web/few").text();
    assert!(rules.contains("number<=10") || rules.contains("number <= 10"), "{rules}");
    assert!(sessions.fails("rules web").contains("web/main"), "several channels");
    sessions.succeeds("session stop");
    assert_eq!(counted(&folder.join("main")), emitted);
    assert_eq!(counted(&folder.join("few")), emitted / 100);
    assert_eq!(counted(&folder), emitted + emitted / 100, "the session's folder is read as a whole");
}

#[test]
fn sessions_are_written_and_read() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e a:* -e b:* --where x>1 --sub-buffers 8");
    sessions.succeeds("channel add web kernel --system-wide -k sched_*");
    sessions.succeeds("trigger add web slow -e a:x --do snapshot --do notify");
    let saved = sessions.succeeds("session save web").text();
    sessions.succeeds("session save web -o web.toml");
    assert!(sessions.fails("session load web.toml").contains("there is a session web already"));
    sessions.succeeds("session destroy web");
    sessions.succeeds("session load web.toml");
    assert_eq!(sessions.succeeds("session save").text(), saved);
    for (text, why) in [
        (saved.replace("sub-buffers", "sub-bufers"), "--sub-bufers"),
        (saved.replace("name = \"web\"", "name = \"../x\""), "expected a name"),
        (saved.replace("[trigger.slow]", "[trigger.main]"), "is a channel and a trigger"),
        ("[".to_owned(), "TOML"),
    ] {
        fs::write(sessions.folder().join("bad.toml"), text).unwrap();
        let said = sessions.fails("session load bad.toml");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn programs_join_eight_recordings_and_a_session_with_more_does_not_start() {
    let sessions = Background::new();
    sessions.succeeds("session create web");
    for number in 2..=9 {
        sessions.succeeds(&format!("channel add web c{number}"));
    }
    let said = sessions.fails("session start web");
    assert!(said.contains("8 recordings of all programs are running already"), "{said}");
    assert!(sessions.recorders().is_empty(), "none of the others stays");
    assert!(!sessions.join_file().exists());
    assert_eq!(fs::read_dir(sessions.folder().join("web")).unwrap().count(), 0, "nor a folder");
}

#[test]
fn what_gets_no_events_of_a_ninth_recording_is_said() {
    let sessions = Background::new();
    sessions.succeeds("session create web");
    for number in 2..=7 {
        sessions.succeeds(&format!("channel add web c{number}"));
    }
    sessions.start("web");
    let notes =
        |output: &str| sessions.succeeds(&format!("record --no-kernel -o {output} -- /bin/true")).notes();
    let said = notes("eighth");
    assert!(!said.contains("recordings at most"), "{said}");
    sessions.succeeds("channel add web c8");
    let said = notes("ninth");
    assert!(
        said.contains(
            "programs join 8 recordings at most: the newest 1 of those of all programs get no events"
        ),
        "{said}"
    );
    sessions.succeeds("session stop web");
}

#[test]
fn another_user_that_locks_the_folder_of_the_list_is_not_waited_for() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.start("web");
    let _holder = Holder::lock(&sessions, sessions.join_file().parent().unwrap());
    sessions.succeeds("session stop web");
    assert!(!sessions.join_file().exists(), "its entry is removed");
    sessions.start("web");
}

#[test]
fn a_recorder_that_is_killed_is_in_nobodys_way() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.start("web");
    let recorders = sessions.recorders();
    for pid in &recorders {
        tracewing_testing::signal(*pid, libc::SIGKILL);
    }
    wait_until("it is gone", || recorders.iter().all(|pid| !is_running(*pid)));
    assert!(sessions.join_file().exists(), "it could not remove its entry");
    let mut pilot = Pilot::start(&sessions);
    pilot.emit(1);
    assert_eq!(sessions.channel("web", "main")["state"], "ended");
    assert!(sessions.fails("session stop web").contains("web/main has ended: it was killed"));
    sessions.start("web");
    assert_eq!(fs::read_to_string(sessions.join_file()).unwrap().split(':').count(), 1);
    sessions.succeeds("session stop");
}

#[test]
fn a_channel_that_has_ended_by_itself_is_reported() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("channel add web more -e pilot:*");
    sessions.start("web");
    assert!(!sessions.succeeds("session status web").notes().contains("has ended"));
    let pid = sessions.channel("web", "more")["recorder"].as_u64().unwrap() as u32;
    tracewing_testing::signal(pid, libc::SIGKILL);
    wait_until("it is gone", || !is_running(pid));
    let row = sessions.channel("web", "more");
    // Where process 1 cannot be attached to, the recorder has said so.
    assert_eq!(row["state"], "ended");
    assert!(row["why"].as_str().is_some_and(|why| why.starts_with("it was killed")), "{row}");
    assert_eq!(sessions.channel("web", "main")["state"], "recording");
    let said = sessions.fails("session status web");
    assert!(said.contains("web/more has ended: it was killed") && !said.contains("web/main"), "{said}");
    let said = sessions.fails("session stop web");
    assert!(
        said.contains("web/more has ended: it was killed") && said.contains("web/main: 0 events"),
        "{said}"
    );
    sessions.start("web");
    assert!(!sessions.succeeds("session stop web").notes().contains("has ended"));
    assert_eq!(sessions.channel("web", "more")["state"], "stopped");
}

/// Its folder is deleted, so it cannot write any more.
#[test]
fn what_a_channel_has_lost_that_ended_by_itself_is_printed() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("channel add web small -e pilot:* --sub-buffers 2 --sub-buffer-size 4K");
    for stops in ["session stop web", "session destroy web"] {
        let folder = sessions.start("web");
        let mut pilot = Pilot::start(&sessions);
        wait_until("the program is recorded", || sessions.channel("web", "small")["programs"] == 1);
        let emitted = pilot.emit(300_000);
        let pid = sessions.channel("web", "small")["recorder"].as_u64().unwrap() as u32;
        fs::remove_dir_all(folder.join("small")).unwrap();
        wait_until("it has ended", || !is_running(pid));
        let notes = sessions.fails(stops);
        assert!(notes.contains("web/small has ended: "), "{notes}");
        let figures =
            notes.lines().find_map(|line| line.strip_prefix("web/small: ")?.split_once(" events, "));
        let (events, rest) = figures.unwrap_or_else(|| panic!("{notes}"));
        let (lost, _) = rest.split_once(" lost").unwrap();
        let [events, lost] = [events, lost].map(|text| text.replace(',', "").parse::<u64>().unwrap());
        assert!(lost > 0 && events + lost >= emitted, "{notes}");
    }
}

#[test]
fn a_recorder_that_does_not_answer_is_not_forgotten() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    for channel in ["more -e pilot:*", "flight --flight-recorder"] {
        sessions.succeeds(&format!("channel add web {channel}"));
    }
    sessions.start("web");
    let pid = |channel| sessions.channel("web", channel)["recorder"].as_u64().unwrap() as u32;
    let [main, flight] = ["main", "flight"].map(pid);
    tracewing_testing::signal(main, libc::SIGSTOP);
    let expected = format!("web/main (process {main}) does not answer");
    let fails = |line: &str| {
        let said = sessions.fails(line);
        assert!(said.contains(&expected), "{line}: {said}");
    };
    sessions.succeeds("snapshot web");
    sessions.succeeds("pause web/flight");
    for line in
        ["pause web/main", "pause web", "resume web", "rules web", "disable web -e x", "enable web -e x"]
    {
        fails(line);
    }
    assert_eq!(sessions.channel("web", "more")["state"], "recording");
    sessions.succeeds("resume web/flight");
    fails("rotate web");
    fails("session start web");
    fails("session status web");
    let status = sessions.ran("session status web --format json").json();
    let rows = status["channels"].as_array().unwrap().iter();
    let states: BTreeMap<&str, &str> =
        rows.map(|row| (row["channel"].as_str().unwrap(), row["state"].as_str().unwrap())).collect();
    let states_of = [("flight", "flight recorder"), ("main", "does not answer"), ("more", "recording")];
    assert_eq!(states, states_of.into());
    tracewing_testing::signal(flight, libc::SIGSTOP);
    let said = sessions.fails("snapshot web");
    tracewing_testing::signal(flight, libc::SIGCONT);
    assert!(said.contains(&format!("web/flight (process {flight}) does not answer")), "{said}");
    fails("session stop web");
    assert!(!is_running(flight), "the others have ended");
    fails("session destroy web");
    tracewing_testing::signal(main, libc::SIGCONT);
    sessions.succeeds("session destroy web");
    assert!(!is_running(main));
}

/// The command has too few descriptors to ask all recorders, or any, or to begin at all.
#[test]
fn recorders_that_could_not_be_asked_are_not_taken_for_gone() {
    const UNKNOWN: &str = " be asked: ";
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.start("web");
    let [recorder] = sessions.recorders()[..] else { panic!("one channel") };
    // How often a command could not ask, until it has enough descriptors.
    let tried = |line: &str, succeeds: bool| {
        let mut unknown = 0;
        for limit in 3..100 {
            let line = format!("ulimit -Sn {limit} && exec \"$0\" {line}");
            let output = sessions.command(&[], "bash").args(["-c", &line, harness::TRACEWING]).ran();
            let said = output.text() + &output.notes();
            for wrong in ["stopped", "ended", "is not started"] {
                assert!(!said.contains(wrong), "{line}: {said}");
            }
            unknown += usize::from(said.contains(UNKNOWN));
            if output.status.success() && !said.contains(UNKNOWN) {
                assert!(succeeds, "{line}: {said}");
                return unknown;
            }
            assert!(is_running(recorder), "{line}: {said}");
        }
        assert!(!succeeds, "{line} never had enough descriptors");
        unknown
    };
    assert!(tried("session status web", true) > 0);
    assert!(tried("session list", true) > 0);
    assert!(tried("rotate web", true) > 0);
    assert!(tried("session start web", false) > 0, "it is started already");
    assert!(tried("session destroy web", true) > 0);
    assert!(!is_running(recorder));
}

/// Whether a process is one that its parent could not collect yet.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// Programs of root look for root's recorders only, so these are another user's.
#[test]
fn a_file_that_is_no_list_of_recorders_leads_nowhere() {
    let (sessions, user) = match am_root() {
        true => (Background::of_user(NOBODY), as_user(NOBODY)),
        false => (Background::new(), Vec::new()),
    };
    fs::set_permissions(sessions.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = sessions.folder().join("run/tracewing");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(sessions.folder().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.join("join");
    let silent = Silent::listen(&sessions.folder().join("silent"));
    let write = |mode: u32| {
        fs::write(&file, sessions.folder().join("silent").as_os_str().as_encoded_bytes()).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    let follows = |what: &str| {
        Pilot::waiting(&sessions, &user, "100").emit(1);
        let follows = silent.has_been_connected_to();
        fs::remove_file(&file).unwrap_or_else(|error| panic!("{what}: {error}"));
        follows
    };
    write(0o644);
    assert!(follows("a list"));
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, mode).unwrap();
    assert!(!follows("a pipe"));
    write(0o644);
    fs::rename(&file, folder.join("elsewhere")).unwrap();
    symlink(folder.join("elsewhere"), &file).unwrap();
    assert!(!follows("a link"));
    write(0o666);
    assert!(!follows("a file that others can write to"));
    fs::write(&file, [b':', 0, 0xff, b'/'].repeat(1000)).unwrap();
    assert!(!follows("nonsense"));
    if am_root() {
        write(0o644);
        std::os::unix::fs::chown(&file, Some(STRANGER), None).unwrap();
        assert!(!follows("another user's file"));
    }
}

#[test]
fn mistakes_are_explained() {
    let sessions = Background::new();
    for (line, why) in [
        ("session start", "there are no sessions"),
        ("session create 12", "expected a name"),
        ("session create ../x", "expected a name"),
        ("session create web --session x", "--session is not an option of channels"),
        ("session create web --do snapshot", "options of triggers"),
        ("session create web --sub-buffers x", "invalid value"),
        ("session load nothing", "cannot use the session in nothing"),
        ("trigger add web slow", "there are no sessions"),
    ] {
        let said = sessions.fails(line);
        assert!(said.contains(why), "{line}: {said}");
    }
    sessions.succeeds("session create web");
    assert!(sessions.fails("trigger add web slow -e a:b").contains("a trigger does something"));
    assert!(sessions.fails("session create web").contains("there is a session web already"));
    assert!(sessions.fails("channel remove web main").contains("last channel"));
    assert!(sessions.fails("session stop").contains("is not started"));
    sessions.succeeds("session create other");
    assert!(sessions.fails("session save").contains("name one: other, web"));
    let rows = sessions.succeeds("session status --format json").json();
    let states: BTreeMap<_, _> = rows["channels"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| Some((row["session"].as_str()?.to_owned(), row["state"].clone())))
        .collect();
    assert_eq!(
        states,
        [("other", "stopped"), ("web", "stopped")].map(|(a, b)| (a.to_owned(), b.into())).into()
    );
}
