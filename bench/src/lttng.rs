//! The peer LTTng-UST: builds its C program, prepares a session for it, and takes everything away again.
//!
//! The session is a snapshot session (nothing is written while measuring), its channel overwrites 4 sub-buffers of
//! 1 MiB per CPU, buffers are shared by the user's processes, and each event carries the thread id: what comes closest
//! to a tracewing event.

use crate::process::{Worker, pinned};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A prepared session with its program. Dropping it destroys the session, and ends the session daemon if this started
/// it.
pub struct Lttng {
    session: String,
    program: PathBuf,
    daemon: Option<Child>,
}

impl Lttng {
    /// Compiles the program from the C files in `sources` into `scratch` and starts recording.
    pub fn prepare(sources: &Path, scratch: &Path) -> Result<Self> {
        let program = scratch.join("lttng-peer");
        build(sources, &program)?;
        let mut lttng =
            Self { session: format!("tracewing-bench-{}", std::process::id()), program, daemon: None };
        if !daemon_answers() {
            lttng.daemon = Some(start_daemon()?);
        }
        let session = lttng.session.as_str();
        command(&["create", session, "--snapshot"])?;
        #[rustfmt::skip]
        command(&[
            "enable-channel", "--userspace", "--session", session, "--overwrite", "--num-subbuf", "4",
            "--subbuf-size", "1M", "--buffers-uid", "channel",
        ])?;
        command(&[
            "add-context",
            "--userspace",
            "--session",
            session,
            "--channel",
            "channel",
            "--type",
            "vtid",
        ])?;
        #[rustfmt::skip]
        command(&[
            "enable-event", "--userspace", "--session", session, "--channel", "channel", "tracewing_bench:two",
        ])?;
        command(&["start", session])?;
        Ok(lttng)
    }

    /// Starts the program on one CPU.
    pub fn worker(&self, cpu: usize) -> Result<Worker> {
        // Without it, the program would not wait for the session daemon and could begin unrecorded.
        pinned(cpu, || {
            Worker::start("lttng-ust", Command::new(&self.program).env("LTTNG_UST_REGISTER_TIMEOUT", "-1"))
        })
    }

    /// Whether the events really are in the buffers: takes a snapshot into `folder` and looks whether it has any size.
    pub fn has_recorded(&self, folder: &Path) -> Result<bool> {
        let output = folder.to_str().context("the scratch folder is not UTF-8")?;
        command(&["snapshot", "record", "--session", &self.session, output])?;
        Ok(largest_file(folder)? > 1 << 20)
    }
}

impl Drop for Lttng {
    fn drop(&mut self) {
        if let Err(error) = command(&["destroy", "--no-wait", &self.session]) {
            eprintln!("bench: {error:#}");
        }
        let Some(daemon) = &mut self.daemon else { return };
        if other_sessions() {
            eprintln!("bench: lttng-sessiond has got another session meanwhile and stays");
            return;
        }
        // TERM, not KILL: the daemon removes its files and stops its consumers.
        let id = rustix::process::Pid::from_child(daemon);
        let ended = rustix::process::kill_process(id, rustix::process::Signal::TERM)
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(daemon.wait()?));
        if let Err(error) = ended {
            eprintln!("bench: cannot stop lttng-sessiond: {error}");
        }
    }
}

fn build(sources: &Path, program: &Path) -> Result<()> {
    let output = Command::new("gcc")
        .args(["-O2", "-g", "-Wall", "-I"])
        .arg(sources)
        .arg("-o")
        .arg(program)
        .arg(sources.join("peer.c"))
        .args(["-llttng-ust", "-ldl"])
        .output()
        .context("cannot start gcc")?;
    if !output.status.success() {
        bail!("gcc cannot build the peer: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Runs `lttng`, and never lets it start a daemon of its own, which would outlive us.
fn command(arguments: &[&str]) -> Result<String> {
    let output = Command::new("lttng")
        .arg("--no-sessiond")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("cannot start lttng (Debian package lttng-tools)")?;
    if !output.status.success() {
        bail!("`lttng {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn daemon_answers() -> bool {
    command(&["list"]).is_ok()
}

fn other_sessions() -> bool {
    command(&["list"]).is_ok_and(|text| text.contains("[active]") || text.contains("[inactive]"))
}

fn start_daemon() -> Result<Child> {
    let mut daemon = Command::new("lttng-sessiond")
        .args(["--no-kernel", "--quiet"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start lttng-sessiond (Debian package lttng-tools)")?;
    let begin = Instant::now();
    while !daemon_answers() {
        if let Some(status) = daemon.try_wait()? {
            bail!("lttng-sessiond ended at once ({status})");
        }
        if begin.elapsed() > Duration::from_secs(10) {
            daemon.kill()?;
            daemon.wait()?;
            bail!("lttng-sessiond does not answer");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(daemon)
}

fn largest_file(folder: &Path) -> Result<u64> {
    let mut largest = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let size =
            if entry.file_type()?.is_dir() { largest_file(&entry.path())? } else { entry.metadata()?.len() };
        largest = largest.max(size);
    }
    Ok(largest)
}
