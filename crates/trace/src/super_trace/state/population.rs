//! The LWPs: their names, processes and programs, and when they begin and end.

use super::SuperTrace;
use crate::super_trace::activity::Kind;
use crate::super_trace::calls::Calls;
use crate::super_trace::comm;
use crate::super_trace::doing::Mode;
use crate::super_trace::fold::{Change, Fold};
use crate::super_trace::lwp::{Dumped, Lwp, Program, Sight};
use crate::super_trace::serial::LwpSerial;
use crate::super_trace::user_thread::Owner;
use tracewing_units::{Pid, Tid, Timestamp};

impl SuperTrace {
    /// A thread makes a task. Whether that is a process or a thread of its own one, only this event says.
    pub(super) fn cloned(&mut self, by: Option<Tid>, child: Tid, same_process: bool, now: Timestamp) {
        let creator = by.and_then(|tid| self.lwps.get(tid));
        let (mode, is_kernel, calls) = creator.map_or((Mode::Unknown, false, Calls::default()), |lwp| {
            (lwp.mode(), lwp.is_kernel, lwp.calls.of_child())
        });
        let process =
            if same_process { creator.and_then(|lwp| lwp.process) } else { Some(child.as_process()) };
        let created = self.created(child, now);
        created.process = process.or(created.process);
        created.calls = calls;
        created.inherit(mode, is_kernel);
        self.follows_child(child);
    }

    /// The kernel reports a new task. [`SuperTrace::cloned`] has just reported it, if that is recorded.
    pub(super) fn forked(&mut self, child: Tid, name: &[u8], now: Timestamp, fold: &mut impl Fold) {
        if !self.lwps.get(child).is_some_and(Lwp::is_newborn) {
            self.bury(child, now, fold);
        }
        self.created(child, now).rename(name);
        self.follows_child(child);
    }

    /// Of a process tree, the kernel follows what a followed thread creates, and reports no other creation.
    fn follows_child(&mut self, child: Tid) {
        if self.coverage.root.is_some() {
            self.known(child).records();
            self.follows = true;
        }
    }

    /// A program's event says to which process its thread belongs, and what it is called.
    pub(super) fn introduced(
        &mut self,
        tid: Tid,
        process: Pid,
        name: &[u8],
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        let lwp = self.known(tid);
        lwp.process = Some(process);
        lwp.rename(name);
        self.programs.adopt(tid, process, now, &mut self.lwps, fold);
        // The existence of the process shows that its first thread belongs to it.
        if let Some(first) = self.lwps.get_mut(process.first_thread()) {
            first.process = Some(process);
            self.programs.adopt(process.first_thread(), process, now, &mut self.lwps, fold);
        }
    }

    /// A thread lived when the recording began.
    pub(super) fn dumped(&mut self, tid: Tid, dumped: Dumped) {
        match self.lwps.get_mut(tid) {
            Some(lwp) => lwp.introduce(&dumped),
            None => drop(self.dumped.insert(tid, dumped)),
        }
    }

    /// A thread's program reports that it has made another thread, which has its name at first.
    pub(super) fn made(&mut self, by: Option<Tid>, child: Tid, process: Pid) {
        let name = by.and_then(|tid| self.name(tid)).unwrap_or_default();
        if !self.lwps.has(child) {
            let process = Some(process);
            self.dumped.insert(child, Dumped { process, name, is_kernel: false });
        }
    }

    /// Takes the names of threads from an event before the beginning of an extract. False if the event has
    /// none.
    #[cold]
    pub(super) fn apply_earlier(&mut self, tid: Option<Tid>, kind: &Kind<'_>) -> bool {
        let (tid, process, name) = match *kind {
            Kind::NewTask { child, same_process: false } => (child, Some(child.as_process()), None),
            Kind::NewTask { child, .. } => (child, tid.and_then(|tid| self.process_of(tid)), None),
            Kind::Fork { child, name } => (child, self.process_of(child), Some(name)),
            Kind::Exec { file } => {
                let Some(tid) = tid else { return true };
                (tid, Some(tid.as_process()), Some(program_name(file)))
            }
            Kind::Switch { prev, prev_name, next, next_name, .. } => {
                self.name_earlier(prev, prev_name);
                self.name_earlier(next, next_name);
                return true;
            }
            _ => return false,
        };
        if process.is_some() {
            let name = name.unwrap_or_default().to_owned();
            self.dumped.insert(tid, Dumped { process, name, is_kernel: false });
        }
        true
    }

    /// A thread had this name before the extract began.
    fn name_earlier(&mut self, tid: Tid, name: &[u8]) {
        match self.lwps.get_mut(tid) {
            Some(lwp) => lwp.rename(name),
            None if !tid.is_idle() => self.dumped.entry(tid).or_default().name = name.to_owned(),
            None => {}
        }
    }

    /// A process has another program, and one thread.
    pub(super) fn executes(&mut self, tid: Tid, name: &[u8], now: Timestamp, fold: &mut impl Fold) {
        let process = tid.as_process();
        self.programs.ends(Owner::process(process), now, &mut self.lwps, fold);
        self.follows = true;
        let lwp = self.known(tid);
        (lwp.process, lwp.is_kernel) = (Some(process), false);
        lwp.records();
        lwp.program = Program { number: lwp.program.number + 1, since: now };
        lwp.rename(name);
    }

