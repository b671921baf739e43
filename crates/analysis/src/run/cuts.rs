//! What a filter cuts out of the lives of the threads and tasks that it lets through.

use tracewing_rules::Predicate;
use tracewing_trace::Filter;
use tracewing_trace::super_trace::{Column, TimeCondition};

/// What a filter leaves out of LWPs and user threads of which it lets through the rest. What that would show
/// is unknown, not 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Cuts {
    /// Parts of what an LWP does: on other CPUs, for other user threads, or while a condition does not hold.
    pub lwps: bool,
    /// All that an LWP does without a CPU, since CPUs are chosen.
    pub waits: bool,
    /// Parts of polls, so what is known of whole polls only, such as the longest one, is unknown.
    pub polls: bool,
    /// All that a user thread does while no LWP runs it, since CPUs or LWPs are chosen.
    pub between_polls: bool,
}

impl Cuts {
    pub(super) fn of(filter: &Filter) -> Self {
        // A condition on anything else than columns selects events, and no times.
        let is_of_times = |condition: &&Predicate| TimeCondition::new(condition).is_some();
        let condition = filter.predicate.as_ref().filter(is_of_times);
        let asks_for =
            |column: Column| condition.is_some_and(|condition| condition.asks_for_context(column.name()));
        let asks_beyond = |columns: &[Column]| {
            let is_one = |name: &str| Column::named(name).is_some_and(|column| columns.contains(&column));
            condition.is_some_and(|condition| !condition.asks_only_for(|variable| is_one(&variable.name)))
        };
        // A name may change during a life, a number does not.
        let of_cpus = !filter.cpus.is_empty();
        let waits = of_cpus || asks_for(Column::Cpu);
        Self {
            lwps: of_cpus || !filter.threads.is_empty() || asks_beyond(&[Column::Pid, Column::Tid]),
            waits,
            polls: of_cpus || asks_beyond(&[Column::Pid, Column::Tid, Column::Task]),
            between_polls: waits
                || !filter.tids.is_empty()
                || asks_for(Column::Tid)
                || asks_for(Column::Comm),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_trace::ThreadPattern;
    use tracewing_units::{Cpu, Tid};

    /// What is cut of LWPs, their waits, polls, and the time between these.
    fn cuts(filter: &Filter) -> [bool; 4] {
        let Cuts { lwps, waits, polls, between_polls } = Cuts::of(filter);
        [lwps, waits, polls, between_polls]
    }

    #[test]
    fn a_filter_cuts_what_it_chooses_parts_of() {
        let all = Filter::default();
        assert_eq!(cuts(&all), [false; 4]);
        assert_eq!(cuts(&Filter { cpus: vec![Cpu(0)..=Cpu(1)], ..all.clone() }), [true; 4]);
        assert_eq!(cuts(&Filter { tids: vec![Tid(7)], ..all.clone() }), [false, false, false, true]);
        let of_task = Filter { threads: vec![ThreadPattern::new("work/1")], ..all };
        assert_eq!(cuts(&of_task), [true, false, false, false]);
    }

    #[test]
    fn a_condition_cuts_what_its_columns_change_for() {
        let of = |text: &str| {
            let predicate = Some(text.parse::<Predicate>().expect("a condition"));
            cuts(&Filter { predicate, ..Filter::default() })
        };
        assert_eq!(of("$pid == 7"), [false; 4]);
        assert_eq!(of("$cpu == 0"), [true; 4]);
        assert_eq!(of("$tid == 7 || $cpu == 0"), [true; 4]);
        assert_eq!(of("$tid == 7"), [false, false, false, true]);
        assert_eq!(of("$task == 7"), [true, false, false, false]);
        assert_eq!(of("$state == 'blocked'"), [true, false, true, false]);
        assert_eq!(of("bytes == 7 && $cpu == 0"), [false; 4], "it selects events");
    }
}
