//! What an event says about a lock.

use tracewing_trace::{Classes, EventRef, Places};
use tracewing_units::{Caller, Chain, LockAddress, Ticket, Tid};
use tracewing_vocabulary::{Class, kernel, lock, user_thread};

use super::account::Kind;

/// Elements of a call chain that are kept.
const FRAMES: usize = 128;
/// A wait's error where the mutex is held again, though its last owner died with it (Linux's errno.h).
const EOWNERDEAD: i32 = 130;

/// An event of provider `lock`, or one of the kernel's about its own locks. Locks and places are addresses.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LockEvent {
    Requested {
        lock: LockAddress,
        caller: Caller,
        kind: Kind,
        owner: Option<Tid>,
        /// Whether an event would say that it is given up.
        ends: bool,
    },
    Acquired {
        lock: LockAddress,
        caller: Caller,
        kind: Kind,
        /// Whether it could not have it at once, as the event says; old ones of user threads do not.
        waited: bool,
    },
    Refused {
        lock: LockAddress,
        caller: Caller,
        kind: Kind,
        /// Whether it has waited, of user threads; old ones always have.
        waited: bool,
    },
    Released {
        lock: LockAddress,
    },
    NotReleased {
        lock: LockAddress,
    },
    ConditionWait {
        condition: LockAddress,
        lock: LockAddress,
        caller: Caller,
    },
    ConditionWoken {
        condition: LockAddress,
        lock: LockAddress,
        /// Whether no time limit or error has ended the wait.
        came: bool,
    },
    BarrierWait {
        barrier: LockAddress,
        caller: Caller,
    },
    BarrierPassed {
        barrier: LockAddress,
    },
    CalledFrom {
        chain: Chain,
    },
    CallChain {
        chain: Chain,
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
        caller: Caller,
        file: String,
        line: u64,
    },
    /// File and line of requests of user threads that have this number as their caller, in every process.
    Origin {
        caller: Caller,
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
        lock: LockAddress,
        kind: Kind,
    },
    KernelHas {
        lock: LockAddress,
    },
    /// The thread sleeps until a waker of the word at this address wakes it, if the word has the expected
    /// value.
    FutexWait {
        address: LockAddress,
    },
    /// A futex system call ends.
    FutexEnd {
        result: i64,
    },
    /// The thread exits: it waits for nothing of its program any more.
    Exits,
}

impl LockEvent {
    /// Whether it is about a lock of the kernel.
    pub(super) fn is_kernels(&self) -> bool {
        matches!(self, Self::KernelWait { .. } | Self::KernelHas { .. })
    }
}

/// Whose locks an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Those of threads, as the C library has them.
    Thread,
    /// A user thread's; events with the same ticket belong together: 0 if the request began before it was
    /// recorded, `None` in recordings without tickets.
    Task(Option<Ticket>),
    /// The kernel's own, from `contention_begin` and `contention_end`.
    Kernel,
}

/// What is known of an event class.
#[derive(Debug)]
struct Known {
    class: Class,
    places: Places,
    /// Whether the trace has events of requests that are given up.
    has_given_up: bool,
}

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// `None` for events about something else.
    classes: Classes<Option<Known>>,
}

impl Reader {
    /// Whether events of this class are about locks.
    pub(super) fn knows(&mut self, event: &EventRef<'_>) -> bool {
        self.classes.of(event, known_of).is_some()
    }

    /// Decodes an event; `None` if it is not about locks, or lacks fields.
    pub(super) fn read(&mut self, event: &EventRef<'_>) -> Option<(Level, LockEvent)> {
        let known = self.classes.of(event, known_of).as_ref()?;
        match known.class {
            Class::Lock(class) => Some((Level::Thread, of_lock(class, &known.places, event)?)),
            Class::UserThread(class) => of_task(class, known, event),
            Class::Kernel(class) => of_kernel(class, &known.places, event),
            _ => None,
        }
    }
}