    /// What the event itself says about the process of the thread that recorded it.
    pub(super) fn belongs(&mut self, tid: Tid, process: Option<Pid>, now: Timestamp, fold: &mut impl Fold) {
        if let Some(process) = process
            && let Some(lwp) = self.lwps.get_mut(tid)
            && lwp.process.replace(process) != Some(process)
        {
            self.programs.adopt(tid, process, now, &mut self.lwps, fold);
        }
    }

    /// A thread that executes a program while it is not its process' first one gets that one's number, which
    /// has ended by then (`de_thread` of the kernel's `fs/exec.c`). Whether this is what happened.
    pub(super) fn takes_first_number(&mut self, tid: Tid, first: Tid) -> bool {
        let process = first.as_process();
        let is_so = !tid.is_idle()
            && self.headless.contains_key(&process)
            && !self.lwps.has(first)
            && self.lwps.get(tid).is_some_and(|lwp| lwp.process == Some(process));
        if is_so && let Some(mut lwp) = self.lwps.remove(tid) {
            self.headless.remove(&process);
            lwp.tid = first;
            self.lwps.add(first, lwp);
        }
        is_so
    }

    /// The kernel reports a thread's name, possibly without any other event of the thread.
    pub(super) fn named(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        match self.lwps.get_mut(tid) {
            Some(lwp) => {
                lwp.process = Some(process);
                lwp.rename(name);
            }
            None => {
                let process = Some(process);
                let dumped = Dumped { process, name: name.to_owned(), is_kernel: false };
                self.dumped.insert(tid, dumped);
            }
        }
    }

    /// A thread's name, if known.
    fn name(&self, tid: Tid) -> Option<Vec<u8>> {
        let known = self.lwps.get(tid).map(|lwp| lwp.name.clone().into_bytes());
        known.or_else(|| Some(self.dumped.get(&tid)?.name.clone()))
    }

    pub(super) fn known(&mut self, tid: Tid) -> &mut Lwp {
        let place = match self.lwps.place(tid) {
            Some(place) => place,
            None => self.meets(tid),
        };
        self.lwps.in_place(place)
    }

    /// Adds a thread that was unknown so far, except from dumps.
    #[cold]
    fn meets(&mut self, tid: Tid) -> usize {
        let begin = self.begin.unwrap_or(self.now);
        let place = self.add(Lwp::new(LwpSerial(self.serials), tid, begin));
        if let Some(dumped) = self.dumped.remove(&tid) {
            self.lwps.in_place(place).introduce(&dumped);
        }
        place
    }

    /// A thread that was created now, so that no earlier dump can mean it.
    pub(super) fn created(&mut self, tid: Tid, now: Timestamp) -> &mut Lwp {
        self.dumped.remove(&tid);
        self.root.take_if(|root| root.first_thread() == tid);
        self.headless.remove(&tid.as_process());
        let place = match self.lwps.place(tid) {
            // Known already, from an event just before this one: its state stays.
            Some(place) => place,
            // New, where events are missing: it may have been woken and run.
            None if self.is_blind(now) => self.add(Lwp::new(LwpSerial(self.serials), tid, now)),
            // New: it waits for its first wake-up.
            None => self.add(Lwp::created(LwpSerial(self.serials), tid, now)),
        };
        self.lwps.in_place(place)
    }

    fn add(&mut self, mut lwp: Lwp) -> usize {
        let chosen = self.coverage.of_lwps.as_ref().and_then(|lwps| lwps.get(&lwp.tid).copied());
        (lwp.sight, lwp.reports_modes) = (self.sight(lwp.tid), self.coverage.system_calls);
        (lwp.followed, lwp.process) = (chosen.is_some(), chosen.flatten());
        if let Some(root) = self.root.take_if(|root| root.first_thread() == lwp.tid) {
            lwp.records();
            lwp.process = Some(root);
        }
        self.serials += 1;
        self.lwps.add(lwp.tid, lwp)
    }

    /// The thread is gone, or its number belongs to another one now.
    pub(super) fn bury(&mut self, tid: Tid, now: Timestamp, fold: &mut impl Fold) {
        let Some(mut lwp) = self.lwps.remove(tid) else { return };
        self.without_calls += u64::from(lwp.lacks_calls());
        self.died_unseen += u64::from(lwp.dies_unseen());
        if self.coverage.of_listed && lwp.followed {
            self.ended.insert(tid, ());
        }
        lwp.report(now, fold);
        self.programs.detach(&mut lwp, fold);
        fold.change(Change::LwpEnds { lwp: &lwp });
        let lives_on = |process: Pid| self.lwps.values().any(|other| other.process == Some(process));
        if lwp.process == Some(tid.as_process()) && lives_on(tid.as_process()) {
            self.headless.insert(tid.as_process(), std::mem::take(&mut lwp.name));
        }
        let owner = Owner::of(lwp.process, tid);
        if self.programs.has(owner) && !lwp.process.is_some_and(lives_on) {
            self.programs.ends(owner, now, &mut self.lwps, fold);
        }
    }

    /// When the state of a thread becomes known that was unknown so far.
    fn sight(&self, tid: Tid) -> Sight {
        if self.coverage.leaves_out(tid) {
            return Sight::Stranger;
        }
        match self.coverage.switches {
            false => Sight::Never,
            true if self.coverage.of_user_threads.is_empty() => Sight::Always,
            true => Sight::WithThread { chosen: false },
        }
    }
}

/// What the kernel calls a thread that executes a file.
pub(super) fn program_name(file: &[u8]) -> &[u8] {
    let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    &name[..name.len().min(comm::LONGEST)]
}
