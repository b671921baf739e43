//! What `tracewing breakdown` knows of the time in a place: what no event shows is in column `unknown` only.

use crate::output::plural;
use crate::table::milliseconds;
use tracewing_analysis::{
    BreakdownRow as Row, BreakdownTable, Cuts, Lossy, ProcessBreakdown, Ran, Recorded, Spent, Waits,
};
use tracewing_units::Duration;

/// What the recording has events for.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pub recorded: Recorded,
    /// Whether a thread was in its program or in which system call, at any time.
    pub modes: bool,
    /// What the filter left out of threads.
    pub cuts: Cuts,
    /// Whose events were lost.
    pub lossy: Lossy,
}

impl Known {
    pub fn of(ran: &Ran) -> Self {
        Self { recorded: ran.recorded, modes: !ran.modeless, cuts: ran.cuts, lossy: ran.lossy }
    }

    /// Whether it is known how long threads were ready.
    pub fn has_ready(self) -> bool {
        self.recorded.wakes && !self.cuts.waits
    }

    /// Whether a time of waits is known: where the kernel's events were lost, or it is unknown what waits
    /// were for, they may be more than none.
    fn sees(self, ns: Duration, unknown: u64) -> bool {
        !ns.is_zero() || unknown == 0 && !self.lossy.kernel
    }

    /// Whether it is known what ended waits, all but these.
    pub fn has_causes_of(self, unexplained: Waits) -> bool {
        let Recorded { wakes, interrupts, softirqs, .. } = self.recorded;
        wakes && self.modes && !self.cuts.waits && (unexplained.count == 0 || interrupts && softirqs)
    }
}

/// What happened in a place that no event shows is counted in `unknown`.
pub fn has_places(row: &Row, known: Known) -> bool {
    known.modes || matches!(row.place, Spent::Unknown | Spent::Kernel)
}

/// Switches show how long a thread waited.
pub fn has_switches(row: &Row, known: Known) -> bool {
    known.recorded.switches && row.has_times()
}

/// The cause of the wait is known from the system calls of both threads; the other thread, from wakes, and
/// from softirqs if that is how it woke this one.
fn has_causes(row: &Row, known: Known) -> bool {
    has_switches(row, known) && known.has_causes_of(row.unexplained)
}

/// How many waits may have been for another thread, or for anything else.
fn unknown_causes(row: &Row) -> u64 {
    row.unexplained.count + row.lasting.count
}

/// That it never waited for another thread is known only if the causes of all its waits are.
pub fn has_ipc(row: &Row, known: Known) -> bool {
    has_causes(row, known) && known.sees(row.ipc().ns, unknown_causes(row))
}

pub fn has_blocked(row: &Row, known: Known) -> bool {
    has_causes(row, known) && known.sees(row.blocked_ns, unknown_causes(row))
}

pub fn has_ready(row: &Row, known: Known) -> bool {
    has_switches(row, known) && known.has_ready() && known.sees(row.ready_ns, 0)
}

pub fn has_irq(row: &Row, known: Known) -> bool {
    known.recorded.interrupts && row.has_times() && known.sees(row.interrupts_ns(), 0)
}

/// Time of a column, if that is not shown.
pub fn hidden(is_shown: bool, ns: Duration) -> Duration {
    if is_shown { Duration::ZERO } else { ns }
}

/// Waiting of which no event shows for what it was.
pub fn unknown_waits(row: &Row, known: Known) -> Duration {
    let causes = hidden(has_causes(row, known), row.ipc().ns + row.blocked_ns);
    row.unexplained.ns + row.lasting.ns + causes + hidden(has_ready(row, known), row.ready_ns)
}