/// What an event of provider `lock` says of a lock.
fn of_lock(class: lock::Class, of: &Places, event: &EventRef<'_>) -> Option<LockEvent> {
    Some(match class {
        lock::Class::Requested => {
            let lock::Requested { lock, caller, kind, owner } = of.read(event)?;
            LockEvent::Requested { lock, caller, kind: kind?.into(), owner, ends: true }
        }
        lock::Class::Acquired => {
            let lock::Acquired { lock, caller, kind, waited } = of.read(event)?;
            LockEvent::Acquired { lock, caller, kind: kind?.into(), waited: waited.unwrap_or(false) }
        }
        lock::Class::Refused => {
            let lock::Refused { lock, caller, kind, .. } = of.read(event)?;
            LockEvent::Refused { lock, caller, kind: kind?.into(), waited: false }
        }
        lock::Class::Released => LockEvent::Released { lock: of.read::<lock::Released>(event)?.lock },
        lock::Class::NotReleased => {
            LockEvent::NotReleased { lock: of.read::<lock::NotReleased>(event)?.lock }
        }
        lock::Class::ConditionWait => {
            let lock::ConditionWait { condition, lock, caller } = of.read(event)?;
            LockEvent::ConditionWait { condition, lock, caller }
        }
        lock::Class::ConditionWoken => {
            let lock::ConditionWoken { condition, lock, error } = of.read(event)?;
            let came = error.is_none_or(|error| error == 0 || error == EOWNERDEAD);
            LockEvent::ConditionWoken { condition, lock, came }
        }
        lock::Class::BarrierWait => {
            let lock::BarrierWait { barrier, caller } = of.read(event)?;
            LockEvent::BarrierWait { barrier, caller }
        }
        lock::Class::BarrierPassed => {
            LockEvent::BarrierPassed { barrier: of.read::<lock::BarrierPassed>(event)?.barrier }
        }
        class => return of_place(class, of, event),
    })
}

/// What an event of provider `lock` says of places in programs, and of tries.
fn of_place(class: lock::Class, of: &Places, event: &EventRef<'_>) -> Option<LockEvent> {
    Some(match class {
        lock::Class::CalledFrom => LockEvent::CalledFrom { chain: of.read::<lock::CalledFrom>(event)?.chain },
        lock::Class::CallChain => {
            let lock::CallChain { chain, mut frames } = of.read(event)?;
            frames.truncate(FRAMES);
            LockEvent::CallChain { chain, frames }
        }
        lock::Class::Image => {
            let lock::Image { begin, end, bias, path } = of.read(event)?;
            LockEvent::Image { begin, end, bias, path: text(path) }
        }
        lock::Class::Spun => LockEvent::Spun { spins: of.read::<lock::Spun>(event)?.spins },
        lock::Class::Place => {
            let lock::Place { caller, file, line } = of.read(event)?;
            LockEvent::Place { caller, file: text(file), line: line.into() }
        }
        lock::Class::Shadowed => {
            let lock::Shadowed { function, path } = of.read(event)?;
            LockEvent::Shadowed { function: text(function), path: text(path) }
        }
        lock::Class::Requested
        | lock::Class::Acquired
        | lock::Class::Refused
        | lock::Class::Released
        | lock::Class::NotReleased
        | lock::Class::ConditionWait
        | lock::Class::ConditionWoken
        | lock::Class::BarrierWait
        | lock::Class::BarrierPassed
        | lock::Class::Posted
        | lock::Class::ConditionSignalled => return None,
    })
}

/// What an event of provider `user_thread` says of locks.
fn of_task(class: user_thread::Class, known: &Known, event: &EventRef<'_>) -> Option<(Level, LockEvent)> {
    let of = &known.places;
    Some(match class {
        user_thread::Class::Wait => {
            let user_thread::Wait { kind, object, ticket, origin } = of.read(event)?;
            let (kind, caller) = (kind?.into(), origin.map_or(Caller::UNKNOWN, Caller::from));
            let ends = known.has_given_up;
            (Level::Task(ticket), LockEvent::Requested { lock: object, caller, kind, owner: None, ends })
        }
        user_thread::Class::Acquired => {
            let user_thread::Acquired { kind, object, ticket, origin, waited } = of.read(event)?;
            let (kind, caller) = (kind?.into(), origin.map_or(Caller::UNKNOWN, Caller::from));
            let waited = waited.unwrap_or(false);
            (Level::Task(ticket), LockEvent::Acquired { lock: object, caller, kind, waited })
        }
        user_thread::Class::GivenUp => {
            let user_thread::GivenUp { kind, object, ticket, origin, waited } = of.read(event)?;
            let (kind, caller) = (kind?.into(), origin.map_or(Caller::UNKNOWN, Caller::from));
            let waited = waited.unwrap_or(true);
            (Level::Task(ticket), LockEvent::Refused { lock: object, caller, kind, waited })
        }
        user_thread::Class::Released => {
            let user_thread::Released { kind, object, ticket } = of.read(event)?;
            kind.filter(|kind| Kind::from(*kind).is_held())?;
            (Level::Task(ticket), LockEvent::Released { lock: object })
        }
        user_thread::Class::Origin => {
            let user_thread::Origin { origin, name, file, line, .. } = of.read(event)?;
            // Tasks that have names of their own would be too many.
            let (file, line) = file.zip(line).filter(|_| name.is_empty())?;
            (Level::Thread, LockEvent::Origin { caller: origin.into(), file: text(file), line: line.into() })
        }
        user_thread::Class::Park => (Level::Thread, LockEvent::Parked),
        _ => return None,
    })
}

