//! The trace class of traces in tracewing's own layout, for what makes such traces.

use tracewing_ctf::model::{
    ClockClass, DataStreamClass, EventRecordClass, FieldClass, StructureClass, TraceClass,
};
use tracewing_ctf::write;

/// One data stream class with these event record classes, whose ids are counted from 0. Stamps are
/// nanoseconds.
pub fn trace_class(uuid: [u8; 16], events: Vec<(&str, StructureClass)>) -> TraceClass {
    let mut class = TraceClass::new();
    class.uuid = Some(uuid);
    class
        .clock_classes
        .push(ClockClass { offset_seconds: 1_795_235_140, ..ClockClass::new("clock", 1_000_000_000) });
    class.packet_header = Some(write::packet_header_class());
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class("clock"));
    stream.event_header = Some(write::user_event_header_class("clock"));
    stream.common_context = Some(StructureClass::new().with("tid", FieldClass::signed(32)));
    for (id, (name, payload)) in events.into_iter().enumerate() {
        stream.event_record_classes.push(EventRecordClass::new(id as u64, name).with_payload(payload));
    }
    class.data_stream_classes.push(stream);
    class
}
