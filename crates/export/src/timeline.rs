//! The analysis that turns its input into a timeline of states, events and wakes per CPU, LWP and user
//! thread.
//!
//! A state is reported when it ends, and only then is it certain: an assumed state may turn out to be
//! unknown. So nothing is written before the end; changes wait in the [`Sorter`], whose memory is bounded.
//! All other memory grows with the number of containers and names.

mod parts;

use crate::change::{Change, LinkId};
use crate::encoder::Encoder;
use crate::model::{Container, ContainerId, Kind as What, Model, NameId, Use, at, state};
use crate::sort::{Sorted, Sorter};
use crate::undecided::{Interval, Undecided};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::io::Result;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tracewing_analysis::profile::Chains;
use tracewing_analysis::{Analysis, Calls, Input, LockUses, Loss, Pairs, Party, Ran, Seen, ThreadKey};
use tracewing_trace::EventRef;
use tracewing_trace::super_trace::{
    self, Carried, Doing, Fold, Kind, Lwp, LwpSerial, Mode, Place, Scope, UserThread, Waker,
};
use tracewing_units::{Cpu, LockAddress, Pid, Tid, Timestamp};

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
    pub fn new(encoder: Box<dyn Encoder>, folder: &Path, pairs: Pairs, failed: Rc<Cell<bool>>) -> Self {
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
    pub fn finish(mut self, ran: &Ran) -> Result<(Box<dyn Encoder>, Model, Sorted)> {
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

    fn container(&mut self, kind: What) -> ContainerId {
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

    fn lwp_container(&mut self, serial: LwpSerial, tid: Tid) -> ContainerId {
        if let Some(Some(known)) = self.lwps.get(serial.0) {
            return *known;
        }
        let new = self.container(What::Lwp { tid });
        *at(&mut self.lwps, serial.0) = Some(new);
        new
    }

    fn task_container(&mut self, thread: &UserThread) -> ContainerId {
        if let Some(Some(known)) = self.tasks.get(thread.serial.0) {
            return *known;
        }
        let new = self.container(What::Task { number: thread.id });
        *at(&mut self.tasks, thread.serial.0) = Some(new);
        new
    }

    fn cpu(&mut self, number: Cpu) -> &mut CpuLine {
        if !self.cpus.contains_key(&number) {
            let container = self.container(What::Cpu { number });
            self.cpus.insert(number, CpuLine { container, idle_since: None });
        }
        self.cpus.get_mut(&number).expect("inserted just now")
    }

    /// A container was in one state for an interval; `runs` if a wake can lead to this state.
    fn did(&mut self, of: ContainerId, name: NameId, runs: bool, from: Timestamp, to: Timestamp) {
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

    /// Extends the container's lifetime to include `time`.
    fn touch(&mut self, of: ContainerId, time: Timestamp) {
        let line = &mut self.lines[of as usize];
        (line.begin, line.end) = (line.begin.min(time), line.end.max(time));
    }

    /// Records which waker made `woken` ready; there is at most one per state.
    fn wake(&mut self, woken: ContainerId, by: &Waker, at: Timestamp) {
        let by = match (by.interrupt, by.user_thread_serial.and_then(|serial| *self.tasks.get(serial.0)?)) {
            (Some(_), _) => by.cpu.map(|cpu| self.cpu(cpu).container),
            (None, Some(task)) if self.is_task(woken) => Some(task),
            (None, _) => by.lwp.zip(by.tid).map(|(serial, tid)| self.lwp_container(serial, tid)),
        };
        if let Some(by) = by {
            self.lines[woken as usize].woken.get_or_insert((at, by));
        }
    }

    fn is_task(&self, container: ContainerId) -> bool {
        matches!(self.model.containers[container as usize].kind, What::Task { .. })
    }

    /// The container that an event is shown in.
    fn place(&mut self, place: &Place<'_>) -> Option<ContainerId> {
        let task = place.thread_serial.and_then(|serial| *self.tasks.get(serial.0)?);
        match (place.mode, place.thread, place.lwp.zip(place.tid)) {
            (Mode::Interrupt(_), ..) => {}
            (_, Carried::Thread { .. }, _) if task.is_some() => return task,
            (_, _, Some((serial, tid))) => return Some(self.lwp_container(serial, tid)),
            _ => {}
        }
        place.cpu.map(|cpu| self.cpu(cpu).container)
    }

    fn event_name(&mut self, seen: &Seen<'_>) -> NameId {
        let decoded = seen.event.decoded();
        let (stream, class) = (seen.event.stream_index(), decoded.class_index());
        if let Some(Some(known)) = self.events.get(stream).and_then(|classes| classes.get(class)) {
            return *known;
        }
        let name = self.named_event(decoded.class().name.as_deref().unwrap_or("event"));
        *at(at(&mut self.events, stream), class) = Some(name);
        name
    }

    fn named_event(&mut self, text: &str) -> NameId {
        if let Some(known) = self.event_names.get(text) {
            return *known;
        }
        let new = self.model.names.add(text.to_owned(), Use::Event);
        self.event_names.insert(text.to_owned(), new);
        new
    }

    fn show(&mut self, seen: &Seen<'_>, time: Timestamp) {
        let Some(of) = self.place(&seen.place) else { return };
        let name = self.event_name(seen);
        self.touch(of, time);
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        self.encoder.fields(seen.event, &mut fields);
        self.push(Change::Event { of, name, fields: &fields }, time);
        self.fields = fields;
    }

    /// The CPU has no running LWP from `time` on.
    fn idle(&mut self, cpu: Cpu, time: Timestamp) {
        self.cpu(cpu).idle_since = Some(time);
    }

    /// The CPU runs an LWP from `time` on.
    fn busy(&mut self, cpu: Cpu, time: Timestamp) {
        let CpuLine { container, idle_since } = self.cpu(cpu);
        if let (container, Some(since)) = (*container, idle_since.take()) {
            self.did(container, state::IDLE, false, since, time);
        }
    }

    fn undecided(&mut self, serial: LwpSerial) -> &mut Undecided {
        at(&mut self.undecided, serial.0).get_or_insert_with(|| Undecided::new(&self.folder))
    }
}

impl Fold for Timeline {
    #[inline(always)]
    fn change(&mut self, change: super_trace::Change<'_>) {
        match change {
            super_trace::Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            super_trace::Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            super_trace::Change::UserThreadDid { thread, doing, from, to } => {
                self.user_thread(thread, doing, from, to)
            }
            super_trace::Change::LwpWoken { lwp, by, at } => self.lwp_woken(lwp, by, at),
            super_trace::Change::UserThreadCreated { thread, by, at } => {
                self.user_thread_created(thread, by, at)
            }
            super_trace::Change::UserThreadWoken { thread, by, at } => self.user_thread_woken(thread, by, at),
            super_trace::Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            super_trace::Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl Timeline {
    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        if from >= to {
            return;
        }
        let container = self.lwp_container(lwp.serial, lwp.tid);
        let name = match (doing, lwp.waits_for) {
            (Doing::Running { mode: Mode::User, .. }, Some(lock)) => self.model.names.spinning(lock),
            _ => self.model.names.state(doing),
        };
        self.did(container, name, matches!(doing, Doing::Running { .. }), from, to);
        if lwp.runs_user_thread() {
            let pushed = self.undecided(lwp.serial).push(Interval { name, from, to });
            self.check(pushed);
        }
        if let Doing::Running { cpu, .. } = doing {
            let label = self.model.containers[container as usize].label;
            let cpu = self.cpu(cpu).container;
            self.did(cpu, label, false, from, to);
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let Some(Some(undecided)) = self.undecided.get_mut(lwp.serial.0).map(Option::take) else { return };
        let mut undecided = undecided;
        let done = match thread {
            Some(thread) => {
                let task = self.task_container(thread);
                undecided.drain(|Interval { name, from, to }| {
                    self.did(task, name, true, from, to);
                    Ok(())
                })
            }
            None => undecided.clear(),
        };
        self.undecided[lwp.serial.0] = Some(undecided);
        self.check(done);
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: Timestamp, to: Timestamp) {
        if from >= to {
            return;
        }
        let task = self.task_container(thread);
        let name = self.model.names.state(doing);
        self.did(task, name, false, from, to);
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: Timestamp) {
        let woken = self.lwp_container(lwp.serial, lwp.tid);
        self.wake(woken, by, at);
    }

    fn user_thread_created(&mut self, thread: &UserThread, by: &Waker, at: Timestamp) {
        let woken = self.task_container(thread);
        self.wake(woken, by, at);
    }

    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: Timestamp) {
        let woken = self.task_container(thread);
        self.wake(woken, by, at);
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        if let Some(Some(known)) = self.lwps.get(lwp.serial.0) {
            self.model.containers[*known as usize].ends(lwp.process, &lwp.name, lwp.followed);
        }
        at(&mut self.undecided, lwp.serial.0).take();
        self.lock_user_ends(Party::Thread(lwp.tid), lwp.reported_to());
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        if let Some(Some(known)) = self.tasks.get(thread.serial.0) {
            self.model.containers[*known as usize].ends(thread.process, &thread.name, true);
        }
        self.lock_user_ends(Party::Task(thread.process, thread.id), thread.reported_to());
    }
}

impl Analysis for Timeline {
    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Explained(event) => self.explained(event),
            Input::Event(seen) => self.event(seen),
            Input::Dumped { tid, process, name } => self.dumped(tid, process, name),
            Input::LeftOut(super_trace::Change::LwpEnds { lwp }) => self.other_ends(lwp),
            Input::LossOver { time } => self.loss_over(time),
            Input::Lost(lost) => self.lost(lost),
            _ => {}
        }
    }
}

impl Timeline {
    fn explained(&mut self, event: &EventRef<'_>) {
        self.chains.explained(event);
    }

    fn event(&mut self, seen: &Seen<'_>) {
        let mut calls = Vec::new();
        let is_call = self.calls.event(seen, &mut |thread, time, call| calls.push((thread, time, call)));
        calls.into_iter().for_each(|(thread, time, call)| self.call(thread, time, call));
        if is_call {
            return;
        }
        let Some(activity) = seen.activity else { return };
        if let Some(looked) = self.chains.event(seen) {
            self.looked(seen, activity.time, looked);
            return;
        }
        let mut uses = Vec::new();
        self.lock_uses.event(seen, &mut |lock| uses.push(lock));
        uses.iter().for_each(|lock| self.lock_use(lock));
        match (activity.kind, activity.cpu) {
            (Kind::User | Kind::Waits { .. } | Kind::Kernel | Kind::PageFault { .. }, _) => {
                self.show(seen, activity.time);
            }
            (Kind::Switch { prev, next, .. }, Some(cpu)) => {
                if prev.is_idle() {
                    self.busy(cpu, activity.time);
                }
                if next.is_idle() {
                    self.idle(cpu, activity.time);
                }
            }
            _ => {}
        }
    }

    fn dumped(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        // Numbers are reused: the last container of this number is meant. The end of a live thread is
        // reported separately.
        let dumped = What::Lwp { tid };
        if let Some(container) = self.model.containers.iter_mut().rev().find(|known| known.kind == dumped) {
            container.process.get_or_insert(process);
            if container.own_name.is_empty() {
                container.own_name = String::from_utf8_lossy(name).into_owned();
            }
        }
    }

    fn other_ends(&mut self, lwp: &Lwp) {
        self.lock_user_ends(Party::Thread(lwp.tid), lwp.reported_to());
    }

    fn loss_over(&mut self, time: Timestamp) {
        self.lock_uses.loss_over();
        self.calls.loss_over(time);
    }

    fn lost(&mut self, lost: &Loss) {
        self.lock_uses.lost(lost);
        if lost.tears_programs() {
            self.calls.lost(lost.from);
        }
        if let Some(cpu) = lost.cpu {
            let of = self.cpu(cpu).container;
            let text = match lost.events {
                Some(events) => format!("{events} lost events"),
                None => "lost events".to_owned(),
            };
            let name = self.named_event(&text);
            self.touch(of, lost.from);
            self.push(Change::Event { of, name, fields: &[] }, lost.from);
        }
        let Scope::Kernel(lossy) = lost.scope else { return };
        for (number, cpu) in &mut self.cpus {
            if lossy.is_none_or(|lossy| lossy == *number) {
                cpu.idle_since = None;
            }
        }
    }
}
