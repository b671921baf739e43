//! Records samples and counters to disk: drains the kernel's buffers into a trace folder while the recording
//! runs.

use std::os::fd::OwnedFd;

use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::summary::{LossRange, StreamSummary};
use tracewing_ctf::model::{ClockClass, Uuid};
use tracewing_ctf::tsdl;
use tracewing_files::Dir;
use tracewing_streams::TraceDir;
use tracewing_units::{Cpu, Cycles, Pid};
use tracewing_vocabulary::profile::Class;

use crate::attribute::{Subject, Terms, Trigger, online_cpus, switch};
use crate::clock::Conversion;
use crate::counters::{Available, Counters};
use crate::error::Error;
use crate::events::{self, Payload};
use crate::followed::{Followed, Unsampled};
use crate::jit::{Jit, Named};
use crate::kernel_symbols::KernelSymbols;
use crate::present;
use crate::record::{Record, Stacks, Thread, read};
use crate::ring::{BYTES, BYTES_WITH_STACKS, Ring};
use crate::stream::EventStream;
use crate::unwind::Unwinding;

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
}

/// The kernel's side of a sampled CPU. The ring comes before the event that it is mapped from, so it is
/// dropped first.
struct Sampled {
    number: Cpu,
    ring: Ring,
    /// Records nothing if processes that were already running are followed: their events write into its
    /// buffer.
    sampler: OwnedFd,
    /// A tree's counters are all kept with the first CPU.
    counters: Option<Counters>,
    stream: EventStream,
}

