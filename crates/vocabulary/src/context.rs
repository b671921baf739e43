//! Context fields, which events of every class can have: their thread, process, CPU and flags.

/// The thread: `tid` in our recordings and those of LTTng's kernel tracer, `vtid` in those of LTTng-UST.
pub const TID: [&str; 2] = ["tid", "vtid"];

/// The address of the code that emitted the event; 0 if it is not known. Only in recordings that ask for it.
pub const SITE: [&str; 1] = ["ip"];

/// The process, which LTTng's events can have and samples always have: `pid` or `vpid`.
pub const PROCESS: [&str; 2] = ["pid", "vpid"];

/// The CPU: `cpu` in conditions, `cpu_id` in packets.
pub const CPU: [&str; 2] = ["cpu", "cpu_id"];

/// In our recordings of the kernel: ftrace's `common_flags`, whose bits are `enum trace_flag_type` of
/// `include/linux/trace_events.h`.
pub const FLAGS: [&str; 1] = ["flags"];
