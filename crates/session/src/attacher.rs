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
use tracewing_programs::Entry;
use tracewing_units::Pid;

use crate::Error;
use crate::attached::{Answers, Loaded, NotAttached, Outcome, Unread, Wanted};
use crate::attaches::Attaches;
use crate::credentials::users;
use crate::doors::Doors;
use crate::poll::{Poll, Token};
use crate::program::Program;
use turns::{Asked, Turns};

/// How long a process may have no thread that can be borrowed, and how long an attempt looks for one.
const PATIENCE: Duration = Duration::from_secs(3);
const TURN: Duration = Duration::from_millis(50);

/// Minimum time from the end of a round of looks for new copies in plug-ins to the beginning of the next
/// round; at least 100 times as long as a round takes.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a round waits for its looks. Those that take longer, since files of their processes do not
/// answer, hold up no further one, except those at the same process.
const ROUND: Duration = Duration::from_secs(2);
/// Looks at a process in a row that were given up: it is not looked at again. Each may keep a place in the
/// helper.
pub(crate) const MOST_LATE: u32 = 4;

/// How long attempts in flight may take when the recording ends. If an attempt is abandoned halfway, its
/// program waits for the recorder.
const ENDING: Duration = Duration::from_secs(1);

/// The result of an attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) pid: Pid,
    /// Whether it looked for copies that the process has loaded during the recording.
    pub(crate) is_look: bool,
    /// Whether the process is not looked at again, since too many looks at it were given up.
    pub(crate) is_last: bool,
    pub(crate) outcome: Outcome,
}

impl Attempt {
    fn new(asked: &Asked, outcome: Outcome) -> Self {
        Self { pid: asked.pid, is_look: asked.wanted != Wanted::Present, is_last: false, outcome }
    }

    /// An attempt without effect.
    fn in_vain(pid: Pid, is_look: bool, result: Result<Answers, NotAttached>) -> Self {
        let outcome = Outcome { result, longest_stop: None, tried: Vec::new() };
        Self { pid, is_look, is_last: false, outcome }
    }

    /// Whether it was given up, since the process or its files have not answered.
    pub(crate) fn is_late(&self) -> bool {
        matches!(
            self.outcome.result,
            Err(NotAttached::Refused(Refusal::Late(_)) | NotAttached::Unread(Unread::Late))
        )
    }
}

/// Requests to the thread, and the results of its attempts.
enum Event {
    /// A request to attach to a process.
    Asked(Pid, Wanted),
    /// An attempt for a process has ended.
    Ended(Pid, Outcome),
    /// No more requests follow.
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
    fn start(recording: [u8; 16], attaches: Attaches) -> Result<Self, Error> {
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
        let body = move || work(&heard, &own, (recording, attaches), report);
        let thread = std::thread::Builder::new().name("attacher".to_owned()).spawn(body);
        thread.map_err(Error::system("clone"))?;
        Ok(Self { events, attempts, bell })
    }

    fn ask(&self, pid: Pid, wanted: Wanted) {
        // The thread lives as long as this.
        let _ = self.events.send(Event::Asked(pid, wanted));
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
    attaches: Attaches,
    /// Once it is needed.
    attacher: Option<Attacher>,
    pub(crate) doors: Doors,
    /// Processes for which an attach was requested, with the programs that they ran at that time.
    asked: BTreeMap<Pid, Known>,
    /// Processes whose attempt has no result yet, and whether it is a look for new copies.
    pending: BTreeMap<Pid, bool>,
    /// The current round of looks, if one is under way, and when the next one is due.
    round: Option<Round>,
    due: Instant,
    /// Plug-ins that were attached to and have not joined yet.
    pub(crate) arriving: Vec<Arriving>,
    /// The longest time for which a thread was stopped; `None` where none was.
    pub(crate) longest_stop: Option<Duration>,
    /// Whether it was noted that there will be no more looks.
    pub(crate) is_loss_noted: bool,
}

/// A plug-in that was attached to.
pub(crate) struct Arriving {
    pub(crate) pid: Pid,
    pub(crate) entry: Entry,
    /// When it was loaded, if known.
    pub(crate) loaded: Option<Instant>,
}

/// A process for which an attach was requested.
struct Known {
    program: Program,
    since: Instant,
    is_asked: bool,
    /// What was tried with success or without.
    tried: BTreeSet<Loaded>,
    /// Whether it has refused: it is left alone.
    has_refused: bool,
    /// The last looks at it that were given up.
    late: u32,
}

/// A round of looks.
struct Round {
    begin: Instant,
    /// When the last of its looks has ended.
    last: Instant,
    /// The processes whose looks have not ended.
    asked: BTreeSet<Pid>,
}

impl Known {
    fn new(program: Program) -> Self {
        Self {
            program,
            since: Instant::now(),
            is_asked: false,
            tried: BTreeSet::new(),
            has_refused: false,
            late: 0,
        }
    }
}

impl Attaching {
    /// Nothing yet, for a recording.
    pub(crate) fn new(recording: [u8; 16], attaches: Attaches) -> Self {
        Self {
            recording,
            attaches,
            attacher: None,
            doors: Doors::default(),
            asked: BTreeMap::new(),
            pending: BTreeMap::new(),
            round: None,
            due: Instant::now() + INTERVAL,
            arriving: Vec::new(),
            longest_stop: None,
            is_loss_noted: false,
        }
    }

