//! What classes of events mean, looked up once for each.

use tracewing_ctf::model::Scope as FieldScope;
use tracewing_vocabulary::context::{FLAGS, PROCESS, TID};
use tracewing_vocabulary::kernel::{Interrupt, InterruptEvent, SystemCall};
use tracewing_vocabulary::{Class, environment, kernel, lock, own, profile, recorder, user_thread};

use super::super::activity::Name;
use super::super::traces::{KERNEL, PROFILE, class_names, domain, is_kernel, text_of};
use super::{Adapter, General, Known};
use crate::merge::event::EventRef;
use crate::merge::fields::{Actor, Place, Places};
use crate::open::recording::Trace;

/// What an event of a class says, as far as the class alone determines it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    Switch,
    Waking,
    Wakeup,
    Fork,
    NewTask,
    Exec,
    Exit,
    SystemCall(Name),
    /// A system call whose end is not recorded; whether it returns to the program at once.
    UnendedCall(Name, bool),
    SystemCallEnd(Name),
    /// The interrupt's name, if its field does not contain it.
    InterruptEntry(Interrupt, Name),
    InterruptExit(Interrupt),
    Raise,
    Socket,
    PageFault {
        user: bool,
    },
    Introduction,
    Dump,
    Asleep,
    KnownThread,
    UserThread(user_thread::Class),
    /// For what kind of lock a thread waits: its field says that, or there is but one.
    LockWait(Option<Name>),
    LockWaitEnd,
    Sample {
        by_timer: bool,
    },
    Named,
    Made,
    Stateless,
    User,
    Kernel,
}

/// Whether an event needs the context of the CPU: it can be caused by an interrupt as well as by a thread.
fn needs_context(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Waking | Meaning::Wakeup | Meaning::Raise)
}

impl Adapter {
    #[cold]
    pub(super) fn learn(&mut self, event: &EventRef<'_>) -> Known {
        let decoded = event.decoded();
        let name = decoded.class().name.as_deref().unwrap_or_default();
        let is_ours = is_kernel(event.trace())
            && text_of(event.trace(), environment::TRACER_NAME) == Some(environment::TRACEWING);
        if is_ours {
            self.general = General { softirq: self.number("softirq"), interrupt: self.number("interrupt") };
        }
        let class = Class::of_name(name);
        let places = class.and_then(|class| Places::of(event, class));
        let class = class.filter(|_| places.is_some());
        let meaning = match domain(event.trace()) {
            Some(KERNEL) => self.kernel_meaning(name, class, event.trace()),
            Some(PROFILE) => profile_meaning(class, event.trace()),
            _ => self.user_meaning(class, event.trace()),
        };
        Known {
            meaning,
            tid: Actor::of(event, &TID),
            process: Actor::of(event, &PROCESS),
            flags: Place::find(event, FieldScope::CommonContext, &FLAGS)
                .filter(|_| needs_context(meaning) && is_ours),
            places,
        }
    }

    fn kernel_meaning(&mut self, name: &str, class: Option<Class>, trace: &Trace) -> Meaning {
        use kernel::Class::*;
        let interrupt = InterruptEvent::of_name(name).filter(|_| {
            // If events report only one end, their duration and nesting are unknown.
            InterruptEvent::counterpart(name).is_some_and(|other| describes(trace, &other))
        });
        match (interrupt, SystemCall::of_name(name), class) {
            (Some(InterruptEvent::Entry(kind, vector)), ..) => {
                let general = match kind {
                    Interrupt::Vector | Interrupt::Call => vector.unwrap_or_default(),
                    Interrupt::Handler => "interrupt",
                    Interrupt::Softirq => "softirq",
                };
                Meaning::InterruptEntry(kind, self.number(general))
            }
            (Some(InterruptEvent::Exit(kind)), ..) => Meaning::InterruptExit(kind),
            (_, Some(SystemCall::Entry(call)), _) => begun(call, self.number(call), trace),
            (_, Some(SystemCall::Exit(call)), _) => Meaning::SystemCallEnd(self.number(call)),
            (_, _, Some(Class::Kernel(class))) => match class {
                Switch => Meaning::Switch,
                Waking => Meaning::Waking,
                Wakeup | WakeupNew => Meaning::Wakeup,
                Fork => Meaning::Fork,
                NewTask => Meaning::NewTask,
                Exec => Meaning::Exec,
                ThreadExit => Meaning::Exit,
                StateDump => Meaning::Dump,
                Asleep => Meaning::Asleep,
                SoftirqRaise => Meaning::Raise,
                SocketSend | SocketReceive => Meaning::Socket,
                PageFaultUser => Meaning::PageFault { user: true },
                PageFaultKernel => Meaning::PageFault { user: false },
                SoftirqEntry | HandlerEntry | ContentionBegin | ContentionEnd | CpuFrequency | FutexEntry
                | FutexExit => Meaning::Kernel,
            },
            _ => Meaning::Kernel,
        }
    }

