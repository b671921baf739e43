//! The recorder's side of the channel.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, shutdown, socketpair,
};
use rustix::thread::CapabilitySet;
use tracewing_units::Pid;

use crate::message::{Received, Reply, Request, receive, send};
use crate::process::{Child, is_readable, settle, wait_for};
use crate::rights::keep_only;
use crate::server::Server;

/// How long a helper may take to begin, and to end.
const STARTING: Duration = Duration::from_secs(5);
const ENDING: Duration = Duration::from_secs(1);
/// How long a request waits for room in the channel.
const SENDING: Duration = Duration::from_secs(1);
/// Requests without a reply that are no longer waited for. A helper that has as many is of no use any more:
/// each further one would be waited for in vain. [`Helper::with_most_late`] sets another number.
const MOST_LATE: usize = 8;

/// Number of a request; not used again.
pub type Number = u64;

/// A helper process. It is ended when this is dropped.
///
/// Several requests may be in flight, from several threads. A helper that has ended, by itself or because
/// its packets are wrong, is *lost*: all requests fail from then on, with [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct Helper {
    channel: OwnedFd,
    child: Mutex<Child>,
    pid: Pid,
    most_late: usize,
    state: Mutex<State>,
    /// Notified after each packet, and after each attempt to receive one.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    last: Number,
    /// Requests whose replies were not taken.
    requests: BTreeMap<Number, Asked>,
    /// Whether a thread receives at this moment; others wait for what it gets.
    is_receiving: bool,
    is_lost: bool,
}

#[derive(Debug)]
enum Asked {
    InFlight,
    Answered(Reply),
    /// No thread waits for the reply any more.
    Abandoned,
}

impl State {
    fn abandoned(&self) -> usize {
        self.requests.values().filter(|asked| matches!(asked, Asked::Abandoned)).count()
    }
}

impl Helper {
    /// Starts a helper that serves until it returns. `name` is its `comm`, of which Linux keeps 15 bytes; of
    /// `capabilities` it keeps those that this process has.
    ///
    /// `serve` runs in the new process; it must not own descriptors, which are closed there. The calling
    /// thread should live as long as the helper, which is killed when that thread ends; and it should be the
    /// only one: locks that other threads have stay locked in the helper.
    ///
    /// # Errors
    /// The system refuses a process or a descriptor, or the helper cannot give up what it should.
    pub fn start(name: &CStr, capabilities: CapabilitySet, serve: impl FnOnce(Server)) -> io::Result<Self> {
        Self::start_with(name, Some(capabilities), serve)
    }

    /// The same with all rights that this process has now: to execute programs on its behalf once it has
    /// given up its own.
    ///
    /// # Errors
    /// The system refuses a process or a descriptor.
    pub fn start_with_all_rights(name: &CStr, serve: impl FnOnce(Server)) -> io::Result<Self> {
        Self::start_with(name, None, serve)
    }

    fn start_with(
        name: &CStr,
        capabilities: Option<CapabilitySet>,
        serve: impl FnOnce(Server),
    ) -> io::Result<Self> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (channel, there) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        let recorder = Pid::from_unsigned(std::process::id());
        let child = Child::fork(|| {
            if let Some(server) = begin(name, capabilities, &there, recorder) {
                serve(server);
            }
        })?;
        drop(there);
        let helper = Self {
            channel,
            pid: child.pid(),
            child: Mutex::new(child),
            most_late: MOST_LATE,
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        helper.wait_until_ready()?;
        Ok(helper)
    }

