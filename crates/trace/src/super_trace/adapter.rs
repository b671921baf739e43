//! Makes [`Activity`] from the events of `tracewing-vocabulary`.

use super::activity::{Activity, Context, Kind, Name, Scope, SwitchCause, UserThreadKind};
use super::traces::{KERNEL, PROFILE, class_names, domain, is_kernel, text_of};
use crate::merge::fields::{Actor, Classes, Place, Places};
use crate::merge::messages::EventRef;
use crate::open::recording::{Stream, Trace};
use std::collections::{HashMap, HashSet};
use tracewing_ctf::decode::Record;
use tracewing_ctf::model::Scope as FieldScope;
use tracewing_units::{Cpu, Pid, Task, Tid};
use tracewing_vocabulary::context::{FLAGS, PROCESS, TID};
use tracewing_vocabulary::kernel::{Interrupt, InterruptEvent, SystemCall, softirq};
use tracewing_vocabulary::{Class, Reader, environment, kernel, lock, own, profile, recorder, user_thread};

/// How many names are kept apart.
const NAMES: usize = 1 << 16;

/// Remembers what each event class means, so that names are looked up once.
#[derive(Debug, Default)]
pub struct Adapter {
    classes: Classes<Known>,
    names: Vec<String>,
    numbers: HashMap<String, Name>,
    general: General,
    /// By trace: the first threads of processes that have introduced themselves since their last exec.
    introduced: HashSet<(usize, Tid)>,
}

/// What is known of an event class.
#[derive(Debug)]
struct Known {
    meaning: Meaning,
    /// The thread that recorded it.
    tid: Option<Actor>,
    /// Its process, where the context has it.
    process: Option<Actor>,
    /// ftrace's flags of the CPU, if they matter ([`tells_context`]).
    flags: Option<Place>,
    /// Where its fields lie, if it is one of the vocabulary's.
    places: Option<Places>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
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
    Create,
    Existed,
    Origin,
    Rename,
    UserSwitch,
    Wake,
    UserExit,
    Wait,
    Acquired,
    GivenUp,
    Worker,
    /// For what kind of lock a thread waits: its field says that, or there is but one.
    LockWait(Option<Name>),
    LockWaitEnd,
    Sample {
        by_timer: bool,
    },
    Named,
    Made,
    Aside,
    User,
    Kernel,
}

/// Names of softirqs and interrupts that events do not identify.
#[derive(Debug, Default)]
struct General {
    softirq: Name,
    interrupt: Name,
}

impl General {
    /// What ftrace's flags say (`enum trace_flag_type` of `include/linux/trace_events.h`).
    fn context(&self, flags: i64) -> Context {
        const HARD_OR_NMI: i64 = 0x08 | 0x40;
        const SOFTIRQ: i64 = 0x10;
        match flags {
            _ if flags & HARD_OR_NMI != 0 => Context::Interrupt(self.interrupt),
            _ if flags & SOFTIRQ != 0 => Context::Softirq(self.softirq),
            _ => Context::Thread,
        }
    }
}

/// Whether an event needs the context of the CPU: it can be caused by an interrupt as well as by a thread.
fn tells_context(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Waking | Meaning::Wakeup | Meaning::Raise)
}

