//! What can be changed in a running recording, and the result of a change, for the asking process
//! ([`Running::change`](crate::running::Running::change)). The recorder's side is `recorder`.

use serde::Serialize;
use tracewing_abi::WireError;
use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::message::control::{Control, Effect, Item};
use tracewing_abi::wire::Output;
use tracewing_rules::{Majors, Rule};
use tracewing_units::Pid;

/// A change of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// None: only the present state is reported.
    Nothing,
    /// One more event rule, which decides wherever it matches.
    Rule(Box<Rule>),
    /// Switches major classes in the recording's mask word: one store, whatever is recorded.
    Majors {
        /// Whether to record these classes from now on, or no longer.
        on: bool,
        /// The major classes to switch.
        majors: Majors,
    },
    /// No events until it is resumed: one store.
    Pause,
    /// Ends a pause.
    Resume,
}

impl From<Rule> for Change {
    fn from(rule: Rule) -> Self {
        Self::Rule(Box::new(rule))
    }
}

impl Change {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, WireError> {
        let mut rule_bytes = vec![0; MAX_MESSAGE - Control::HEADER];
        let control = match self {
            Self::Nothing => Control::Show,
            Self::Rule(rule) => {
                let mut out = Output::new(&mut rule_bytes);
                rule.encode_to(&mut out)?;
                let len = out.len;
                Control::Rule(&rule_bytes[..len])
            }
            Self::Majors { on, majors } => Control::Majors { on: *on, majors: majors.0 },
            Self::Pause => Control::Pause,
            Self::Resume => Control::Resume,
        };
        let mut message = vec![0; MAX_MESSAGE];
        let len = control.encode(&mut message)?;
        message.truncate(len);
        Ok(message)
    }
}

/// A recorded process, as it answers to a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its process id in the recorder's PID namespace.
    pub pid: Pid,
    /// Name of its program.
    pub name: String,
}

/// What a recording is like after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Programs that the recorder can reach.
    pub programs: u32,
    /// Event classes that are on in at least one of them.
    pub classes: u32,
    /// Major classes that are on: what the mask word is while the recording is not paused.
    pub majors: String,
    /// Whether no events are recorded for the time being.
    pub paused: bool,
    /// Programs that have not confirmed the change; they may still record as before.
    pub unanswered: Vec<Process>,
    /// Programs that are recorded and cannot be reached: their connection is gone.
    pub unreachable: Vec<Process>,
    /// Processes of these two kinds that are not listed.
    pub unlisted: u32,
    /// What a program could not enable or disable, and why.
    pub failures: Vec<String>,
    /// Lines for the user about the change, other than failures.
    pub notes: Vec<String>,
    /// The event rules, in their order, as the options by which they are given; only where nothing was
    /// changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

impl Changed {
    pub(crate) fn new<'a>(effect: &Effect, items: impl Iterator<Item = Item<'a>>) -> Self {
        let mut this = Self {
            programs: effect.programs,
            classes: effect.classes,
            majors: Majors(effect.majors).to_string(),
            paused: effect.is_paused,
            unanswered: Vec::new(),
            unreachable: Vec::new(),
            unlisted: 0,
            failures: Vec::new(),
            notes: Vec::new(),
            rules: Vec::new(),
        };
        let process = |pid, name: &str| Process { pid: Pid::from_unsigned(pid), name: name.to_owned() };
        for item in items {
            match item {
                Item::Rule(text) => this.rules.push(text.to_owned()),
                Item::Note(text) => this.notes.push(text.to_owned()),
                Item::Failure(text) => this.failures.push(text.to_owned()),
                Item::Unanswered(pid, name) => this.unanswered.push(process(pid, name)),
                Item::Unreachable(pid, name) => this.unreachable.push(process(pid, name)),
            }
        }
        let listed = this.unanswered.len() + this.unreachable.len();
        this.unlisted = effect.unanswered.saturating_add(effect.unreachable).saturating_sub(listed as u32);
        this
    }

    /// Whether all programs have made the change.
    pub fn is_everywhere(&self) -> bool {
        self.unanswered.is_empty()
            && self.unreachable.is_empty()
            && self.unlisted == 0
            && self.failures.is_empty()
    }
}
