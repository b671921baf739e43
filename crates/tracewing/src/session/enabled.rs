//! What a session enables of the program's classes: their ids, and the decisions of its rules.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewing_abi::first;
use tracewing_abi::message::{ClassesWriter, MAX_MESSAGE, decode_classes};
use tracewing_consumer::classes::Classes;
use tracewing_consumer::firsts::{Bound, Firsts, Found};
use tracewing_rules::{Decision, Process, Rule, Rules, TooManyRules};
use tracewing_trigger::{Guard, Lock};
use tracewing_units::Pid;

use crate::agent::{Answer, Granted, Registrar};
use crate::class::EventClass;

/// Held from a decision until it is in force, so that decisions take effect in the order in which they are
/// made. A child that is forked in the meantime finds it free.
pub(super) fn turn() -> Guard<'static> {
    static TURN: Lock = Lock::new();
    TURN.lock()
}

/// Shared by the session, its thread, and threads that load a library with classes.
pub(super) struct Enabled {
    state: Mutex<State>,
    /// A forked child finds its parent's copy, perhaps in the middle of a change, and leaves it alone.
    pid: Pid,
    name: String,
    firsts: Arc<Firsts>,
}

pub(super) struct State {
    pub(super) classes: Classes,
    rules: Rules,
    /// Lines for the user.
    pub(super) notes: Vec<String>,
    /// Why classes that came later are not recorded.
    pub(super) error: Option<tracewing_consumer::Error>,
}

impl Enabled {
    pub(super) fn new(classes: Classes, rules: Rules, firsts: Arc<Firsts>) -> Arc<Self> {
        let program = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_owned()));
        let name = program.unwrap_or_default().to_string_lossy().into_owned();
        let state = Mutex::new(State { classes, rules, notes: Vec::new(), error: None });
        Arc::new(Self { state, pid: Pid::from_unsigned(std::process::id()), name, firsts })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the agent calls for classes that the session does not know yet.
    pub(super) fn registrar(self: &Arc<Self>) -> Registrar {
        let this = self.clone();
        Arc::new(move |classes| match Pid::from_unsigned(std::process::id()) == this.pid {
            true => {
                let turn = Some(turn());
                Answer { grants: this.register(classes), turn, ..Answer::default() }
            }
            false => Answer::default(),
        })
    }

    fn register(&self, classes: &[&'static EventClass]) -> Vec<Granted> {
        let descriptions: Vec<Vec<u8>> = classes.iter().map(|class| encode(class)).collect();
        let mut state = self.state();
        let registered = state.classes.describe(descriptions.iter().map(Vec::as_slice), |_| true);
        state.notes.extend(registered.refused);
        self.decide(&mut state, registered.ids)
    }

    /// Takes classes that were found in the buffers, and that the agent has not described: they are of a
    /// forked child. Says whether something is known now that was not.
    pub(super) fn find(&self, found: Found) -> bool {
        let mut state = self.state();
        for (key, description) in &found.descriptions {
            let registered = state.classes.describe([&**description], |_| true);
            state.notes.extend(registered.refused);
            if registered.ids == [0] {
                self.firsts.bind(*key, Bound::Unknown);
            }
            self.decide(&mut state, registered.ids);
        }
        found.is_waited_for()
    }

    /// Adds a rule, and returns what the session enables from now on.
    pub(super) fn change(&self, rule: Rule) -> Result<Vec<Granted>, TooManyRules> {
        let mut state = self.state();
        state.rules.amend(rule)?;
        let ids = state.classes.described().map(|(id, _)| id).collect();
        Ok(self.decide(&mut state, ids))
    }

    /// The rules' decisions about the classes with these ids, which are all in the metadata when it
    /// returns.
    fn decide(&self, state: &mut State, ids: Vec<u16>) -> Vec<Granted> {
        let process = Process { pid: self.pid, name: &self.name };
        let mut grants = Vec::new();
        for id in ids {
            let class = state.classes.class(id);
            // Of first events the trace has none.
            if class.as_ref().is_some_and(|class| class.name == first::NAME) {
                self.firsts.begin(id);
                grants.push(Granted { id, on: true, filter: Vec::new() });
                continue;
            }
            let decision = class.map(|class| state.rules.decide(&class, &process));
            let filter = match decision {
                Some(Ok(Decision::On { filter })) => Some(filter.map(Vec::from).unwrap_or_default()),
                Some(Err(error)) => {
                    state.notes.push(error.to_string());
                    None
                }
                Some(Ok(Decision::Off)) | None => None,
            };
            if let Some(key) = state.classes.key(id) {
                let bound = filter.as_ref().map_or(Bound::Off, |filter| Bound::on(id, filter));
                self.firsts.bind(key, bound);
            }
            grants.push(Granted { id, on: filter.is_some(), filter: filter.unwrap_or_default() });
        }
        let is_first = |id| state.classes.class(id).is_some_and(|class| class.name == first::NAME);
        let wanted: Vec<u16> =
            grants.iter().filter(|grant| grant.on && !is_first(grant.id)).map(|grant| grant.id).collect();
        if let Err(error) = state.classes.enable(wanted) {
            state.error.get_or_insert(error);
            grants.iter_mut().for_each(|grant| grant.on = false);
        }
        grants
    }
}

impl std::fmt::Debug for Enabled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enabled").finish_non_exhaustive()
    }
}

/// A class's description as bytes; empty, and thus refused, if it were too large, which no class is whose
/// declaration has been compiled.
fn encode(class: &'static EventClass) -> Vec<u8> {
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut encoded = || {
        let mut writer = ClassesWriter::new(&mut buffer).ok()?;
        writer.push(class.description()).ok()?;
        let description = decode_classes(writer.finish()).ok()?.next()?.ok()?;
        Some(description.to_vec())
    };
    encoded().unwrap_or_default()
}
