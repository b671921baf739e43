//! The content of a tape: states of LWPs and user threads, their wakers, and their identities. A record takes
//! about ten bytes.
//!
//! Records are read from the last to the first, so a record ends with what is read first: a byte with its
//! kind. Numbers precede it, in groups of seven bits, the highest first; all groups but the highest have the
//! eighth bit set. Times are relative to the latest one of all earlier records, so reading a block only
//! requires its latest time.

use tracewing_trace::super_trace::{Doing, LwpSerial, Mode, Name, TaskSerial, Waker};
use tracewing_units::{Cpu, Duration, Pid, Tid, Timestamp};

/// An interval in one state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch<D> {
    pub from: Timestamp,
    pub to: Timestamp,
    pub doing: D,
}

/// What a user thread did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum UserDoing {
    /// What the LWP with this serial number did.
    On(LwpSerial),
    /// The LWP that ran it ran another one within it.
    Nested(LwpSerial),
    /// No LWP ran it.
    Off(Doing),
}

/// What woke or created an LWP or a user thread, by serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Lwp(LwpSerial),
    UserThread(TaskSerial),
    /// An interrupt or softirq, by its name where that is known.
    Interrupt(Option<Name>),
    /// A softirq, which this LWP raised in a system call.
    Via(Name, LwpSerial),
    Unknown,
}

impl From<&Waker> for By {
    fn from(waker: &Waker) -> Self {
        match *waker {
            Waker { interrupt: Some(name), lwp: Some(lwp), .. } => By::Via(name, LwpSerial(lwp.0)),
            Waker { interrupt: Some(name), .. } => By::Interrupt(Some(name)),
            Waker { user_thread_serial: Some(thread), .. } => By::UserThread(thread),
            Waker { lwp: Some(lwp), .. } => By::Lwp(lwp),
            // The idle thread wakes nothing, so it was an interrupt that was not recorded.
            Waker { tid: Some(Tid::IDLE), .. } => By::Interrupt(None),
            _ => By::Unknown,
        }
    }
}

/// The identity of an LWP or a user thread, as known at its end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Identity {
    pub process: Option<Pid>,
    /// The LWP's number, or the user thread's.
    pub number: u64,
    pub name: String,
}

/// LWPs and user threads are meant by their serial numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Record {
    /// What an LWP did, and whether nothing is known of it before.
    Lwp {
        lwp: LwpSerial,
        first: bool,
        did: Stretch<Doing>,
    },
    /// What the LWP did since the last such record it did for this user thread, or for none.
    Ran {
        lwp: LwpSerial,
        thread: Option<TaskSerial>,
        from: Timestamp,
        to: Timestamp,
    },
    /// What a user thread did that was not on an LWP.
    UserThread {
        thread: TaskSerial,
        did: Stretch<UserDoing>,
    },
    LwpWoken {
        lwp: LwpSerial,
        at: Timestamp,
        by: By,
    },
    UserThreadWoken {
        thread: TaskSerial,
        at: Timestamp,
        by: By,
    },
    UserThreadCreated {
        thread: TaskSerial,
        at: Timestamp,
        by: By,
    },
    /// `begin` is the time before which nothing is known of it. No record of it follows that matters.
    LwpEnds {
        lwp: LwpSerial,
        begin: Timestamp,
        identity: Box<Identity>,
    },
    UserThreadEnds {
        thread: TaskSerial,
        begin: Timestamp,
        identity: Box<Identity>,
    },
}

const LWP: u8 = 0x00;
const LWP_FIRST: u8 = 0x10;
const USER_THREAD: u8 = 0x20;
const RAN: u8 = 0x30;
const LWP_WOKEN: u8 = 0x40;
const USER_THREAD_WOKEN: u8 = 0x50;
const USER_THREAD_CREATED: u8 = 0x60;
const ENDS: u8 = 0x70;

/// Of one that ends: it is a user thread, its process is known.
const OF_USER_THREAD: u8 = 1;
const OF_PROCESS: u8 = 2;

/// It has a time, which lies before the latest one.
const LATE: u8 = 0x80;

/// Encodes records into `bytes`.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub bytes: Vec<u8>,
    /// The latest time of all records so far.
    pub latest: Timestamp,
}