impl Adapter {
    /// An adapter that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the super-trace needs of an event; `None` if it has no time, or a value that its name does not
    /// promise.
    pub fn activity<'e>(&mut self, event: &EventRef<'e>) -> Option<Activity<'e>> {
        let time = event.stamp()?.time;
        let (stream, (index, record)) = (event.stream_index(), event.record());
        if self.classes.get(stream, index).is_none() {
            let known = self.learn(event);
            self.classes.set(stream, index, known);
        }
        let known = self.classes.get(stream, index)?;
        let id = |actor: &Option<Actor>| actor.as_ref()?.number(event, record.as_ref());
        // 0 is an idle thread's, and one's that the recorder cannot see from its namespace.
        let (tid, process) =
            (id(&known.tid).map(Tid), id(&known.process).filter(|&process| process > 0).map(Pid));
        let cpu = event.cpu().and_then(|cpu| u32::try_from(cpu).ok().map(Cpu));
        let mut head = Activity { time, cpu, tid, process, context: Context::Unknown, kind: Kind::Aside };
        if let Some(flags) = known.flags.as_ref().and_then(|flags| flags.integer(event, record.as_ref())) {
            head.context = self.general.context(flags);
        }
        let of = Fields { event, record, places: known.places.as_ref() };
        let kind = match known.meaning {
            Meaning::Wait => {
                let kind = of.read::<user_thread::Wait>()?.kind;
                Kind::UserThread(UserThreadKind::Wait {
                    kind: self.number(kind.map_or("", user_thread::Kind::label)),
                })
            }
            Meaning::LockWait(None) => {
                let kind = of.read::<lock::Requested>()?.kind;
                Kind::Waits { on: Some(self.number(kind.map_or("", lock::Kind::label))) }
            }
            Meaning::Raise => {
                let name = softirq(of.read::<kernel::SoftirqRaise>()?.vec)?;
                Kind::Raise { name: self.number(name) }
            }
            Meaning::InterruptEntry(kind, general) => {
                let name = match kind {
                    Interrupt::Softirq => {
                        of.read::<kernel::SoftirqEntry>().and_then(|event| softirq(event.vec?))
                    }
                    Interrupt::Handler => {
                        let event = of.read::<kernel::HandlerEntry<'_>>();
                        event.and_then(|event| std::str::from_utf8(event.name?).ok())
                    }
                    Interrupt::Vector | Interrupt::Call => None,
                };
                let name = name.map_or(general, |name| self.number(name));
                Kind::InterruptEntry { kind, name }
            }
            Meaning::Asleep => {
                let kernel::Asleep { tid, system_call } = of.read()?;
                let call = std::str::from_utf8(system_call).ok().filter(|call| !call.is_empty());
                Kind::Asleep { tid, call: call.map(|call| self.number(call)) }
            }
            Meaning::Named => {
                let name = of.read::<profile::Thread<'_>>()?.name;
                process.map_or(Kind::Aside, |process| Kind::Named { process, name })
            }
            meaning @ (Meaning::Introduction | Meaning::Exec) => {
                let Activity { kind, .. } = plain(meaning, &of, head)?;
                self.program(event.stream().trace_index(), tid, kind)
            }
            meaning => return plain(meaning, &of, head),
        };
        Some(Activity { kind, ..head })
    }

    /// Distinguishes introductions of new programs from the first one.
    #[cold]
    fn program<'e>(&mut self, trace: usize, tid: Option<Tid>, kind: Kind<'e>) -> Kind<'e> {
        match (kind, tid) {
            (Kind::Introduction { process, name }, Some(tid))
                if tid == process.first_thread() && !self.introduced.insert((trace, tid)) =>
            {
                Kind::Program { name }
            }
            (Kind::Exec { .. }, Some(tid)) => {
                self.introduced.retain(|(_, introduced)| *introduced != tid);
                kind
            }
            _ => kind,
        }
    }

    /// What a system call, another cause of waiting, or an interrupt is called.
    pub fn name(&self, name: Name) -> &str {
        self.names.get(name.0 as usize).map_or("", String::as_str)
    }

    /// All names so far, each at the place of its number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Which events a loss concerns.
    pub fn scope(trace: &Trace, stream: &Stream) -> Scope {
        match domain(trace) {
            Some(KERNEL) => {}
            Some(PROFILE) => return Scope::Samples,
            _ => return Scope::User,
        }
        Scope::Kernel(Self::stream_cpu(stream))
    }

    /// The CPU of a stream. Streams are numbered by CPU, as in `channel_0` and `uid0_1`, by us and by LTTng.
    pub fn stream_cpu(stream: &Stream) -> Option<Cpu> {
        let file = stream.name().rsplit('/').next().unwrap_or_default();
        file.rsplit('_').next().and_then(|cpu| cpu.parse().ok())
    }

    #[cold]
    fn learn(&mut self, event: &EventRef<'_>) -> Known {
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
                .filter(|_| tells_context(meaning) && is_ours),
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
                SoftirqEntry | HandlerEntry | ContentionBegin | ContentionEnd | FutexEntry | FutexExit => {
                    Meaning::Kernel
                }
            },
            _ => Meaning::Kernel,
        }
    }

    fn user_meaning(&mut self, class: Option<Class>, trace: &Trace) -> Meaning {
        match class {
            Some(Class::Own(own::Class::Thread)) => Meaning::Introduction,
            Some(Class::Recorder(recorder::Class::KnownThread)) => Meaning::KnownThread,
            Some(Class::UserThread(class)) => {
                use user_thread::Class::*;
                match class {
                    Create => Meaning::Create,
                    Existed => Meaning::Existed,
                    Origin => Meaning::Origin,
                    Name => Meaning::Rename,
                    Switch => Meaning::UserSwitch,
                    Wake => Meaning::Wake,
                    Exit => Meaning::UserExit,
                    Wait => Meaning::Wait,
                    Acquired => Meaning::Acquired,
                    GivenUp => Meaning::GivenUp,
                    Worker | Park | Unpark => Meaning::Worker,
                    Released => Meaning::User,
                }
            }
            Some(Class::Lock(class)) => {
                use lock::Class::*;
                // A wait whose end is not reported would last permanently.
                let ends = |names: &[&str]| {
                    describes(trace, names[0]) && !names.iter().any(|name| trace.leaves_out(name))
                };
                let is_ended = match class {
                    Requested => ends(&[lock::Acquired::NAME, lock::Refused::NAME]),
                    ConditionWait => ends(&[lock::ConditionWoken::NAME]),
                    BarrierWait => ends(&[lock::BarrierPassed::NAME]),
                    _ => true,
                };
                match class {
                    _ if !is_ended => Meaning::User,
                    Requested => Meaning::LockWait(None),
                    ConditionWait => Meaning::LockWait(Some(self.number("condition"))),
                    BarrierWait => Meaning::LockWait(Some(self.number("barrier"))),
                    // A thread that releases a lock was cancelled while it waited for a condition, unless it
                    // has reported its continuation before.
                    Acquired | Refused | ConditionWoken | BarrierPassed | Released => Meaning::LockWaitEnd,
                    Spun | Place | NotReleased | Posted | ConditionSignalled | CalledFrom | CallChain
                    | Image | Shadowed => Meaning::User,
                }
            }
            _ => Meaning::User,
        }
    }

    fn number(&mut self, name: &str) -> Name {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // No machine has so many; the last one represents the rest.
        if self.names.len() >= NAMES {
            return Name(NAMES as u32 - 1);
        }
        let number = Name(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
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
        _ => Meaning::Aside,
    }
}

