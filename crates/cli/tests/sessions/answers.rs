//! What commands find of sessions and recorders: those that do not answer, or whose files cannot be read,
//! hide no others; and recordings that are of no session are found as well.

use crate::background::Background;
use crate::harness::{self, Json, Printed};
use crate::is_running;
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};
use tracewing_testing::{signal, wait_until};

#[test]
fn recorders_that_do_not_answer_hide_no_others() {
    let sessions = Background::new();
    sessions.succeeds("session create other -e pilot:*");
    let more = ["c2", "c3", "c4", "c5", "c6"];
    more.iter().for_each(|name| drop(sessions.succeeds(&format!("channel add other {name} -e pilot:*"))));
    sessions.start("other");
    let stopped = sessions.recorders();
    assert_eq!(stopped.len(), 6);
    sessions.succeeds("session create web -e pilot:*");
    sessions.start("web");
    let recorder = sessions.channel("web", "main")["recorder"].as_u64().unwrap() as u32;
    stopped.iter().for_each(|pid| signal(*pid, libc::SIGSTOP));
    let begin = Instant::now();
    let rows = sessions.ran("session status --format json").json();
    let took = begin.elapsed();
    let rows = rows["channels"].as_array().unwrap();
    let is = |row: &Value| match row["session"] == "web" {
        true => row["state"] == "recording" && row["recorder"] == recorder,
        false => {
            row["state"] == "does not answer" && stopped.contains(&(row["recorder"].as_u64().unwrap() as u32))
        }
    };
    assert!(rows.len() == 7 && rows.iter().all(is), "{rows:?}");
    // Two looks, of two seconds each, not of two for each recorder.
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert!(sessions.fails("session start web").contains("web is started already"));
    sessions.succeeds("session stop web");
    assert!(!is_running(recorder));
    stopped.iter().for_each(|pid| signal(*pid, libc::SIGCONT));
    sessions.succeeds("session stop other");
}

#[test]
fn a_session_whose_file_cannot_be_read_hides_no_others_and_is_destroyed_by_its_name() {
    let sessions = Background::new();
    for name in ["broken", "good"] {
        sessions.succeeds(&format!("session create {name} -e pilot:*"));
        sessions.start(name);
    }
    let recorders = sessions.recorders();
    let file = sessions.folder().join("state/tracewing/sessions/broken.toml");
    fs::write(&file, "[").unwrap();
    for line in ["session list", "session status --columns session,channel"] {
        let output = sessions.ran(line);
        let said = output.notes();
        assert!(output.text().contains("good") && !output.status.success(), "{line}: {said}");
        assert!(said.contains("broken.toml") && said.contains("session destroy broken"), "{line}: {said}");
    }
    assert!(sessions.fails("session start broken").contains("broken.toml"));
    let said = sessions.succeeds("session destroy broken").notes();
    assert!(said.contains("broken.toml") && said.contains("broken/main: 0 events"), "{said}");
    assert_eq!(recorders.iter().filter(|pid| is_running(**pid)).count(), 1);
    assert!(!file.exists() && !sessions.succeeds("session list").text().contains("broken"));
    assert_eq!(sessions.channel("good", "main")["state"], "recording");
}

#[test]
fn recordings_of_commands_are_shown_with_the_sessions() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    let mut record = sessions.command(&[], harness::TRACEWING);
    record.args(["record", "--no-kernel", "-o", "t", "--", "sleep", "1000"]);
    tracewing_testing::with_default_signals(&mut record);
    let mut record = record.spawn().unwrap();
    let rows = |line: &str| {
        let rows = sessions.ran(&format!("session status {line}--format json")).json();
        let rows = rows["channels"].as_array().unwrap().clone();
        rows.into_iter().filter(|row| row["recorder"] == record.id()).collect::<Vec<_>>()
    };
    wait_until("it is shown", || !rows("").is_empty());
    let row = rows("").remove(0);
    assert_eq!((&row["session"], &row["channel"]), (&Value::Null, &"sleep 1000".into()), "{row}");
    assert_eq!((&row["state"], &row["lost"]), (&"recording".into(), &0.into()), "{row}");
    assert!(row["per_second"].is_number() && row["fullest"].is_number(), "{row}");
    assert!(rows("web ").is_empty(), "only where all are asked for");
    assert!(sessions.succeeds("session status --columns channel,state").text().contains("sleep 1000"));
    signal(record.id(), libc::SIGINT);
    record.wait().unwrap();
}
