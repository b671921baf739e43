//! A recording of kernel events to disk: drains an instance of the tracer into a trace folder while it runs.

use crate::asleep::{Asleep, Sleepers};
use crate::buffers::KernelBuffers;
use crate::clock::KernelClock;
use crate::convert::Converter;
use crate::error::Error;
use crate::folder::KernelTrace;
use crate::followed::Followed;
use crate::metadata::trace_class;
use crate::options::Options;
use crate::reader::CpuReader;
use crate::source::{Read, Source};
use crate::statedump::{self, Thread};
use crate::stream::{Programs, Stream, StreamSummary};
use std::path::PathBuf;
use tracewing_ctf::model::{TraceClass, Uuid};
use tracewing_files::Dir;
use tracewing_units::{Cycles, Pid, Tid};

/// How far a recording has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Events written to the trace so far.
    pub events: u64,
    /// How many events of state dumps have been written for threads that there were before; part of `events`,
    /// unless the trace continues another one.
    pub dumped: u64,
    /// Events known to be lost so far.
    pub lost: u64,
    /// Bytes of packets written so far.
    pub bytes: u64,
    /// How full the fullest buffer was when it was last read, in hundredths; 0 in a flight recorder.
    pub fullest: u8,
}

/// Totals and notes of a finished recording.
#[derive(Debug, Default)]
pub struct Summary {
    /// One per CPU, in order of their numbers.
    pub streams: Vec<StreamSummary>,
    /// Lines for the user.
    pub notices: Vec<String>,
    /// Executed files that [`KernelRecorder::executed`] has not returned.
    pub executed: Vec<(Pid, PathBuf)>,
    /// Why the rest could not be written completely, unless [`KernelRecorder::poll`] has returned this error.
    pub unwritten: Option<Error>,
}

/// The folder of a trace that is to continue another one.
#[derive(Debug)]
pub struct NextTrace(KernelTrace);

/// The totals of a trace that another one continues.
#[derive(Debug)]
pub struct Rotated {
    /// One per CPU, in order of their numbers.
    pub streams: Vec<StreamSummary>,
    /// Why not all of it, or of the next one's state dump, could be written.
    pub unwritten: Option<Error>,
}

/// A running recording. Dropped without [`KernelRecorder::finish`], it leaves what was written and removes
/// its instance.
#[derive(Debug)]
pub struct KernelRecorder {
    // Before `source`: the kernel does not remove an instance of which a file is open.
    cpus: Vec<(CpuReader, Stream)>,
    source: Source,
    trace: KernelTrace,
    programs: Programs,
    clock: KernelClock,
    followed: Followed,
    /// The class of the state dump's events.
    dump: statedump::Classes,
    /// What the metadata says; the UUID is that of the first trace.
    metadata: TraceClass,
    /// Whether an earlier trace of the recording has lost events.
    has_lost: bool,
    /// Whether a poll has failed.
    failed: bool,
    /// Events of state dumps at the begin of the recording, or of what it has followed since.
    dumped: u64,
}

impl KernelRecorder {
    /// Begins a recording into a new folder `name` in `parent`. With [`crate::Scope::Tree`] nothing is
    /// recorded before [`KernelRecorder::set_root_pid`].
    ///
    /// # Errors
    /// [`Error::Missing`] without the privileges; [`Error::NothingChosen`]; what fails in tracefs or in the
    /// folder. In every case no instance is left.
    pub fn start(parent: &Dir, name: &str, options: &Options) -> Result<Self, Error> {
        let (source, cpus) = Source::set_up(options, Read::Continuously)?;
        let Options { uuid, clock_class, env, .. } = options;
        let mut metadata = trace_class(&source.classes, source.calls, *uuid, clock_class, env);
        let dump = statedump::add_classes(&mut metadata);
        let trace = KernelTrace::create(parent, name, options.uuid, &tracewing_ctf::tsdl::print(&metadata))?;
        let with_stream = |reader: CpuReader| {
            let stream = Stream::new(reader.cpu);
            (reader, stream)
        };
        let mut recorder = Self {
            cpus: cpus.into_iter().map(with_stream).collect(),
            programs: Programs::new(&source.classes),
            source,
            trace,
            clock: options.clock,
            followed: Followed::default(),
            dump,
            metadata,
            has_lost: false,
            failed: false,
            dumped: 0,
        };
        // Looked at when the kernel records already, so that of no thread both are missing, and stamped
        // before its events.
        let began = options.clock.now();
        recorder.source.record()?;
        let threads = recorder.source.living()?;
        recorder.dump(began, &threads, &[])?;
        Ok(recorder)
    }