impl Encoder {
    #[inline]
    pub(super) fn put(&mut self, record: &Record) {
        match record {
            Record::Lwp { lwp, first, did } => {
                let kind = if *first { LWP_FIRST } else { LWP };
                self.stretch(kind, lwp.0, did.from, did.to, did.doing);
            }
            Record::UserThread { thread, did } => {
                let doing = match did.doing {
                    UserDoing::Off(doing) => doing,
                    UserDoing::On(lwp) | UserDoing::Nested(lwp) => {
                        self.number(lwp.0 as u64);
                        Doing::Nested
                    }
                };
                self.stretch(USER_THREAD, thread.0, did.from, did.to, doing);
            }
            Record::Ran { lwp, thread, from, to } => {
                thread.iter().for_each(|thread| self.number(thread.0 as u64));
                self.number(lwp.0 as u64);
                self.times(RAN | u8::from(thread.is_some()), *from, *to);
            }
            Record::LwpWoken { lwp, at, by } => self.woken(LWP_WOKEN, lwp.0, *at, *by),
            Record::UserThreadWoken { thread, at, by } => self.woken(USER_THREAD_WOKEN, thread.0, *at, *by),
            Record::UserThreadCreated { thread, at, by } => {
                self.woken(USER_THREAD_CREATED, thread.0, *at, *by);
            }
            Record::LwpEnds { lwp, begin, identity } => self.ends(0, lwp.0, *begin, identity),
            Record::UserThreadEnds { thread, begin, identity } => {
                self.ends(OF_USER_THREAD, thread.0, *begin, identity);
            }
        }
    }

    #[inline]
    fn stretch(&mut self, kind: u8, serial: usize, from: Timestamp, to: Timestamp, doing: Doing) {
        let (code, cpu, name) = match doing {
            Doing::Unknown => (0, None, None),
            Doing::Running { cpu, mode: Mode::Unknown } => (1, Some(cpu), None),
            Doing::Running { cpu, mode: Mode::User } => (2, Some(cpu), None),
            Doing::Running { cpu, mode: Mode::SystemCall(call) } => (3, Some(cpu), Some(call)),
            Doing::Running { cpu, mode: Mode::Interrupt(Some(by)) } => (4, Some(cpu), Some(by)),
            Doing::Running { cpu, mode: Mode::Interrupt(None) } => (5, Some(cpu), None),
            Doing::Runnable { .. } => (6, None, None),
            Doing::Blocked { on: None } => (7, None, None),
            Doing::Blocked { on: Some(on) } => (8, None, Some(on)),
            Doing::Nested => (9, None, None),
        };
        name.into_iter().for_each(|name| self.number(name.0.into()));
        cpu.into_iter().for_each(|cpu| self.number(cpu.0.into()));
        self.number(serial as u64);
        self.times(kind | code, from, to);
    }

    fn woken(&mut self, kind: u8, serial: usize, at: Timestamp, by: By) {
        let (code, name, other) = match by {
            By::Lwp(lwp) => (0, None, Some(lwp.0)),
            By::UserThread(thread) => (1, None, Some(thread.0)),
            By::Interrupt(None) => (2, None, None),
            By::Interrupt(Some(name)) => (3, Some(name), None),
            By::Via(name, lwp) => (4, Some(name), Some(lwp.0)),
            By::Unknown => (5, None, None),
        };
        other.into_iter().for_each(|other| self.number(other as u64));
        name.into_iter().for_each(|name| self.number(name.0.into()));
        self.number(serial as u64);
        self.times(kind | code, at, at);
    }

    fn ends(&mut self, code: u8, serial: usize, begin: Timestamp, identity: &Identity) {
        self.bytes.extend_from_slice(identity.name.as_bytes());
        self.number(identity.name.len() as u64);
        self.number(identity.number);
        identity.process.iter().for_each(|process| self.number(process.0.unsigned_abs().into()));
        // It may be the least time of all.
        self.number(self.latest.as_ns().wrapping_sub(begin.as_ns()).cast_unsigned());
        self.number(serial as u64);
        self.bytes.push(ENDS | code | if identity.process.is_some() { OF_PROCESS } else { 0 });
    }

    #[inline]
    fn times(&mut self, tag: u8, from: Timestamp, to: Timestamp) {
        let late = to < self.latest;
        self.number((to - from).as_ns());
        self.number(to.abs_diff(self.latest).as_ns());
        self.bytes.push(tag | if late { LATE } else { 0 });
        self.latest = self.latest.max(to);
    }

    #[inline]
    fn number(&mut self, number: u64) {
        match number {
            ..0x80 => self.bytes.push(number as u8),
            0x80..0x4000 => self.bytes.extend_from_slice(&[(number >> 7) as u8, number as u8 | 0x80]),
            _ => self.great_number(number),
        }
    }

    fn great_number(&mut self, number: u64) {
        let highest = number.ilog2() / 7;
        self.bytes.push((number >> (7 * highest)) as u8);
        self.bytes.extend((0..highest).rev().map(|group| (number >> (7 * group)) as u8 | 0x80));
    }
}

