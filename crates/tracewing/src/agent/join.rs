//! Joining recordings: at the program's start (`start`), in the running program, and in a forked child that
//! needs buffers of its own.
//!
//! The handshake is `tracewing_abi::message`'s. Before `main` a program waits for all recorders together no
//! longer than [`Wait`] says. A thread completes unfinished handshakes later, and reports to the recorder
//! from when on the program was not recorded. A recorder that was late once is not waited for again, here or
//! in programs that this one executes. Nothing is ever printed.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracewing_abi::message::ask::Describe;
use tracewing_abi::message::door::Knock;
use tracewing_abi::message::grant::{Done, decode_change, decode_grants};
use tracewing_abi::message::late::{Farewell, Late};
use tracewing_abi::message::snapshot::{Asker, Question, Taken};
use tracewing_abi::message::{Answer, ClassesWriter, Hello, Joining, MAX_MESSAGE};
use tracewing_abi::region::VERSION;
use tracewing_abi::{LATE, LATE_VARIABLE, WAIT_VARIABLE};
use tracewing_ring::thread::RECORDINGS;

use super::access::Access;
use super::attach::{self, Buffers, Visit, attach_buffers, can_publish, joined};
use super::connection::{Connection, hung_up, invited, leave_alone};
use super::control::{self, Granted, Rest};
use super::socket::{self, Failure, Until};
use super::system::{self, Fd};
use super::table::ClassTable;
use super::{UNCALLED, smp, spare};
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
    /// From now on.
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
    /// Not in time.
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

    /// Continues the handshake.
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
        let telling =
            Telling { access, first: talk.is_some().then(|| place.clone()), talk, classes: classes.to_vec() };
        let answer = telling.go_on(until);
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

/// Classes on their way to a recorder.
struct Telling {
    access: Access,
    /// Where the conversation goes when it is done, if it is the process's first with the recorder.
    first: Option<Arc<Mutex<Option<Talk>>>>,
    talk: Option<Talk>,
    classes: Vec<&'static EventClass>,
}

impl Telling {
    fn go_on(mut self, until: Until) -> control::Answer {
        match self.describe(until) {
            Ok(grants) => {
                let talk = self.talk.take();
                match self.first {
                    Some(first) => {
                        *first.lock().unwrap_or_else(PoisonError::into_inner) = talk;
                        grants.into()
                    }
                    None => control::Answer {
                        grants,
                        connection: talk.map(|talk| talk.socket),
                        ..Default::default()
                    },
                }
            }
            Err(Failure::Late) => {
                let rest = Box::new(move || self.go_on(None));
                control::Answer { rest: Some(rest), ..Default::default() }
            }
            // The recorder takes the hang-up for what it is.
            Err(Failure::Gone) => control::Answer::default(),
        }
    }

    fn describe(&mut self, until: Until) -> Result<Vec<Granted>, Failure> {
        let talk = match &mut self.talk {
            Some(talk) => talk,
            None => {
                let socket = greet(&self.access, Joining::More, [0; 2], until)?;
                self.talk.insert(Talk { is_known: false, ..Talk::new(socket) })
            }
        };
        talk.describe(&self.classes, until)
    }
}

/// A conversation about classes, which can stop at any point.
struct Talk {
    socket: Fd,
    /// Whether the greeting was answered.
    is_known: bool,
    /// How many classes were described.
    asked: usize,
    grants: Vec<Granted>,
}

impl Talk {
    fn new(socket: Fd) -> Self {
        Self { socket, is_known: true, asked: 0, grants: Vec::new() }
    }

