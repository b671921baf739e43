//! Rules: the event classes that a recording takes, from which processes and under which condition. The last
//! rule that matches a class decides.

use super::error::CompileError;
use super::glob::Glob;
use super::predicate::Predicate;
use super::selection::{Levels, Majors};
use std::fmt;
use tracewing_abi::schema::ClassView;
use tracewing_abi::wire::{Input, Output};
use tracewing_abi::{Malformed, WireError};
use tracewing_units::Pid;

/// Classes that every recording takes, whatever its rules say: the tracer's own reports.
const OWN_PROVIDER: &str = "tracewing";

/// What a rule does with matching classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Their events are recorded: all, or those that satisfy the predicate.
    Enable(Option<Predicate>),
    /// Their events are not recorded.
    Disable,
}

/// A rule. It matches a class in a process if all of its parts match; an empty list matches everything. The
/// default rule enables everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What happens to matching classes.
    pub action: Action,
    /// At least one of these matches the class's name.
    pub events: Vec<Glob>,
    /// None of these matches the class's name.
    pub exclude: Vec<Glob>,
    /// At least one of these matches the provider: the name up to its `:`.
    pub providers: Vec<Glob>,
    /// The class's level is in this range.
    pub levels: Levels,
    /// The class's major class is in this set.
    pub majors: Majors,
    /// At least one of these matches the process.
    pub processes: Vec<ProcessPattern>,
}

/// Selects processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessPattern {
    /// The process with this id.
    Id(Pid),
    /// Processes whose program has a matching name.
    Name(Glob),
}

impl ProcessPattern {
    /// A number is an id, anything else a pattern for names.
    pub fn new(text: &str) -> Self {
        match text.parse::<Pid>() {
            Ok(id) if id.0 >= 0 && id.to_string() == text => Self::Id(id),
            _ => Self::Name(Glob::new(text)),
        }
    }

    fn matches(&self, process: &Process<'_>) -> bool {
        match self {
            Self::Id(id) => *id == process.pid,
            Self::Name(glob) => glob.matches(process.name),
        }
    }

    /// Whether this process is selected; its name may be unknown.
    pub fn fits(&self, process: Pid, name: Option<&str>) -> bool {
        match self {
            Self::Id(id) => *id == process,
            Self::Name(glob) => name.is_some_and(|name| glob.matches(name)),
        }
    }
}

impl fmt::Display for ProcessPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(glob) => glob.fmt(f),
        }
    }
}

/// A process that classes belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process<'a> {
    /// Process id, as the recorder sees it.
    pub pid: Pid,
    /// Name of its program, without folders.
    pub name: &'a str,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            action: Action::Enable(None),
            events: Vec::new(),
            exclude: Vec::new(),
            providers: Vec::new(),
            levels: Levels::ALL,
            majors: Majors::ALL,
            processes: Vec::new(),
        }
    }
}

impl Rule {
    /// Enables the classes whose names match one of the patterns.
    pub fn enable<S: Into<Box<str>>>(events: impl IntoIterator<Item = S>) -> Self {
        Self { events: events.into_iter().map(Glob::new).collect(), ..Self::default() }
    }

    /// Disables the classes whose names match one of the patterns.
    pub fn disable<S: Into<Box<str>>>(events: impl IntoIterator<Item = S>) -> Self {
        Self { action: Action::Disable, ..Self::enable(events) }
    }

    /// Whether the rule applies to the class in the process.
    pub fn matches(&self, class: &ClassView<'_>, process: &Process<'_>) -> bool {
        let one_of =
            |globs: &[Glob], name: &str| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
        self.levels.contain(class.level)
            && self.majors.contain(class.major)
            && one_of(&self.events, class.name)
            && !self.exclude.iter().any(|glob| glob.matches(class.name))
            && one_of(&self.providers, provider(class.name))
            && (self.processes.is_empty() || self.processes.iter().any(|pattern| pattern.matches(process)))
    }

    /// Whether it matches every class in every process, whatever its action.
    fn is_for_all(&self) -> bool {
        let is_all = |glob: &Glob| glob.as_str() == "*";
        let events = if self.events.iter().any(is_all) { Vec::new() } else { self.events.clone() };
        Self { events, ..self.clone() }.matches_like(&Self { action: self.action.clone(), ..Self::default() })
    }