/// Reads what an [`Encoder`] wrote, from the last record to the first.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub bytes: Vec<u8>,
    /// The latest time of all records that have not been read, and those before.
    pub latest: Timestamp,
}

impl Decoder {
    /// The previous record; `None` before the first.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Record> {
        let tag = self.bytes.pop()?;
        let code = tag & 0xf;
        Some(match tag & 0x70 {
            kind @ (LWP | LWP_FIRST) => {
                let (lwp, did) = self.stretch(tag)?;
                Record::Lwp { lwp: LwpSerial(lwp), first: kind == LWP_FIRST, did }
            }
            USER_THREAD => {
                let (thread, Stretch { from, to, doing }) = self.stretch(tag)?;
                let doing = match doing {
                    Doing::Nested => UserDoing::Nested(LwpSerial(self.serial()?)),
                    doing => UserDoing::Off(doing),
                };
                Record::UserThread { thread: TaskSerial(thread), did: Stretch { from, to, doing } }
            }
            RAN => {
                let (from, to) = self.times(tag)?;
                let lwp = self.serial()?;
                let thread = if code == 1 { Some(TaskSerial(self.serial()?)) } else { None };
                Record::Ran { lwp: LwpSerial(lwp), thread, from, to }
            }
            kind @ (LWP_WOKEN | USER_THREAD_WOKEN | USER_THREAD_CREATED) => {
                let (_, at) = self.times(tag)?;
                let serial = self.serial()?;
                let by = match code {
                    0 => By::Lwp(LwpSerial(self.serial()?)),
                    1 => By::UserThread(TaskSerial(self.serial()?)),
                    2 => By::Interrupt(None),
                    3 => By::Interrupt(Some(self.name()?)),
                    4 => By::Via(self.name()?, LwpSerial(self.serial()?)),
                    _ => By::Unknown,
                };
                match kind {
                    LWP_WOKEN => Record::LwpWoken { lwp: LwpSerial(serial), at, by },
                    USER_THREAD_WOKEN => Record::UserThreadWoken { thread: TaskSerial(serial), at, by },
                    _ => Record::UserThreadCreated { thread: TaskSerial(serial), at, by },
                }
            }
            _ => self.ends(code)?,
        })
    }

    fn ends(&mut self, code: u8) -> Option<Record> {
        let serial = self.serial()?;
        let begin = Timestamp::from_ns(self.latest.as_ns().wrapping_sub(self.number()?.cast_signed()));
        let process = if code & OF_PROCESS != 0 { i32::try_from(self.number()?).ok().map(Pid) } else { None };
        let (number, length) = (self.number()?, self.serial()?);
        let name = self.bytes.split_off(self.bytes.len().checked_sub(length)?);
        let identity =
            Box::new(Identity { process, number, name: String::from_utf8_lossy(&name).into_owned() });
        Some(match code & OF_USER_THREAD {
            0 => Record::LwpEnds { lwp: LwpSerial(serial), begin, identity },
            _ => Record::UserThreadEnds { thread: TaskSerial(serial), begin, identity },
        })
    }

    #[inline]
    fn stretch(&mut self, tag: u8) -> Option<(usize, Stretch<Doing>)> {
        let (from, to) = self.times(tag)?;
        let serial = self.serial()?;
        let doing = match tag & 0xf {
            0 => Doing::Unknown,
            code @ 1..=5 => {
                let cpu = Cpu(u32::try_from(self.number()?).ok()?);
                let mode = match code {
                    1 => Mode::Unknown,
                    2 => Mode::User,
                    3 => Mode::SystemCall(self.name()?),
                    4 => Mode::Interrupt(Some(self.name()?)),
                    _ => Mode::Interrupt(None),
                };
                Doing::Running { cpu, mode }
            }
            6 => Doing::Runnable { preempted: false },
            7 => Doing::Blocked { on: None },
            8 => Doing::Blocked { on: Some(self.name()?) },
            _ => Doing::Nested,
        };
        Some((serial, Stretch { from, to, doing }))
    }

    #[inline]
    fn times(&mut self, tag: u8) -> Option<(Timestamp, Timestamp)> {
        let latest = self.latest;
        let before = latest.saturating_sub(Duration::from_ns(self.number()?));
        let to = match tag & LATE {
            0 => {
                self.latest = before;
                latest
            }
            _ => before,
        };
        Some((to.saturating_sub(Duration::from_ns(self.number()?)), to))
    }

    #[inline]
    fn serial(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    #[inline]
    fn name(&mut self) -> Option<Name> {
        u32::try_from(self.number()?).ok().map(Name)
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes.pop()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}