    /// Writes the state dump: of all threads before a recording of the whole system, of those of processes
    /// when they are followed. The events of a tree's threads show where they come from.
    fn dump(&mut self, stamp: Cycles, threads: &[Thread], asleep: &[Asleep]) -> Result<(), Error> {
        let ids = self.dump;
        let here = rustix::thread::sched_getcpu();
        let on_this_cpu = self.cpus.iter_mut().find(|(reader, _)| reader.cpu.index() == here);
        let Some((_, stream)) = on_this_cpu else { return Ok(()) };
        let threads = threads.iter().map(|thread| (ids.thread, thread.encode()));
        let asleep = asleep.iter().map(|asleep| (ids.asleep, asleep.encode()));
        threads.chain(asleep).try_for_each(|(id, event)| {
            self.dumped += 1;
            stream.event(stamp, id, &event, &mut self.trace)
        })
    }

    /// Also records all threads of these processes from now on. Processes and threads that have ended are
    /// left out. With [`crate::Scope::Processes`] without `children`, the next call finds threads that start
    /// later.
    ///
    /// # Errors
    /// [`Error::PidNamespace`] in a container; what fails in tracefs or in the folder.
    pub fn follow(&mut self, processes: &[Pid]) -> Result<(), Error> {
        let sleepers = Sleepers::of(processes);
        let began = self.clock.now();
        let new = self.followed.follow(&self.source, processes, statedump::threads_of)?;
        // Looked at when the kernel records them already, and stamped before their events, as far as there
        // are no later ones of others in the stream.
        let threads = statedump::of(&new);
        self.dump(began, &threads, &sleepers.still_asleep(&new))
    }

    /// The numbers of the threads that are recorded, where these are not all of the system.
    ///
    /// # Errors
    /// What fails in tracefs.
    pub fn recorded(&self) -> Result<Vec<Tid>, Error> {
        self.source.recorded()
    }

    /// Begins to record the tree of process `pid`, a number in the initial PID namespace. The process should
    /// wait until this has returned, so that none of its events is missed.
    ///
    /// # Errors
    /// [`Error::PidNamespace`] in a container, where that number is unknown; errors of tracefs.
    ///
    /// # Panics
    /// If the recording is of the whole system.
    pub fn set_root_pid(&mut self, pid: Pid) -> Result<(), Error> {
        self.source.set_root_pid(pid)
    }

    /// Lines for the user about the beginning of the recording.
    pub fn notices(&self) -> &[String] {
        &self.source.notices
    }

    /// The buffer of each CPU, as the kernel has made it.
    pub fn buffers(&self) -> KernelBuffers {
        self.source.buffers
    }

    /// Reads the kernel's buffers into packets, and with `flush` writes all packets to the folder.
    ///
    /// # Errors
    /// Errors of tracefs or of the folder; the folder is complete up to the error. Further polls are useless:
    /// end the recording with [`KernelRecorder::finish`].
    pub fn poll(&mut self, flush: bool) -> Result<Progress, Error> {
        let Self { cpus, trace, programs, .. } = self;
        for (reader, stream) in cpus {
            let drained = reader.drain(&mut Converter { stream, programs, sink: trace });
            let flushed = drained.and_then(|()| if flush { stream.end_packet(trace) } else { Ok(()) });
            if let Err(error) = flushed {
                self.failed = true;
                return Err(error);
            }
        }
        Ok(self.progress())
    }

    /// Makes the folder of a trace that is to continue the present one ([`KernelRecorder::rotate`]).
    ///
    /// # Errors
    /// It exists, or cannot be created or written; then it is not there.
    pub fn prepare(&self, parent: &Dir, name: &str, uuid: Uuid) -> Result<NextTrace, Error> {
        let metadata = TraceClass { uuid: Some(uuid), ..self.metadata.clone() };
        let trace = KernelTrace::create(parent, name, uuid, &tracewing_ctf::tsdl::print(&metadata))?;
        Ok(NextTrace(trace))
    }

