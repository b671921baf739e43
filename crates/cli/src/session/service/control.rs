//! Answers those that may ask a service: a thread, which waits for no client and for no recorder. It reads
//! packets of one size, says in the log which user asks for what, and has processes carry it out.

use super::account::account_of;
use super::limits::{Limits, Pace};
use super::message::{Reply, Request};
use super::socket::Socket;
use super::work::Work;
use crate::output::print_warning;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tracewing_session::user_of;

/// Time that a client has to send its request.
const SILENCE: Duration = Duration::from_secs(2);
/// Time that what was asked for has when the service ends.
const LAST: Duration = Duration::from_secs(60);
/// Longest time between two looks while anything is connected, or too much is.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The thread, until this is dropped. It then answers what was asked.
pub struct Control {
    /// Closed when it is to end.
    end: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    activity: Arc<Activity>,
}

/// What clients do, for the question of whether any does anything. No other data is published with it.
#[derive(Default)]
struct Activity {
    connected: AtomicUsize,
    accepted: AtomicUsize,
}

impl Control {
    /// Answers at a socket, about the sessions of a folder.
    pub fn start(socket: Socket, folder: PathBuf) -> Result<Self> {
        let (ends, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let activity = Arc::new(Activity::default());
        let server = Server {
            socket,
            folder,
            ends,
            activity: Arc::clone(&activity),
            clients: Vec::new(),
            limits: Limits::default(),
            pace: Pace::new(Instant::now()),
        };
        let thread = thread::Builder::new().name("control".to_owned()).spawn(|| server.run());
        Ok(Self { end: Some(end), thread: Some(thread.context("cannot start a thread")?), activity })
    }

    /// Connections at present, and all that there have been.
    pub fn connections(&self) -> (usize, usize) {
        (self.activity.connected.load(Ordering::Relaxed), self.activity.accepted.load(Ordering::Relaxed))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection.
struct Client {
    socket: OwnedFd,
    user: u32,
    /// The user by whose limits it is treated.
    account: u32,
    since: Instant,
    /// What it has asked for.
    work: Option<Work>,
}

struct Server {
    socket: Socket,
    folder: PathBuf,
    /// Readable when the other end is closed.
    ends: OwnedFd,
    activity: Arc<Activity>,
    clients: Vec<Client>,
    limits: Limits,
    pace: Pace,
}

impl Server {
    fn run(mut self) {
        let mut ended = None;
        loop {
            let (is_ending, is_ready, ready) = self.wait(ended.is_some());
            if is_ending && ended.is_none() {
                ended = Some(Instant::now());
            }
            self.serve(&ready);
            if is_ready && ended.is_none() {
                self.accept();
            }
            self.activity.connected.store(self.clients.len(), Ordering::Relaxed);
            if ended.is_some_and(|at: Instant| self.clients.is_empty() || at.elapsed() >= LAST) {
                return;
            }
        }
    }

    /// Waits until something happens: whether it is to end, whether connections wait, and which clients are
    /// ready.
    fn wait(&mut self, is_ending: bool) -> (bool, bool, Vec<bool>) {
        let accepts = !is_ending && self.pace.allows(Instant::now());
        let mut files: Vec<PollFd<'_>> =
            self.clients.iter().map(|one| PollFd::from_borrowed_fd(one.awaited(), PollFlags::IN)).collect();
        let clients = files.len();
        let read = |is_awaited| if is_awaited { PollFlags::IN } else { PollFlags::empty() };
        files.push(PollFd::new(&self.socket, read(accepts)));
        if !is_ending {
            files.push(PollFd::new(&self.ends, PollFlags::IN));
        }
        let is_quiet = clients == 0 && accepts;
        // Interrupted or not: what is not ready now is looked at again.
        let _ = poll(&mut files, (!is_quiet).then_some(&LOOK));
        let mut ready = files.iter().map(|file| !file.revents().is_empty());
        let of_clients = ready.by_ref().take(clients).collect();
        let is_ready = ready.next().unwrap_or(false);
        (ready.next().unwrap_or(false), is_ready, of_clients)
    }

    /// Takes the requests of clients that have sent theirs, and answers those whose request was carried out.
    fn serve(&mut self, ready: &[bool]) {
        let mut kept = Vec::new();
        for (index, mut client) in std::mem::take(&mut self.clients).into_iter().enumerate() {
            let is_ready = ready.get(index) == Some(&true);
            let is_kept = match (client.work.take(), is_ready) {
                (Some(work), true) => {
                    self.limits.end(client.account);
                    client.answer(&work.reply());
                    false
                }
                (None, true) => self.begin(&mut client),
                (None, false) if client.since.elapsed() >= SILENCE => false,
                (work, false) => {
                    client.work = work;
                    true
                }
            };
            if is_kept {
                kept.push(client);
            } else {
                self.limits.disconnect(client.account);
            }
        }
        self.clients = kept;
    }

    /// Reads a request, and begins to carry it out. Whether the connection is still needed.
    fn begin(&mut self, client: &mut Client) -> bool {
        // One byte more, so that longer ones are noticed.
        let mut bytes = [0; Request::SIZE + 1];
        let read = match recv(&client.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, len)) => len,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        };
        let Some(request) = bytes.get(..read).and_then(Request::decode) else { return false };
        if let Err(why) = self.limits.begin(client.account, Instant::now()) {
            client.answer(&Reply::refusal(why));
            return false;
        }
        let of = request.session.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        print_warning(&format!("user {} asks for {}{of}", client.user, request.what.word()));
        match Work::start(&self.folder, &request) {
            Ok(work) => {
                client.work = Some(work);
                true
            }
            Err(error) => {
                print_warning(&format!("cannot carry out a request: {error:#}"));
                self.limits.end(client.account);
                client.answer(&Reply::refusal("the service cannot start a process for this"));
                false
            }
        }
    }

    /// Accepts what waits, as far as that is allowed. What is too much is closed.
    fn accept(&mut self) {
        while self.pace.allows(Instant::now()) {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(socket) = accept_with(&self.socket, flags) else { return };
            self.pace.accept();
            self.activity.accepted.fetch_add(1, Ordering::Relaxed);
            let now = Instant::now();
            let Some(user) = user_of(socket.as_fd()) else { continue };
            let account = account_of(user);
            let client = Client { socket, user, account, since: now, work: None };
            if self.limits.connect(account, now) {
                self.clients.push(client);
            } else {
                client.answer(&Reply::refusal("there are too many connections: try again in a second"));
            }
        }
    }
}

impl Client {
    /// What is waited for: its request, or that this was carried out.
    fn awaited(&self) -> BorrowedFd<'_> {
        self.work.as_ref().map_or(self.socket.as_fd(), AsFd::as_fd)
    }

    /// Sends a reply, unless its buffer is full, which it has filled itself then.
    fn answer(&self, reply: &Reply) {
        let _ = send(&self.socket, &reply.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}
