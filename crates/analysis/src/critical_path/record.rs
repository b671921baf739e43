//! What a tape holds: what LWPs and user threads did, who woke them, who they were. In bytes, a record takes about ten.
//!
//! A record is a byte that says what it is, and numbers of seven bits a byte. Times count from the record before. Of a block of
//! records nothing has to be known but when the one before it was told.

use tracewing_trace::super_trace::{Doing, Mode, Name, Waker};

/// What somebody did for a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch<D> {
    pub from: i64,
    pub to: i64,
    pub doing: D,
}

/// What a user thread did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum UserDoing {
    /// What the LWP with this serial number did.
    On(usize),
    /// The LWP that ran it ran another one within it.
    Nested(usize),
    /// No LWP ran it.
    Off(Doing),
}

/// Who woke or created somebody, by serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Lwp(usize),
    UserThread(usize),
    /// An interrupt or softirq, by its name where that is known.
    Interrupt(Option<Name>),
    /// A softirq, which this LWP raised in a system call.
    Via(Name, usize),
    /// Nobody knows.
    Unknown,
}

impl From<&Waker> for By {
    fn from(waker: &Waker) -> Self {
        match *waker {
            Waker { interrupt: Some(name), lwp: Some(lwp), .. } => By::Via(name, lwp),
            Waker { interrupt: Some(name), .. } => By::Interrupt(Some(name)),
            Waker { user_thread_serial: Some(thread), .. } => By::UserThread(thread),
            Waker { lwp: Some(lwp), .. } => By::Lwp(lwp),
            // The idle thread wakes nobody, so it was an interrupt that was not recorded.
            Waker { tid: Some(0), .. } => By::Interrupt(None),
            _ => By::Unknown,
        }
    }
}

/// Who somebody was, as known at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Identity {
    pub process: Option<i32>,
    /// The LWP's number, or the user thread's.
    pub number: u64,
    pub name: String,
}

/// LWPs and user threads are meant by their serial numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Record {
    /// What an LWP did, and whether nothing is known of it before.
    Lwp {
        lwp: usize,
        first: bool,
        did: Stretch<Doing>,
    },
    /// What the LWP did since the last such record it did for this user thread, or for none.
    Ran {
        lwp: usize,
        thread: Option<usize>,
        from: i64,
        to: i64,
    },
    /// What a user thread did that was not on an LWP.
    UserThread {
        thread: usize,
        did: Stretch<UserDoing>,
    },
    LwpWoken {
        lwp: usize,
        at: i64,
        by: By,
    },
    UserThreadWoken {
        thread: usize,
        at: i64,
        by: By,
    },
    UserThreadCreated {
        thread: usize,
        at: i64,
        by: By,
    },
    LwpEnds {
        lwp: usize,
        who: Box<Identity>,
    },
    UserThreadEnds {
        thread: usize,
        who: Box<Identity>,
    },
}

const LWP: u8 = 0x00;
const LWP_FIRST: u8 = 0x10;
const USER_THREAD: u8 = 0x20;
const RAN: u8 = 0x30;
const LWP_WOKEN: u8 = 0x40;
const USER_THREAD_WOKEN: u8 = 0x50;
const USER_THREAD_CREATED: u8 = 0x60;
const LWP_ENDS: u8 = 0x70;
const USER_THREAD_ENDS: u8 = 0x80;

/// Writes records.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub bytes: Vec<u8>,
    /// The latest time of all records so far.
    pub told: i64,
}

impl Encoder {
    /// Appends a record.
    #[inline]
    pub fn put(&mut self, record: &Record) {
        match record {
            Record::Lwp { lwp, first, did } => {
                let kind = if *first { LWP_FIRST } else { LWP };
                self.stretch(kind, *lwp, did.from, did.to, did.doing);
            }
            Record::UserThread { thread, did } => match did.doing {
                UserDoing::Off(doing) => self.stretch(USER_THREAD, *thread, did.from, did.to, doing),
                UserDoing::On(lwp) | UserDoing::Nested(lwp) => {
                    self.stretch(USER_THREAD, *thread, did.from, did.to, Doing::Nested);
                    self.number(lwp as u64);
                }
            },
            Record::Ran { lwp, thread, from, to } => {
                self.bytes.push(RAN | u8::from(thread.is_some()));
                self.times(*from, *to);
                self.number(*lwp as u64);
                thread.iter().for_each(|thread| self.number(*thread as u64));
            }
            Record::LwpWoken { lwp, at, by } => self.woken(LWP_WOKEN, *lwp, *at, *by),
            Record::UserThreadWoken { thread, at, by } => self.woken(USER_THREAD_WOKEN, *thread, *at, *by),
            Record::UserThreadCreated { thread, at, by } => {
                self.woken(USER_THREAD_CREATED, *thread, *at, *by);
            }
            Record::LwpEnds { lwp, who } => self.ends(LWP_ENDS, *lwp, who),
            Record::UserThreadEnds { thread, who } => self.ends(USER_THREAD_ENDS, *thread, who),
        }
    }

