//! Records samples and counters to disk: drains the kernel's buffers into a trace folder while the recording
//! runs.

use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::summary::{LossRange, StreamSummary};
use tracewing_ctf::model::{ClockClass, TraceClass, Uuid};
use tracewing_ctf::tsdl;
use tracewing_files::Dir;
use tracewing_streams::TraceDir;
use tracewing_units::{Cpu, Cycles, Pid};

use crate::attribute::{Subject, Terms, Trigger, online_cpus, switch};
use crate::counters::{Available, Counters, SinceBegin};
use crate::error::Error;
use crate::events;
use crate::followed::{Followed, Unsampled};
use crate::kernel_symbols::KernelSymbols;
use crate::present;
use crate::record::Stacks;
use crate::ring::{BYTES, BYTES_WITH_STACKS, Ring};
use crate::sampled::Sampled;
use crate::stream::EventStream;
use crate::writer::Writer;

/// Settings of a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which processes are sampled.
    pub subject: Subject,
    /// Samples per second on each CPU that is not idle.
    pub hertz: u32,
    /// How the callers of a program's functions are found.
    pub stacks: Stacks,
    /// The clock of the recording, to which the kernel's stamps are converted.
    pub clock: TraceClock,
    /// Description of the clock in the metadata.
    pub clock_class: ClockClass,
    /// UUID of the trace, which each of its packets repeats.
    pub uuid: Uuid,
}

/// Result of a recording.
#[derive(Debug, Default)]
pub struct Summary {
    /// One per CPU with any data, ordered by CPU number; then that of code compiled at run time, if it has
    /// any.
    pub streams: Vec<StreamSummary>,
    /// When samples were lost, and how many.
    pub losses: Vec<LossRange>,
    /// Messages for the user, one line each.
    pub notices: Vec<String>,
    /// Why the last events could not be written.
    pub unwritten: Option<tracewing_streams::Error>,
}

/// A running recording of samples: one buffer per CPU, drained by its owner.
pub struct ProfileRecorder {
    cpus: Vec<Sampled>,
    writer: Writer,
    /// Threads of processes that were already running.
    followed: Option<Followed>,
    /// For names of code that was compiled at run time; written at the end.
    jit: EventStream,
    notices: Vec<String>,
    /// Of its present trace.
    metadata: TraceClass,
    is_of_system: bool,
}

/// What a rotation has come to.
#[derive(Debug)]
pub struct Rotated {
    /// The trace that has ended, without notices.
    pub ended: Summary,
    /// Why the next one does not begin with the threads and mappings of the recorded processes.
    pub unwritten: Option<tracewing_streams::Error>,
}

/// The folder of a trace that is to continue another one.
pub struct NextTrace {
    folder: TraceDir,
    uuid: Uuid,
}

impl ProfileRecorder {
    /// Begins a recording into a new folder `name` in `parent`. For a tree, recording begins at its `exec`.
    ///
    /// # Errors
    /// The kernel provides no samples, or the folder cannot be written. Then no new folder is left.
    pub fn start(parent: &Dir, name: &str, options: &Options) -> Result<Self, Error> {
        Self::begin(parent, name, options).inspect_err(|_| drop(parent.remove_all(name)))
    }

