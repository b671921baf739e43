//! Interrupts: their classes record begins and ends.

use alloc::format;
use alloc::string::String;

/// A kind of code that takes a CPU from its thread for a moment. Kinds nest: a handler in a vector, either of
/// them in a softirq.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interrupt {
    /// The interrupt handler of a device.
    Handler,
    /// A softirq.
    Softirq,
    /// A vector of the processor itself, such as its timer's.
    Vector,
    /// A vector by which another CPU makes this one act, for instance make a thread runnable.
    Call,
}

impl Interrupt {
    /// Patterns for the classes of begins of interrupts, and of most ends.
    pub const GLOBS: [&'static str; 4] = ["irq_*", "softirq_entry", "x86_irq_vectors_*", "ipi_entry"];

    /// Patterns for the classes of softirqs.
    pub const SOFTIRQ_GLOBS: [&'static str; 2] = ["irq_softirq_*", "softirq_*"];

    /// Whether a recording, which has events of a name or not, has begins and ends of softirqs, and what
    /// raises them: only with all of these it is known which softirq woke a thread, and for which other one.
    pub fn are_all_softirqs(has: impl Fn(&str) -> bool) -> bool {
        const EVENTS: [[&str; 2]; 3] = [
            ["irq_softirq_raise", "softirq_raise"],
            ["irq_softirq_entry", "softirq_entry"],
            ["irq_softirq_exit", "softirq_exit"],
        ];
        EVENTS.iter().all(|names| names.iter().any(|name| has(name)))
    }

    /// Whether a recording with classes of these names, on a machine of this architecture (`uname -m`), has
    /// the begins and ends of every kind of interrupt: the time of a missing kind would be attributed to
    /// threads, and to the other kinds.
    ///
    /// An x86 has vectors in addition to the handlers of devices, among them its timer's. On an ARM the timer
    /// is a device, and calls of other CPUs have classes of their own (`include/trace/events/ipi.h`). The
    /// kinds of other processors are unknown.
    pub fn are_all<'n>(architecture: Option<&str>, names: impl Iterator<Item = &'n str> + Clone) -> bool {
        let has = |start: &str, kind: &str, end: &str| {
            let end_of = |name: &'n str| name.strip_prefix(start)?.strip_prefix(kind)?.strip_prefix('_');
            names.clone().any(|name| end_of(name) == Some(end))
        };
        let both = |start: &str, kind: &str| ["entry", "exit"].iter().all(|end| has(start, kind, end));
        let own = match architecture {
            Some(arm) if arm.starts_with("arm") || arm.starts_with("aarch64") => both("", "ipi"),
            _ => VECTORS.iter().all(|vector| both(VECTOR, vector)),
        };
        own && both("irq_", "handler") && (both("", "softirq") || both("irq_", "softirq"))
    }

    /// Nesting depth: an interrupt can be within those of lower depth only.
    pub const fn depth(self) -> u8 {
        match self {
            Self::Softirq => 0,
            Self::Vector | Self::Call => 1,
            Self::Handler => 2,
        }
    }
}

/// The meaning of the name of a class of interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptEvent<'n> {
    /// An interrupt begins; with the vector's name, if the class's name contains it.
    Entry(Interrupt, Option<&'n str>),
    /// An interrupt ends.
    Exit(Interrupt),
}

/// Prefix of the names of classes of an x86's vectors.
const VECTOR: &str = "x86_irq_vectors_";

/// Vectors that every kernel of a machine with several CPUs has, and that occur in normal operation.
const VECTORS: [&str; 5] = ["local_timer", "reschedule", "call_function", "call_function_single", "irq_work"];

/// Prefixes of the names of their classes.
const STARTS: [(&str, Interrupt); 5] = [
    ("irq_handler_", Interrupt::Handler),
    ("irq_softirq_", Interrupt::Softirq),
    ("softirq_", Interrupt::Softirq),
    (VECTOR, Interrupt::Vector),
    ("ipi_", Interrupt::Call),
];

/// The vectors by which CPUs call each other.
const CALLS: [&str; 3] = ["call_function", "call_function_single", "reschedule"];

impl<'n> InterruptEvent<'n> {
    /// Parses a class name; `None` if the class is not a beginning or an end of an interrupt.
    pub fn of_name(name: &'n str) -> Option<Self> {
        let mut kinds = STARTS.into_iter();
        let (kind, part) = kinds.find_map(|(start, kind)| Some((kind, name.strip_prefix(start)?)))?;
        let before = |end: &str| match kind {
            Interrupt::Vector => {
                let vector = part.strip_suffix(end)?.strip_suffix('_')?;
                Some((if CALLS.contains(&vector) { Interrupt::Call } else { kind }, Some(vector)))
            }
            Interrupt::Handler | Interrupt::Softirq | Interrupt::Call => {
                (part == end).then_some((kind, (kind == Interrupt::Call).then_some("ipi")))
            }
        };
        let entry = before("entry").map(|(kind, vector)| Self::Entry(kind, vector));
        entry.or_else(|| before("exit").map(|(kind, _)| Self::Exit(kind)))
    }

    /// The name of the class of the other end of what a class of this name says; `None` if it is of no
    /// interrupt.
    pub fn counterpart(name: &'n str) -> Option<String> {
        match Self::of_name(name)? {
            Self::Entry(..) => Some(format!("{}exit", name.strip_suffix("entry")?)),
            Self::Exit(_) => Some(format!("{}entry", name.strip_suffix("exit")?)),
        }
    }

    /// The kind of the interrupt.
    pub fn kind(self) -> Interrupt {
        match self {
            Self::Entry(kind, _) | Self::Exit(kind) => kind,
        }
    }
}

/// A softirq's name by its number (`include/linux/interrupt.h`).
pub fn softirq(number: i64) -> Option<&'static str> {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(usize::try_from(number).ok()?).copied()
}