    /// Ends the trace with what the kernel has recorded by now, and continues in the next one, which begins
    /// with a state dump. Each event is in one of the two, and of each CPU, those in the first are earlier.
    ///
    /// # Errors
    /// Errors of tracefs; the present trace is then continued.
    pub fn rotate(&mut self, next: NextTrace) -> Result<Rotated, Error> {
        let began = self.clock.now();
        let mut unwritten = match self.poll(true) {
            Err(error @ Error::Write { .. }) => Some(error),
            polled => polled.map(|_| None)?,
        };
        let mut streams = Vec::new();
        for (_, stream) in &mut self.cpus {
            let (summary, written) = stream.cut(&mut self.trace);
            self.has_lost |= summary.losses.events > 0;
            streams.push(summary);
            unwritten = unwritten.or(written.err());
        }
        self.trace = next.0;
        let dumped = self.source.living().and_then(|threads| self.repeat(began, &threads));
        Ok(Rotated { streams, unwritten: unwritten.or(dumped.err()) })
    }

    /// Writes the state dump at the beginning of a trace that continues another one. The state is looked at
    /// while the kernel records, and stamped before its next events.
    fn repeat(&mut self, began: Cycles, threads: &[Thread]) -> Result<(), Error> {
        let Some((_, stream)) = self.cpus.first_mut() else { return Ok(()) };
        let stamp = began.max(stream.continued());
        for thread in threads {
            stream.event(stamp, self.dump.thread, &thread.encode(), &mut self.trace)?;
            stream.count_dumped();
        }
        stream.end_packet(&mut self.trace)
    }

    /// Files that were executed since the last call, with the process, if the event `sched_process_exec` is
    /// recorded. Paths are as they were given to `exec`.
    pub fn executed(&self) -> Vec<(Pid, PathBuf)> {
        self.programs.executed()
    }

    /// Numbers of events and losses so far, and bytes written.
    pub fn progress(&self) -> Progress {
        let begin = Progress { dumped: self.dumped, ..Progress::default() };
        self.cpus.iter().fold(begin, |sum, (reader, stream)| {
            let summary = stream.summary();
            Progress {
                dumped: sum.dumped,
                events: sum.events + summary.events,
                lost: sum.lost.saturating_add(stream.lost()),
                bytes: sum.bytes + summary.bytes,
                fullest: sum.fullest.max(reader.fill()),
            }
        })
    }

    /// Stops, writes the rest, and removes the instance. Events that can no longer be written are counted as
    /// lost.
    ///
    /// # Errors
    /// Errors of tracefs; the instance is removed nevertheless.
    pub fn finish(mut self) -> Result<Summary, Error> {
        let stopped = self.source.stop();
        let drained = stopped.and_then(|()| self.drain_rest());
        let streams = self.cpus.iter().map(|(_, stream)| stream.summary().clone()).collect();
        let has_lost = self.has_lost || self.progress().lost > 0;
        let Self { cpus, source, programs, failed, .. } = self;
        drop(cpus);
        // A lost event may have been the only one of its class.
        let never_seen = source.never_seen(&programs).filter(|_| !has_lost);
        let executed = programs.executed();
        let mut notices = source.remove();
        notices.extend(never_seen);
        let unwritten = match drained {
            Ok(()) => None,
            Err(Error::Write { .. }) if failed => None,
            Err(error @ Error::Write { .. }) => Some(error),
            Err(error) => return Err(error),
        };
        Ok(Summary { streams, notices, executed, unwritten })
    }

    /// Continues after a failed write, so that the lost events are counted; returns the first such error.
    fn drain_rest(&mut self) -> Result<(), Error> {
        let Self { cpus, trace, programs, clock, .. } = self;
        let mut written = Ok(());
        for (reader, stream) in cpus {
            loop {
                match reader.drain_all(&mut Converter { stream, programs, sink: trace }) {
                    Ok(()) => break,
                    // The page that failed is consumed, and no new ones come.
                    Err(error @ Error::Write { .. }) => written = written.and(Err(error)),
                    Err(error) => return Err(error),
                }
            }
            written = written.and(stream.finish(clock.now(), trace));
        }
        written
    }
}
