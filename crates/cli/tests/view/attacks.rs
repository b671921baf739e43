//! Other users, other pages, and requests that make no sense get nothing, and do no harm.

use crate::client::{Viewer, command, stored};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use tracewing_testing::{NOBODY, RunExt, is_root, wait_until};

const STATE: &str = "POST /api/state HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n";

#[test]
fn without_the_token_there_is_only_the_page() {
    let viewer = Viewer::start(&stored("clerks"));
    let host = format!("Host: 127.0.0.1:{}\r\n", viewer.port);
    let get = |path: &str| {
        viewer.send(format!("GET {path} HTTP/1.1\r\n{host}Connection: close\r\n\r\n").as_bytes())
    };
    let (status, head, page) = get("/");
    assert_eq!(status, 200);
    for header in
        ["default-src 'none'", "x-frame-options: DENY", "cache-control: no-store", "frame-ancestors 'none'"]
    {
        assert!(head.contains(header), "{head}");
    }
    assert!(!head.contains("access-control"), "{head}");
    assert!(!String::from_utf8_lossy(&page).contains("clerks"));
    let others = [
        "/api",
        "/api/",
        "/etc/passwd",
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "//style.css",
        "/main.js.map",
        "/style.css/",
        "/index.html",
        "/page/main.js",
    ];
    for path in others {
        let (status, ..) = get(path);
        assert!(status == 404 || status == 405, "{path}: {status}");
    }
    for path in [
        "state",
        "live",
        "tracks",
        "rows",
        "spans",
        "at",
        "longest",
        "statistics",
        "events",
        "search",
        "named",
        "losses",
        "lost",
        "find",
        "found",
        "match",
        "forget",
        "why",
        "flame",
        "graph",
        "calls",
        "tasks",
        "durations",
        "notes",
        "note",
        "job",
        "end",
    ] {
        assert_eq!(viewer.post(path, &[], "{}").0, 401, "{path}");
        let name = viewer.cookie().split('=').next().unwrap().to_owned();
        let wrong = [
            format!("Cookie: {name}="),
            format!("Cookie: {name}={}", "0".repeat(32)),
            format!("Cookie: other={}", viewer.token),
        ];
        for cookie in wrong {
            assert_eq!(viewer.post(path, &[&cookie], "{}").0, 401, "{path} {cookie}");
        }
    }
    for token in ["", "0", &"0".repeat(32), &format!("{} ", viewer.token), &viewer.token.to_uppercase()[1..]]
    {
        let (status, head, _) = viewer.post("enter", &[], token);
        assert!(status == 401 && !head.contains("set-cookie"), "{head}");
    }
    assert_eq!(viewer.post("nothing", &[&format!("Cookie: {}", viewer.cookie())], "{}").0, 404);
    assert_eq!(get("/api/state").0, 405);
}

#[test]
fn other_hosts_and_pages_are_refused_even_with_the_cookie() {
    let viewer = Viewer::start(&stored("clerks"));
    let cookie = format!("Cookie: {}\r\n", viewer.cookie());
    let status = |lines: &str| viewer.send(format!("{STATE}{cookie}{lines}\r\n{{}}").as_bytes()).0;
    let host = format!("Host: 127.0.0.1:{}\r\n", viewer.port);
    assert_eq!(status(&host), 200);
    assert_eq!(
        status("Host: localhost:1\r\nOrigin: http://localhost:1\r\n"),
        200,
        "a tunnel has another port"
    );
    for other in ["Host: example.org\r\n", "Host: 127.0.0.1.example.org\r\n", "Host: 10.0.0.1\r\n", ""] {
        let refused = status(other);
        assert!(refused == 421 || refused == 400, "{other}: {refused}");
    }
    for other in [
        "Origin: http://example.org",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: same-origin",
    ] {
        assert_eq!(status(&format!("{host}{other}\r\n")), 403, "{other}");
    }
}

