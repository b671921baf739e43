//! Converts the kernel's records to events.

use tracewing_consumer::clock::TraceClock;
use tracewing_units::Cycles;
use tracewing_vocabulary::profile::Class;

use crate::clock::Conversion;
use crate::events::Payload;
use crate::jit::{Jit, Named};
use crate::kernel_symbols::KernelSymbols;
use crate::processes::Processes;
use crate::record::{Record, Thread};
use crate::stream::EventStream;
use crate::unwind::Unwinding;

/// Converts records to events.
pub(crate) struct Writer {
    pub(crate) conversion: Conversion,
    pub(crate) symbols: Option<KernelSymbols>,
    /// Where stacks are copied.
    pub(crate) unwinding: Option<Unwinding>,
    pub(crate) jit: Jit,
    pub(crate) processes: Processes,
    pub(crate) throttled: bool,
    kernel: Vec<u64>,
    user: Vec<u64>,
    body: Vec<u8>,
}

impl Writer {
    /// `copies`: stacks are copied.
    pub(crate) fn new(clock: TraceClock, symbols: Option<KernelSymbols>, copies: bool) -> Self {
        Self {
            conversion: Conversion::new(clock),
            symbols,
            unwinding: copies.then(Unwinding::default),
            jit: Jit::default(),
            processes: Processes::default(),
            throttled: false,
            kernel: Vec::new(),
            user: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Writes the values of counters.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn counters(
        &mut self,
        values: impl Iterator<Item = u64>,
        stream: &mut EventStream,
    ) -> Result<(), tracewing_streams::Error> {
        Payload::of(Thread::NONE, &mut self.body).counters(values);
        stream.event(self.conversion.now(), Class::Counters as u16, &self.body)
    }

    /// Writes an event for a record.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn record(
        &mut self,
        stamp: Cycles,
        record: &Record<'_>,
        thread: Thread,
        stream: &mut EventStream,
    ) -> Result<(), tracewing_streams::Error> {
        if let Some(unwinding) = &mut self.unwinding {
            unwinding.note(record);
        }
        self.jit.note(stamp, record);
        self.processes.note(record);
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

    /// Writes the names of functions that programs have compiled at run time.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn name(
        &mut self,
        named: Vec<Named>,
        stream: &mut EventStream,
    ) -> Result<(), tracewing_streams::Error> {
        let mut written = Ok(());
        for Named { stamp, thread, functions } in named {
            for function in &functions {
                Payload::of(thread, &mut self.body).jit_symbol(function);
                written = written.and(stream.event(stamp, Class::JitSymbol as u16, &self.body));
            }
        }
        written
    }
}

/// The thread that a record belongs to.
pub(crate) fn whose(record: &Record<'_>) -> Thread {
    match record {
        Record::Sample(sample) => sample.thread,
        Record::Mapping(mapping) => mapping.thread,
        Record::Name { thread, .. } => *thread,
        Record::Fork { parent, .. } => *parent,
        Record::Lost(_) | Record::Throttled => Thread::NONE,
    }
}
