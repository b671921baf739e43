//! What a text chooses: `-e`, `--exclude`, `--user`, `--kernel`, `--process`, `--tid`, `--task`, `--cpu` and
//! `--where` as in the command line, and words. Without an option, `where` begins the condition, too.

use std::ops::RangeInclusive;
use tracewing_rules::ProcessPattern;
use tracewing_trace::{Filter, Level, Predicate, ThreadPattern};
use tracewing_units::{Cpu, Tid};

/// A text, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) filter: Filter,
    /// What is no option, in lower case.
    pub(crate) words: Vec<String>,
}

impl Parsed {
    /// Takes a text apart; says what is wrong with it.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let mut parsed = Parsed::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (word, after) = split(rest);
            rest = after.trim_start();
            match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((option, value)) => parsed.option(option, &mut |_| Ok(value.to_owned()))?,
                None if word == "where" || word == "--where" => {
                    parsed.condition(rest)?;
                    rest = "";
                }
                None if word.starts_with("--") || word == "-e" => parsed.option(word, &mut |what| {
                    let (value, after) = value(rest).ok_or_else(|| format!("{word} needs {what}"))?;
                    rest = after.trim_start();
                    Ok(value.to_owned())
                })?,
                None => parsed.words.push(word.to_lowercase()),
            }
        }
        Ok(parsed)
    }

    fn condition(&mut self, text: &str) -> Result<(), String> {
        self.filter.predicate = Some(Predicate::parse(text).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Takes an option; `value` gives its value, which is what it is called with.
    fn option(
        &mut self,
        option: &str,
        value: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<(), String> {
        let filter = &mut self.filter;
        match option {
            "-e" => filter.events.push(value("a pattern")?),
            "--exclude" => filter.exclude.push(value("a pattern")?),
            "--user" => filter.level = Some(Level::User),
            "--kernel" => filter.level = Some(Level::Kernel),
            "--process" => filter.processes.push(ProcessPattern::new(&value("a number or a pattern")?)),
            "--task" => filter.threads.push(ThreadPattern::new(&value("a number or a pattern")?)),
            "--tid" => filter.tids.extend(list(&value("numbers")?, tid)?),
            "--cpu" => filter.cpus.extend(list(&value("numbers")?, cpus)?),
            "--where" => self.condition(&value("a condition")?)?,
            _ => return Err(format!("there is no option {option} here")),
        }
        Ok(())
    }
}

/// The first word, and what follows.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// The value at the beginning, which may be in quotation marks, and what follows.
fn value(text: &str) -> Option<(&str, &str)> {
    let quoted = text.chars().next().filter(|sign| matches!(sign, '"' | '\''));
    match quoted.and_then(|sign| text[1..].split_once(sign)) {
        Some(found) => Some(found),
        None => Some(split(text)).filter(|(value, _)| !value.is_empty()),
    }
}

fn list<T>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(str::trim).map(one).collect()
}

fn tid(text: &str) -> Result<Tid, String> {
    text.parse().map(Tid).map_err(|_| format!("“{text}” is no number of a thread"))
}

/// `3` or `2-5`.
fn cpus(text: &str) -> Result<RangeInclusive<Cpu>, String> {
    let number = |text: &str| text.trim().parse::<Cpu>().ok();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match number(first).zip(number(last)) {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => Err("give CPUs as in 0,2-3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_command_line() {
        let text = "Mutex -e 'shop:*' --exclude=x --process shop --tid 5,6 --task 7/8 --cpu 0,2-3 free \
                    --user where a == \"b c\"";
        assert!(Parsed::of(&format!("{text} && -e")).is_err(), "the condition is all that follows");
        let Parsed { filter, words } = Parsed::of(text).unwrap();
        assert_eq!(words, ["mutex", "free"]);
        assert_eq!((filter.events, filter.exclude), (vec!["shop:*".to_owned()], vec!["x".to_owned()]));
        assert_eq!(filter.tids, [Tid(5), Tid(6)]);
        assert_eq!(filter.cpus, [Cpu(0)..=Cpu(0), Cpu(2)..=Cpu(3)]);
        assert_eq!((filter.processes.len(), filter.threads.len()), (1, 1));
        assert_eq!(filter.level, Some(Level::User));
        assert_eq!(filter.predicate.unwrap().as_str(), "a == \"b c\"");
    }

    #[test]
    fn words_are_no_options() {
        for text in ["-1 - 'a b' \"c", "a=b ü", ""] {
            let Parsed { filter, words } = Parsed::of(text).unwrap();
            assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
            assert_eq!(format!("{filter:?}"), format!("{:?}", Filter::default()));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("--tid", "--tid needs numbers"),
            ("--tid five", "“five” is no number of a thread"),
            ("--cpu 3-2", "give CPUs as in 0,2-3"),
            ("--from +1s", "there is no option --from here"),
            ("-e", "-e needs a pattern"),
        ] {
            assert_eq!(Parsed::of(text).unwrap_err(), why);
        }
    }
}
