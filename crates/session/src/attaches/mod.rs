//! How a recorder attaches to programs. Recorders of root have it done by processes of their own: so the
//! recorder needs none of the rights for it, and what a program contains is parsed with the rights of this
//! program's user.
//!
//! | process | has | does |
//! |---|---|---|
//! | `tracewing-ptrace` | `SYS_PTRACE`, `SYS_ADMIN`, `SYS_NICE`, `DAC_READ_SEARCH` | opens memory and files of the program, borrows its thread, takes the doors |
//! | `tracewing-starts` | `SETUID`, `SETGID`, `KILL` | starts a process for each reading, and ends it |
//! | `tracewing-reads` | the program's user, no capabilities | finds the copies of tracewing in what was opened |
//!
//! `message` has what the recorder and the first process send each other, `reading` what that one and the
//! last one send each other. No side trusts the other's bytes.
//!
//! Recorders of other users, and of a root with fewer rights, attach themselves.

mod message;
mod reading;
mod serve;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::{CapabilitySet, capabilities};
use tracewing_attach::Refusal;
use tracewing_helper::{Helper, Reply};
use tracewing_units::Pid;

use crate::attached::{By, Here, NotAttached, Outcome, Wanted, attach, dispose, is_connection};
use crate::credentials::peer;
use message::{Request, decode_outcome};
use serve::{MOST, PTRACE, READERS, serve};

/// How long an attempt may take, with all calls in the program.
const LONGEST: Duration = Duration::from_secs(60);
/// How long the helper may take to start its own one.
const STARTING: Duration = Duration::from_secs(5);

/// Attaches to programs, from any thread; by default in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attaches(Option<Arc<Helper>>);

impl Attaches {
    /// By helper processes, if this is a recorder of root with the rights that they need, and the system has
    /// room for them. To be called by the first thread, before there are others, and before anything is given
    /// up.
    pub(crate) fn start() -> Self {
        let is_root = rustix::process::getuid().is_root() && rustix::process::geteuid().is_root();
        let own = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
        let needed = CapabilitySet::SYS_PTRACE | READERS;
        if !is_root || !own.contains(needed) {
            return Self::default();
        }
        // What a container may have instead.
        let reads = CapabilitySet::DAC_READ_SEARCH;
        let reads = if own.contains(reads) { reads } else { CapabilitySet::DAC_OVERRIDE };
        let kept = PTRACE | reads;
        let begin = kept | READERS | CapabilitySet::SETPCAP;
        let helper = Helper::start(c"tracewing-ptrace", begin, |server| serve(&server, kept)).ok();
        let is_ready = |helper: &Helper| {
            helper.ask(&Request::Begin.encode(), STARTING).is_ok_and(|reply| reply.bytes == [1])
        };
        // Each attempt has a thread of its own, and a user's have a limit.
        let helper = helper.filter(is_ready).map(|helper| helper.with_most_late(MOST));
        Self(helper.map(Arc::new))
    }

    /// Whether this process does it itself.
    pub(crate) fn is_here(&self) -> bool {
        self.0.is_none()
    }

    /// Whether no attempt will succeed any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.as_ref().is_some_and(|helper| helper.is_lost())
    }

    /// Ends the helper processes, at the recording's end. Attempts in flight fail.
    pub(crate) fn end(&self) {
        self.0.iter().for_each(|helper| helper.end());
    }

    /// Attaches to a process, as [`attach`] does.
    pub(crate) fn attach(
        &self,
        pid: Pid,
        wanted: &Wanted,
        recording: [u8; 16],
        patience: Duration,
    ) -> Outcome {
        let Some(helper) = &self.0 else {
            let recorder = Pid::from_unsigned(std::process::id());
            return attach(pid, wanted, By { recorder, recording, reader: &Here }, patience);
        };
        let request = Request::Attach { pid, wanted: wanted.clone(), recording, patience };
        self.ask(helper, pid, &request, LONGEST)
    }

    /// The answer to a request, which may take so long.
    fn ask(&self, helper: &Helper, pid: Pid, request: &Request, longest: Duration) -> Outcome {
        match helper.ask(&request.encode(), longest) {
            Ok(reply) => self.outcome(pid, reply).unwrap_or_else(|| failed(NotAttached::NoHelper)),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => failed(Refusal::Late(pid).into()),
            Err(_) => failed(NotAttached::NoHelper),
        }
    }

    /// `None` for a reply that makes no sense. Its descriptors are doors to the process, or are closed.
    fn outcome(&self, pid: Pid, Reply { bytes, files }: Reply) -> Option<Outcome> {
        let is_door = |file: &_| {
            let file = AsFd::as_fd(file);
            is_connection(file) && peer(file).is_some_and(|peer| peer.pid == pid)
        };
        if !files.iter().all(is_door) {
            files.into_iter().for_each(dispose);
            return None;
        }
        decode_outcome(&bytes, files, pid)
    }
}

fn failed(why: NotAttached) -> Outcome {
    Outcome { result: Err(why), longest_stop: None, tried: Vec::new() }
}

#[cfg(test)]
mod tests;
