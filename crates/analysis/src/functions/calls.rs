//! Calls of functions, thread by thread: what begins is put onto a stack, and ends with its own end, with
//! that of a function below it, or when the process executes another program.

mod stack;

use stack::{DEPTH, Ended, Frame, Thread};
use std::collections::HashMap;
use std::mem::take;
use tracewing_units::{Duration, Pid, Tid, Timestamp};

use tracewing_trace::super_trace::{Located, Part, Seen};

use super::code::Code;
use super::event::{FunctionEvent, FunctionRead, FunctionReader, Which};
use crate::images::Epoch;
use crate::stored::PartKind;

/// The number of a function, in the order in which they were first seen.
pub type FunctionId = u32;

/// Where a function is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Function {
    /// It has events of its own, which name it.
    Named(String),
    /// It has the code at an address of a file, by the file's own counting.
    InFile {
        /// The file's path when it was recorded.
        path: String,
        /// The address, as in the file.
        address: u64,
    },
    /// Its code is at an address in memory, and the file is unknown.
    InMemory(u64),
}

/// What happens in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A function begins, at this depth of calls in its thread.
    Begins {
        /// The function that begins.
        function: FunctionId,
        /// How many are around it.
        depth: usize,
        /// Whether the innermost of those called it: if events were lost since that began, another one may
        /// have.
        caller_known: bool,
    },
    /// A call is over.
    Ends {
        /// The function that was called.
        function: FunctionId,
        /// How many are around it.
        depth: usize,
        /// When it began, ns on the recording's clock.
        begin: Timestamp,
        /// How long functions lasted that it called, ns.
        inner_ns: Duration,
        /// Whether another call of the same function is around it.
        is_nested: bool,
        /// Where events were lost between its beginning and its end, which may then be another call's, or it
        /// or one that it called has no end: what is certain of it.
        certain: Option<Certain>,
    },
}

/// The part of a call before events were lost, before a jump, or before the recording's end, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Certain {
    /// How long it was.
    pub total_ns: Duration,
    /// The same less functions that it called.
    pub own_ns: Duration,
}

/// What could not be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unmatched {
    /// Ends of functions whose beginning is not recorded.
    pub ends: u64,
    /// Functions that were left without an end, by a jump or an exception, at an unknown time between two
    /// events.
    pub left: u64,
    /// Functions that had not ended where events were lost: how long they lasted after that is unknown.
    pub lost: u64,
    /// Functions that had not ended when their process executed another program.
    pub replaced: u64,
    /// Functions that had not ended at the last begin or end of a function in their thread.
    pub last: u64,
    /// Functions that the program could not report, since too many were nested.
    pub not_followed: u64,
}

/// A thread, and its process if known.
pub type ThreadKey = (Option<Pid>, Tid);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// In a process, since the code at this address is what it is.
    Address(Option<Pid>, Epoch, u64),
    Named(Box<str>),
}

/// Pairs the begins and ends of functions, by thread.
#[derive(Debug, Default)]
pub struct Calls {
    reader: FunctionReader,
    code: Code,
    keys: Vec<Key>,
    numbers: HashMap<Key, FunctionId>,
    threads: HashMap<ThreadKey, Thread>,
    unmatched: Unmatched,
    /// Whether events of programs are missing at this time.
    is_blind: bool,
}

impl Calls {
    /// Handles an event; `report` receives the calls that begin and end by it, with thread and time. Returns
    /// whether the event was about functions.
    pub fn event(&mut self, seen: &Seen<'_>, report: &mut impl FnMut(ThreadKey, Timestamp, Call)) -> bool {
        let read = self.reader.read(seen.event);
        self.located(read, &seen.located(), report)
    }

