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
    pub const GLOBS: [&'static str; 4] = ["irq_*", "softirq_entry", "x86_irq_vectors_*", "ipi_entry"];

    /// Whether a recording of a machine of this architecture (`uname -m`), with classes of these names, has
    /// the begin and the end of every kind of interrupt: one kind that is missing takes time of threads, and
    /// of the other kinds.
    ///
    /// An x86 has vectors beside the handlers of devices, its timer's among them. On an ARM that one is a
    /// device, and calls of other CPUs have classes of their own (`include/trace/events/ipi.h`). Of other
    /// processors it is not known which kinds there are.
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

/// What the names of classes of an x86's vectors begin with.
const VECTOR: &str = "x86_irq_vectors_";

/// Vectors that every kernel of a machine with several CPUs has, and that come while it runs well.
const VECTORS: [&str; 5] = ["local_timer", "reschedule", "call_function", "call_function_single", "irq_work"];

/// What the names of their classes begin with.
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
    /// What a class of this name says, if it is of the begin or the end of an interrupt.
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