/// How many waits are unknown, how long, and why, if the causes of others are known.
pub fn unexplained(found: &BreakdownTable, known: Known, ran: &Ran) -> Option<String> {
    let waits = found.processes.iter().map(ProcessBreakdown::unexplained);
    let (count, ns) = waits.fold((0, Duration::ZERO), |(count, ns), of| (count + of.count, ns + of.ns));
    if count == 0 || !(known.recorded.switches && known.recorded.wakes && known.modes) {
        return None;
    }
    let why = match ran.partial && known.recorded.interrupts && known.recorded.softirqs {
        true => {
            ": softirqs are not recorded while a CPU runs none of these threads; --system-wide records all of them"
        }
        // Another line says what the recording lacks, or what it lost.
        false => "",
    };
    let (waits, ms) = (plural(count, "wait"), milliseconds(ns));
    Some(format!(
        "Whether another thread ended {count} {waits} of {ms} ms in all is unknown{why}. This time is `unknown` (--wide)."
    ))
}

/// How many waits have no end, and how long they are.
pub fn lasting(found: &BreakdownTable, known: Known) -> Option<String> {
    let waits = found.processes.iter().map(ProcessBreakdown::lasting);
    let (count, ns) = waits.fold((0, Duration::ZERO), |(count, ns), of| (count + of.count, ns + of.ns));
    let is_said = count > 0 && known.recorded.switches && known.recorded.wakes && known.modes;
    let (waits, ms) = (plural(count, "wait"), milliseconds(ns));
    is_said.then(|| {
        format!(
            "Whether another thread ends {count} {waits} of {ms} ms in all is unknown: none did until the end, or until events are missing. This time is `unknown` (--wide)."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ipc`, `blocked` and `unknown` of a system call in which threads were ready for 1 ns, and waited so
    /// long for other threads, for what no event shows, without an end, and for anything else.
    fn times(
        [ipc, unexplained, lasting, blocked]: [u64; 4],
        recorded: Recorded,
        lossy: Lossy,
    ) -> [Option<u64>; 3] {
        let waits = |ns: u64| Waits { count: ns.min(1), ns: Duration::from_ns(ns) };
        let row = Row {
            place: Spent::Call("read".to_owned()),
            own_ns: Duration::ZERO,
            calls: 1,
            events: 0,
            faults: 0,
            woke: 0,
            ipc: [waits(ipc), waits(0), waits(0), waits(0)],
            unexplained: waits(unexplained),
            lasting: waits(lasting),
            interrupts: Vec::new(),
            blocked_ns: Duration::from_ns(blocked),
            ready_ns: Duration::from_ns(1),
        };
        let known = Known { recorded, modes: true, cuts: Cuts::default(), lossy };
        let unknown = unknown_waits(&row, known).as_ns();
        let [ipc, blocked] = [(has_ipc(&row, known), ipc), (has_blocked(&row, known), blocked)]
            .map(|(is_shown, ns)| is_shown.then_some(ns));
        [ipc, blocked, Some(unknown)]
    }

    #[test]
    fn each_wait_is_in_one_column() {
        let switches = Recorded { switches: true, ..Recorded::default() };
        let wakes = Recorded { wakes: true, ..switches };
        let whole = Recorded { interrupts: true, softirqs: true, ..wakes };
        let (all, lossy) = (Lossy::default(), Lossy { kernel: true, programs: false });
        let times = |waits, recorded| super::tests::times(waits, recorded, all);
        assert_eq!(times([2, 0, 0, 5], whole), [Some(2), Some(5), Some(0)]);
        assert_eq!(times([2, 3, 0, 5], whole), [Some(2), Some(5), Some(3)]);
        assert_eq!(times([0, 3, 0, 0], whole), [None, None, Some(3)], "0 is not known");
        assert_eq!(times([0, 0, 3, 0], whole), [None, None, Some(3)], "nor of waits that last");
        assert_eq!(times([2, 0, 3, 5], wakes), [Some(2), Some(5), Some(3)], "which no softirq has ended");
        assert_eq!(
            super::tests::times([0, 0, 0, 5], whole, lossy),
            [None, Some(5), Some(0)],
            "0 of those left"
        );
        assert_eq!(
            times([2, 3, 0, 5], wakes),
            [None, None, Some(10)],
            "without softirqs, any may have ended it"
        );
        assert_eq!(times([2, 0, 0, 5], wakes), [Some(2), Some(5), Some(0)], "none has ended it");
        assert_eq!(times([2, 0, 0, 5], switches), [None, None, Some(8)]);
    }
}