    /// The same helper, which is of no use any more if `most` requests are late: for one whose requests are
    /// carried out independently of each other.
    #[must_use]
    pub fn with_most_late(mut self, most: usize) -> Self {
        self.most_late = most;
        self
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether a request that is no longer waited for has not been answered yet.
    pub fn is_late(&self, number: Number) -> bool {
        // What has arrived by now.
        let _ = self.take(|_| None, Duration::ZERO);
        matches!(self.lock().requests.get(&number), Some(Asked::Abandoned))
    }

    /// Whether it has ended, or is of no use any more.
    pub fn is_lost(&self) -> bool {
        let mut state = self.lock();
        if !state.is_lost && self.child().has_ended() {
            self.lose(&mut state);
        }
        state.is_lost
    }

    /// Ends it, as when it is dropped. All requests fail from now on.
    pub fn end(&self) {
        let _ = shutdown(&self.channel, Shutdown::Both);
        self.child().end(ENDING);
        self.lose(&mut self.lock());
    }

    /// Asks, and waits for the reply, which may have descriptors.
    ///
    /// # Errors
    /// As [`Self::begin`] and [`Self::wait`].
    pub fn ask(&self, bytes: &[u8], patience: Duration) -> io::Result<Reply> {
        let number = self.begin(bytes, &[])?;
        self.wait(number, patience)
    }

    /// Sends a request, whose reply [`Self::wait`] or [`Self::next`] gives.
    ///
    /// # Errors
    /// The request is too large ([`MOST_BYTES`](crate::MOST_BYTES), [`MOST_FILES`](crate::MOST_FILES)); the
    /// helper does not take requests (`TimedOut`); it is lost, also because many were not answered in time.
    pub fn begin(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<Number> {
        let number = {
            let mut state = self.lock();
            if state.is_lost {
                return Err(lost());
            }
            if state.abandoned() >= self.most_late {
                self.lose(&mut state);
                return Err(lost());
            }
            state.last += 1;
            let number = state.last;
            state.requests.insert(number, Asked::InFlight);
            number
        };
        let until = Instant::now() + SENDING;
        loop {
            match send(self.channel.as_fd(), number, bytes, files, SendFlags::DONTWAIT) {
                Ok(()) => return Ok(number),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let rest = until.saturating_duration_since(Instant::now());
                    if !wait_for(self.channel.as_fd(), PollFlags::OUT, rest) {
                        self.lock().requests.remove(&number);
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => {
                    let mut state = self.lock();
                    state.requests.remove(&number);
                    if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
                        self.lose(&mut state);
                        return Err(lost());
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Waits for the reply to a request.
    ///
    /// # Errors
    /// There is none in time (`TimedOut`): a later one is dropped. The helper is lost.
    pub fn wait(&self, number: Number, patience: Duration) -> io::Result<Reply> {
        let pick =
            |state: &State| matches!(state.requests.get(&number), Some(Asked::Answered(_))).then_some(number);
        match self.take(pick, patience)? {
            Some((_, reply)) => Ok(reply),
            None => {
                let mut state = self.lock();
                if let Some(asked) = state.requests.get_mut(&number) {
                    *asked = Asked::Abandoned;
                }
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// The next reply, to any request; `None` if there is none in time. Not for a thread besides others that
    /// wait for replies to their own requests.
    ///
    /// # Errors
    /// The helper is lost.
    pub fn next(&self, patience: Duration) -> io::Result<Option<(Number, Reply)>> {
        let is_answered =
            |(number, asked): (&Number, &Asked)| matches!(asked, Asked::Answered(_)).then_some(*number);
        self.take(|state| state.requests.iter().find_map(is_answered), patience)
    }

    /// Takes the reply that `pick` names, once it is there.
    fn take(
        &self,
        pick: impl Fn(&State) -> Option<Number>,
        patience: Duration,
    ) -> io::Result<Option<(Number, Reply)>> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if let Some(number) = pick(&state)
                && let Some(Asked::Answered(reply)) = state.requests.remove(&number)
            {
                return Ok(Some((number, reply)));
            }
            if state.is_lost {
                return Err(lost());
            }
            let rest = until.saturating_duration_since(Instant::now());
            if state.is_receiving {
                let waited = self.changed.wait_timeout(state, rest);
                let (guard, late) = waited.unwrap_or_else(PoisonError::into_inner);
                state = guard;
                let is_late = late.timed_out();
                if is_late && state.is_receiving {
                    return Ok(None);
                }
                continue;
            }
            state.is_receiving = true;
            drop(state);
            let has_come = is_readable(&self.channel, rest);
            let received =
                if has_come { receive(self.channel.as_fd(), RecvFlags::DONTWAIT) } else { Received::Nothing };
            state = self.lock();
            state.is_receiving = false;
            self.arrived(&mut state, received);
            self.changed.notify_all();
            if !has_come {
                return Ok(None);
            }
        }
    }

    fn arrived(&self, state: &mut State, received: Received) {
        match received {
            Received::Nothing => {}
            Received::Packet(Request { number, bytes, files }) => match state.requests.get_mut(&number) {
                Some(asked @ Asked::InFlight) => *asked = Asked::Answered(Reply { bytes, files }),
                Some(Asked::Abandoned) => {
                    state.requests.remove(&number);
                }
                // It was not asked that, or has answered before.
                Some(Asked::Answered(_)) | None => self.lose(state),
            },
            Received::End | Received::Wrong => self.lose(state),
        }
    }

    /// Ends a helper that is of no use any more.
    fn lose(&self, state: &mut State) {
        state.is_lost = true;
        state.requests.retain(|_, asked| matches!(asked, Asked::Answered(_)));
        self.changed.notify_all();
        self.child().end(Duration::ZERO);
    }

    fn wait_until_ready(&self) -> io::Result<()> {
        if !is_readable(&self.channel, STARTING) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match receive(self.channel.as_fd(), RecvFlags::DONTWAIT) {
            Received::Packet(Request { number: 0, bytes, .. }) => match bytes.as_slice().try_into() {
                Ok(error) => match i32::from_ne_bytes(error) {
                    0 => Ok(()),
                    error => Err(io::Error::from_raw_os_error(error)),
                },
                Err(_) => Err(lost()),
            },
            _ => Err(lost()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Readable when a reply has arrived, and when the helper is lost.
impl AsFd for Helper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.end();
    }
}

/// In the new process: gives up what it does not need, and reports to the recorder. `None` if that failed.
fn begin(
    name: &CStr,
    capabilities: Option<CapabilitySet>,
    channel: &OwnedFd,
    recorder: Pid,
) -> Option<Server> {
    let _ = rustix::thread::set_name(name);
    let report = |channel: BorrowedFd<'_>, error: i32| {
        send(channel, 0, &error.to_ne_bytes(), &[], SendFlags::empty()).is_ok()
    };
    let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let settled =
        settle(&[channel.as_fd()], recorder).and_then(|kept| kept.into_iter().next().ok_or_else(lost));
    let own = match settled {
        Ok(own) => own,
        Err(error) => {
            report(channel.as_fd(), number(error));
            return None;
        }
    };
    let error = capabilities.map_or(Ok(()), keep_only).map_or_else(number, |()| 0);
    (report(own.as_fd(), error) && error == 0).then(|| Server::new(own, recorder))
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the helper process has ended")
}
