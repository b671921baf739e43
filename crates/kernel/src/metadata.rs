//! The metadata of a kernel trace: one data stream class, its event record classes, the environment.

use crate::class::Class;
use tracewing_ctf::model::{
    ClockClass, DataStreamClass, DisplayBase, EnvValue, FieldClass, IntegerClass, StructureClass, TraceClass,
    Uuid,
};
use tracewing_ctf::write;

/// The trace class of a kernel trace. `env` is added to, and wins over, what is said here of the machine.
pub(crate) fn trace_class(
    classes: &[Class],
    uuid: Uuid,
    clock: &ClockClass,
    env: &[(String, EnvValue)],
) -> TraceClass {
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class(&clock.id));
    stream.event_header = Some(write::kernel_event_header_class(&clock.id));
    stream.common_context = Some(
        StructureClass::new()
            .with("flags", IntegerClass::unsigned(8).with_base(DisplayBase::Hexadecimal))
            .with("tid", FieldClass::signed(32)),
    );
    stream.event_record_classes = classes.iter().map(|class| class.record.clone()).collect();

    let mut trace = TraceClass::new();
    trace.uuid = Some(uuid);
    let system = rustix::system::uname();
    for (name, value) in [
        ("hostname", system.nodename()),
        ("sysname", system.sysname()),
        ("kernel_release", system.release()),
        ("kernel_version", system.version()),
    ] {
        trace.set_env(name, value.to_string_lossy().into_owned());
    }
    // `domain` is by what readers recognise a kernel trace.
    trace.set_env("domain", "kernel");
    trace.set_env("tracer_name", "tracewing");
    for class in classes {
        for field in &class.booleans {
            trace.set_env(format!("event_{}_unit_{field}", class.record.id), "bool");
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
