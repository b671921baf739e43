//! The properties that an extract of a recording declares in its metadata, so that its reader knows as much
//! as a reader of the whole, and assumes no more: where it begins, whether switches were left out, which
//! threads' events it has.

use crate::open::recording::{Recording, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use tracewing_ctf::model::{EnvValue, TraceClass};
use tracewing_rules::ThreadPattern;
use tracewing_units::{Cpu, Pid, Tid, Timestamp};
use tracewing_vocabulary::environment;

/// What all that an extract says of itself begins with.
const EXTRACT: &str = environment::EXTRACT;

/// Beginning of the extract, in nanoseconds on the recording's clock. Earlier events only give names.
const BEGIN: &str = environment::EXTRACT_BEGIN;

/// End of the extract, in nanoseconds on the recording's clock: up to then nothing is missing, even after its
/// last event.
const END: &str = environment::EXTRACT_END;

/// Whether switches of threads that are in it are all that there were.
const SWITCHES: (&str, &str) = (environment::EXTRACT_SWITCHES, environment::SOME);

/// Whether system calls that are in it are all that there were.
const CALLS: (&str, &str) = (environment::EXTRACT_SYSTEM_CALLS, environment::SOME);

/// Whether interrupts that are in it are all that there were.
const INTERRUPTS: (&str, &str) = (environment::EXTRACT_INTERRUPTS, environment::SOME);

/// The names of classes with events that were left out, one per line.
const LEFT_OUT: &str = environment::EXTRACT_LEFT_OUT;

/// Patterns of the user threads that it contains, one per line. An extract of an extract has a second list,
/// and so on, with a number after this name.
const TASKS: &str = environment::EXTRACT_TASKS;

/// Whether it is of certain LWPs, on which only user threads are seen then.
const LWPS: (&str, &str) = (environment::EXTRACT_LWPS, environment::SOME);

/// The LWPs that it contains: `PROCESS/TID`, or `TID` if the process is unknown. Events of all others were
/// left out, except those that give their names.
const TIDS: &str = environment::EXTRACT_TIDS;

/// The CPUs that it is of, on which only threads are seen then: ranges, as in `0-0 4-7`.
const CPUS: &str = environment::EXTRACT_CPUS;

/// LWPs, each with its process where that is known.
pub(crate) type Lwps = BTreeMap<Tid, Option<Pid>>;

/// What an extract says of itself, trace by trace.
#[derive(Debug, Default)]
pub(crate) struct Extract<'e> {
    /// Whether switches were left out that others are not.
    pub some_switches: bool,
    /// Whether begins or ends of system calls were left out.
    pub some_system_calls: bool,
    /// Whether begins or ends of interrupts were left out.
    pub some_interrupts: bool,
    /// The names of classes with events that were left out.
    pub left_out: Vec<&'e str>,
    /// The extract contains user threads that match one of these patterns; if there are none, all of them.
    pub threads: &'e [ThreadPattern],
    /// Whether it is of LWPs that were chosen by their numbers.
    pub of_tids: bool,
    /// The CPUs that it is of; if there are none, all of them.
    pub cpus: &'e [RangeInclusive<Cpu>],
    /// The LWPs that it is of, where certain ones or those of certain processes were chosen.
    pub lwps: Option<&'e Lwps>,
    /// When it begins, in nanoseconds on the recording's clock.
    pub begin: Option<Timestamp>,
    /// When it ends, in nanoseconds on the recording's clock.
    pub end: Option<Timestamp>,
}