    fn begin(parent: &Dir, name: &str, options: &Options) -> Result<Self, Error> {
        let online = online_cpus();
        let first = online.first().copied().unwrap_or(Cpu(0));
        let terms = Terms::find(options.subject, options.hertz, options.stacks, options.clock.kind(), first)?;
        let available = Available::find(&terms, first);
        let metadata = events::trace_class(options.uuid, &options.clock_class, &terms, available.names());
        let folder = TraceDir::create(parent, name, &tsdl::print(&metadata))?;
        let is_of_processes = matches!(options.subject, Subject::Processes { .. });
        let size = if options.stacks == Stacks::FramePointers { BYTES } else { BYTES_WITH_STACKS };
        let mut cpus = Vec::new();
        for cpu in online {
            let opened = if is_of_processes { terms.open_silent(cpu) } else { terms.open_sampler(cpu) };
            let sampler = opened.map_err(|source| Error::System { call: "perf_event_open", source })?;
            let ring = Ring::map(&sampler, size).map_err(|source| Error::System { call: "mmap", source })?;
            let has_counters = options.subject == Subject::System || cpu == first && !is_of_processes;
            let counters = has_counters.then(|| available.open(&terms, cpu));
            let stream = EventStream::of_cpu(folder.clone(), options.uuid, cpu);
            cpus.push(Sampled {
                number: cpu,
                ring,
                sampler,
                counters,
                counted: SinceBegin::default(),
                stream,
            });
        }
        let symbols = terms.kernel.then(KernelSymbols::of_this_kernel).flatten();
        let mut notices = Vec::new();
        if terms.trigger == Trigger::CpuClock {
            notices.push(
                "profile: no hardware counters here (usual in virtual machines): the CPU's timer takes the samples, \
                 but none while interrupts are off"
                    .to_owned(),
            );
        }
        if !terms.kernel {
            notices.push(
                "profile: programs only, without what the kernel does for them (see /proc/sys/kernel/perf_event_paranoid)"
                    .to_owned(),
            );
        } else if symbols.is_none() {
            notices.push(
                "profile: the kernel hides the names of its functions (see /proc/sys/kernel/kptr_restrict)"
                    .to_owned(),
            );
        }
        let writer = Writer::new(options.clock, symbols, options.stacks != Stacks::FramePointers);
        let followed = is_of_processes.then(|| Followed::new(terms, available));
        let is_of_system = options.subject == Subject::System;
        let jit = EventStream::of_jit(folder, options.uuid);
        let mut recorder = Self { cpus, writer, followed, jit, notices, metadata, is_of_system };
        if is_of_system {
            recorder.begin_with_all(options.clock.now())?;
        }
        Ok(recorder)
    }

    /// Records all existing threads and mappings. They are read after the kernel has begun to report changes,
    /// and stamped before these.
    fn begin_with_all(&mut self, began: Cycles) -> Result<(), Error> {
        for cpu in &self.cpus {
            switch(&cpu.sampler, true).map_err(|source| Error::System { call: "ioctl", source })?;
            cpu.counters.iter().for_each(Counters::enable);
        }
        let Self { cpus, writer, .. } = self;
        let Some(Sampled { stream, .. }) = cpus.first_mut() else { return Ok(()) };
        let mut written = Ok(());
        present::report_of(&present::processes(), |record, thread| {
            if written.is_ok() {
                written = writer.record(began, record, thread, stream);
            }
        });
        Ok(written?)
    }

    /// Begins to sample all threads of a running process; only with [`Subject::Processes`]. Does nothing for
    /// a child of a followed process, which is already followed. Returns which threads cannot be sampled.
    ///
    /// # Errors
    /// The trace cannot be written; what was written before is valid.
    pub fn follow(&mut self, process: Pid) -> Result<Unsampled, tracewing_streams::Error> {
        let began = self.writer.conversion.now();
        // The records report which processes have inherited their events.
        self.poll(false)?;
        let Self { cpus, writer, followed, .. } = self;
        let Some(followed) = followed.as_mut().filter(|followed| !followed.is_heir(process)) else {
            return Ok(Unsampled::none(process));
        };
        let outputs: Vec<_> = cpus.iter().map(|cpu| (cpu.number, &cpu.sampler)).collect();
        let unsampled = followed.follow(process, &outputs);
        let Some(Sampled { stream, .. }) = cpus.first_mut() else { return Ok(unsampled) };
        let mut written = Ok(());
        // Read after the kernel has begun to report changes, so that nothing is missed.
        present::report_of(&[process], |record, thread| {
            if written.is_ok() {
                written = writer.record(began, record, thread, stream);
            }
        });
        written.map(|()| unsampled)
    }

    /// Messages for the user about the start of the recording, one line each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Moves the kernel's records into packets. With `flush`, also reads the counters and writes all packets.
    ///
    /// # Errors
    /// The trace cannot be written; what was written before is valid.
    pub fn poll(&mut self, flush: bool) -> Result<(), tracewing_streams::Error> {
        self.writer.conversion.refresh();
        let Self { cpus, writer, followed, .. } = self;
        for (nth, cpu) in cpus.iter_mut().enumerate() {
            let counts = nth == 0 && flush;
            cpu.drain(writer, flush, followed.as_mut(), counts)?;
        }
        writer.jit.look();
        Ok(())
    }

    /// Events written, events lost, and bytes written so far.
    pub fn progress(&self) -> (u64, u64, u64) {
        let summaries = self.cpus.iter().map(|cpu| cpu.stream.summary());
        summaries.fold((0, 0, 0), |(events, lost, bytes), summary| {
            (events + summary.events, lost + summary.lost, bytes + summary.bytes)
        })
    }