    #[inline]
    fn stretch(&mut self, kind: u8, serial: usize, from: i64, to: i64, doing: Doing) {
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
        self.bytes.push(kind | code);
        self.times(from, to);
        self.number(serial as u64);
        cpu.into_iter().for_each(|cpu| self.number(cpu.into()));
        name.into_iter().for_each(|name| self.number(name.0.into()));
    }

    fn woken(&mut self, kind: u8, serial: usize, at: i64, by: By) {
        let (code, name, other) = match by {
            By::Lwp(lwp) => (0, None, Some(lwp)),
            By::UserThread(thread) => (1, None, Some(thread)),
            By::Interrupt(None) => (2, None, None),
            By::Interrupt(Some(name)) => (3, Some(name), None),
            By::Via(name, lwp) => (4, Some(name), Some(lwp)),
            By::Unknown => (5, None, None),
        };
        self.bytes.push(kind | code);
        self.times(at, at);
        self.number(serial as u64);
        name.into_iter().for_each(|name| self.number(name.0.into()));
        other.into_iter().for_each(|other| self.number(other as u64));
    }

    fn ends(&mut self, kind: u8, serial: usize, who: &Identity) {
        self.bytes.push(kind | u8::from(who.process.is_some()));
        self.number(serial as u64);
        who.process.iter().for_each(|process| self.number(process.unsigned_abs().into()));
        self.number(who.number);
        self.number(who.name.len() as u64);
        self.bytes.extend_from_slice(who.name.as_bytes());
    }

    #[inline]
    fn times(&mut self, from: i64, to: i64) {
        let since = to.wrapping_sub(self.told);
        self.number((since << 1 ^ since >> 63) as u64);
        self.number(to.wrapping_sub(from) as u64);
        self.told = self.told.max(to);
    }

    #[inline]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// Reads what an [`Encoder`] wrote that began with the same `told`; nothing else.
#[derive(Debug)]
pub(super) struct Decoder<'b> {
    pub bytes: &'b [u8],
    pub told: i64,
}

impl Decoder<'_> {
    /// The next record; `None` at the end.
    pub fn take(&mut self) -> Option<Record> {
        let (&tag, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let code = tag & 0xf;
        Some(match tag & 0xf0 {
            kind @ (LWP | LWP_FIRST) => {
                let (lwp, did) = self.stretch(code)?;
                Record::Lwp { lwp, first: kind == LWP_FIRST, did }
            }
            USER_THREAD => {
                let (thread, Stretch { from, to, doing }) = self.stretch(code)?;
                let doing = match doing {
                    Doing::Nested => UserDoing::Nested(self.serial()?),
                    doing => UserDoing::Off(doing),
                };
                Record::UserThread { thread, did: Stretch { from, to, doing } }
            }
            RAN => {
                let (from, to) = self.times()?;
                let lwp = self.serial()?;
                let thread = if code == 1 { Some(self.serial()?) } else { None };
                Record::Ran { lwp, thread, from, to }
            }
            kind @ (LWP_WOKEN | USER_THREAD_WOKEN | USER_THREAD_CREATED) => {
                let (_, at) = self.times()?;
                let serial = self.serial()?;
                let by = match code {
                    0 => By::Lwp(self.serial()?),
                    1 => By::UserThread(self.serial()?),
                    2 => By::Interrupt(None),
                    3 => By::Interrupt(Some(self.name()?)),
                    4 => By::Via(self.name()?, self.serial()?),
                    _ => By::Unknown,
                };
                match kind {
                    LWP_WOKEN => Record::LwpWoken { lwp: serial, at, by },
                    USER_THREAD_WOKEN => Record::UserThreadWoken { thread: serial, at, by },
                    _ => Record::UserThreadCreated { thread: serial, at, by },
                }
            }
            kind => {
                let serial = self.serial()?;
                let process = if code == 1 { i32::try_from(self.number()?).ok() } else { None };
                let (number, length) = (self.number()?, self.serial()?);
                let (name, rest) = self.bytes.split_at_checked(length)?;
                self.bytes = rest;
                let name = String::from_utf8_lossy(name).into_owned();
                let who = Box::new(Identity { process, number, name });
                match kind {
                    LWP_ENDS => Record::LwpEnds { lwp: serial, who },
                    _ => Record::UserThreadEnds { thread: serial, who },
                }
            }
        })
    }

    fn stretch(&mut self, code: u8) -> Option<(usize, Stretch<Doing>)> {
        let (from, to) = self.times()?;
        let serial = self.serial()?;
        let doing = match code {
            0 => Doing::Unknown,
            1..=5 => {
                let cpu = u32::try_from(self.number()?).ok()?;
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

    fn times(&mut self) -> Option<(i64, i64)> {
        let since = self.number()?;
        let to = self.told.wrapping_add((since >> 1) as i64 ^ -((since & 1) as i64));
        let from = to.wrapping_sub(self.number()? as i64);
        self.told = self.told.max(to);
        Some((from, to))
    }

    fn serial(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn name(&mut self) -> Option<Name> {
        u32::try_from(self.number()?).ok().map(Name)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}
