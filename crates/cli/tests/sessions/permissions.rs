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
pub const GROUP: u32 = 54_322;
pub const MEMBER: u32 = 54_323;

pub fn as_member() -> Vec<String> {
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
pub fn shared(sessions: &Background, owner: u32) {
    let folder = sessions.folder().join("traces");
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(owner), Some(GROUP)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o2750)).unwrap();
    fs::set_permissions(sessions.folder(), fs::Permissions::from_mode(0o755)).unwrap();
}

fn ran(sessions: &Background, user: &[String], line: &str) -> Output {
    sessions.command(user, harness::TRACEWING).args(line.split(' ')).ran()
}

/// Why an action is refused to a user that may not do it.
fn why_not(action: &str, owner: u32) -> &'static str {
    match action {
        "record others' programs" => "only root may record processes of other users",
        "record kernel events" => "kernel events need root",
        "read a recording" => "Permission denied",
        "change what is recorded" | "rotate" | "clear" | "snapshot" => "no recording is running",
        // The folder is in one of the owner's, which only root may enter.
        _ if owner != 0 => "cannot use the folder for sessions",
        _ => "Permission denied",
    }
}

/// The owner of a session, and the users that try what they can do with it: each with the number of its
/// column.
struct Users {
    owner: Vec<String>,
    owner_id: u32,
    all: Vec<(Vec<String>, usize)>,
}

/// What a user tries: words before a command, the command, and why it fails if it is to fail.
struct Try<'a>(&'a [String], String, Option<&'static str>);

impl Users {
    /// What is tried for a cell of the table.
    fn tries<'a>(&'a self, action: &str, cell: &str, user: &'a [String], line: &str) -> Vec<Try<'a>> {
        let of_owner = |line: &str| format!("{line} --user {}", self.owner_id);
        let is_owner = user == self.owner;
        let is_asked = matches!(action, "change what is recorded" | "rotate" | "clear" | "snapshot");
        let refused = |line: String, why| Try(user, line, Some(why));
        let mut tries = match cell {
            "yes" | "by group" => vec![Try(user, line.to_owned(), None)],
            "no" => vec![refused(line.to_owned(), why_not(action, self.owner_id))],
            "with `--user`" if is_owner => vec![Try(user, line.to_owned(), None)],
            "with `--user`" => vec![refused(line.to_owned(), "no recording is running")],
            "as the owner" if is_owner => Vec::new(),
            "as the owner" => vec![refused(line.to_owned(), "belongs to user")],
            cell => panic!("{cell}"),
        };
        match cell {
            "with `--user`" => tries.push(Try(user, of_owner(line), None)),
            "as the owner" => tries.push(Try(&self.owner, line.to_owned(), None)),
            "no" if is_asked => {
                tries.push(refused(of_owner(line), "only root may ask recordings of other users"))
            }
            _ => {}
        }
        tries
    }
}

/// Tries every row of the table with the session of a user.
fn every_cell_is_so(sessions: &Background, users: &Users) {
    shared(sessions, users.owner_id);
    let work = sessions.folder().join("work");
    fs::create_dir(&work).unwrap();
    fs::set_permissions(&work, fs::Permissions::from_mode(0o1777)).unwrap();
    described(sessions);
    // A program of a user's own is another one's for everyone else.
    let of_root = Pilot::run(sessions, &[]);
    let of_user = Pilot::run(sessions, &as_user(NOBODY));
    sessions.start("web");
    let (mut wrong, mut number) = (Vec::new(), 0);
    for cells in rows() {
        let action = cells[0];
        for (user, column) in &users.all {
            let other = if *user == as_user(NOBODY) { of_root.id() } else { of_user.id() };
            number += 1;
            let (line, runs) = command(action, number, other);
            if !runs && sessions.succeeds("session list").text().contains("started") {
                sessions.succeeds("session stop web");
            }
            for Try(user, line, why) in users.tries(action, cells[*column], user, &line) {
                let output = ran(sessions, user, &line);
                let is_so = match why {
                    None => output.status.success(),
                    Some(why) => !output.status.success() && output.notes().contains(why),
                };
                if !is_so {
                    wrong.push(format!("{user:?}: {line}: {why:?}: {} {}", output.text(), output.notes()));
                }
                match action {
                    "stop" if output.status.success() => drop(sessions.start("web")),
                    "destroy" if output.status.success() => described(sessions),
                    _ => {}
                }
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
        let all = vec![
            (Vec::new(), ROOT),
            (as_user(NOBODY), OWNER),
            (as_user(STRANGER), ANOTHER),
            (as_member(), OF_GROUP),
        ];
        let users = Users { owner: as_user(NOBODY), owner_id: NOBODY, all };
        every_cell_is_so(&Background::of_user(NOBODY).with_sockets_in_tmp(), &users);
    }
}

#[test]
fn every_cell_of_the_table_is_so_for_a_session_of_root() {
    if is_root() && harness::traceable() {
        let all = vec![
            (Vec::new(), ROOT),
            (as_user(NOBODY), ANOTHER),
            (as_user(STRANGER), ANOTHER),
            (as_member(), OF_GROUP),
        ];
        every_cell_is_so(&Background::new(), &Users { owner: Vec::new(), owner_id: 0, all });
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
