//! What states there are: their numbers, classes and names.

use tracewing_trace::super_trace::{Doing, Mode, Name};

/// Number of classes.
pub const CLASSES: usize = 14;

/// What kind of state: what a viewer gives a colour, and statistics a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// No event determines the state, or one is missing.
    Unknown,
    /// On a CPU, in the program's own code.
    User,
    /// On a CPU, in a system call.
    System,
    /// On a CPU that an interrupt has taken.
    Interrupt,
    /// On a CPU; in user or kernel code is unknown.
    Running,
    /// It waits for a CPU, or a user thread for an LWP, since it was woken.
    Ready,
    /// It waits for one since it lost it.
    Preempted,
    /// It waits for something else.
    Blocked,
    /// A user thread that runs another one within itself.
    Nested,
    /// A CPU without a running thread.
    Idle,
    /// A thread is in a function or a span; in the track of its system calls, in one of these.
    Call,
    /// It waits for a lock.
    Waits,
    /// It has a lock.
    Holds,
    /// A nanosecond in which an event of a program happened.
    Event,
}

impl Class {
    /// All of them, by number.
    pub const ALL: [Class; CLASSES] = [
        Class::Unknown,
        Class::User,
        Class::System,
        Class::Interrupt,
        Class::Running,
        Class::Ready,
        Class::Preempted,
        Class::Blocked,
        Class::Nested,
        Class::Idle,
        Class::Call,
        Class::Waits,
        Class::Holds,
        Class::Event,
    ];

    /// The class of this number.
    pub fn from_number(number: u64) -> Option<Class> {
        Class::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether a thread in it is on a CPU, interrupts included.
    pub fn is_running(self) -> bool {
        matches!(self, Class::User | Class::System | Class::Interrupt | Class::Running)
    }
}

/// A state's number in a [`StateNames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct StateId(pub u32);

impl StateId {
    /// See [`Class::Unknown`].
    pub const UNKNOWN: StateId = StateId(0);
    /// See [`Class::User`].
    pub const USER: StateId = StateId(1);
    /// In an interrupt that no event identifies.
    pub const INTERRUPT: StateId = StateId(2);
    /// See [`Class::Running`].
    pub const RUNNING: StateId = StateId(3);
    /// See [`Class::Preempted`].
    pub const PREEMPTED: StateId = StateId(4);
    /// See [`Class::Ready`].
    pub const READY: StateId = StateId(5);
    /// Blocked on something that no event reports.
    pub const BLOCKED: StateId = StateId(6);
    /// See [`Class::Nested`].
    pub const NESTED: StateId = StateId(7);
    /// See [`Class::Idle`].
    pub const IDLE: StateId = StateId(8);
}

/// States with fixed numbers.
const FIXED: [(&str, Class); 9] = [
    ("unknown", Class::Unknown),
    ("user", Class::User),
    ("interrupt", Class::Interrupt),
    ("running", Class::Running),
    ("preempted", Class::Preempted),
    ("ready", Class::Ready),
    ("blocked", Class::Blocked),
    ("nested", Class::Nested),
    ("idle", Class::Idle),
];

/// What the name of a state is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Itself,
    SystemCall(Name),
    Cause(Name),
    Interrupt(Name),
    Lock(Name),
}

/// All states that have occurred, by number.
#[derive(Debug, Clone)]
pub struct StateNames {
    states: Vec<(About, Class)>,
    /// Indexed by [`Name`].
    calls: Vec<Option<StateId>>,
    causes: Vec<Option<StateId>>,
    interrupts: Vec<Option<StateId>>,
    spins: Vec<Option<StateId>>,
}

impl Default for StateNames {
    fn default() -> Self {
        let states = FIXED.iter().map(|(_, class)| (About::Itself, *class)).collect();
        let (calls, causes, interrupts, spins) = Default::default();
        StateNames { states, calls, causes, interrupts, spins }
    }
}

impl StateNames {
    /// The state of a thread that does this; `waits_for` is the kind of lock that it waits for.
    #[inline]
    pub fn of(&mut self, doing: Doing, waits_for: Option<Name>) -> StateId {
        match (doing, waits_for) {
            (Doing::Unknown, _) => StateId::UNKNOWN,
            (Doing::Running { mode: Mode::User, .. }, Some(lock)) => {
                known(&mut self.spins, &mut self.states, lock, (About::Lock(lock), Class::User))
            }
            (Doing::Running { mode, .. }, _) => self.of_mode(mode),
            (Doing::Runnable { preempted: true }, _) => StateId::PREEMPTED,
            (Doing::Runnable { preempted: false }, _) => StateId::READY,
            (Doing::Blocked { on: None }, _) => StateId::BLOCKED,
            (Doing::Blocked { on: Some(on) }, _) => {
                known(&mut self.causes, &mut self.states, on, (About::Cause(on), Class::Blocked))
            }
            (Doing::Nested, _) => StateId::NESTED,
        }
    }

    #[inline]
    fn of_mode(&mut self, mode: Mode) -> StateId {
        match mode {
            Mode::Unknown => StateId::RUNNING,
            Mode::User => StateId::USER,
            Mode::SystemCall(call) => {
                known(&mut self.calls, &mut self.states, call, (About::SystemCall(call), Class::System))
            }
            Mode::Interrupt(by) => self.of_interrupt(by),
        }
    }

    /// The state of a CPU, or of a thread on it, that an interrupt has taken.
    #[inline]
    pub(crate) fn of_interrupt(&mut self, by: Option<Name>) -> StateId {
        let Some(by) = by else { return StateId::INTERRUPT };
        known(&mut self.interrupts, &mut self.states, by, (About::Interrupt(by), Class::Interrupt))
    }

    /// The class of a state.
    #[inline]
    pub fn class(&self, state: StateId) -> Class {
        self.states[state.0 as usize].1
    }

    /// Number of states that have occurred.
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// What it is about, such as the system call; empty for states that are about nothing else. `text` gives
    /// the text of names.
    pub fn about<'t>(&self, state: StateId, text: impl Fn(Name) -> &'t str) -> &'t str {
        match self.states[state.0 as usize].0 {
            About::Itself => "",
            About::SystemCall(name) | About::Cause(name) | About::Interrupt(name) | About::Lock(name) => {
                text(name)
            }
        }
    }

    /// The name for people; `text` gives the text of names.
    pub fn name<'t>(&self, state: StateId, text: impl Fn(Name) -> &'t str) -> String {
        let start = match self.states[state.0 as usize].0 {
            About::Itself => return FIXED[state.0 as usize].0.to_owned(),
            About::SystemCall(_) => "system call",
            About::Cause(_) => "blocked on",
            About::Interrupt(_) => "interrupt",
            About::Lock(_) => "spinning on",
        };
        format!("{start} {}", self.about(state, text))
    }
}

/// The state of this name, added if it is new.
#[inline]
fn known(
    by_name: &mut Vec<Option<StateId>>,
    states: &mut Vec<(About, Class)>,
    name: Name,
    new: (About, Class),
) -> StateId {
    match by_name.get(name.0 as usize) {
        Some(Some(state)) => *state,
        _ => add(by_name, states, name, new),
    }
}

#[cold]
fn add(
    by_name: &mut Vec<Option<StateId>>,
    states: &mut Vec<(About, Class)>,
    name: Name,
    new: (About, Class),
) -> StateId {
    let state = StateId(states.len() as u32);
    states.push(new);
    if by_name.len() <= name.0 as usize {
        by_name.resize(name.0 as usize + 1, None);
    }
    by_name[name.0 as usize] = Some(state);
    state
}
