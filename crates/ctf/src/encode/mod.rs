//! Writes data streams: the decoder's counterpart.
//!
//! [`StreamWriter`] takes packets and event records and gives bytes; the metadata that goes with them is
//! printed from the same trace class. Values are checked against their classes: what does not fit is an
//! [`Error::Value`](crate::Error::Value) that names the field, and no part of the event record is written.
//!
//! Values come from anything that is [`Fields`]: a [`Record`] made by hand, or a decoded [`Event`].
//!
//! What readers need to find their way the writer fills in by itself: magic number, UUID, ids, sizes, stamps,
//! counters.
//!
//! ```
//! use std::sync::Arc;
//! use tracewing_ctf::decode::{Decoder, Step, StreamReader};
//! use tracewing_ctf::encode::{PacketEnd, PacketStart, Record, StreamWriter};
//! use tracewing_ctf::model::{DataStreamClass, EventRecordClass, FieldClass, Scope, StructureClass, TraceClass};
//!
//! let mut stream = DataStreamClass::new(0);
//! let payload = StructureClass::new().with("depth", FieldClass::unsigned(16)).with("name", FieldClass::string());
//! stream.event_record_classes.push(EventRecordClass::new(0, "enqueued").with_payload(payload));
//! let mut trace = TraceClass::new();
//! trace.data_stream_classes.push(stream);
//! let classes = Decoder::new(Arc::new(trace))?;
//!
//! let mut writer = StreamWriter::new(classes.clone(), 0);
//! writer.begin_packet(&PacketStart::default(), &Record::new())?;
//! let record = Record::new().with(Scope::Payload, "depth", 3_u16).with(Scope::Payload, "name", "ada");
//! writer.event(0, None, &record)?;
//! writer.end_packet(&PacketEnd::default())?;
//! assert_eq!(writer.bytes(), b"\x03\0ada\0");
//!
//! let mut reader = StreamReader::new(classes, writer.take());
//! while reader.advance()? != Step::Event {}
//! assert_eq!(Record::of(&reader.event()), record);
//! # Ok::<(), tracewing_ctf::Error>(())
//! ```

mod bits;
mod body;
mod known;
mod leaf;
mod leb128;
mod scalar;
mod scope;
mod stream;
mod value;

pub use scope::ScopeWriter;
pub use stream::{PacketEnd, PacketStart, StreamWriter};
pub use value::{FieldValue, Record};

use crate::decode::program::{Kind, NONE, Node, Program, Role};
use crate::decode::{Event, StreamReader};
use crate::model::Scope;

/// Gives the values of fields, in the order of their classes.
pub trait Fields {
    /// Shows the members of a scope's structure; nothing if there are none. It may be asked several times.
    fn show(&self, scope: Scope, to: &mut ScopeWriter<'_>);
}

impl Fields for Event<'_> {
    fn show(&self, scope: Scope, to: &mut ScopeWriter<'_>) {
        self.visit(scope, to);
    }
}

/// Of a reader, the current packet's header and context.
impl<B: AsRef<[u8]>> Fields for StreamReader<B> {
    fn show(&self, scope: Scope, to: &mut ScopeWriter<'_>) {
        self.visit_packet(scope, to);
    }
}

/// Values of an event record header's id field that express `id`: the id itself, or one that announces
/// another form.
fn candidates(program: &Program, id: u64) -> Vec<u64> {
    let of_event_id = |node: &Node| {
        let integer = node.kind.integer().filter(|integer| integer.role == Role::EventId)?;
        Some(integer.slot).filter(|slot| *slot != NONE)
    };
    let slots: Vec<u32> = program.nodes.iter().filter_map(of_event_id).collect();
    let variants = program.nodes.iter().filter_map(|node| match &node.kind {
        Kind::Variant(variant) if slots.contains(&variant.slot) => Some(variant),
        _ => None,
    });
    let others = variants.flat_map(|variant| variant.ranges.iter().map(|(_, last, _)| *last));
    std::iter::once(id).chain(others).collect()
}
