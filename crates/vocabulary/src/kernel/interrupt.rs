//! Interrupts, whose classes begin and end them.

/// What takes a CPU from its thread for a moment. They nest: a handler in a vector, any of both in a softirq.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interrupt {
    /// The handler of a device's interrupt.
    Handler,
    /// A softirq.
    Softirq,
    /// A vector of the processor's own, such as its timer's.
    Vector,
    /// Likewise, of the vectors by which another CPU has this one do something, such as making a thread
    /// runnable.
    Call,
}

impl Interrupt {
    /// Patterns for the classes of interrupts that begin, and of most that end.
    pub const GLOBS: [&'static str; 3] = ["irq_*", "softirq_entry", "x86_irq_vectors_*"];

    /// How deep it nests: it is within those of lower depth, and no others.
    pub const fn depth(self) -> u8 {
        match self {
            Self::Softirq => 0,
            Self::Vector | Self::Call => 1,
            Self::Handler => 2,
        }
    }
}

/// What the name of a class of interrupts says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptEvent<'n> {
    /// One begins; and the vector's name, if it is in the class's.
    Entry(Interrupt, Option<&'n str>),
    /// One ends.
    Exit(Interrupt),
}

/// What the names of their classes begin with.
const STARTS: [(&str, Interrupt); 4] = [
    ("irq_handler_", Interrupt::Handler),
    ("irq_softirq_", Interrupt::Softirq),
    ("softirq_", Interrupt::Softirq),
    ("x86_irq_vectors_", Interrupt::Vector),
];

/// The vectors by which CPUs call each other.
const CALLS: [&str; 3] = ["call_function", "call_function_single", "reschedule"];

impl<'n> InterruptEvent<'n> {
    /// What a class of this name says, if it is of the begin or the end of an interrupt.
    pub fn of_name(name: &'n str) -> Option<Self> {
        let mut kinds = STARTS.into_iter();
        let (kind, part) = kinds.find_map(|(start, kind)| Some((kind, name.strip_prefix(start)?)))?;
        let before = |end: &str| match kind {
            Interrupt::Vector | Interrupt::Call => {
                let vector = part.strip_suffix(end)?.strip_suffix('_')?;
                Some((if CALLS.contains(&vector) { Interrupt::Call } else { kind }, Some(vector)))
            }
            Interrupt::Handler | Interrupt::Softirq => (part == end).then_some((kind, None)),
        };
        let entry = before("entry").map(|(kind, vector)| Self::Entry(kind, vector));
        entry.or_else(|| before("exit").map(|(kind, _)| Self::Exit(kind)))
    }

    /// The kind.
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