/// Converts records to events.
struct Writer {
    conversion: Conversion,
    symbols: Option<KernelSymbols>,
    /// Where stacks are copied.
    unwinding: Option<Unwinding>,
    jit: Jit,
    throttled: bool,
    kernel: Vec<u64>,
    user: Vec<u64>,
    body: Vec<u8>,
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
        let class = events::trace_class(options.uuid, &options.clock_class, &terms, available.names());
        let folder = TraceDir::create(parent, name, &tsdl::print(&class))?;
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
            cpus.push(Sampled { number: cpu, ring, sampler, counters, stream });
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
        let writer = Writer {
            conversion: Conversion::new(options.clock),
            symbols,
            unwinding: (options.stacks != Stacks::FramePointers).then(Unwinding::default),
            jit: Jit::new(),
            throttled: false,
            kernel: Vec::new(),
            user: Vec::new(),
            body: Vec::new(),
        };
        let followed = is_of_processes.then(|| Followed::new(terms, available));
        let mut recorder =
            Self { cpus, writer, followed, jit: EventStream::of_jit(folder, options.uuid), notices };
        if options.subject == Subject::System {
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
        present::report(|record, thread| {
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
            writer.drain(cpu, flush, followed.as_mut(), counts)?;
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

    /// Stops the recording and writes the remaining records. Those that cannot be written are counted as
    /// lost.
    pub fn finish(mut self) -> Summary {
        self.writer.conversion.refresh();
        let mut summary = Summary::default();
        for (nth, cpu) in self.cpus.iter_mut().enumerate() {
            let mut followed = self.followed.as_mut();
            // Done while the event is enabled, so that the next record reports earlier losses.
            let drained = self.writer.drain(cpu, false, followed.as_deref_mut(), false);
            let _ = switch(&cpu.sampler, false);
            if let Some(followed) = &followed {
                followed.stop(nth);
            }
            let rest = self.writer.drain(cpu, true, followed, nth == 0);
            let drained = drained.and(rest).and(cpu.stream.finish());
            summary.unwritten = summary.unwritten.or(drained.err());
            summary.losses.extend_from_slice(cpu.stream.losses());
            let stream = cpu.stream.summary();
            if stream.packets > 0 || stream.lost > 0 {
                summary.streams.push(stream);
            }
        }
        let named = self.writer.name_jit(&mut self.jit, &mut self.notices);
        summary.unwritten = summary.unwritten.or(named.err());
        summary.losses.extend_from_slice(self.jit.losses());
        if self.jit.summary().packets > 0 || self.jit.summary().lost > 0 {
            summary.streams.push(self.jit.summary());
        }
        if self.writer.throttled {
            self.notices.push(
                "profile: the kernel has left out samples, since they took too much time; record with a lower HZ".to_owned(),
            );
        }
        summary.notices = self.notices;
        summary
    }
}

impl Writer {
    /// Moves a CPU's records into its stream; with `sums`, also the counters of all followed processes.
    fn drain(
        &mut self,
        cpu: &mut Sampled,
        flush: bool,
        mut followed: Option<&mut Followed>,
        sums: bool,
    ) -> Result<(), tracewing_streams::Error> {
        let Sampled { ring, counters, stream, .. } = cpu;
        let mut written = Ok(());
        ring.drain(|raw| {
            let Some((time, record)) = read(raw) else { return };
            if let (Record::Fork { child, .. }, Some(followed)) = (&record, &mut followed) {
                followed.created(*child);
            }
            let stamp = self.conversion.cycles(time);
            let result = self.record(stamp, &record, whose(&record), stream);
            // The ring is drained even after a record could not be written.
            if written.is_ok() {
                written = result;
            }
        });
        if flush {
            if let Some(counters) = counters {
                Payload::of(Thread::NONE, &mut self.body).counters(counters.read());
                let result = stream.event(self.conversion.now(), Class::Counters as u16, &self.body);
                written = written.and(result);
            }
            if let Some(followed) = followed.filter(|_| sums) {
                Payload::of(Thread::NONE, &mut self.body).counters(followed.counters().into_iter());
                let result = stream.event(self.conversion.now(), Class::Counters as u16, &self.body);
                written = written.and(result);
            }
            written = written.and(stream.end_packet());
        }
        written
    }

    fn record(
        &mut self,
        stamp: Cycles,
        record: &Record<'_>,
        thread: Thread,
        stream: &mut EventStream,
    ) -> Result<(), tracewing_streams::Error> {
        if let Some(unwinding) = &mut self.unwinding {
            unwinding.note(record);
        }
        self.jit.note(record);
        let body = &mut self.body;
        let id = match record {
            Record::Sample(sample) => {
                self.kernel.clear();
                self.user.clear();
                sample.frames(&mut self.kernel, &mut self.user);
                if let (Some(unwinding), Some(stack)) = (&mut self.unwinding, &sample.stack) {
                    unwinding.follow(sample.thread.pid, stack, &mut self.user);
                }
                if let Some(symbols) = &mut self.symbols {
                    for frame in &self.kernel {
                        if let Some(function) = symbols.news(*frame) {
                            Payload::of(thread, body).kernel_symbol(&function);
                            stream.event(stamp, Class::KernelSymbol as u16, body)?;
                        }
                    }
                }
                let (kernel, user) = (&self.kernel, &self.user);
                match sample.in_program && kernel.is_empty() && user.is_empty() {
                    true => self.jit.sample(stamp, thread.pid, &[sample.ip]),
                    false => self.jit.sample(stamp, thread.pid, user),
                }
                Payload::of(thread, body).sample(sample.ip, sample.period, sample.in_program, kernel, user);
                Class::Sample as u16
            }
            Record::Mapping(mapping) => {
                Payload::of(thread, body).mapping(mapping);
                Class::Mapping as u16
            }
            Record::Name { name, exec, .. } => {
                Payload::of(thread, body).thread(name, *exec);
                Class::Thread as u16
            }
            Record::Fork { parent, child } => {
                // The child has its parent's name and mappings, which no record reports.
                Payload::of(*parent, body).fork(*child);
                Class::Fork as u16
            }
            Record::Lost(count) => return stream.lose(*count, stamp),
            Record::Throttled => {
                self.throttled = true;
                return Ok(());
            }
        };
        stream.event(stamp, id, body)
    }
}

impl Writer {
    /// Writes the names of functions that programs have compiled at run time, as far as samples are in them.
    fn name_jit(
        &mut self,
        stream: &mut EventStream,
        notices: &mut Vec<String>,
    ) -> Result<(), tracewing_streams::Error> {
        let (named, said) = std::mem::replace(&mut self.jit, Jit::new()).finish();
        notices.extend(said);
        let mut written = Ok(());
        for Named { stamp, thread, functions } in named {
            for function in &functions {
                Payload::of(thread, &mut self.body).jit_symbol(function);
                written = written.and(stream.event(stamp, Class::JitSymbol as u16, &self.body));
            }
        }
        written.and(stream.finish())
    }
}

/// The thread that a record belongs to.
fn whose(record: &Record<'_>) -> Thread {
    match record {
        Record::Sample(sample) => sample.thread,
        Record::Mapping(mapping) => mapping.thread,
        Record::Name { thread, .. } => *thread,
        Record::Fork { parent, .. } => *parent,
        Record::Lost(_) | Record::Throttled => Thread::NONE,
    }
}
