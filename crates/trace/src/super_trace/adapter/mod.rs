//! Makes [`Activity`] from the events of `tracewing-vocabulary`.
//!
//! | module | does |
//! |---|---|
//! | `meaning` | what classes mean |
//! | `kind` | what happened, by an event's fields |

mod kind;
mod meaning;

use super::activity::{Activity, Context, Kind, Name, Scope, UserThreadKind};
use super::traces::{KERNEL, PROFILE, domain};
use crate::merge::event::EventRef;
use crate::merge::fields::{Actor, Classes, Place, Places};
use crate::open::recording::{Stream, Trace};
use std::collections::{HashMap, HashSet};
use tracewing_units::{Cpu, Pid, Tid};
use tracewing_vocabulary::kernel::{Interrupt, softirq};
use tracewing_vocabulary::{kernel, lock, profile, user_thread};

use self::kind::{Fields, plain};
use self::meaning::Meaning;

/// How many names are kept apart.
pub(super) const NAMES: usize = 1 << 16;

/// Remembers what each event class means, so that names are looked up once.
#[derive(Debug, Default)]
pub struct Adapter {
    pub(super) classes: Classes<Known>,
    pub(super) names: Vec<String>,
    pub(super) numbers: HashMap<String, Name>,
    pub(super) general: General,
    /// By trace: the first threads of processes that have introduced themselves since their last exec.
    pub(super) introduced: HashSet<(usize, Tid)>,
}

/// What is known of an event class.
#[derive(Debug)]
pub(super) struct Known {
    meaning: Meaning,
    /// The thread that recorded it.
    tid: Option<Actor>,
    /// Its process, where the context has it.
    process: Option<Actor>,
    /// ftrace's flags of the CPU, if they matter (`meaning::needs_context`).
    flags: Option<Place>,
    /// Where its fields lie, if it is one of the vocabulary's.
    places: Option<Places>,
}

/// Names of softirqs and interrupts that events do not identify.
#[derive(Debug, Default)]
pub(super) struct General {
    pub(super) softirq: Name,
    pub(super) interrupt: Name,
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

impl Adapter {
    /// An adapter that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The recording is opened anew: its streams and classes may have other numbers.
    pub(super) fn reopen(&mut self) {
        self.classes = Classes::default();
    }

    /// What the super-trace needs of an event; `None` if it has no time, or a value that its name does not
    /// promise.
    pub fn activity<'e>(&mut self, event: &EventRef<'e>) -> Option<Activity<'e>> {
        let time = event.stamp()?.time;
        let (stream, (index, record)) = (event.stream_index(), event.record());
        let known = match self.classes.get(stream, index) {
            Some(known) => known,
            None => {
                let known = self.learn(event);
                self.classes.set(stream, index, known);
                self.classes.get(stream, index)?
            }
        };
        let id = |actor: &Option<Actor>| actor.as_ref()?.number(event, record.as_ref());
        // 0 is an idle thread's, and one's that the recorder cannot see from its namespace.
        let (tid, process) =
            (id(&known.tid).map(Tid), id(&known.process).filter(|&process| process > 0).map(Pid));
        let cpu = event.cpu().and_then(|cpu| u32::try_from(cpu).ok().map(Cpu));
        let mut head = Activity { time, cpu, tid, process, context: Context::Unknown, kind: Kind::Stateless };
        if let Some(flags) = known.flags.as_ref().and_then(|flags| flags.integer(event, record.as_ref())) {
            head.context = self.general.context(flags);
        }
        let of = Fields { event, record, places: known.places.as_ref() };
        let kind = match known.meaning {
            Meaning::UserThread(user_thread::Class::Wait) => {
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
                let name = interrupt_name(kind, &of).map_or(general, |name| self.number(name));
                Kind::InterruptEntry { kind, name }
            }
            Meaning::Asleep => {
                let kernel::Asleep { tid, system_call } = of.read()?;
                let call = std::str::from_utf8(system_call).ok().filter(|call| !call.is_empty());
                Kind::Asleep { tid, call: call.map(|call| self.number(call)) }
            }
            Meaning::Named => {
                let name = of.read::<profile::Thread<'_>>()?.name;
                process.map_or(Kind::Stateless, |process| Kind::Named { process, name })
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
        Scope::Kernel(stream.cpu())
    }

    pub(super) fn number(&mut self, name: &str) -> Name {
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

/// What the event itself calls an interrupt or softirq.
#[inline(always)]
fn interrupt_name<'e>(kind: Interrupt, of: &Fields<'_, 'e>) -> Option<&'e str> {
    match kind {
        Interrupt::Softirq => of.read::<kernel::SoftirqEntry>().and_then(|event| softirq(event.vec?)),
        Interrupt::Handler => {
            let event = of.read::<kernel::HandlerEntry<'_>>();
            event.and_then(|event| std::str::from_utf8(event.name?).ok())
        }
        Interrupt::Vector | Interrupt::Call => None,
    }
}
