//! Stores records in sequence, to be read backwards: one block of them at a time in memory, all others in a
//! file. Blocks that say nothing of the requested time are not read.

use super::record::{Decoder, Encoder, Record};
use std::io::{self, Read, Seek, SeekFrom, Write};
use tracewing_units::Timestamp;

/// Bytes of a block.
const BLOCK: usize = 32 << 10;

/// Where a block lies in the file.
#[derive(Debug, Clone, Copy)]
struct Block {
    offset: u64,
    length: usize,
    /// The latest time of all records up to its end.
    latest: Timestamp,
    /// Before this time, none of its records matters.
    since: Timestamp,
}

/// Stores records in the order of their report: the last block in memory, the others in a file.
#[derive(Debug)]
pub(super) struct Tape<F> {
    file: F,
    blocks: Vec<Block>,
    encoder: Encoder,
    /// Of the records in memory: see [`Block`].
    since: Timestamp,
    written: u64,
    /// A block is written when it has this many bytes.
    block: usize,
}

impl<F: Read + Write + Seek> Tape<F> {
    /// A tape in a file that is empty.
    pub(super) fn new(file: F) -> Self {
        Self::of_blocks(file, BLOCK)
    }

    /// The same with blocks of about so many bytes.
    pub(super) fn of_blocks(file: F, block: usize) -> Self {
        let encoder = Encoder { bytes: Vec::with_capacity(block.min(BLOCK) + 1024), ..Encoder::default() };
        Tape { file, blocks: Vec::new(), encoder, since: Timestamp::MAX, written: 0, block }
    }

    /// Appends a record, which does not matter before the time `since`.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub(super) fn put(&mut self, record: &Record, since: Timestamp) -> io::Result<()> {
        self.encoder.put(record);
        self.since = self.since.min(since);
        if self.encoder.bytes.len() >= self.block { self.write() } else { Ok(()) }
    }

    /// Nothing is appended any more: the records from the last to the first.
    pub(super) fn rewind(self) -> Rewind<F> {
        let Encoder { bytes, latest } = self.encoder;
        Rewind { file: self.file, blocks: self.blocks, block: Decoder { bytes, latest } }
    }

    #[cold]
    fn write(&mut self) -> io::Result<()> {
        let Encoder { bytes, latest } = &mut self.encoder;
        self.file.write_all(bytes)?;
        let since = std::mem::replace(&mut self.since, Timestamp::MAX);
        self.blocks.push(Block { offset: self.written, length: bytes.len(), latest: *latest, since });
        self.written += bytes.len() as u64;
        bytes.clear();
        Ok(())
    }
}

/// Gives records back, the last one first.
#[derive(Debug)]
pub(super) struct Rewind<F> {
    file: F,
    /// Those that have not been read.
    blocks: Vec<Block>,
    /// What is left of the one that has.
    block: Decoder,
}

impl<F: Read + Seek> Rewind<F> {
    /// The latest time of all records that have not been taken; `None` after the first. Blocks that only
    /// matter after `time` are passed over.
    ///
    /// # Errors
    /// The file cannot be read.
    #[inline]
    pub(super) fn latest(&mut self, time: Timestamp) -> io::Result<Option<Timestamp>> {
        match self.block.bytes.is_empty() && !self.read(time)? {
            true => Ok(None),
            false => Ok(Some(self.block.latest)),
        }
    }

