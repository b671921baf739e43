//! The containers of the timeline and what happens on each, in the order in which it is reported.

use crate::change::{Change, LinkId};
use crate::model::{Container, ContainerId, Kind as What, Model, NameId, Use};
use crate::sort::{Sorted, Sorter};
use std::io::{Error, Result};
use std::path::Path;
use tracewing_timeline::{End, Sink, StateId, StateNames, Track, WokenBy};
use tracewing_units::{Pid, Timestamp};

/// Takes the states of tracks, and all other changes; a track's number is that of its container.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) model: Model,
    sorter: Sorter,
    /// Indexed by container.
    lines: Vec<Line>,
    links: LinkId,
    /// Why a temporary file could not be written; no result is possible after that.
    failure: Option<Error>,
}

/// How far a container's timeline is complete.
#[derive(Debug)]
struct Line {
    /// The last state, which ends at `to`.
    state: Option<NameId>,
    to: Timestamp,
    begin: Timestamp,
    end: Timestamp,
    /// A wake that no state has followed yet.
    woken: Option<(Timestamp, ContainerId)>,
}

impl Sink for Lines {
    fn track(&mut self, track: Track) -> ContainerId {
        self.container(match track {
            Track::Cpu(number) => What::Cpu { number },
            Track::Lwp(tid) => What::Lwp { tid },
            Track::Task(number) => What::Task { number },
        })
    }

    #[inline]
    fn state(&mut self, of: ContainerId, state: StateId, names: &StateNames, from: Timestamp, to: Timestamp) {
        let name = self.model.names.state(state, names);
        self.did(of, name, names.class(state).is_running(), from, to);
    }

    /// A task that was woken runs, whatever its LWP does.
    #[inline]
    fn ran(&mut self, of: ContainerId, state: StateId, names: &StateNames, from: Timestamp, to: Timestamp) {
        let name = self.model.names.state(state, names);
        self.did(of, name, true, from, to);
    }

    /// The line of a CPU shows which LWP it runs.
    #[inline]
    fn cpu(
        &mut self,
        of: ContainerId,
        lwp: Option<ContainerId>,
        state: StateId,
        names: &StateNames,
        from: Timestamp,
        to: Timestamp,
    ) {
        let name = match lwp {
            Some(lwp) => self.model.containers[lwp as usize].label,
            None => self.model.names.state(state, names),
        };
        self.did(of, name, false, from, to);
    }

    /// See [`Lines::wake`].
    fn woken(&mut self, _: ContainerId, _: WokenBy, _: Timestamp) {}

    /// What has been reported stays: it is sorted already.
    fn doubt_mode(&mut self, _: ContainerId, _: Timestamp) {}

    fn ends(&mut self, of: ContainerId, end: End<'_>) {
        self.model.containers[of as usize].ends(end.process, end.name, end.is_followed);
    }

    fn dumped(&mut self, of: ContainerId, process: Pid, name: &[u8]) {
        let container = &mut self.model.containers[of as usize];
        container.process.get_or_insert(process);
        if container.own_name.is_empty() {
            container.own_name = String::from_utf8_lossy(name).into_owned();
        }
    }
}

impl Lines {
    /// No containers; temporary files lie in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Lines {
            model: Model::default(),
            sorter: Sorter::new(folder),
            lines: Vec::new(),
            links: 0,
            failure: None,
        }
    }

    /// Everything in the order of time; call it at the end of the input.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub(super) fn finish(mut self) -> Result<(Model, Sorted)> {
        for id in 0..self.lines.len() as ContainerId {
            let line = &self.lines[id as usize];
            if line.state.is_some() {
                let to = line.to;
                self.push(Change::NoState { of: id }, to);
            }
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        for (container, line) in self.model.containers.iter_mut().zip(&self.lines) {
            (container.begin, container.end) = (line.begin, line.end);
        }
        Ok((self.model, self.sorter.finish()?))
    }

    /// Whether a temporary file could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(super) fn container(&mut self, kind: What) -> ContainerId {
        let label = self.model.names.add(String::new(), Use::Container);
        self.model.containers.push(Container::new(kind, label));
        self.lines.push(Line {
            state: None,
            to: Timestamp::MIN,
            begin: Timestamp::MAX,
            end: Timestamp::MIN,
            woken: None,
        });
        (self.lines.len() - 1) as ContainerId
    }

    /// The end of the container's last state.
    pub(super) fn last(&self, of: ContainerId) -> Timestamp {
        self.lines[of as usize].to
    }

    pub(super) fn is_task(&self, container: ContainerId) -> bool {
        matches!(self.model.containers[container as usize].kind, What::Task { .. })
    }

    /// A container was in one state for an interval; `runs` if a wake can lead to this state.
    pub(super) fn did(&mut self, of: ContainerId, name: NameId, runs: bool, from: Timestamp, to: Timestamp) {
        let line = &mut self.lines[of as usize];
        let from = from.max(line.to);
        if from >= to {
            return;
        }
        let before = line.state.replace(name);
        let until = std::mem::replace(&mut line.to, to);
        (line.begin, line.end) = (line.begin.min(from), line.end.max(to));
        if before == Some(name) && until == from {
            return;
        }
        let woken = line.woken.take_if(|(at, by)| runs && *at <= from && *by != of);
        if before.is_some() && until < from {
            self.push(Change::NoState { of }, until);
        }
        let woken = woken.map(|(at, by)| {
            self.links += 1;
            self.touch(by, at);
            self.push(Change::Wake { of: by, woken: of, link: self.links }, at);
            (self.links, by)
        });
        self.push(Change::State { of, name, woken }, from);
    }

    /// Records which waker made `woken` ready; there is at most one per state.
    pub(super) fn wake(&mut self, woken: ContainerId, by: ContainerId, at: Timestamp) {
        self.lines[woken as usize].woken.get_or_insert((at, by));
    }

    /// Extends the container's lifetime to include `time`.
    pub(super) fn touch(&mut self, of: ContainerId, time: Timestamp) {
        let line = &mut self.lines[of as usize];
        (line.begin, line.end) = (line.begin.min(time), line.end.max(time));
    }

    #[inline]
    pub(super) fn push(&mut self, change: Change<'_>, time: Timestamp) {
        if self.failure.is_none()
            && let Err(failure) = change.push(time, &mut self.sorter)
        {
            self.failure = Some(failure);
        }
    }
}
