//! What programs report again at the begin of an archive is no part of the numbers of events of a session.

use crate::background::Background;
use crate::harness::Printed;
use crate::recorded::{list, program};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use tracewing_testing::wait_until;

const MEMBERS: u64 = 8;

/// The program `crew`.
struct Crew {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Crew {
    fn start(sessions: &Background) -> Self {
        let mut command = sessions.command(&[], program("crew"));
        command.arg(MEMBERS.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (orders, answers) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, orders, answers }
    }

    fn order(&mut self, order: &str) -> u64 {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().parse().unwrap()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.process.wait();
    }
}

#[test]
fn all_archives_together_have_as_many_events_as_were_emitted() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e crew:* -e user_thread:existed -o traces");
    let folder = sessions.start("web");
    let mut crew = Crew::start(&sessions);
    wait_until("the program is recorded", || sessions.channel("web", "main")["programs"] == 1);
    let mut emitted = 0;
    for _ in 0..3 {
        wait_until("all report themselves", || crew.order("run") == MEMBERS);
        emitted = crew.order("emit 100");
        sessions.succeeds("rotate web");
    }
    // Its only thread announces itself once.
    let events = emitted + 1;
    assert_eq!(sessions.channel("web", "main")["events"], events);
    let printed = sessions.succeeds("session status web --columns events").text().replace(',', "");
    assert!(printed.split_whitespace().any(|word| word == events.to_string()), "{printed}");
    let notes = sessions.succeeds("session stop web").notes();
    assert!(notes.replace(',', "").contains(&format!("web/main: {events} events 0 lost")), "{notes}");
    let about = fs::read_to_string(folder.join("main/tracewing.json")).unwrap();
    let about: Value = serde_json::from_str(&about).unwrap();
    let sum = |name: &str| {
        let archives = about["archives"].as_array().unwrap();
        archives.iter().map(|archive| archive[name].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(sum("events"), events, "of all archives");
    let listed = list(&folder.join("main")).len() as u64;
    assert_eq!(listed, events + sum("state_events"));
    assert!(sum("state_events") >= 3 * 2 * MEMBERS, "{about}");
}
