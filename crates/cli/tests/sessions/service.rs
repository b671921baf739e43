//! The service: keeps sessions started, says so to systemd, and can be killed.

use crate::background::{Background, Pilot};
use crate::harness::{self, Printed};
use crate::is_running;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use tracewing_testing::{Cause, signal, skip, wait_until};

/// What a service has said.
pub fn log(sessions: &Background) -> PathBuf {
    sessions.folder().join("service.log")
}

/// A running `tracewing service`.
pub struct Service(Child);

impl Service {
    /// One that keeps the sessions of the folder `kept`.
    pub fn start(sessions: &Background, notified: &Path) -> Self {
        Self::of_program(sessions, notified, Path::new(harness::TRACEWING))
    }

    fn of_program(sessions: &Background, notified: &Path, program: &Path) -> Self {
        let mut command = sessions.command(&[], program);
        command.args(["service", "--sessions", "kept"]).env("NOTIFY_SOCKET", notified);
        Self::run(sessions, command)
    }

    /// What is a service, or becomes one.
    pub fn run(sessions: &Background, mut command: Command) -> Self {
        tracewing_testing::with_default_signals(&mut command);
        Self(command.stderr(fs::File::create(log(sessions)).unwrap()).spawn().unwrap())
    }

    /// Whether it has ended by itself, and well.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some_and(|status| status.success())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn end(&mut self, by: libc::c_int) {
        signal(self.0.id(), by);
        self.0.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // With its sessions, if it can.
        if let Ok(None) = self.0.try_wait() {
            signal(self.0.id(), libc::SIGTERM);
        }
        for _ in 0..300 {
            if let Ok(Some(_)) = self.0.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_service_starts_recorders_after_its_program_was_removed_or_replaced() {
    let sessions = Background::new();
    fs::create_dir(sessions.folder().join("kept")).unwrap();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("session save web -o kept/web.toml");
    let program = sessions.folder().join("tracewing");
    fs::copy(harness::TRACEWING, &program).unwrap();
    let mut service = Service::of_program(&sessions, Path::new("/nonexistent"), &program);
    let mut recorder = 0;
    let mut other_starts = || {
        wait_until("another recorder runs", || {
            let [now] = sessions.recorders()[..] else { return false };
            std::mem::replace(&mut recorder, now) != now
        });
        recorder
    };
    let first = other_starts();
    fs::remove_file(&program).unwrap();
    signal(first, libc::SIGKILL);
    let second = other_starts();
    fs::copy(harness::TRACEWING, &program).unwrap();
    signal(second, libc::SIGKILL);
    let third = other_starts();
    assert_eq!(fs::read_link(format!("/proc/{third}/exe")).unwrap(), program);
    service.end(libc::SIGTERM);
    assert!(sessions.recorders().is_empty());
}

#[test]
fn a_service_notices_files_that_come_and_go() {
    let sessions = Background::new();
    let mut service = Service::start(&sessions, Path::new("/nonexistent"));
    let records = |name: &str| {
        wait_until("it is started", || {
            let list = sessions.succeeds("session list").text();
            list.lines().any(|line| line.starts_with(&format!("{name}  started")))
        });
    };
    // Its folder is not there yet.
    for name in ["one", "two"] {
        sessions.succeeds(&format!("session create {name} -e pilot:*"));
        sessions.succeeds(&format!("session save {name} -o {name}.toml"));
        sessions.succeeds(&format!("session destroy {name}"));
    }
    let (file, kept) = (|name: &str| sessions.folder().join(name), sessions.folder().join("kept"));
    fs::create_dir(&kept).unwrap();
    fs::rename(file("one.toml"), kept.join("one.toml")).unwrap();
    records("one");
    assert!(sessions.fails("service --sessions kept").contains("another service keeps"));
    let said = sessions.succeeds("session stop one").notes();
    assert!(said.contains("a service starts one again"), "{said}");
    records("one");
    // What is no longer there continues until it is stopped, and is not started again.
    fs::rename(kept.join("one.toml"), file("one.toml")).unwrap();
    fs::rename(file("two.toml"), kept.join("two.toml")).unwrap();
    records("two");
    records("one");
    assert!(!sessions.succeeds("session stop one").notes().contains("a service"));
    let starts = fs::read_dir(sessions.folder().join("two")).unwrap().count();
    sessions.succeeds("session stop two");
    wait_until("the other one is started again", || {
        fs::read_dir(sessions.folder().join("two")).unwrap().count() > starts
    });
    records("two");
    assert_eq!(sessions.recorders().len(), 1);
    service.end(libc::SIGTERM);
    assert!(sessions.recorders().is_empty());
}

#[test]
fn a_file_that_changes_applies_at_the_next_start_also_after_a_mistake() {
    let sessions = Background::new();
    let kept = sessions.folder().join("kept");
    fs::create_dir(&kept).unwrap();
    for name in ["broken", "changed", "later"] {
        sessions.succeeds(&format!("session create {name} -e pilot:*"));
        if name == "changed" {
            sessions.succeeds("channel add changed more -e pilot:*");
        }
        sessions.succeeds(&format!("session save {name} -o {name}.toml"));
        sessions.succeeds(&format!("session destroy {name}"));
    }
    let add = |name: &str| {
        let file = format!("{name}.toml");
        fs::rename(sessions.folder().join(&file), kept.join(file)).unwrap();
    };
    let records = |name: &str| {
        wait_until("it is started", || {
            let list = sessions.succeeds("session list").text();
            list.lines().any(|line| line.starts_with(&format!("{name}  started")))
        });
    };
    ["broken", "changed"].into_iter().for_each(add);
    let mut service = Service::start(&sessions, Path::new("/nonexistent"));
    ["broken", "changed"].into_iter().for_each(records);

    let text = |name: &str| fs::read_to_string(kept.join(format!("{name}.toml"))).unwrap();
    let [broken, changed] = ["broken", "changed"].map(text);
    let with_more = |text: String| text.replace("event =", "sub-buffers = \"8\"\nevent =");
    // As by an editor that is not done.
    fs::write(kept.join("broken.toml"), "[").unwrap();
    wait_until("the mistake is noticed", || {
        fs::read_to_string(log(&sessions)).unwrap().contains("broken.toml")
    });
    fs::write(kept.join("broken.toml"), with_more(broken)).unwrap();
    fs::write(kept.join("changed.toml"), with_more(changed)).unwrap();
    // The changes are noticed by then, too.
    add("later");
    records("later");
    // What is missing of a session that runs is started as it was.
    let recorder = || sessions.channel("changed", "more")["recorder"].as_u64().map(|pid| pid as u32);
    let before = recorder().unwrap();
    signal(before, libc::SIGKILL);
    wait_until("it is started again", || recorder().is_some_and(|now| now != before));
    for name in ["broken", "changed"] {
        assert!(!sessions.succeeds(&format!("session save {name}")).text().contains("sub-buffers"));
        let said = sessions.succeeds(&format!("session stop {name}")).notes();
        assert!(said.contains(&format!("a service starts {name} again")), "{said}");
        records(name);
        let saved = sessions.succeeds(&format!("session save {name}")).text();
        assert!(saved.contains("sub-buffers = \"8\""), "{saved}");
    }
    service.end(libc::SIGTERM);
    assert!(sessions.recorders().is_empty());
}

#[test]
fn a_service_leaves_other_sessions_alone_and_is_the_only_one_of_its_folder() {
    let sessions = Background::new();
    fs::create_dir(sessions.folder().join("kept")).unwrap();
    for name in ["web", "mine"] {
        sessions.succeeds(&format!("session create {name} -e pilot:*"));
        sessions.succeeds(&format!("session save {name} -o kept/{name}.toml"));
    }
    sessions.succeeds("channel add mine more -e pilot:*");
    sessions.start("mine");
    let of_user = sessions.succeeds("session save mine").text();
    let mut service = Service::start(&sessions, Path::new("/nonexistent"));
    wait_until("its session is started", || sessions.channel("web", "main")["state"] == "recording");
    let said = sessions.fails("service --sessions kept");
    assert!(said.contains("another service keeps the sessions of kept started"), "{said}");
    assert!(sessions.succeeds("session stop web").notes().contains("a service starts web again"));
    wait_until("it is started again", || sessions.channel("web", "main")["state"] == "recording");
    service.end(libc::SIGTERM);
    assert_eq!(sessions.channel("web", "main")["state"], "stopped");
    assert_eq!(sessions.channel("mine", "more")["state"], "recording");
    assert_eq!(sessions.succeeds("session save mine").text(), of_user);
    let said = sessions.succeeds("session stop mine").notes();
    assert!(!said.contains("a service"), "{said}");
}

#[test]
fn a_service_keeps_sessions_started_and_they_outlive_it() {
    let sessions = Background::new();
    let kept = sessions.folder().join("kept");
    fs::create_dir(&kept).unwrap();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("trigger add web hit -e pilot:count --where number==7 --do notify");
    sessions.succeeds("session save web -o kept/web.toml");
    sessions.succeeds("session destroy web");
    fs::write(kept.join("bad.toml"), "[").unwrap();
    let text = fs::read_to_string(kept.join("web.toml")).unwrap().replace("\"web\"", "\"wrong\"");
    fs::write(kept.join("wrong.toml"), text.replace("event =", "sub-buffers = \"x\"\nevent =")).unwrap();
    let open = kept.join("open.toml");
    fs::write(&open, fs::read_to_string(kept.join("web.toml")).unwrap().replace("\"web\"", "\"open\""))
        .unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    let notified = sessions.folder().join("notify");
    let socket = UnixDatagram::bind(&notified).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let next = || {
        let mut message = [0; 1000];
        let len = socket.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..len]).into_owned()
    };

