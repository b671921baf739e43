//! What a viewer shows: nested containers, each with a timeline, and the names of what appears on them.

use std::collections::BTreeMap;
use tracewing_analysis::{Party, Ran};
use tracewing_timeline::{Class, StateId, StateNames};
use tracewing_trace::super_trace::Name;
use tracewing_units::{Caller, Cpu, Pid, Task, Tid, Timestamp};

/// Index of a container.
pub(crate) type ContainerId = u32;

/// Index of a counter.
pub(crate) type CounterId = u32;

/// Index of a name.
pub(crate) type NameId = u32;

#[derive(Debug)]
pub(crate) struct Model {
    pub containers: Vec<Container>,
    pub counters: Vec<Counter>,
    pub names: Names,
    /// Beginning and end of the export, in ns on the recording's clock.
    pub begin: Timestamp,
    pub end: Timestamp,
    /// Whether the recording follows only some LWPs.
    pub partial: bool,
    /// Whether functions are left out, because not all of their ends are there.
    pub lacks_functions: bool,
    /// Whether waits for locks, or holds, are left out, because not all events that mark them are there.
    pub lacks_locks: bool,
}

impl Default for Model {
    fn default() -> Self {
        let counters = vec![Counter { name: "ready threads".to_owned(), cpu: None }];
        let (containers, names) = Default::default();
        Model {
            containers,
            counters,
            names,
            begin: Timestamp::ORIGIN,
            end: Timestamp::ORIGIN,
            partial: false,
            lacks_functions: false,
            lacks_locks: false,
        }
    }
}

impl Model {
    /// Decides which containers are shown and under which label, and adds processes. Call it after everything
    /// else is known.
    pub(crate) fn finish(&mut self, ran: &Ran) {
        (self.begin, self.end, self.partial) = (ran.begin_ns, ran.end_ns, ran.partial);
        let mut process_names = BTreeMap::new();
        for container in &mut self.containers {
            let followed = !container.is_stranger(self.partial);
            container.shown = container.begin <= container.end
                && match container.kind {
                    Kind::Lwp { .. } => container.ended && followed,
                    Kind::Task { .. } => container.ended,
                    Kind::Cpu { .. } | Kind::Process { .. } | Kind::Functions { .. } | Kind::Locks { .. } => {
                        true
                    }
                };
            if let Kind::Lwp { tid } = container.kind
                && let pid = tid.as_process()
                && container.process == Some(pid)
            {
                process_names.insert(pid, container.own_name.clone());
            }
        }
        let mut processes: BTreeMap<Option<Pid>, Container> = BTreeMap::new();
        for container in self.containers.iter().filter(|container| container.shown) {
            let (begin, end, pid) = (container.begin, container.end, container.process);
            self.begin = self.begin.min(begin);
            self.end = self.end.max(end);
            if let Kind::Cpu { .. } = container.kind {
                continue;
            }
            let process = processes.entry(pid).or_insert_with(|| {
                let own_name = pid.and_then(|pid| process_names.remove(&pid)).unwrap_or_default();
                let label = self.names.add(String::new(), Use::Container);
                Container {
                    own_name,
                    begin,
                    end,
                    shown: true,
                    ..Container::new(Kind::Process { pid }, label)
                }
            });
            (process.begin, process.end) = (process.begin.min(begin), process.end.max(end));
        }
        let first = self.containers.len() as ContainerId;
        let ids: BTreeMap<_, _> = processes.keys().copied().zip(first..).collect();
        for container in &mut self.containers {
            if !matches!(container.kind, Kind::Cpu { .. } | Kind::Process { .. }) {
                container.parent = ids.get(&container.process).copied();
            }
        }
        self.containers.extend(processes.into_values());
        for container in &self.containers {
            self.names.set(container.label, container.label());
        }
    }

    /// Containers that are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (ContainerId, &Container)> {
        (0..).zip(&self.containers).filter(|(_, container)| container.shown)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counter {
    pub name: String,
    /// The CPU that it belongs to; `None` if it covers the whole recording.
    pub cpu: Option<Cpu>,
}

impl Counter {
    /// Number of LWPs that wait for a CPU; always the first counter.
    pub(crate) const READY: CounterId = 0;

