//! Time on CPUs that the kernel's switches do not show. Some kernels record no switch from an idle CPU to a
//! thread now and then, so that the thread is only seen to leave the CPU. And each switch is stamped after
//! the kernel has begun to charge the next thread.

use super::harness::{self, Printed, RunExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The most ns that a thread may have run, or several.
#[derive(Debug, Default, Clone, Copy)]
pub struct Hidden {
    /// After a switch that is not recorded: since the last switch of the CPU that it leaves, and since it
    /// left one itself. Commands report that as unknown.
    unknown: u64,
    /// Before switches that are recorded. Commands report that as the time of the previous thread.
    charged: u64,
}

impl Hidden {
    /// The most time on CPUs that a row allows.
    pub fn most_of(&self, row: &Value) -> u64 {
        let [running, unknown] = ["running_ns", "unknown_ns"].map(|column| row[column].as_u64().unwrap_or(0));
        self.most(running, unknown)
    }

    pub fn most(&self, running: u64, unknown: u64) -> u64 {
        running + unknown.min(self.unknown) + self.charged
    }
}

/// The same by thread.
pub struct HiddenTimes(BTreeMap<u64, Hidden>);

impl HiddenTimes {
    pub fn of(trace: &Path) -> Self {
        let mut hidden: BTreeMap<u64, Hidden> = BTreeMap::new();
        let output = harness::of(trace, &["list", "-e", "sched_switch", "--format", "json"]).ran();
        if !output.status.success() {
            // No switches are in the recording.
            return Self(hidden);
        }
        let mut running: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut left: BTreeMap<u64, u64> = BTreeMap::new();
        for line in output.text().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let number = |path: &str| event.pointer(path).and_then(Value::as_u64);
            let [cpu, stamp, from, to] =
                ["/packet_context/cpu_id", "/cycles", "/payload/prev_tid", "/payload/next_tid"]
                    .map(|path| number(path).unwrap_or_else(|| panic!("{path} of {line}")));
            let other = running.insert(cpu, (to, stamp)).filter(|(running, _)| *running != from);
            let left = left.insert(from, stamp).unwrap_or(0);
            if let Some((_, since)) = other {
                hidden.entry(from).or_default().unknown += stamp - since.max(left);
            }
            hidden.entry(to).or_default().charged += tracewing_testing::charged_before(1).as_nanos() as u64;
        }
        // The idle threads.
        hidden.remove(&0);
        Self(hidden)
    }

    pub fn of_tid(&self, tid: u64) -> Hidden {
        self.0.get(&tid).copied().unwrap_or_default()
    }

    pub fn of_thread(&self, row: &Value) -> Hidden {
        row["tid"].as_u64().map_or(Hidden::default(), |tid| self.of_tid(tid))
    }

    pub fn of_all(&self) -> Hidden {
        self.0.values().fold(Hidden::default(), |sum, hidden| Hidden {
            unknown: sum.unknown + hidden.unknown,
            charged: sum.charged + hidden.charged,
        })
    }
}