    let mut service = Service::start(&sessions, &notified);
    assert!(next().contains("READY=1\nSTATUS=1 session of kept"));
    let first = sessions.recorders();
    assert_eq!(first.len(), 2);
    let mut pilot = Pilot::start(&sessions);
    pilot.emit(10);

    // A recorder that is killed is started again; the other one continues.
    signal(first[0], libc::SIGKILL);
    let mut second = Vec::new();
    wait_until("the recorder is replaced", || {
        second = sessions.recorders();
        second.len() == 2 && !second.contains(&first[0])
    });
    assert!(second.contains(&first[1]));

    // What comes and goes meanwhile stays as it is.
    sessions.succeeds("channel add web late -e pilot:*");
    sessions.succeeds("trigger remove web hit");
    let changed = sessions.recorders();
    signal(changed[0], libc::SIGKILL);
    wait_until("the recorder is replaced", || {
        second = sessions.recorders();
        second.len() == 2 && !second.contains(&changed[0])
    });
    let channels = sessions.succeeds("channel list web").text();
    assert!(channels.contains("late  ") && channels.contains("main  "), "{channels}");

    service.end(libc::SIGKILL);
    assert!(second.iter().all(|pid| is_running(*pid)), "sessions continue");
    let mut service = Service::start(&sessions, &notified);
    assert!(next().contains("READY=1"));
    assert_eq!(sessions.recorders(), second, "the next service finds them");
    // The remedy that the service has named.
    assert!(fs::read_to_string(log(&sessions)).unwrap().contains("other users can write it (chmod go-w)"));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    wait_until("the file is trusted", || sessions.recorders().len() == second.len() + 2);
    service.end(libc::SIGTERM);
    assert!(next().contains("STOPPING=1"));
    assert!(sessions.recorders().is_empty());
    assert!(!second.iter().any(|pid| is_running(*pid)));
}

