//! nginx: a process that answers, and one that watches over it, neither built for it.

use super::*;
use harness::traceable;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CLIENTS: usize = 4;
/// Requests of a connection.
const REQUESTS: usize = 100;

/// Stopped when dropped, with the processes that it has started.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        tracewing_testing::signal(self.0.id(), libc::SIGTERM);
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, port: u16) -> Nginx {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String =
        temporary.iter().map(|name| format!("  {name}_temp_path {}/{name};\n", folder.display())).collect();
    let configuration = format!(
        "daemon off; worker_processes 2; pid {0}/pid; error_log {0}/log;\nevents {{ }}\nhttp {{\n{temporary}  access_log off;\n  \
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 \"answer\"; }} }}\n}}\n",
        folder.display()
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let child = Command::new("nginx").arg("-c").arg(&file).arg("-p").arg(folder).spawn().unwrap();
    let nginx = Nginx(child);
    tracewing_testing::wait_until("nginx listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    nginx
}

/// A connection with its requests: gives how many were answered.
fn ask(port: u16) -> std::io::Result<usize> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut buffer = [0; 4096];
    for nth in 0..REQUESTS {
        // So that the machine has time for the recorder, too.
        std::thread::sleep(Duration::from_micros(500));
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"answer") {
            match stream.read(&mut buffer)? {
                0 => return Ok(nth),
                len => answer.extend_from_slice(&buffer[..len]),
            }
        }
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            return Ok(nth);
        }
    }
    Ok(REQUESTS)
}

#[test]
fn nginx_loses_no_request() {
    if !installed(&["nginx"]) || !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let nginx = start(folder.path(), port);
    let (ends, answered, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let load = || {
        while !ends.load(Ordering::Relaxed) {
            let done = ask(port).unwrap_or(0);
            answered.fetch_add(done as u64, Ordering::Relaxed);
            failed.fetch_add((REQUESTS - done) as u64, Ordering::Relaxed);
        }
    };
    let mut seen = Seen::default();
    let look = |trace: &Path, pids: &[u32], way: &[&str]| {
        seen.look(trace, way, "nginx:ngx_http_process_request");
        if !way.contains(&"--no-kernel") {
            let rows = harness::json(trace, &["threads"]);
            for row in rows["threads"].as_array().unwrap() {
                let process = row["process"].as_u64().unwrap() as u32;
                assert!(row["name"] == "nginx" && pids.contains(&process), "{row}");
            }
        }
        seen.is_complete(2)
    };
    let probe = ["--probe", "nginx:ngx_http_process_request"];
    let sum = std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(load);
        }
        // Also where this fails, the clients end.
        let sum = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            record(folder.path(), None, &probe, || family(nginx.0.id()), look)
        }));
        ends.store(true, Ordering::Relaxed);
        sum
    });
    let sum = sum.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let (answered, failed) = (answered.into_inner(), failed.into_inner());
    assert!(answered > 100 && seen.is_complete(2), "{answered} answers; {seen:?}");
    assert_eq!(failed, 0, "of {answered} and these");
    println!("nginx: {sum}; {answered} answers, 0 failed");
}
