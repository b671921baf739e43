//! Joining recordings: at the program's start (`start`), in the running program, and in a forked child that
//! needs buffers of its own.
//!
//! The handshake is `tracewing_abi::message`'s. Before `main` a program waits for all recorders together no
//! longer than [`Wait`] says. A thread completes unfinished handshakes later, and reports to the recorder
//! from when on the program was not recorded. A recorder that was late once is not waited for again, here or
//! in programs that this one executes. Nothing is ever printed.

mod children;
mod greeting;
mod talk;

pub(super) use children::{forks, needs_buffers, prepare_for_children, share};
use greeting::{Given, greet, welcomed};
use talk::{Descriptions, Talk};

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracewing_abi::message::Joining;
use tracewing_abi::message::door::Knock;
use tracewing_abi::message::late::Late;
use tracewing_abi::message::snapshot::{Asker, Question, Taken};
use tracewing_abi::{LATE, LATE_VARIABLE, WAIT_VARIABLE};
use tracewing_ring::thread::RECORDINGS;

use super::access::Access;
use super::attach::{self, joined};
use super::connection::{Connection, hung_up};
use super::control::{self, Rest};
use super::socket::{self, Failure, Until};
use super::system::{self, Fd};
use super::table::ClassTable;
use super::{smp, spare};
use crate::class::EventClass;

/// How long programs wait where the environment does not say.
const WAIT: Duration = Duration::from_millis(100);
/// How long a snapshot may take.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(30);

/// How long a program waits for recorders.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    end: Option<Instant>,
}

impl Wait {
    /// The wait starts now, and lasts as the environment says.
    pub(super) fn begin() -> Self {
        let wait = variable(WAIT_VARIABLE).and_then(|text| text.to_str().ok()?.parse().ok());
        let wait = wait.map_or(WAIT, Duration::from_millis);
        let was_late = variable(LATE_VARIABLE).is_some_and(|text| text.to_bytes() == [LATE]);
        let now = Instant::now();
        Self { end: if was_late { Some(now) } else { now.checked_add(wait) } }
    }

    pub(super) fn until(self) -> Until {
        self.end
    }
}

/// A variable of the environment, which is not changed while a program or library starts.
pub(super) fn variable(name: &str) -> Option<&'static CStr> {
    let mut terminated = [0u8; 32];
    terminated.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    // SAFETY: a NUL-terminated name.
    let value = unsafe { libc::getenv(terminated.as_ptr().cast()) };
    // SAFETY: null, or a NUL-terminated string that stays until the environment is changed.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// A recorder that the process does not take part in yet.
pub(super) struct Candidate {
    access: Access,
    /// When the program began to ask, unless it was asked to join: then nothing is missed before that.
    since: Option<u64>,
    stage: Stage,
}

enum Stage {
    /// It has not been reached.
    Unreached,
    /// It has been greeted.
    Greeted(Fd),
    /// It is sending classes and applying the answers.
    Describing { slot: usize, first: Arc<Mutex<Option<Talk>>>, rest: Rest },
}

/// How far a candidate has come.
pub(super) enum Progress {
    Joined(Connection),
    /// The time is over; the handshake can be continued later.
    Late(Candidate),
    /// It is no recorder of this process, or the process is recorded without a connection.
    Gone,
}

impl Candidate {
    /// A recorder whose recording has lasted since before the program.
    pub(super) fn of(access: Access) -> Self {
        Self { access, since: Some(system::time_of_day()), stage: Stage::Unreached }
    }

    /// A recorder that wants the process in a recording that has begun while it runs.
    pub(super) fn invited(access: Access) -> Self {
        Self { access, since: None, stage: Stage::Unreached }
    }

    /// How it is reached.
    pub(super) fn access(&self) -> Access {
        self.access
    }

    pub(super) fn join(mut self, until: Until) -> Progress {
        loop {
            let next = match self.stage {
                Stage::Unreached => self.greet(until).map(Stage::Greeted),
                Stage::Greeted(socket) => match welcomed(&socket, until) {
                    Ok(given) => match begin(self.access, socket, given, until) {
                        Some((slot, first, None)) => return finish(slot, &first),
                        Some((slot, first, Some(rest))) => {
                            self.stage = Stage::Describing { slot, first, rest };
                            return Progress::Late(self);
                        }
                        None => return Progress::Gone,
                    },
                    Err(Failure::Late) => {
                        self.stage = Stage::Greeted(socket);
                        return Progress::Late(self);
                    }
                    Err(failure) => Err(failure),
                },
                Stage::Describing { slot, first, rest } => {
                    rest();
                    return finish(slot, &first);
                }
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(Failure::Late) => {
                    self.stage = Stage::Unreached;
                    return Progress::Late(self);
                }
                Err(Failure::Gone) => return Progress::Gone,
            }
        }
    }

