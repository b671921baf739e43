//! Rows: what has states over time, and where its blocks are.

use crate::bytes::{Bytes, put, put_text, put_time};
use crate::error::{Damage, Damaged};
use tracewing_units::{Cpu, Duration, Pid, Task, Tid};

/// Number of a row in its index, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct RowId(pub u32);

/// What a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A CPU: which thread it ran, and how.
    Cpu(Cpu),
    /// A process: the thread id of its first thread. It has no states of its own. `None` collects all threads
    /// and tasks whose process no event reports.
    Process(Option<Pid>),
    /// A thread; a number may belong to several threads, one after the other.
    Thread(Tid),
    /// A user thread, such as a task of an async runtime.
    Task(Task),
    /// The tasks of one name in a process, which is the row's name; names that differ only in a number at
    /// their end are one (`connection/*`). This is the number of the name among those of the process, in the
    /// order in which their first tasks begin; [`RowKind::OTHERS`] has the tasks of all further names. While
    /// the recording is made, only the name of a row stays the same. It has no states of its own. Its parent
    /// is the process.
    Tasks(u32),
    /// The functions that a thread is in, at this depth of calls. Its parent is the thread.
    Calls(u32),
    /// The spans that a thread is in, each within that of the row before. Its parent is the thread.
    Spans(u32),
    /// The events that a thread emits of one provider, which is the row's name; this is the number of the
    /// provider among those of the thread. Each is a state of one nanosecond. Its parent is the thread.
    Events(u32),
    /// The locks that a thread or a task waits for or has: several at the same time are in several rows, of
    /// which this is the number. Its parent is the thread or task.
    Locks(u32),
    /// The samples of a thread, each a state of one nanosecond. Its parent is the thread.
    Samples,
    /// The system calls that a thread is in, also while it sleeps there. Time without a state is in the
    /// program. Its parent is the thread.
    SystemCalls,
    /// A counter of a CPU, which is its parent, or of all that is recorded: its name is the row's. It has
    /// values instead of states ([`Index::values`](crate::Index::values)). This is its number among the
    /// counters of the CPU, or among those that are of none.
    Counter(u32),
}

impl RowKind {
    /// The number of the tasks of all names that have no row of their own.
    pub const OTHERS: u32 = u32::MAX;
}

/// Bytes of an entry in the tail, at least: five numbers.
const SHORTEST: usize = 5;

/// Something with states over time. Its times are since the index begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it is of. Numbers of threads are reused: several rows may have the same.
    pub kind: RowKind,
    /// Its last known name; may be empty.
    pub name: String,
    /// Its process, if the events say.
    pub process: Option<Pid>,
    /// The row of its process; of parts, that of the thread or task.
    pub parent: Option<RowId>,
    /// Of a task, the row of the tasks of its name.
    pub group: Option<RowId>,
    /// Its first and its last time.
    pub begin: Duration,
    /// The end of its last state; before `begin` if it has none.
    pub end: Duration,
    /// Whether the recording follows it; always true for CPUs.
    pub is_followed: bool,
    /// Time on CPUs; of a CPU, the time that it was busy; of a process, the time of its threads; of tasks of
    /// one name, the time of these.
    pub used: Duration,
    /// While the recording is made: states before this time are certain, later ones may still change.
    /// [`Duration::MAX`] in an index that is complete.
    pub certain: Duration,
    /// What only a counter has.
    pub counter: Option<Box<Counter>>,
    /// User mode before this time was of unknown mode; of a CPU, that of some threads.
    pub(crate) doubted: Duration,
    pub(crate) wakes: Vec<Entry>,
    pub(crate) leaves: Vec<Entry>,
    pub(crate) levels: Vec<Vec<Entry>>,
}

/// What a counter has besides a row: its values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counter {
    /// Of its values.
    pub unit: String,
    /// Its least and its greatest value.
    pub range: (u64, u64),
    /// The blocks of its values, and those of their levels.
    pub(crate) values: Vec<Entry>,
    pub(crate) levels: Vec<Vec<Entry>>,
}

/// Where a block is, and what time it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    /// In the file, in bytes.
    pub(crate) offset: u64,
    /// In bytes, without the sum.
    pub(crate) length: u32,
    /// Spans or nodes in it.
    pub(crate) count: u32,
}

impl Row {
    /// Whether it is a part of a thread or task: its functions, spans, events, locks, samples or system
    /// calls; or a counter.
    pub fn is_part(&self) -> bool {
        match self.kind {
            RowKind::Cpu(_)
            | RowKind::Process(_)
            | RowKind::Thread(_)
            | RowKind::Task(_)
            | RowKind::Tasks(_) => false,
            RowKind::Calls(_)
            | RowKind::Locks(_)
            | RowKind::Spans(_)
            | RowKind::Events(_)
            | RowKind::Samples
            | RowKind::SystemCalls
            | RowKind::Counter(_) => true,
        }
    }

