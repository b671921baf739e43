//! What a service is asked at its socket: by members of its group, and by others.
//!
//! | module | what |
//! |---|---|
//! | `cells` | every cell of the table of its rights |
//! | `hostile` | clients that send something else, too much, or nothing |
//! | `place` | the socket itself: its own one, that of systemd, and what lies in its place |

mod cells;
mod hostile;
mod place;

use crate::background::{Background, Holder, Pilot, as_user};
use crate::harness::{self, Printed, RunExt};
use crate::permissions::{GROUP, MEMBER, as_member};
use crate::service::{Service, log};
use crate::{counted, is_running};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tracewing_testing::{STRANGER, am_root, is_root, signal, wait_until};

/// A service with a socket. It keeps the session `kept` started, and starts `web` on demand.
struct Asked {
    // Ended before the sessions are.
    service: Service,
    sessions: Background,
}

impl Asked {
    fn start() -> Self {
        let sessions = described();
        let service = Service::run(&sessions, command(&sessions));
        wait_until("it has started its session", || {
            fs::read_to_string(log(&sessions)).unwrap().contains("2 sessions of kept")
        });
        // As systemd makes it for the group.
        if am_root() {
            chown(socket(&sessions), None, Some(GROUP)).unwrap();
            fs::set_permissions(socket(&sessions), fs::Permissions::from_mode(0o660)).unwrap();
        }
        Self { service, sessions }
    }

    fn log(&self) -> String {
        fs::read_to_string(log(&self.sessions)).unwrap()
    }

    fn succeeds(&self, user: &[String], line: &str) -> Output {
        let output = ask(&self.sessions, user, line);
        assert!(output.status.success(), "{line}: {} {}", output.text(), output.notes());
        output
    }

    fn fails(&self, user: &[String], line: &str) -> String {
        let output = ask(&self.sessions, user, line);
        assert!(!output.status.success(), "{line}: {}", output.text());
        output.notes()
    }
}