    fn greet(&self, until: Until) -> Result<Fd, Failure> {
        let left = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        let stops = system::time_of_day().saturating_add(left.as_nanos() as u64);
        let waits = self.since.map_or([0, u64::MAX], |since| [since, stops]);
        greet(&self.access, Joining::Program, waits, until)
    }

    /// Continues without a time limit, and reports what was missed. Returns the connection, if there is one.
    pub(super) fn join_at_last(self) -> Option<Connection> {
        let from = self.since;
        let Progress::Joined(connection) = self.join(None) else { return None };
        from.into_iter().for_each(|from| connection.report(Late { from, to: system::time_of_day() }));
        Some(connection)
    }
}

/// Takes part in a recording with these buffers, and describes the classes to it.
#[expect(clippy::type_complexity, reason = "slot, conversation, and what is left of it")]
fn begin(
    access: Access,
    socket: Fd,
    Given { buffers, spare, number }: Given,
    until: Until,
) -> Option<(usize, Arc<Mutex<Option<Talk>>>, Option<Rest>)> {
    let (slot, joined) = attach::take_part(buffers, access)?;
    spare.into_iter().for_each(|buffers| spare::keep(slot, buffers, number));
    // SAFETY: no thread leaves a recording while it is being joined, and `attach::leave` unmaps nothing that
    // was offered.
    unsafe { smp::offer(slot, joined) };
    let first = Arc::new(Mutex::new(Some(Talk::new(socket))));
    let (place, begins) = (first.clone(), Mutex::new(Some(until)));
    let was_late = AtomicBool::new(false);
    let send = move |classes: &[&'static EventClass]| {
        // Taken out of its place for this one use: a child that is forked in the meantime finds the lock
        // free, and another thread that has new classes makes a connection of its own.
        let begins = begins.lock().unwrap_or_else(PoisonError::into_inner).take();
        let until = begins.unwrap_or_else(|| match was_late.load(Relaxed) {
            true => Some(Instant::now()),
            false => Wait::begin().until(),
        });
        let talk = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let descriptions = Descriptions {
            access,
            first: talk.is_some().then(|| place.clone()),
            talk,
            classes: classes.to_vec(),
        };
        let answer = descriptions.proceed(until);
        was_late.fetch_or(answer.rest.is_some(), Relaxed);
        answer
    };
    let (_, rest) = control::join(slot, Arc::new(send));
    Some((slot, first, rest))
}

/// The recorder has said what becomes of the classes.
fn finish(slot: usize, first: &Mutex<Option<Talk>>) -> Progress {
    let table = joined(slot).and_then(|joined| ClassTable::new(slot, &joined.region.recording()));
    let Some(talk) = first.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        hung_up(slot, table);
        return Progress::Gone;
    };
    Connection::new(slot, Some(talk.socket), table).map_or(Progress::Gone, Progress::Joined)
}

/// The recorders of the process.
pub(crate) fn recorders() -> impl Iterator<Item = Access> {
    (0..RECORDINGS).filter_map(|slot| Some(joined(slot)?.access())).filter(Access::is_some)
}

/// The recordings that the process takes part in, by this copy of the crate, and their recorders.
pub(super) fn recordings() -> impl Iterator<Item = ([u8; 16], Access)> {
    (0..RECORDINGS).filter_map(joined).map(|joined| (joined.region.recording(), joined.access()))
}

/// Whether the process takes part in this recording, by this copy of the crate.
pub(super) fn is_in(recording: &[u8; 16]) -> bool {
    (0..RECORDINGS).filter_map(joined).any(|joined| joined.region.recording() == *recording)
}

/// Why a recorder does not say whether it has taken a snapshot.
pub(crate) enum Unanswered {
    /// Nothing listens there that this user may ask.
    NotReached,
    /// No answer in time, or one of another version.
    Silent,
}

/// Has a recorder take a snapshot, and waits for its answer.
pub(crate) fn ask_for_snapshot<'a>(
    recorder: &Access,
    asker: Asker,
    buffer: &'a mut [u8],
) -> Result<Taken<'a>, Unanswered> {
    let until = Instant::now().checked_add(SNAPSHOT_PATIENCE);
    let socket = recorder.connect(Knock::Ask, until).map_err(|_| Unanswered::NotReached)?;
    let sent = socket::send(&socket, &Question::Snapshot(asker).encode(), until);
    let answer = sent.and_then(|()| socket::receive(&socket, buffer, until));
    Taken::decode(answer.map_err(|_| Unanswered::Silent)?.0).map_err(|_| Unanswered::Silent)
}