    /// The name, with the CPU's number.
    pub(crate) fn label(&self) -> String {
        match self.cpu {
            Some(cpu) => format!("{} of CPU {cpu}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Something with a timeline of its own.
#[derive(Debug)]
pub(crate) struct Container {
    pub kind: Kind,
    /// Process of an LWP or a user thread, if the events report it: the thread id of its first thread.
    pub process: Option<Pid>,
    /// The process's container, set by [`Model::finish`].
    pub parent: Option<ContainerId>,
    /// The name that it gave itself; may be empty.
    pub own_name: String,
    /// The text that it is shown with.
    pub label: NameId,
    /// First and last time, in ns on the recording's clock.
    pub begin: Timestamp,
    pub end: Timestamp,
    /// Whether the recording follows it; always false for CPUs and processes.
    pub followed: bool,
    /// Whether its end was reported. That happens only if the filter lets it through.
    pub ended: bool,
    /// Whether it is shown: threads that were only seen next to the followed ones are not.
    pub shown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cpu {
        number: Cpu,
    },
    /// A process; `None` collects all LWPs and user threads whose process no event reports.
    Process {
        pid: Option<Pid>,
    },
    Lwp {
        tid: Tid,
    },
    Task {
        number: Task,
    },
    /// The functions of an LWP.
    Functions {
        tid: Tid,
    },
    /// Locks of an LWP or a user thread. Locks that it holds or waits for at the same time are in separate
    /// containers.
    Locks {
        of: Party,
        number: usize,
    },
}

impl Container {
    pub(crate) fn new(kind: Kind, label: NameId) -> Self {
        Container {
            kind,
            process: None,
            parent: None,
            own_name: String::new(),
            label,
            begin: Timestamp::MAX,
            end: Timestamp::MIN,
            followed: false,
            ended: false,
            shown: false,
        }
    }

    /// Whether it is an LWP that a recording of some threads does not follow.
    pub(crate) fn is_stranger(&self, partial: bool) -> bool {
        partial && matches!(self.kind, Kind::Lwp { .. }) && !self.followed
    }

    /// Marks the container as ended and stores its final description.
    pub(crate) fn ends(&mut self, process: Option<Pid>, name: &str, followed: bool) {
        (self.process, self.followed, self.ended) = (process, followed, true);
        name.clone_into(&mut self.own_name);
    }

    /// The name, with the numbers that make it unique.
    pub(crate) fn label(&self) -> String {
        let numbers = match (self.kind, self.process) {
            (Kind::Cpu { number }, _) => return format!("CPU {number}"),
            (Kind::Process { pid: None }, _) => return "unknown process".to_owned(),
            (Kind::Process { pid: Some(number) }, _) => number.to_string(),
            (Kind::Lwp { tid: number }, _) => number.to_string(),
            (Kind::Task { number }, Some(process)) => format!("{process}/{number}"),
            (Kind::Functions { tid }, _) => return format!("functions of {tid}"),
            (Kind::Locks { of, number }, process) => {
                let of = match (of, process) {
                    (Party::Thread(tid), _) => tid.to_string(),
                    (Party::Task(_, task), Some(process)) => format!("{process}/{task}"),
                    (Party::Task(_, task), None) => format!("?/{task}"),
                    (Party::Place(_, Caller(origin)), _) => format!("{origin:#x}"),
                };
                return match number {
                    0 => format!("locks of {of}"),
                    _ => format!("more locks ({number}) of {of}"),
                };
            }
            (Kind::Task { number }, None) => format!("?/{number}"),
        };
        match self.own_name.is_empty() {
            true => numbers,
            false => format!("{} {numbers}", self.own_name),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Use {
    #[default]
    Unknown,
    User,
    SystemCall,
    Interrupt,
    /// On a CPU in user code, spinning for a lock.
    Spinning,
    /// On a CPU; in user or kernel code is unknown.
    Running,
    Waiting,
    Blocked,
    Nested,
    Idle,
    /// A container that runs on a CPU.
    Container,
    Function,
    /// A function that a sample hit, or one in the call chain of a sample.
    Sampled,
    /// A lock that is held.
    Held,
    /// A lock that a thread or task waits for.
    Awaited,
    Event,
}

impl Use {
    /// That of a state.
    fn of(state: StateId, class: Class) -> Self {
        match class {
            Class::Unknown => Use::Unknown,
            // The other states of user mode are those of threads that spin.
            Class::User if state == StateId::USER => Use::User,
            Class::User => Use::Spinning,
            Class::System => Use::SystemCall,
            Class::Interrupt => Use::Interrupt,
            Class::Running => Use::Running,
            Class::Ready | Class::Preempted => Use::Waiting,
            Class::Blocked => Use::Blocked,
            Class::Nested => Use::Nested,
            Class::Idle => Use::Idle,
            Class::Call => Use::Function,
            Class::Waits => Use::Awaited,
            Class::Holds => Use::Held,
            Class::Event => Use::Event,
        }
    }
}

/// Interned names. States that are always known come first, with the numbers that they have as [`StateId`].
#[derive(Debug)]
pub(crate) struct Names {
    names: Vec<(String, Use)>,
    /// Indexed by [`StateId`].
    states: Vec<Option<NameId>>,
}

impl Default for Names {
    fn default() -> Self {
        let (mut names, states) = (Names { names: Vec::new(), states: Vec::new() }, StateNames::default());
        for number in 0..states.count() as u32 {
            names.state(StateId(number), &states);
        }
        names
    }
}

impl Names {
    pub(crate) fn add(&mut self, text: String, used: Use) -> NameId {
        self.names.push((text, used));
        (self.names.len() - 1) as NameId
    }

    pub(crate) fn set(&mut self, name: NameId, text: String) {
        self.names[name as usize].0 = text;
    }

    pub(crate) fn get(&self, name: NameId) -> &str {
        &self.names[name as usize].0
    }

    /// All names in the order of their ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = (NameId, &str, Use)> {
        self.names.iter().enumerate().map(|(number, (text, used))| (number as NameId, text.as_str(), *used))
    }

    /// The name of a state. It gets its text from [`Names::learn`].
    #[inline]
    pub(crate) fn state(&mut self, state: StateId, names: &StateNames) -> NameId {
        match self.states.get(state.0 as usize) {
            Some(Some(known)) => *known,
            _ => self.add_state(state, names),
        }
    }

    #[cold]
    fn add_state(&mut self, state: StateId, names: &StateNames) -> NameId {
        let name = self.add(String::new(), Use::of(state, names.class(state)));
        *at(&mut self.states, state.0 as usize) = Some(name);
        name
    }

    /// Sets the texts of states.
    pub(crate) fn learn<'t>(&mut self, names: &StateNames, text: impl Fn(Name) -> &'t str) {
        for (state, name) in (0..).map(StateId).zip(&self.states) {
            if let Some(name) = name {
                self.names[*name as usize].0 = names.name(state, &text);
            }
        }
    }
}

/// The element at a small index; grows the vector if needed.
pub(crate) fn at<T: Default>(of: &mut Vec<T>, number: usize) -> &mut T {
    if of.len() <= number {
        of.resize_with(number + 1, T::default);
    }
    &mut of[number]
}
