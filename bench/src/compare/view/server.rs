//! The server that is measured, and a client that asks it as the page does.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time that is waited for the index, or for an answer.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Where indexes are: the folder of a user whose folders are in `home`.
pub fn indexes(home: &Path) -> PathBuf {
    home.join("XDG_CACHE_HOME/tracewing/view")
}

/// A running `tracewing view`; it ends with this value.
pub struct Server {
    child: Child,
    /// Stays open: what the server prints would fail otherwise.
    _out: BufReader<ChildStdout>,
    pub address: String,
    port: u16,
    cookie: String,
    connection: BufReader<TcpStream>,
}

impl Server {
    /// Starts one; it can answer, though there may be no index yet. Folders of the user's are in `home`.
    pub fn start(tracewing: &Path, recording: &Path, home: &Path, more: &[&str]) -> Result<Self> {
        let mut command = Command::new(tracewing);
        command.arg("view").arg(recording).arg("--no-open").args(more).arg("--index").arg(indexes(home));
        for name in ["XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env(name, home.join(name));
        }
        command.env_remove("SSH_CONNECTION").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start tracewing view")?;
        let mut out = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        let address = line.split_whitespace().last().context("the server has said nothing")?.to_owned();
        let rest = address.strip_prefix("http://127.0.0.1:").context("an address was expected")?;
        let (port, token) = rest.split_once("/#token=").context("a token was expected")?;
        let port = port.parse()?;
        let connection = BufReader::new(connect(port)?);
        let token = token.to_owned();
        let mut server = Server { child, _out: out, address, port, cookie: String::new(), connection };
        let (head, _) = server.post("enter", &token)?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).context("no cookie")?;
        server.cookie = cookie.to_owned();
        Ok(server)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has the index; gives what it says of the recording.
    pub fn wait(&mut self) -> Result<Value> {
        let begin = Instant::now();
        loop {
            let state = self.ask("state", "{}")?;
            match state["phase"].as_str() {
                Some("ready") => return Ok(state),
                Some("indexing") if begin.elapsed() < PATIENCE => {}
                _ => anyhow::bail!("there is no index: {state}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn ask(&mut self, path: &str, body: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.post(path, body)?.1)?)
    }

    /// Sends a question and reads the answer, on one connection.
    pub fn post(&mut self, path: &str, body: &str) -> Result<(String, Vec<u8>)> {
        let request = format!(
            "POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nCookie: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            self.cookie,
            body.len()
        );
        self.connection.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(self.connection.read_line(&mut head)? > 0, "the server has closed the connection");
        }
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut answer = vec![0; length.unwrap_or(0)];
        self.connection.read_exact(&mut answer)?;
        ensure!(head.starts_with("HTTP/1.1 20"), "{}", String::from_utf8_lossy(&answer));
        Ok((head, answer))
    }
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
