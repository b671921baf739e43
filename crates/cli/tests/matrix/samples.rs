//! What samples say of CPU time, against a program's account.

use super::checks::Checks;
use super::server_log::{Range, number};
use serde_json::Value;

/// From a sample of a CPU to the next one: 997 a second.
const PERIOD_NS: u64 = 1_003_009;

/// What samples may say where so much time was spent: their number is a random one, here four times its
/// standard deviation off; the timer takes none while interrupts are off, as in a part of the kernel.
fn sampled(range: Range) -> Range {
    let around = |ns: u64| 4 * (ns.div_ceil(PERIOD_NS).isqrt() + 1) * PERIOD_NS;
    let least = (range.least / 2).saturating_sub(around(range.least));
    Range { least, most: range.most + around(range.most) }
}

impl Checks<'_> {
    /// `profile`, by thread and by function, where samples were taken.
    pub fn samples(&self) {
        if !self.trace.join("profile").exists() {
            return;
        }
        let of_thread = self.rows(&["profile", "--by", "thread"], "profile");
        for row in &of_thread {
            if let Some(range) = row["tid"].as_u64().and_then(|tid| self.account.threads.get(&tid)) {
                self.holds("", row, "time_ns", sampled(*range));
            }
        }
        // Samples of the program, or where its process is unknown, of its threads.
        let is_its = |row: &&Value| match self.account.process {
            Some((pid, _)) => row["process"] == pid,
            None => row["tid"].as_u64().is_some_and(|tid| self.account.threads.contains_key(&tid)),
        };
        let total =
            |rows: &[Value]| rows.iter().filter(is_its).map(|row| number(row, "time_ns")).sum::<u64>();
        let range = match self.account.process {
            Some((_, range)) => range,
            None => self.account.threads.values().fold(Range::default(), |sum, range| Range {
                least: sum.least + range.least,
                most: sum.most + range.most,
            }),
        };
        let row = serde_json::json!({ "time_ns": total(&of_thread) });
        self.holds("profile", &row, "time_ns", sampled(range));
        let of_function = self.rows(&["profile"], "profile");
        let sums = [&of_thread, &of_function]
            .map(|rows| -> u64 { rows.iter().map(|row| number(row, "self_samples")).sum() });
        assert_eq!(sums[0], sums[1], "{}: {of_function:?}", self.how);
    }
}