/// Decodes a kernel event about its own locks, or about futexes.
fn of_kernel(class: kernel::Class, of: &Places, event: &EventRef<'_>) -> Option<(Level, LockEvent)> {
    Some(match class {
        kernel::Class::ContentionBegin => {
            let kernel::ContentionBegin { lock_addr, flags } = of.read(event)?;
            let kind = Kind::of_kernel_flags(flags);
            (Level::Kernel, LockEvent::KernelWait { lock: lock_addr, kind })
        }
        kernel::Class::ContentionEnd => {
            let lock = of.read::<kernel::ContentionEnd>(event)?.lock_addr;
            (Level::Kernel, LockEvent::KernelHas { lock })
        }
        kernel::Class::FutexEntry => {
            let kernel::FutexEntry { uaddr, op } = of.read(event)?;
            is_futex_wait(op).then_some((Level::Thread, LockEvent::FutexWait { address: uaddr }))?
        }
        kernel::Class::FutexExit => {
            let result = of.read::<kernel::FutexExit>(event)?.ret;
            (Level::Thread, LockEvent::FutexEnd { result })
        }
        kernel::Class::ThreadExit => (Level::Thread, LockEvent::Exits),
        _ => return None,
    })
}

/// Classes that each report one step of a lock's use: requests, acquisitions and releases.
pub(super) const TOGETHER: [&[&str]; 4] = [
    &[
        lock::Requested::NAME,
        lock::Acquired::NAME,
        lock::Refused::NAME,
        lock::Released::NAME,
        lock::NotReleased::NAME,
        lock::ConditionWait::NAME,
        lock::ConditionWoken::NAME,
        lock::BarrierWait::NAME,
        lock::BarrierPassed::NAME,
    ],
    &[
        user_thread::Wait::NAME,
        user_thread::Acquired::NAME,
        user_thread::GivenUp::NAME,
        user_thread::Released::NAME,
    ],
    &[kernel::ContentionBegin::NAME, kernel::ContentionEnd::NAME],
    &[kernel::FutexEntry::NAME, kernel::FutexExit::NAME],
];

/// Whether an operation of the futex system call sleeps (`include/uapi/linux/futex.h`): `FUTEX_WAIT`,
/// `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`, `FUTEX_WAIT_REQUEUE_PI`, `FUTEX_LOCK_PI2`.
fn is_futex_wait(operation: u64) -> bool {
    const COMMAND: u64 = 0x7f; // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
    matches!(operation & COMMAND, 0 | 6 | 9 | 11 | 13)
}

/// Whether any event of this class is about locks.
fn is_about_locks(class: Class) -> bool {
    use user_thread::Class::{Acquired, GivenUp, Origin, Park, Released, Wait};
    match class {
        Class::Lock(_) => true,
        Class::UserThread(class) => {
            matches!(class, Wait | Acquired | GivenUp | Released | Origin | Park)
        }
        Class::Kernel(class) => matches!(
            class,
            kernel::Class::ContentionBegin
                | kernel::Class::ContentionEnd
                | kernel::Class::FutexEntry
                | kernel::Class::FutexExit
                | kernel::Class::ThreadExit
        ),
        _ => false,
    }
}

#[cold]
fn known_of(event: &EventRef<'_>) -> Option<Known> {
    let (class, places) = tracewing_trace::known(event)?;
    if !is_about_locks(class) {
        return None;
    }
    let streams = &event.trace().class().data_stream_classes;
    let has = |name: &str| {
        let mut classes = streams.iter().flat_map(|stream| &stream.event_record_classes);
        classes.any(|class| class.name.as_deref() == Some(name)) && !event.trace().leaves_out(name)
    };
    // Of waits whose ends are not recorded, nothing is known.
    let end = match class {
        Class::Kernel(kernel::Class::FutexEntry) => Some(kernel::FutexExit::NAME),
        Class::Kernel(kernel::Class::ContentionBegin) => Some(kernel::ContentionEnd::NAME),
        _ => None,
    };
    if end.is_some_and(|end| !has(end)) {
        return None;
    }
    Some(Known { class, places, has_given_up: has(user_thread::GivenUp::NAME) })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
