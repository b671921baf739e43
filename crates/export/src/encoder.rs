//! The interface of a format, and the order in which it is called: by time, each container from its beginning
//! to its end.

use crate::change::{self, Change, LinkId};
use crate::model::{Container, ContainerId, Counter, CounterId, Kind, Model, NameId};
use crate::sort::Sorted;
use std::collections::HashSet;
use std::io::{Result, Write};
use std::ops::ControlFlow;
use tracewing_timeline::StateId;
use tracewing_trace::{EventRef, Progress};
use tracewing_units::Timestamp;

/// Bytes that are written at once.
const CHUNK: usize = 256 << 10;

/// A format. All methods append to `out`. Times are in ns on the recording's clock and never decrease.
pub(crate) trait Encoder: std::fmt::Debug {
    /// Encodes the fields of an event's payload for [`Encoder::event`]. Called before all other methods, in
    /// any order of events.
    fn fields(&mut self, event: &EventRef<'_>, out: &mut Vec<u8>);

    fn begin(&mut self, out: &mut Vec<u8>, model: &Model);

    /// A container begins; its parent has begun before.
    fn container(&mut self, _out: &mut Vec<u8>, _model: &Model, _id: ContainerId, _at: Timestamp) {}

    /// A container ends, after everything in it.
    fn container_ends(&mut self, _out: &mut Vec<u8>, _model: &Model, _id: ContainerId, _at: Timestamp) {}

    /// A container changes its state; `None` if the new one is unknown, and the one before was not. `woken`
    /// is the wake that led to it.
    fn state(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: Option<NameId>,
        woken: Option<(LinkId, ContainerId)>,
        at: Timestamp,
    );

    /// In a container of functions, a function begins, or the innermost one ends (`None`).
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

    /// A sample of a container: the executing function first, then its callers.
    fn sample(&mut self, out: &mut Vec<u8>, model: &Model, of: ContainerId, chain: &[NameId], at: Timestamp);

    /// A counter has this value from now on.
    fn counter(&mut self, out: &mut Vec<u8>, model: &Model, counter: CounterId, value: u64, at: Timestamp);

    fn end(&mut self, out: &mut Vec<u8>, model: &Model);
}

/// Writes everything; returns the size in bytes. If `watch` breaks, later changes are left out.
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

/// Which containers exist at a time.
struct Shape {
    /// Containers that are yet to begin or to end; the next one is last.
    begins: Vec<ContainerId>,
    ends: Vec<ContainerId>,
    /// Changes after this time are left out.
    end: Timestamp,
    /// Wakes whose waker is not shown; each is removed when its woken container continues.
    broken: HashSet<LinkId>,
    /// Per container: whether it is in a known state.
    in_state: Vec<bool>,
    /// What LWPs are called that are not followed.
    strangers: HashSet<NameId>,
}

impl Shape {
    fn new(model: &Model) -> Self {
        let container = |id: &ContainerId| &model.containers[*id as usize];
        let inner = |id: &ContainerId| !matches!(container(id).kind, Kind::Process { .. });
        let mut begins: Vec<_> = model.shown().map(|(id, _)| id).collect();
        let mut ends = begins.clone();
        begins.sort_by_key(|id| std::cmp::Reverse((container(id).begin, inner(id), *id)));
        ends.sort_by_key(|id| std::cmp::Reverse((container(id).end, !inner(id), *id)));
        let in_state = vec![false; model.containers.len()];
        let strangers = model.containers.iter().filter(|it| it.is_stranger(model.partial));
        let strangers = strangers.map(|stranger| stranger.label).collect();
        Shape { begins, ends, end: Timestamp::MAX, broken: HashSet::new(), in_state, strangers }
    }

    /// Makes everything end at `time`; later beginnings are dropped.
    fn cut(&mut self, time: Timestamp, model: &Model) {
        self.begins.clear();
        self.ends.retain(|id| model.containers[*id as usize].begin <= time);
        self.end = time;
    }

    /// Begins and ends containers that are due before a change at `time`.
    fn advance(&mut self, time: Timestamp, out: &mut Vec<u8>, model: &Model, encoder: &mut dyn Encoder) {
        let container = |id: ContainerId| &model.containers[id as usize];
        let next = |of: &mut Vec<ContainerId>, is_due: &dyn Fn(ContainerId) -> bool| {
            if of.last().is_some_and(|id| is_due(*id)) { of.pop() } else { None }
        };
        loop {
            // Beginnings and ends are merged by time; a container never ends before it begins.
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

    /// Whether a container changes to this state, or stays without one.
    fn changes(&mut self, of: ContainerId, name: Option<NameId>) -> bool {
        let had_one = std::mem::replace(&mut self.in_state[of as usize], name.is_some());
        had_one || name.is_some()
    }

    /// If switches are missing, another thread may have run on a CPU in the meantime: it is not known to be
    /// idle, or how long it ran a thread that is not followed.
    fn is_known(&self, of: ContainerId, name: NameId, model: &Model) -> bool {
        !model.partial
            || !matches!(model.containers[of as usize].kind, Kind::Cpu { .. })
            || name != StateId::IDLE.0 && !self.strangers.contains(&name)
    }

    /// Passes a change to the encoder if its container is shown.
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
            Change::NoState { of } if is_shown(of) && self.changes(of, None) => {
                encoder.state(out, model, of, None, None, time);
            }
            Change::State { of, name, woken } if is_shown(of) => {
                let woken = woken.filter(|(link, _)| !self.broken.remove(link));
                let name = self.is_known(of, name, model).then_some(name);
                if self.changes(of, name) {
                    encoder.state(out, model, of, name, woken, time);
                }
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

/// Counts LWPs that wait for a CPU, including those that are not shown, but not those that are not
/// followed: whether they still wait is unknown.
struct Waiting {
    /// Per container: whether it counts, and whether it waits.
    lwps: Vec<(bool, bool)>,
    count: u64,
    reported: u64,
    since: Timestamp,
}

impl Waiting {
    fn new(model: &Model) -> Self {
        let is_counted = |container: &Container| {
            matches!(container.kind, Kind::Lwp { .. }) && !container.is_stranger(model.partial)
        };
        let lwps = model.containers.iter().map(|container| (is_counted(container), false)).collect();
        Waiting { lwps, count: 0, reported: 0, since: Timestamp::MIN }
    }

    fn change(&mut self, of: ContainerId, name: Option<NameId>, time: Timestamp) {
        let waits = name.is_some_and(|name| [StateId::READY.0, StateId::PREEMPTED.0].contains(&name));
        let Some((true, waited)) = self.lwps.get_mut(of as usize) else { return };
        match (std::mem::replace(waited, waits), waits) {
            (false, true) => self.count += 1,
            (true, false) => self.count -= 1,
            _ => return,
        }
        self.since = time;
    }

    /// Reports the count if it holds for some time before `next`.
    fn settle(
        &mut self,
        next: Option<Timestamp>,
        out: &mut Vec<u8>,
        model: &Model,
        encoder: &mut dyn Encoder,
    ) {
        if self.count != self.reported && next != Some(self.since) {
            self.reported = self.count;
            encoder.counter(out, model, Counter::READY, self.count, self.since);
        }
    }
}
