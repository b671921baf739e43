//! Decodes the kernel's records. A record that is too short for its type is ignored.

use perf_event_open_sys::bindings as abi;
use tracewing_units::{Pid, Tid, Timestamp};

use crate::ring::Raw;

/// Marks in a call chain: kernel addresses follow the first, user addresses the second (`enum
/// perf_callchain_context`).
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;
/// All marks are at or above this value.
const CONTEXTS: u64 = -4096_i64 as u64;
/// `PERF_RECORD_MISC_*` of include/uapi/linux/perf_event.h.
const MODE_MASK: u16 = 7;
const MODE_USER: u16 = 2;
const EXEC: u16 = 1 << 13;
const BUILD_ID: u16 = 1 << 14;

/// How the callers of a program's functions are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stacks {
    /// The kernel follows frame pointers: cheap, and right where everything is compiled with them.
    #[default]
    FramePointers,
    /// The kernel copies the top of each sampled thread's stack, and the recorder follows it by the tables in
    /// the files of the program (x86-64).
    Copied {
        /// Bytes of each copy, a multiple of 8.
        bytes: u16,
    },
}

impl Stacks {
    /// The largest copy, bytes: a record, which has at most 64 KiB, holds the call chain of the kernel, too.
    pub const MOST: u16 = 60 << 10;
}

/// The registers that are sampled with a copy of the stack (`enum perf_event_x86_regs`): `rbp`, `rsp`, `rip`,
/// in this order.
pub(crate) const STACK_REGISTERS: u64 = 0b1_1100_0000;

/// The top of a thread's stack, and where it was in it.
#[derive(Debug, PartialEq)]
pub(crate) struct StackCopy<'a> {
    pub(crate) bp: u64,
    pub(crate) sp: u64,
    pub(crate) ip: u64,
    /// The bytes from `sp` on.
    pub(crate) bytes: &'a [u8],
}

/// A thread, and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
}

impl Thread {
    /// The thread of an event that belongs to none.
    pub(crate) const NONE: Self = Self { pid: Pid(0), tid: Tid::IDLE };
}

#[derive(Debug, PartialEq)]
pub(crate) enum Record<'a> {
    Sample(Sample<'a>),
    /// A file's code was mapped.
    Mapping(Mapping<'a>),
    /// A thread has a new name, or its process executes a new program.
    Name {
        thread: Thread,
        name: &'a [u8],
        exec: bool,
    },
    /// `parent` has made a new thread or process.
    Fork {
        parent: Thread,
        child: Thread,
    },
    /// Number of records that did not fit into the buffer.
    Lost(u64),
    /// The kernel pauses sampling because it took too much time.
    Throttled,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    pub(crate) thread: Thread,
    pub(crate) ip: u64,
    pub(crate) period: u64,
    pub(crate) in_program: bool,
    /// Addresses, innermost first, with marks in between.
    chain: &'a [u8],
    /// `None` if none is copied, and of threads of the kernel.
    pub(crate) stack: Option<StackCopy<'a>>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Mapping<'a> {
    pub(crate) thread: Thread,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Offset in the file of the mapping's start.
    pub(crate) offset: u64,
    pub(crate) build_id: &'a [u8],
    pub(crate) path: &'a [u8],
}

impl Sample<'_> {
    /// Appends the chain's kernel addresses to one list and its user addresses to the other.
    pub(crate) fn frames(&self, kernel: &mut Vec<u64>, user: &mut Vec<u64>) {
        let mut is_user = self.in_program;
        for word in self.chain.chunks_exact(8) {
            match u64::from_le_bytes(word.try_into().unwrap_or_default()) {
                CONTEXT_USER => is_user = true,
                CONTEXT_KERNEL => is_user = false,
                CONTEXTS.. => {}
                frame if is_user => user.push(frame),
                frame => kernel.push(frame),
            }
        }
    }
}

/// Takes numbers from the front of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    /// Registers and copy of the stack, if the kernel has written them (`PERF_SAMPLE_REGS_USER`,
    /// `PERF_SAMPLE_STACK_USER`).
    fn stack(&mut self) -> Option<StackCopy<'a>> {
        let convention = self.u64()?;
        (convention == u64::from(abi::PERF_SAMPLE_REGS_ABI_64)).then_some(())?;
        let (bp, sp, ip) = (self.u64()?, self.u64()?, self.u64()?);
        let size = usize::try_from(self.u64()?).ok()?;
        let bytes = self.bytes(size)?;
        // As many of them were readable.
        let copied = if size == 0 { 0 } else { usize::try_from(self.u64()?).ok()? };
        Some(StackCopy { bp, sp, ip, bytes: bytes.get(..copied)? })
    }

    fn time(&mut self) -> Option<Timestamp> {
        self.u64().map(|ns| Timestamp::from_ns(ns.cast_signed()))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn pid(&mut self) -> Option<Pid> {
        self.u32().map(Pid::from_unsigned)
    }

    fn tid(&mut self) -> Option<Tid> {
        self.u32().map(|number| Tid(number.cast_signed()))
    }

    fn thread(&mut self) -> Option<Thread> {
        Some(Thread { pid: self.pid()?, tid: self.tid()? })
    }

    /// A string up to its NUL; consumes all remaining bytes.
    fn text(&mut self) -> &'a [u8] {
        let text = std::mem::take(&mut self.0);
        &text[..text.iter().position(|byte| *byte == 0).unwrap_or(text.len())]
    }
}