    /// The same of an event that a [`FunctionReader`] has read.
    #[inline]
    pub fn located(
        &mut self,
        read: Option<FunctionRead>,
        at: &Located<'_>,
        report: &mut impl FnMut(ThreadKey, Timestamp, Call),
    ) -> bool {
        let (Some(activity), Some(tid)) = (at.activity, at.place.tid) else { return false };
        self.code.images.follow(at);
        if read.is_none() && self.threads.is_empty() {
            return false;
        }
        let (process, time) = (at.place.process, activity.time);
        let key = (process, tid);
        let event = read.and_then(|read| self.code.counting.only(read, process));
        // Other processes cannot be found: none of their calls can end.
        if (event.is_some() || self.threads.contains_key(&key))
            && let Some(since) = self.code.programs.changed(at.state, process)
        {
            self.replace(process, since, report);
        }
        let Some(event) = event else {
            if let Some(thread) = self.threads.get_mut(&key) {
                thread.last = time;
            }
            return false;
        };
        self.take(event, key, time, report);
        true
    }

    /// Learns where code is from an event before those whose calls are followed.
    pub fn earlier(&mut self, seen: &Seen<'_>) {
        let read = self.reader.read(seen.event);
        self.located_earlier(read, &seen.located());
    }

    /// The same of an event that a [`FunctionReader`] has read.
    pub fn located_earlier(&mut self, read: Option<FunctionRead>, at: &Located<'_>) {
        self.code.learn(read.as_ref(), at);
    }

    /// Whether what was known at a checkpoint is there.
    pub fn has_part(parts: &[Part]) -> bool {
        PartKind::Functions.is_in(Code::SHAPE, parts)
    }

    /// Takes what was known at a checkpoint; false if that is not there.
    pub fn take_part(&mut self, parts: &[Part]) -> bool {
        let code = PartKind::Functions.take(Code::SHAPE, parts);
        code.map(|code| self.code = code).is_some()
    }

    /// A process executes another program.
    fn replace(
        &mut self,
        process: Option<Pid>,
        since: Timestamp,
        report: &mut impl FnMut(ThreadKey, Timestamp, Call),
    ) {
        self.code.images.forget(process);
        self.threads.retain(|key, thread| {
            let (of, _) = *key;
            if of != process {
                return true;
            }
            let end = since.max(thread.last);
            let Ended { known, lost } = thread.end_all(end, &mut |time, call| report(*key, time, call));
            self.unmatched.replaced += known;
            self.unmatched.lost += lost;
            false
        });
    }

    fn take(
        &mut self,
        event: FunctionEvent,
        key: ThreadKey,
        time: Timestamp,
        report: &mut impl FnMut(ThreadKey, Timestamp, Call),
    ) {
        let (process, _) = key;
        match event {
            FunctionEvent::Entry(which) => {
                let function = self.number(process, which);
                let thread = self.threads.entry(key).or_default();
                let after = thread.reports(time);
                let depth = thread.frames.len();
                if depth == DEPTH {
                    self.unmatched.not_followed += 1;
                    return;
                }
                // It is more likely that it has ended meanwhile than that it calls itself just now.
                let depth = match thread.doubtful_place(function) {
                    Some(place) => {
                        let end = thread.doubtful_at;
                        while thread.frames.len() > place {
                            thread.end_last(end, &mut |time, call| report(key, time, call));
                            self.unmatched.lost += 1;
                        }
                        place
                    }
                    None => depth,
                };
                let certain = self.is_blind.then(Certain::default);
                let caller_known = thread.frames.last().is_none_or(Frame::is_known);
                thread.frames.push(Frame {
                    function,
                    begin: time,
                    after,
                    inner_ns: Duration::ZERO,
                    certain,
                    is_lossy: self.is_blind,
                    left_at: None,
                });
                *thread.active.entry(function).or_default() += 1;
                report(key, time, Call::Begins { function, depth, caller_known });
            }
            FunctionEvent::Exit(which) => self.exit(which, key, time, report),
            FunctionEvent::NotFollowed => self.unmatched.not_followed += 1,
            FunctionEvent::Image { begin, end, bias, path } => {
                self.code.images.learn(process, begin..end, bias, path);
            }
        }
    }