impl Extract<'_> {
    /// Writes it into the metadata of an extract, which may have been one of an extract before.
    pub(crate) fn declare(&self, class: &mut TraceClass) {
        let flags = [
            (self.some_switches, SWITCHES),
            (self.some_system_calls, CALLS),
            (self.some_interrupts, INTERRUPTS),
        ];
        set_flags(class, &flags);
        self.declare_left_out(class);
        self.declare_subjects(class);
        self.begin.into_iter().for_each(|begin| class.set_env(BEGIN, begin.as_ns()));
        self.end.into_iter().for_each(|end| class.set_env(END, end.as_ns()));
    }

    fn declare_left_out(&self, class: &mut TraceClass) {
        let before = match class.env(LEFT_OUT) {
            Some(EnvValue::String(text)) => text.clone(),
            _ => String::new(),
        };
        let all: BTreeSet<&str> = before.lines().chain(self.left_out.iter().copied()).collect();
        if !all.is_empty() {
            class.set_env(LEFT_OUT, all.into_iter().collect::<Vec<_>>().join("\n").as_str());
        }
    }

    fn declare_subjects(&self, class: &mut TraceClass) {
        if !self.threads.is_empty() {
            let patterns: Vec<String> = self.threads.iter().map(ThreadPattern::to_string).collect();
            let number = class.env.iter().filter(|(name, _)| name.starts_with(TASKS)).count();
            let name = if number == 0 { TASKS.to_owned() } else { format!("{TASKS}_{}", number + 1) };
            class.set_env(&name, patterns.join("\n").as_str());
        }
        set_flags(class, &[(self.of_tids, LWPS)]);
        if !self.cpus.is_empty() {
            let before = cpus(class).unwrap_or_else(|| vec![Cpu(0)..=Cpu(u32::MAX)]);
            let both = |range: &RangeInclusive<Cpu>| {
                let both =
                    before.iter().map(|of| *range.start().max(of.start())..=*range.end().min(of.end()));
                both.filter(|range| !range.is_empty()).collect::<Vec<_>>()
            };
            let ranges = self.cpus.iter().flat_map(both);
            let texts: Vec<String> =
                ranges.map(|range| format!("{}-{}", range.start(), range.end())).collect();
            class.set_env(CPUS, texts.join(" ").as_str());
        }
        if let Some(lwps) = self.lwps {
            let of_process = |(tid, process): (&Tid, &Option<Pid>)| match process {
                Some(process) => format!("{process}/{tid}"),
                None => tid.to_string(),
            };
            let numbers: Vec<String> = lwps.iter().map(of_process).collect();
            class.set_env(TIDS, numbers.join(" ").as_str());
        }
    }
}

fn set_flags(class: &mut TraceClass, flags: &[(bool, (&str, &str))]) {
    for &(is_set, (name, some)) in flags {
        if is_set {
            class.set_env(name, some);
        }
    }
}

/// The CPUs that a trace is of, if it is of certain ones and says of which.
fn cpus(class: &TraceClass) -> Option<Vec<RangeInclusive<Cpu>>> {
    let Some(EnvValue::String(text)) = class.env(CPUS) else { return None };
    let range = |text: &str| {
        let (first, last) = text.split_once('-')?;
        Some(Cpu(first.parse().ok()?)..=Cpu(last.parse().ok()?))
    };
    text.split_whitespace().map(range).collect()
}

/// Whether switches were left out.
pub(crate) fn has_some_switches(trace: &Trace) -> bool {
    trace.class().env(SWITCHES.0) == Some(&SWITCHES.1.into())
}

/// Whether begins or ends of system calls were left out.
pub(crate) fn has_some_system_calls(trace: &Trace) -> bool {
    trace.class().env(CALLS.0) == Some(&CALLS.1.into())
}

/// Whether begins or ends of interrupts were left out.
pub(crate) fn has_some_interrupts(trace: &Trace) -> bool {
    trace.class().env(INTERRUPTS.0) == Some(&INTERRUPTS.1.into())
}

impl Trace {
    /// Whether events of the class of this name were left out when it was extracted from another one.
    pub fn leaves_out(&self, class: &str) -> bool {
        let text = match self.class().env(LEFT_OUT) {
            Some(EnvValue::String(text)) => text.as_str(),
            _ => "",
        };
        text.lines().any(|name| name == class)
    }
}