#[test]
fn units_of_systemd_are_valid() {
    if !tracewing_testing::installed(&["systemd-analyze"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    // Each names the other one.
    for unit in ["tracewing.service", "tracewing.socket"] {
        fs::copy(root.join(unit), folder.path().join(unit)).unwrap();
    }
    for unit in ["tracewing.service", "tracewing.socket", "user/tracewing.service"] {
        let text = fs::read_to_string(root.join(unit)).unwrap();
        let path = folder.path().join(Path::new(unit).file_name().unwrap());
        // The program is not installed here, nor its manual page.
        let text = text.replace("/usr/bin/tracewing", harness::TRACEWING);
        let text =
            text.replace("man:tracewing(1)", "https://x").replace("man:tracewing-service(1)", "https://x");
        fs::write(&path, text).unwrap();
        let verified = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        if said.contains("Failed to initialize manager") {
            return skip(Cause::Program("systemd-analyze"), said);
        }
        assert!(verified.status.success() && said.is_empty(), "{unit}: {said}");
        if unit.ends_with(".service") {
            let threshold = if unit.starts_with("user") { "66" } else { "34" };
            let mut security = Command::new("systemd-analyze");
            security.args(["security", "--offline=true", "--threshold", threshold]).arg(&path);
            let security = security.output().unwrap();
            assert!(security.status.success(), "{unit}: {}", String::from_utf8_lossy(&security.stdout));
        }
    }
}
