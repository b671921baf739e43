//! The peer LTTng-UST: builds its C program, prepares sessions for it, and takes everything away again.
//!
//! Its channel has 4 sub-buffers of 1 MiB per CPU, buffers are shared by the user's processes, and each event
//! carries the thread id: what comes closest to a tracewing event. A session either is a snapshot session
//! (the channel overwrites, and nothing is written while measuring) or writes to a folder.

use crate::compare::process::{Worker, pinned};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The class of the events that are compared.
pub const CLASS: &str = "tracewing_bench:two";

/// The program, and a session daemon. Dropping it ends the daemon if this started it.
pub struct Lttng {
    program: PathBuf,
    daemon: Option<Child>,
    /// LTTng's version, as it says it.
    pub version: String,
}

/// A running session, the only one while it lives: a program records into all that there are. Dropping it
/// destroys it.
pub struct Session<'a> {
    name: String,
    lttng: &'a Lttng,
    folder: Option<PathBuf>,
}

impl Lttng {
    /// Compiles the program from the C files in `sources` into `scratch`; starts a daemon if there is none.
    pub fn prepare(sources: &Path, scratch: &Path) -> Result<Self> {
        let program = scratch.join("lttng-peer");
        build(sources, &program)?;
        let daemon = if daemon_answers() { None } else { Some(start_daemon()?) };
        Ok(Self { program, daemon, version: version()? })
    }

    /// A session that records the events that are compared into memory, or to disk into a folder.
    pub fn session(&self, folder: Option<&Path>) -> Result<Session<'_>> {
        self.session_of(folder, CLASS)
    }

    /// The same for the events of these names.
    pub fn session_of(&self, folder: Option<&Path>, events: &str) -> Result<Session<'_>> {
        let name = format!("tracewing-bench-{}", std::process::id());
        let session = Session { name, lttng: self, folder: folder.map(Path::to_owned) };
        let name = session.name.as_str();
        let mode = match folder {
            None => {
                command(&["create", name, "--snapshot"])?;
                "--overwrite"
            }
            Some(folder) => {
                let folder = folder.to_str().context("the scratch folder is not UTF-8")?;
                command(&["create", name, "--output", folder])?;
                "--discard"
            }
        };
        #[rustfmt::skip]
        command(&[
            "enable-channel", "--userspace", "--session", name, mode, "--num-subbuf", "4", "--subbuf-size", "1M",
            "--buffers-uid", "channel",
        ])?;
        #[rustfmt::skip]
        command(&[
            "add-context", "--userspace", "--session", name, "--channel", "channel", "--type", "vtid",
        ])?;
        command(&["enable-event", "--userspace", "--session", name, "--channel", "channel", events])?;
        command(&["start", name])?;
        Ok(session)
    }
}

impl Session<'_> {
    /// Starts the program, on one CPU or on all.
    pub fn worker(&self, cpu: Option<usize>) -> Result<Worker> {
        let start = || {
            // Without it, the program would not wait for the session daemon and could begin unrecorded.
            Worker::start(
                "lttng-ust",
                Command::new(&self.lttng.program).env("LTTNG_UST_REGISTER_TIMEOUT", "-1"),
            )
        };
        match cpu {
            Some(cpu) => pinned(cpu, start),
            None => start(),
        }
    }

    /// Makes sure that the events really are in the buffers: takes a snapshot into `folder` and looks whether
    /// it has any size.
    pub fn check(&self, folder: &Path) -> Result<()> {
        let output = folder.to_str().context("the scratch folder is not UTF-8")?;
        command(&["snapshot", "record", "--session", &self.name, output])?;
        ensure!(largest_file(folder)? > 1 << 20, "LTTng-UST has recorded nothing");
        Ok(())
    }

    /// Stops recording and waits until everything is in the folder, which it gives.
    pub fn stop(&self) -> Result<&Path> {
        command(&["stop", &self.name])?;
        self.folder.as_deref().context("a snapshot session has no folder")
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Waits until it is gone: the next session must be alone.
        if let Err(error) = command(&["destroy", &self.name]) {
            eprintln!("bench: {error:#}");
        }
    }
}

impl Drop for Lttng {
    fn drop(&mut self) {
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

/// LTTng's version, as it says it.
pub fn version() -> Result<String> {
    Ok(command(&["--version"])?.split(" - ").next().unwrap_or_default().trim().to_owned())
}

/// Compiles the program from the C files in `sources`.
pub fn build(sources: &Path, program: &Path) -> Result<()> {
    compile(&sources.join("peer.c"), program, &["-llttng-ust", "-ldl"])
}

/// Compiles a C file, with the headers in its folder.
pub fn compile(source: &Path, program: &Path, libraries: &[&str]) -> Result<()> {
    let output = Command::new("gcc")
        .args(["-O2", "-g", "-Wall", "-pthread", "-I"])
        .arg(source.parent().unwrap_or(source))
        .arg("-o")
        .arg(program)
        .arg(source)
        .args(libraries)
        .output()
        .context("cannot start gcc")?;
    if !output.status.success() {
        bail!("gcc cannot build {}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
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
