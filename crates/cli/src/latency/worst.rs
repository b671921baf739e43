//! The longest periods for people: their ends, what thread and task did meanwhile, and the command for their
//! critical path.

use super::rows::key;
use crate::input::Input;
use crate::output::{print_broken, quoted, shown};
use crate::table::period;
use std::io::{Result as IoResult, Write};
use tracewing_analysis::{Episode, LatencyTable, Moment, total};
use tracewing_units::{Duration, Timestamp};

const NS_PER_S: u64 = 1_000_000_000;

/// The longest periods, and what their threads did.
pub fn print(out: &mut impl Write, table: &LatencyTable, input: &Input) -> IoResult<()> {
    // They were found when the recording was opened.
    let traces = input.traces().unwrap_or_default();
    let traces: Vec<_> = traces.iter().map(|trace| quoted(trace)).collect();
    for (place, worst) in table.worst.iter().enumerate() {
        let key = if worst.key.is_empty() { String::new() } else { format!("  {}", key(worst)) };
        writeln!(out, "{}. {}{}", place + 1, period(worst.ns), shown(&key))?;
        for (what, at) in [("from", &worst.begin), ("to", &worst.end)] {
            let parts = [
                at.cpu.map(|cpu| format!("CPU {cpu}")),
                at.process.map(|process| format!("process {process}")),
                at.tid.map(|tid| format!("thread {tid}")),
                at.user_thread.map(|thread| format!("task {thread}")),
            ];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            writeln!(out, "   {what:<5}{}  {}", input.zone().format(at.ns), parts.join(", "))?;
        }
        for episode in [&worst.user_thread, &worst.lwp].into_iter().flatten() {
            print_episode(out, episode, worst.end.ns)?;
        }
        let whose = match (&worst.end, &worst.user_thread) {
            (Moment { process: Some(process), user_thread: Some(thread), .. }, Some(_)) => {
                format!("--task {process}/{thread}")
            }
            (Moment { tid: Some(tid), .. }, _) if worst.lwp.is_some() => format!("--tid {tid}"),
            _ => continue,
        };
        // As the options read it.
        let seconds = |at: Timestamp| {
            let ns = at.as_ns();
            let sign = if ns < 0 { "-" } else { "" };
            format!("{sign}{}.{:09}", ns.unsigned_abs() / NS_PER_S, ns.unsigned_abs() % NS_PER_S)
        };
        writeln!(
            out,
            "   tracewing critical-path {} {whose} --from {} --to {}",
            shown(&traces.join(" ")),
            seconds(worst.begin.ns),
            seconds(worst.end.ns)
        )?;
    }
    Ok(())
}

/// What a thread or task did in a period, in one line; and what woke it, in another.
fn print_episode(out: &mut impl Write, episode: &Episode, end: Timestamp) -> IoResult<()> {
    let Episode { actor, times, system_calls, preempted_ns, wakeups, woken_by, woken_ns, hooked: _ } =
        episode;
    let listed = |parts: Vec<String>| match &parts[..] {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    };
    let part = |(name, ns): (&str, Duration)| format!("{name} {}", period(ns));
    let calls = system_calls.iter().map(|(call, ns)| part((call, *ns)));
    let gave_way = if actor.user_thread.is_some() { "yielded" } else { "preempted" };
    let preempted = preempted_ns.filter(|ns| !ns.is_zero()).map(|ns| part((gave_way, ns)));
    let on = times.blocked_on.iter().map(|blocked| part((blocked.on.as_deref().unwrap_or("?"), blocked.ns)));
    let known = total([times.user_ns, times.system_ns, times.interrupted_ns].into_iter().flatten());
    let in_no_mode = times.running_ns.map(|ns| ns - known);
    let parts = [
        (times.user_ns, "user", String::new()),
        (times.system_ns, "system calls", listed(calls.collect())),
        (times.interrupted_ns, "interrupted", String::new()),
        (in_no_mode, "running", String::new()),
        (times.waiting_ns, "ready", listed(preempted.into_iter().collect())),
        (times.blocked_ns, "blocked", listed(on.collect())),
        (Some(times.nested_ns), "others within it", String::new()),
        (Some(times.unknown_ns), "unknown", String::new()),
    ];
    let parts =
        parts.into_iter().filter_map(|(ns, what, more)| Some((ns.filter(|ns| !ns.is_zero())?, what, more)));
    let parts: Vec<_> = parts.map(|(ns, what, more)| format!("{what} {}{more}", period(ns))).collect();
    let line = format!("{}: {}", shown(&actor.to_string()), shown(&parts.join(", ")));
    print_broken(out, 3, &line)?;
    if let (Some(by), Some(at)) = (woken_by, woken_ns) {
        let times = match wakeups {
            Some(wakeups @ 2..) => format!("{wakeups} times, last"),
            _ => "once".to_owned(),
        };
        let before = period(end.abs_diff(*at));
        writeln!(out, "     woken {times} by {}, {before} before the end", shown(&by.to_string()))?;
    }
    Ok(())
}
