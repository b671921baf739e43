//! The analysis that turns its input into a timeline of states, events and wakes per CPU, LWP and user
//! thread.
//!
//! A state is reported when it ends ([`tracewing_timeline`]), so nothing is written before the end; changes
//! wait in the [`Sorter`](crate::sort::Sorter), whose memory is bounded. All other memory grows with the
//! number of containers and names.

mod inputs;
mod lines;
mod parts;
mod places;
mod states;

use crate::encoder::Encoder;
use crate::model::{ContainerId, Model, NameId};
use crate::sort::Sorted;
use lines::Lines;
use std::collections::{BTreeMap, HashMap};
use std::io::Result;
use std::path::Path;
use tracewing_analysis::profile::Chains;
use tracewing_analysis::{Calls, LockUses, Pairs, Party, Ran, ThreadKey};
use tracewing_timeline::States;
use tracewing_units::{Cpu, LockAddress, Pid, Timestamp};

#[derive(Debug)]
pub(crate) struct Timeline {
    encoder: Box<dyn Encoder>,
    states: States<Lines>,
    /// CPUs that are idle, and since when.
    idle_since: BTreeMap<Cpu, Timestamp>,
    /// Names of events, by stream and event class.
    events: Vec<Vec<Option<NameId>>>,
    event_names: HashMap<String, NameId>,
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
}

impl Timeline {
    /// An empty timeline; temporary files lie in `folder`.
    pub(crate) fn new(encoder: Box<dyn Encoder>, folder: &Path, pairs: Pairs) -> Self {
        Timeline {
            encoder,
            states: States::new(Lines::new(folder), folder),
            idle_since: BTreeMap::new(),
            events: Vec::new(),
            event_names: HashMap::new(),
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
        let (lines, names) = self.states.finish()?;
        let (mut model, sorted) = lines.finish()?;
        model.names.learn(&names, |name| ran.names.get(name));
        model.finish(ran);
        Ok((self.encoder, model, sorted))
    }
}
