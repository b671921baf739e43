//! What an event says about a lock.

use std::collections::HashMap;

use tracewing_ctf::decode::{Compound, Event, MemberHandle, Value, Visitor};
use tracewing_ctf::model::Scope;
use tracewing_trace::EventRef;

use super::Kind;

/// Elements of a call chain that are kept.
const FRAMES: usize = 128;

/// An event of provider `lock`, or one of the kernel's about its own locks. Locks and places are addresses.
#[derive(Debug, PartialEq)]
pub(super) enum LockEvent {
    Requested {
        lock: u64,
        caller: u64,
        kind: Kind,
        owner: i32,
        /// Whether an event would say that it is given up.
        ends: bool,
    },
    Acquired {
        lock: u64,
        caller: u64,
        kind: Kind,
        /// Whether it could not have it at once, as the event says; old ones of user threads do not.
        waited: bool,
    },
    Refused {
        lock: u64,
        caller: u64,
        kind: Kind,
    },
    Released {
        lock: u64,
    },
    NotReleased {
        lock: u64,
    },
    ConditionWait {
        condition: u64,
        lock: u64,
        caller: u64,
    },
    ConditionWoken {
        condition: u64,
        lock: u64,
    },
    BarrierWait {
        barrier: u64,
        caller: u64,
    },
    BarrierPassed {
        barrier: u64,
    },
    CalledFrom {
        chain: u64,
    },
    CallChain {
        chain: u64,
        frames: Vec<u64>,
    },
    Image {
        begin: u64,
        end: u64,
        bias: u64,
        path: String,
    },
    /// How often the thread has tried for the lock that it wants, before it sleeps.
    Spun {
        spins: u64,
    },
    /// Where the program calls that has this number as its caller.
    Place {
        caller: u64,
        file: String,
        line: u64,
    },
    /// File and line of requests of user threads that have this number as their caller, in every process.
    Origin {
        caller: u64,
        file: String,
        line: u64,
    },
    /// The thread, a worker of a runtime, has nothing to run.
    Parked,
    /// Another object has the function.
    Shadowed {
        function: String,
        path: String,
    },
    KernelWait {
        lock: u64,
        kind: Kind,
    },
    KernelHas {
        lock: u64,
    },
    /// The thread sleeps until somebody wakes who sleeps for the word at this address, if it is as expected.
    FutexWait {
        address: u64,
    },
    /// A futex system call ends.
    FutexEnd {
        result: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
    Requested,
    Acquired,
    Refused,
    Released,
    NotReleased,
    ConditionWait,
    ConditionWoken,
    BarrierWait,
    BarrierPassed,
    CalledFrom,
    CallChain,
    Image,
    Spun,
    Place,
    Shadowed,
    TaskWait,
    TaskHas,
    TaskGivenUp,
    TaskReleased,
    Origin,
    Parked,
    KernelWait,
    KernelHas,
    FutexBegin,
    FutexEnd,
}

/// Whose locks an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A thread's.
    Thread,
    /// A user thread's, of which this ticket says what belongs together: 0 where the request began before it was recorded, `None`
    /// in recordings without tickets.
    Task(Option<u64>),
    /// The kernel's own.
    Kernel,
}

impl Meaning {
    fn level(self, ticket: Option<u64>) -> Level {
        match self {
            Self::TaskWait | Self::TaskHas | Self::TaskGivenUp | Self::TaskReleased => Level::Task(ticket),
            Self::KernelWait | Self::KernelHas => Level::Kernel,
            _ => Level::Thread,
        }
    }
}

