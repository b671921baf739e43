//! Programs whose recorder is stopped: how long they wait, and what the recorder reports about it.

mod harness;
mod recorded;

use recorded::{Recording, program, record};

/// What a program may take on a machine that does much else, in milliseconds: ten seconds, as of old, are
/// waited without success.
const LONG: u64 = 10_000;

fn number(recording: &Recording, name: &str) -> u64 {
    let line = recording.stdout.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name}: {}", recording.stdout)).trim().parse().unwrap()
}

fn notes(recording: &Recording) -> Vec<&str> {
    recording.summary["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect()
}

/// Starts a program while the recorder is stopped, and lets the recorder continue afterwards.
fn start(scene: &str, wait: Option<u64>) -> Recording {
    let wait = wait.map_or("unset TRACEWING_WAIT".to_owned(), |wait| format!("export TRACEWING_WAIT={wait}"));
    let script = format!(
        "{wait}; kill -STOP $PPID; begin=$(date +%s%N); $0 {scene} > /dev/null; end=$(date +%s%N); kill -CONT $PPID; \
         echo took $(((end - begin) / 1000000)); sleep 0.5"
    );
    record(&[], &["sh", "-c", &script, program("tasks").to_str().unwrap()])
}

#[test]
fn a_program_starts_without_its_recorder() {
    let recording = start("leaf", None);
    assert!(number(&recording, "took ") < LONG, "{}", recording.stdout);
    let notes = notes(&recording);
    assert!(notes.iter().any(|note| note.contains(": unknown from ")), "{notes:?}");
}

/// Twenty programs, one after the other, and their parent: if each of them waited, that would take more than
/// a minute.
#[test]
fn descendants_do_not_wait_again() {
    let recording = start("spawn", Some(3_000));
    let took = number(&recording, "took ");
    assert!((3_000..60_000).contains(&took), "{took} ms");
}

/// With a recorder that is alive no program loses anything, however short it is.
#[test]
fn a_short_program_loses_nothing() {
    for wait in ["10000", "100000"] {
        let program = program("tasks");
        let recording =
            record(&[], &["env", &format!("TRACEWING_WAIT={wait}"), program.to_str().unwrap(), "leaf"]);
        assert_eq!((recording.events().len(), recording.lost()), (101, 0));
        assert_eq!(notes(&recording), Vec::<&str>::new());
    }
}

#[test]
fn nothing_waits_later() {
    for options in [&["--clock", "mono"][..], &["--buffers", "process"], &[]] {
        // What waited would wait for an hour, and be ended.
        let program = program("sandbox");
        let recording =
            record(options, &["env", "TRACEWING_WAIT=3600000", program.to_str().unwrap(), "stopped"]);
        let events = recording.events();
        let listed = events.iter().filter(|event| event.name != "tracewing:thread").count() as u64;
        assert_eq!(
            listed + recording.lost(),
            number(&recording, "events "),
            "{options:?}: {}",
            recording.summary
        );
        let allowed = ["thread id not known", "forked child without buffers yet"];
        let other = recording.reasons().into_keys().find(|reason| !allowed.contains(reason));
        assert_eq!(other, None, "{options:?}");
    }
}