    /// Makes the folder of a trace that is to continue the present one ([`ProfileRecorder::rotate`]).
    ///
    /// # Errors
    /// It exists, or cannot be created or written; then it is not there.
    pub fn prepare(&self, parent: &Dir, name: &str, uuid: Uuid) -> Result<NextTrace, Error> {
        let metadata = TraceClass { uuid: Some(uuid), ..self.metadata.clone() };
        Ok(NextTrace { folder: TraceDir::create(parent, name, &tsdl::print(&metadata))?, uuid })
    }

    /// Ends the trace with what the kernel has recorded by now, and continues in the next one. That one
    /// begins with the threads and mappings of the recorded processes, and its counters begin at 0.
    pub fn rotate(&mut self, next: NextTrace) -> Rotated {
        let began = self.writer.conversion.now();
        let mut ended = Summary { unwritten: self.poll(true).err(), ..Summary::default() };
        let last = self.cpus.first().map_or(Cycles::ZERO, |cpu| cpu.stream.end());
        for cpu in &mut self.cpus {
            let stream = cpu.stream.next(next.folder.clone(), next.uuid);
            ended.add(&mut std::mem::replace(&mut cpu.stream, stream), Ok(()));
            cpu.counted.restart();
        }
        self.followed.iter_mut().for_each(Followed::restart);
        // At once, so that few of them end before.
        let repeated = self.repeat(began.max(last));
        let mut jit = std::mem::replace(&mut self.jit, EventStream::of_jit(next.folder, next.uuid));
        let named = self.writer.jit.cut();
        let written = self.writer.name(named, &mut jit);
        ended.add(&mut jit, written);
        Rotated { ended, unwritten: repeated.err() }
    }

    /// Writes the threads and mappings of the recorded processes, which earlier traces have. Records that are
    /// still in the kernel's buffers are later than `stamp`.
    fn repeat(&mut self, stamp: Cycles) -> Result<(), tracewing_streams::Error> {
        let Self { cpus, writer, .. } = self;
        let Some(Sampled { stream, .. }) = cpus.first_mut() else { return Ok(()) };
        writer.symbols.iter_mut().for_each(KernelSymbols::restart);
        let living = if self.is_of_system { present::processes() } else { writer.processes.living() };
        let mut written = Ok(());
        present::report_of(&living, |record, thread| {
            if written.is_ok() {
                stream.next_is_dumped();
                written = writer.record(stamp, record, thread, stream);
            }
        });
        written.and(stream.end_packet())
    }

    /// Stops the recording and writes the remaining records. Those that cannot be written are counted as
    /// lost.
    pub fn finish(mut self) -> Summary {
        self.writer.conversion.refresh();
        let mut summary = Summary::default();
        for (nth, cpu) in self.cpus.iter_mut().enumerate() {
            let mut followed = self.followed.as_mut();
            // Done while the event is enabled, so that the next record reports earlier losses.
            let drained = cpu.drain(&mut self.writer, false, followed.as_deref_mut(), false);
            let _ = switch(&cpu.sampler, false);
            if let Some(followed) = &followed {
                followed.stop(nth);
            }
            let rest = cpu.drain(&mut self.writer, true, followed, nth == 0);
            summary.add(&mut cpu.stream, drained.and(rest));
        }
        let (named, said) = std::mem::take(&mut self.writer.jit).finish();
        self.notices.extend(said);
        let written = self.writer.name(named, &mut self.jit);
        summary.add(&mut self.jit, written);
        if self.writer.throttled {
            self.notices.push(
                "profile: the kernel has left out samples, since they took too much time; record with a lower HZ".to_owned(),
            );
        }
        summary.notices = self.notices;
        summary
    }
}

impl Summary {
    /// Ends a stream and adds what it amounts to; `written` is how writing went until now.
    fn add(&mut self, stream: &mut EventStream, written: Result<(), tracewing_streams::Error>) {
        let written = written.and(stream.finish());
        if self.unwritten.is_none() {
            self.unwritten = written.err();
        }
        self.losses.extend_from_slice(stream.losses());
        let stream = stream.summary();
        if stream.packets > 0 || stream.lost > 0 {
            self.streams.push(stream);
        }
    }
}