/// What an event of this name means, and the fields that it must have.
fn meaning(name: &str) -> Option<(Meaning, &'static [&'static str])> {
    Some(match name {
        "lock:requested" => (Meaning::Requested, &["lock", "caller", "kind", "owner"]),
        "lock:acquired" => (Meaning::Acquired, &["lock", "caller", "kind"]),
        "lock:refused" => (Meaning::Refused, &["lock", "caller", "kind"]),
        "lock:released" => (Meaning::Released, &["lock"]),
        "lock:not_released" => (Meaning::NotReleased, &["lock"]),
        "lock:condition_wait" => (Meaning::ConditionWait, &["condition", "lock", "caller"]),
        "lock:condition_woken" => (Meaning::ConditionWoken, &["condition", "lock"]),
        "lock:barrier_wait" => (Meaning::BarrierWait, &["barrier", "caller"]),
        "lock:barrier_passed" => (Meaning::BarrierPassed, &["barrier"]),
        "lock:called_from" => (Meaning::CalledFrom, &["chain"]),
        "lock:call_chain" => (Meaning::CallChain, &["chain"]),
        "lock:image" => (Meaning::Image, &["begin", "end", "bias", "path"]),
        "lock:spun" => (Meaning::Spun, &["spins"]),
        "lock:place" => (Meaning::Place, &["caller", "file", "line"]),
        "lock:shadowed" => (Meaning::Shadowed, &["function", "path"]),
        "user_thread:wait" => (Meaning::TaskWait, &["kind", "object"]),
        "user_thread:acquired" => (Meaning::TaskHas, &["kind", "object"]),
        GIVEN_UP => (Meaning::TaskGivenUp, &["kind", "object"]),
        "user_thread:released" => (Meaning::TaskReleased, &["kind", "object"]),
        "user_thread:origin" => (Meaning::Origin, &["origin", "name", "file", "line"]),
        "user_thread:park" => (Meaning::Parked, &[]),
        "syscall_entry_futex" => (Meaning::FutexBegin, &["uaddr", "op"]),
        "syscall_exit_futex" => (Meaning::FutexEnd, &["ret"]),
        "contention_begin" => (Meaning::KernelWait, &["lock_addr", "flags"]),
        "contention_end" => (Meaning::KernelHas, &["lock_addr"]),
        _ => return None,
    })
}

/// Fields that older recordings lack.
const OPTIONAL: [&str; 3] = ["ticket", "origin", "waited"];

/// An event class.
#[derive(Debug)]
struct Class {
    meaning: Meaning,
    /// Where the fields are that its events must have.
    fields: Vec<MemberHandle>,
    /// Where [`OPTIONAL`] ones are.
    optional: [Option<MemberHandle>; 3],
    /// Whether the trace has events of requests that are given up.
    has_given_up: bool,
}

const GIVEN_UP: &str = "user_thread:given_up";

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// By stream and class; `None` for events about something else.
    classes: HashMap<(usize, usize), Option<Class>>,
}

