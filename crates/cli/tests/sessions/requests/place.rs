//! The socket of a service: what lies in its place, its mode and group, the one that systemd passes, and the
//! end of a service that a request has started.

use super::*;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use tracewing_testing::{Cause, installed, skip};

/// What a service says that cannot listen.
fn refused(sessions: &Background) -> String {
    let output = command(sessions).ran();
    assert!(!output.status.success(), "{}", output.text());
    output.notes()
}

#[test]
fn what_lies_in_its_place_is_neither_followed_nor_removed() {
    let sessions = described();
    let (path, victim) = (socket(&sessions), sessions.folder().join("victim"));
    fs::write(&victim, "content").unwrap();
    symlink(&victim, &path).unwrap();
    let said = refused(&sessions);
    assert!(said.contains("asked/control") && said.contains("is not a socket of this user"), "{said}");
    let is_link = || path.symlink_metadata().unwrap().is_symlink();
    assert!(is_link() && fs::read_to_string(&victim).unwrap() == "content");
    // Nor a link to a socket at which no process listens, nor one that leads nowhere.
    fs::remove_file(&victim).unwrap();
    assert!(refused(&sessions).contains("is not a socket of this user") && is_link() && !victim.exists());
    drop(UnixListener::bind(&victim).unwrap());
    assert!(refused(&sessions).contains("is not a socket of this user") && is_link() && victim.exists());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "content").unwrap();
    assert!(refused(&sessions).contains("is not a socket of this user"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "content");
    fs::remove_file(&path).unwrap();
    if am_root() {
        drop(UnixListener::bind(&path).unwrap());
        chown(&path, Some(STRANGER), None).unwrap();
        assert!(refused(&sessions).contains("is not a socket of this user") && path.exists());
        fs::remove_file(&path).unwrap();
    }
    fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refused(&sessions).contains("others can write to it"));
}

#[test]
fn a_socket_is_replaced_only_if_no_process_listens_at_it() {
    let sessions = described();
    let path = socket(&sessions);
    let listener = UnixListener::bind(&path).unwrap();
    let said = refused(&sessions);
    assert!(said.contains("another process listens there"), "{said}");
    drop(listener);
    let mut service = Service::run(&sessions, command(&sessions));
    wait_until("it answers", || ask(&sessions, &[], "list").status.success());
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600, "there is no group tracewing, or no root");
    // At its end it removes nothing but its own.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "content").unwrap();
    service.end(libc::SIGTERM);
    assert_eq!(fs::read_to_string(&path).unwrap(), "content");
}

#[test]
fn another_user_that_locks_its_folder_is_not_waited_for() {
    let sessions = described();
    let _holder = Holder::lock(&sessions, socket(&sessions).parent().unwrap());
    let _service = Service::run(&sessions, command(&sessions));
    wait_until("it answers", || ask(&sessions, &[], "list").status.success());
}

#[test]
fn a_service_of_another_user_is_not_asked() {
    if !is_root() {
        return;
    }
    let sessions = Background::of_user(STRANGER);
    for name in ["kept", "asked"] {
        let path = sessions.folder().join(name);
        fs::create_dir(&path).unwrap();
        chown(&path, Some(STRANGER), None).unwrap();
    }
    let user = as_user(STRANGER);
    let mut command = sessions.command(&user, harness::TRACEWING);
    command.args(["service", "--sessions", "kept", "--socket", "asked/control"]);
    let _service = Service::run(&sessions, command);
    wait_until("its user asks it", || ask(&sessions, &user, "list").status.success());
    let asked = || fs::read_to_string(log(&sessions)).unwrap().matches("asks for").count();
    let before = asked();
    let refused = ask(&sessions, &[], "start web");
    let said = refused.notes();
    assert!(!refused.status.success() && said.contains("another user listens at"), "{said}");
    assert!(ask(&sessions, &user, "list").status.success());
    assert_eq!(asked(), before + 1, "the user's own request alone");
}

