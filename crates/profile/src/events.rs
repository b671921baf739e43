//! The trace's event classes and the encoding of their payloads.
//!
//! `tracewing_vocabulary::profile` declares the classes; a class's id is its index there. The context of
//! every event holds its thread: `tid` and `pid`. Sequences are prefixed with their length in 16 bits.

use tracewing_ctf::model::{
    ClockClass, DataStreamClass, DisplayBase, EnumerationClass, EventRecordClass, FieldClass, IntegerClass,
    StructureClass, TraceClass, Uuid,
};
use tracewing_ctf::write;
use tracewing_vocabulary::context;
use tracewing_vocabulary::environment::{self, Note, note_key};
use tracewing_vocabulary::profile::{self, Class, Sample};
use tracewing_vocabulary::{Field, FieldKind};

use crate::attribute::{Subject, Terms};
use crate::counters::TASK_CLOCK;
use crate::kernel_symbols;
use crate::perf_map;
use crate::record::{Mapping, Stacks, Thread};

/// Maximum number of frames kept per chain; the kernel's own limit is 127.
pub(crate) const FRAMES: usize = 1024;

pub(crate) fn trace_class(
    uuid: Uuid,
    clock: &ClockClass,
    terms: &Terms,
    counters: impl Iterator<Item = &'static str>,
) -> TraceClass {
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class(&clock.id));
    stream.event_header = Some(write::kernel_event_header_class(&clock.id));
    let context = StructureClass::new()
        .with(context::TID[0], FieldClass::signed(32))
        .with(context::PROCESS[0], FieldClass::signed(32));
    stream.common_context = Some(context);
    let counters = counters.collect::<Vec<_>>();
    stream.event_record_classes =
        (0..).zip(Class::ALL).map(|(id, class)| event_class(id, *class, &counters)).collect();

    let mut trace = TraceClass::new();
    trace.uuid = Some(uuid);
    // Readers recognise by the domain that these events do not describe what threads do.
    trace.set_env(environment::DOMAIN, environment::PROFILE);
    trace.set_env(environment::TRACER_NAME, environment::TRACEWING);
    trace.set_env(environment::PROFILE_EVENT, terms.trigger.name());
    trace.set_env(environment::PROFILE_HERTZ, i64::from(terms.hertz));
    let call_graph = match terms.stacks {
        Stacks::FramePointers => environment::FRAME_POINTERS,
        Stacks::Copied { .. } => environment::STACK_COPIES,
    };
    trace.set_env(environment::PROFILE_CALL_GRAPH, call_graph);
    let of = if terms.subject == Subject::System { environment::OF_CPU } else { environment::OF_TREE };
    trace.set_env(environment::PROFILE_COUNTERS, of);
    let mut unit =
        |class: Class, field, unit: &str| trace.set_env(note_key(class as u64, Note::Unit(field)), unit);
    unit(Class::Sample, Sample::period.name, terms.trigger.unit());
    unit(Class::Thread, profile::Thread::exec.name, "bool");
    unit(Class::Counters, TASK_CLOCK, "ns");
    trace.clock_classes.push(clock.clone());
    trace.packet_header = Some(write::packet_header_class());
    trace.data_stream_classes.push(stream);
    trace
}

/// Builds a class from its declaration; classes of counters have one field per counter.
fn event_class(id: u64, class: Class, counters: &[&'static str]) -> EventRecordClass {
    let declared = class.fields().iter().fold(StructureClass::new(), with_field);
    let number = || FieldClass::unsigned(64);
    let payload = match class {
        Class::Counters => counters.iter().fold(declared, |payload, name| payload.with(*name, number())),
        _ => declared,
    };
    EventRecordClass::new(id, class.name()).with_payload(payload)
}

fn with_field(payload: StructureClass, field: &Field) -> StructureClass {
    let base = if field.is_address { DisplayBase::Hexadecimal } else { DisplayBase::Decimal };
    match field.kind {
        FieldKind::Unsigned(bits) => {
            payload.with(field.name, IntegerClass::unsigned(bits.into()).with_base(base))
        }
        FieldKind::Signed(bits) => payload.with(field.name, FieldClass::signed(bits.into())),
        FieldKind::Boolean => payload.with(field.name, FieldClass::unsigned(8)),
        FieldKind::Text => payload.with(field.name, FieldClass::string()),
        FieldKind::Numbers => {
            let length = format!("_{}_length", field.name);
            let numbers = FieldClass::sequence(IntegerClass::unsigned(64).with_base(base), length.as_str());
            payload.with(length, FieldClass::unsigned(16)).with(field.name, numbers)
        }
        FieldKind::Enumeration(labels) => {
            let class = EnumerationClass::new(IntegerClass::unsigned(8));
            let add = |class: EnumerationClass, (number, label): &(i64, &'static str)| {
                class.with(*label, *number, *number)
            };
            payload.with(field.name, labels.iter().fold(class, add))
        }
    }
}

/// Builds an event's context and payload.
pub(crate) struct Payload<'a>(&'a mut Vec<u8>);

impl<'a> Payload<'a> {
    /// Begins with the context.
    pub(crate) fn of(thread: Thread, out: &'a mut Vec<u8>) -> Self {
        out.clear();
        out.extend_from_slice(&thread.tid.0.to_le_bytes());
        out.extend_from_slice(&thread.pid.0.to_le_bytes());
        Self(out)
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A string, cut at the first NUL.
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
        self.0.extend_from_slice(&child.tid.0.to_le_bytes());
        self.0.extend_from_slice(&child.pid.0.to_le_bytes());
    }

    pub(crate) fn kernel_symbol(mut self, function: &kernel_symbols::Function<'_>) {
        self.number(function.begin);
        self.number(function.end);
        self.text(function.name.as_bytes());
    }

    pub(crate) fn jit_symbol(mut self, function: &perf_map::Function) {
        self.number(function.begin);
        self.number(function.end);
        self.text(&function.name);
    }

    pub(crate) fn counters(mut self, values: impl Iterator<Item = u64>) {
        values.for_each(|value| self.number(value));
    }
}
