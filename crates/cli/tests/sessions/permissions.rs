//! What each user can do with a session: every cell of the table in `docs/explanation/security.md`, tried by
//! real users.

use crate::background::{Background, Pilot, as_user};
use crate::harness::{self, Printed, RunExt};
use crate::recorded::program;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Output;
use tracewing_testing::{NOBODY, STRANGER, am_root, is_root};

const PAGE: &str = include_str!("../../../../docs/explanation/security.md");
const HEAD: &str = "| action | root | owner | another user | member of `tracewing` |";
/// A group in place of `tracewing`, which need not exist here, and a member of it.
const GROUP: u32 = 54_322;
const MEMBER: u32 = 54_323;

fn as_member() -> Vec<String> {
    let (user, group) = (format!("--reuid={MEMBER}"), format!("--regid={MEMBER}"));
    ["setpriv", &user, &group, &format!("--groups={GROUP}")].map(str::to_owned).into()
}

/// The rows of the page's table: an action, and what it says of each kind of user.
fn rows() -> Vec<Vec<&'static str>> {
    let (_, table) = PAGE.split_once(HEAD).unwrap();
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What an action of the table is as a command, and whether the session runs meanwhile.
fn command(action: &str, number: usize, others: u32) -> (String, bool) {
    let pilot = program("pilot");
    let line = match action {
        "record own programs" => format!("record -q -o work/{number} -- {}", pilot.display()),
        "record others' programs" => format!("record -q --pid {others} --for 0.1 -o work/{number}"),
        "record kernel events" => {
            format!("record -q --system-wide -k sched_switch --for 0.1 -o work/{number}")
        }
        "read a recording" => "stats traces".to_owned(),
        "status" => "session status web".to_owned(),
        "change what is recorded" => "enable web/main -e pilot:*".to_owned(),
        "rotate" => "rotate web/main".to_owned(),
        "clear" => "clear web/main".to_owned(),
        "snapshot" => "snapshot web/flight".to_owned(),
        "stop" => "session stop web".to_owned(),
        "add a trigger" => format!("trigger add web t{number} -e a:b --do notify"),
        "destroy" => "session destroy web".to_owned(),
        _ => panic!("no command is known for {action}"),
    };
    (line, !matches!(action, "add a trigger" | "destroy"))
}

fn described(sessions: &Background) {
    sessions.succeeds("session create web -e pilot:* -o traces");
    sessions.succeeds("channel add web flight --flight-recorder");
}

/// A folder whose recordings the group may read.
fn shared(sessions: &Background, owner: u32) {
    let folder = sessions.folder().join("traces");
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(owner), Some(GROUP)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o2750)).unwrap();
    fs::set_permissions(sessions.folder(), fs::Permissions::from_mode(0o755)).unwrap();
}

fn ran(sessions: &Background, user: &[String], line: &str) -> Output {
    sessions.command(user, harness::TRACEWING).args(line.split(' ')).ran()
}

/// Tries every row of the table with the session of a user. `users`: each with the number of its column.
fn every_cell_is_so(sessions: &Background, owner: &[String], owner_id: u32, users: &[(Vec<String>, usize)]) {
    shared(sessions, owner_id);
    let work = sessions.folder().join("work");
    fs::create_dir(&work).unwrap();
    fs::set_permissions(&work, fs::Permissions::from_mode(0o1777)).unwrap();
    described(sessions);
    // A program of a user's own is another one's for everyone else.
    let of_root = Pilot::run(sessions, &[]);
    let of_user = Pilot::run(sessions, &as_user(NOBODY));
    let is_nobody = |user: &[String]| user == as_user(NOBODY);
    sessions.start("web");
    let mut wrong = Vec::new();
    for (row, cells) in rows().iter().enumerate() {
        for (number, (user, column)) in users.iter().enumerate() {
            let other = if is_nobody(user) { of_root.id() } else { of_user.id() };
            let (line, runs) = command(cells[0], row * users.len() + number, other);
            if !runs && sessions.succeeds("session list").text().contains("started") {
                sessions.succeeds("session stop web");
            }
            let (user, can) = match cells[*column] {
                "yes" | "by group" => (&user[..], true),
                "no" => (&user[..], false),
                "as the owner" => (owner, true),
                cell => panic!("{cell}"),
            };
            let output = ran(sessions, user, &line);
            if output.status.success() != can {
                wrong.push(format!("{user:?}: {line}: {} {}", output.text(), output.notes()));
            }
            match cells[0] {
                "stop" if output.status.success() => drop(sessions.start("web")),
                "destroy" if output.status.success() => described(sessions),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows().len(), 12);
}

// Columns of the table.
const ROOT: usize = 1;
const OWNER: usize = 2;
const ANOTHER: usize = 3;
const OF_GROUP: usize = 4;

/// As where users have groups of their own, and share what they make with them.
#[test]
fn a_folder_that_others_can_write_is_named_with_what_to_do() {
    let sessions = Background::new();
    let state = sessions.folder().join("state");
    let writable = |path: &Path, mode| {
        fs::create_dir_all(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for below in ["", "tracewing", "tracewing/sessions"] {
        let at = state.join(below);
        writable(&at, 0o775);
        let said = sessions.fails("session create web");
        let at = at.display().to_string();
        let at = at.trim_end_matches('/');
        assert!(said.contains(&format!("may write to {at}, ")), "{said}");
        assert!(said.contains(&format!("`chmod go-w {at}`")) && said.contains("XDG_STATE_HOME"), "{said}");
        writable(Path::new(at), 0o755);
    }
    sessions.succeeds("session create web");
    if !am_root() {
        return;
    }
    chown(state.join("tracewing"), Some(NOBODY), None).unwrap();
    let said = sessions.fails("session list");
    assert!(
        said.contains(&format!("tracewing belongs to user {NOBODY}, ")) && said.contains("XDG_STATE_HOME"),
        "{said}"
    );
}

#[test]
fn every_cell_of_the_table_is_so() {
    if is_root() && harness::traceable() {
        let users = [
            (Vec::new(), ROOT),
            (as_user(NOBODY), OWNER),
            (as_user(STRANGER), ANOTHER),
            (as_member(), OF_GROUP),
        ];
        every_cell_is_so(&Background::of_user(NOBODY), &as_user(NOBODY), NOBODY, &users);
    }
}

#[test]
fn every_cell_of_the_table_is_so_for_a_session_of_root() {
    if is_root() && harness::traceable() {
        let users = [
            (Vec::new(), ROOT),
            (as_user(NOBODY), ANOTHER),
            (as_user(STRANGER), ANOTHER),
            (as_member(), OF_GROUP),
        ];
        every_cell_is_so(&Background::new(), &[], 0, &users);
    }
}

#[test]
fn the_group_of_its_folder_reads_what_roots_session_has_recorded() {
    if !is_root() {
        return;
    }
    let sessions = Background::new();
    shared(&sessions, 0);
    described(&sessions);
    let folder = sessions.start("web");
    Pilot::run(&sessions, &as_user(NOBODY)).emit(100);
    sessions.succeeds("session stop web");
    let line = format!("stats {}", folder.join("main").display());
    let read = ran(&sessions, &as_member(), &line);
    assert!(read.status.success() && read.text().contains("pilot:count"), "{}", read.notes());
    assert!(!ran(&sessions, &as_user(STRANGER), &line).status.success());
    assert!(!ran(&sessions, &as_member(), "session start web").status.success());
}