impl Recording {
    /// The patterns for the user threads that it is of: one of each list fits those. Empty where it is of
    /// all.
    pub(crate) fn extract_tasks(&self) -> Vec<Vec<ThreadPattern>> {
        let env = self.traces().iter().flat_map(|trace| &trace.class().env);
        let mut texts: Vec<&str> = env
            .filter_map(|(name, value)| match value {
                EnvValue::String(text) if name.starts_with(TASKS) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.sort_unstable();
        texts.dedup();
        texts.iter().map(|text| text.lines().map(ThreadPattern::new).collect()).collect()
    }

    /// The names of classes with events that were left out when it was extracted from another recording.
    pub fn left_out(&self) -> BTreeSet<&str> {
        let texts = self.traces().iter().filter_map(|trace| match trace.class().env(LEFT_OUT) {
            Some(EnvValue::String(text)) => Some(text.lines()),
            _ => None,
        });
        texts.flatten().collect()
    }

    /// The names of classes of locks and user threads that programs have, but of which nothing was recorded,
    /// because it was not asked for: a class that is absent does not show that. Not those of a provider of
    /// which the recording has none: it is not about its events.
    pub fn excluded(&self) -> BTreeSet<&str> {
        let streams = self.traces().iter().flat_map(|trace| &trace.class().data_stream_classes);
        let classes = streams.flat_map(|stream| &stream.event_record_classes);
        let providers: BTreeSet<&str> =
            classes.filter_map(|class| Some(class.name.as_deref()?.split_once(':')?.0)).collect();
        let has_provider =
            |name: &&str| name.split_once(':').is_some_and(|(provider, _)| providers.contains(provider));
        let texts = self.traces().iter().filter_map(|trace| match trace.class().env(environment::EXCLUDED) {
            Some(EnvValue::String(text)) => Some(text.lines()),
            _ => None,
        });
        texts.flatten().filter(has_provider).collect()
    }

    /// Whether it is of certain LWPs.
    pub fn is_extract_of_lwps(&self) -> bool {
        self.traces().iter().any(|trace| trace.class().env(LWPS.0).is_some())
    }

    /// Whether something of it is an extract of another recording, and says so.
    pub fn is_extract(&self) -> bool {
        let mut env = self.traces().iter().flat_map(|trace| &trace.class().env);
        env.any(|(name, _)| name.starts_with(EXTRACT))
    }

    /// Whether it is of a part of the time.
    pub fn is_extract_of_time(&self) -> bool {
        [BEGIN, END].iter().any(|name| self.read_times(name).is_some())
    }

    /// The LWPs that it is of, each with its process, if it is of certain ones or of certain processes.
    pub(crate) fn extract_tids(&self) -> Option<Lwps> {
        let texts = self.traces().iter().filter_map(|trace| match trace.class().env(TIDS) {
            Some(EnvValue::String(text)) => Some(text),
            _ => None,
        });
        let lwp = |text: &str| match text.split_once('/') {
            Some((process, tid)) => Some((tid.parse().ok()?, Some(process.parse().ok()?))),
            None => Some((text.parse().ok()?, None)),
        };
        let lwps = texts.map(|text| text.split(' ').filter_map(lwp));
        lwps.fold(None, |all: Option<Lwps>, some| Some(all.into_iter().flatten().chain(some).collect()))
    }

    /// Whether it is of certain CPUs.
    pub fn is_extract_of_cpus(&self) -> bool {
        self.traces().iter().any(|trace| trace.class().env(CPUS).is_some())
    }

    /// Notes which streams are of CPUs that extracts leave out.
    pub(super) fn note_left_out_cpus(&mut self) {
        let of: Vec<_> = self.traces().iter().map(|trace| cpus(trace.class())).collect();
        for stream in &mut self.streams {
            if let (Some(ranges), Some(cpu)) = (&of[stream.trace_index()], stream.only_cpu()) {
                stream.is_left_out = !ranges.iter().any(|range| range.contains(&cpu));
            }
        }
    }

    /// When it begins, if all of it is an extract that says so.
    pub(crate) fn extract_begin(&self) -> Option<Timestamp> {
        self.read_times(BEGIN)?.into_iter().min()
    }

    /// When it ends, if all of it is an extract that says so.
    pub(crate) fn extract_end(&self) -> Option<Timestamp> {
        self.read_times(END)?.into_iter().max()
    }

    /// What each trace says under this name, if all do.
    fn read_times(&self, name: &str) -> Option<Vec<Timestamp>> {
        let times = self.traces().iter().map(|trace| match trace.class().env(name) {
            Some(EnvValue::Integer(ns)) => Some(Timestamp::from_ns(*ns)),
            _ => None,
        });
        times.collect()
    }
}
