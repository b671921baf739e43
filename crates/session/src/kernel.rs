//! Kernel events in a recording: started where they can be had, polled with the user events, summed up alike.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tracewing_abi::region::{Clock, Geometry, Mode};
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::folder::KERNEL;
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::summary::{LossRange, OverwrittenRange, OverwrittenTotal, StreamSummary};
use tracewing_ctf::model::{ClockClass, Uuid};
use tracewing_files::Dir;
use tracewing_kernel::choose::DEFAULT;
use tracewing_kernel::{
    KernelBuffers, KernelClock, KernelFlightRecorder, KernelRecorder, NextTrace, POLL_INTERVAL, Progress,
    Rotated, Scope as KernelScope, default_buffer_kib,
};
use tracewing_units::{Cycles, Pid, Tid};
use tracewing_vocabulary::environment;

use crate::options::{KernelGeometry, Options};
use crate::scope::Scope;
use crate::{Error, preload};

const LOSS_REASON: &str = "kernel buffer full";

/// Checks whether the kernel events that the options request can be recorded.
///
/// # Errors
/// They cannot.
pub(crate) fn check(options: &Options) -> Result<(), Error> {
    match tracewing_kernel::privileges() {
        Err(missing) if are_asked_for(options) => Err(tracewing_kernel::Error::from(missing).into()),
        _ => Ok(()),
    }
}

/// Whether there are to be kernel events, and not only where they can be had.
fn are_asked_for(options: &Options) -> bool {
    // Of samples, that can be meant, too.
    let of_system = options.kernel_events.is_some() && options.system_wide && options.profile.is_none();
    let by_name = options.kernel_events.as_ref().is_some_and(|globs| !globs.is_empty());
    !options.probes.is_empty() || of_system || by_name
}

/// The kernel side of a recording, or nothing.
pub(crate) struct Kernel {
    recorder: Source,
    /// Whether it records certain processes, to which others can be added.
    follows: bool,
    flush: Duration,
    polled: Instant,
    flushed: Instant,
    progress: Progress,
    /// There is no use in polling any more.
    failed: bool,
}

enum Source {
    None,
    Trace(Box<KernelRecorder>),
    Flight(Box<KernelFlightRecorder>),
}

/// What the kernel side amounts to.
#[derive(Default)]
pub(crate) struct KernelSummary {
    pub streams: Vec<StreamSummary>,
    pub losses: Vec<LossRange>,
    pub overwritten: Vec<OverwrittenRange>,
    /// The rest could not be written.
    pub error: Option<tracewing_consumer::Error>,
    /// Files that were executed, and by which process, that [`Kernel::executed`] has not returned yet.
    pub executed: Vec<(Pid, PathBuf)>,
}

impl Kernel {
    /// Starts recording what the options request and this process may record: into a folder in `folder`, or
    /// without `folder` as a flight recorder. Anything else becomes a line for the user.
    ///
    /// # Errors
    /// A requested event does not exist, or fails for a reason that the user must see before the command
    /// starts.
    pub(crate) fn start(
        options: &Options,
        folder: Option<&Dir>,
        clock: &TraceClock,
        clock_class: ClockClass,
        recorded: &Scope,
        note: &mut dyn FnMut(String),
    ) -> Result<Self, Error> {
        let now = Instant::now();
        let none = Self {
            recorder: Source::None,
            follows: false,
            flush: options.flush,
            polled: now,
            flushed: now,
            progress: Progress::default(),
            failed: false,
        };
        if options.kernel_events.is_none() && options.probes.is_empty() {
            return Ok(none);
        }
        if let Err(missing) = tracewing_kernel::privileges() {
            note(format!("the kernel is not recorded: {missing}"));
            return Ok(none);
        }
        let settings = settings(options, clock, clock_class, recorded)?;
        let mut recorder = match folder {
            Some(folder) => {
                let started = KernelRecorder::start(folder, KERNEL, &settings);
                let refused = |error| unwritten(error).map_or_else(Error::from, Error::from);
                Source::Trace(Box::new(started.map_err(refused)?))
            }
            None => Source::Flight(Box::new(KernelFlightRecorder::start(&settings)?)),
        };
        let begun = match recorded {
            Scope::System => Ok(()),
            Scope::Tree(root) => recorder.set_root_pid(*root),
            Scope::Processes { pids, .. } => recorder.follow(pids),
        };
        match begun {
            Err(error @ tracewing_kernel::Error::PidNamespace) if !are_asked_for(options) => {
                note(format!("the kernel is not recorded: {error}"));
                drop(recorder);
                return Ok(none);
            }
            other => other?,
        }
        recorder.notices().iter().cloned().for_each(&mut *note);
        Ok(Self { recorder, follows: matches!(recorded, Scope::Processes { .. }), ..none })
    }

