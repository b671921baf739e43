//! What the context of events says, whatever their class: who recorded them.

/// The thread: `tid` in our recordings and those of LTTng's kernel tracer, `vtid` in those of LTTng-UST.
pub const TID: [&str; 2] = ["tid", "vtid"];

/// The process, with which LTTng's events can be recorded, and samples are: `pid` or `vpid`.
pub const PROCESS: [&str; 2] = ["pid", "vpid"];

/// In our recordings of the kernel: ftrace's `common_flags`, whose bits are `enum trace_flag_type` of
/// `include/linux/trace_events.h`.
pub const FLAGS: [&str; 1] = ["flags"];
