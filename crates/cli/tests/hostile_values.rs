//! Recordings that are well-formed, and whose values make no sense: every analysis and every export comes to
//! an end, with a result or an error, in bounded memory and time.

mod harness;
#[path = "../../trace/tests/common/hostile.rs"]
mod hostile;

use harness::{Printed, RunExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Output;

/// Bytes of addresses that a command may use, most of them its own code, and seconds of processors.
const LIMITS: [(libc::__rlimit_resource_t, u64); 2] = [(libc::RLIMIT_AS, 2 << 30), (libc::RLIMIT_CPU, 60)];

/// Everything that makes something of values.
const COMMANDS: &[&str] = &[
    "list",
    "list --super",
    "list --format json --super",
    "list --format csv",
    "list --details",
    "info",
    "stats",
    "threads",
    "threads --by task --format json",
    "threads --by process --format csv",
    "threads --from +100ns --to +20000ns",
    "breakdown",
    "breakdown --format json",
    "sched timehist",
    "sched latency",
    "sched timehist --format json",
    "tasks",
    "tasks --format json",
    "latency --begin sched_waking --end sched_switch --match tid=next_tid",
    "latency --begin lock:requested --end lock:acquired --match lock --by kind --worst 5",
    "latency --begin shop:work_begin --end shop:work_end --match span --format json",
    "critical-path --tid 1",
    "critical-path --tid 0 --format json",
    "critical-path --task 1",
    "locks",
    "locks --by caller --format json",
    "locks --graph",
    "locks --graph=dot",
    "locks --histogram",
    "functions",
    "functions --graph",
    "functions --replay",
    "profile",
    "profile --by thread --format json",
    "profile --tree",
    "profile --counters",
];

fn tracewing(arguments: &str, trace: &Path, out: Option<&Path>) -> Output {
    let mut command = harness::tracewing();
    command.args(arguments.split(' ')).arg(trace).env("RUST_BACKTRACE", "0");
    if let Some(out) = out {
        command.arg("-o").arg(out);
    }
    let limit = || {
        for (resource, most) in LIMITS {
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: the limit outlives the call.
            if unsafe { libc::setrlimit(resource, &raw const limit) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: `setrlimit` may be called between `fork` and `exec`; nothing is allocated.
    unsafe { command.pre_exec(limit) };
    command.ran()
}

/// What is wrong with how a command ended: it may fail with an error, or end early by itself.
fn fault(output: &Output) -> Option<String> {
    let said = output.notes();
    let usage = output.status.code() == Some(2) && said.contains("Usage:");
    (output.status.signal().is_some() || said.contains("panicked") || usage)
        .then(|| format!("{}: {said}", output.status))
}

#[test]
fn no_value_brings_an_analysis_or_an_export_down() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (number("TRACEWING_SEED").unwrap_or(0), number("TRACEWING_CASES").unwrap_or(6));
    let mut faults = Vec::new();
    for seed in first..first + count {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        hostile::write_recording(&trace, seed);
        let mut check = |command: &str, out: Option<&Path>| {
            if let Some(fault) = fault(&tracewing(command, &trace, out)) {
                faults.push(format!("seed {seed}, tracewing {command}: {fault}"));
            }
        };
        COMMANDS.iter().for_each(|command| check(command, None));
        for format in ["paje", "perfetto", "chrome"] {
            check(&format!("export --format {format}"), Some(&folder.path().join(format)));
        }
        check("convert --format ctf2", Some(&folder.path().join("ctf2")));
        check("extract --from +100ns --to +20000ns", Some(&folder.path().join("extract")));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
