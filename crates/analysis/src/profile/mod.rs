//! Where programs and the kernel were when samples were taken (`profile:sample`): the histogram of functions
//! by process of K42's paper (4.5, Figure 6), call trees, and what a flame graph is drawn from.
//!
//! | module | does |
//! |---|---|
//! | `event` | decodes events |
//! | `spaces` | the code locations of each process |
//! | `explained` | what events explain of samples |
//! | `samples` | the samples as stacks of code |
//! | `growth` | by how much counters have grown |
//! | `chains` | samples and counters one by one |
//! | `function` | functions: their labels, and which of them begin a chain |
//! | `named` | the same as stacks of functions: histogram, tree, folded stacks |
//!
//! Names of functions in files are not in the recording: the caller of [`Samples::name`] provides them.

mod chains;
mod event;
mod explained;
mod function;
mod growth;
mod named;
mod samples;
mod spaces;

use std::collections::HashMap;

use tracewing_trace::EventRef;
use tracewing_trace::super_trace::{Change, Fold, Lwp, Part, Seen};
use tracewing_units::{Tid, Timestamp};

pub use self::chains::{Chains, Looked, counted};
use self::event::Reader;
pub(crate) use self::explained::Explained;
pub use self::explained::{ExplanationRead, ExplanationReader};
pub use self::function::{Frames, Function, FunctionKind};
pub use self::growth::most_counted;
pub use self::named::{Group, Row, Shown, TreeLine};
pub use self::samples::{Image, Samples};
use self::samples::{Stack, Weight};
use crate::analysis::{Analysis, Input};
use crate::run::Ran;

/// The analysis of `tracewing profile`: counts samples by process, thread and call chain.
#[derive(Debug, Default)]
pub struct Profile {
    reader: Reader,
    explained: Explained,
    stacks: HashMap<Stack, Weight>,
    /// When samples were taken, if that is asked for.
    times: Option<HashMap<Stack, Vec<Timestamp>>>,
    names: HashMap<Tid, String>,
    sampling: Option<event::Sampling>,
    begun: bool,
}

impl Profile {
    /// An analysis that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, which also keeps when each sample was taken ([`Shown::times`]).
    pub fn with_times() -> Self {
        Profile { times: Some(HashMap::new()), ..Self::default() }
    }

    /// The samples counted, without names of functions.
    pub fn finish(self, ran: &Ran) -> Samples {
        let counters = growth::sum(self.explained.counters.into_values());
        let event::Sampling { trigger, hertz, copies_stacks } = self.sampling.unwrap_or_default();
        let (codes, mut programs) = self.explained.spaces.finish();
        if ran.recorded.lacks_programs {
            programs.clear();
        }
        Samples {
            stacks: self.stacks,
            times: self.times.unwrap_or_default(),
            codes,
            programs,
            names: self.names,
            counters,
            trigger,
            hertz,
            copies_stacks,
            lacks_mappings: ran.recorded.lacks_mappings,
            lost: ran.lost_samples,
            duration_ns: ran.duration_ns(),
        }
    }
}

impl Fold for Profile {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpEnds { lwp } = change {
            self.lwp_ends(lwp);
        }
    }
}

impl Profile {
    fn lwp_ends(&mut self, lwp: &Lwp) {
        if !lwp.name.is_empty() {
            self.names.insert(lwp.tid, lwp.name.clone());
        }
    }
}

impl Analysis for Profile {
    const CONTINUES: bool = true;

    fn can_take(&self, parts: &[Part]) -> bool {
        Explained::is_in(parts)
    }

    fn take(&mut self, parts: &[Part]) -> bool {
        let explained = Explained::of_parts(parts);
        explained.map(|explained| self.explained = explained).is_some()
    }

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Begins { .. } => self.begins(),
            Input::Explained(event) => self.explained(event),
            Input::Event(seen) => self.event(seen),
            _ => {}
        }
    }
}

impl Profile {
    fn begins(&mut self) {
        self.begun = true;
    }

    fn explained(&mut self, event: &EventRef<'_>) {
        if let Some(read) = ExplanationRead::of(&mut self.reader, event) {
            self.explained.learn(read, self.begun);
        }
    }

    fn event(&mut self, seen: &Seen<'_>) {
        let Some(sample) = self.reader.sample(seen.event) else { return };
        if self.sampling.is_none() {
            self.sampling = Some(event::sampling(seen.event));
        }
        let process = seen.place.process;
        if let Some(process) = process
            && let first = process.first_thread()
            && let Some(name) = seen.state.process_name(process)
            && self.names.get(&first).is_none_or(|known| known != name)
        {
            self.names.insert(first, name.to_owned());
        }
        let (codes, user_from) = self.explained.spaces.chain(process, &sample);
        let stack = Stack { process, tid: seen.place.tid, codes, user_from };
        if let (Some(times), Some(stamp)) = (&mut self.times, seen.event.stamp()) {
            times.entry(stack.clone()).or_default().push(stamp.time);
        }
        let weight = self.stacks.entry(stack).or_default();
        weight.samples += 1;
        weight.period = weight.period.saturating_add(sample.period);
    }
}