    /// Marks a process as requested, if it has been known for `patience`. Returns `false` before that, and if
    /// it was already requested and has executed no file since.
    pub(crate) fn mark_asked(&mut self, program: Program, patience: Duration) -> bool {
        let known = self.asked.entry(program.pid).or_insert_with(|| Known::new(program.clone()));
        if known.program != program {
            *known = Known::new(program);
        }
        let is_due = !known.is_asked && known.since.elapsed() >= patience;
        known.is_asked |= is_due;
        is_due
    }

    /// Forgets processes that are not in `living`.
    pub(crate) fn forget_all_but(&mut self, living: &[Pid]) {
        self.asked.retain(|pid, _| living.contains(pid));
    }

    /// Requests an attach to a process.
    ///
    /// # Errors
    /// The system refuses a thread or a descriptor.
    pub(crate) fn ask(&mut self, pid: Pid, poll: &Poll) -> Result<(), Error> {
        self.begin(pid, Wanted::Present, poll)
    }

    /// Whether the next round of looks for new copies in plug-ins is to begin.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        self.end_round(now);
        self.round.is_none() && now >= self.due
    }

    /// Looks for copies that a process has loaded during the recording. `members`: addresses in the copies
    /// that have joined. A copy that has refused is not tried again.
    ///
    /// # Errors
    /// The system refuses a thread or a descriptor.
    pub(crate) fn look(&mut self, pid: Pid, members: Vec<u64>, poll: &Poll) -> Result<(), Error> {
        let now = Instant::now();
        self.round.get_or_insert(Round { begin: now, last: now, asked: BTreeSet::new() });
        if self.attaches.is_lost() {
            return Ok(());
        }
        let known = self.asked.entry(pid).or_insert_with(|| Known::new(Program::of(pid)));
        // A process that has neither joined nor been requested is attached to first.
        let is_known = known.is_asked || !members.is_empty();
        let is_left_alone = known.has_refused || known.late >= MOST_LATE;
        if !is_known || is_left_alone || self.pending.contains_key(&pid) {
            return Ok(());
        }
        let tried = known.tried.clone();
        self.begin(pid, Wanted::New { members, tried }, poll)?;
        if let Some(round) = &mut self.round {
            round.asked.insert(pid);
        }
        Ok(())
    }

    fn begin(&mut self, pid: Pid, wanted: Wanted, poll: &Poll) -> Result<(), Error> {
        let attacher = match self.attacher.take() {
            Some(attacher) => attacher,
            None => {
                let attacher = Attacher::start(self.recording, self.attaches.clone())?;
                let added = poll.add(&attacher, Token::Attacher, EventFlags::IN);
                added.map_err(Error::system("epoll_ctl"))?;
                attacher
            }
        };
        self.pending.insert(pid, wanted != Wanted::Present);
        self.attacher.insert(attacher).ask(pid, wanted);
        Ok(())
    }

    /// An attempt that has ended since the last time.
    pub(crate) fn next(&mut self) -> Option<Attempt> {
        let attempt = self.attacher.as_ref()?.next()?;
        Some(self.ended(attempt, Instant::now()))
    }