/// The fields of an event of the vocabulary.
struct Fields<'f, 'e> {
    event: &'f EventRef<'e>,
    record: Option<Record<'e>>,
    places: Option<&'f Places>,
}

impl<'e> Fields<'_, 'e> {
    #[inline(always)]
    fn read<R: Reader<'e>>(&self) -> Option<R> {
        self.places?.read_record(self.event, self.record)
    }
}

/// The activity of a kind that meaning and fields determine completely; `head` contains the rest. It is built
/// in place, since a copy right after the write, in other sizes, would stall.
#[inline(always)]
fn plain<'e>(meaning: Meaning, of: &Fields<'_, 'e>, head: Activity<'e>) -> Option<Activity<'e>> {
    #[inline(always)]
    fn some<'e>(head: Activity<'_>, kind: Kind<'e>) -> Option<Activity<'e>> {
        let Activity { time, cpu, tid, process, context, .. } = head;
        Some(Activity { time, cpu, tid, process, context, kind })
    }
    match meaning {
        Meaning::Switch => {
            let kernel::Switch { prev_tid, prev_comm, prev_state, next_tid, next_comm } = of.read()?;
            some(
                head,
                Kind::Switch {
                    prev: prev_tid,
                    prev_name: prev_comm,
                    prev_state,
                    next: next_tid,
                    next_name: next_comm,
                },
            )
        }
        Meaning::Waking => {
            let kernel::Waking { tid, comm } = of.read()?;
            some(head, Kind::Waking { tid, name: comm })
        }
        Meaning::Wakeup => {
            let kernel::Wakeup { tid, comm } = of.read()?;
            some(head, Kind::Wakeup { tid, name: comm })
        }
        Meaning::Fork => {
            let kernel::Fork { child_tid, child_comm } = of.read()?;
            some(head, Kind::Fork { child: child_tid, name: child_comm })
        }
        Meaning::NewTask => {
            let kernel::NewTask { tid, clone_flags } = of.read()?;
            some(head, Kind::NewTask { child: tid, same_process: clone_flags & kernel::CLONE_THREAD != 0 })
        }
        Meaning::Exec => some(head, Kind::Exec { file: of.read::<kernel::Exec<'_>>()?.filename }),
        Meaning::Exit => some(head, Kind::Exit),
        Meaning::SystemCall(call) => some(head, Kind::SystemCall { call }),
        Meaning::UnendedCall(call, returns) => some(head, Kind::UnendedCall { call, returns }),
        Meaning::SystemCallEnd(call) => some(head, Kind::SystemCallEnd { call }),
        Meaning::InterruptExit(interrupt) => some(head, Kind::InterruptExit(interrupt)),
        Meaning::PageFault { user: true } => {
            let kernel::PageFaultUser { address, ip } = of.read()?;
            let is_high = |address: Option<u64>| address.is_none_or(|address| address > u64::from(u32::MAX));
            some(head, Kind::PageFault { user: true, high: is_high(address) || is_high(ip) })
        }
        Meaning::PageFault { user: false } => some(head, Kind::PageFault { user: false, high: false }),
        Meaning::Introduction => {
            let own::Thread { pid, name } = of.read()?;
            some(head, Kind::Introduction { process: pid, name })
        }
        Meaning::Dump => {
            let kernel::StateDump { tid, pid, name, r#type } = of.read()?;
            let is_kernel = r#type == Some(kernel::KERNEL_THREAD);
            some(head, Kind::Dump { tid, process: pid, name, is_kernel })
        }
        Meaning::KnownThread => {
            let recorder::KnownThread { tid, pid, name } = of.read()?;
            some(head, Kind::Dump { tid, process: pid, name, is_kernel: false })
        }
        Meaning::Socket => some(head, Kind::Socket),
        Meaning::Sample { by_timer } => {
            let user = of.read::<profile::SampledMode>()?.0 == Some(profile::Mode::User);
            some(head, Kind::Sample { user, by_timer })
        }
        Meaning::Made => {
            let profile::Fork { child_tid, child_pid } = of.read()?;
            some(head, Kind::Made { child: child_tid, process: child_pid })
        }
        Meaning::Asleep | Meaning::Named | Meaning::Aside => some(head, Kind::Aside),
        Meaning::LockWait(on @ Some(_)) => some(head, Kind::Waits { on }),
        Meaning::LockWaitEnd => some(head, Kind::Waits { on: None }),
        Meaning::User | Meaning::Wait | Meaning::LockWait(None) => some(head, Kind::User),
        Meaning::Kernel | Meaning::InterruptEntry(..) | Meaning::Raise => some(head, Kind::Kernel),
        Meaning::Create => {
            let user_thread::Create { thread, origin, .. } = of.read()?;
            some(head, Kind::UserThread(UserThreadKind::Create { thread: Task(thread), origin }))
        }
        Meaning::Existed => {
            let user_thread::Existed { thread, origin } = of.read()?;
            some(head, Kind::UserThread(UserThreadKind::Existed { thread: Task(thread), origin }))
        }
        Meaning::Origin => {
            let user_thread::Origin { origin, name, file, line, .. } = of.read()?;
            let (file, line) = file.zip(line).unwrap_or_default();
            some(head, Kind::UserThread(UserThreadKind::Origin { origin, name, file, line: line.into() }))
        }
        Meaning::Rename => {
            let user_thread::Name { thread, name } = of.read()?;
            some(head, Kind::UserThread(UserThreadKind::Rename { thread: Task(thread), name }))
        }
        Meaning::UserSwitch => {
            let user_thread::Switch { prev, next, cause } = of.read()?;
            some(
                head,
                Kind::UserThread(UserThreadKind::Switch {
                    prev: Task(prev),
                    next: Task(next),
                    cause: cause_of(cause),
                }),
            )
        }
        Meaning::Wake => some(
            head,
            Kind::UserThread(UserThreadKind::Wake { thread: Task(of.read::<user_thread::Wake>()?.thread) }),
        ),
        Meaning::UserExit => some(
            head,
            Kind::UserThread(UserThreadKind::Exit { thread: Task(of.read::<user_thread::Exit>()?.thread) }),
        ),
        Meaning::Acquired => {
            let user_thread::Acquired { waited, .. } = of.read()?;
            some(head, request_ends(waited))
        }
        Meaning::GivenUp => {
            let user_thread::GivenUp { waited, .. } = of.read()?;
            some(head, request_ends(waited))
        }
        Meaning::Worker => some(head, Kind::UserThread(UserThreadKind::Worker)),
    }
}

/// One that has not waited says nothing of what its user thread waits for: that may be another one's.
fn request_ends(waited: Option<bool>) -> Kind<'static> {
    if waited == Some(false) { Kind::User } else { Kind::UserThread(UserThreadKind::Acquired) }
}

fn cause_of(cause: Option<user_thread::Cause>) -> SwitchCause {
    use user_thread::Cause;
    match cause {
        Some(Cause::Ended) => SwitchCause::Ended,
        Some(Cause::Blocked) => SwitchCause::Blocked,
        Some(Cause::Yielded) => SwitchCause::Yielded,
        Some(Cause::Budget) => SwitchCause::Budget,
        Some(Cause::Preempted) => SwitchCause::Preempted,
        Some(Cause::Nested) => SwitchCause::Nested,
        Some(Cause::None) | None => SwitchCause::Unknown,
    }
}
