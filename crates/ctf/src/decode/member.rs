//! Members of scopes, looked up by name once and read from many event records.

use super::compile::Decoder;
use super::program::{Kind, Program};
use super::record::RecordField;
use crate::model::Scope;

/// A member of a scope's structure in one event record class; see [`Decoder::member`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberHandle {
    pub(super) stream: usize,
    /// The event record class; for scopes that all of a data stream's classes share it does not matter.
    pub(super) event: usize,
    pub(super) scope: Scope,
    pub(super) index: u32,
    /// Bits from the scope's aligned start, if always the same.
    pub(super) distance: Option<u64>,
    /// Its place among the scope's fields in event records that need no walk.
    pub(super) field: Option<u32>,
}

impl Decoder {
    /// Looks up a member of a scope's structure by name; members of nested structures are not found. Reading
    /// it with [`Event::member`](super::Event::member) needs no search and, if everything before it has a
    /// known size, reads nothing else.
    ///
    /// `stream` and `event` are the indices of the data stream class in the trace class and of the event
    /// record class in the data stream class.
    pub fn member(&self, stream: usize, event: usize, scope: Scope, name: &str) -> Option<MemberHandle> {
        let program = self.program(stream, event, scope)?;
        let index = index_of(program, name)?;
        let Kind::Structure { first, .. } = program.nodes[0].kind else { return None };
        let mut distance = Some(0_u64);
        for node in &program.nodes[first as usize..][..index as usize] {
            let start =
                distance.and_then(|distance| distance.checked_next_multiple_of(u64::from(node.align)));
            distance = start.filter(|_| node.skip != u64::MAX).and_then(|start| start.checked_add(node.skip));
        }
        let align = program.nodes[(first + index) as usize].align;
        let distance = distance.and_then(|distance| distance.checked_next_multiple_of(u64::from(align)));
        let field = self.field(stream, event, scope, index);
        Some(MemberHandle { stream, event, scope, index, distance, field })
    }

    /// The same member, to be read from the [`Event::record`](super::Event::record) of event records of its
    /// class, without checking the class. `None` if they need a walk, or the member is a compound.
    pub fn record_field(&self, member: MemberHandle) -> Option<RecordField> {
        let layout = self.streams.get(member.stream)?.events.get(member.event)?.layout.as_ref()?;
        let field = layout.field(member.scope.after_header()?, member.field?)?;
        (!field.is_compound()).then(|| RecordField(field.clone()))
    }

    /// The place of a scope's member among the fields of that scope's layout.
    fn field(&self, stream: usize, event: usize, scope: Scope, index: u32) -> Option<u32> {
        let layout = self.streams.get(stream)?.events.get(event)?.layout.as_ref()?;
        layout.member(scope.after_header()?, index as usize)?.try_into().ok()
    }

    /// The program for a scope.
    pub(crate) fn program(&self, stream: usize, event: usize, scope: Scope) -> Option<&Program> {
        let stream = self.streams.get(stream)?;
        match scope {
            Scope::PacketHeader => self.packet_header.as_ref(),
            Scope::PacketContext => stream.packet_context.as_ref(),
            Scope::EventHeader => stream.event_header.as_ref(),
            Scope::CommonContext => stream.common_context.as_ref(),
            Scope::SpecificContext => stream.events.get(event)?.specific_context.as_ref(),
            Scope::Payload => stream.events.get(event)?.payload.as_ref(),
        }
    }
}

/// The index of the member called `name` of a program's root structure.
pub(super) fn index_of(program: &Program, name: &str) -> Option<u32> {
    let Kind::Structure { first, count, .. } = program.nodes[0].kind else { return None };
    (0..count).find(|index| program.nodes[(first + index) as usize].name.as_deref() == Some(name))
}