    /// Records processes that run already, too, and threads that those which are recorded have started.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn follow(
        &mut self,
        pids: &[Pid],
        note: &mut dyn FnMut(String),
    ) -> Result<(), tracewing_consumer::Error> {
        if self.failed || !self.follows {
            return Ok(());
        }
        match self.recorder.follow(pids).map_err(unwritten) {
            Ok(()) => Ok(()),
            Err(Err(error)) => Err(error),
            Err(Ok(error)) => {
                note(format!("processes whose kernel events are not recorded: {error}"));
                Ok(())
            }
        }
    }

    /// The threads that are recorded, where these are not all of the machine and can be known.
    pub(crate) fn recorded(&self) -> Option<Vec<Tid>> {
        self.recorder.recorded().filter(|_| self.follows)
    }

    /// Writes what a flight recorder's buffers hold of the time up to `taken` as a trace; nothing where no
    /// kernel events are recorded.
    ///
    /// # Errors
    /// Nothing of it could be written.
    pub(crate) fn snapshot(
        &mut self,
        folder: &Dir,
        uuid: Uuid,
        taken: Cycles,
    ) -> Result<KernelSummary, tracewing_kernel::Error> {
        let Source::Flight(recorder) = &mut self.recorder else { return Ok(KernelSummary::default()) };
        let summary = match recorder.snapshot(folder, KERNEL, uuid, taken).map_err(unwritten) {
            Ok(summary) => summary,
            // The user's part is good.
            Err(Err(error)) => return Ok(KernelSummary { error: Some(error), ..KernelSummary::default() }),
            Err(Ok(error)) => return Err(error),
        };
        let error = summary.unwritten.and_then(|error| unwritten(error).err());
        Ok(KernelSummary { error, ..summarise(&summary.streams) })
    }

    /// Whether there are any events of the kernel's.
    pub(crate) fn is_recorded(&self) -> bool {
        !matches!(self.recorder, Source::None)
    }

    /// Stops a flight recorder, before its last snapshot.
    pub(crate) fn stop(&mut self, note: &mut dyn FnMut(String)) {
        if let Source::Flight(recorder) = &mut self.recorder
            && let Err(error) = recorder.stop()
        {
            note(format!("kernel events cannot be stopped: {error}"));
        }
    }

    /// Reads the kernel's buffers, at most once per [`POLL_INTERVAL`], and writes to the folder what would
    /// otherwise be too old at the next call, `longest` from now.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        longest: Duration,
        note: &mut dyn FnMut(String),
    ) -> Result<(), tracewing_consumer::Error> {
        let flush = now.duration_since(self.flushed) + longest >= self.flush;
        if !flush && now.duration_since(self.polled) < POLL_INTERVAL {
            return Ok(());
        }
        if self.failed {
            return Ok(());
        }
        let recorder = match &mut self.recorder {
            Source::None => return Ok(()),
            Source::Trace(recorder) => recorder,
            // Its buffers are the kernel's; only a number can be given.
            Source::Flight(recorder) => {
                self.polled = now;
                self.progress = recorder.progress().unwrap_or(self.progress);
                return Ok(());
            }
        };
        self.polled = now;
        if flush {
            self.flushed = now;
        }
        match recorder.poll(flush) {
            Ok(progress) => {
                self.progress = progress;
                Ok(())
            }
            Err(error) => {
                self.failed = true;
                let error = unwritten(error)?;
                note(format!("kernel events end here: {error}"));
                Ok(())
            }
        }
    }

    /// Makes the folder of the trace that is to continue this one; `None` where there is no trace.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn prepare(
        &self,
        folder: &Dir,
        uuid: Uuid,
    ) -> Result<Option<NextTrace>, tracewing_kernel::Error> {
        let Source::Trace(recorder) = &self.recorder else { return Ok(None) };
        recorder.prepare(folder, KERNEL, uuid).map(Some)
    }

    /// Ends the trace with what the kernel has recorded by now, and continues in the next one, which begins
    /// with a state dump. Gives the totals of the one that has ended.
    pub(crate) fn rotate(&mut self, next: Option<NextTrace>, note: &mut dyn FnMut(String)) -> KernelSummary {
        let (Source::Trace(recorder), Some(next)) = (&mut self.recorder, next) else {
            return KernelSummary::default();
        };
        match recorder.rotate(next) {
            Ok(Rotated { streams, unwritten: fault }) => {
                let error = match fault.map(unwritten) {
                    None => None,
                    Some(Err(error)) => Some(error),
                    Some(Ok(error)) => {
                        note(format!("no state dump of the kernel after a rotation: {error}"));
                        None
                    }
                };
                self.progress = recorder.progress();
                KernelSummary { error, ..summarise(&streams) }
            }
            Err(error) => {
                self.failed = true;
                note(format!("kernel events end here: {error}"));
                KernelSummary::default()
            }
        }
    }

    /// Files that were executed since the last call, with the process; always empty in a flight recorder.
    pub(crate) fn executed(&self) -> Vec<(Pid, PathBuf)> {
        match &self.recorder {
            Source::Trace(recorder) => recorder.executed(),
            Source::None | Source::Flight(_) => Vec::new(),
        }
    }

    /// The buffer of each CPU, if there are any events of the kernel's.
    pub(crate) fn buffers(&self) -> Option<KernelBuffers> {
        self.recorder.buffers()
    }

    /// Numbers of events and losses so far.
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// Stops and writes the rest.
    pub(crate) fn finish(&mut self, note: &mut dyn FnMut(String)) -> KernelSummary {
        let recorder = match std::mem::replace(&mut self.recorder, Source::None) {
            Source::None => return KernelSummary::default(),
            Source::Trace(recorder) => recorder,
            Source::Flight(recorder) => {
                let shown = recorder.notices().len();
                recorder.finish().into_iter().skip(shown).for_each(note);
                return KernelSummary::default();
            }
        };
        let shown = recorder.notices().len();
        match recorder.finish() {
            Ok(summary) => {
                summary.notices.iter().skip(shown).cloned().for_each(&mut *note);
                let error = summary.unwritten.and_then(|error| unwritten(error).err());
                KernelSummary { error, executed: summary.executed, ..summarise(&summary.streams) }
            }
            Err(error) => {
                note(format!("the kernel trace is incomplete: {error}"));
                KernelSummary::default()
            }
        }
    }
}

