//! What an event of the provider `profile` says.

use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::{EnvValue, Scope};
use tracewing_trace::{Actor, Classes, EventRef, Places};
use tracewing_units::{Cpu, Pid};
use tracewing_vocabulary::context::PROCESS;
use tracewing_vocabulary::environment;
use tracewing_vocabulary::profile::{self, Class, Mode};

/// An event that explains samples.
#[derive(Debug, PartialEq)]
pub(super) enum ProfileEvent {
    Mapping(Mapping),
    /// The process has a new program.
    Exec,
    /// The process has a new child.
    Fork {
        child: Pid,
    },
    KernelSymbol {
        begin: u64,
        end: u64,
        name: String,
    },
    JitSymbol {
        begin: u64,
        end: u64,
        name: String,
    },
    Counters(Vec<(String, u64)>),
}

/// A part of a file that is code in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Where in the file it begins.
    pub(super) offset: u64,
    pub(super) path: String,
    /// Hexadecimal; empty where it is not known.
    pub(super) build_id: String,
}

/// A sample. Addresses begin with the innermost.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) ip: u64,
    pub(super) period: u64,
    pub(super) in_program: bool,
    pub(super) kernel: Vec<u64>,
    pub(super) user: Vec<u64>,
}

/// What is known of an event class.
#[derive(Debug)]
struct Known {
    class: Class,
    places: Places,
    /// Where the context has the process.
    process: Actor,
}

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// `None` for events about something else.
    classes: Classes<Option<Known>>,
}

impl Reader {
    /// The sample that an event is.
    pub(super) fn sample(&mut self, event: &EventRef<'_>) -> Option<Sample> {
        let Known { class: Class::Sample, places, .. } = self.class(event)? else { return None };
        let profile::Sample { ip, period, mode, kernel, user } = places.read(event)?;
        Some(Sample { ip, period, in_program: mode == Some(Mode::User), kernel, user })
    }

    /// The content of other events, and the process that they are about.
    pub(super) fn explanation(&mut self, event: &EventRef<'_>) -> Option<(Pid, ProfileEvent)> {
        let Known { class, places: of, process } = self.class(event)?;
        if *class == Class::Sample {
            return None;
        }
        let process = process.process(event)?;
        let said = match class {
            Class::Sample => return None,
            Class::Mapping => {
                let profile::Mapping { begin, end, offset, path, build_id } = of.read(event)?;
                let (path, build_id) = (text(path), text(build_id.unwrap_or_default()));
                ProfileEvent::Mapping(Mapping { begin, end, offset, path, build_id })
            }
            Class::Thread if of.read::<profile::Thread<'_>>(event)?.exec => ProfileEvent::Exec,
            Class::Thread => return None,
            Class::Fork => match of.read::<profile::Fork>(event)?.child_pid {
                // A thread, which shares its creator's memory.
                child if child == process => return None,
                child => ProfileEvent::Fork { child },
            },
            Class::KernelSymbol => {
                let profile::KernelSymbol { begin, end, name } = of.read(event)?;
                ProfileEvent::KernelSymbol { begin, end, name: text(name) }
            }
            Class::JitSymbol => {
                let profile::JitSymbol { begin, end, name } = of.read(event)?;
                ProfileEvent::JitSymbol { begin, end, name: text(name) }
            }
            Class::Counters => ProfileEvent::Counters(Counters::of(event)),
        };
        Some((process, said))
    }

    /// Whether events of this class explain samples.
    pub(super) fn explains(&mut self, event: &EventRef<'_>) -> bool {
        self.class(event).is_some_and(|known| known.class != Class::Sample)
    }

    /// Asked of every event of a recording.
    #[inline]
    fn class(&mut self, event: &EventRef<'_>) -> Option<&Known> {
        self.classes.of(event, known_of).as_ref()
    }
}

#[cold]
fn known_of(event: &EventRef<'_>) -> Option<Known> {
    match tracewing_trace::known(event)? {
        (tracewing_vocabulary::Class::Profile(class), places) => {
            Some(Known { class, places, process: Actor::of(event, &PROCESS)? })
        }
        _ => None,
    }
}

/// How the trace's samples were taken.
#[derive(Debug, Default)]
pub(super) struct Sampling {
    /// Event that triggers a sample, such as `cpu-clock`, from the trace's environment.
    pub trigger: String,
    /// The requested number per second.
    pub hertz: u64,
    /// Whether callers were found in copies of stacks.
    pub copies_stacks: bool,
}

#[cold]
pub(super) fn sampling(event: &EventRef<'_>) -> Sampling {
    let env = |name| event.trace().class().env(name);
    let trigger = match env(environment::PROFILE_EVENT) {
        Some(EnvValue::String(trigger)) => trigger.clone(),
        _ => String::new(),
    };
    let hertz = match env(environment::PROFILE_HERTZ) {
        Some(EnvValue::Integer(hertz)) => u64::try_from(*hertz).unwrap_or(0),
        _ => 0,
    };
    let copies_stacks = matches!(
        env(environment::PROFILE_CALL_GRAPH),
        Some(EnvValue::String(call_graph)) if call_graph == environment::STACK_COPIES
    );
    Sampling { trigger, hertz, copies_stacks }
}

/// The CPU that an event's counters are of, if they are of one.
pub(super) fn counts_for_cpu(event: &EventRef<'_>) -> Option<Cpu> {
    match event.trace().class().env(environment::PROFILE_COUNTERS) {
        Some(EnvValue::String(of)) if of == environment::OF_CPU => event.cpu()?.try_into().ok().map(Cpu),
        _ => None,
    }
}

/// The counters of an event `profile:counters`, and their values.
pub(super) fn counts(event: &EventRef<'_>) -> Vec<(String, u64)> {
    Counters::of(event)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of `profile:counters`, whose names are the counters'.
struct Counters(Vec<(String, u64)>);

impl Counters {
    fn of(event: &EventRef<'_>) -> Vec<(String, u64)> {
        let mut counters = Self(Vec::new());
        event.decoded().visit(Scope::Payload, &mut counters);
        counters.0
    }
}

impl Visitor for Counters {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        if let (Some(name), Value::Unsigned(count, _)) = (name, value) {
            self.0.push((name.to_owned(), count));
        }
    }

    fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}

    fn end(&mut self, _: Compound<'_>) {}
}