    fn user_meaning(&mut self, class: Option<Class>, trace: &Trace) -> Meaning {
        match class {
            Some(Class::Own(own::Class::Thread)) => Meaning::Introduction,
            Some(Class::Recorder(recorder::Class::KnownThread)) => Meaning::KnownThread,
            Some(Class::Recorder(recorder::Class::ThreadContext)) => Meaning::Stateless,
            Some(Class::UserThread(class)) => Meaning::UserThread(class),
            Some(Class::Lock(class)) => self.lock_meaning(class, trace),
            _ => Meaning::User,
        }
    }

    fn lock_meaning(&mut self, class: lock::Class, trace: &Trace) -> Meaning {
        use lock::Class::*;
        // A wait whose end is not reported would last permanently.
        let ends =
            |names: &[&str]| describes(trace, names[0]) && !names.iter().any(|name| trace.leaves_out(name));
        let is_ended = match class {
            Requested => ends(&[lock::Acquired::NAME, lock::Refused::NAME]),
            ConditionWait => ends(&[lock::ConditionWoken::NAME]),
            BarrierWait => ends(&[lock::BarrierPassed::NAME]),
            _ => true,
        };
        match class {
            _ if !is_ended => Meaning::User,
            Requested => Meaning::LockWait(None),
            ConditionWait => Meaning::LockWait(Some(self.number(lock::ConditionWait::condition.name))),
            BarrierWait => Meaning::LockWait(Some(self.number(lock::BarrierWait::barrier.name))),
            // A thread that releases a lock was cancelled while it waited for a condition, unless it
            // has reported its continuation before.
            Acquired | Refused | ConditionWoken | BarrierPassed | Released => Meaning::LockWaitEnd,
            Spun | Place | NotReleased | Posted | ConditionSignalled | CalledFrom | CallChain | Image
            | Shadowed => Meaning::User,
        }
    }
}

/// Whether a trace has all events of this name.
fn describes(trace: &Trace, name: &str) -> bool {
    class_names(trace).any(|described| described == name) && !trace.leaves_out(name)
}

/// What the begin of a system call means, which depends on whether the trace has its end.
fn begun(call: &str, name: Name, trace: &Trace) -> Meaning {
    let returns = call == SystemCall::SIGNAL_RETURN;
    let mut ends = class_names(trace).filter(|name| SystemCall::is_exit_of(name, call));
    let has_end = ends.next().is_some_and(|end| !trace.leaves_out(end));
    if has_end && !returns { Meaning::SystemCall(name) } else { Meaning::UnendedCall(name, returns) }
}

fn profile_meaning(class: Option<Class>, trace: &Trace) -> Meaning {
    match class {
        Some(Class::Profile(profile::Class::Sample)) => {
            Meaning::Sample { by_timer: text_of(trace, environment::PROFILE_EVENT) == Some("cpu-clock") }
        }
        Some(Class::Profile(profile::Class::Thread)) => Meaning::Named,
        Some(Class::Profile(profile::Class::Fork)) => Meaning::Made,
        _ => Meaning::Stateless,
    }
}
