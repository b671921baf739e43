//! The trace's event classes, and their payloads as bytes.
//!
//! Every event's context says of whom it is: `tid` and `pid`. Sequences have their length in front, 16 bits.
//!
//! | id | event | payload |
//! |---|---|---|
//! | 0 | `profile:sample` | `ip`, `period`, `mode`, `kernel` and `user`: return addresses, the innermost (the program counter) first |
//! | 1 | `profile:mapping` | `begin`, `end`: code in the process; `offset`: where in the file `path` it begins; `build_id` of the file, or nothing |
//! | 2 | `profile:thread` | `name` of the thread from now on; `exec`: its process has a new program, and no mappings before their events |
//! | 3 | `profile:fork` | `child_tid`, `child_pid`: a new thread, or process, which has its parent's mappings |
//! | 4 | `profile:kernel_symbol` | `begin`, `end`, `name` of a function of the kernel; before the first sample in it |
//! | 5 | `profile:counters` | since the begin, of the whole tree or, in a recording of the system, of this CPU; one field for each counter |

use tracewing_ctf::model::{
    ClockClass, DataStreamClass, DisplayBase, EnumerationClass, EventRecordClass, FieldClass, IntegerClass,
    StructureClass, TraceClass, Uuid,
};
use tracewing_ctf::write;

use crate::attribute::{Subject, Terms};
use crate::kernel_symbols::Function;
use crate::record::{Mapping, Thread};

pub(crate) const SAMPLE: u16 = 0;
pub(crate) const MAPPING: u16 = 1;
pub(crate) const THREAD: u16 = 2;
pub(crate) const FORK: u16 = 3;
pub(crate) const KERNEL_SYMBOL: u16 = 4;
pub(crate) const COUNTERS: u16 = 5;

/// Frames of one chain that are kept; the kernel's own limit is 127.
const FRAMES: usize = 1024;

/// The trace's metadata.
pub(crate) fn trace_class(
    uuid: Uuid,
    clock: &ClockClass,
    terms: &Terms,
    counters: impl Iterator<Item = &'static str>,
) -> TraceClass {
    let address = || IntegerClass::unsigned(64).with_base(DisplayBase::Hexadecimal);
    let addresses = |class: StructureClass, name: &str| {
        let length = format!("_{name}_length");
        let sequence = FieldClass::sequence(address(), length.as_str());
        class.with(length, FieldClass::unsigned(16)).with(name, sequence)
    };
    let mode = EnumerationClass::new(IntegerClass::unsigned(8)).with("user", 0, 0).with("kernel", 1, 1);
    let sample = StructureClass::new()
        .with("ip", address())
        .with("period", FieldClass::unsigned(64))
        .with("mode", mode);
    let sample = addresses(addresses(sample, "kernel"), "user");
    let range = || StructureClass::new().with("begin", address()).with("end", address());
    let mapping = range()
        .with("offset", address())
        .with("path", FieldClass::string())
        .with("build_id", FieldClass::string());
    let thread =
        StructureClass::new().with("name", FieldClass::string()).with("exec", FieldClass::unsigned(8));
    let fork = StructureClass::new()
        .with("child_tid", FieldClass::signed(32))
        .with("child_pid", FieldClass::signed(32));
    let symbol = range().with("name", FieldClass::string());
    let counters =
        counters.fold(StructureClass::new(), |class, name| class.with(name, FieldClass::unsigned(64)));

    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class(&clock.id));
    stream.event_header = Some(write::kernel_event_header_class(&clock.id));
    let context =
        StructureClass::new().with("tid", FieldClass::signed(32)).with("pid", FieldClass::signed(32));
    stream.common_context = Some(context);
    let classes = [
        (SAMPLE, "profile:sample", sample),
        (MAPPING, "profile:mapping", mapping),
        (THREAD, "profile:thread", thread),
        (FORK, "profile:fork", fork),
        (KERNEL_SYMBOL, "profile:kernel_symbol", symbol),
        (COUNTERS, "profile:counters", counters),
    ];
    stream.event_record_classes = classes
        .into_iter()
        .map(|(id, name, payload)| EventRecordClass::new(id.into(), name).with_payload(payload))
        .collect();

    let mut trace = TraceClass::new();
    trace.uuid = Some(uuid);
    // By the domain readers know that these events say nothing of what threads do.
    trace.set_env("domain", "profile");
    trace.set_env("tracer_name", "tracewing");
    trace.set_env("profile_event", terms.trigger.name());
    trace.set_env("profile_hertz", i64::from(terms.hertz));
    trace.set_env("profile_counters", if terms.subject == Subject::System { "cpu" } else { "tree" });
    trace.set_env(format!("event_{SAMPLE}_unit_period"), terms.trigger.unit());
    trace.set_env(format!("event_{THREAD}_unit_exec"), "bool");
    trace.set_env(format!("event_{COUNTERS}_unit_task_clock"), "ns");
    trace.clock_classes.push(clock.clone());
    trace.packet_header = Some(write::packet_header_class());
    trace.data_stream_classes.push(stream);
    trace
}

/// An event's context and payload, written piece by piece.
pub(crate) struct Payload<'a>(&'a mut Vec<u8>);

impl<'a> Payload<'a> {
    /// Begins with the context.
    pub(crate) fn of(thread: Thread, out: &'a mut Vec<u8>) -> Self {
        out.clear();
        out.extend_from_slice(&thread.tid.to_le_bytes());
        out.extend_from_slice(&thread.pid.to_le_bytes());
        Self(out)
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A text, which ends at the first NUL in it.
    fn text(&mut self, text: &[u8]) {
        self.0.extend(text.iter().take_while(|byte| **byte != 0));
        self.0.push(0);
    }

    fn addresses(&mut self, addresses: &[u64]) {
        let addresses = &addresses[..addresses.len().min(FRAMES)];
        self.0.extend_from_slice(&(addresses.len() as u16).to_le_bytes());
        addresses.iter().for_each(|address| self.number(*address));
    }

    pub(crate) fn sample(mut self, ip: u64, period: u64, in_program: bool, kernel: &[u64], user: &[u64]) {
        self.number(ip);
        self.number(period);
        self.0.push(u8::from(!in_program));
        self.addresses(kernel);
        self.addresses(user);
    }

    pub(crate) fn mapping(mut self, mapping: &Mapping<'_>) {
        self.number(mapping.begin);
        self.number(mapping.end);
        self.number(mapping.offset);
        self.text(mapping.path);
        let build_id: String = mapping.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        self.text(build_id.as_bytes());
    }

    pub(crate) fn thread(mut self, name: &[u8], exec: bool) {
        self.text(name);
        self.0.push(exec.into());
    }

    pub(crate) fn fork(self, child: Thread) {
        self.0.extend_from_slice(&child.tid.to_le_bytes());
        self.0.extend_from_slice(&child.pid.to_le_bytes());
    }

    pub(crate) fn kernel_symbol(mut self, function: &Function<'_>) {
        self.number(function.begin);
        self.number(function.end);
        self.text(function.name.as_bytes());
    }

    pub(crate) fn counters(mut self, values: impl Iterator<Item = u64>) {
        values.for_each(|value| self.number(value));
    }
}
