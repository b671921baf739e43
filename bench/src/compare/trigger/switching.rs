//! How long it takes to switch ten thousand sites, in elapsed time: through `/proc/self/mem`, and through
//! `mprotect`, which replaces it in a worker without access to `/proc`.

use super::Setting;
use crate::compare::figures::Rounds;
use crate::compare::process::{Worker, pinned};
use anyhow::Result;
use std::process::Command;

/// As many as the worker has.
const SITES: u32 = 10_000;

/// A line of the table.
pub struct Way {
    pub title: &'static str,
    /// Milliseconds to switch all of them on.
    pub on: Rounds,
    /// Milliseconds to switch them off again.
    pub off: Rounds,
}

pub struct Switching {
    pub ways: Vec<Way>,
    pub sites: u32,
}

pub fn measure(setting: &Setting) -> Result<Switching> {
    let mut ways = Vec::new();
    for (title, worker) in
        [("/proc/self/mem", setting.worker().map(Some)?), ("mprotect", without_proc(setting)?)]
    {
        let Some(mut worker) = worker else { continue };
        let mut way = Way { title, on: Rounds::default(), off: Rounds::default() };
        // The first round copies the pages of code and is not counted.
        for round in 0..=setting.rounds {
            let [on, off] = worker.order::<f64, 2>(&format!("flip {SITES}"))?;
            if round > 0 {
                way.on.0.push(on / 1e6);
                way.off.0.push(off / 1e6);
            }
        }
        worker.finish_well()?;
        ways.push(way);
    }
    Ok(Switching { ways, sites: SITES })
}

/// A worker in a mount namespace in which something empty lies over `/proc`; `None`, and said, where none can
/// be made.
fn without_proc(setting: &Setting) -> Result<Option<Worker>> {
    let mut options = vec!["--mount"];
    if !rustix::process::geteuid().is_root() {
        options.push("--map-root-user");
    }
    let allowed =
        Command::new("unshare").args(&options).args(["mount", "-t", "tmpfs", "none", "/proc"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "bench: switching through mprotect is left out, since /proc cannot be hidden from a worker"
        );
        return Ok(None);
    }
    let script = "mount -t tmpfs none /proc && exec \"$0\"";
    let start = || {
        let mut command = Command::new("unshare");
        Worker::start("bench-trigger", command.args(&options).args(["sh", "-c", script]).arg(&setting.worker))
    };
    pinned(setting.cpu, start).map(Some)
}
