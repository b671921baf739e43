//! A thread that has others attach to processes. An attempt lasts until the process has a thread that can be
//! borrowed, and that thread returns from the call, so the recorder's loop only requests it, and is notified
//! of the result through a descriptor.

mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};
use tracewing_attach::Refusal;
use tracewing_units::Pid;

use crate::Error;
use crate::attached::{Answers, Outcome, attach};
use crate::credentials::users;
use crate::doors::Doors;
use crate::poll::{Poll, Token};
use crate::program::Program;
use turns::{Asked, Turns};

/// How long a process may have no thread that can be borrowed, and how long an attempt looks for one.
const PATIENCE: Duration = Duration::from_secs(3);
const TURN: Duration = Duration::from_millis(50);

/// How long attempts that are in flight may take to end when the recording does. The program of one that is
/// left alone in the middle waits for the recorder.
const ENDING: Duration = Duration::from_secs(1);

/// The result of an attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) pid: Pid,
    pub(crate) outcome: Outcome,
}

/// What the thread is asked for, and what its attempts report.
enum Event {
    /// A process is asked for.
    Asked(Pid),
    /// An attempt has ended.
    Ended(Attempt),
    /// Nothing is asked for any more.
    Over,
}

/// The thread. When this is dropped it begins no further attempts, and ends with the last one.
struct Attacher {
    events: Sender<Event>,
    attempts: Receiver<Attempt>,
    bell: Arc<OwnedFd>,
}

impl Attacher {
    /// Starts it, for a recording.
    ///
    /// # Errors
    /// The system refuses a thread or a descriptor.
    fn start(recording: [u8; 16]) -> Result<Self, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = Arc::new(eventfd(0, flags).map_err(Error::system("eventfd"))?);
        let (events, heard) = channel();
        let (done, attempts) = channel();
        let rings = bell.clone();
        let report = move |attempt| {
            let is_heard = done.send(attempt).is_ok();
            let _ = rustix::io::write(&rings, &1_u64.to_ne_bytes());
            is_heard
        };
        let own = events.clone();
        let body = move || work(&heard, &own, recording, report);
        let thread = std::thread::Builder::new().name("attacher".to_owned()).spawn(body);
        thread.map_err(Error::system("clone"))?;
        Ok(Self { events, attempts, bell })
    }

    /// Asks for a process.
    fn ask(&self, pid: Pid) {
        // The thread lives as long as this.
        let _ = self.events.send(Event::Asked(pid));
    }

    /// An attempt that has ended since the last time.
    fn next(&self) -> Option<Attempt> {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        self.attempts.try_recv().ok()
    }
}

/// What the recorder has of attaching.
pub(crate) struct Attaching {
    recording: [u8; 16],
    /// Once it is needed.
    attacher: Option<Attacher>,
    pub(crate) doors: Doors,
    /// Processes that were asked for, as the programs that they were then.
    asked: BTreeMap<Pid, Program>,
    /// Those of which no result has come yet.
    pending: BTreeSet<Pid>,
    /// The longest time for which a thread was stopped; `None` where none was.
    pub(crate) longest_stop: Option<Duration>,
}

impl Attaching {
    /// Nothing yet, for a recording.
    pub(crate) fn new(recording: [u8; 16]) -> Self {
        Self {
            recording,
            attacher: None,
            doors: Doors::default(),
            asked: BTreeMap::new(),
            pending: BTreeSet::new(),
            longest_stop: None,
        }
    }

    /// Notes that a process is asked. False if it was before and has executed no file since.
    pub(crate) fn mark_asked(&mut self, program: Program) -> bool {
        let is_known = self.asked.get(&program.pid) == Some(&program);
        if !is_known {
            self.asked.insert(program.pid, program);
        }
        !is_known
    }

    /// Only these processes live.
    pub(crate) fn forget_all_but(&mut self, living: &[Pid]) {
        self.asked.retain(|pid, _| living.contains(pid));
    }

    /// Asks for a process.
    ///
    /// # Errors
    /// The system refuses a thread or a descriptor.
    pub(crate) fn ask(&mut self, pid: Pid, poll: &Poll) -> Result<(), Error> {
        let attacher = match self.attacher.take() {
            Some(attacher) => attacher,
            None => {
                let attacher = Attacher::start(self.recording)?;
                let added = poll.add(&attacher, Token::Attacher, EventFlags::IN);
                added.map_err(Error::system("epoll_ctl"))?;
                attacher
            }
        };
        self.attacher.insert(attacher).ask(pid);
        self.pending.insert(pid);
        Ok(())
    }

