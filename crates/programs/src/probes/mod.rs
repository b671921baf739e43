//! Finds the places in programs at which the kernel can be asked for events, without rebuilding them, and the
//! values there: functions by name, and USDT probes.
//!
//! ```text
//! "libc.so.6:malloc bytes" --request--> resolve --file, functions--> address --segments--> offset in the file
//!                                          |----variables (DWARF)--> registers and memory
//! "postgresql:query__*"    --request--> resolve --usdt, operand----> the same, and a semaphore
//!                                          '--> tracewing_kernel::Probe
//! ```
//!
//! | module | does |
//! |---|---|
//! | `request` | what the user asks for |
//! | `resolve` | all of it together |
//! | `file` | an ELF file, and the one with its debug information |
//! | `functions` | functions by their names |
//! | `sequences`, `instructions` | where no probe may be |
//! | `variables` | variables by their names, and their types |
//! | `usdt`, `operand` | the probes that a program brings, and their arguments |
//! | `error`, `fault` | why there can be no such probe or value |
//! | `place` | where a value is, in the kernel's words |
//!
//! Placing probes is `tracewing_kernel`'s. Nothing in a file is trusted: any bytes give probes, or an error.
//! But where the user gives an address, in front of which no function is known, that is believed to be an
//! instruction's.

mod error;
mod fault;
mod file;
mod functions;
mod instructions;
mod operand;
mod place;
mod request;
mod resolve;
mod sequences;
mod usdt;
mod variables;

pub use error::Error;
pub use fault::{
    ArgumentFault, FileFault, OperandFault, PlaceFault, RequestFault, ValueFault, VariableFault,
};
pub use resolve::{Resolved, Resolver};
pub use usdt::{Usdt, usdt};
