//! Event rules for what a pre-loaded library records: it comes in addition to all else that is chosen, and
//! only what was asked for.

use tracewing_abi::functions::ALL_FUNCTIONS;
use tracewing_rules::{Action, Glob, Rule, Rules};
use tracewing_session::preload::{LOCK_EVENTS, function_events};
use tracewing_vocabulary::function::Named;

use crate::selection::Selection;

/// The rules where nothing else chooses: all events, but of those of the library only what is asked for.
pub fn with_everything(locks: bool, functions: &[String]) -> Rules {
    let mut unwanted = Vec::new();
    if !locks && !functions.is_empty() {
        unwanted.push(LOCK_EVENTS);
    }
    if !functions.is_empty() && !are_all(functions) {
        unwanted.push(Named::GLOB);
    }
    if unwanted.is_empty() {
        return Rules::new();
    }
    let all = rule(&["*"], &unwanted);
    let chosen = (!are_all(functions)).then(|| rule(&function_events(functions), &[]));
    [all].into_iter().chain(chosen).collect()
}

/// The rules in addition to one that the user has given, whose exclusions are for them, too.
pub fn with_rule(rule: Rule, selection: &Selection, locks: bool, functions: &[String]) -> Rules {
    let locks = locks.then(|| selection.enable_also(&[LOCK_EVENTS.to_owned()]));
    let functions = (!functions.is_empty()).then(|| selection.enable_also(&function_events(functions)));
    locks.into_iter().chain(functions).chain([rule]).collect()
}

fn are_all(functions: &[String]) -> bool {
    functions.iter().any(|glob| glob == ALL_FUNCTIONS)
}

fn rule(events: &[impl AsRef<str>], exclude: &[&str]) -> Rule {
    let globs = |texts: Vec<&str>| texts.into_iter().map(Glob::new).collect();
    Rule {
        action: Action::Enable(None),
        events: globs(events.iter().map(AsRef::as_ref).collect()),
        exclude: globs(exclude.to_vec()),
        ..Rule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rules: Rules) -> Vec<String> {
        rules.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_requested_events_are_added_to_everything() {
        let globs = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        assert!(shown(with_everything(true, &[])).is_empty());
        assert!(shown(with_everything(true, &globs(&["*"]))).is_empty());
        assert_eq!(shown(with_everything(false, &globs(&["*"]))), ["enable -e '*' --exclude 'lock:*'"]);
        let [all, chosen] = &shown(with_everything(false, &globs(&["a*", "b"])))[..] else { panic!() };
        assert_eq!(all, "enable -e '*' --exclude 'lock:*' --exclude 'function:*:*'");
        assert!(chosen.contains("-e function:entry ") && chosen.ends_with("-e function:exit:b"), "{chosen}");
    }
}