    /// An attempt that has ended since the last time.
    pub(crate) fn next(&mut self) -> Option<Attempt> {
        let attempt = self.attacher.as_ref()?.next()?;
        self.pending.remove(&attempt.pid);
        Some(attempt)
    }

    /// Begins no further attempts, at the recording's end, and gives those that were in flight, once they
    /// have ended.
    pub(crate) fn end(&mut self, poll: &Poll) -> Vec<Attempt> {
        let Some(attacher) = self.attacher.take() else { return Vec::new() };
        poll.remove(&attacher);
        let _ = attacher.events.send(Event::Over);
        let until = Instant::now() + ENDING;
        let next = || attacher.attempts.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
        let ended: Vec<_> = std::iter::from_fn(next).collect();
        self.pending.retain(|pid| !ended.iter().any(|attempt| attempt.pid == *pid));
        let late = std::mem::take(&mut self.pending).into_iter().map(|pid| Attempt {
            pid,
            outcome: Outcome { result: Err(Refusal::Late(pid.0)), longest_stop: None },
        });
        ended.into_iter().chain(late).collect()
    }
}

/// Readable when attempts have ended.
impl AsFd for Attacher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Attacher {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Over);
    }
}

fn work(
    heard: &Receiver<Event>,
    events: &Sender<Event>,
    recording: [u8; 16],
    report: impl Fn(Attempt) -> bool,
) {
    let mut turns = Turns::default();
    // What the last attempts came to for processes that get further ones.
    let mut tried = BTreeMap::new();
    let mut is_over = false;
    // Of all attempts so far.
    let mut longest_stop = None;
    while !is_over || turns.are_in_flight() {
        let now = Instant::now();
        if !is_over && let Some(Asked { pid, .. }) = turns.next(now) {
            begin(pid, recording, events);
            continue;
        }
        let event = match turns.idle(now).filter(|_| !is_over) {
            Some(idle) => heard.recv_timeout(idle),
            None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Asked(pid)) => {
                // Of one that has ended, any.
                let user = users(pid).unwrap_or_default()[0];
                turns.ask(Asked { pid, user, since: now });
            }
            Ok(Event::Ended(Attempt { pid, outcome })) => {
                longest_stop = longest_stop.max(outcome.longest_stop);
                let Some(asked) = turns.ended(pid) else { continue };
                let attempt = Attempt { pid, outcome: Outcome { longest_stop, ..outcome } };
                if !is_over && is_transient(&attempt.outcome) && asked.since.elapsed() < PATIENCE {
                    turns.try_again(asked, Instant::now());
                    tried.insert(pid, attempt);
                } else {
                    tried.remove(&pid);
                    is_over |= !report(attempt);
                }
            }
            Ok(Event::Over) => {
                is_over = true;
                turns.clear().for_each(|Asked { pid, .. }| {
                    let nothing = Outcome { result: Ok(Answers::default()), longest_stop: None };
                    report(tried.remove(&pid).unwrap_or(Attempt { pid, outcome: nothing }));
                });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Begins an attempt, on a thread of its own.
fn begin(pid: Pid, recording: [u8; 16], events: &Sender<Event>) {
    let (done, failed) = (events.clone(), events.clone());
    let body = move || {
        let outcome = attach(pid, recording, TURN);
        // Where the recording is over, the doors that it has opened close here.
        let _ = done.send(Event::Ended(Attempt { pid, outcome }));
    };
    if let Err(source) = std::thread::Builder::new().name("attaching".to_owned()).spawn(body) {
        let result = Err(Refusal::System { pid: pid.0, call: "clone", source });
        let _ = failed.send(Event::Ended(Attempt { pid, outcome: Outcome { result, longest_stop: None } }));
    }
}

/// Whether another attempt may succeed. A tracer may be another recorder, which lets go in a moment.
fn is_transient(outcome: &Outcome) -> bool {
    matches!(
        outcome.result,
        Err(Refusal::Busy { .. }
            | Refusal::Traced { .. }
            | Refusal::Taken(_)
            | Refusal::NotReady(_)
            | Refusal::SharedMemory(_)
            | Refusal::FirstThread(_))
    )
}
