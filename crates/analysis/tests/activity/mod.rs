//! Hand-made events, as the super-trace takes them.

use tracewing_trace::super_trace::{Activity, Context, Kind};
use tracewing_units::{Cpu, Pid, Tid, Timestamp};

/// An event on a CPU, in the name of a thread.
pub fn activity(
    time: i64,
    cpu: u32,
    tid: i32,
    process: Option<i32>,
    kind: Kind<'static>,
) -> Activity<'static> {
    let (time, cpu, tid) = (Timestamp::from_ns(time), Some(Cpu(cpu)), Some(Tid(tid)));
    Activity { time, cpu, tid, process: process.map(Pid), context: Context::Unknown, kind }
}
