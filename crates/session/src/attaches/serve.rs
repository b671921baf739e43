//! The process `tracewing-ptrace`: takes requests for attempts, each of which has a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rustix::thread::CapabilitySet;
use tracewing_attach::Refusal;
use tracewing_helper::{AsUsers, Limits, Replier, Reply, Server, keep_only};
use tracewing_units::Pid;

use super::message::{Request, encode_outcome};
use super::reading::{Readers, read};
use crate::attached::{By, NotAttached, Outcome, Wanted, attach};

/// What attaching needs, besides the right to read programs that their users cannot read: to trace and look
/// into programs of all users; to see the filters for system calls of the thread that is borrowed; to run
/// before other programs while a thread is stopped.
pub(super) const PTRACE: CapabilitySet =
    CapabilitySet::SYS_PTRACE.union(CapabilitySet::SYS_ADMIN).union(CapabilitySet::SYS_NICE);
/// What the start of readers needs.
pub(super) const READERS: CapabilitySet =
    CapabilitySet::SETUID.union(CapabilitySet::SETGID).union(CapabilitySet::KILL);

/// What a reader may use: the largest programs that were seen, with thousands of objects, take a tenth of
/// both.
const LIMITS: Limits = Limits { time: Duration::from_secs(5), memory: 256 << 20 };
/// Maximum number of attempts in flight: more than a recorder begins.
pub(super) const MOST: usize = 256;
/// How long an attempt may look for a thread.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the recorder ends, or sends what it would never send. Begins with more rights, to start the
/// process that starts readers.
pub(super) fn serve(server: &Server, kept: CapabilitySet) {
    let names = [c"tracewing-starts", c"tracewing-reads"];
    let readers = AsUsers::start(names, LIMITS, read);
    if keep_only(kept).is_err() {
        return;
    }
    let Ok(readers) = readers else { return };
    let attempts = Arc::new(Attempts {
        readers: Readers(readers),
        recorder: server.recorder(),
        replier: server.replier(),
        in_flight: AtomicUsize::new(0),
    });
    while let Some(request) = server.next() {
        let number = request.number;
        match Request::decode(&request.bytes).filter(|_| request.files.is_empty()) {
            Some(Request::Begin) => {
                let _ = attempts.replier.reply(number, &Reply::new([1]));
            }
            Some(Request::Attach { pid, wanted, recording, patience }) => {
                let asked = Asked { pid, wanted, recording, patience: patience.min(MOST_PATIENCE) };
                attempts.begin(number, asked);
            }
            None => break,
        }
    }
    // Attempts in flight own it, too.
    attempts.readers.end();
}

struct Attempts {
    readers: Readers,
    recorder: Pid,
    replier: Replier,
    in_flight: AtomicUsize,
}

struct Asked {
    pid: Pid,
    wanted: Wanted,
    recording: [u8; 16],
    patience: Duration,
}

impl Attempts {
    fn begin(self: &Arc<Self>, number: u64, asked: Asked) {
        let pid = asked.pid;
        let one = self.clone();
        let body = move || {
            one.reply(number, one.attach(&asked));
            one.in_flight.fetch_sub(1, Relaxed);
        };
        let begun = if self.in_flight.fetch_add(1, Relaxed) < MOST {
            std::thread::Builder::new().name("attaching".to_owned()).spawn(body).map(drop)
        } else {
            Err(io::Error::from_raw_os_error(libc::EAGAIN))
        };
        if let Err(source) = begun {
            self.in_flight.fetch_sub(1, Relaxed);
            let result = Err(NotAttached::Refused(Refusal::System { pid, call: "clone", source }));
            self.reply(number, Outcome { result, longest_stop: None, tried: Vec::new() });
        }
    }

    fn attach(&self, Asked { pid, wanted, recording, patience }: &Asked) -> Outcome {
        let by = By { recorder: self.recorder, recording: *recording, reader: &self.readers };
        attach(*pid, wanted, by, *patience)
    }

    fn reply(&self, number: u64, outcome: Outcome) {
        let (bytes, files) = encode_outcome(outcome);
        // Otherwise the recorder has ended. The doors close here.
        let _ = self.replier.reply(number, &Reply { bytes, files });
    }
}
