//! The options that choose events of programs, shared by `record`, `enable` and `disable`.

use crate::options::{EventNames, Processes};
use tracewing_rules::{Action, Glob, Levels, Majors, Predicate, Rule};
use tracewing_vocabulary::user_thread;

/// What the options mean, for the long help.
pub const LONG_HELP: &str = "\
Event rules: -e, --exclude, --provider, --level, --major, --process and --where together form one rule, for events \
that match all of them. Names are PROVIDER:EVENT; a GLOB may contain *, ?, [a-z] and [!a-z], and matches a whole \
name. `tracewing sites PROGRAM` lists the events of a program. `tracewing enable` and `tracewing disable` add a rule \
to a running recording; the last rule that matches an event decides. A rule that names user_thread:create (or \
user_thread:existed, user_thread:wait, user_thread:acquired, user_thread:given_up) also enables user_thread:origin, \
which holds the names of tasks and the lines of requests, unless --exclude names it.

--where compares fields of the event (depth > 3 && customer == \"x\", customer =~ 'a*', wait > 1.5ms, size >= 64K, flags \
& 6 == 4, len(items) != 0) and $tid, $pid, $cpu, $event, $level (a number: error 3, warn 4, info 6, debug 10, trace 14); combine comparisons \
with &&, ||, ! and parentheses. The program evaluates the condition before it writes the event. Events that lack a \
compared field are left out. `disable` does not have this option.

--major alone, without any other of these options, switches major classes (numbers from 0 to 63 that programs assign \
to their events) in the recording's mask. This is the fastest way, since programs need no message. With other \
options, it is part of the rule.";

/// That a task is created, was there before, waits, has something, or does not get it; and what those of one
/// place have in common: their name, file and line.
const OF_ORIGIN: [&str; 5] = [
    user_thread::Create::NAME,
    user_thread::Existed::NAME,
    user_thread::Wait::NAME,
    user_thread::Acquired::NAME,
    user_thread::GivenUp::NAME,
];
const TASK_ORIGIN: &str = user_thread::Origin::NAME;

#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Events of programs")]
pub struct Selection {
    #[command(flatten)]
    names: EventNames,

    /// Only events of providers that match GLOB; may be given several times
    #[arg(long = "provider", value_name = "GLOB")]
    providers: Vec<String>,

    /// Only events at least as severe as LEVEL (error, warn, info, debug, trace), or in a range of levels:
    /// debug..info
    #[arg(long = "level", value_name = "LEVEL")]
    levels: Option<Levels>,

    /// Only events of these major classes, as in 3,8-12
    #[arg(long = "major", value_name = "LIST")]
    majors: Option<Majors>,

    #[command(flatten)]
    processes: Processes,
}

/// The condition of a rule that enables.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Events of programs")]
pub struct Condition {
    /// Only events that satisfy CONDITION, as in 'depth > 3 && customer == "x"'
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Predicate>,
}

/// What options ask for.
pub enum Requested {
    /// None of them was given.
    Nothing,
    /// Major classes, and nothing else.
    Majors(Majors),
    Rule(Box<Rule>),
}

impl Selection {
    /// A rule for these events that enables them under a condition.
    pub fn enable(&self, condition: &Condition) -> Requested {
        self.requested(Action::Enable(condition.condition.clone()))
    }

    /// A rule for these events that disables them.
    pub fn disable(&self) -> Requested {
        self.requested(Action::Disable)
    }

    /// A rule for events of these names that enables them, too, but for those that are excluded.
    pub fn enable_also(&self, names: &[String]) -> Rule {
        let names = EventNames { events: names.to_vec(), exclude: self.names.exclude.clone() };
        Self { names, ..Self::default() }.rule(Action::Enable(None))
    }

    /// The rule by which recorded tasks get their names, if this rule selects their creations by name, but
    /// not their origins (`user_thread:origin`), or not all of them.
    pub fn names_of_tasks(&self, condition: &Condition) -> Option<Rule> {
        let chooses_by_name = !(self.names.events.is_empty() && self.providers.is_empty());
        let is_whole = condition.condition.is_none() && self.levels.is_none() && self.majors.is_none();
        let is_missing = !(is_whole && self.choose(TASK_ORIGIN));
        let excluded = matches_any(&self.names.exclude, TASK_ORIGIN);
        (chooses_by_name && OF_ORIGIN.iter().any(|name| self.choose(name)) && is_missing && !excluded).then(
            || {
                let names = EventNames { events: vec![TASK_ORIGIN.to_owned()], exclude: Vec::new() };
                let processes = self.processes.clone();
                Self { names, processes, ..Self::default() }.rule(Action::Enable(None))
            },
        )
    }

    /// Whether the name of a class is one that is meant.
    fn choose(&self, name: &str) -> bool {
        let provider = name.split(':').next().unwrap_or_default();
        self.names.choose(name) && (self.providers.is_empty() || matches_any(&self.providers, provider))
    }

    fn requested(&self, action: Action) -> Requested {
        let has_condition = matches!(action, Action::Enable(Some(_)));
        match self.majors {
            None if *self == Self::default() && !has_condition => Requested::Nothing,
            Some(majors) if !has_condition && *self == (Self { majors: Some(majors), ..Self::default() }) => {
                Requested::Majors(majors)
            }
            _ => Requested::Rule(Box::new(self.rule(action))),
        }
    }

    fn rule(&self, action: Action) -> Rule {
        let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text.as_str())).collect();
        Rule {
            action,
            events: globs(&self.names.events),
            exclude: globs(&self.names.exclude),
            providers: globs(&self.providers),
            levels: self.levels.unwrap_or_default(),
            majors: self.majors.unwrap_or_default(),
            processes: self.processes.patterns(),
        }
    }
}

