//! The ring buffers as their users see them: no uncounted loss and nothing torn, even if writers die, are
//! interrupted, are single-stepped or lie. One program, so that its modules share the event that proves
//! itself ([`events`]) and the reader that checks it ([`collector`]).

#[cfg(target_arch = "x86_64")]
mod assembly;
mod books;
mod collector;
mod emitter;
mod events;
mod hostile;
mod machine;
mod plain;
#[cfg(target_arch = "x86_64")]
mod processes;
#[cfg(target_arch = "x86_64")]
mod publish;
#[cfg(target_arch = "x86_64")]
mod publisher;
#[cfg(target_arch = "x86_64")]
mod sizes;
mod smp;
mod snapshots;
mod soak;
#[cfg(target_arch = "x86_64")]
mod stepping;
#[cfg(target_arch = "x86_64")]
mod steps;
mod stress;
#[cfg(target_arch = "x86_64")]
mod tracer;
mod two_phase;