/// The files of the two sessions; what is recorded is for the group.
fn described() -> Background {
    let sessions = Background::new();
    fs::set_permissions(sessions.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = |name: &str, mode| {
        let path = sessions.folder().join(name);
        fs::create_dir(&path).unwrap();
        if am_root() {
            chown(&path, None, Some(GROUP)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    folder("kept", 0o755);
    folder("asked", 0o755);
    folder("traces", 0o2750);
    for (name, on_demand) in [("web", " --on-demand"), ("kept", "")] {
        sessions.succeeds(&format!("session create {name} -e pilot:* -o traces/{name}"));
        sessions.succeeds(&format!("channel add {name} flight --flight-recorder -e pilot:*"));
        sessions.succeeds(&format!("session save {name}{on_demand} -o kept/{name}.toml"));
        sessions.succeeds(&format!("session destroy {name}"));
    }
    sessions
}

fn socket(sessions: &Background) -> PathBuf {
    sessions.folder().join("asked/control")
}

fn command(sessions: &Background) -> Command {
    let mut command = sessions.command(&[], harness::TRACEWING);
    command.args(["service", "--sessions", "kept", "--socket", "asked/control"]);
    command
}

/// Runs `tracewing service LINE` as a user.
fn ask(sessions: &Background, user: &[String], line: &str) -> Output {
    let mut command = sessions.command(user, harness::TRACEWING);
    command.arg("service").args(line.split(' ')).arg("--socket").arg(socket(sessions)).ran()
}

#[test]
fn a_session_is_started_and_stopped_on_demand() {
    let asked = Asked::start();
    let user = if am_root() { as_member() } else { Vec::new() };
    let succeeds = |line: &str| asked.succeeds(&user, line).text();
    wait_until("the other one is started", || succeeds("list").contains("kept  started  always"));
    assert!(succeeds("list").contains("web  stopped  on demand"));
    let folder = PathBuf::from(succeeds("start web").trim_end());
    let mut pilot = Pilot::start(&asked.sessions);
    let emitted = pilot.emit(100);
    let status = succeeds("status web");
    assert!(status.contains("recording") && status.contains("flight recorder"), "{status}");
    assert!(!status.contains("kept"), "{status}");
    let of_all: serde_json::Value = serde_json::from_str(&succeeds("status --format json")).unwrap();
    assert_eq!(of_all["channels"].as_array().unwrap().len(), 4);
    assert!(Path::new(succeeds("snapshot web").trim_end()).join("user").is_dir());
    let archive = PathBuf::from(succeeds("rotate web").trim_end());
    assert_eq!(counted(&archive), emitted);
    assert!(asked.fails(&user, "start web").contains("web is started already"));
    let said = asked.succeeds(&user, "stop web").notes();
    assert!(said.contains("web/main: ") && said.contains(" events, 0 lost"), "{said}");
    assert!(asked.fails(&user, "stop web").contains("`tracewing service start web` starts it"));
    assert_eq!(counted(&folder.join("main")), emitted);
    let uid = if am_root() { MEMBER } else { rustix::process::getuid().as_raw() };
    for what in ["list", "start web", "status web", "status", "snapshot web", "rotate web", "stop web"] {
        let line = format!("user {uid} asks for {what}\n");
        assert!(asked.log().contains(&line), "{what}: {}", asked.log());
    }
}

#[test]
fn sessions_that_are_kept_started_and_others_are_refused() {
    let asked = Asked::start();
    for line in ["start kept", "stop kept"] {
        let said = asked.fails(&[], line);
        assert!(said.contains("only sessions whose files say `start = \"on-demand\"`"), "{said}");
    }
    let said = asked.fails(&[], "start other");
    assert!(said.contains("the service has no session other; it has: kept, web"), "{said}");
    // One that a command has made is left alone.
    asked.sessions.succeeds("session create web -e other:* -o traces/other");
    let said = asked.fails(&[], "start web");
    assert!(said.contains("the service has no session web"), "{said}");
    assert!(asked.sessions.succeeds("session save web").text().contains("other:*"));
}

/// By its own name, or by that of its command, a command of its user finds it.
#[test]
fn a_recording_that_is_called_like_a_session_is_not_asked() {
    let asked = Asked::start();
    symlink("/bin/sleep", asked.sessions.folder().join("web")).unwrap();
    let mut record = asked.sessions.command(&[], harness::TRACEWING);
    record.args("record -q --no-kernel --flight-recorder -o own -- ./web 600".split(' '));
    let mut record = record.spawn().unwrap();
    wait_until("it can be asked", || asked.sessions.ran("snapshot web").status.success());
    let user = if am_root() { as_member() } else { Vec::new() };
    for line in ["snapshot web", "rotate web"] {
        let said = asked.fails(&user, line);
        assert!(said.contains("web is not started"), "{line}: {said}");
    }
    asked.succeeds(&user, "start web");
    assert!(asked.succeeds(&user, "snapshot web").text().contains("traces/web"));
    signal(record.id(), libc::SIGTERM);
    record.wait().unwrap();
}

#[test]
fn what_is_started_on_demand_is_not_started_again_and_ends_with_the_service() {
    let mut asked = Asked::start();
    asked.succeeds(&[], "start web");
    // A command of the user that the service runs as stops it for good.
    let said = asked.sessions.succeeds("session stop web").notes();
    assert!(!said.contains("a service starts"), "{said}");
    asked.succeeds(&[], "start web");
    let pid = asked.sessions.channel("web", "main")["recorder"].as_u64().unwrap() as u32;
    signal(pid, libc::SIGKILL);
    wait_until("it is gone", || !is_running(pid));
    let said = asked.fails(&[], "status web");
    assert!(said.contains("web/main has ended: it was killed"), "{said}");
    // As often as the service looks at what is missing.
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(asked.sessions.channel("web", "main")["state"], "ended");
    asked.succeeds(&[], "start web");
    assert_eq!(asked.sessions.channel("web", "main")["state"], "recording");
    asked.service.end(libc::SIGTERM);
    assert!(asked.sessions.recorders().is_empty() && !socket(&asked.sessions).exists());
    let said = ask(&asked.sessions, &[], "list").notes();
    assert!(said.contains("no service listens at"), "{said}");
}

/// What carries out the request of a client, if it does.
fn answering(service: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{service}/task/{service}/children")).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{service}/task")).into_iter().flatten().flatten();
    let all = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let all: Vec<String> = all.chain([children]).collect();
    let mut pids = all.iter().flat_map(|pids| pids.split_whitespace()).filter_map(|pid| pid.parse().ok());
    pids.find(|pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(6).any(|at| at == b"answer"))
    })
}

#[test]
fn a_request_is_completed_if_the_service_is_killed() {
    let mut asked = Asked::start();
    let mut client = asked.sessions.command(&[], harness::TRACEWING);
    client.args(["service", "start", "web", "--socket", "asked/control"]);
    let client =
        client.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_until("it is carried out", || answering(asked.service.pid()).is_some());
    asked.service.end(libc::SIGKILL);
    let said = String::from_utf8_lossy(&client.wait_with_output().unwrap().stderr).into_owned();
    assert!(said.contains("closed the connection without an answer") || said.is_empty(), "{said}");
    let of_web = |channel| asked.sessions.channel("web", channel)["state"].clone();
    wait_until("all of it is started", || {
        asked.sessions.succeeds("session list").text().contains("web  started")
            && of_web("main") == "recording"
            && of_web("flight") == "flight recorder"
    });
    let recorders = asked.sessions.recorders();
    // The socket of the killed one is replaced.
    asked.service = Service::run(&asked.sessions, command(&asked.sessions));
    wait_until("the next one answers", || ask(&asked.sessions, &[], "list").status.success());
    assert!(asked.fails(&[], "start web").contains("is started already"));
    assert!(asked.sessions.recorders().iter().all(|pid| recorders.contains(pid)));
    asked.succeeds(&[], "stop web");
}

#[test]
fn when_a_session_is_started_is_kept_with_it() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e a:*");
    assert!(!sessions.succeeds("session save web").text().contains("start ="));
    sessions.succeeds("session save web --on-demand -o web.toml");
    sessions.succeeds("session destroy web");
    sessions.succeeds("session load web.toml");
    let saved = sessions.succeeds("session save web").text();
    assert!(saved.contains("start = \"on-demand\"\n"), "{saved}");
    assert_eq!(saved, fs::read_to_string(sessions.folder().join("web.toml")).unwrap());
}
