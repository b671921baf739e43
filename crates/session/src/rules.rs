//! A recording's event rules, and how they fit the event classes that programs have.

use std::collections::HashSet;

use tracewing_abi::functions::ALL_FUNCTIONS;
use tracewing_abi::schema::ClassView;
use tracewing_consumer::classes::Classes;
use tracewing_consumer::outside::is_of_other_namespace;
use tracewing_rules::{
    Action, Decision, Fit as PredicateFit, Glob, Process, Rule, Rules, TooManyRules, closest,
};
use tracewing_units::Pid;
use tracewing_vocabulary::function::Entry;
use tracewing_vocabulary::own;
use tracewing_vocabulary::user_thread::Origin;

use crate::preload::Preload;
use crate::program::Program;

/// Classes that are named where many have the same problem.
const MOST_NAMED: usize = 4;
/// What the names of the tracer's own events begin with; rules do not concern them.
const OWN: &str = own::START;

/// The rules of a recording.
#[derive(Debug)]
pub(crate) struct RecordingRules {
    rules: Rules,
    /// Those that it began with.
    first: Rules,
    /// Whether the tracer's own events are recorded.
    with_own: bool,
}

impl RecordingRules {
    /// The rules that a recording begins with; without any, every event is enabled.
    pub(crate) fn new(rules: &Rules, with_own: bool) -> Self {
        // Later rules are added after these, so "every event" has to be a rule as well.
        let rules = if rules.is_empty() { [Rule::default()].into_iter().collect() } else { rules.clone() };
        Self { first: rules.clone(), rules, with_own }
    }

    /// Whether and how a class is enabled in a process. It is disabled if a condition does not fit the class.
    pub(crate) fn decide(&self, class: &ClassView<'_>, process: &Process<'_>) -> Decision {
        if !self.with_own && is_own(class) {
            return Decision::Off;
        }
        self.rules.decide(class, process).unwrap_or(Decision::Off)
    }

    /// Whether the decision about a class may differ between processes, for example because one joined
    /// earlier.
    pub(crate) fn differ(&self) -> bool {
        self.rules != self.first || self.rules.iter().any(|rule| !rule.processes.is_empty())
    }

    /// Whether the decision about a class may depend on the process.
    pub(crate) fn ask_for_processes(&self) -> bool {
        self.rules.iter().any(|rule| !rule.processes.is_empty())
    }

    /// A line for the user about these rules in a process of another PID namespace, if one is needed.
    pub(crate) fn note_on_numbers(&self, program: &Program) -> Option<String> {
        self.rules.iter().find_map(|rule| note_on_numbers(rule, program))
    }

    /// Adds a rule after the others.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn push(&mut self, rule: Rule) -> Result<(), TooManyRules> {
        self.rules.amend(rule)
    }

    /// The rules, as the options by which they are given.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.rules.iter().map(ToString::to_string).collect()
    }

    /// Hints about the rules that the recording began with, once all programs have joined. `has_seen`:
    /// whether there was an event of a class; `None` where that is unknown.
    pub(crate) fn hints(
        &self,
        classes: &Classes,
        preload: Option<&Preload>,
        has_seen: impl Fn(u16) -> Option<bool>,
    ) -> Vec<String> {
        let mut hints = Vec::new();
        let names = || classes.described().filter(|(_, class)| !is_own(class)).map(|(_, class)| class.name);
        let has_names = names().next().is_some();
        for rule in self.first.iter() {
            if preload.is_some_and(|preload| {
                !rule.events.is_empty() && rule.events.iter().all(|glob| preload.asks_for(&glob.to_string()))
            }) {
                continue;
            }
            let is_offered = |glob: &&Glob| names().any(|name| glob.matches(name));
            let unmet: Vec<&Glob> = rule.events.iter().filter(|glob| !is_offered(glob)).collect();
            // The rule for the names of tasks comes with others.
            for glob in unmet.iter().filter(|glob| glob.to_string() != Origin::NAME) {
                hints.push(unmatched(glob, names()));
            }
            if unmet.is_empty() && has_names {
                hints.extend(Fit::of(rule, classes).notes(rule));
            }
        }
        if !has_names {
            return hints;
        }
        // If functions are excluded, these may be the only ones that were called.
        let is_all = self.first.iter().all(|rule| rule.exclude.iter().all(|glob| !glob.matches(Entry::NAME)));
        let functions = preload.filter(|_| is_all).map(|preload| &*preload.functions).unwrap_or_default();
        let is_entry =
            |(id, class): (u16, ClassView<'_>)| class.name == Entry::NAME && has_seen(id) != Some(false);
        if !classes.described().any(is_entry) {
            let of_rust = |glob: &str| Glob::new(format!("{}:{glob}", Entry::NAME));
            let unmet = functions
                .iter()
                .filter(|glob| *glob != ALL_FUNCTIONS && !names().any(|name| of_rust(glob).matches(name)));
            hints.extend(
                unmet.map(|glob| format!("no function that was called matched --functions '{glob}'")),
            );
        }
        hints
    }
}

