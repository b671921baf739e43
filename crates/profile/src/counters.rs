//! Counters that are read periodically: the kernel's, and the processor's if it has any.

use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings as abi;
use tracewing_units::{Cpu, Tid};

use crate::attribute::{Terms, switch};

struct Kind {
    /// Name of its field.
    name: &'static str,
    event: (u32, u32),
    /// Whether it counts only what the kernel does.
    kernel: bool,
}

const fn software(name: &'static str, config: u32, kernel: bool) -> Kind {
    Kind { name, event: (abi::PERF_TYPE_SOFTWARE, config), kernel }
}

const fn hardware(name: &'static str, config: u32) -> Kind {
    Kind { name, event: (abi::PERF_TYPE_HARDWARE, config), kernel: false }
}

/// The time that threads ran, in nanoseconds.
pub(crate) const TASK_CLOCK: &str = "task_clock";

const KINDS: [Kind; 8] = [
    software(TASK_CLOCK, abi::PERF_COUNT_SW_TASK_CLOCK, false),
    software("page_faults", abi::PERF_COUNT_SW_PAGE_FAULTS, false),
    software("context_switches", abi::PERF_COUNT_SW_CONTEXT_SWITCHES, true),
    software("cpu_migrations", abi::PERF_COUNT_SW_CPU_MIGRATIONS, true),
    hardware("cycles", abi::PERF_COUNT_HW_CPU_CYCLES),
    hardware("instructions", abi::PERF_COUNT_HW_INSTRUCTIONS),
    hardware("cache_misses", abi::PERF_COUNT_HW_CACHE_MISSES),
    hardware("branch_misses", abi::PERF_COUNT_HW_BRANCH_MISSES),
];

/// The counters that this machine provides.
pub(crate) struct Available(Vec<&'static Kind>);

impl Available {
    /// The counters that can be opened on one CPU.
    pub(crate) fn find(terms: &Terms, cpu: Cpu) -> Self {
        Self::of(terms.kernel, |event| terms.open_counter(event, cpu).is_ok())
    }

    fn of(kernel: bool, is_there: impl Fn((u32, u32)) -> bool) -> Self {
        let can_be_had = |kind: &&Kind| (kernel || !kind.kernel) && is_there(kind.event);
        Self(KINDS.iter().filter(can_be_had).collect())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|kind| kind.name)
    }

    /// Like [`Available::open`], for one thread and what it starts.
    pub(crate) fn open_of(&self, terms: &Terms, tid: Tid) -> Counters {
        Counters(self.0.iter().map(|kind| terms.open_counter_of(tid, kind.event, Cpu(0)).ok()).collect())
    }

    /// Opens the counters; one that cannot be opened reads as 0.
    pub(crate) fn open(&self, terms: &Terms, cpu: Cpu) -> Counters {
        Counters(self.0.iter().map(|kind| terms.open_counter(kind.event, cpu).ok()).collect())
    }
}

/// Open counters of a tree or of a CPU.
pub(crate) struct Counters(Vec<Option<OwnedFd>>);

impl Counters {
    pub(crate) fn enable(&self) {
        self.0.iter().flatten().for_each(|counter| drop(switch(counter, true)));
    }

    /// Their values since they were opened.
    pub(crate) fn read(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|counter| counter.as_ref().and_then(value).unwrap_or(0))
    }
}

/// What counters have counted since the beginning of a trace, which may continue another one.
#[derive(Default)]
pub(crate) struct SinceBegin {
    before: Vec<u64>,
    last: Vec<u64>,
}

impl SinceBegin {
    /// Takes their values; gives what was counted.
    pub(crate) fn of(&mut self, values: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
        self.last.clear();
        self.last.extend(values);
        let before = self.before.iter().copied().chain(std::iter::repeat(0));
        self.last.iter().zip(before).map(|(value, before)| value.saturating_sub(before))
    }

    /// A trace begins with the values that were taken last.
    pub(crate) fn restart(&mut self) {
        self.before.clone_from(&self.last);
    }
}

/// A counter's value. If the processor has too few counters, they take turns, and the value is extrapolated.
fn value(counter: &OwnedFd) -> Option<u64> {
    let mut bytes = [0; 24];
    if rustix::io::read(counter, &mut bytes).ok()? < bytes.len() {
        return None;
    }
    let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes);
    let (value, enabled, running) = (number(0).ok()?, number(8).ok()?, number(16).ok()?);
    let scaled = u128::from(value) * u128::from(enabled) / u128::from(running.max(1));
    Some(if running < enabled { u64::try_from(scaled).unwrap_or(u64::MAX) } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_continues_another_one_counts_from_its_begin() {
        let mut counted = SinceBegin::default();
        let mut of = |values: [u64; 2]| {
            let all: Vec<u64> = counted.of(values.into_iter()).collect();
            counted.restart();
            all
        };
        assert_eq!(of([5, 7]), [5, 7]);
        assert_eq!(of([6, 7]), [1, 0]);
        // Extrapolated values may go back.
        assert_eq!(of([5, 9]), [0, 2]);
    }

    #[test]
    fn counters_are_those_that_the_machine_has() {
        let names = |available: &Available| available.names().collect::<Vec<_>>();
        let software = Available::of(true, |(kind, _)| kind == abi::PERF_TYPE_SOFTWARE);
        assert_eq!(names(&software), ["task_clock", "page_faults", "context_switches", "cpu_migrations"]);
        let programs = Available::of(false, |_| true);
        assert_eq!(
            names(&programs),
            ["task_clock", "page_faults", "cycles", "instructions", "cache_misses", "branch_misses"]
        );
        assert_eq!(names(&Available::of(true, |_| true)).len(), KINDS.len());
        assert!(names(&Available::of(true, |_| false)).is_empty());
    }
}