#[test]
fn what_is_too_large_or_makes_no_sense_is_refused() {
    let viewer = Viewer::start(&stored("clerks"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    let status = |path: &str, body: &str| viewer.post(path, &[&cookie], body).0;
    assert_eq!(status("rows", &" ".repeat(70_000)), 413);
    let host = format!("Host: 127.0.0.1:{}\r\n", viewer.port);
    let long = format!("GET / HTTP/1.1\r\n{host}X: {}\r\nConnection: close\r\n\r\n", "x".repeat(40_000));
    assert_eq!(viewer.send(long.as_bytes()).0, 431);
    let many = format!("{{\"shift\":10,\"first\":0,\"count\":512,\"rows\":{:?}}}", vec![0; 5000]);
    for (path, body) in [
        ("rows", many.as_str()),
        ("rows", r#"{"shift":63,"first":0,"count":1,"rows":[0]}"#),
        ("rows", r#"{"shift":4294967295,"first":0,"count":1,"rows":[0]}"#),
        ("rows", r#"{"shift":62,"first":18446744073709551615,"count":1,"rows":[0]}"#),
        ("rows", r#"{"shift":0,"first":18446744073709551615,"count":4096,"rows":[0]}"#),
        ("rows", r#"{"shift":0,"first":0,"count":0,"rows":[0]}"#),
        ("rows", r#"{"shift":0,"first":0,"count":100000,"rows":[0]}"#),
        ("rows", r#"{"shift":0,"first":0,"count":1,"rows":[4000000000]}"#),
        ("rows", r#"{"shift":0,"first":0,"count":1,"rows":[0],"more":1}"#),
        ("spans", r#"{"from":0,"to":1,"rows":[4000000000]}"#),
        ("at", r#"{"row":0,"time":0,"step":2}"#),
        ("at", r#"{"row":4000000000,"time":0,"step":0}"#),
        ("at", r#"{"row":0,"time":0,"step":0,"kind":1}"#),
        ("longest", r#"{"from":0,"to":1,"rows":[0],"classes":[14],"most":1}"#),
        ("longest", r#"{"from":0,"to":1,"rows":[4000000000],"classes":[1],"most":1}"#),
        ("longest", r#"{"from":0,"to":1,"rows":[0],"classes":[1],"most":1001}"#),
        ("statistics", r#"{"from":2,"to":1}"#),
        ("note", r#"{"add":[{"time":1,"track":null,"text":" "}]}"#),
        ("note", r#"{"add":[{"time":-1,"track":null,"text":"x"}]}"#),
        ("note", r#"{"add":[{"time":1,"track":{"kind":"../x","number":"","process":""},"text":"x"}]}"#),
        ("events", r#"{"from":0,"to":1,"most":1000000}"#),
        ("events", r#"{"from":18446744073709551615,"to":18446744073709551615,"most":1}"#),
        ("search", &format!(r#"{{"text":"{}"}}"#, "x".repeat(300))),
        ("find", r#"{"text":"  "}"#),
        ("find", &format!(r#"{{"text":"{}"}}"#, "x".repeat(401))),
        ("found", r#"{"search":1,"from":0,"to":0,"count":1}"#),
        ("found", r#"{"search":1,"from":0,"to":1,"count":100000}"#),
        ("tracks", r#"{"most":-1}"#),
        ("named", r#"{"rows":[-1]}"#),
        ("named", &format!(r#"{{"rows":{:?},"threads":{:?}}}"#, vec![0; 600], vec![0; 401])),
        ("losses", r#"{"from":2,"to":1,"shift":0}"#),
        ("losses", r#"{"from":0,"to":1,"shift":63}"#),
        ("lost", r#"{"first":0,"most":1001}"#),
        ("search", "nonsense"),
        ("search", ""),
    ] {
        assert_eq!(status(path, body), 400, "{path} {body}");
    }
    // Edges of what is allowed are answered.
    for body in [
        r#"{"shift":62,"first":0,"count":3,"rows":[0,4294967295]}"#,
        r#"{"shift":0,"first":18446744073709551000,"count":1,"rows":[0]}"#,
    ] {
        assert_eq!(status("rows", body), 200, "{body}");
    }
    assert_eq!(status("at", r#"{"row":0,"time":18446744073709551615,"step":1}"#), 200);
    assert_eq!(status("at", r#"{"row":0,"time":5,"step":1,"kind":4294967295}"#), 200);
    assert_eq!(
        status("events", r#"{"from":0,"to":9007199254740991,"most":1,"buffer":4294967295,"last":true}"#),
        200
    );
    assert_eq!(status("named", r#"{"rows":[4294967295,2147483648],"threads":[-1,2147483647]}"#), 200);
    assert_eq!(status("losses", r#"{"from":0,"to":18446744073709551615,"shift":62}"#), 200);
    assert_eq!(status("lost", r#"{"first":18446744073709551615,"most":1000}"#), 200);
    assert_eq!(status("state", "{}"), 200);
}

#[test]
fn more_connections_than_places_are_closed() {
    let viewer = Viewer::start(&stored("clerks"));
    let connect = || std::net::TcpStream::connect(("127.0.0.1", viewer.port)).unwrap();
    // The first ones have all places; of the others each is closed at once.
    let mut silent: Vec<_> = (0..100).map(|_| connect()).collect();
    let mut last = silent.pop().unwrap();
    last.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    assert!(matches!(std::io::Read::read(&mut last, &mut [0]), Ok(0)));
    drop(silent);
    wait_until("it has places again", || {
        let request =
            format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", viewer.port);
        let mut stream = connect();
        let mut answer = String::new();
        std::io::Write::write_all(&mut stream, request.as_bytes()).is_ok()
            && std::io::Read::read_to_string(&mut stream, &mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200")
    });
}

#[test]
fn another_user_reads_neither_token_nor_recording() {
    let viewer = Viewer::start(&stored("clerks"));
    let data = viewer.home.path().join(".local/share/tracewing/view");
    assert_eq!(fs::metadata(&data).unwrap().mode() & 0o7777, 0o700);
    let files: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [token] = &files[..] else { panic!("{files:?}") };
    assert_eq!(fs::metadata(token).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_to_string(token).unwrap(), viewer.token);
    // Arguments are visible to every user.
    let arguments = fs::read_to_string(format!("/proc/{}/cmdline", viewer.child.id())).unwrap();
    assert!(!arguments.contains(&viewer.token));
    if is_root() {
        fs::set_permissions(viewer.home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let read = Command::new("cat").arg(token).uid(NOBODY).gid(NOBODY).ran();
        assert!(!read.status.success());
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{}; printf '{}Host: 127.0.0.1\\r\\n\\r\\n{{}}' >&3; cat <&3",
            viewer.port,
            STATE.replace("\r\n", "\\r\\n")
        );
        let asked = Command::new("bash").args(["-c", &script]).uid(NOBODY).gid(NOBODY).ran();
        assert!(String::from_utf8_lossy(&asked.stdout).starts_with("HTTP/1.1 401"), "{asked:?}");
    }
}

#[test]
fn it_ends_with_ctrl_c_and_an_open_page_continues_after_a_new_start() {
    let mut viewer = Viewer::start(&stored("clerks"));
    let (cookie, port) = (viewer.cookie(), viewer.port);
    tracewing_testing::signal(viewer.child.id(), libc::SIGINT);
    assert_eq!(viewer.child.wait().unwrap().code(), Some(0));
    let home = std::mem::replace(&mut viewer.home, tempfile::tempdir().unwrap());
    let again = Viewer::within(&stored("clerks"), home, port);
    assert_eq!(again.post("state", &[&format!("Cookie: {cookie}")], "{}").0, 200);
    // The port is taken.
    let home = tempfile::tempdir().unwrap();
    let refused = command(&stored("clerks"), home.path(), &["--no-open", "--port", &port.to_string()]).ran();
    let notes = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && notes.contains("cannot listen on 127.0.0.1"), "{notes}");
}

#[test]
fn the_file_for_the_browser_is_private_and_goes_with_the_server() {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(&stored("clerks"), home.path(), &["--at", "from=1&to=2"]);
    let connection = "10.0.0.1 50000 192.0.2.7 22";
    let mut child = command.env("SSH_CONNECTION", connection).stdout(Stdio::piped()).spawn().unwrap();
    let data = home.path().join(".local/share/tracewing/view");
    let page = || {
        fs::read_dir(&data)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|end| end == "html"))
    };
    wait_until("the file is there", || page().is_some());
    let path = page().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert!(fs::read_to_string(&path).unwrap().contains("/#token="));
    let mut out = child.stdout.take().unwrap();
    tracewing_testing::signal(child.id(), libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(page().is_none());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut out, &mut text).unwrap();
    assert!(
        text.contains("&from=1&to=2") && text.contains("ssh -L ") && text.contains(" 192.0.2.7\n"),
        "{text}"
    );
    let bad = crate::client::command(&stored("clerks"), home.path(), &["--at", "\"><script>"]).ran();
    assert!(!bad.status.success());
}
