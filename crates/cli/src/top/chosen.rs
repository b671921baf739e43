//! The processes whose rows are shown.

use std::collections::HashMap;
use tracewing_analysis::Window;
use tracewing_rules::ProcessPattern;
use tracewing_units::Pid;

/// Leaves only what is of processes that one of the patterns matches; all if there is none.
pub fn keep(window: &mut Window, patterns: &[ProcessPattern]) {
    if patterns.is_empty() {
        return;
    }
    let mut names: HashMap<Pid, String> = HashMap::new();
    let locks = window.locks.rows.iter().map(|row| (row.process, &row.process_name));
    let calls = window.breakdown.processes.iter().map(|process| (process.process, &process.name));
    for (process, name) in locks.chain(calls).filter(|(_, name)| !name.is_empty()) {
        process.and_then(|process| names.insert(process, name.clone()));
    }
    for thread in &window.threads.threads {
        if let Some(process) = thread.process.filter(|process| process.first_thread() == thread.tid) {
            names.insert(process, thread.name.clone());
        }
    }
    let fits = |process: Option<Pid>| {
        let name = process.and_then(|process| names.get(&process)).map(String::as_str);
        process.is_some_and(|process| patterns.iter().any(|pattern| pattern.fits(process, name)))
    };
    window.threads.threads.retain(|thread| fits(thread.process));
    window.tasks.retain(|task| fits(task.process));
    window.locks.rows.retain(|row| fits(row.process));
    window.breakdown.processes.retain(|process| fits(process.process));
}
