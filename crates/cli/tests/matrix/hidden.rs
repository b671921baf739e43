//! Time on CPUs that the kernel's switches do not show: some kernels record no switch from an idle CPU to a
//! thread now and then, so that the thread is only seen to leave the CPU.

use super::harness::{self, Printed, RunExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The most ns, by thread, that threads may have run after a switch that is not recorded: since the last
/// switch of the CPU that they leave, and since they left one themselves.
pub struct Hidden(BTreeMap<u64, u64>);

impl Hidden {
    pub fn of(trace: &Path) -> Self {
        let mut hidden = BTreeMap::new();
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
                *hidden.entry(from).or_default() += stamp - since.max(left);
            }
        }
        Self(hidden)
    }

    pub fn of_tid(&self, tid: u64) -> u64 {
        self.0.get(&tid).copied().unwrap_or(0)
    }

    pub fn of_thread(&self, row: &Value) -> u64 {
        row["tid"].as_u64().map_or(0, |tid| self.of_tid(tid))
    }

    /// Of all threads.
    pub fn of_all(&self) -> u64 {
        self.0.values().sum()
    }
}
