//! Numbers of states in an index: those of threads and tasks, and those of CPUs, which say which thread ran.

use crate::format::State;
use crate::row::RowId;
use std::collections::HashMap;
use tracewing_analysis::{FunctionId, Names};
use tracewing_timeline::{Class, StateId, StateNames};
use tracewing_trace::super_trace::Name;
use tracewing_units::LockAddress;

/// What a state of an index is.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The state of this number of the timeline's.
    Timeline(StateId),
    /// A CPU ran this thread.
    Ran(RowId),
    /// A thread was in this function.
    Called(FunctionId),
    /// A span, or an event of a program, by its number among their names.
    Own(usize),
    /// A thread was in this system call, on a CPU or not.
    SystemCall(Name),
    /// A thread waited for a lock of this kind, or had it.
    Lock(&'static str, LockAddress),
}

/// The states that have occurred, by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    states: Vec<(Class, Source)>,
    /// By the timeline's number.
    numbers: Vec<Option<StateId>>,
    functions: Vec<Option<StateId>>,
    system_calls: Vec<Option<StateId>>,
    locks: HashMap<(&'static str, LockAddress, Class), StateId>,
    /// Names of spans and events, and their states.
    own: Vec<String>,
    of_own: HashMap<(String, Class), StateId>,
}

impl Table {
    /// The first states have the same numbers as the timeline's.
    pub(crate) fn new(names: &StateNames) -> Self {
        let mut table = Table::default();
        for number in 0..names.count() as u32 {
            table.number(StateId(number), names);
        }
        table
    }

    /// The number of one of the timeline's states.
    #[inline]
    pub(crate) fn number(&mut self, state: StateId, names: &StateNames) -> StateId {
        match self.numbers.get(state.0 as usize) {
            Some(Some(known)) => *known,
            _ => self.add_number(state, names),
        }
    }

    #[cold]
    fn add_number(&mut self, state: StateId, names: &StateNames) -> StateId {
        let number = self.add(names.class(state), Source::Timeline(state));
        keep(&mut self.numbers, state.0 as usize, number);
        number
    }

    /// A new state: a CPU runs this thread, which is in a state of this class.
    pub(crate) fn add_ran(&mut self, class: Class, thread: RowId) -> StateId {
        self.add(class, Source::Ran(thread))
    }

    /// The state of a thread in a function.
    pub(crate) fn called(&mut self, function: FunctionId) -> StateId {
        let number = function as usize;
        if let Some(Some(known)) = self.functions.get(number) {
            return *known;
        }
        let new = self.add(Class::Call, Source::Called(function));
        keep(&mut self.functions, number, new);
        new
    }

    /// The state of a thread in a system call, on a CPU or not.
    #[inline]
    pub(crate) fn system_call(&mut self, call: Name) -> StateId {
        let number = call.0 as usize;
        if let Some(Some(known)) = self.system_calls.get(number) {
            return *known;
        }
        let new = self.add(Class::Call, Source::SystemCall(call));
        keep(&mut self.system_calls, number, new);
        new
    }

    /// The state of a thread that waits for a lock, or has it.
    pub(crate) fn lock(&mut self, class: Class, kind: &'static str, lock: LockAddress) -> StateId {
        if let Some(known) = self.locks.get(&(kind, lock, class)) {
            return *known;
        }
        let new = self.add(class, Source::Lock(kind, lock));
        self.locks.insert((kind, lock, class), new);
        new
    }

    /// The state of a thread that is in the span of this name, or emits the event.
    pub(crate) fn own(&mut self, class: Class, name: &str) -> StateId {
        let key = (name.to_owned(), class);
        if let Some(known) = self.of_own.get(&key) {
            return *known;
        }
        let new = self.add(class, Source::Own(self.own.len()));
        self.own.push(name.to_owned());
        self.of_own.insert(key, new);
        new
    }

    fn add(&mut self, class: Class, source: Source) -> StateId {
        self.states.push((class, source));
        StateId((self.states.len() - 1) as u32)
    }

    /// The class of a state.
    #[inline]
    pub(crate) fn class(&self, state: StateId) -> Class {
        self.states[state.0 as usize].0
    }

    /// All of them, with their names.
    pub(crate) fn finish(
        &self,
        names: &StateNames,
        texts: &Names,
        mut function: impl FnMut(FunctionId) -> String,
    ) -> Vec<State> {
        let text = |name: Name| texts.get(name);
        let mut state = |(class, source): &(Class, Source)| match *source {
            Source::Timeline(state) => State {
                class: *class,
                name: names.name(state, text),
                about: names.about(state, text).to_owned(),
                thread: None,
            },
            Source::Called(called) => {
                let name = function(called);
                State { class: *class, about: name.clone(), name, thread: None }
            }
            Source::SystemCall(call) => {
                let name = text(call).to_owned();
                State { class: *class, about: name.clone(), name, thread: None }
            }
            Source::Own(number) => {
                let name = self.own[number].clone();
                // Without its provider.
                let about = split(&name).map_or(name.as_str(), |(_, name)| name).to_owned();
                State { class: *class, name, about, thread: None }
            }
            Source::Lock(kind, lock) => {
                let about = format!("{kind} {lock:#x}");
                let name = format!("{} {about}", if *class == Class::Waits { "waits for" } else { "has" });
                State { class: *class, name, about, thread: None }
            }
            Source::Ran(row) => {
                State { class: *class, name: String::new(), about: String::new(), thread: Some(row) }
            }
        };
        self.states.iter().map(&mut state).collect()
    }
}

/// Remembers the state of a number.
fn keep(states: &mut Vec<Option<StateId>>, number: usize, state: StateId) {
    if states.len() <= number {
        states.resize(number + 1, None);
    }
    states[number] = Some(state);
}

/// The provider in a class's name, and the event's own name. A provider can be a path: `shop::db:query`.
pub(crate) fn split(name: &str) -> Option<(&str, &str)> {
    let is_single = |at: &usize| {
        let is_colon = |at: usize| name.as_bytes().get(at) == Some(&b':');
        !is_colon(at + 1) && !at.checked_sub(1).is_some_and(is_colon)
    };
    let at = name.match_indices(':').map(|(at, _)| at).find(is_single)?;
    Some((&name[..at], &name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_provider_can_be_a_path() {
        assert_eq!(split("shop:sale"), Some(("shop", "sale")));
        assert_eq!(split("shop::db:query"), Some(("shop::db", "query")));
        assert_eq!(split("shop::db:event src/db.rs:12"), Some(("shop::db", "event src/db.rs:12")));
        for name in ["", "sched_switch", "shop::db", "a:::b"] {
            assert_eq!(split(name), None, "{name}");
        }
        assert_eq!(split(":"), Some(("", "")));
    }
}