/// Decodes a record into its time, by the requested clock, and content; `None` if it is of no interest.
pub(crate) fn read((kind, misc, body): Raw<'_>) -> Option<(Timestamp, Record<'_>)> {
    if kind == abi::PERF_RECORD_SAMPLE {
        let mut fields = Fields(body);
        let (ip, thread, time, period) = (fields.u64()?, fields.thread()?, fields.time()?, fields.u64()?);
        let count = usize::try_from(fields.u64()?).ok()?;
        let chain = fields.bytes(count.checked_mul(8)?)?;
        let in_program = misc & MODE_MASK == MODE_USER;
        let stack = fields.stack();
        return Some((time, Record::Sample(Sample { thread, ip, period, in_program, chain, stack })));
    }
    // Every record ends with the thread and time of its cause (`sample_id_all`).
    let (body, tail) = body.split_at_checked(body.len().checked_sub(16)?)?;
    let mut tail = Fields(tail);
    let (by, time) = (tail.thread()?, tail.time()?);
    let mut fields = Fields(body);
    let record = match kind {
        abi::PERF_RECORD_MMAP2 => {
            let (thread, begin, length, offset) =
                (fields.thread()?, fields.u64()?, fields.u64()?, fields.u64()?);
            let identity = fields.bytes(24)?;
            let _protection_and_flags = fields.u64()?;
            let build_id = match misc & BUILD_ID != 0 {
                true => identity.get(4..4 + usize::from(identity[0]))?,
                false => &[],
            };
            let end = begin.checked_add(length)?;
            Record::Mapping(Mapping { thread, begin, end, offset, build_id, path: fields.text() })
        }
        abi::PERF_RECORD_COMM => {
            Record::Name { thread: fields.thread()?, name: fields.text(), exec: misc & EXEC != 0 }
        }
        abi::PERF_RECORD_FORK => {
            let (pid, _parent, tid) = (fields.pid()?, fields.pid()?, fields.tid()?);
            Record::Fork { parent: by, child: Thread { pid, tid } }
        }
        abi::PERF_RECORD_LOST => {
            let _event = fields.u64()?;
            Record::Lost(fields.u64()?)
        }
        abi::PERF_RECORD_THROTTLE => Record::Throttled,
        _ => return None,
    };
    Some((time, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    const THREAD: u64 = 7 | 9 << 32;

    #[test]
    fn a_sample_has_two_chains() {
        let body = words(&[0xa, THREAD, 1000, 50, 6, CONTEXT_KERNEL, 0xa, 0xb, CONTEXT_USER, 0xc, 0xd]);
        let (time, record) = read((abi::PERF_RECORD_SAMPLE, 1, &body)).unwrap();
        let Record::Sample(sample) = record else { panic!("{record:?}") };
        assert_eq!(
            (time.as_ns(), sample.thread, sample.period),
            (1000, Thread { pid: Pid(7), tid: Tid(9) }, 50)
        );
        let (mut kernel, mut user) = (Vec::new(), Vec::new());
        sample.frames(&mut kernel, &mut user);
        assert_eq!((kernel, user), (vec![0xa, 0xb], vec![0xc, 0xd]));
        for cut in 0..body.len() {
            assert_eq!(read((abi::PERF_RECORD_SAMPLE, 1, &body[..cut])), None, "{cut}");
        }
    }

    #[test]
    fn a_mapping_has_its_files_build_id() {
        let mut body = words(&[THREAD, 0x1000, 0x500, 0x2000, 3 | 0xcc_bb_aa << 32, 0, 0, 5]);
        body.extend_from_slice(b"/bin/x\0\0");
        body.extend(words(&[THREAD, 42]));
        let thread = Thread { pid: Pid(7), tid: Tid(9) };
        let expected = Mapping {
            thread,
            begin: 0x1000,
            end: 0x1500,
            offset: 0x2000,
            build_id: &[0xaa, 0xbb, 0xcc],
            path: b"/bin/x",
        };
        let time = Timestamp::from_ns(42);
        assert_eq!(read((abi::PERF_RECORD_MMAP2, BUILD_ID, &body)), Some((time, Record::Mapping(expected))));
        for cut in 0..80 {
            assert_eq!(read((abi::PERF_RECORD_MMAP2, BUILD_ID, &body[..cut])), None, "{cut}");
        }
    }

    #[test]
    fn names_forks_and_losses() {
        let with_tail = |front: &[u64]| [words(front), words(&[THREAD, 42])].concat();
        let name = u64::from_le_bytes(*b"sh\0\0\0\0\0\0");
        let thread = Thread { pid: Pid(7), tid: Tid(9) };
        let read = |kind, misc, body: &[u8]| {
            read((kind, misc, body)).map(|(time, record)| (time.as_ns(), format!("{record:?}")))
        };
        let expected = |record: Record<'_>| Some((42, format!("{record:?}")));
        assert_eq!(
            read(abi::PERF_RECORD_COMM, EXEC, &with_tail(&[THREAD, name])),
            expected(Record::Name { thread, name: b"sh", exec: true })
        );
        assert_eq!(
            read(abi::PERF_RECORD_FORK, 0, &with_tail(&[11 | 7 << 32, 12 | 9 << 32, 41])),
            expected(Record::Fork { parent: thread, child: Thread { pid: Pid(11), tid: Tid(12) } })
        );
        assert_eq!(read(abi::PERF_RECORD_LOST, 0, &with_tail(&[1, 17])), expected(Record::Lost(17)));
        assert_eq!(read(abi::PERF_RECORD_THROTTLE, 0, &with_tail(&[1, 2, 3])), expected(Record::Throttled));
        assert_eq!(read(abi::PERF_RECORD_EXIT, 0, &with_tail(&[1, 2, 3])), None);
        assert_eq!(read(abi::PERF_RECORD_LOST, 0, &[0; 15]), None);
    }
}