    fn ended(&mut self, mut attempt: Attempt, now: Instant) -> Attempt {
        self.pending.remove(&attempt.pid);
        if let Some(known) = self.asked.get_mut(&attempt.pid) {
            known.has_refused |= attempt.outcome.result.is_err() && !attempt.is_look;
            known.late = if attempt.is_late() { known.late + 1 } else { 0 };
            known.tried.extend(&attempt.outcome.tried);
            attempt.is_last = attempt.is_look && known.late == MOST_LATE;
        }
        // One of an earlier round, which was not waited for, says nothing of this one.
        if attempt.is_look
            && let Some(round) = &mut self.round
            && round.asked.remove(&attempt.pid)
        {
            round.last = now;
        }
        self.end_round(now);
        attempt
    }

    /// Ends the round of looks if no attempt is left of it, or those that are left take long.
    pub(crate) fn end_round(&mut self, now: Instant) {
        let Some(round) = &self.round else { return };
        let is_over = round.asked.is_empty();
        if is_over || now.saturating_duration_since(round.begin) >= ROUND {
            let end = if is_over { now } else { round.last };
            self.due = now + INTERVAL.max(100 * end.saturating_duration_since(round.begin));
            self.round = None;
        }
    }

    /// Begins no further attempts, at the recording's end, and gives those that were in flight, once they
    /// have ended.
    pub(crate) fn end(&mut self, poll: &Poll) -> Vec<Attempt> {
        let Some(attacher) = self.attacher.take() else {
            self.attaches.end();
            return Vec::new();
        };
        poll.remove(&attacher);
        let _ = attacher.events.send(Event::Over);
        let until = Instant::now() + ENDING;
        let next = || attacher.attempts.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
        let ended: Vec<_> = std::iter::from_fn(next).collect();
        self.pending.retain(|pid, _| !ended.iter().any(|attempt| attempt.pid == *pid));
        self.attaches.end();
        let late = std::mem::take(&mut self.pending).into_iter();
        let late = late.map(|(pid, is_look)| Attempt::in_vain(pid, is_look, Err(Refusal::Late(pid).into())));
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
    (recording, attaches): ([u8; 16], Attaches),
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
        if !is_over && let Some(Asked { pid, wanted, .. }) = turns.next(now) {
            begin(pid, wanted, recording, attaches.clone(), events);
            continue;
        }
        let event = match turns.idle(now).filter(|_| !is_over) {
            Some(idle) => heard.recv_timeout(idle),
            None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Asked(pid, wanted)) => {
                // Of one that has ended, any.
                let user = users(pid).unwrap_or_default()[0];
                turns.ask(Asked { pid, wanted, user, since: now });
            }
            Ok(Event::Ended(pid, outcome)) => {
                longest_stop = longest_stop.max(outcome.longest_stop);
                let Some(asked) = turns.ended(pid) else { continue };
                let attempt = Attempt::new(&asked, Outcome { longest_stop, ..outcome });
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
                turns.clear().for_each(|Asked { pid, wanted, .. }| {
                    let nothing = || Attempt::in_vain(pid, wanted != Wanted::Present, Ok(Answers::default()));
                    report(tried.remove(&pid).unwrap_or_else(nothing));
                });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Begins an attempt, on a thread of its own.
fn begin(pid: Pid, wanted: Wanted, recording: [u8; 16], attaches: Attaches, events: &Sender<Event>) {
    let (done, failed) = (events.clone(), events.clone());
    let body = move || {
        let outcome = attaches.attach(pid, &wanted, recording, TURN);
        // Where the recording is over, the doors that it has opened close here.
        let _ = done.send(Event::Ended(pid, outcome));
    };
    if let Err(source) = std::thread::Builder::new().name("attaching".to_owned()).spawn(body) {
        let refusal = Refusal::System { pid, call: "clone", source };
        let _ = failed.send(Event::Ended(pid, Attempt::in_vain(pid, false, Err(refusal.into())).outcome));
    }
}

/// Whether another attempt may succeed. A tracer may be another recorder, which lets go in a moment.
fn is_transient(outcome: &Outcome) -> bool {
    matches!(
        outcome.result,
        Err(NotAttached::Refused(
            Refusal::Busy { .. }
                | Refusal::Traced { .. }
                | Refusal::Taken(_)
                | Refusal::NotReady(_)
                | Refusal::SharedMemory(_)
                | Refusal::FirstThread(_)
        ))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a round of looks at so many processes, from 1.
    fn attaching(looks: i32, begin: Instant, last: Instant) -> Attaching {
        let mut attaching = Attaching::new([7; 16], Attaches::default());
        let asked: BTreeSet<Pid> = (1..=looks).map(Pid).collect();
        attaching.pending.extend(asked.iter().map(|pid| (*pid, true)));
        attaching.round = Some(Round { begin, last, asked });
        attaching
    }

    /// A look at a process that has found nothing, or was given up.
    fn look(pid: Pid, result: Result<(), NotAttached>) -> Attempt {
        Attempt::in_vain(pid, true, result.map(|()| Answers::default()))
    }

    #[test]
    fn looks_that_take_long_do_not_hold_up_the_next_round() {
        let begin = Instant::now();
        let brief = Duration::from_millis(15);
        let mut late = attaching(1, begin, begin + brief);
        assert!(!late.take_due(begin + ROUND / 2) && late.round.is_some(), "it may be answered");
        let end = begin + ROUND;
        assert!(!late.take_due(end) && late.round.is_none());
        // As long as those have taken that were answered, and not the one that was waited for.
        assert!(!late.take_due(end + 99 * brief) && late.take_due(end + 100 * brief));
        // Nothing was answered.
        let mut late = attaching(1, begin, begin);
        assert!(!late.take_due(end) && late.take_due(end + INTERVAL));
    }

    #[test]
    fn rounds_take_a_hundredth_of_the_time() {
        let begin = Instant::now();
        let end = begin + INTERVAL;
        let mut attaching = attaching(0, begin, begin);
        assert!(!attaching.take_due(end));
        assert!(!attaching.take_due(end + 99 * INTERVAL) && attaching.take_due(end + 100 * INTERVAL));
    }

    #[test]
    fn looks_of_an_earlier_round_delay_no_later_one() {
        let begin = Instant::now();
        let mut attaching = attaching(2, begin, begin);
        assert!(!attaching.take_due(begin + ROUND) && attaching.round.is_none());
        // The next round has one look, which takes as long as this; the earlier ones have not ended yet.
        let (begin, brief) = (begin + ROUND + INTERVAL, Duration::from_millis(15));
        attaching.pending.insert(Pid(3), true);
        attaching.round = Some(Round { begin, last: begin, asked: [Pid(3)].into() });
        attaching.ended(look(Pid(1), Ok(())), begin + brief / 2);
        assert!(attaching.round.is_some(), "its own look has not ended");
        attaching.ended(look(Pid(3), Ok(())), begin + brief);
        assert!(attaching.round.is_none(), "one of an earlier round is not waited for");
        assert_eq!(attaching.due, begin + brief + 100 * brief);
        // One that is not answered is not made up for by those of an earlier round.
        attaching.pending.insert(Pid(3), true);
        attaching.round = Some(Round { begin, last: begin, asked: [Pid(3)].into() });
        attaching.ended(look(Pid(2), Ok(())), begin + ROUND / 2);
        attaching.end_round(begin + ROUND);
        assert_eq!(attaching.due, begin + ROUND + INTERVAL);
    }

    #[test]
    fn a_process_whose_looks_are_given_up_is_left_alone() {
        let now = Instant::now();
        let given_up: [fn() -> NotAttached; 2] = [|| Refusal::Late(Pid(1)).into(), || Unread::Late.into()];
        for why in given_up {
            let mut attaching = Attaching::new([7; 16], Attaches::default());
            attaching.asked.insert(Pid(1), Known::new(Program::of(Pid(1))));
            let mut ends = |result| attaching.ended(look(Pid(1), result), now).is_last;
            assert!((1..MOST_LATE).all(|_| !ends(Err(why()))));
            assert!(!ends(Ok(())), "not in a row");
            assert!((1..MOST_LATE).all(|_| !ends(Err(why()))));
            assert!(ends(Err(why())), "it is reported once");
            assert_eq!(attaching.asked[&Pid(1)].late, MOST_LATE);
        }
    }
}
