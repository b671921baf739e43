//! Kernel tracepoints of a stock Linux, recorded through tracefs as CTF.
//!
//! ```text
//! tracefs: available_events, events/*/*/format          own instance: per_cpu/cpuN/trace_pipe_raw
//!        |                                                     | read, a page at a time
//!   choose -> format, print -> class: CTF class + program   reader: losses from `stats`
//!        |                              |                     |             |
//!        v                              |                  convert        kept, until a snapshot
//!   source, instance: enable,           v                     v             |
//!   clock, buffer, scope             page -> stream  <--------+-------------+
//!                                              \-> folder: channel_N, index
//! ```
//!
//! | module | does |
//! |---|---|
//! | [`choose`] | which events: the default set, or patterns |
//! | [`mod@format`], [`mod@print`] | reads an event's description |
//! | `probes` | events at instructions of programs: defines and removes them |
//! | [`page`] | decodes raw pages of the kernel's ring buffer |
//! | [`lttng`] | the names events and fields have in the trace |
//! | [`KernelRecorder`] | a whole recording; needs root (see [`privileges`]) and no kernel module |
//! | [`KernelFlightRecorder`] | the newest events in memory, written on request |
//!
//! Apart from its own instance, and probes with its name, this crate changes nothing in the kernel's tracer.
//! `tracewing-session` starts the command, has the timer, and records events of programs.
//!
//! # What a process tree is
//!
//! [`Scope::Tree`] is the kernel's own filter (`set_event_pid` with the option `event-fork`,
//! `kernel/trace/trace_events.c`): a list of thread numbers, to which children and threads are added when
//! they are forked and from which they are taken when they are gone. An event is recorded if the CPU's
//! current thread is in the list. As measured on Linux 6.18 (`tests/record.rs`), with the default set:
//!
//! | event | recorded |
//! |---|---|
//! | system calls, page faults | a member's own |
//! | interrupts, softirqs, NMI | while a member is current, whatever caused them |
//! | `sched_switch` | to a member, from a member, and so every switch between them |
//! | `sched_waking`, `sched_wakeup`, `sched_wakeup_new` | of a member by any thread, in any context; of any thread by a member |
//! | `sched_migrate_task` | when a member is current; not when a stranger's wake-up or the balancer moves a member (the wake-up's `target_cpu` shows that) |
//! | `task_newtask`, `sched_process_fork`, `exec`, `exit` | a member's own; the last event of a thread is the switch away from it |
//! | probes | a member's own |
//! | `signal_deliver` | to a member |
//! | `signal_generate` | by a member; not by a stranger to a member |
//!
//! A switch does not say which of its threads is the member: a recording of switches also has `task_newtask`.
//!
//! The list holds the initial PID namespace's numbers: in a container a tree cannot be recorded, the whole
//! system can. 32-bit system calls of a 64-bit kernel are not recorded: the kernel leaves them out.
//!
//! # Losses
//!
//! The instance discards what does not fit its buffer, so losses are gaps, counted exactly by the kernel and
//! found in time to within the two events around them; each is in the `events_discarded` of the packet after
//! it and in [`StreamSummary::losses`].
//!
//! A flight recorder's instance overwrites the oldest pages instead. The remaining pages of each CPU have no
//! gap; overwritten events are counted in [`StreamSummary::overwritten`].
//!
//! # Cost
//!
//! On two virtual CPUs, Linux 6.18, release build: reading, converting and writing an event takes 50 ns of
//! CPU time (95 ns at worst, other programs competing for the caches) (`dd bs=1`, 8 million events;
//! `perf bench sched pipe` the same), of which half is the kernel's. Polled every 50 ms while two `dd bs=1`
//! keep both CPUs busy and make 1.4 million events a second each, 4 MiB per CPU lose a quarter, 8 MiB nothing
//! or, with more programs running, 2 %, 16 MiB nothing; of a parallel compile 4 MiB lose nothing. Hence
//! [`DEFAULT_BUFFER_KIB`]. A recording in which nothing happens costs 1 ms of CPU time a second.
//!
//! ```no_run
//! use tracewing_ctf::model::ClockClass;
//! use tracewing_kernel::{KernelClock, KernelRecorder, Options, Scope, default_buffer_kib};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options {
//!     globs: vec!["sched_switch".into(), "irq_*".into()],
//!     probes: Vec::new(),
//!     only_probes: false,
//!     scope: Scope::System,
//!     clock: KernelClock::Mono,
//!     clock_class: ClockClass::new("monotonic", 1_000_000_000),
//!     uuid: *b"any sixteen byte",
//!     buffer_kib: default_buffer_kib(),
//!     sub_buffer_kib: None,
//!     overwrites: false,
//!     env: Vec::new(),
//! };
//! let (folder, _) = tracewing_files::Dir::create("trace".as_ref())?;
//! let mut recorder = KernelRecorder::start(&folder, "kernel", &options)?;
//! for _ in 0..20 {
//!     std::thread::sleep(tracewing_kernel::POLL_INTERVAL);
//!     recorder.poll(true)?;
//! }
//! let summary = recorder.finish()?;
//! println!("{} events", summary.streams.iter().map(|stream| stream.events).sum::<u64>());
//! # Ok(())
//! # }
//! ```

#![warn(unreachable_pub)]

mod asleep;
mod buffers;
mod change;
mod changer;
pub mod choose;
mod class;
mod clock;
mod convert;
mod error;
mod flight;
mod folder;
mod followed;
pub mod format;
mod guardian;
mod instance;
mod kept;
mod losses;
pub mod lttng;
mod metadata;
mod options;
pub mod page;
pub mod print;
mod probes;
mod reader;
mod recorder;
mod source;
mod statedump;
mod stream;
mod tracefs;

pub use buffers::KernelBuffers;
pub use change::change_by;
pub use changer::Changer;
pub use class::{Class, compile};
pub use clock::KernelClock;
pub use error::{Action, Error, FormatError, KernelText, Missing, RefusedEvent};
pub use flight::KernelFlightRecorder;
pub use losses::{LossRange, Losses};
pub use options::{DEFAULT_BUFFER_KIB, Options, POLL_INTERVAL, Scope, default_buffer_kib};
pub use probes::{Argument, Probe};
pub use recorder::{KernelRecorder, NextTrace, Progress, Rotated, Summary};
pub use stream::StreamSummary;
pub use tracefs::{Tracefs, privileges};