    /// Whether it stands for other rows, which its picture sums up: the threads of a process, or tasks.
    pub fn is_group(&self) -> bool {
        matches!(self.kind, RowKind::Process(_) | RowKind::Tasks(_))
    }

    pub(crate) fn new(kind: RowKind) -> Self {
        Row {
            kind,
            name: String::new(),
            process: None,
            parent: None,
            group: None,
            begin: Duration::MAX,
            end: Duration::ZERO,
            is_followed: false,
            used: Duration::ZERO,
            certain: Duration::MAX,
            counter: matches!(kind, RowKind::Counter(_)).then(Box::default),
            doubted: Duration::ZERO,
            wakes: Vec::new(),
            leaves: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// The same with the times, values and blocks of another one.
    pub(crate) fn with_blocks_of(self, other: Row) -> Row {
        let Row { kind, name, process, parent, is_followed, certain, counter, doubted, .. } = self;
        let counter = counter.zip(other.counter).map(|(own, mut other)| {
            other.unit = own.unit;
            other
        });
        Row { kind, name, process, parent, is_followed, certain, counter, doubted, ..other }
    }

    pub(crate) fn covers(&mut self, begin: Duration, end: Duration) {
        (self.begin, self.end) = (self.begin.min(begin), self.end.max(end));
    }

    /// Whether it has any state.
    pub fn has_states(&self) -> bool {
        self.begin < self.end
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let (kind, number) = match self.kind {
            RowKind::Cpu(cpu) => (0, u64::from(cpu.0)),
            RowKind::Process(pid) => (1, optional(pid)),
            RowKind::Thread(tid) => (2, u64::from(tid.0.cast_unsigned())),
            RowKind::Task(task) => (3, task.0),
            RowKind::Calls(depth) => (4, u64::from(depth)),
            RowKind::Locks(number) => (5, u64::from(number)),
            RowKind::Spans(depth) => (6, u64::from(depth)),
            RowKind::Events(number) => (7, u64::from(number)),
            RowKind::Samples => (8, 0),
            RowKind::SystemCalls => (9, 0),
            RowKind::Counter(number) => (10, u64::from(number)),
            RowKind::Tasks(number) => (11, u64::from(number)),
        };
        put(out, kind);
        put(out, number);
        put(out, optional(self.process));
        put(out, self.parent.map_or(0, |row| u64::from(row.0) + 1));
        put_text(out, &self.name);
        put(out, u64::from(self.is_followed));
        for time in [self.begin, self.end, self.used, self.doubted] {
            put_time(out, time);
        }
        put(out, self.levels.len() as u64);
        [&self.wakes, &self.leaves]
            .into_iter()
            .chain(&self.levels)
            .for_each(|entries| write_entries(entries, out));
        if let Some(counter) = &self.counter {
            counter.write(out);
        }
        if let RowKind::Task(_) = self.kind {
            put(out, self.group.map_or(0, |row| u64::from(row.0) + 1));
        }
    }

    /// The next row of some bytes; all its blocks lie before `body`.
    pub(crate) fn read(bytes: &mut Bytes<'_>, body: u64) -> Result<Row, Damaged> {
        let (kind, number) = (bytes.number()?, bytes.number()?);
        let small = u32::try_from(number).map_err(|_| Damaged(Damage::LargeRowNumber));
        let kind = match kind {
            0 => RowKind::Cpu(Cpu(small?)),
            1 => RowKind::Process(process(number)?),
            2 => RowKind::Thread(Tid(small?.cast_signed())),
            3 => RowKind::Task(Task(number)),
            4 => RowKind::Calls(small?),
            5 => RowKind::Locks(small?),
            6 => RowKind::Spans(small?),
            7 => RowKind::Events(small?),
            8 => RowKind::Samples,
            9 => RowKind::SystemCalls,
            10 => RowKind::Counter(small?),
            11 => RowKind::Tasks(small?),
            _ => return Err(Damaged(Damage::NoRowKind)),
        };
        let process = process(bytes.number()?)?;
        let parent = bytes.small()?.checked_sub(1).map(RowId);
        let (name, is_followed) = (bytes.text()?, bytes.number()? != 0);
        let [begin, end, used, doubted] = [bytes.time()?, bytes.time()?, bytes.time()?, bytes.time()?];
        let levels = bytes.number()?;
        let (wakes, leaves) = (read_entries(bytes, body)?, read_entries(bytes, body)?);
        let levels = (0..levels).map(|_| read_entries(bytes, body)).collect::<Result<_, _>>()?;
        let mut row = Row {
            name,
            process,
            parent,
            begin,
            end,
            is_followed,
            used,
            doubted,
            wakes,
            leaves,
            levels,
            ..Row::new(kind)
        };
        match kind {
            RowKind::Counter(_) => row.counter = Some(Box::new(Counter::read(bytes, body)?)),
            RowKind::Task(_) => row.group = bytes.small()?.checked_sub(1).map(RowId),
            _ => {}
        }
        Ok(row)
    }
}

impl Counter {
    fn write(&self, out: &mut Vec<u8>) {
        put_text(out, &self.unit);
        put(out, self.range.0);
        put(out, self.range.1);
        put(out, self.levels.len() as u64);
        [&self.values].into_iter().chain(&self.levels).for_each(|entries| write_entries(entries, out));
    }

    fn read(bytes: &mut Bytes<'_>, body: u64) -> Result<Self, Damaged> {
        let (unit, range, levels) = (bytes.text()?, (bytes.number()?, bytes.number()?), bytes.number()?);
        let values = read_entries(bytes, body)?;
        let levels = (0..levels).map(|_| read_entries(bytes, body)).collect::<Result<_, _>>()?;
        Ok(Counter { unit, range, values, levels })
    }
}

fn optional(pid: Option<Pid>) -> u64 {
    pid.map_or(0, |pid| u64::from(pid.0.cast_unsigned()) + 1)
}

fn process(number: u64) -> Result<Option<Pid>, Damaged> {
    let Some(pid) = number.checked_sub(1) else { return Ok(None) };
    let pid = u32::try_from(pid).map_err(|_| Damaged(Damage::LargeProcess))?;
    Ok(Some(Pid(pid.cast_signed())))
}

fn write_entries(entries: &[Entry], out: &mut Vec<u8>) {
    put(out, entries.len() as u64);
    let (mut time, mut offset) = (Duration::ZERO, 0);
    for entry in entries {
        put_time(out, entry.from - time);
        put_time(out, entry.to - entry.from);
        put(out, entry.offset - offset);
        put(out, u64::from(entry.length));
        put(out, u64::from(entry.count));
        (time, offset) = (entry.to, entry.offset);
    }
}

fn read_entries(bytes: &mut Bytes<'_>, body: u64) -> Result<Vec<Entry>, Damaged> {
    const LATE: Damaged = Damaged(Damage::BlockOutside);
    let count = bytes.number()?;
    // Most rows have few: room for more would double what a million rows take. A wrong count takes no more
    // than the bytes that are there.
    let most = (bytes.0.len() / SHORTEST) as u64;
    let mut entries = Vec::with_capacity(count.min(most) as usize);
    let (mut time, mut offset) = (Duration::ZERO, 0_u64);
    for _ in 0..count {
        let from = time.checked_add(bytes.time()?).ok_or(LATE)?;
        let to = from.checked_add(bytes.time()?).filter(|to| *to > from).ok_or(LATE)?;
        offset = offset.checked_add(bytes.number()?).ok_or(LATE)?;
        let (length, count) = (bytes.small()?, bytes.small()?);
        let end =
            offset.checked_add(u64::from(length)).and_then(|end| end.checked_add(crate::body::SUM as u64));
        end.filter(|end| *end <= body).ok_or(LATE)?;
        entries.push(Entry { from, to, offset, length, count });
        time = to;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    #[test]
    fn rows_take_no_more_room_than_they_need() {
        assert!(size_of::<Row>() <= 208 && size_of::<Entry>() == 32, "{}", size_of::<Row>());
        let entry = |at: u64| Entry {
            from: Duration::from_ns(at),
            to: Duration::from_ns(at + 1),
            offset: at,
            length: 1,
            count: 1,
        };
        for (wakes, leaves) in [(0, 1), (1, 1), (5, 3)] {
            let (wakes, leaves) = ((0..wakes).map(entry).collect(), (0..leaves).map(entry).collect());
            let row = Row { wakes, leaves, group: Some(RowId(7)), ..Row::new(RowKind::Task(Task(5))) };
            let mut bytes = Vec::new();
            row.write(&mut bytes);
            // Of other rows.
            bytes.resize(bytes.len() + 1000, 0);
            let read = Row::read(&mut Bytes(&bytes), 1000).unwrap();
            assert_eq!(read, row);
            for entries in [&read.wakes, &read.leaves] {
                assert_eq!(entries.capacity(), entries.len());
            }
        }
    }
}