    /// Takes the record before the one that was taken last, once [`Rewind::latest`] has said that there is
    /// one.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Record> {
        self.block.take()
    }

    /// Loads the previous block that matters at `time`; false before the first.
    #[cold]
    fn read(&mut self, time: Timestamp) -> io::Result<bool> {
        while self.blocks.pop_if(|block| block.since > time).is_some() {}
        let Some(Block { offset, length, latest, .. }) = self.blocks.pop() else { return Ok(false) };
        self.file.seek(SeekFrom::Start(offset))?;
        self.block.bytes.resize(length, 0);
        self.block.latest = latest;
        self.file.read_exact(&mut self.block.bytes)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{By, Identity, Stretch, UserDoing};
    use super::*;
    use proptest::prelude::*;
    use tracewing_trace::super_trace::{Doing, LwpSerial, Mode, Name, TaskSerial};
    use tracewing_units::{Cpu, Pid};

    fn doing() -> impl Strategy<Value = Doing> {
        let name = || any::<u32>().prop_map(Name);
        let mode = prop_oneof![
            Just(Mode::Unknown),
            Just(Mode::User),
            name().prop_map(Mode::SystemCall),
            prop::option::of(name()).prop_map(Mode::Interrupt),
        ];
        prop_oneof![
            Just(Doing::Unknown),
            (any::<u32>(), mode).prop_map(|(cpu, mode)| Doing::Running { cpu: Cpu(cpu), mode }),
            Just(Doing::Runnable { preempted: false }),
            prop::option::of(name()).prop_map(|on| Doing::Blocked { on }),
        ]
    }

    fn by() -> impl Strategy<Value = By> {
        let name = || any::<u32>().prop_map(Name);
        prop_oneof![
            any::<usize>().prop_map(LwpSerial).prop_map(By::Lwp),
            any::<usize>().prop_map(TaskSerial).prop_map(By::UserThread),
            prop::option::of(name()).prop_map(By::Interrupt),
            (name(), any::<usize>()).prop_map(|(name, lwp)| By::Via(name, LwpSerial(lwp))),
            Just(By::Unknown),
        ]
    }

    fn time() -> impl Strategy<Value = Timestamp> {
        any::<i64>().prop_map(Timestamp::from_ns)
    }

    fn record() -> impl Strategy<Value = Record> {
        let times = || (time(), time()).prop_map(|(a, b)| (a.min(b), a.max(b)));
        let serial = any::<usize>;
        let user = prop_oneof![
            doing().prop_map(UserDoing::Off),
            any::<usize>().prop_map(LwpSerial).prop_map(UserDoing::Nested),
        ];
        let identity = || {
            (prop::option::of((0..i32::MAX).prop_map(Pid)), any::<u64>(), ".{0,40}")
                .prop_map(|(process, number, name)| Box::new(Identity { process, number, name }))
        };
        prop_oneof![
            (serial(), any::<bool>(), times(), doing()).prop_map(|(lwp, first, (from, to), doing)| {
                Record::Lwp { lwp: LwpSerial(lwp), first, did: Stretch { from, to, doing } }
            }),
            (serial(), prop::option::of(serial().prop_map(TaskSerial)), times())
                .prop_map(|(lwp, thread, (from, to))| Record::Ran { lwp: LwpSerial(lwp), thread, from, to }),
            (serial(), times(), user).prop_map(|(thread, (from, to), doing)| {
                Record::UserThread { thread: TaskSerial(thread), did: Stretch { from, to, doing } }
            }),
            (serial(), time(), by()).prop_map(|(lwp, at, by)| Record::LwpWoken {
                lwp: LwpSerial(lwp),
                at,
                by
            }),
            (serial(), time(), by()).prop_map(|(thread, at, by)| Record::UserThreadWoken {
                thread: TaskSerial(thread),
                at,
                by
            }),
            (serial(), time(), by()).prop_map(|(thread, at, by)| Record::UserThreadCreated {
                thread: TaskSerial(thread),
                at,
                by
            }),
            (serial(), time(), identity()).prop_map(|(lwp, begin, identity)| Record::LwpEnds {
                lwp: LwpSerial(lwp),
                begin,
                identity
            }),
            (serial(), time(), identity()).prop_map(|(thread, begin, identity)| Record::UserThreadEnds {
                thread: TaskSerial(thread),
                begin,
                identity
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn what_was_put_comes_back_from_the_last_to_the_first(
            few in prop::collection::vec(record(), 1..100),
            times in 1..400_usize,
        ) {
            let mut tape = Tape::new(io::Cursor::new(Vec::new()));
            let records = || few.iter().cycle().take(times * few.len());
            records().for_each(|record| tape.put(record, Timestamp::MIN).unwrap());
            let mut rewind = tape.rewind();
            let mut before = Timestamp::MAX;
            for expected in records().collect::<Vec<_>>().into_iter().rev() {
                let latest = rewind.latest(Timestamp::MIN).unwrap().unwrap();
                prop_assert_eq!(&rewind.take().unwrap(), expected);
                prop_assert!(latest <= before);
                before = latest;
            }
            prop_assert!(rewind.latest(Timestamp::MIN).unwrap().is_none());
        }
    }
}
