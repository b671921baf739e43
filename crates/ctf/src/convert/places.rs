//! Where a field class stands among the others, and which field a reference from there means.

use crate::model::{FieldClass, FieldLocation, Member, Origin, Scope, StructureClass};

/// The scopes of an event record class, with the packet's, as they are before the conversion.
pub(super) type Scopes<'c> = [Option<&'c StructureClass>; 6];

/// A place in a scope: the compounds around it.
pub(super) struct Places<'c> {
    pub(super) scopes: Scopes<'c>,
    pub(super) scope: Scope,
    /// From the scope's root structure inwards; arrays, optionals and variants are passed through.
    around: Vec<Around<'c>>,
    /// Names from the root to here, and the places of members and options that they stand for.
    path: Vec<String>,
    indices: Vec<usize>,
}

struct Around<'c> {
    class: &'c StructureClass,
    /// The member on the way.
    index: usize,
    /// How many names of the path lead to the structure.
    depth: usize,
}

/// The field that a reference means.
pub(super) struct Found<'c> {
    pub(super) scope: Scope,
    /// Names from the scope's root.
    pub(super) path: Vec<String>,
    /// What they stand for: members of structures and options of variants, by place.
    pub(super) indices: Vec<usize>,
    /// Of those, how many lead to the structure around the reference in which the search succeeded, and how many
    /// structures are around the reference within that one; `None` if the field is in another scope.
    pub(super) within: Option<(usize, u32)>,
    pub(super) class: &'c FieldClass,
}

impl<'c> Places<'c> {
    /// The root of a scope.
    pub(super) fn new(scopes: Scopes<'c>, scope: Scope) -> Self {
        Places { scopes, scope, around: Vec::new(), path: Vec::new(), indices: Vec::new() }
    }

    /// Whether the place is a member of the scope's own structure.
    pub(super) fn is_top(&self) -> bool {
        self.around.len() == 1
    }

    /// The name of the member or option at hand.
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The place, for messages.
    pub(super) fn text(&self) -> String {
        let scope = match self.scope {
            Scope::PacketHeader => "packet header",
            Scope::PacketContext => "packet context",
            Scope::EventHeader => "event header",
            Scope::CommonContext => "event context",
            Scope::SpecificContext => "event's own context",
            Scope::Payload => "event payload",
        };
        format!("{scope}, field `{}`", self.path.join("."))
    }

    /// Does something at each member of a structure in turn.
    pub(super) fn members<T>(
        &mut self,
        class: &'c StructureClass,
        mut at: impl FnMut(&mut Self, &'c Member) -> T,
    ) -> Vec<T> {
        self.around.push(Around { class, index: 0, depth: self.path.len() });
        let members = class.members.iter().enumerate();
        let results = members.map(|(index, member)| {
            if let Some(around) = self.around.last_mut() {
                around.index = index;
            }
            self.named(&member.name, index, |places| at(places, member))
        });
        let results = results.collect();
        self.around.pop();
        results
    }

    /// Does something at what `name` leads to: a member, or an option of a variant.
    pub(super) fn named<T>(&mut self, name: &str, index: usize, at: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(name.to_owned());
        self.indices.push(index);
        let result = at(self);
        self.path.pop();
        self.indices.pop();
        result
    }

    /// The field that `location` means from here.
    pub(super) fn find(&self, location: &FieldLocation) -> Option<Found<'c>> {
        let path = location.path.as_slice();
        match location.origin {
            Origin::Scope(scope) if scope < self.scope => self.in_scope(scope, path),
            Origin::Scope(scope) if scope == self.scope => self.within(0, path),
            Origin::Scope(_) => None,
            Origin::Relative { up } => self.within(self.around.len().checked_sub(1 + up as usize)?, path),
            Origin::Search => {
                let here = (0..self.around.len()).rev().find_map(|around| self.within(around, path));
                here.or_else(|| {
                    let before = SCOPES.iter().rev().filter(|scope| **scope < self.scope);
                    before.into_iter().find_map(|scope| self.in_scope(*scope, path))
                })
            }
        }
    }

    fn in_scope(&self, scope: Scope, path: &[String]) -> Option<Found<'c>> {
        let mut indices = Vec::with_capacity(path.len());
        let class = member(&self.scopes[scope as usize]?.members, path, &mut indices)?;
        Some(Found { scope, path: path.to_vec(), indices, within: None, class })
    }

    /// The field at `path` from one of the structures around.
    fn within(&self, around: usize, path: &[String]) -> Option<Found<'c>> {
        let Around { class, index, depth } = self.around.get(around)?;
        let mut indices = self.indices[..*depth].to_vec();
        let class = member(&class.members[..=*index], path, &mut indices)?;
        let path = self.path[..*depth].iter().chain(path).cloned().collect();
        let up = (self.around.len() - 1 - around) as u32;
        Some(Found { scope: self.scope, path, indices, within: Some((*depth, up)), class })
    }
}

pub(super) const SCOPES: [Scope; 6] = [
    Scope::PacketHeader,
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::CommonContext,
    Scope::SpecificContext,
    Scope::Payload,
];

/// What `path` names among `members` and below; adds the places of what it goes through.
fn member<'c>(members: &'c [Member], path: &[String], indices: &mut Vec<usize>) -> Option<&'c FieldClass> {
    let (head, tail) = path.split_first()?;
    let index = members.iter().position(|member| member.name == *head)?;
    indices.push(index);
    below(&members[index].class, tail, indices)
}

/// It goes through arrays and optionals without naming them.
fn below<'c>(class: &'c FieldClass, path: &[String], indices: &mut Vec<usize>) -> Option<&'c FieldClass> {
    let Some((head, tail)) = path.split_first() else { return Some(class) };
    match through(class) {
        FieldClass::Structure(class) => member(&class.members, path, indices),
        FieldClass::Variant(class) => {
            let index = class.options.iter().position(|option| option.name == *head)?;
            indices.push(index);
            below(&class.options[index].class, tail, indices)
        }
        _ => None,
    }
}

fn through(mut class: &FieldClass) -> &FieldClass {
    loop {
        class = match class {
            FieldClass::StaticArray(array) => &array.element,
            FieldClass::DynamicArray(array) => &array.element,
            FieldClass::Optional(optional) => &optional.class,
            other => return other,
        };
    }
}
