//! The metadata of a kernel trace: one data stream class, its event record classes, the environment.

use crate::class::Class;
use tracewing_ctf::model::{
    ClockClass, DataStreamClass, DisplayBase, EnvValue, FieldClass, IntegerClass, StructureClass, TraceClass,
    Uuid,
};
use tracewing_ctf::write;
use tracewing_vocabulary::context;
use tracewing_vocabulary::environment::{self, Note, note_key};

/// The trace class of a kernel trace. `calls` is the value of [`environment::SYSTEM_CALLS`]; `env` is added
/// to, and wins over, what is said here of the machine.
pub(crate) fn trace_class(
    classes: &[Class],
    calls: Option<&'static str>,
    uuid: Uuid,
    clock: &ClockClass,
    env: &[(String, EnvValue)],
) -> TraceClass {
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class(&clock.id));
    stream.event_header = Some(write::kernel_event_header_class(&clock.id));
    stream.common_context = Some(
        StructureClass::new()
            .with(context::FLAGS[0], IntegerClass::unsigned(8).with_base(DisplayBase::Hexadecimal))
            .with(context::TID[0], FieldClass::signed(32)),
    );
    stream.event_record_classes = classes.iter().map(|class| class.record.clone()).collect();

    let mut trace = TraceClass::new();
    trace.uuid = Some(uuid);
    let system = rustix::system::uname();
    for (name, value) in [
        (environment::HOSTNAME, system.nodename()),
        (environment::SYSNAME, system.sysname()),
        (environment::KERNEL_RELEASE, system.release()),
        (environment::KERNEL_VERSION, system.version()),
        // Which kinds of interrupts there are depends on it.
        (environment::ARCHITECTURE, system.machine()),
    ] {
        trace.set_env(name, value.to_string_lossy().into_owned());
    }
    // `domain` is by what readers recognise a kernel trace.
    trace.set_env(environment::DOMAIN, environment::KERNEL);
    trace.set_env(environment::TRACER_NAME, environment::TRACEWING);
    if let Some(calls) = calls {
        trace.set_env(environment::SYSTEM_CALLS, calls);
    }
    for class in classes {
        for field in &class.booleans {
            trace.set_env(note_key(class.record.id, Note::Unit(field)), "bool");
        }
    }
    for (name, value) in env {
        trace.set_env(name.clone(), value.clone());
    }
    trace.clock_classes.push(clock.clone());
    trace.packet_header = Some(write::packet_header_class());
    trace.data_stream_classes.push(stream);
    trace
}