/// That none of the programs' events matched, and what may have been meant.
fn unmatched<'n>(glob: &Glob, names: impl Iterator<Item = &'n str>) -> String {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return format!(
            "no event matched -e '{glob}': no recorded program has events; -k chooses kernel events"
        );
    }
    match closest(&glob.to_string(), names) {
        Some(name) => format!("no event matched -e '{glob}'; is `{name}` meant?"),
        None => format!(
            "no event matched -e '{glob}'; `tracewing sites PROGRAM` lists a program's events, and -k chooses \
             kernel events"
        ),
    }
}

/// A line for the user about a rule in a process of another PID namespace, if one is needed: the process
/// evaluates the condition itself, with the numbers of its namespace.
pub(crate) fn note_on_numbers(rule: &Rule, program: &Program) -> Option<String> {
    let Action::Enable(Some(predicate)) = &rule.action else { return None };
    let (pid, name) = (program.pid, Some(&*program.name));
    let is_concerned = rule.processes.is_empty() || rule.processes.iter().any(|one| one.fits(pid, name));
    (is_concerned && predicate.uses_numbers() && is_of_other_namespace(program.pid) == Some(true)).then(|| {
        let name = if program.name.is_empty() { String::new() } else { format!(" ({})", program.name) };
        format!(
            "`{rule}`: process {}{name} is in another PID namespace, and `$pid` and `$tid` are its numbers there; \
             --process takes numbers of this one",
            program.pid
        )
    })
}

/// Whether a class is one of the tracer itself.
pub(crate) fn is_own(class: &ClassView<'_>) -> bool {
    class.name.starts_with(OWN)
}

/// How a rule fits the classes that programs have so far.
pub(crate) struct Fit {
    /// The ids of those that it matches, in some process.
    pub(crate) matching: HashSet<u16>,
    /// Whether there are any classes that it could match.
    is_any: bool,
    /// Why its predicate does not fit those that it does not fit.
    misfits: Vec<String>,
    /// What its predicate asks for and none of the classes has.
    absent: Option<String>,
    /// A comparison of its predicate that is unknown in all classes, though some have its fields.
    mistyped: Option<String>,
}

impl Fit {
    pub(crate) fn of(rule: &Rule, classes: &Classes) -> Self {
        let anywhere = Rule { processes: Vec::new(), ..rule.clone() };
        let any = Process { pid: Pid(0), name: "" };
        let mut this = Self {
            matching: HashSet::new(),
            is_any: false,
            misfits: Vec::new(),
            absent: None,
            mistyped: None,
        };
        let predicate = match &rule.action {
            Action::Enable(predicate) => predicate.as_ref(),
            Action::Disable => None,
        };
        let mut fit = predicate.map(|predicate| (predicate, PredicateFit::new(predicate)));
        for (id, class) in classes.described().filter(|(_, class)| !is_own(class)) {
            this.is_any = true;
            if !anywhere.matches(&class, &any) {
                continue;
            }
            this.matching.insert(id);
            if let Some((predicate, fit)) = &mut fit {
                this.misfits.extend(predicate.compile(&class).err().map(|error| error.to_string()));
                fit.add_class(&class);
            }
        }
        if let Some((_, fit)) = fit {
            this.absent = fit.absent();
            this.mistyped = fit.mistyped().map(ToString::to_string);
        }
        this
    }

    /// What the user should know of it.
    pub(crate) fn notes(&self, rule: &Rule) -> Vec<String> {
        if self.matching.is_empty() {
            let none = format!(
                "no event of the recorded programs matches `{rule}` so far; `tracewing sites PROGRAM` lists events"
            );
            return self.is_any.then_some(none).into_iter().collect();
        }
        let notes = [self.note_on_misfits(), self.note_on_comparisons()];
        notes.into_iter().flatten().map(|note| format!("`{rule}`: {note}")).collect()
    }

    fn note_on_misfits(&self) -> Option<String> {
        let (misfits, all) = (self.misfits.len(), self.matching.len());
        let which = match misfits {
            0 => return None,
            _ if misfits == all => "none of the events that it names can satisfy the condition".to_owned(),
            _ => format!(
                "{misfits} of the {all} events that it names cannot satisfy the condition and are disabled"
            ),
        };
        let mut why = self.misfits[..misfits.min(MOST_NAMED)].join("; ");
        if misfits > MOST_NAMED {
            why += &format!("; and {} more", misfits - MOST_NAMED);
        }
        Some(format!("{which}: {why}"))
    }

    /// A condition that some events can satisfy may still have been meant otherwise.
    fn note_on_comparisons(&self) -> Option<String> {
        if self.misfits.len() == self.matching.len() {
            return None;
        }
        let absent =
            self.absent.as_ref().map(|name| format!("none of the events that it names has `{name}`"));
        let mistyped = || {
            let why = self.mistyped.as_ref()?;
            Some(format!("a comparison is unknown for all events that it names: {why}"))
        };
        absent.or_else(mistyped)
    }
}
