//! What programs get when they join: buffers, ids for their classes, and a line in the recording's
//! description. Which of their classes are enabled is decided in `decide`; what the description lists is
//! bounded in `lists`.

mod decide;
mod lists;

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::getuid;
use tracewing_abi::message::{Answer, Hello, Joining};
use tracewing_abi::region::VERSION;
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::description::Description;
use tracewing_units::{Pid, Timestamp};

use crate::client::{Decided, Host, time_of_day};
use crate::credentials::Peer;
use crate::limits::Limits;
use crate::not_joined::NotJoined;
use crate::options::Listed;
use crate::program::Program;
use crate::regions::{Joined, Regions};
use crate::rules::RecordingRules;

use lists::Lists;

/// Bytes of a class's description that count as one class more.
const CLASS_BYTES: usize = 1024;

/// The recording as joining programs see it.
pub(crate) struct Join {
    pub clock: TraceClock,
    pub regions: Regions,
    pub classes: Classes,
    pub rules: RecordingRules,
    pub description: Description,
    /// By process id, the program that has joined last.
    pub programs: HashMap<Pid, Program>,
    /// Why the recording cannot continue.
    pub error: Option<tracewing_consumer::Error>,
    pub limits: Limits,
    /// Processes that have written events of classes without ids.
    pub makers: BTreeSet<Pid>,
    /// Processes that have given the buffers which they had for a child.
    pub parents: BTreeSet<Pid>,
    /// Whether a program is not recorded because the disk has no room for the file of its buffers.
    pub lacked_disk_space: bool,
    /// What is so with the lists of programs and notes.
    pub lists: Lists,
}

impl Join {
    /// Nothing has joined yet.
    pub(crate) fn new(
        clock: TraceClock,
        regions: Regions,
        classes: Classes,
        rules: RecordingRules,
        description: Description,
        listed: Listed,
    ) -> Self {
        let limits = Limits::new(getuid().as_raw());
        let (programs, makers, parents) = (HashMap::new(), BTreeSet::new(), BTreeSet::new());
        let (error, lacked_disk_space, lists) = (None, false, Lists::of(listed));
        Self {
            clock,
            regions,
            classes,
            rules,
            description,
            programs,
            error,
            limits,
            makers,
            parents,
            lacked_disk_space,
            lists,
        }
    }

    /// Whether a process is described as having joined.
    pub(crate) fn has_joined(&self, pid: Pid) -> bool {
        self.programs.contains_key(&pid)
    }

    fn buffers(&mut self, peer: Peer, hello: &Hello) -> Result<(Vec<OwnedFd>, Answer), NotJoined> {
        if hello.version != VERSION {
            return Err(NotJoined::Version { theirs: hello.version });
        }
        if matches!(hello.joining, Joining::Sharer | Joining::More) {
            return Ok((Vec::new(), Answer::Known));
        }
        if hello.joining == Joining::Heir {
            self.regions.take_over(peer, hello.waits[0]);
            return Ok((Vec::new(), Answer::Known));
        }
        let Joined { files, size, shared, spare } = self.regions.join(peer, hello)?;
        Ok((files, Answer::Welcome { size, shared, spare }))
    }
}

impl Host for Join {
    fn join(&mut self, peer: Peer, hello: &Hello) -> Option<(Vec<OwnedFd>, Answer)> {
        let buffers = self.buffers(peer, hello);
        if hello.joining == Joining::Parent {
            return buffers.ok(); // its child asks, where there is none for it
        }
        if buffers.is_ok()
            && hello.joining == Joining::Program
            && let Some(contexts) = self.regions.contexts()
        {
            contexts.see(peer.pid); // while it waits for the answer
        }
        buffers
            .map_err(|reason| {
                self.lacked_disk_space |= matches!(&reason, NotJoined::Region(error) if error.is_disk_full());
                self.note_of(peer, &reason.to_string());
            })
            .ok()
    }

    /// A program may have several agents, of libraries that each bring one: it is one program. Once it has
    /// executed another file, or another process has its number, it is another one.
    fn joined(&mut self, peer: Peer, hello: &Hello) {
        if hello.joining != Joining::Program {
            return;
        }
        let program = Program::of(peer.pid);
        if self.programs.get(&program.pid).is_none_or(|last| *last != program) {
            self.list(peer, program);
        }
    }

    fn missed(&mut self, peer: Peer, program: &Program, from: Timestamp, to: Option<Timestamp>) {
        // What was read of it while it joined may be another process's.
        self.regions.contexts().into_iter().for_each(|contexts| contexts.forget(program.pid));
        let (pid, name) = program.identity();
        let name = if name.is_empty() { name } else { format!(" ({name})") };
        let begin = self.description.clock.begin.realtime;
        let to = to.unwrap_or_else(time_of_day);
        // What makes no sense says nothing.
        let from = if from <= to { from } else { Timestamp::ORIGIN };
        let [from, to] = [from, to].map(|time| Duration::from_nanos((time - begin).as_ns()).as_secs_f64());
        self.line_of(peer, format!(
            "process {pid}{name}: unknown from {from:.3} s to {to:.3} s: it no longer waits for the recorder, which was \
             stopped, or waited for its disk"
        ));
    }

    fn taken(&mut self, peer: Peer) {
        self.parents.insert(peer.pid);
    }

    fn describe(&mut self, peer: Peer, descriptions: &[&[u8]]) -> Vec<u16> {
        let quota = &mut self.limits.classes;
        let may = |bytes: usize| quota.take(peer, 1 + bytes / CLASS_BYTES);
        let registered = self.classes.describe(descriptions.iter().copied(), may);
        registered.refused.into_iter().for_each(|line| self.line_of(peer, line));
        registered.ids
    }

    fn decide(&mut self, program: &Program, ids: &[u16]) -> Option<Vec<Decided>> {
        self.decide_for(&program.process(), ids)
    }
}
