//! Shows all events that a filter lets through, one by one: with their places only if the filter needs these,
//! since then all earlier events have to be read.

use std::ops::ControlFlow;
use tracewing_analysis::{Analysis, Input};
use tracewing_trace::super_trace::{Change, Fold};
use tracewing_trace::{EventRef, Filter, Merge, Message, Progress, Recording, Selection};
use tracewing_units::{Cpu, Tid, Timestamp};

/// Events between two looks at how far it is; a power of two.
const PERIOD: u64 = 1 << 14;

/// An event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Each<'e> {
    pub(crate) name: &'e str,
    pub(crate) time: Timestamp,
    pub(crate) cpu: Option<Cpu>,
    /// The thread, if it is known: only where places are found.
    pub(crate) tid: Option<Tid>,
}

/// Shows all events of a time, without their threads unless the filter chooses by these. `watch` learns how
/// far it is.
///
/// # Errors
/// Why not all events were shown; also if `watch` or `take` has stopped it.
pub(crate) fn each(
    recording: &Recording,
    filter: &Filter,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    take: &mut dyn FnMut(Each<'_>) -> ControlFlow<()>,
) -> Result<(), String> {
    match filter.chooses_tids() || !filter.threads.is_empty() || !filter.processes.is_empty() {
        true => placed(recording, filter, watch, take),
        false => plain(recording, filter, watch, &mut |event, time| {
            let cpu = event.cpu().and_then(|cpu| u32::try_from(cpu).ok().map(Cpu));
            take(Each { name: name(event), time, cpu, tid: None })
        }),
    }
}

/// A pattern that only this name matches.
pub(crate) fn literal(name: &str) -> String {
    let special = |sign: char| matches!(sign, '*' | '?' | '[' | ']' | '\\');
    name.chars().flat_map(|sign| special(sign).then_some('\\').into_iter().chain([sign])).collect()
}

/// Shows them with their threads.
pub(crate) fn placed(
    recording: &Recording,
    filter: &Filter,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    take: &mut dyn FnMut(Each<'_>) -> ControlFlow<()>,
) -> Result<(), String> {
    let mut placed = Placed { take, is_done: false };
    let ran =
        tracewing_analysis::run(recording, filter, &mut placed, watch).map_err(|error| error.to_string())?;
    match ran.failure {
        Some(failure) => Err(failure.to_string()),
        None if placed.is_done || ran.stopped => Err("it was stopped".to_owned()),
        None => Ok(()),
    }
}

/// Shows them as they are recorded, those with a time.
pub(crate) fn plain(
    recording: &Recording,
    filter: &Filter,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    take: &mut dyn FnMut(&EventRef<'_>, Timestamp) -> ControlFlow<()>,
) -> Result<(), String> {
    listed(recording, filter, watch, &mut |event| match event.stamp() {
        Some(stamp) => take(event, stamp.time),
        None => ControlFlow::Continue(()),
    })
}

/// Shows them as they are recorded and listed, also those without a time.
pub(crate) fn listed(
    recording: &Recording,
    filter: &Filter,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    take: &mut dyn FnMut(&EventRef<'_>) -> ControlFlow<()>,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let range = filter.range(recording).map_err(|error| text(&error))?;
    let mut selection = Selection::new(filter, recording).map_err(|error| text(&error))?;
    let mut merge = Merge::new(recording, range);
    let stopped = || Err("it was stopped".to_owned());
    let (total, mut count) = (recording.bytes(), 0_u64);
    loop {
        count += 1;
        if count % PERIOD == 0 && watch(Progress { done: merge.bytes(), total }).is_break() {
            return stopped();
        }
        let event = match merge.advance().map_err(|error| text(&error))? {
            None => return Ok(()),
            Some(Message::Event(event)) => event,
            Some(_) => continue,
        };
        if selection.selects(&event) && take(&event).is_break() {
            return stopped();
        }
    }
}

fn name<'e>(event: &EventRef<'e>) -> &'e str {
    event.decoded().class().name.as_deref().unwrap_or_default()
}

/// Takes events from the super-trace.
struct Placed<'t> {
    take: &'t mut dyn FnMut(Each<'_>) -> ControlFlow<()>,
    is_done: bool,
}

impl Fold for Placed<'_> {
    fn change(&mut self, _: Change<'_>) {}
}

impl Analysis for Placed<'_> {
    const CONTINUES: bool = true;
    fn is_done(&self) -> bool {
        self.is_done
    }

    fn input(&mut self, input: Input<'_>) {
        let Input::Event(seen) = input else { return };
        let Some(stamp) = seen.event.stamp().filter(|_| !self.is_done) else { return };
        let place = &seen.place;
        let each = Each { name: name(seen.event), time: stamp.time, cpu: place.cpu, tid: place.tid };
        self.is_done = (self.take)(each).is_break();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_trace::Glob;

    #[test]
    fn a_name_is_no_pattern() {
        for name in ["shop:served", "a*", "[x]", "b?c", "d\\", ""] {
            let glob = Glob::new(literal(name));
            assert!(glob.matches(name), "{name}");
            assert!(!glob.matches(&format!("{name}x")) && !glob.matches("ax"), "{name}");
        }
    }
}