/// The options in the words of the crate that records the kernel.
fn settings(
    options: &Options,
    clock: &TraceClock,
    clock_class: ClockClass,
    recorded: &Scope,
) -> Result<tracewing_kernel::Options, Error> {
    let has_choice = options.system_wide || are_asked_for(options);
    let geometry = if has_choice { options.kernel_geometry } else { KernelGeometry::Default };
    let (total, sub_buffer) = kib(&options.geometry);
    Ok(tracewing_kernel::Options {
        globs: patterns(
            options.kernel_events.as_deref().unwrap_or_default(),
            options.preload.as_ref().is_some_and(|preload| preload.locks.is_some()),
        ),
        probes: options.probes.clone(),
        only_probes: options.kernel_events.is_none(),
        scope: match recorded {
            Scope::System => KernelScope::System,
            Scope::Tree(_) => KernelScope::Tree,
            Scope::Processes { children, .. } => KernelScope::Processes { children: *children },
        },
        clock: match clock.kind() {
            Clock::Tsc => KernelClock::X86Tsc,
            Clock::Monotonic => KernelClock::Mono,
        },
        clock_class,
        uuid: random_uuid().map_err(Error::system("getrandom"))?,
        buffer_kib: match geometry {
            KernelGeometry::Default => default_buffer_kib(),
            KernelGeometry::AtLeastDefault => total.max(default_buffer_kib()),
            KernelGeometry::Same => total,
        },
        sub_buffer_kib: (geometry != KernelGeometry::Default).then_some(sub_buffer),
        overwrites: has_choice && options.geometry.mode() == Mode::Overwrite,
        env: match recorded {
            Scope::System => vec![(environment::SCOPE.into(), environment::SYSTEM.into())],
            // Events of its threads need not name the process.
            Scope::Tree(root) => vec![(environment::ROOT_PROCESS.into(), i64::from(root.0).into())],
            Scope::Processes { pids, .. } => {
                let pids: Vec<String> = pids.iter().map(Pid::to_string).collect();
                vec![(environment::ATTACHED_PROCESSES.into(), pids.join(" ").into())]
            }
        },
    })
}

