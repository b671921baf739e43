//! Which part of a recording is selected: a time range, and in it events, threads, processes and CPUs.

use crate::open::recording::{Recording, Stream};
use crate::super_trace::{Carried, Column, Place, Seen, SuperTrace, is_kernel};
use crate::time::range::TimePoint;
use crate::time::zone::Zone;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use tracewing_rules::{Glob, Predicate, ProcessPattern, Scope, ThreadPattern, Variable};
use tracewing_units::{Cpu, Pid, Tid};
use tracewing_vocabulary::context;

/// What a user wants of a recording; everything by default.
///
/// A list without elements is no restriction; of a list with some, one must fit. All restrictions must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// What lies before is left out.
    pub from: Option<TimePoint>,
    /// The end; later events are left out.
    pub to: Option<TimePoint>,
    /// The zone of civil times.
    pub zone: Zone,
    /// Patterns for the names of events.
    pub events: Vec<String>,
    /// Patterns that the name of an event must not match.
    pub exclude: Vec<String>,
    /// What must hold for an event.
    pub predicate: Option<Predicate>,
    /// Events of the kernel, or of programs.
    pub level: Option<Level>,
    /// Only these user threads; all if empty.
    pub threads: Vec<ThreadPattern>,
    /// LWPs, by their number.
    pub tids: Vec<Tid>,
    /// Processes, by number or name: the name of their first thread.
    pub processes: Vec<ProcessPattern>,
    /// CPUs, by their number.
    pub cpus: Vec<RangeInclusive<Cpu>>,
}

impl Filter {
    /// Whether it chooses by CPU, so that what begins on a chosen one may end on another.
    pub fn chooses_cpus(&self) -> bool {
        let asks = |predicate: &Predicate| context::CPU.iter().any(|name| predicate.asks_for_context(name));
        !self.cpus.is_empty() || self.predicate.as_ref().is_some_and(asks)
    }
}

impl Filter {
    /// Whether it chooses by LWP, so that what a user thread begins on a chosen one it may end on another.
    pub fn chooses_tids(&self) -> bool {
        let asks = |predicate: &Predicate| context::TID.iter().any(|name| predicate.asks_for_context(name));
        !self.tids.is_empty() || self.predicate.as_ref().is_some_and(asks)
    }

    /// The names of classes of a recording's events that it leaves out, by their names or by their level.
    pub fn leaves_out(&self, recording: &Recording) -> BTreeSet<String> {
        let globs = |patterns: &[String]| -> Vec<Glob> {
            patterns.iter().map(|text| Glob::new(text.as_str())).collect()
        };
        let (events, exclude) = (globs(&self.events), globs(&self.exclude));
        let any = |globs: &[Glob], name: &str| globs.iter().any(|glob| glob.matches(name));
        let mut left_out = BTreeSet::new();
        for trace in recording.traces() {
            let is_out = |name: &str| {
                let has_level = self.level.is_none_or(|level| (level == Level::Kernel) == is_kernel(trace));
                !has_level || any(&exclude, name) || !(events.is_empty() || any(&events, name))
            };
            let streams = &trace.class().data_stream_classes;
            let classes = streams.iter().flat_map(|stream| &stream.event_record_classes);
            let names = classes.filter_map(|class| class.name.clone());
            left_out.extend(names.filter(|name| is_out(name)));
        }
        left_out
    }

    /// Whether it may let through some of a group of events, which only make sense together, but not others.
    /// A group is the names of its events; `same` are the fields that have the same value in all events that
    /// belong together.
    pub fn tears(&self, recording: &Recording, groups: &[&[&str]], same: &[&str]) -> bool {
        /// Of those whose events they are; of LWPs and CPUs, see [`Filter::chooses_tids`] and
        /// [`Filter::chooses_cpus`].
        const CONTEXTS: [[&str; 2]; 3] = [context::PROCESS, context::TID, context::CPU];
        const COLUMNS: [&str; 3] = [Column::Process.name(), Column::Task.name(), Column::Comm.name()];
        let keeps = |variable: &Variable| match variable.scope {
            Scope::Context => {
                COLUMNS.iter().chain(CONTEXTS.as_flattened()).any(|name| variable.name == **name)
            }
            Scope::Field => same.contains(&variable.name.as_str()),
        };
        if self.predicate.as_ref().is_some_and(|predicate| !predicate.asks_only_for(keeps)) {
            return true;
        }
        let left_out = self.leaves_out(recording);
        let is_recorded = |name: &&&str| recording.has_event(name);
        groups.iter().any(|group| {
            let recorded: Vec<_> = group.iter().filter(is_recorded).collect();
            let out = recorded.iter().filter(|name| left_out.contains(***name)).count();
            out > 0 && out < recorded.len()
        })
    }
}

