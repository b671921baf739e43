//! The analysis that turns its input into a timeline of states, events and wakes per CPU, LWP and user
//! thread.
//!
//! A state is reported when it ends, and only then is it certain: an assumed state may turn out to be
//! unknown. So nothing is written before the end; changes wait in the [`Sorter`], whose memory is bounded.
//! All other memory grows with the number of containers and names.

mod containers;
mod inputs;
mod parts;
mod states;

use crate::change::{Change, LinkId};
use crate::encoder::Encoder;
use crate::model::{ContainerId, Model, NameId};
use crate::sort::{Sorted, Sorter};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::io::Result;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tracewing_analysis::profile::Chains;
use tracewing_analysis::{Calls, LockUses, Pairs, Party, Ran, ThreadKey};
use tracewing_timeline::Undecided;
use tracewing_units::{Cpu, LockAddress, Pid, Timestamp};

/// Follows a recording.
#[derive(Debug)]
pub(crate) struct Timeline {
    folder: PathBuf,
    encoder: Box<dyn Encoder>,
    sorter: Sorter,
    model: Model,
    /// Indexed by container.
    lines: Vec<Line>,
    /// Containers by the serial number of the LWP or user thread.
    lwps: Vec<Option<ContainerId>>,
    tasks: Vec<Option<ContainerId>>,
    cpus: BTreeMap<Cpu, CpuLine>,
    /// Indexed by the LWP's serial number.
    undecided: Vec<Option<Undecided>>,
    /// Names of events, by stream and event class.
    events: Vec<Vec<Option<NameId>>>,
    event_names: HashMap<String, NameId>,
    links: LinkId,
    fields: Vec<u8>,
    /// Which functions and locks have a begin and an end.
    pairs: Pairs,
    calls: Calls,
    /// Containers of functions, per thread.
    function_lines: HashMap<ThreadKey, ContainerId>,
    /// Names of functions, by their numbers.
    functions: Vec<Option<NameId>>,
    lock_uses: LockUses,
    /// Containers of locks, per thread or task.
    lock_lines: HashMap<(Option<Pid>, Party), Vec<ContainerId>>,
    /// Names of locks; the flag says whether the lock is held.
    locks: HashMap<(&'static str, LockAddress, bool), NameId>,
    chains: Chains,
    /// Names of code locations that samples hit, by their numbers.
    codes: Vec<Option<NameId>>,
    /// Why a temporary file could not be written; no result is possible after that.
    failure: Option<std::io::Error>,
    failed: Rc<Cell<bool>>,
}

#[derive(Debug)]
struct CpuLine {
    container: ContainerId,
    /// Since when the CPU has been idle, if known.
    idle_since: Option<Timestamp>,
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

impl Timeline {
    /// An empty timeline; temporary files lie in `folder`. Sets `failed` if one of them cannot be written.
    pub(crate) fn new(
        encoder: Box<dyn Encoder>,
        folder: &Path,
        pairs: Pairs,
        failed: Rc<Cell<bool>>,
    ) -> Self {
        Timeline {
            folder: folder.to_owned(),
            encoder,
            sorter: Sorter::new(folder),
            model: Model::default(),
            lines: Vec::new(),
            lwps: Vec::new(),
            tasks: Vec::new(),
            cpus: BTreeMap::new(),
            undecided: Vec::new(),
            events: Vec::new(),
            event_names: HashMap::new(),
            links: 0,
            fields: Vec::new(),
            pairs,
            calls: Calls::default(),
            function_lines: HashMap::new(),
            functions: Vec::new(),
            lock_uses: LockUses::default(),
            lock_lines: HashMap::new(),
            locks: HashMap::new(),
            chains: Chains::default(),
            codes: Vec::new(),
            failure: None,
            failed,
        }
    }

    /// The complete result; call it at the end of the input.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub(crate) fn finish(mut self, ran: &Ran) -> Result<(Box<dyn Encoder>, Model, Sorted)> {
        self.finish_functions();
        let mut uses = Vec::new();
        self.lock_uses.finish(ran.end_ns, &mut |lock| uses.push(lock));
        uses.iter().for_each(|lock| self.lock_use(lock));
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
        let mut model = self.model;
        model.names.learn(|name| ran.names.get(name).to_owned());
        for (container, line) in model.containers.iter_mut().zip(&self.lines) {
            (container.begin, container.end) = (line.begin, line.end);
        }
        model.finish(ran);
        Ok((self.encoder, model, self.sorter.finish()?))
    }

    #[inline]
    fn push(&mut self, change: Change<'_>, time: Timestamp) {
        if self.failure.is_none() {
            let pushed = change.push(time, &mut self.sorter);
            self.check(pushed);
        }
    }

    #[inline]
    fn check(&mut self, result: Result<()>) {
        if let Err(failure) = result {
            self.failed.set(true);
            self.failure.get_or_insert(failure);
        }
    }
}
