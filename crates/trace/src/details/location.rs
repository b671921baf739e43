//! Where a length or a selector is, in words: the scope, and the names from its root.

use tracewing_ctf::model::{DataStreamClass, EventRecordClass, FieldLocation, Origin, Scope, StructureClass};

/// Where the class that is being written stands.
pub(super) struct Place<'c> {
    pub(super) scope: Scope,
    /// Structures around it, the scope's own first, each with the name that leads to it and the index of its member on the
    /// way.
    pub(super) structures: Vec<(Option<&'c str>, &'c StructureClass, usize)>,
    pub(super) stream: &'c DataStreamClass,
    pub(super) event: Option<&'c EventRecordClass>,
}

impl Place<'_> {
    /// The field at `location`, as `[Event payload: outer, length]`.
    pub(super) fn text(&self, location: &FieldLocation) -> String {
        let mut path: Vec<&str> = Vec::new();
        let scope = match location.origin {
            Origin::Scope(scope) => scope,
            Origin::Relative { up } => {
                let depth = self.structures.len().saturating_sub(1 + up as usize);
                path.extend(self.names(depth));
                self.scope
            }
            Origin::Search => match self.search(location.path.first().map_or("", String::as_str)) {
                Ok(depth) => {
                    path.extend(self.names(depth));
                    self.scope
                }
                Err(scope) => scope,
            },
        };
        path.extend(location.path.iter().map(String::as_str));
        let scope = match scope {
            Scope::PacketHeader => "Packet header",
            Scope::PacketContext => "Packet context",
            Scope::EventHeader => "Event header",
            Scope::CommonContext => "Event common context",
            Scope::SpecificContext => "Event specific context",
            Scope::Payload => "Event payload",
        };
        format!("[{scope}: {}]", path.join(", "))
    }

    /// The names that lead to the structure at `depth`.
    fn names(&self, depth: usize) -> impl Iterator<Item = &str> {
        self.structures.iter().take(depth + 1).filter_map(|(name, ..)| *name)
    }

    /// The depth of the innermost structure with an earlier member of this name, or the nearest scope before with one.
    fn search(&self, name: &str) -> Result<usize, Scope> {
        let around = self.structures.iter().enumerate().rev();
        let mut found = around.filter(|(_, (_, class, index))| {
            class.members.iter().take(index + 1).any(|member| member.name == name)
        });
        if let Some((depth, _)) = found.next() {
            return Ok(depth);
        }
        let scopes = [
            (Scope::SpecificContext, self.event.and_then(|event| event.specific_context.as_ref())),
            (Scope::CommonContext, self.stream.common_context.as_ref()),
            (Scope::EventHeader, self.stream.event_header.as_ref()),
            (Scope::PacketContext, self.stream.packet_context.as_ref()),
        ];
        let has = |class: &StructureClass| class.member(name).is_some();
        let before = scopes.into_iter().filter(|(scope, _)| *scope < self.scope);
        let found = before.into_iter().find(|(_, class)| class.is_some_and(has));
        Err(found.map_or(Scope::PacketHeader, |(scope, _)| scope))
    }
}
