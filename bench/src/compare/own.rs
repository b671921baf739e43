//! Recordings by `tracewing record` with this program as the worker, and what a finished trace holds. The
//! latter is asked of `tracewing info`, for LTTng's traces too.

use crate::compare::process::Worker;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The class of the events that are compared.
pub const CLASS: &str = "bench:two_u64";

/// How a recording is made.
#[derive(Clone, Default)]
pub struct How {
    /// Events go to the disk, and are lost where it is too slow; else they stay in the buffers, and new ones
    /// overwrite old.
    pub to_disk: bool,
    /// The worker has no restartable sequences, so that it falls back to the protocol `Smp`.
    pub smp: bool,
    /// The one CPU that the worker may use.
    pub cpu: Option<usize>,
    /// What is recorded, as arguments; by default all but the kernel's events.
    pub selection: Option<Vec<String>>,
}

/// A recording with its worker.
pub struct Recording {
    worker: Worker,
    folder: PathBuf,
    /// What recorder and worker say; losses to disk are what some measurements are about, and no news.
    messages: PathBuf,
}

impl Recording {
    /// Starts one of this program as a worker.
    pub fn start(tracewing: &Path, folder: &Path, how: How) -> Result<Self> {
        let me = std::env::current_exe().context("cannot determine this program's path")?;
        Self::start_program(tracewing, folder, how, &[me.as_os_str(), "worker".as_ref()])
    }

    /// Starts one, into a folder that does not exist yet. The recorder may use any CPU.
    pub fn start_program(tracewing: &Path, folder: &Path, how: How, program: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(tracewing);
        command.args(["record", "--quiet", "--sub-buffer-size", "1M", "--sub-buffers", "4"]);
        command.args(how.selection.unwrap_or_else(|| vec!["--no-kernel".to_owned()]));
        if !how.to_disk {
            command.args(["--flight-recorder", "--snapshot-on", "exit"]);
        }
        command.arg("-o").arg(folder).arg("--");
        if how.smp {
            command.args(["env", "GLIBC_TUNABLES=glibc.pthread.rseq=0"]);
        }
        if let Some(cpu) = how.cpu {
            command.args(["taskset", "--cpu-list", &cpu.to_string()]);
        }
        command.args(program);
        let messages = folder.with_extension("messages");
        let file =
            File::create(&messages).with_context(|| format!("cannot create {}", messages.display()))?;
        command.stderr(file);
        let name = if how.smp { "tracewing, Smp" } else { "tracewing" };
        Ok(Self { worker: Worker::start(name, &mut command)?, folder: folder.to_owned(), messages })
    }

    /// The worker that receives orders.
    pub fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }

    /// Ends the worker and the recording; gives the trace's folder.
    pub fn finish(self) -> Result<PathBuf> {
        self.worker.finish_well().with_context(|| {
            format!("tracewing said: {}", fs::read_to_string(&self.messages).unwrap_or_default().trim())
        })?;
        Ok(self.folder)
    }
}

/// What a trace holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contents {
    /// Events of the class that was asked for.
    pub events: u64,
    /// Events of all classes.
    pub all_events: u64,
    /// Events that were lost, by the trace's own account.
    pub lost: u64,
    /// Bytes of all packets' contents.
    pub bytes: u64,
    /// Bytes of events that were overwritten before a snapshot.
    pub overwritten: u64,
    /// Buffers that one process had to itself, as `Smp` wants it.
    pub private_buffers: usize,
}

/// Reads a trace, whichever tracer made it.
pub fn contents(tracewing: &Path, folder: &Path, class: &str) -> Result<Contents> {
    let output = Command::new(tracewing)
        .args(["info", "--format", "json"])
        .arg(folder)
        .output()
        .with_context(|| format!("cannot start {}", tracewing.display()))?;
    if !output.status.success() {
        bail!(
            "`tracewing info {}` failed: {}",
            folder.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let info: Value = serde_json::from_slice(&output.stdout).context("`tracewing info` gave no JSON")?;
    let traces = info["traces"].as_array().context("`tracewing info` lists no traces")?;
    ensure!(!traces.is_empty(), "{} holds no trace", folder.display());
    let mut contents = Contents::default();
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    for stream in list(&info, "recordings").iter().flat_map(|recording| list(recording, "user_streams")) {
        contents.overwritten += stream["overwritten"]["bytes"].as_u64().unwrap_or(0);
        let private = stream["name"].as_str().is_some_and(|name| name.starts_with("pid"));
        contents.private_buffers += usize::from(private);
    }
    for trace in traces {
        for stream in list(trace, "streams") {
            contents.all_events += stream["events"].as_u64().unwrap_or(0);
            contents.lost += stream["lost_events"].as_u64().unwrap_or(0);
            contents.bytes += stream["bytes"].as_u64().unwrap_or(0);
        }
        for of in list(trace, "event_classes") {
            if of["name"] == class {
                contents.events += of["events"].as_u64().unwrap_or(0);
            }
        }
    }
    Ok(contents)
}
