//! Everything that `tracewing` can make of a recording, as its own help lists it. A test that claims to run
//! all of it asks here what it does not run, and fails for a command, or a choice of one, that is new.

use crate::harness::{Printed, run};
use std::fmt;

/// A command that reads recordings, or one of its options with one of the values that it can have.
#[derive(Debug, Clone)]
pub struct Form {
    command: Vec<String>,
    /// The option, and a value of it; none for the command itself.
    option: Option<(String, Option<String>)>,
    /// What is done without the value, or without the option.
    default: Option<Default>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Default {
    Option,
    Value,
}

/// Options that choose how something is printed, how much of it, or where to; and where defaults are from.
const PRESENTATION: [&str; 13] = [
    "--config",
    "--no-default",
    "--color",
    "--no-pager",
    "--sort",
    "--count",
    "--processes",
    "--columns",
    "--wide",
    "--output",
    "--help",
    "--version",
    "--clock-gmt",
];

/// Commands whose `--format` is one of what others have too: tables, JSON and comma-separated values.
fn is_presentation(command: &[String], option: &str) -> bool {
    let writes = ["export", "convert"].contains(&command[0].as_str());
    PRESENTATION.contains(&option) || option == "--format" && !writes
}

/// The lines below a heading.
fn section<'h>(help: &'h str, heading: &str) -> impl Iterator<Item = &'h str> {
    let lines = help.lines().skip_while(move |line| *line != heading).skip(1);
    lines.take_while(|line| line.is_empty() || line.starts_with(' ')).map(str::trim)
}

/// The long name of the option that a line of help begins, and whether its value may be left out.
fn option(line: &str) -> Option<(String, bool)> {
    let long = line.split_once(", ").filter(|(short, _)| short.len() == 2).map_or(line, |(_, long)| long);
    let name = long.split([' ', '[']).next().filter(|name| name.starts_with("--"))?;
    Some((name.to_owned(), long.contains('[')))
}

/// The values that the help of an option lists, and what it says is the default.
fn values(help: &[&str]) -> (Vec<String>, Option<String>) {
    let listed = help.iter().filter_map(|line| line.strip_prefix("- ")?.split(':').next());
    let text = help.join(" ");
    let within = |start: &str| {
        text.split_once(start).and_then(|(_, rest)| rest.split_once(']')).map(|(inside, _)| inside.to_owned())
    };
    let short = within("[possible values: ").unwrap_or_default();
    let short = short.split(", ").filter(|value| !value.is_empty());
    let default = within("[default: ").map(|text| text.split([';', ' ']).next().unwrap_or("").to_owned());
    (listed.chain(short).map(str::to_owned).collect(), default)
}

fn forms_of(command: Vec<String>, forms: &mut Vec<Form>) {
    let arguments: Vec<&str> = command.iter().map(String::as_str).chain(std::iter::once("--help")).collect();
    let help = run(&arguments).text();
    let below = section(&help, "Commands:").filter_map(|line| line.split(' ').next());
    for name in below.filter(|name| !["", "help"].contains(name)) {
        // A continuation line of the help is not a command.
        let inner = [&command[..], &[name.to_owned()]].concat();
        if help.lines().any(|line| line.starts_with(&format!("  {name} "))) {
            forms_of(inner, forms);
        }
    }
    let reads = |usage: &str| usage.contains("<TRACE>") || usage.contains("[TRACE]");
    if command.is_empty() || !help.lines().any(|line| line.starts_with("Usage:") && reads(line)) {
        return;
    }
    forms.push(Form { command: command.clone(), option: None, default: None });
    let lines: Vec<&str> = section(&help, "Options:").collect();
    let starts: Vec<usize> = (0..lines.len()).filter(|&at| option(lines[at]).is_some()).collect();
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(lines.len());
        let Some((name, may_be_bare)) = option(lines[start]) else { continue };
        if is_presentation(&command, &name) {
            continue;
        }
        let (values, default) = values(&lines[start + 1..end]);
        if values.is_empty() {
            forms.push(Form { command: command.clone(), option: Some((name.clone(), None)), default: None });
        }
        for (at, value) in values.into_iter().enumerate() {
            let is_default = default.as_ref() == Some(&value);
            let default = match (is_default, may_be_bare && at == 0) {
                (true, _) => Some(Default::Option),
                (_, true) => Some(Default::Value),
                _ => None,
            };
            let option = Some((name.clone(), Some(value)));
            forms.push(Form { command: command.clone(), option, default });
        }
    }
}

impl Form {
    /// Whether a command line has this form.
    fn is_in(&self, words: &[&str]) -> bool {
        let Some(arguments) =
            words.strip_prefix(&self.command.iter().map(String::as_str).collect::<Vec<_>>()[..])
        else {
            return false;
        };
        let Some((option, value)) = &self.option else { return true };
        let prefix = format!("{option}=");
        let given = arguments.iter().position(|word| word == option || word.starts_with(&prefix));
        let Some(given) = given else { return self.default == Some(Default::Option) };
        let Some(value) = value else { return true };
        let inline = arguments[given].strip_prefix(&prefix);
        let following = arguments.get(given + 1).filter(|word| !word.starts_with('-'));
        match inline.or(following.copied()) {
            Some(values) => values.split(',').any(|given| given == value),
            None => self.default == Some(Default::Value),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command.join(" "))?;
        match &self.option {
            None => Ok(()),
            Some((option, None)) => write!(f, " {option}"),
            Some((option, Some(value))) => write!(f, " {option}={value}"),
        }
    }
}

/// The forms that are in none of these command lines.
pub fn missing<'w>(lines: impl IntoIterator<Item = Vec<&'w str>>) -> Vec<String> {
    let lines: Vec<Vec<&str>> = lines.into_iter().collect();
    let mut forms = Vec::new();
    forms_of(Vec::new(), &mut forms);
    assert!(forms.len() > 60, "the help is not understood: {forms:?}");
    let missing = forms.iter().filter(|form| !lines.iter().any(|line| form.is_in(line)));
    missing.map(Form::to_string).collect()
}
