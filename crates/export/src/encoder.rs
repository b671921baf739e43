//! What a format has to write, and in which order it is told: everything by time, each container from its
//! begin to its end.

use crate::change::{self, Change, LinkId};
use crate::model::{Container, ContainerId, Counter, CounterId, Kind, Model, NameId, state};
use crate::sort::Sorted;
use std::collections::HashSet;
use std::io::{Result, Write};
use std::ops::ControlFlow;
use tracewing_trace::{EventRef, Progress};
use tracewing_units::Timestamp;

/// Bytes that are written at once.
const CHUNK: usize = 256 << 10;

/// A format. All methods append to `out`; times are in ns on the recording's clock and never go back.
pub(crate) trait Encoder: std::fmt::Debug {
    /// The fields of an event's payload, as [`Encoder::event`] is to have them. It is asked before all
    /// others, in any order.
    fn fields(&mut self, event: &EventRef<'_>, out: &mut Vec<u8>);

    /// What comes before everything else.
    fn begin(&mut self, out: &mut Vec<u8>, model: &Model);

    /// A container begins; what it lies in has begun.
    fn container(&mut self, _out: &mut Vec<u8>, _model: &Model, _id: ContainerId, _at: Timestamp) {}

    /// It ends, after all that it has.
    fn container_ends(&mut self, _out: &mut Vec<u8>, _model: &Model, _id: ContainerId, _at: Timestamp) {}

    /// A container does something else from now on, or nobody knows what. It may have been woken for that.
    fn state(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: Option<NameId>,
        woken: Option<(LinkId, ContainerId)>,
        at: Timestamp,
    );

    /// A function begins in a container of functions, or the innermost one ends.
    fn function(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: Option<NameId>,
        at: Timestamp,
    );

    /// A container wakes another one.
    fn wake(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        woken: ContainerId,
        link: LinkId,
        at: Timestamp,
    );

    /// An event in a container.
    fn event(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: NameId,
        fields: &[u8],
        at: Timestamp,
    );

    /// A container was looked at while it was in the first of these functions, which the others have called.
    fn sample(&mut self, out: &mut Vec<u8>, model: &Model, of: ContainerId, chain: &[NameId], at: Timestamp);

    /// A counter has this value from now on.
    fn counter(&mut self, out: &mut Vec<u8>, model: &Model, counter: CounterId, value: u64, at: Timestamp);

    /// What comes behind everything else.
    fn end(&mut self, out: &mut Vec<u8>, model: &Model);
}

/// Writes everything; gives the size in bytes. If `watch` breaks, what comes later is left out.
///
/// # Errors
/// `out` cannot be written, or a temporary file read.
pub(crate) fn write(
    encoder: &mut dyn Encoder,
    model: &Model,
    mut sorted: Sorted,
    out: &mut dyn Write,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<u64> {
    let mut buffer = Vec::with_capacity(CHUNK + CHUNK / 4);
    let mut written = 0;
    let mut shape = Shape::new(model);
    let mut waiting = Waiting::new(model);
    encoder.begin(&mut buffer, model);
    while let Some(item) = sorted.next()? {
        let time = item.time;
        let Some(change) = Change::of(item) else { continue };
        waiting.settle(Some(time), &mut buffer, model, encoder);
        shape.advance(time, &mut buffer, model, encoder);
        match change {
            Change::State { of, name, .. } => waiting.change(of, Some(name), time),
            Change::NoState { of } => waiting.change(of, None, time),
            _ => {}
        }
        shape.change(change, time, &mut buffer, model, encoder);
        if buffer.len() >= CHUNK {
            out.write_all(&buffer)?;
            written += buffer.len() as u64;
            buffer.clear();
            if watch(Progress { done: written, total: 0 }).is_break() {
                shape.cut(time, model);
                break;
            }
        }
    }
    waiting.settle(None, &mut buffer, model, encoder);
    shape.advance(Timestamp::MAX, &mut buffer, model, encoder);
    encoder.end(&mut buffer, model);
    out.write_all(&buffer)?;
    out.flush()?;
    Ok(written + buffer.len() as u64)
}

/// Which containers there are at a time.
struct Shape {
    /// Those that are to begin, the next one last; those that are to end.
    begins: Vec<ContainerId>,
    ends: Vec<ContainerId>,
    /// What would be later is left out.
    end: Timestamp,
    /// Wakes whose waker is not shown; each leaves again with what it leads to.
    broken: HashSet<LinkId>,
}

impl Shape {
    fn new(model: &Model) -> Self {
        let container = |id: &ContainerId| &model.containers[*id as usize];
        let inner = |id: &ContainerId| !matches!(container(id).kind, Kind::Process { .. });
        let mut begins: Vec<_> = model.shown().map(|(id, _)| id).collect();
        let mut ends = begins.clone();
        begins.sort_by_key(|id| std::cmp::Reverse((container(id).begin, inner(id), *id)));
        ends.sort_by_key(|id| std::cmp::Reverse((container(id).end, !inner(id), *id)));
        Shape { begins, ends, end: Timestamp::MAX, broken: HashSet::new() }
    }

    /// Nothing begins after `time`, and everything has ended then.
    fn cut(&mut self, time: Timestamp, model: &Model) {
        self.begins.clear();
        self.ends.retain(|id| model.containers[*id as usize].begin <= time);
        self.end = time;
    }

    /// Begins and ends what is due before something happens at `time`.
    fn advance(&mut self, time: Timestamp, out: &mut Vec<u8>, model: &Model, encoder: &mut dyn Encoder) {
        let container = |id: ContainerId| &model.containers[id as usize];
        let next = |of: &mut Vec<ContainerId>, is_due: &dyn Fn(ContainerId) -> bool| {
            if of.last().is_some_and(|id| is_due(*id)) { of.pop() } else { None }
        };
        loop {
            // Both by time; nothing has an end before it has begun.
            let begin = self.begins.last().map(|id| container(*id).begin);
            let due = |id: ContainerId| {
                let end = container(id).end;
                end < time && begin.is_none_or(|begin| end < begin)
            };
            if let Some(id) = next(&mut self.ends, &due) {
                encoder.container_ends(out, model, id, container(id).end.min(self.end));
            } else if let Some(id) = next(&mut self.begins, &|id| container(id).begin <= time) {
                encoder.container(out, model, id, container(id).begin);
            } else {
                return;
            }
        }
    }

    /// Tells of a change, if it is of what is shown.
    fn change(
        &mut self,
        change: Change<'_>,
        time: Timestamp,
        out: &mut Vec<u8>,
        model: &Model,
        encoder: &mut dyn Encoder,
    ) {
        let is_shown = |id: ContainerId| model.containers.get(id as usize).is_some_and(|it| it.shown);
        match change {
            Change::NoState { of } if is_shown(of) => encoder.state(out, model, of, None, None, time),
            Change::State { of, name, woken } if is_shown(of) => {
                let woken = woken.filter(|(link, _)| !self.broken.remove(link));
                // Where switches are missing, others may have run meanwhile.
                let name = (name != state::IDLE || !model.partial).then_some(name);
                encoder.state(out, model, of, name, woken, time);
            }
            Change::Wake { of, woken, link } if is_shown(woken) => match is_shown(of) {
                true => encoder.wake(out, model, of, woken, link, time),
                false => drop(self.broken.insert(link)),
            },
            Change::Function { of, name } if is_shown(of) => encoder.function(out, model, of, name, time),
            Change::Event { of, name, fields } if is_shown(of) => {
                encoder.event(out, model, of, name, fields, time);
            }
            Change::Sample { of, chain } if is_shown(of) => {
                let chain: Vec<NameId> = change::chain(chain).collect();
                encoder.sample(out, model, of, &chain, time);
            }
            Change::Counter { counter, value } => encoder.counter(out, model, counter, value, time),
            _ => {}
        }
    }
}

/// How many LWPs wait for a CPU, also those that are not shown.
struct Waiting {
    /// By container: whether it is an LWP, and whether that waits.
    lwps: Vec<(bool, bool)>,
    count: u64,
    told: u64,
    since: Timestamp,
}

impl Waiting {
    fn new(model: &Model) -> Self {
        let is_lwp = |container: &Container| matches!(container.kind, Kind::Lwp { .. });
        let lwps = model.containers.iter().map(|container| (is_lwp(container), false)).collect();
        Waiting { lwps, count: 0, told: 0, since: Timestamp::MIN }
    }

    fn change(&mut self, of: ContainerId, name: Option<NameId>, time: Timestamp) {
        let waits = matches!(name, Some(state::READY | state::PREEMPTED));
        let Some((true, waited)) = self.lwps.get_mut(of as usize) else { return };
        match (std::mem::replace(waited, waits), waits) {
            (false, true) => self.count += 1,
            (true, false) => self.count -= 1,
            _ => return,
        }
        self.since = time;
    }

    /// Tells the count, if it stands for some time, until `next`.
    fn settle(
        &mut self,
        next: Option<Timestamp>,
        out: &mut Vec<u8>,
        model: &Model,
        encoder: &mut dyn Encoder,
    ) {
        if self.count != self.told && next != Some(self.since) {
            self.told = self.count;
            encoder.counter(out, model, Counter::READY, self.count, self.since);
        }
    }
}
