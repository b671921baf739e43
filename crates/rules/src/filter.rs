//! Filters: a condition on an event's fields, compiled for one event class, which a program evaluates before
//! it writes an event. A filter comes from the recorder, is kept as words in memory, and may be overwritten
//! while it runs.
//!
//! [`evaluate`] is total: any words and any payload give an answer. It runs each instruction at most once,
//! since jumps only lead forward, allocates nothing and calls nothing through pointers.
//! [`Predicate::compile`](crate::Predicate::compile) compiles conditions to filters.
//!
//! # Words
//!
//! A filter is at most [`MAX_FILTER`] bytes: instructions ([`Instruction`], one 64-bit word), each followed
//! by its operands. Words are little-endian where they are bytes.
//!
//! | bits | what |
//! |---|---|
//! | 0..8 | [`Operation`]; for `Integer`, the sum of operation and load |
//! | 8..16 | what to load ([`Load`]) |
//! | 16..20 | base: the register whose value is added to the offset; 0 is the payload's begin |
//! | 20..24 | accepted orders of loaded value and operand: 1 less, 2 equal, 4 greater, in sum |
//! | 24..32 | next word if accepted |
//! | 32..40 | next word if not |
//! | 40..48 | words of a text; the register that `Locate` sets |
//! | 48..64 | offset of the value from the base, bytes |
//!
//! The next word is the index of a word after the instruction, or [`ACCEPT`]; anything else, for instance
//! [`REJECT`], rejects the event. A value outside the payload also rejects it, as does an instruction that
//! does not exist, such as a word of zeros. A filter without words accepts everything.

mod instruction;
mod operands;
mod payload;
mod run;

pub use instruction::{EQUAL, GREATER, Instruction, LESS, Load, OPTIONAL, Operation, SLICE};
pub use run::evaluate;

use tracewing_units::{Cpu, Pid, Tid};

/// Largest filter, bytes.
pub const MAX_FILTER: usize = 1024;
/// Largest filter, words.
pub const MAX_WORDS: usize = MAX_FILTER / 8;
/// Registers for positions in the payload, including register 0, which is always 0. A register's number is
/// taken modulo this.
pub const REGISTERS: usize = 8;
/// Jump target: the event is accepted.
pub const ACCEPT: u8 = 0xff;
/// Jump target: the event is rejected.
pub const REJECT: u8 = 0xfe;

/// Supplies values that are not in the payload. It is called only when a filter needs such a value, since an
/// answer may cost a system call.
pub trait Surroundings: Clone {
    /// Kernel thread id, as the event records it.
    fn tid(&self) -> Tid;
    /// Process id.
    fn pid(&self) -> Pid;
    /// CPU number.
    fn cpu(&self) -> Cpu;
}

impl Surroundings for Context {
    fn tid(&self) -> Tid {
        self.tid
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn cpu(&self) -> Cpu {
        self.cpu
    }
}

/// Surroundings that are already known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Kernel thread id, as the event records it.
    pub tid: Tid,
    /// Process id.
    pub pid: Pid,
    /// CPU number.
    pub cpu: Cpu,
}
