//! Whether this machine's kernel records all switches.
//!
//! Some virtual machines do not record those from the idle thread of some CPUs (perf does not see them
//! either): what ran there is unknown, so nothing can be compared with the program's own account, or the
//! kernel's.

use crate::harness::{Printed, RunExt};

/// Whether every CPU that became idle was seen to leave its idle thread again. Prints where not.
pub fn is_reported() -> bool {
    let tracewing = || crate::harness::tracewing();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let mut record = tracewing();
    record.args(["record", "--system-wide", "-k", "sched_switch", "-o"]).arg(&trace);
    record.args(["--", "sleep", "0.3"]).succeeds();
    let list = tracewing().args(["list", "--no-delta"]).arg(&trace).ran();
    let list = list.text();
    let cpus = tracewing_consumer::cpus::possible_cpus();
    let silent = (0..cpus).find(|cpu| {
        let switches = |with: &str| {
            let cpu = format!("cpu_id = {cpu} ");
            list.lines().filter(|line| line.contains(&cpu) && line.contains(with)).count()
        };
        switches(" next_tid = 0,") > 2 && switches(" prev_tid = 0,") == 0
    });
    if let Some(cpu) = silent {
        tracewing_testing::skip(
            tracewing_testing::Cause::Listed("idle thread"),
            format_args!("this machine's kernel records no switches from the idle thread of CPU {cpu}"),
        );
    }
    silent.is_none()
}
