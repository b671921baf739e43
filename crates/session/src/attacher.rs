//! A thread that attaches to processes, since that can take as long as a process has no thread that can be
//! borrowed: the recorder's loop asks for it, and hears of the result by a descriptor.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};
use tracewing_attach::Refusal;
use tracewing_units::Pid;

use crate::Error;
use crate::attached::{Outcome, attach};
use crate::doors::Doors;
use crate::poll::{Poll, Token};
use crate::program::Program;

/// How long a process may have no thread that can be borrowed, and how long an attempt waits before others
/// have their turn.
const PATIENCE: Duration = Duration::from_secs(3);
const TURN: Duration = Duration::from_millis(50);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// What became of an attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) pid: Pid,
    pub(crate) outcome: Outcome,
}

/// The thread. It ends when this is dropped, after what it is doing.
struct Attacher {
    requests: Sender<Pid>,
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
        let (requests, requested) = channel();
        let (done, attempts) = channel();
        let rings = bell.clone();
        let report = move |attempt| {
            let is_heard = done.send(attempt).is_ok();
            let _ = rustix::io::write(&rings, &1_u64.to_ne_bytes());
            is_heard
        };
        let body = move || work(&requested, recording, report);
        let thread = std::thread::Builder::new().name("attacher".to_owned()).spawn(body);
        thread.map_err(Error::system("clone"))?;
        Ok(Self { requests, attempts, bell })
    }

    /// Asks for a process.
    fn ask(&self, pid: Pid) {
        // The thread lives as long as this.
        let _ = self.requests.send(pid);
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
            longest_stop: None,
        }
    }

    /// Whether a process has not been asked for, or has executed a file since; from now on it has.
    pub(crate) fn is_new(&mut self, program: Program) -> bool {
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
        Ok(())
    }

    /// An attempt that has ended since the last time.
    pub(crate) fn next(&self) -> Option<Attempt> {
        self.attacher.as_ref()?.next()
    }
}

/// Readable when attempts have ended.
impl AsFd for Attacher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

fn work(requested: &Receiver<Pid>, recording: [u8; 16], report: impl Fn(Attempt) -> bool) {
    let mut waiting: VecDeque<(Pid, Instant)> = VecDeque::new();
    // Of all attempts so far.
    let mut longest_stop = None;
    loop {
        // Sleeps only where there is nothing to do.
        let request = match waiting.is_empty() {
            true => requested.recv().map_err(|_| TryRecvError::Disconnected),
            false => requested.recv_timeout(PAUSE).map_err(|error| match error {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        };
        match request {
            Ok(pid) => waiting.push_front((pid, Instant::now())),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return,
        }
        let Some((pid, since)) = waiting.pop_front() else { continue };
        let outcome = attach(pid, recording, TURN);
        longest_stop = longest_stop.max(outcome.longest_stop);
        let is_transient = matches!(
            outcome.result,
            Err(Refusal::Busy { .. }
                | Refusal::Taken(_)
                | Refusal::NotReady(_)
                | Refusal::SharedMemory(_)
                | Refusal::FirstThread(_))
        );
        if is_transient && since.elapsed() < PATIENCE {
            waiting.push_back((pid, since));
        } else if !report(Attempt { pid, outcome: Outcome { longest_stop, ..outcome } }) {
            return;
        }
    }
}
