//! Numbers of states in an index: those of threads and tasks, and those of CPUs, which say which thread ran.

use crate::format::State;
use crate::row::RowId;
use tracewing_analysis::Names;
use tracewing_timeline::{Class, StateId, StateNames};
use tracewing_trace::super_trace::Name;

/// What a state of an index is.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The state of this number of the timeline's.
    Timeline(StateId),
    /// A CPU ran this thread.
    Ran(RowId),
}

/// The states that have occurred, by number.
#[derive(Debug)]
pub(crate) struct Table {
    states: Vec<(Class, Source)>,
    /// By the timeline's number.
    numbers: Vec<Option<StateId>>,
}

impl Table {
    /// The first states have the same numbers as the timeline's.
    pub(crate) fn new(names: &StateNames) -> Self {
        let mut table = Table { states: Vec::new(), numbers: Vec::new() };
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
        if self.numbers.len() <= state.0 as usize {
            self.numbers.resize(state.0 as usize + 1, None);
        }
        self.numbers[state.0 as usize] = Some(number);
        number
    }

    /// A new state: a CPU runs this thread, which is in a state of this class.
    pub(crate) fn add_ran(&mut self, class: Class, thread: RowId) -> StateId {
        self.add(class, Source::Ran(thread))
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
    pub(crate) fn finish(&self, names: &StateNames, texts: &Names) -> Vec<State> {
        let text = |name: Name| texts.get(name);
        let state = |(class, source): &(Class, Source)| match *source {
            Source::Timeline(state) => State {
                class: *class,
                name: names.name(state, text),
                about: names.about(state, text).to_owned(),
                thread: None,
            },
            Source::Ran(row) => {
                State { class: *class, name: String::new(), about: String::new(), thread: Some(row) }
            }
        };
        self.states.iter().map(state).collect()
    }
}
