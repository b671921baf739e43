//! Which events to record: the default set, or those that match the user's patterns.

use crate::error::Error;
use crate::lttng;
use tracewing_rules::{Glob, closest};
use tracewing_vocabulary::environment;

/// Events that are recorded by default: the scheduler, interrupts, system calls, page faults, signals.
pub const DEFAULT: &[&str] = &[
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_migrate_task",
    "task:task_newtask",
    "sched:sched_process_fork",
    "sched:sched_process_exec",
    "sched:sched_process_exit",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "irq:softirq_raise",
    "irq_vectors:*_entry",
    "irq_vectors:*_exit",
    "nmi:nmi_handler",
    "syscalls:sys_enter_*",
    "syscalls:sys_exit_*",
    "exceptions:page_fault_user",
    "exceptions:page_fault_kernel",
    "signal:signal_generate",
    "signal:signal_deliver",
];

/// The events to record, and the patterns for which this kernel has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// As (system, name), in the kernel's order.
    pub events: Vec<(String, String)>,
    /// Patterns that match nothing.
    pub absent: Vec<String>,
}

/// Events without which others are not understood, and those others.
///
/// - A switch does not say which of its two threads is recorded, and of which processes they are: what
///   creates them does. Nor does it say since when a thread that dies was in the kernel.
/// - A command has its recorder's name until it executes its program.
const EXPLAINED_BY: [(&[&str], (&str, &str)); 3] = [
    (&["sched_switch"], ("task", "task_newtask")),
    (&["sched_switch"], ("sched", "sched_process_exit")),
    (&["sched_switch", "sched_waking", "sched_wakeup"], ("sched", "sched_process_exec")),
];

impl Choice {
    /// Adds the events of the lives of threads that others need, to a recording of some threads.
    pub(crate) fn add_lives(&mut self, available: &[(String, String)]) {
        for (explained, (system, name)) in EXPLAINED_BY {
            let has = |name: &str| self.events.iter().any(|(_, event)| event == name);
            if explained.iter().any(|name| has(name)) && !has(name) {
                let found = available.iter().filter(|event| event.0 == system && event.1 == name);
                self.events.extend(found.cloned());
            }
        }
    }
}

/// The value of [`environment::SYSTEM_CALLS`] for a recording of the events `enabled`, each a system and a
/// name; `None` where some calls begin without an event.
pub(crate) fn system_calls(
    available: &[(String, String)],
    enabled: &[(String, String)],
) -> Option<&'static str> {
    const SYSTEM: &str = "syscalls";
    let has_all = |start: &str| {
        let mut events =
            available.iter().filter(|(system, name)| system == SYSTEM && name.starts_with(start));
        events.clone().next().is_some() && events.all(|event| enabled.contains(event))
    };
    match (has_all("sys_enter_"), has_all("sys_exit_")) {
        (true, true) => Some(environment::ALL),
        (true, false) => Some(environment::ENTRIES),
        (false, _) => None,
    }
}