/// One of the two levels of the super-trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Programs: their own events.
    User,
    /// The kernel's events.
    Kernel,
}

impl Filter {
    /// Whether it asks for certain user threads, LWPs or processes.
    pub fn chooses_subjects(&self) -> bool {
        let Filter { threads, tids, processes, .. } = self;
        !(threads.is_empty() && tids.is_empty() && processes.is_empty())
    }

    /// Whether it chooses all of a recording.
    pub fn is_whole(&self) -> bool {
        let Filter { from, to, zone: _, events, exclude, predicate, level, threads, tids, processes, cpus } =
            self;
        let has_all_times = from.is_none() && to.is_none();
        let has_all_names = events.is_empty() && exclude.is_empty();
        let has_all_subjects =
            threads.is_empty() && tids.is_empty() && processes.is_empty() && cpus.is_empty();
        has_all_times && has_all_names && predicate.is_none() && level.is_none() && has_all_subjects
    }

    /// Whether it asks for certain LWPs, or for those of certain processes.
    pub(crate) fn chooses_lwps(&self) -> bool {
        !(self.tids.is_empty() && self.processes.is_empty())
    }

    /// Whether it asks for the LWP of a place, user threads apart.
    pub(crate) fn has_lwp(&self, state: &SuperTrace, place: &Place<'_>) -> bool {
        let of = |fits: &dyn Fn(Pid) -> bool| place.process.is_some_and(fits);
        (self.tids.is_empty() || place.tid.is_some_and(|tid| self.tids.contains(&tid)))
            && (self.processes.is_empty() || of(&|process| self.names_process(state, process)))
    }

    fn names_process(&self, state: &SuperTrace, process: Pid) -> bool {
        let name = state.process_name(process);
        self.processes.iter().any(|pattern| pattern.fits(process, name))
    }

    /// Whether events of a CPU are selected; those of none only where all are.
    pub fn has_cpu(&self, cpu: Option<Cpu>) -> bool {
        self.cpus.is_empty() || cpu.is_some_and(|cpu| self.cpus.iter().any(|range| range.contains(&cpu)))
    }

    /// Whether events that a stream has lost may be of a selected CPU: not if all of them are of another one,
    /// or of one that an extract leaves out.
    pub fn may_miss(&self, stream: &Stream) -> bool {
        !stream.is_left_out && stream.only_cpu().is_none_or(|cpu| self.has_cpu(Some(cpu)))
    }

    /// Whether an event belongs to a selected thread or task, or switches to one.
    pub(crate) fn has_place(&self, seen: &Seen<'_>) -> bool {
        let Filter { threads, tids, processes, .. } = self;
        if !self.chooses_subjects() {
            return true;
        }
        let place = &seen.place;
        let (next, next_thread) = (seen.next_lwp(), seen.next_thread());
        let named =
            |process: Option<Pid>| process.is_some_and(|process| self.names_process(seen.state, process));
        let is_thread = |process: Option<Pid>, id, name: &str| {
            threads.iter().any(|pattern| pattern.matches(process, id, name))
        };
        let child = seen.child();
        let next_process = next.and_then(|next| next.process).or(child.map(Tid::as_process));
        let belongs = |is_asked: bool, here: bool, next: bool| !is_asked || here || next;
        belongs(
            !tids.is_empty(),
            place.tid.is_some_and(|tid| tids.contains(&tid)),
            next.map(|next| next.tid).or(child).is_some_and(|next| tids.contains(&next)),
        ) && belongs(!processes.is_empty(), named(place.process), named(next_process))
            && belongs(
                !threads.is_empty(),
                matches!(place.thread, Carried::Thread { id, name } if is_thread(place.process, id, name)),
                next_thread.is_some_and(|next| is_thread(next.process, next.id, &next.name))
                    || seen.created_thread().is_some_and(|(id, name)| is_thread(place.process, id, name)),
            )
    }
}
