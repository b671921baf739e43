//! Every cell of the table of what users may ask a service, in `docs/explanation/security.md`.

use super::*;
use tracewing_testing::NOBODY;

const PAGE: &str = include_str!("../../../../../docs/explanation/security.md");
const HEAD: &str = "| action, asked of root's service | root | member of `tracewing` | another user |";

/// What an action of the table is as a command.
fn line(action: &str) -> &'static str {
    match action {
        "list sessions" => "list",
        "status" => "status web",
        "start a session that is started on demand" => "start web",
        "stop it" => "stop web",
        "rotate" => "rotate web",
        "snapshot" => "snapshot web",
        "start or stop a session that is kept started" => "stop kept",
        _ => panic!("no command is known for {action}"),
    }
}

#[test]
fn every_cell_of_the_table_of_requests_is_so() {
    if !is_root() {
        return;
    }
    let asked = Asked::start();
    let users = [(Vec::new(), 1), (as_member(), 2), (as_user(NOBODY), 3), (as_user(STRANGER), 3)];
    let (_, table) = PAGE.split_once(HEAD).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut tried = 0;
    for cells in rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>()) {
        for (user, column) in &users {
            tried += 1;
            let is_started = asked.sessions.succeeds("session list").text().contains("web  started");
            match (cells[0], is_started) {
                ("read what is recorded there", _) => {
                    reads(&asked, user, cells[*column] == "yes");
                    continue;
                }
                ("start a session that is started on demand", true) => drop(asked.succeeds(&[], "stop web")),
                ("stop it" | "rotate" | "snapshot", false) => drop(asked.succeeds(&[], "start web")),
                _ => {}
            }
            let (line, said) = (line(cells[0]), "you are not a member of group 54322");
            match cells[*column] {
                "yes" => drop(asked.succeeds(user, line)),
                "no" if *column == 3 => assert!(asked.fails(user, line).contains(said), "{line}"),
                "no" => assert!(asked.fails(user, line).contains("the service keeps kept started"), "{line}"),
                cell => panic!("{cell}"),
            }
            // So that the limits of a user are not what refuses.
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
    }
    assert_eq!(tried, 8 * users.len());
    assert!(!asked.log().contains(&format!("user {NOBODY} asks")), "{}", asked.log());
}

/// Whether a user reads what the service's sessions record in a folder of the group.
fn reads(asked: &Asked, user: &[String], may: bool) {
    let mut stats = asked.sessions.command(user, harness::TRACEWING);
    let read = stats.args(["stats", "traces/web"]).ran();
    assert_eq!(read.status.success(), may, "{user:?}: {}", read.notes());
    assert!(may || read.notes().contains("Permission denied"), "{}", read.notes());
}
