//! What events explain of samples: which code is where, and what counters have counted.

use super::event::{ProfileEvent, Reader};
use super::growth::{self, Growth};
use super::spaces::{self, Spaces};
use crate::stored::{PartKind, stored};
use std::collections::HashMap;
use tracewing_trace::EventRef;
use tracewing_trace::super_trace::Part;
use tracewing_units::{Pid, Timestamp};

/// What was explained so far.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    /// By stream.
    pub(super) counters: HashMap<usize, Growth>,
    pub(super) spaces: Spaces,
}

stored! { OF_EXPLAINED: Explained { counters spaces } }

/// What an event explains.
#[derive(Debug)]
pub struct ExplanationRead {
    process: Pid,
    said: ProfileEvent,
    stream: usize,
    at: Option<Timestamp>,
}

/// Reads events that explain samples, and remembers their classes.
#[derive(Debug, Default)]
pub struct ExplanationReader(Reader);

impl ExplanationReader {
    /// Decodes an event; `None` if it explains no samples.
    pub fn read(&mut self, event: &EventRef<'_>) -> Option<ExplanationRead> {
        ExplanationRead::of(&mut self.0, event)
    }

    /// Whether events of this class do.
    pub fn knows(&mut self, event: &EventRef<'_>) -> bool {
        self.0.explains(event)
    }
}

impl ExplanationRead {
    pub(super) fn of(reader: &mut Reader, event: &EventRef<'_>) -> Option<Self> {
        let (process, said) = reader.explanation(event)?;
        let at = event.stamp().map(|stamp| stamp.time);
        Some(Self { process, said, stream: event.stream_index(), at })
    }
}

impl Explained {
    /// Changes with what is stored of it.
    pub(crate) const SHAPE: u64 = OF_EXPLAINED ^ growth::SHAPE ^ spaces::SHAPE;

    /// Takes an explanation; `is_counted`: what is analysed has begun.
    pub(crate) fn learn(&mut self, read: ExplanationRead, is_counted: bool) {
        let ExplanationRead { process, said, stream, at } = read;
        if let Some(values) = self.spaces.learn(process, said) {
            self.counters.entry(stream).or_default().note(values, at, is_counted);
        }
    }

    /// How many mappings and names are known.
    pub(crate) fn count(&self) -> usize {
        self.spaces.count()
    }

    /// Whether what was known at a checkpoint is there.
    pub(super) fn is_in(parts: &[Part]) -> bool {
        PartKind::Profile.is_in(Self::SHAPE, parts)
    }

    /// What was known at a checkpoint; `None` if that is not there.
    pub(super) fn of_parts(parts: &[Part]) -> Option<Self> {
        PartKind::Profile.take(Self::SHAPE, parts)
    }
}
