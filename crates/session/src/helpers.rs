//! What a recorder of root leaves to other processes, so that the one that reads the buffers of programs
//! needs few capabilities. They are started before it has threads and before it reads anything that a program
//! has written; each keeps what its requests need:
//!
//! | process | carries out | capabilities |
//! |---|---|---|
//! | `tracewing-proc` | looks into `/proc` of other users' programs ([`tracewing_proc::guarded`]) | `SYS_PTRACE`, `DAC_READ_SEARCH` |
//! | `tracewing-perf` | opens perf events, and the kernel's table of symbols ([`tracewing_profile::open`]) | `PERFMON`, `SYSLOG` |
//! | `tracewing-trace` | makes changes in tracefs ([`Changer`]), whose files are root's | none |
//! | `tracewing-runs` | runs the programs that the user has named ([`Runner`]) | all |
//!
//! The first three also have what they need to send descriptors ([`to_send`]).
//!
//! [`crate::attaches`] has those that attach to programs.
//!
//! Each accepts only requests of its own layout, and carries out only what a recorder needs: for example, the
//! one for tracefs changes only what belongs to this recording.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tracewing_helper::{CapabilitySet, Fields, Helper, Reply, Server};
use tracewing_kernel::{Changer, Tracefs};
use tracewing_proc::guarded::{self, Seen};

use crate::attaches::Attaches;
use crate::confine::to_send;
use crate::looks::{self, Looks};
use crate::options::{Action, Options};
use crate::priority::Priority;
use crate::runner::{Folders, Runner};

/// The process that takes looks.
const LOOKS: &CStr = c"tracewing-proc";
/// How long the kernel may take for a perf event, and for a change in tracefs.
const OPENING: Duration = Duration::from_secs(10);

/// The processes, with their names, and what is so once one has ended.
#[derive(Default)]
pub(crate) struct Helpers {
    running: Vec<(Arc<Helper>, &'static str, &'static str)>,
    looks: Option<Arc<Looks>>,
    pub(crate) runner: Runner,
    pub(crate) attaches: Attaches,
}

impl Helpers {
    /// Starts those that a recording with these options needs. From then on, this process leaves to them what
    /// they do.
    ///
    /// # Errors
    /// The system refuses a process, a thread or a descriptor. None is left running then.
    pub(crate) fn start(options: &Options) -> io::Result<Self> {
        let mut running = Vec::new();
        let runner = Runner::start(programs(options), folders(options))?;
        let loss = "archives and triggers run no programs";
        running.extend(runner.helper().map(|helper| (helper.clone(), "tracewing-runs", loss)));
        // The programs that it runs do not get these; a recorder that runs them itself must not have them.
        let mut limits = RaisedLimits::new();
        let mut start = |name: &'static CStr, capabilities, loss, serve: &dyn Fn(&Server)| {
            let helper = Helper::start(name, capabilities, |server| serve(&server))?;
            let helper = Arc::new(if name == LOOKS { looks::independent(helper) } else { helper });
            running.push((helper.clone(), name.to_str().unwrap_or_default(), loss));
            io::Result::Ok(helper)
        };
        let capabilities = CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH | to_send();
        let loss = "what only root sees of programs in /proc is unknown";
        let looks = start(LOOKS, capabilities, loss, &look)?;
        let looks = Arc::new(Looks::new(looks, rustix::process::getuid().as_raw()));
        let loss = "programs that start have no samples";
        let opens = options.profile.map(|_| start(c"tracewing-perf", samples() | to_send(), loss, &open));
        let loss = "what is recorded of the kernel cannot be changed";
        let tracefs = Tracefs::open().ok().filter(|_| records_kernel(options));
        let changes = tracefs.map(|tracefs| {
            let changer = Changer::of_this_process(tracefs.root());
            let change = |server: &Server| change(server, changer.clone());
            start(c"tracewing-trace", to_send(), loss, &change)
        });
        let (opens, changes) = (opens.transpose()?, changes.transpose()?);
        let by = looks.clone();
        guarded::look_by(move |request| decode(by.take(request)?));
        if let Some(opens) = opens {
            tracewing_profile::open_by(move |request| file(decode(opens.ask(request, OPENING)?)?));
        }
        if let Some(changes) = changes {
            tracewing_kernel::change_by(move |request| {
                let asked = changes.ask(request, OPENING);
                // It is stopped: the next changes would be waited for as long.
                if asked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                    changes.end();
                }
                Ok(decode(asked?)?.file)
            });
        }
        limits.stay();
        Ok(Self { running, looks: Some(looks), runner, attaches: Attaches::default() })
    }

    /// The same with others, which attach to programs.
    pub(crate) fn with_attaches(self, attaches: Attaches) -> Self {
        Self { attaches, ..self }
    }

    /// Those that have ended since the last look: the process, and what is so from now on.
    pub(crate) fn lost(&mut self) -> Vec<(&'static str, &'static str)> {
        let lost = self.running.extract_if(.., |(helper, ..)| helper.is_lost());
        lost.map(|(_, process, loss)| (process, loss)).collect()
    }

    /// Users of whose programs some things are unknown from now on, since the last look: their programs keep
    /// what looks into `/proc` waiting.
    pub(crate) fn refused(&self) -> Vec<u32> {
        self.looks.as_ref().map(|looks| looks.newly_refused()).unwrap_or_default()
    }

    /// Ends them, after the recording, and what programs have left that this process has run.
    pub(crate) fn end(&mut self) {
        self.runner.end_all();
        self.running.drain(..).for_each(|(helper, ..)| helper.end());
    }
}