#[test]
fn roots_socket_is_for_the_group_where_there_is_one() {
    if !is_root() {
        return;
    }
    let sessions = described();
    let groups = fs::read_to_string("/etc/group").unwrap();
    let others: String = groups
        .lines()
        .filter(|line| !line.starts_with("tracewing:"))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(sessions.folder().join("group"), format!("{others}tracewing:x:{GROUP}:\n")).unwrap();
    let within = ["unshare", "--mount", "sh", "-c", "mount --bind group /etc/group && exec \"$@\"", "sh"];
    let within = within.map(str::to_owned);
    let mut namespace = sessions.command(&within, "true");
    if !namespace.status().is_ok_and(|status| status.success()) {
        return skip(Cause::Listed("no namespaces"), "no mount namespace");
    }
    let mut command = sessions.command(&within, harness::TRACEWING);
    command.args(["service", "--sessions", "kept", "--socket", "asked/control"]);
    let _service = Service::run(&sessions, command);
    wait_until("it answers", || ask(&sessions, &[], "list").status.success());
    let data = socket(&sessions).metadata().unwrap();
    assert_eq!((data.uid(), data.gid(), data.mode() & 0o777), (0, GROUP, 0o660));
    assert!(ask(&sessions, &as_member(), "list").text().contains("web"));
    let mut stranger = within.to_vec();
    stranger.extend(as_user(STRANGER));
    let said = ask(&sessions, &stranger, "list").notes();
    assert!(said.contains("you are not a member of group tracewing"), "{said}");
}

/// A service as systemd starts it at the first connection.
fn activated(sessions: &Background, name: &str) -> Option<Service> {
    if !installed(&["systemd-socket-activate"]) {
        return None;
    }
    let mut command = sessions.command(&[], "systemd-socket-activate");
    for variable in ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
        command.args(["-E", variable]);
    }
    command.args(["--seqpacket", &format!("--fdname={name}"), "-l"]).arg(socket(sessions));
    command.args([harness::TRACEWING, "service", "--sessions", "kept", "--exit-idle-time", "1"]);
    let service = Service::run(sessions, command);
    wait_until("it listens", || socket(sessions).exists());
    Some(service)
}

#[test]
fn a_service_that_a_request_has_started_ends_when_it_has_nothing_to_do() {
    let sessions = described();
    fs::remove_file(sessions.folder().join("kept/kept.toml")).unwrap();
    let Some(mut service) = activated(&sessions, "control") else { return };
    let said = |line: &str| {
        let output = ask(&sessions, &[], line);
        assert!(output.status.success(), "{line}: {}", output.notes());
        output.text()
    };
    assert!(said("list").contains("web  stopped  on demand"));
    said("start web");
    // Three times as long as it stays without a session.
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(!service.has_ended() && said("list").contains("web  started"));
    said("stop web");
    wait_until("it has ended", || service.has_ended());
    assert!(socket(&sessions).exists(), "the socket is systemd's");
}

#[test]
fn a_service_that_keeps_a_session_started_does_not_end() {
    let sessions = described();
    let Some(mut service) = activated(&sessions, "control") else { return };
    assert!(ask(&sessions, &[], "list").text().contains("kept  "));
    wait_until("its session is started", || sessions.recorders().len() == 2);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(!service.has_ended());
    service.end(libc::SIGTERM);
    assert!(sessions.recorders().is_empty());
}

#[test]
fn a_socket_of_another_name_or_kind_is_refused() {
    let sessions = described();
    let Some(service) = activated(&sessions, "other") else { return };
    let said = ask(&sessions, &[], "list").notes();
    assert!(said.contains("without an answer") || said.contains("cannot"), "{said}");
    wait_until("it says why", || {
        fs::read_to_string(log(&sessions)).unwrap().contains("has no socket with the name control")
    });
    drop(service);
}
