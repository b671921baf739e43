//! The lists of a recording that grow with its programs: the programs that have joined, and notes. They are
//! bounded. What finds no room is counted, and reported once. Once an archive is complete, which has them,
//! the oldest are forgotten: a recording that is rotated does not grow.

use std::collections::HashSet;

use tracewing_abi::message::snapshot::LeftOut;
use tracewing_consumer::description::ProcessDescription;
use tracewing_units::Pid;

use super::Join;
use crate::credentials::Peer;
use crate::limits::exists;
use crate::options::Listed;
use crate::program::Program;
use crate::regions::Damages;

/// What the lists have had, and do not have.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub most: Listed,
    /// Which process has caused which note, in their order; the last notes may be missing.
    causes: Vec<Option<Peer>>,
    /// Programs that were forgotten.
    pub forgotten: usize,
    pub left_out: LeftOut,
    /// Whether a note says that there is no room for others at present.
    is_said: bool,
}

impl Lists {
    /// Empty ones, with this room.
    pub(super) fn of(most: Listed) -> Self {
        Self { most, ..Self::default() }
    }
}

impl Join {
    /// Keeps a line for the user: why a process is not recorded.
    pub(crate) fn note_of(&mut self, peer: Peer, reason: &str) {
        let (pid, name) = Program::of(peer.pid).identity();
        let name = if name.is_empty() { name } else { format!(" ({name})") };
        self.line_of(peer, format!("process {pid}{name} is not recorded: {reason}"));
    }

    /// Keeps a line for the user that a process has caused, if it has not caused too many.
    pub(super) fn line_of(&mut self, peer: Peer, line: String) {
        if self.description.notes.contains(&line) {
            return;
        }
        if !self.limits.notes.take(peer, 1) {
            return self.leave_out_notes(1);
        }
        if self.admit_note() {
            self.lists.causes.resize(self.description.notes.len(), None);
            self.lists.causes.push(Some(peer));
        } else {
            self.limits.notes.give_back(peer, 1);
        }
        self.note(line);
    }

    /// Keeps a line for the user.
    pub(crate) fn note(&mut self, line: String) {
        if self.description.notes.contains(&line) {
            return;
        }
        if self.admit_note() {
            self.description.notes.push(line);
        } else {
            self.lists.left_out.notes += 1;
        }
    }

    /// Whether one note more can be kept. If not, the last one says so.
    fn admit_note(&mut self) -> bool {
        let most = self.lists.most.notes;
        if self.description.notes.len() < most {
            return true;
        }
        if !std::mem::replace(&mut self.lists.is_said, true) {
            self.description.notes.push(format!(
                "there are {most} notes: further ones are left out and counted; if the recording is rotated, until complete \
                 archives have these"
            ));
        }
        false
    }

    /// Counts notes that processes cause beyond what they may.
    fn leave_out_notes(&mut self, count: u64) {
        self.lists.left_out.notes += count;
        if count > 0 && self.admit_note() {
            self.note(
                "processes cause more notes than they may: further ones are left out and counted".to_owned(),
            );
        }
    }

    /// Keeps lines about buffers that were found damaged, as far as their processes may have some.
    pub(crate) fn note_damages(&mut self) {
        let Damages { lines, more } = self.regions.take_damages();
        lines.into_iter().for_each(|(peer, line)| self.line_of(peer, line));
        self.leave_out_notes(more);
    }

    /// At the end: what has had no room so far.
    pub(crate) fn note_left_out(&mut self) {
        let LeftOut { notes: left_out, programs } = self.lists.left_out;
        let notes = &mut self.description.notes;
        notes.extend(self.classes.refusals());
        if left_out > 0 {
            notes.push(format!("{left_out} more notes are left out"));
        }
        if programs > 0 {
            notes.push(format!("programs have joined {programs} times that are not listed"));
        }
    }

    /// Lists a program that has joined.
    pub(super) fn list(&mut self, peer: Peer, program: Program) {
        let has_room = self.description.processes.len() < self.lists.most.programs;
        if !has_room || !self.limits.programs.take(peer, 1) {
            self.lists.left_out.programs += 1;
            return self.note(
                "there are more programs than can be listed: further ones are recorded and counted, but not listed, and \
                 event rules for some processes do not know them once they have ended"
                    .to_owned(),
            );
        }
        let note = self.rules.note_on_numbers(&program);
        note.into_iter().for_each(|note| self.line_of(peer, note));
        let pid = program.pid;
        self.programs.insert(pid, program);
        let joined = ProcessDescription::of(pid, peer.uid, self.clock.now());
        self.description.processes.push(joined);
    }

    /// Programs that were listed.
    pub(crate) fn listed(&self) -> usize {
        self.description.processes.len() + self.lists.forgotten
    }

    /// Forgets the oldest of the first `programs` and `notes`, which complete archives have, and gives their
    /// quotas back. Of programs only those that have ended, without buffers that children still have, and
    /// that are not among `alive`: those that had joined when the present archive began, or have now. Gives
    /// how many went.
    pub(crate) fn forget(&mut self, [notes, programs]: [usize; 2], alive: &HashSet<Pid>) -> [usize; 2] {
        [self.forget_notes(notes), self.forget_programs(programs, alive)]
    }

    fn forget_notes(&mut self, complete: usize) -> usize {
        let notes = &mut self.description.notes;
        let count = complete.min(notes.len().saturating_sub(self.lists.most.notes / 2));
        notes.drain(..count);
        self.lists.is_said &= count == 0;
        let of_causes = count.min(self.lists.causes.len());
        for peer in self.lists.causes.drain(..of_causes).flatten() {
            self.limits.notes.give_back(peer, 1);
        }
        count
    }

    fn forget_programs(&mut self, complete: usize, alive: &HashSet<Pid>) -> usize {
        let all = std::mem::take(&mut self.description.processes);
        let first = complete.min(all.len().saturating_sub(self.lists.most.programs / 10));
        // Children are known by the program whose buffers they have, also once both have ended.
        let needed: HashSet<Pid> = alive.iter().copied().chain(self.regions.processes()).collect();
        // Process ids come back: it is the last one with its id that may live.
        let mut later: HashSet<Pid> = all[first..].iter().map(|process| process.pid).collect();
        let mut is_kept = vec![true; all.len()];
        for (at, process) in all[..first].iter().enumerate().rev() {
            let pid = process.pid;
            let is_last = later.insert(pid);
            is_kept[at] = is_last && (needed.contains(&pid) || exists(pid));
            if is_last && !is_kept[at] {
                self.programs.remove(&pid);
            }
        }
        let before = all.len();
        for (process, is_kept) in all.into_iter().zip(is_kept) {
            match is_kept {
                true => self.description.processes.push(process),
                false => self.limits.programs.give_back(Peer { pid: process.pid, uid: process.uid }, 1),
            }
        }
        let forgotten = before - self.description.processes.len();
        self.lists.forgotten += forgotten;
        forgotten
    }
}
