//! A CPU: who runs there, and which interrupts have taken it.

use super::activity::{Interrupt, Name};

/// What is known of a CPU.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Who runs there, 0 for its idle thread; `None` if unknown.
    pub current: Option<i32>,
    /// Interrupts within each other; at most one of each kind.
    interrupts: Vec<(Interrupt, Name)>,
}

impl Cpu {
    /// A CPU on which `tid` runs and nothing else.
    pub fn running(tid: i32) -> Self {
        Self { current: Some(tid), interrupts: Vec::new() }
    }

    pub fn is_interrupted(&self) -> bool {
        !self.interrupts.is_empty()
    }

    /// Whether a softirq has it, whatever has interrupted that. Only such a one can the timer interrupt.
    pub fn is_in_softirq(&self) -> bool {
        self.interrupts.iter().any(|(kind, _)| *kind == Interrupt::Softirq)
    }

    /// The innermost interrupt that has it.
    pub fn interrupt(&self) -> Option<Name> {
        self.interrupts.last().map(|(_, name)| *name)
    }

    /// An interrupt begins. What cannot lie below it has ended before; true if that was all, and its end is missing.
    pub fn enter(&mut self, interrupt: Interrupt, name: Name) -> bool {
        let was_interrupted = self.is_interrupted();
        self.interrupts.retain(|(below, _)| (*below as u8) < interrupt as u8);
        let missing = was_interrupted && !self.is_interrupted();
        self.interrupts.push((interrupt, name));
        missing
    }

    /// An interrupt ends, and those within it; false if it never began.
    pub fn exit(&mut self, interrupt: Interrupt) -> bool {
        let began = self.interrupts.iter().any(|(below, _)| *below == interrupt);
        self.interrupts.retain(|(below, _)| (*below as u8) < interrupt as u8);
        began
    }

    /// The thread is seen to have the CPU.
    pub fn is_threads(&mut self) {
        self.interrupts.clear();
    }
}
