//! What programs get when they join: buffers, ids for their classes, and a line in the recording's description.

use std::os::fd::OwnedFd;

use tracewing_abi::message::{Answer, Hello, Joining};
use tracewing_abi::region::VERSION;
use tracewing_abi::schema::ClassView;
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::folder::{Description, ProcessDescription};
use tracewing_rules::Decision;

use crate::client::{Decided, Host};
use crate::program::Program;
use crate::regions::Regions;
use crate::rules::RecordingRules;
use crate::socket::Peer;

/// Joined programs that are described one by one; bounds the description of a recording of a very large build.
const MOST_PROCESSES: usize = 100_000;
/// Notes that are kept; a program in a loop must not fill the memory with them.
const MOST_NOTES: usize = 100;

/// The recording as joining programs see it.
pub(crate) struct Join {
    pub clock: TraceClock,
    pub regions: Regions,
    pub classes: Classes,
    pub rules: RecordingRules,
    pub description: Description,
    /// Why the recording cannot go on.
    pub error: Option<tracewing_consumer::Error>,
    /// Processes whose death is to be waited for, by their number in `regions`; new ones since the last look.
    pub watches: Vec<(u64, OwnedFd)>,
}

impl Join {
    /// Keeps a line for the user.
    pub(crate) fn note(&mut self, line: String) {
        let notes = &mut self.description.notes;
        if notes.len() < MOST_NOTES && !notes.contains(&line) {
            notes.push(line);
        }
    }

    fn buffers(&mut self, peer: Peer, hello: &Hello) -> Result<(Option<OwnedFd>, Answer), String> {
        if hello.version != VERSION {
            return Err(format!(
                "it speaks version {} of the protocol and this recorder {VERSION}; build both with the same tracewing",
                hello.version
            ));
        }
        if matches!(hello.joining, Joining::Sharer | Joining::More) {
            return Ok((None, Answer::Known));
        }
        let joined = self.regions.join(peer, hello)?;
        let own =
            |file: std::os::fd::BorrowedFd<'_>| file.try_clone_to_owned().map_err(|error| error.to_string());
        let memory = own(joined.memory)?;
        let answer = Answer::Welcome { size: joined.size, shared: joined.shared };
        if let Some(watch) = joined.watch {
            let watch = (watch.number, own(watch.pidfd)?);
            self.watches.push(watch);
        }
        Ok((Some(memory), answer))
    }
}

impl Host for Join {
    fn join(&mut self, peer: Peer, hello: &Hello) -> Option<(Option<OwnedFd>, Answer)> {
        let pid = peer.pid.as_raw_nonzero().get();
        match self.buffers(peer, hello) {
            Ok(buffers) => Some(buffers),
            Err(reason) => {
                self.note(format!("process {pid} is not recorded: {reason}"));
                None
            }
        }
    }

    fn joined(&mut self, peer: Peer, hello: &Hello) {
        let processes = &mut self.description.processes;
        if hello.joining == Joining::Program && processes.len() < MOST_PROCESSES {
            let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
            processes.push(ProcessDescription::of(pid, peer.uid, self.clock.now()));
        }
    }

    fn missed(&mut self, program: &Program) {
        let (pid, name) = program.told();
        let name = if name.is_empty() { name } else { format!(" ({name})") };
        self.note(format!(
            "process {pid}{name} is not recorded, or only in part: it waited in vain for the recorder, which was stopped or \
             had to wait for its disk; or it was killed meanwhile"
        ));
    }

    fn describe(&mut self, descriptions: &[&[u8]]) -> Vec<u16> {
        let registered = self.classes.describe(descriptions.iter().copied());
        registered.refused.into_iter().for_each(|line| self.note(line));
        registered.ids
    }

    fn decide(&mut self, program: &Program, ids: &[u16]) -> Option<Vec<Decided>> {
        let process = program.process();
        let decide = |class: ClassView<'_>| match self.rules.decide(&class, &process) {
            Decision::Off => Decided::default(),
            Decision::On { filter } => Decided { on: true, filter: filter.unwrap_or_default() },
        };
        let decided: Vec<Decided> =
            ids.iter().map(|&id| self.classes.class(id).map(decide).unwrap_or_default()).collect();
        let on = ids.iter().zip(&decided).filter(|(_, decided)| decided.on).map(|(id, _)| *id);
        match self.classes.want(on) {
            Ok(()) => Some(decided),
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
        }
    }
}