impl Reader {
    /// What an event says; `None` where that is not about locks, or not what its name promises.
    pub(super) fn read(&mut self, event: &EventRef<'_>) -> Option<(Level, LockEvent)> {
        let decoded = event.decoded();
        let place = (event.stream_index(), decoded.class_index());
        let class = self.classes.entry(place).or_insert_with(|| class_of(event));
        let Class { meaning, fields, optional, has_given_up } = class.as_ref()?;
        let number = |at: usize| unsigned(decoded.member(*fields.get(at)?)?);
        let [ticket, origin, waited] = optional.map(|handle| unsigned(decoded.member(handle?)?));
        let (origin, waited) = (origin.unwrap_or(0), waited.is_some_and(|waited| waited != 0));
        let kind = |at: usize| Kind::of_number(number(at)?);
        let text = |at: usize| match decoded.member(*fields.get(at)?)? {
            Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        let event = match meaning {
            Meaning::Requested => LockEvent::Requested {
                lock: number(0)?,
                caller: number(1)?,
                kind: kind(2)?,
                owner: number(3)? as i32,
                ends: true,
            },
            Meaning::Acquired => {
                LockEvent::Acquired { lock: number(0)?, caller: number(1)?, kind: kind(2)?, waited }
            }
            Meaning::Refused => LockEvent::Refused { lock: number(0)?, caller: number(1)?, kind: kind(2)? },
            Meaning::Released => LockEvent::Released { lock: number(0)? },
            Meaning::NotReleased => LockEvent::NotReleased { lock: number(0)? },
            Meaning::ConditionWait => {
                LockEvent::ConditionWait { condition: number(0)?, lock: number(1)?, caller: number(2)? }
            }
            Meaning::ConditionWoken => LockEvent::ConditionWoken { condition: number(0)?, lock: number(1)? },
            Meaning::BarrierWait => LockEvent::BarrierWait { barrier: number(0)?, caller: number(1)? },
            Meaning::BarrierPassed => LockEvent::BarrierPassed { barrier: number(0)? },
            Meaning::CalledFrom => LockEvent::CalledFrom { chain: number(0)? },
            Meaning::CallChain => LockEvent::CallChain { chain: number(0)?, frames: frames(&decoded) },
            Meaning::Image => {
                LockEvent::Image { begin: number(0)?, end: number(1)?, bias: number(2)?, path: text(3)? }
            }
            Meaning::Spun => LockEvent::Spun { spins: number(0)? },
            Meaning::Place => LockEvent::Place { caller: number(0)?, file: text(1)?, line: number(2)? },
            Meaning::Shadowed => LockEvent::Shadowed { function: text(0)?, path: text(1)? },
            Meaning::TaskWait => {
                let ends = *has_given_up;
                LockEvent::Requested { lock: number(1)?, caller: origin, kind: kind(0)?, owner: 0, ends }
            }
            Meaning::TaskHas => {
                LockEvent::Acquired { lock: number(1)?, caller: origin, kind: kind(0)?, waited }
            }
            Meaning::TaskGivenUp => LockEvent::Refused { lock: number(1)?, caller: 0, kind: kind(0)? },
            Meaning::TaskReleased => {
                kind(0).filter(|kind| kind.is_held())?;
                LockEvent::Released { lock: number(1)? }
            }
            Meaning::Origin => {
                // Tasks that have names of their own would be too many.
                text(1).filter(String::is_empty)?;
                LockEvent::Origin { caller: number(0)?, file: text(2)?, line: number(3)? }
            }
            Meaning::Parked => LockEvent::Parked,
            Meaning::KernelWait => {
                LockEvent::KernelWait { lock: number(0)?, kind: Kind::of_kernel_flags(number(1)?) }
            }
            Meaning::KernelHas => LockEvent::KernelHas { lock: number(0)? },
            Meaning::FutexBegin => {
                Some(number(1)?).filter(|operation| is_futex_wait(*operation))?;
                LockEvent::FutexWait { address: number(0)? }
            }
            Meaning::FutexEnd => LockEvent::FutexEnd { result: number(0)?.cast_signed() },
        };
        Some((meaning.level(ticket), event))
    }
}

/// Names of the events that tell together of requests, acquisitions and releases.
pub(super) const TOGETHER: [&[&str]; 4] = [
    &[
        "lock:requested",
        "lock:acquired",
        "lock:refused",
        "lock:released",
        "lock:not_released",
        "lock:condition_wait",
        "lock:condition_woken",
        "lock:barrier_wait",
        "lock:barrier_passed",
    ],
    &["user_thread:wait", "user_thread:acquired", "user_thread:given_up", "user_thread:released"],
    &["contention_begin", "contention_end"],
    &["syscall_entry_futex", "syscall_exit_futex"],
];

/// Whether an operation of the futex system call sleeps (`include/uapi/linux/futex.h`): `FUTEX_WAIT`, `FUTEX_LOCK_PI`,
/// `FUTEX_WAIT_BITSET`, `FUTEX_WAIT_REQUEUE_PI`, `FUTEX_LOCK_PI2`.
fn is_futex_wait(operation: u64) -> bool {
    const COMMAND: u64 = 0x7f; // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
    matches!(operation & COMMAND, 0 | 6 | 9 | 11 | 13)
}

#[cold]
fn class_of(event: &EventRef<'_>) -> Option<Class> {
    let decoded = event.decoded();
    let (meaning, fields) = meaning(decoded.class().name.as_deref()?)?;
    let streams = &event.trace().class().data_stream_classes;
    let stream = streams.iter().position(|class| class.id == event.stream().class_id())?;
    let decoder = event.trace().decoder();
    let handle = |name: &&str| decoder.member(stream, decoded.class_index(), Scope::Payload, name);
    let has = |name: &str| {
        let mut classes = streams.iter().flat_map(|stream| &stream.event_record_classes);
        classes.any(|class| class.name.as_deref() == Some(name)) && !event.trace().leaves_out(name)
    };
    // Of waits whose ends are not recorded, nothing is known.
    let end = match meaning {
        Meaning::FutexBegin => Some("syscall_exit_futex"),
        Meaning::KernelWait => Some("contention_end"),
        _ => None,
    };
    if end.is_some_and(|end| !has(end)) {
        return None;
    }
    Some(Class {
        meaning,
        fields: fields.iter().map(handle).collect::<Option<_>>()?,
        optional: OPTIONAL.each_ref().map(handle),
        has_given_up: has(GIVEN_UP),
    })
}

fn unsigned(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => Some(number),
        Value::Signed(number, _) | Value::SignedEnumeration(number, _) => Some(number.cast_unsigned()),
        Value::Boolean(is_true) => Some(is_true.into()),
        _ => None,
    }
}

/// The elements of the one array that a call chain has.
fn frames(event: &Event<'_>) -> Vec<u64> {
    struct Elements(Vec<u64>);

    impl Visitor for Elements {
        fn value(&mut self, name: Option<&str>, value: Value<'_>) {
            if let (None, Some(element)) = (name, unsigned(value))
                && self.0.len() < FRAMES
            {
                self.0.push(element);
            }
        }

        fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}

        fn end(&mut self, _: Compound<'_>) {}
    }

    let mut elements = Elements(Vec::new());
    event.visit(Scope::Payload, &mut elements);
    elements.0
}
