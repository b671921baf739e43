//! Counters while the recording is read: what `profile:counters` has counted, as counts per second from one
//! reading to the next; and frequencies of CPUs, each from the event that reports it to the next one.

use crate::builder::Builder;
use std::collections::{BTreeMap, HashMap};
use tracewing_analysis::profile::counted;
use tracewing_timeline::{States, TrackId};
use tracewing_trace::EventRef;
use tracewing_units::{Cpu, Timestamp};
use tracewing_vocabulary::kernel::CpuFrequency;

/// Most counters of a CPU, and of those that are of none.
const MOST: u32 = 64;
/// The counter of time: its counts are nanoseconds.
const CLOCK: &str = "task_clock";

/// What is known of a counter.
#[derive(Debug, Clone)]
struct Reading {
    row: TrackId,
    /// Its last reading, or the frequency that was reported last.
    last: Option<(u64, Timestamp)>,
}

/// Follows all counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    /// By CPU and name.
    counts: HashMap<(Option<Cpu>, String), Reading>,
    frequencies: BTreeMap<Cpu, Reading>,
    /// How many a CPU has, and how many are of none.
    numbers: HashMap<Option<Cpu>, u32>,
    /// Events of the kernel are missing up to then.
    torn: Option<Timestamp>,
}

impl Counters {
    /// Counters were read. Each counts from the beginning of the recording: what it has counted since the
    /// last reading is certain even where events were lost.
    pub(crate) fn counted(
        &mut self,
        event: &EventRef<'_>,
        time: Timestamp,
        states: &mut States<Builder<'_>>,
    ) {
        let (values, cpu) = counted(event);
        for (name, value) in values {
            let key = (cpu, name);
            if !self.counts.contains_key(&key) {
                let unit = if key.1 == CLOCK { "ns/s" } else { "/s" };
                let Some(row) = new_row(&mut self.numbers, cpu, &key.1, unit, states) else { continue };
                self.counts.insert(key.clone(), Reading { row, last: None });
            }
            let Some(counter) = self.counts.get_mut(&key) else { continue };
            // A new archive counts from 0.
            if let Some((before, since)) = counter.last
                && value >= before
                && since < time
            {
                states.sink.value(counter.row, per_second(value - before, since, time), since, time);
            }
            counter.last = Some((value, time));
        }
    }

    /// The frequency of a CPU changes.
    pub(crate) fn frequency(
        &mut self,
        event: Option<CpuFrequency>,
        time: Timestamp,
        states: &mut States<Builder<'_>>,
    ) {
        let Some(CpuFrequency { state: khz, cpu_id }) = event else { return };
        let Ok(cpu) = cpu_id.try_into().map(Cpu) else { return };
        if !self.frequencies.contains_key(&cpu) {
            let new = new_row(&mut self.numbers, Some(cpu), "frequency", "kHz", states);
            let Some(row) = new else { return };
            self.frequencies.insert(cpu, Reading { row, last: None });
        }
        let Some(known) = self.frequencies.get_mut(&cpu) else { return };
        end(known, time, states);
        // While events are lost, it may have changed again.
        known.last = Some((khz, time)).filter(|_| self.torn.is_none_or(|until| until <= time));
    }

    /// Events of the kernel are missing between two times: frequencies are unknown from then on.
    pub(crate) fn lost(&mut self, from: Timestamp, to: Timestamp, states: &mut States<Builder<'_>>) {
        self.torn = self.torn.max(Some(to));
        self.frequencies.values_mut().for_each(|known| end(known, from, states));
    }

    /// The recording is over.
    pub(crate) fn close(&mut self, at: Timestamp, states: &mut States<Builder<'_>>) {
        self.frequencies.values_mut().for_each(|known| end(known, at, states));
    }
}

/// A frequency ends.
fn end(known: &mut Reading, at: Timestamp, states: &mut States<Builder<'_>>) {
    if let Some((khz, since)) = known.last.take() {
        states.sink.value(known.row, khz, since, at);
    }
}

/// A count as one per second, to the nearest whole number.
fn per_second(count: u64, from: Timestamp, to: Timestamp) -> u64 {
    let ns = u128::from((to - from).as_ns().max(1));
    u64::try_from((u128::from(count) * 1_000_000_000 + ns / 2) / ns).unwrap_or(u64::MAX)
}

/// A row for a counter; `None` if there are too many.
fn new_row(
    numbers: &mut HashMap<Option<Cpu>, u32>,
    cpu: Option<Cpu>,
    name: &str,
    unit: &str,
    states: &mut States<Builder<'_>>,
) -> Option<TrackId> {
    let number = numbers.entry(cpu).or_default();
    (*number < MOST).then(|| {
        *number += 1;
        let of = cpu.map(|cpu| states.cpu_track(cpu));
        states.sink.counter(*number - 1, name, unit, of)
    })
}
