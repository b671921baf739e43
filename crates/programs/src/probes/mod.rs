//! Finds places for kernel probes in programs, without rebuilding them, and the values there: functions by
//! name, and USDT probes.
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
//! | `request` | parses the user's request |
//! | `resolve` | combines the other modules |
//! | `file` | an ELF file, and the one with its debug information |
//! | `functions` | functions by their names |
//! | `sequences`, `instructions` | where probes are forbidden |
//! | `variables` | variables by their names, and their types |
//! | `usdt`, `operand` | a program's built-in probes, and their arguments |
//! | `error`, `fault` | why a probe or value is impossible |
//! | `place` | the location of a value, in the kernel's syntax |
//!
//! `tracewing_kernel` places the probes. Nothing in a file is trusted: any bytes give probes, or an error.
//! One exception: an address that the user gives, without a known function before it, is taken to be that of
//! an instruction.

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
    ArgumentFault, FileFault, OperandFault, PlaceFault, RequestFault, Syntax, ValueFault, VariableFault,
};
pub use resolve::{Resolved, Resolver};
pub use usdt::{Usdt, usdt};
