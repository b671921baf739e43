//! A viewer under test, and a client that sends it whatever a test wants.

use crate::harness;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings").join(name)
}

/// Where numbers by chance begin: `SEED=NUMBER` repeats a run that failed.
pub fn seed() -> u64 {
    let seed = std::env::var("SEED").map_or(u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    seed
}

/// A running viewer; it is ended with this value.
pub struct Viewer {
    pub child: Child,
    pub port: u16,
    pub token: String,
    /// Its folder, with the user's folders for data and cache.
    pub home: tempfile::TempDir,
}

/// The command that views a recording, with a home of its own.
pub fn command(trace: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = harness::of(trace, &["view"]);
    command.args(arguments).env("HOME", home);
    for name in ["XDG_DATA_HOME", "XDG_CACHE_HOME", "SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    tracewing_testing::with_default_signals(&mut command);
    command
}

impl Viewer {
    pub fn start(trace: &Path) -> Self {
        Self::within(trace, tempfile::tempdir().unwrap(), 0)
    }

    /// Starts one at a port and waits until it can answer.
    pub fn within(trace: &Path, home: tempfile::TempDir, port: u16) -> Self {
        Self::with(trace, home, port, &[])
    }

    /// The same with more arguments.
    pub fn with(trace: &Path, home: tempfile::TempDir, port: u16, more: &[&str]) -> Self {
        let port = port.to_string();
        let viewer =
            Self::of(command(trace, home.path(), &[&["--no-open", "--port", &port], more].concat()), home);
        let mut state = Value::Null;
        tracewing_testing::wait_until("the index is made", || {
            state = viewer.ask("state", "{}");
            state["phase"] != "indexing" && state["filling"].is_null()
        });
        assert_eq!(state["phase"], "ready");
        viewer
    }

    /// One that may not have read the recording yet.
    pub fn of(mut command: Command, home: tempfile::TempDir) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        let mut out = child.stdout.take().unwrap();
        while !text.contains("Ctrl-C ends it.") {
            let mut some = [0; 256];
            let count = out.read(&mut some).unwrap();
            assert!(count > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&some[..count]));
        }
        let (_, address) = text.split_once("http://127.0.0.1:").unwrap();
        let (port, rest) = address.split_once("/#token=").unwrap();
        let (port, token) = (port.parse().unwrap(), rest.split_whitespace().next().unwrap().to_owned());
        Viewer { child, port, token, home }
    }

    /// Ends the viewer, and gives its folder.
    pub fn give_home(mut self) -> tempfile::TempDir {
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::mem::replace(&mut self.home, tempfile::tempdir().unwrap())
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/#token={}", self.port, self.token)
    }

    /// The cookie that the token is worth.
    pub fn cookie(&self) -> String {
        let request = format!(
            "POST /api/enter HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
            self.port,
            self.token.len(),
            self.token
        );
        let (status, head, _) = self.send(request.as_bytes());
        assert_eq!(status, 204, "{head}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        for part in ["HttpOnly", "SameSite=Strict"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Asks as the page does; gives status, head and body.
    pub fn post(&self, path: &str, more: &[&str], body: &str) -> (u16, String, Vec<u8>) {
        let more: String = more.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!(
            "POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        self.send(request.as_bytes())
    }

    /// The answer that the user gets.
    pub fn ask(&self, path: &str, body: &str) -> Value {
        let (status, _, answer) = self.post(path, &[&format!("Cookie: {}", self.cookie())], body);
        assert_eq!(status, 200, "{path} {body}: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).unwrap()
    }

    /// The bytes that the user gets.
    pub fn bytes(&self, path: &str, body: &str) -> Vec<u8> {
        let (status, _, answer) = self.post(path, &[&format!("Cookie: {}", self.cookie())], body);
        assert_eq!(status, 200, "{path} {body}: {}", String::from_utf8_lossy(&answer));
        answer
    }

    /// Sends bytes; gives status, head and body of what comes back.
    pub fn send(&self, request: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // It may answer, and close, before it has read everything.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&answer)));
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[end + 4..].to_vec())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