    /// Whether it matches the same as the other rule, whatever the actions.
    fn matches_like(&self, other: &Self) -> bool {
        Self { action: other.action.clone(), ..self.clone() } == *other
    }

    /// Appends the rule to a message: `u8` action, lists of events, exclusions, providers and processes (each
    /// a `u16` number and as many strings), `u8` most and least severe level, `u64` major classes, and the
    /// predicate's text for action 2.
    ///
    /// # Errors
    /// The rule does not fit the message.
    pub fn encode_to(&self, out: &mut Output<'_>) -> Result<(), WireError> {
        out.u8(match self.action {
            Action::Disable => DISABLE,
            Action::Enable(None) => ENABLE,
            Action::Enable(Some(_)) => ENABLE_WHERE,
        })?;
        for globs in [&self.events, &self.exclude, &self.providers] {
            encode_list(out, globs.iter().map(Glob::as_str))?;
        }
        encode_list(out, self.processes.iter().map(ToString::to_string))?;
        out.put(&self.levels.numbers())?;
        out.u64(self.majors.0)?;
        match &self.action {
            Action::Enable(Some(predicate)) => out.str(predicate.as_str()),
            Action::Enable(None) | Action::Disable => Ok(()),
        }
    }

    /// Reads a rule from the start of a message.
    ///
    /// # Errors
    /// The bytes are not a rule.
    pub fn decode_from(input: &mut Input<'_>) -> Result<Self, WireError> {
        let action = input.u8()?;
        let mut globs = || decode_list(input, |text| Glob::new(text));
        let (events, exclude, providers) = (globs()?, globs()?, globs()?);
        let processes = decode_list(input, ProcessPattern::new)?;
        let levels = Levels::from_numbers(input.array()?).ok_or(WireError::Invalid(Malformed::RuleLevels))?;
        let majors = Majors(input.u64()?);
        let action = match action {
            DISABLE => Action::Disable,
            ENABLE => Action::Enable(None),
            ENABLE_WHERE => {
                let predicate = Predicate::parse(input.str()?);
                Action::Enable(Some(predicate.map_err(|_| WireError::Invalid(Malformed::RulePredicate))?))
            }
            _ => return Err(WireError::Invalid(Malformed::RuleAction)),
        };
        Ok(Self { action, events, exclude, providers, levels, majors, processes })
    }
}

const DISABLE: u8 = 0;
const ENABLE: u8 = 1;
const ENABLE_WHERE: u8 = 2;

fn encode_list<S: AsRef<str>>(
    out: &mut Output<'_>,
    texts: impl ExactSizeIterator<Item = S>,
) -> Result<(), WireError> {
    out.u16(u16::try_from(texts.len()).map_err(|_| WireError::TooLarge)?)?;
    texts.into_iter().try_for_each(|text| out.str(text.as_ref()))
}

fn decode_list<T>(input: &mut Input<'_>, from: impl Fn(&str) -> T) -> Result<Vec<T>, WireError> {
    let count = input.u16()?;
    (0..count).map(|_| input.str().map(&from)).collect()
}

/// A class's name up to the `:` before the event's own name. A provider can be a path, as in
/// `shop::db:query`.
fn provider(name: &str) -> &str {
    let bytes = name.as_bytes();
    let mut at = 0;
    while let Some(colon) = bytes[at..].iter().position(|&byte| byte == b':') {
        let colon = at + colon;
        if bytes.get(colon + 1) != Some(&b':') {
            return &name[..colon];
        }
        at = colon + 2;
    }
    name
}

