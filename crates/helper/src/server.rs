//! The helper's side of the channel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{RecvFlags, SendFlags, Shutdown, shutdown};
use tracewing_units::Pid;

use crate::message::{Received, Reply, Request, borrowed, receive, send};

/// Takes requests of the recorder.
#[derive(Debug)]
pub struct Server {
    channel: Arc<OwnedFd>,
    recorder: Pid,
}

/// Sends replies, from any thread.
#[derive(Debug, Clone)]
pub struct Replier(Arc<OwnedFd>);

impl Server {
    pub(crate) fn new(channel: OwnedFd, recorder: Pid) -> Self {
        Self { channel: Arc::new(channel), recorder }
    }

    /// The recorder's process id.
    pub fn recorder(&self) -> Pid {
        self.recorder
    }

    /// Waits for the next request. `None` if the helper has to end: the recorder has ended, or does not need
    /// it any more, or has sent a packet of another layout.
    pub fn next(&self) -> Option<Request> {
        match receive(self.channel.as_fd(), RecvFlags::empty()) {
            Received::Packet(request) if request.number != 0 => Some(request),
            Received::Packet(_) | Received::Nothing | Received::End | Received::Wrong => None,
        }
    }

    /// Answers one request after the other, until the helper has to end. It also ends with the first request
    /// for which there is no answer: what the recorder would never send.
    pub fn answer_each(&self, mut answer: impl FnMut(Request) -> Option<Reply>) {
        let replier = self.replier();
        while let Some(request) = self.next() {
            let number = request.number;
            let Some(reply) = answer(request) else { break };
            if replier.reply(number, &reply).is_err() {
                break;
            }
        }
        let _ = shutdown(&self.channel, Shutdown::Both);
    }

    /// From now on, the end of the recorder does not kill the helper: it has something to do after that. It
    /// sees the end by [`Self::next`].
    pub fn outlive_recorder(&self) {
        let _ = rustix::process::set_parent_process_death_signal(None);
    }

    /// To answer requests from other threads.
    pub fn replier(&self) -> Replier {
        Replier(self.channel.clone())
    }
}

/// Readable when there is a request, and when the helper has to end.
impl AsFd for Server {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Replier {
    /// Answers the request with this number. Waits while earlier replies fill the channel.
    ///
    /// # Errors
    /// The reply is too large, or the recorder has ended.
    pub fn reply(&self, number: u64, Reply { bytes, files }: &Reply) -> io::Result<()> {
        send(self.0.as_fd(), number, bytes, &borrowed(files), SendFlags::empty())
    }
}