/// Programs that the user has named.
fn programs(options: &Options) -> Vec<OsString> {
    let actions = options.triggers.iter().flat_map(|trigger| &trigger.actions);
    let run = actions.filter_map(|action| match action {
        Action::Run(program) => Some(program.clone()),
        _ => None,
    });
    let for_archives = options.rotate.command.as_ref().map(|command| command.program.clone());
    run.chain(for_archives).collect()
}

/// What these are given.
fn folders(options: &Options) -> Folders {
    let mut actions = options.triggers.iter().flat_map(|trigger| &trigger.actions);
    let for_triggers = actions.any(|action| matches!(action, Action::Run(_)));
    Folders::of(&options.output, options.rotate.command.is_some(), for_triggers)
}

fn records_kernel(options: &Options) -> bool {
    options.kernel_events.is_some() || !options.probes.is_empty()
}

/// What perf events need; before Linux 5.8, which has no `PERFMON`, that was `SYS_ADMIN`.
fn samples() -> CapabilitySet {
    let has_perfmon =
        rustix::thread::capabilities(None).is_ok_and(|sets| sets.permitted.contains(CapabilitySet::PERFMON));
    let opening = if has_perfmon { CapabilitySet::PERFMON } else { CapabilitySet::SYS_ADMIN };
    opening | CapabilitySet::SYSLOG
}

/// What capabilities would allow later: to lock the memory of sample buffers, and to run ahead of others.
const LIMITS: [libc::__rlimit_resource_t; 3] = [libc::RLIMIT_MEMLOCK, libc::RLIMIT_RTPRIO, libc::RLIMIT_NICE];

/// Limits of this process that are lifted; dropped, it has them again.
struct RaisedLimits(Vec<(libc::__rlimit_resource_t, libc::rlimit)>);

impl RaisedLimits {
    fn new() -> Self {
        let mut before = Vec::new();
        for limit in LIMITS {
            let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: a number, and values that live through the call. Where the kernel refuses, the recorder
            // has smaller buffers, or waits for its turn on a CPU.
            if unsafe { libc::prlimit(0, limit, &raw const none, &raw mut old) } == 0 {
                before.push((limit, old));
            }
        }
        Self(before)
    }

    fn stay(&mut self) {
        self.0.clear();
    }
}

impl Drop for RaisedLimits {
    fn drop(&mut self) {
        for (limit, before) in &self.0 {
            // SAFETY: as above.
            unsafe { libc::prlimit(0, *limit, before, std::ptr::null_mut()) };
        }
    }
}

fn look(server: &Server) {
    looks::serve(server, &|request| encode(guarded::look(&request.bytes)));
}

/// The recorder waits for these processes: they are as urgent as it is.
fn open(server: &Server) {
    let _raised = Priority::raise();
    let open = |request: &[u8]| tracewing_profile::open(request).map(Some);
    server.answer_each(|request| Some(encode(open(&request.bytes).map(of_file))));
}

fn change(server: &Server, mut changer: Changer) {
    let _raised = Priority::raise();
    // It cleans up then.
    server.outlive_recorder();
    server.answer_each(|request| Some(encode(changer.make(&request.bytes).map(of_file))));
    changer.clean_up();
}

fn of_file(file: Option<OwnedFd>) -> Seen {
    Seen { bytes: Vec::new(), file }
}

fn file(seen: Seen) -> io::Result<OwnedFd> {
    seen.file.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A reply: the number of the error or 0, and what was found.
fn encode(seen: io::Result<Seen>) -> Reply {
    match seen {
        Ok(Seen { bytes, file }) => {
            let reply = Reply::new([&0_i32.to_ne_bytes()[..], &bytes].concat());
            file.into_iter().fold(reply, Reply::with)
        }
        Err(error) => {
            let kind = if error.kind() == io::ErrorKind::InvalidInput { libc::EINVAL } else { libc::EIO };
            Reply::new(error.raw_os_error().unwrap_or(kind).to_ne_bytes())
        }
    }
}

fn decode(reply: Reply) -> io::Result<Seen> {
    let mut fields = Fields::of(&reply.bytes);
    match fields.i32() {
        Some(0) => {
            let bytes = reply.bytes[size_of::<i32>()..].to_vec();
            Ok(Seen { bytes, file: reply.files.into_iter().next() })
        }
        Some(error) => Err(io::Error::from_raw_os_error(error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_say_what_was_found_or_why_not() {
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        let whole = decode(encode(Ok(Seen { bytes: b"found".to_vec(), file: Some(null()) }))).unwrap();
        assert_eq!((&whole.bytes[..], whole.file.is_some()), (&b"found"[..], true));
        assert!(decode(encode(Ok(Seen::default()))).unwrap().file.is_none());
        for error in [libc::EACCES, libc::EMFILE] {
            let reply = encode(Err(io::Error::from_raw_os_error(error)));
            assert_eq!(decode(reply).unwrap_err().raw_os_error(), Some(error));
        }
        let wrong = decode(encode(Err(io::ErrorKind::InvalidInput.into()))).unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
        assert!(decode(Reply::new(*b"abc")).is_err());
    }
}
