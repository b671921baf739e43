//! `session status --watch`: what was recorded since, over and over, until it is ended.

use crate::background::{Background, Pilot};
use crate::harness;
use serde_json::{Deserializer, Value};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use tracewing_testing::{signal, wait_until};

#[test]
fn what_is_watched_grows_with_what_is_recorded() {
    let sessions = Background::new();
    let mut pilot = Pilot::start(&sessions);
    sessions.succeeds("session create web -e pilot:*");
    sessions.start("web");
    wait_until("the program is recorded", || sessions.channel("web", "main")["programs"] == 1);
    let mut command = sessions.command(&[], harness::TRACEWING);
    command.args(["session", "status", "web", "--watch", "--format", "json"]).stdout(Stdio::piped());
    let mut watch = command.spawn().unwrap();
    let mut documents = Deserializer::from_reader(watch.stdout.take().unwrap()).into_iter::<Value>();
    let mut events = || documents.next().unwrap().unwrap()["channels"][0]["events"].as_u64().unwrap();
    let before = events();
    let emitted = pilot.emit(100);
    assert!((0..100).map(|_| events()).any(|now| now >= before + emitted));
    signal(watch.id(), libc::SIGINT);
    watch.wait().unwrap();
    sessions.succeeds("session stop web");
}

#[test]
fn what_ends_while_it_is_watched_is_said_once() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("channel add web more -e pilot:*");
    sessions.start("web");
    let recorder = |channel: &str| sessions.channel("web", channel)["recorder"].as_u64().unwrap() as u32;
    let [main, more] = ["main", "more"].map(recorder);
    let mut command = sessions.command(&[], harness::TRACEWING);
    command.args(["session", "status", "--watch"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut watch = command.spawn().unwrap();
    let mut lines = BufReader::new(watch.stderr.take().unwrap()).lines();
    signal(main, libc::SIGKILL);
    let said = lines.next().unwrap().unwrap();
    assert!(said.contains("web/main has ended: it was killed"), "{said}");
    // Some more tables.
    std::thread::sleep(std::time::Duration::from_secs(3));
    signal(more, libc::SIGKILL);
    let said = lines.next().unwrap().unwrap();
    assert!(said.contains("web/more has ended: it was killed"), "{said}");
    signal(watch.id(), libc::SIGINT);
    watch.wait().unwrap();
    assert_eq!(lines.count(), 0);
}