/// Formatted as the options of `tracewing record`, `enable` and `disable`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.action == Action::Disable { "disable" } else { "enable" })?;
        // A rule that matches everything must be written out, too.
        if *self == (Self { action: self.action.clone(), ..Self::default() }) {
            f.write_str(" -e '*'")?;
        }
        for (option, globs) in
            [("-e", &self.events), ("--exclude", &self.exclude), ("--provider", &self.providers)]
        {
            for glob in globs {
                write!(f, " {option} {}", Quoted(glob.as_str()))?;
            }
        }
        if self.levels != Levels::ALL {
            write!(f, " --level {}", self.levels)?;
        }
        if self.majors != Majors::ALL {
            write!(f, " --major {}", Quoted(&self.majors.to_string()))?;
        }
        for process in &self.processes {
            write!(f, " --process {}", Quoted(&process.to_string()))?;
        }
        match &self.action {
            Action::Enable(Some(predicate)) => write!(f, " --where {}", Quoted(predicate.as_str())),
            Action::Enable(None) | Action::Disable => Ok(()),
        }
    }
}

/// A word as quoted for a shell.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:./,+@%".contains(&byte);
        if !self.0.is_empty() && self.0.bytes().all(plain) {
            f.write_str(self.0)
        } else {
            write!(f, "'{}'", self.0.replace('\'', r"'\''"))
        }
    }
}

/// The rules of a recording, in the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// What happens to a class's events in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// They are not recorded.
    Off,
    /// They are recorded.
    On {
        /// Accepts the events to record ([`filter`](crate::filter)); `None` for all.
        filter: Option<Box<[u8]>>,
    },
}

/// A recording would have more than [`Rules::MOST`] rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyRules;

impl fmt::Display for TooManyRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a recording has at most {} event rules; one for all events (-e '*') takes the place of all others",
            Rules::MOST
        )
    }
}

impl std::error::Error for TooManyRules {}

impl Rules {
    /// Maximum number of rules of a recording.
    pub const MOST: usize = 256;

    /// No rules: everything is recorded.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule after the existing ones; it decides wherever it matches. Earlier rules that match exactly
    /// the same decide nothing any more and are dropped, except the first one, which also determines the
    /// default.
    pub fn push(&mut self, rule: Rule) {
        if let Some(first) = self.rules.first().cloned() {
            let before = std::mem::take(&mut self.rules).into_iter().skip(1);
            self.rules.push(first);
            self.rules.extend(before.filter(|before| !before.matches_like(&rule)));
        }
        self.rules.push(rule);
    }

    /// Adds a rule to a running recording: as [`Rules::push`], but a rule for all events also drops the
    /// others, again except the first one.
    ///
    /// # Errors
    /// There would be more than [`Rules::MOST`] rules; nothing changes.
    pub fn amend(&mut self, rule: Rule) -> Result<(), TooManyRules> {
        let kept = if rule.is_for_all() { 1 } else { self.len() };
        let mut rules = Rules { rules: self.rules.iter().take(kept).cloned().collect() };
        rules.push(rule);
        if rules.len() > Self::MOST {
            return Err(TooManyRules);
        }
        *self = rules;
        Ok(())
    }

    /// The rules, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Rule> {
        self.rules.iter()
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no rules, so that everything is recorded.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Decides about a class in a process: the last matching rule applies. If none matches, the class is off
    /// if the first rule enables something, and on otherwise: the first rule determines whether the recording
    /// begins with nothing or with everything. Events of the tracer itself (`tracewing:*`) are always on.
    ///
    /// # Errors
    /// The rule's predicate does not fit the class, which is then off.
    pub fn decide(&self, class: &ClassView<'_>, process: &Process<'_>) -> Result<Decision, CompileError> {
        let all = Decision::On { filter: None };
        if provider(class.name) == OWN_PROVIDER {
            return Ok(all);
        }
        let last = self.rules.iter().rev().find(|rule| rule.matches(class, process));
        match last.map(|rule| &rule.action) {
            Some(Action::Disable) => Ok(Decision::Off),
            Some(Action::Enable(None)) => Ok(all),
            Some(Action::Enable(Some(predicate))) => {
                let filter = predicate.compile(class)?;
                Ok(Decision::On { filter: (!filter.is_empty()).then(|| filter.into()) })
            }
            None => match self.rules.first().map(|rule| &rule.action) {
                Some(Action::Enable(_)) => Ok(Decision::Off),
                Some(Action::Disable) | None => Ok(all),
            },
        }
    }
}

impl Extend<Rule> for Rules {
    fn extend<I: IntoIterator<Item = Rule>>(&mut self, rules: I) {
        self.rules.extend(rules);
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}