    /// A function ends, and all that it has called.
    fn exit(
        &mut self,
        which: Which,
        key: ThreadKey,
        time: Timestamp,
        report: &mut impl FnMut(ThreadKey, Timestamp, Call),
    ) {
        let function = self.number(key.0, which);
        let thread = self.threads.entry(key).or_default();
        let before = thread.reports(time);
        if !thread.active.contains_key(&function) {
            self.unmatched.ends += 1;
            return;
        }
        if !thread.is_doubtful() && thread.frames.last().is_some_and(|frame| frame.function != function) {
            thread.end_around(function, before, time);
        }
        while let Some(last) = thread.frames.last().map(|frame| frame.function) {
            let end = if last == function { time } else { thread.doubtful_at };
            let Some(frame) = thread.end_last(end, &mut |time, call| report(key, time, call)) else { return };
            match frame.is_lossy {
                true => self.unmatched.lost += 1,
                false => self.unmatched.left += u64::from(last != function),
            }
            if last == function {
                return;
            }
        }
    }

    /// Events of programs are missing after this time: functions may have ended, and others begun.
    pub fn lost(&mut self, from: Timestamp) {
        self.is_blind = true;
        self.threads.values_mut().for_each(|thread| thread.doubt(from));
    }

    /// No more events of programs are missing from this time on.
    pub fn loss_over(&mut self, time: Timestamp) {
        if take(&mut self.is_blind) {
            self.threads.values_mut().for_each(|thread| thread.doubt(time));
        }
    }

    /// The recording is opened anew: its streams and classes may have other numbers.
    pub fn reopen(&mut self) {
        self.reader = FunctionReader::default();
    }

    /// What has begun, with nothing else that is known: it can be finished while these continue.
    pub fn begun(&self) -> Self {
        Calls { threads: self.threads.clone(), ..Calls::default() }
    }

    /// The recording is over. How long calls last that have not ended is unknown.
    pub fn finish(&mut self, report: &mut impl FnMut(ThreadKey, Timestamp, Call)) {
        let mut threads: Vec<_> = take(&mut self.threads).into_iter().collect();
        threads.sort_unstable_by_key(|(key, _)| *key);
        for (key, mut thread) in threads {
            // What happens after its last function does not show that it is still in them: a jump may have
            // left them.
            let last = thread.last_function;
            let Ended { known, lost } = thread.end_all(last, &mut |time, call| report(key, time, call));
            self.unmatched.last += known;
            self.unmatched.lost += lost;
        }
    }

    /// What could not be matched.
    pub fn unmatched(&self) -> Unmatched {
        self.unmatched
    }

    /// How many functions there are: their numbers are below.
    pub fn count(&self) -> FunctionId {
        self.keys.len() as FunctionId
    }

    /// Location of a function, from the reports so far.
    pub fn function(&self, function: FunctionId) -> Function {
        let (process, epoch, address) = match &self.keys[function as usize] {
            Key::Named(name) => return Function::Named(name.to_string()),
            Key::Address(process, epoch, address) => (*process, *epoch, *address),
        };
        match self.code.images.at(process, address, epoch) {
            Some((path, address)) => Function::InFile { path, address },
            None => Function::InMemory(address),
        }
    }

    fn number(&mut self, process: Option<Pid>, which: Which) -> FunctionId {
        let key = match which {
            Which::Named(name) => Key::Named(name),
            Which::Address(address) => {
                let since = self.code.images.since(process, address, self.code.images.epoch());
                Key::Address(process, since, address)
            }
        };
        if let Some(known) = self.numbers.get(&key) {
            return *known;
        }
        let new = self.count();
        self.keys.push(key.clone());
        self.numbers.insert(key, new);
        new
    }
}

#[cfg(test)]
mod tests;