fn matches_any(globs: &[String], name: &str) -> bool {
    globs.iter().any(|glob| Glob::new(glob.as_str()).matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        condition: Condition,
    }

    fn requested(options: &[&str]) -> Requested {
        let command = Command::parse_from(["command"].iter().chain(options));
        command.selection.enable(&command.condition)
    }

    #[test]
    fn major_classes_alone_are_for_the_mask() {
        assert!(matches!(requested(&[]), Requested::Nothing));
        assert!(matches!(requested(&["--major", "1,3"]), Requested::Majors(Majors(0b1010))));
        for more in
            [["-e", "*"], ["--level", "info"], ["--where", "a"], ["--process", "1"], ["--exclude", "a"]]
        {
            let Requested::Rule(rule) = requested(&["--major", "1,3", more[0], more[1]]) else {
                panic!("{more:?}")
            };
            assert_eq!(rule.majors, Majors(0b1010));
        }
    }

    #[test]
    fn creations_of_tasks_come_with_their_names() {
        let rule = |options: &[&str]| {
            let command = Command::parse_from(["command"].iter().chain(options));
            command.selection.names_of_tasks(&command.condition).map(|rule| rule.to_string())
        };
        let names = "enable -e user_thread:origin".to_owned();
        for options in [
            &["-e", "user_thread:create"][..],
            &["-e", "user_thread:c*", "-e", "shop:*"],
            &["-e", "user_thread:acquired"],
            &["-e", "user_thread:given_up"],
            &["--provider", "user_thread", "--where", "parent == 0"],
            &["-e", "user_thread:*", "--major", "3"],
        ] {
            assert_eq!(rule(options), Some(names.clone()), "{options:?}");
        }
        let of_process = rule(&["-e", "user_thread:create", "--process", "7"]);
        assert_eq!(of_process, Some(names + " --process 7"));
        for options in [
            &[][..],
            &["-e", "user_thread:*"],
            &["-e", "user_thread:switch"],
            &["--provider", "user_*"],
            &["--where", "parent == 0"],
            &["--level", "info"],
            &["-e", "user_thread:create", "--exclude", "user_thread:origin"],
            &["-e", "user_thread:*", "--exclude", "user_thread:create"],
        ] {
            assert_eq!(rule(options), None, "{options:?}");
        }
    }

    #[test]
    fn all_options_are_one_rule() {
        let options = [
            "-e",
            "shop:*",
            "-e",
            "bar:*",
            "--exclude",
            "*:x",
            "--provider",
            "s*",
            "--level",
            "warn",
            "--process",
            "7",
            "--process",
            "srv",
            "--where",
            "depth > 3",
        ];
        let Requested::Rule(rule) = requested(&options) else { panic!() };
        assert_eq!(
            rule.to_string(),
            "enable -e 'shop:*' -e 'bar:*' --exclude '*:x' --provider 's*' --level warn --process 7 --process srv \
             --where 'depth > 3'"
        );
        let error = Command::try_parse_from(["command", "--where", "depth > && x"]).unwrap_err().to_string();
        assert!(error.contains("  depth > && x\n          ^"), "{error}");
        assert!(Command::try_parse_from(["command", "--level", "loud"]).is_err());
        assert!(Command::try_parse_from(["command", "--major", "64"]).is_err());
    }
}