/// Chooses from `available` what matches any of `globs`, or the default set if there are none.
///
/// A pattern is tried on `system:name`, on `name`, and on the name in the trace (`syscall_entry_openat`).
///
/// # Errors
/// [`Error::NothingChosen`] or [`Error::Misspelt`] if nothing matches.
pub fn choose<S: AsRef<str>>(available: Vec<(String, String)>, globs: &[S]) -> Result<Choice, Error> {
    let patterns: Vec<Glob> = if globs.is_empty() {
        DEFAULT.iter().map(|pattern| Glob::new(*pattern)).collect()
    } else {
        globs.iter().map(|pattern| Glob::new(pattern.as_ref())).collect()
    };
    let mut used = vec![false; patterns.len()];
    let names: Vec<String> = available.iter().map(|(_, name)| name.clone()).collect();
    let mut events = available;
    events.retain(|(system, name)| {
        let full = format!("{system}:{name}");
        let traced = lttng::event_name(system, name);
        let mut is_chosen = false;
        for (pattern, used) in patterns.iter().zip(&mut used) {
            let hit = pattern.matches(&full) || pattern.matches(name) || pattern.matches(&traced);
            *used |= hit;
            is_chosen |= hit;
        }
        is_chosen
    });
    let absent: Vec<String> = patterns
        .iter()
        .zip(&used)
        .filter(|(_, used)| !**used)
        .map(|(pattern, _)| pattern.as_str().to_owned())
        .collect();
    if events.is_empty() {
        let meant = absent.iter().find_map(|absent| closest(absent, names.iter().map(String::as_str)));
        return Err(match meant {
            Some(meant) => Error::Misspelt { names: absent.join(", "), meant },
            None => Error::NothingChosen(absent.join(", ")),
        });
    }
    Ok(Choice { events, absent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available() -> Vec<(String, String)> {
        let text = "sched:sched_switch sched:sched_stat_wait irq:softirq_entry syscalls:sys_enter_openat \
                    syscalls:sys_exit_openat irq_vectors:local_timer_entry irq_vectors:vector_alloc";
        text.split(' ')
            .map(|e| e.split_once(':').unwrap())
            .map(|(s, n)| (s.to_owned(), n.to_owned()))
            .collect()
    }

    fn names(globs: &[&str]) -> Vec<String> {
        choose(available(), globs).unwrap().events.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn patterns_are_tried_on_all_names_of_an_event() {
        assert_eq!(names(&["sched:*"]), ["sched_switch", "sched_stat_wait"]);
        assert_eq!(names(&["softirq_*"]), ["softirq_entry"]);
        assert_eq!(names(&["irq_softirq_entry"]), ["softirq_entry"]);
        assert_eq!(names(&["syscall_entry_open*"]), ["sys_enter_openat"]);
        assert_eq!(names(&["*"]).len(), 7);
    }

    #[test]
    fn without_patterns_the_default_set_is_taken_and_what_is_absent_said() {
        let choice = choose::<&str>(available(), &[]).unwrap();
        let names: Vec<_> = choice.events.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(
            names,
            ["sched_switch", "softirq_entry", "sys_enter_openat", "sys_exit_openat", "local_timer_entry"]
        );
        assert!(choice.absent.contains(&"nmi:nmi_handler".to_owned()));
        assert!(!choice.absent.contains(&"syscalls:sys_exit_*".to_owned()));
    }

    #[test]
    fn scheduling_comes_with_the_lives_of_threads() {
        let mut available = available();
        let lives = [
            ("task", "task_newtask"),
            ("sched", "sched_process_exit"),
            ("sched", "sched_process_exec"),
            ("sched", "sched_waking"),
        ];
        available.extend(lives.map(|(system, name)| (system.to_owned(), name.to_owned())));
        let all = ["sched_switch", "task_newtask", "sched_process_exit", "sched_process_exec"];
        for (globs, with) in [
            (&["sched_switch"][..], all.to_vec()),
            (&["softirq*"], vec!["softirq_entry"]),
            (&["sched_waking"], vec!["sched_waking", "sched_process_exec"]),
            (&["sched_switch", "task:*"], all.to_vec()),
        ] {
            let mut choice = choose(available.clone(), globs).unwrap();
            choice.add_lives(&available);
            let names: Vec<_> = choice.events.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!(names, with, "{globs:?}");
        }
    }

    #[test]
    fn all_system_calls_are_those_of_the_kernel() {
        let mut available = available();
        let calls = |available: &[_], globs: &[&str]| {
            system_calls(available, &choose(available.to_vec(), globs).unwrap().events)
        };
        assert_eq!(calls(&available, &[]), Some("all"));
        assert_eq!(calls(&available, &["sys_enter_*", "sched:*"]), Some("entries"));
        assert_eq!(calls(&available, &["sys_exit_*"]), None);
        available.push(("syscalls".into(), "sys_enter_read".into()));
        assert_eq!(calls(&available, &["*openat"]), None);
        available.retain(|(system, _)| system != "syscalls");
        assert_eq!(calls(&available, &[]), None, "a kernel without events of system calls");
    }

    #[test]
    fn patterns_that_match_nothing_at_all_are_an_error() {
        let error = choose(available(), &["sched_swich"]).unwrap_err();
        assert!(error.to_string().ends_with("is `sched_switch` meant?"), "{error}");
        let error = choose(available(), &["foo*", "bar"]).unwrap_err();
        assert!(error.to_string().starts_with("no kernel event is named foo*, bar:"), "{error}");
    }
}
