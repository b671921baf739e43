//! Samples and counters one by one, with the times at which they were taken: what is drawn of a profile.

use tracewing_trace::EventRef;
use tracewing_trace::super_trace::{Part, Seen};
use tracewing_units::Cpu;

use super::Explained;
use super::event::{self, ProfileEvent, Reader};
use super::function::{Frames, Function};
use super::samples::Image;
use super::spaces::Spaces;

/// What a look at a thread, or at counters, has found.
#[derive(Debug, PartialEq)]
pub enum Looked {
    /// The thread's call chain, as numbers of its code, the innermost first.
    Chain(Vec<u32>),
    /// What counters have counted since the recording's beginning.
    Counters {
        /// The name of each counter, and its value.
        values: Vec<(String, u64)>,
        /// The CPU that they are of; `None` for those of a command and all that it has started.
        cpu: Option<Cpu>,
    },
}

/// What an event `profile:counters` says: the counters and their values, and the CPU that they are of; `None`
/// for those of a command and all that it has started.
pub fn counted(event: &EventRef<'_>) -> (Vec<(String, u64)>, Option<Cpu>) {
    (event::counts(event), event::counts_for_cpu(event))
}

/// Finds the call chain of each sample, in the order of events.
#[derive(Debug, Default)]
pub struct Chains {
    reader: Reader,
    spaces: Spaces,
}

impl Chains {
    /// Learns the locations of code. Must be called with all events, whichever thread they belong to.
    pub fn explained(&mut self, event: &EventRef<'_>) {
        if let Some((process, said)) = self.reader.explanation(event) {
            self.spaces.learn(process, said);
        }
    }

    /// Whether what was known at a checkpoint is there.
    pub fn has_part(parts: &[Part]) -> bool {
        Explained::is_in(parts)
    }

    /// Takes what was known at a checkpoint; false if that is not there.
    pub fn take_part(&mut self, parts: &[Part]) -> bool {
        Explained::of_parts(parts).map(|explained| self.spaces = explained.spaces).is_some()
    }

    /// What an event has found.
    pub fn event(&mut self, seen: &Seen<'_>) -> Option<Looked> {
        if let Some(sample) = self.reader.sample(seen.event) {
            return Some(Looked::Chain(self.spaces.chain(seen.place.process, &sample).0));
        }
        match self.reader.explanation(seen.event)? {
            (_, ProfileEvent::Counters(values)) => {
                let cpu = event::counts_for_cpu(seen.event);
                Some(Looked::Counters { values, cpu })
            }
            _ => None,
        }
    }

    /// The functions with the code, by its numbers. `name` is asked for that of the one at an offset of a
    /// file.
    pub fn finish(self, name: &mut dyn FnMut(&Image, u64) -> Option<String>) -> Vec<Function> {
        let mut frames = |image: &Image, offset| Frames { name: name(image, offset), ..Frames::default() };
        self.spaces.finish().0.functions(&mut frames).into_iter().flatten().collect()
    }
}