/// KiB of the buffer of a CPU, and of a sub-buffer, for the kernel: it has none smaller than a page.
fn kib(geometry: &Geometry) -> (u32, u32) {
    let kib = |bytes: usize| u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    let bytes = geometry.sub_buffer_bytes();
    (kib(geometry.capacity()), kib(bytes))
}

impl Source {
    fn buffers(&self) -> Option<KernelBuffers> {
        match self {
            Self::None => None,
            Self::Trace(recorder) => Some(recorder.buffers()),
            Self::Flight(recorder) => Some(recorder.buffers()),
        }
    }

    fn set_root_pid(&mut self, pid: Pid) -> Result<(), tracewing_kernel::Error> {
        match self {
            Self::None => Ok(()),
            Self::Trace(recorder) => recorder.set_root_pid(pid),
            Self::Flight(recorder) => recorder.set_root_pid(pid),
        }
    }

    fn follow(&mut self, pids: &[Pid]) -> Result<(), tracewing_kernel::Error> {
        match self {
            Self::None => Ok(()),
            Self::Trace(recorder) => recorder.follow(pids),
            Self::Flight(recorder) => recorder.follow(pids),
        }
    }

    fn recorded(&self) -> Option<Vec<Tid>> {
        match self {
            Self::None => None,
            Self::Trace(recorder) => recorder.recorded().ok(),
            Self::Flight(recorder) => recorder.recorded().ok(),
        }
    }

    fn notices(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::Trace(recorder) => recorder.notices(),
            Self::Flight(recorder) => recorder.notices(),
        }
    }
}

/// Turns an error of writing the trace into that of its other half; returns others as they are.
fn unwritten(error: tracewing_kernel::Error) -> Result<tracewing_kernel::Error, tracewing_consumer::Error> {
    match error {
        tracewing_kernel::Error::Write { path, source } => {
            Err(tracewing_consumer::Error::File { action: "write", path, source })
        }
        other => Ok(other),
    }
}

/// Patterns of the kernel's events that the user's patterns select, with the events of locks if `with_locks`.
fn patterns(globs: &[String], with_locks: bool) -> Vec<String> {
    let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>();
    match (with_locks, globs.is_empty()) {
        (false, _) => globs.to_vec(),
        (true, true) => [owned(DEFAULT), owned(preload::KERNEL_EVENTS)].concat(),
        (true, false) => [globs.to_vec(), owned(preload::KERNEL_EVENTS)].concat(),
    }
}

fn summarise(streams: &[tracewing_kernel::StreamSummary]) -> KernelSummary {
    let mut summary = KernelSummary::default();
    for stream in streams.iter().filter(|stream| stream.packets > 0 || stream.losses.events > 0) {
        let name = format!("channel_{}", stream.cpu);
        summary.losses.extend(stream.losses.ranges.iter().map(|range| LossRange {
            stream: name.clone(),
            reason: LOSS_REASON.to_owned(),
            events: range.events,
            begin: range.begin,
            end: range.end,
        }));
        summary.overwritten.extend(stream.overwritten.iter().map(|range| OverwrittenRange {
            stream: name.clone(),
            sub_buffers: 0,
            bytes: 0,
            events: Some(range.events),
            begin: range.begin,
            end: range.end,
        }));
        let none = OverwrittenTotal::default();
        summary.streams.push(StreamSummary {
            events: stream.events.saturating_sub(stream.dumped),
            state_events: stream.dumped,
            packets: stream.packets,
            bytes: stream.bytes,
            ..StreamSummary::without_file(&name, stream.cpu, stream.losses.events, none)
        });
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_added_to_what_is_always_recorded() {
        assert!(patterns(&[], false).is_empty(), "the default set");
        let all = patterns(&[], true);
        assert!(
            DEFAULT.iter().chain(preload::KERNEL_EVENTS).all(|pattern| all.iter().any(|one| one == pattern))
        );
        let own = ["sched_switch".to_owned()];
        assert_eq!(patterns(&own, false), own);
        assert_eq!(patterns(&own, true)[..1], own);
        assert_eq!(patterns(&own, true).len(), 1 + preload::KERNEL_EVENTS.len());
    }
}