    /// Describes classes, and gives what the recorder grants. The next call is about other classes, unless
    /// this one was late.
    fn describe(&mut self, classes: &[&'static EventClass], until: Until) -> Result<Vec<Granted>, Failure> {
        if !self.is_known {
            known(&self.socket, until)?;
            self.is_known = true;
        }
        let mut buffer = vec![0; MAX_MESSAGE];
        while self.grants.len() < classes.len() {
            if self.asked == self.grants.len() {
                self.ask(&classes[self.asked..], &mut buffer, until)?;
            }
            while self.grants.len() < self.asked {
                self.listen(&mut buffer, until)?;
            }
        }
        self.asked = 0;
        Ok(core::mem::take(&mut self.grants))
    }

    /// Describes as many classes as fit into a message.
    fn ask(&mut self, rest: &[&'static EventClass], buffer: &mut [u8], until: Until) -> Result<(), Failure> {
        let mut message = ClassesWriter::new(buffer).map_err(|_| Failure::Gone)?;
        let fitting = rest.iter().take_while(|class| message.push(class.description()).is_ok()).count();
        if fitting == 0 {
            // One class that is larger than a message: it stays off.
            self.grants.push(Granted { id: 0, on: false, filter: Vec::new() });
            self.asked += 1;
            return Ok(());
        }
        socket::send(&self.socket, message.finish(), until)?;
        self.asked += fitting;
        Ok(())
    }

    /// Takes one message.
    fn listen(&mut self, buffer: &mut [u8], until: Until) -> Result<(), Failure> {
        let answer = receive(&self.socket, buffer, until)?;
        if invited(answer) || Describe::decode(answer).is_some() {
            return Ok(());
        }
        if let Ok((number, changes)) = decode_change(answer) {
            // The rules have changed meanwhile. None of these classes is on yet.
            for change in changes {
                let change = Granted::from(change.map_err(|_| Failure::Gone)?);
                let same = self.grants.iter_mut().filter(|grant| grant.id == change.id);
                same.for_each(|grant| *grant = change.clone());
            }
            let mut done = [0; Done::LARGEST];
            let done = Done { number, failed: 0, why: "" }.encode(&mut done).map_err(|_| Failure::Gone)?;
            return socket::send(&self.socket, done, None);
        }
        let before = self.grants.len();
        for grant in decode_grants(answer).map_err(|_| Failure::Gone)? {
            self.grants.push(grant.map_err(|_| Failure::Gone)?.into());
        }
        if self.grants.len() == before { Err(Failure::Gone) } else { Ok(()) }
    }
}

/// In a forked child, on the agent's thread: a connection to the recorder of its parent, and buffers where it
/// needs its own.
pub(super) fn share(slot: usize) -> Option<Connection> {
    let parents = joined(slot)?;
    if !parents.has_region() {
        return rejoin(&parents);
    }
    let (joining, number) = match parents.number() {
        Some(number) => (Joining::Heir, number),
        None => (Joining::Sharer, 0),
    };
    let access = parents.access();
    drop(parents);
    let socket = greet(&access, joining, [number, 0], None).ok()?;
    known(&socket, None).ok()?;
    Connection::new(slot, Some(socket), None)
}

/// Receives a recorder's answer to a process that has its buffers already.
fn known(socket: &Fd, until: Until) -> Result<(), Failure> {
    let mut buffer = [0; Answer::SIZE];
    let (answer, _) = socket::receive(socket, &mut buffer, until)?;
    if Answer::decode(answer) == Ok(Answer::Known) { Ok(()) } else { Err(Failure::Gone) }
}

/// In a forked child: whether a recorder is to give it buffers of its own.
pub(super) fn needs_buffers(slot: usize) -> bool {
    joined(slot).is_some_and(|parents| !parents.has_region() && parents.access().is_some())
}

/// In a forked child: whether its parent needs buffers for the next one.
pub(super) fn forks(slot: usize) -> bool {
    joined(slot).is_some_and(|joined| !joined.is_inherited() && joined.access().is_some())
}

/// Gets buffers for the children that the process forks next.
pub(super) fn prepare_for_children(slot: usize) {
    while spare::is_wanted(slot) {
        let Some(access) = joined(slot).filter(|joined| joined.has_region()).map(|joined| joined.access())
        else {
            return;
        };
        let given = greet(&access, Joining::Parent, [0; 2], None).and_then(|socket| welcomed(&socket, None));
        let Ok(Given { buffers, number, .. }) = given else { return };
        spare::keep(slot, buffers, number);
    }
}

/// In a forked child, on the agent's thread: gets buffers for this process, in place of its parent's, from
/// the parent's recorder. Without any, the child is recorded no longer.
fn rejoin(parents: &Visit) -> Option<Connection> {
    let slot = parents.slot();
    let joined = greet(&parents.access(), Joining::Child, [0; 2], None).ok().and_then(|socket| {
        let given = welcomed(&socket, None).ok()?;
        let joined = attach_buffers(slot, given.buffers, parents.access(), Some(parents))?;
        Some((socket, joined))
    });
    let Some((socket, joined)) = joined else {
        attach::end(parents);
        parents.access().close();
        return None;
    };
    // SAFETY: `attach::leave` unmaps nothing that was offered; it checks for that again after this visit.
    unsafe { smp::offer(slot, joined) };
    Connection::new(slot, Some(socket), None)
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

/// Connects to a recorder and says hello.
fn greet(access: &Access, joining: Joining, waits: [u64; 2], until: Until) -> Result<Fd, Failure> {
    let copy = (&raw const UNCALLED).addr() as u64;
    let pid = system::process_id() as u32;
    let hello = Hello { version: VERSION, pid, can_publish: can_publish(), joining, copy, waits };
    let socket = access.connect(Knock::Join, until)?;
    socket::send(&socket, &hello.encode(), until)?;
    Ok(socket)
}

/// Receives a message. On a thread of the agent's, that ends here if the recorder has found that the process
/// is filtered.
fn receive<'a>(socket: &Fd, buffer: &'a mut [u8], until: Until) -> Result<&'a [u8], Failure> {
    let (message, _) = socket::receive(socket, buffer, until)?;
    heed(message, until);
    Ok(message)
}

fn heed(message: &[u8], until: Until) {
    if until.is_none() && Farewell::decode(message) == Some(Farewell::Alone) {
        leave_alone();
    }
}

/// What a recorder passes to a process that needs buffers, mapped.
struct Given {
    buffers: Buffers,
    /// Those for the next child.
    spare: Option<Buffers>,
    /// Number of what is for the next child.
    number: u64,
}

/// Receives a recorder's answer to a process that needs buffers.
fn welcomed(socket: &Fd, until: Until) -> Result<Given, Failure> {
    // A child that is forked in the meantime must inherit neither descriptors nor mappings.
    let mut buffer = [0; Answer::SIZE];
    heed(socket::look(socket, &mut buffer, until)?, until);
    control::with_lock(|| {
        // It is there; a thread that waited could end here, with the lock.
        let (answer, [file, children, spare, spares_children]) =
            socket::receive(socket, &mut buffer, Some(Instant::now()))?;
        let Ok(Answer::Welcome { size, shared, spare: number }) = Answer::decode(answer) else {
            return Err(Failure::Gone);
        };
        let size = usize::try_from(size).map_err(|_| Failure::Gone)?;
        let buffers = file.and_then(|file| Buffers::map(&file, children.as_ref(), size, shared));
        let spare = spare.and_then(|spare| Buffers::map(&spare, spares_children.as_ref(), size, false));
        Ok(Given { buffers: buffers.ok_or(Failure::Gone)?, spare, number })
    })
}
