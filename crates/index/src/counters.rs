//! Counters while the recording is read: what `profile:counters` has counted, as counts per second from one
//! reading to the next; and frequencies of CPUs, each from the event that reports it to the next one.

use crate::builder::Builder;
use std::collections::{BTreeMap, HashMap};
use tracewing_analysis::profile::{counted, most_counted};
use tracewing_timeline::{States, TrackId};
use tracewing_trace::EventRef;
use tracewing_units::{Cpu, Timestamp};
use tracewing_vocabulary::kernel::CpuFrequency;

/// Most counters of a CPU, and of those that are of none.
const MOST: u32 = 64;
/// The counter of time: its counts are nanoseconds.
const CLOCK: &str = "task_clock";

/// What is known of a frequency.
#[derive(Debug, Clone)]
struct Reading {
    row: TrackId,
    /// What was reported last.
    last: Option<(u64, Timestamp)>,
}

/// A stream of counters: its trace by UUID, or by name if it has none, the stream's class, and its number in
/// that. While the recording is made, its place among all streams changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Stream(Result<[u8; 16], String>, u64, u64);

impl Stream {
    fn of(event: &EventRef<'_>) -> Self {
        let (trace, stream) = (event.trace(), event.stream());
        let uuid = trace.class().uuid.ok_or_else(|| trace.name().to_owned());
        Stream(uuid, stream.class_id(), stream.id())
    }
}

/// A row of a counter. Archives of a recording share it; recorders that run at the same time have one each.
#[derive(Debug, Clone)]
struct Shown {
    row: TrackId,
    /// The stream that it shows, and when that was read last.
    stream: Stream,
    until: Timestamp,
}

/// What an event `profile:counters` says.
#[derive(Debug)]
pub(crate) struct Counts {
    values: Vec<(String, u64)>,
    /// The CPU that they are of, if they are of one.
    cpu: Option<Cpu>,
    stream: Stream,
}

impl Counts {
    pub(crate) fn of(event: &EventRef<'_>) -> Self {
        let (values, cpu) = counted(event);
        Counts { values, cpu, stream: Stream::of(event) }
    }
}

/// Follows all counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    /// The last reading by stream, CPU and name.
    counts: HashMap<(Stream, Option<Cpu>, String), (u64, Timestamp)>,
    /// By CPU and name.
    rows: HashMap<(Option<Cpu>, String), Vec<Shown>>,
    frequencies: BTreeMap<Cpu, Reading>,
    /// How many a CPU has, and how many are of none.
    numbers: HashMap<Option<Cpu>, u32>,
    /// Events of the kernel are missing up to then.
    torn: Option<Timestamp>,
}

impl Counters {
    /// Counters were read. Each counts from the beginning of its archive: what it has counted since the last
    /// reading is certain even where events were lost.
    pub(crate) fn counted(
        &mut self,
        Counts { values, cpu, stream }: Counts,
        time: Timestamp,
        states: &mut States<Builder<'_>>,
    ) {
        for (name, value) in values {
            let last = self.counts.insert((stream.clone(), cpu, name.clone()), (value, time));
            let shown = self.rows.entry((cpu, name.clone())).or_default();
            let own = shown.iter().position(|shown| shown.stream == stream);
            // Another stream has ended, or its row would have been read since.
            let since = last.map(|(_, since)| since);
            let free = || shown.iter().position(|shown| since.is_some_and(|since| shown.until <= since));
            let place = match own.or_else(free) {
                Some(place) => place,
                None if last.is_none() && !shown.is_empty() => continue,
                None => {
                    let unit = if name == CLOCK { "ns/s" } else { "/s" };
                    let Some(row) = new_row(&mut self.numbers, cpu, &name, unit, states) else { continue };
                    shown.push(Shown { row, stream: stream.clone(), until: time });
                    shown.len() - 1
                }
            };
            let shown = &mut shown[place];
            (shown.stream, shown.until) = (stream.clone(), time);
            // Values that cannot be are of no use.
            if let Some((before, since)) = last
                && since < time
                && let Some(count) =
                    value.checked_sub(before).filter(|count| *count <= most_counted(time - since))
            {
                states.sink.value(shown.row, per_second(count, since, time), since, time);
            }
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
