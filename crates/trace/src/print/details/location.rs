//! Where a length or a selector is: the scope, the names from its root, and the field class there.

use tracewing_ctf::model::{
    DataStreamClass, EventRecordClass, FieldClass, FieldLocation, Origin, Scope, StructureClass,
};

/// Where the class that is being written stands.
pub(super) struct Place<'c> {
    pub(super) scope: Scope,
    /// Structures around it, the scope's own first, each with the name that leads to it and the index of its
    /// member on the way.
    pub(super) structures: Vec<(Option<&'c str>, &'c StructureClass, usize)>,
    pub(super) header: Option<&'c StructureClass>,
    pub(super) stream: &'c DataStreamClass,
    pub(super) event: Option<&'c EventRecordClass>,
}

/// A field that another one refers to.
pub(super) struct Found<'c> {
    /// As `[Event payload: outer, length]`.
    pub(super) text: String,
    pub(super) class: Option<&'c FieldClass>,
}

impl<'c> Place<'c> {
    /// The field at `location`.
    pub(super) fn find(&self, location: &'c FieldLocation) -> Found<'c> {
        let mut path: Vec<&'c str> = Vec::new();
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
        let mut names = path.iter();
        let first = names.next().and_then(|name| self.root(scope)?.member(name));
        let class = first.and_then(|member| names.try_fold(&member.class, |class, name| inside(class, name)));
        let scope = match scope {
            Scope::PacketHeader => "Packet header",
            Scope::PacketContext => "Packet context",
            Scope::EventHeader => "Event header",
            Scope::CommonContext => "Event common context",
            Scope::SpecificContext => "Event specific context",
            Scope::Payload => "Event payload",
        };
        Found { text: format!("[{scope}: {}]", path.join(", ")), class }
    }

    /// The names that lead to the structure at `depth`.
    fn names(&self, depth: usize) -> impl Iterator<Item = &'c str> {
        self.structures.iter().take(depth + 1).filter_map(|(name, ..)| *name)
    }

    fn root(&self, scope: Scope) -> Option<&'c StructureClass> {
        match scope {
            Scope::PacketHeader => self.header,
            Scope::PacketContext => self.stream.packet_context.as_ref(),
            Scope::EventHeader => self.stream.event_header.as_ref(),
            Scope::CommonContext => self.stream.common_context.as_ref(),
            Scope::SpecificContext => self.event?.specific_context.as_ref(),
            Scope::Payload => self.event?.payload.as_ref(),
        }
    }

    /// The depth of the innermost structure with an earlier member of this name, or the nearest scope before
    /// with one.
    fn search(&self, name: &str) -> Result<usize, Scope> {
        let around = self.structures.iter().enumerate().rev();
        let mut found = around.filter(|(_, (_, class, index))| {
            class.members.iter().take(index + 1).any(|member| member.name == name)
        });
        if let Some((depth, _)) = found.next() {
            return Ok(depth);
        }
        let scopes = [Scope::SpecificContext, Scope::CommonContext, Scope::EventHeader, Scope::PacketContext];
        let has = |scope: &Scope| {
            *scope < self.scope && self.root(*scope).is_some_and(|class| class.member(name).is_some())
        };
        Err(scopes.into_iter().find(has).unwrap_or(Scope::PacketHeader))
    }
}

/// The field that `name` leads to; arrays and optionals are passed through, and variants without an option of
/// that name.
fn inside<'c>(class: &'c FieldClass, name: &str) -> Option<&'c FieldClass> {
    match class {
        FieldClass::Structure(class) => class.member(name).map(|member| &member.class),
        FieldClass::StaticArray(class) => inside(&class.element, name),
        FieldClass::DynamicArray(class) => inside(&class.element, name),
        FieldClass::Optional(class) => inside(&class.class, name),
        FieldClass::Variant(class) => {
            let option = class.options.iter().find(|option| option.name == name);
            option
                .map(|option| &option.class)
                .or_else(|| class.options.iter().find_map(|option| inside(&option.class, name)))
        }
        _ => None,
    }
}
