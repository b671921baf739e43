//! Kernel events in flight-recorder mode: the newest ones stay in memory until a snapshot is requested.
//!
//! The kernel's own buffer is the flight recorder: its instance is in overwrite mode, where an event for
//! which there is no room takes the place of the oldest page, so nothing is read, woken up or copied between
//! snapshots. A snapshot reads all pages out, those that are partly filled too, into
//! [`Kept`], from which it is written, and from which the next snapshot gets what the kernel no longer has.
//! Memory per CPU: the kernel's buffer, and as much again once a snapshot was taken.
//!
//! A snapshot is a trace of its own, as [`crate::KernelRecorder`] writes them. Its state dump
//! ([`crate::statedump`]) comes last, also for a process tree, as the events that named the threads may have
//! been overwritten.

use crate::buffers::KernelBuffers;
use crate::error::Error;
use crate::folder::KernelTrace;
use crate::followed::Followed;
use crate::kept::Kept;
use crate::metadata::trace_class;
use crate::options::Options;
use crate::reader::CpuReader;
use crate::recorder::{Progress, Summary};
use crate::source::{Read, Source, in_initial_pid_namespace};
use crate::statedump;
use crate::stream::{Programs, Stream};
use tracewing_ctf::model::Uuid;
use tracewing_files::Dir;
use tracewing_units::{Cycles, Pid, Tid};

/// A flight recorder of kernel events. Dropped, it removes its instance; snapshots stay.
#[derive(Debug)]
pub struct KernelFlightRecorder {
    // Before `source`: the kernel does not remove an instance of which a file is open.
    cpus: Vec<(CpuReader, Kept)>,
    source: Source,
    programs: Programs,
    options: Options,
    followed: Followed,
    /// When it began, by the recording's clock.
    began: Cycles,
}

impl KernelFlightRecorder {
    /// Begins; with [`crate::Scope::Tree`] nothing is recorded before [`KernelFlightRecorder::set_root_pid`].
    /// [`Options::buffer_kib`] bounds what a snapshot holds of each CPU.
    ///
    /// # Errors
    /// As [`crate::KernelRecorder::start`].
    pub fn start(options: &Options) -> Result<Self, Error> {
        let (source, cpus) = Source::set_up(options, Read::OnDemand)?;
        let with_pages = |reader: CpuReader| {
            let kept = Kept::new(reader.layout(), reader.most_bytes());
            (reader, kept)
        };
        let recorder = Self {
            cpus: cpus.into_iter().map(with_pages).collect(),
            programs: Programs::new(&source.classes),
            source,
            options: options.clone(),
            followed: Followed::default(),
            began: options.clock.now(),
        };
        recorder.source.record()?;
        Ok(recorder)
    }

    /// As [`crate::KernelRecorder::set_root_pid`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn set_root_pid(&mut self, pid: Pid) -> Result<(), Error> {
        self.source.set_root_pid(pid)
    }

    /// As [`crate::KernelRecorder::follow`].
    ///
    /// # Errors
    /// As there.
    pub fn follow(&mut self, processes: &[Pid]) -> Result<(), Error> {
        self.followed.follow(&self.source, processes, statedump::threads_of).map(drop)
    }

    /// As [`crate::KernelRecorder::recorded`].
    ///
    /// # Errors
    /// As there.
    pub fn recorded(&self) -> Result<Vec<Tid>, Error> {
        self.source.recorded()
    }

    /// Lines for the user about the beginning of the recording.
    pub fn notices(&self) -> &[String] {
        &self.source.notices
    }

    /// As [`crate::KernelRecorder::buffers`].
    pub fn buffers(&self) -> KernelBuffers {
        self.source.buffers
    }

    /// Events recorded since the beginning, overwritten ones included, and those that were lost for other
    /// reasons. No bytes: nothing is written before a snapshot.
    ///
    /// # Errors
    /// What fails in tracefs.
    pub fn progress(&self) -> Result<Progress, Error> {
        self.cpus.iter().try_fold(Progress::default(), |sum, (reader, _)| {
            let counts = reader.counts()?;
            Ok(Progress {
                events: sum.events.saturating_add(counts.recorded),
                lost: sum.lost.saturating_add(counts.dropped),
                ..sum
            })
        })
    }

    /// Writes the newest events of every CPU as a trace into a new folder `name` in `parent`, up to those of
    /// the moment `taken`, which is not after the call, while recording continues. CPUs are read one after
    /// the other: what they recorded since then would be missing on some of them, and is left out, unless
    /// all that a CPU had at that moment is overwritten. What an earlier snapshot has written is in this one
    /// too, as far as it is not overwritten; each trace needs a `uuid` of its own.
    ///
    /// # Errors
    /// What fails in tracefs, or before anything was written. What fails later is
    /// [`Summary::unwritten`], and the folder good up to there. In every case the recording continues.
    pub fn snapshot(
        &mut self,
        parent: &Dir,
        name: &str,
        uuid: Uuid,
        taken: Cycles,
    ) -> Result<Summary, Error> {
        // All pages first: converting takes much longer than reading, and the kernel overwrites meanwhile.
        for (reader, kept) in &mut self.cpus {
            reader.drain(kept)?;
        }
        let threads = self.threads()?;

        let Options { clock_class, env, .. } = &self.options;
        let mut metadata = trace_class(&self.source.classes, self.source.calls, uuid, clock_class, env);
        let dump = statedump::add_classes(&mut metadata);
        let mut trace = KernelTrace::create(parent, name, uuid, &tracewing_ctf::tsdl::print(&metadata))?;

        let here = rustix::thread::sched_getcpu();
        let mut summary = Summary::default();
        let mut written = Ok(());
        for (reader, kept) in &self.cpus {
            let mut stream = Stream::new(reader.cpu).up_to(kept.until(taken));
            written = written.and(kept.convert(&mut stream, &self.programs, &mut trace));
            let end = taken.max(stream.last());
            if reader.cpu.index() == here {
                for thread in &threads {
                    written = written.and(stream.event(end, dump.thread, &thread.encode(), &mut trace));
                }
            }
            written = written.and(stream.finish(end, &mut trace));
            let mut of_cpu = stream.summary().clone();
            of_cpu.overwritten = kept.gone_since(self.began);
            summary.streams.push(of_cpu);
        }
        summary.unwritten = written.err();
        Ok(summary)
    }

    /// Records no more. A snapshot taken then has the last events.
    ///
    /// # Errors
    /// What fails in tracefs.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.source.stop()
    }

    /// Ends the recording without a snapshot and gives the notices, with what went wrong while removing the
    /// instance.
    pub fn finish(self) -> Vec<String> {
        let Self { cpus, source, .. } = self;
        drop(cpus);
        source.remove()
    }

    /// The recorded threads that are alive, and ended threads with events in the kept pages. Empty in a PID
    /// namespace in which thread numbers differ from those in events.
    fn threads(&self) -> Result<Vec<statedump::Thread>, Error> {
        if !in_initial_pid_namespace() {
            return Ok(Vec::new());
        }
        let mut threads = self.source.living()?;
        let recorded = self.cpus.iter().flat_map(|(_, kept)| kept.tids(&self.programs)).collect();
        threads.extend(statedump::ended(&recorded, &self.source.saved_processes()));
        Ok(threads)
    }
}
