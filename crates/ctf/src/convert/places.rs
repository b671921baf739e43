//! Where a field class stands among the others, and which field a reference from there means.

use crate::model::{FieldClass, FieldLocation, Member, Origin, Scope, StructureClass, Version};

/// The scopes of an event record class, with the packet's, as they are before the conversion.
pub(super) type Scopes<'c> = [Option<&'c StructureClass>; 6];

/// A place in a scope: the compounds around it.
pub(super) struct Places<'c> {
    pub(super) scopes: Scopes<'c>,
    pub(super) scope: Scope,
    /// Whether paths name the options of variants, as in CTF 1.8.
    named_options: bool,
    /// From the scope's root structure inwards; arrays, optionals and variants are passed through.
    around: Vec<Around<'c>>,
    /// From the root to here.
    way: Way,
}

/// A way from a scope's root: through members of structures and options of variants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// The names of members and options.
    pub(super) names: Vec<String>,
    pub(super) indices: Vec<usize>,
    /// Which of them are options.
    is_option: Vec<bool>,
}

impl Way {
    fn push(&mut self, name: &str, index: usize, is_option: bool) {
        self.names.push(name.to_owned());
        self.indices.push(index);
        self.is_option.push(is_option);
    }

    fn pop(&mut self) {
        self.names.pop();
        self.indices.pop();
        self.is_option.pop();
    }

    /// The first steps of it.
    fn first(&self, steps: usize) -> Way {
        Way {
            names: self.names[..steps].to_vec(),
            indices: self.indices[..steps].to_vec(),
            is_option: self.is_option[..steps].to_vec(),
        }
    }

    /// The names of the members after the first steps.
    pub(super) fn members_after(&self, steps: usize) -> Vec<String> {
        let names = self.names.iter().zip(&self.is_option).skip(steps);
        names.filter(|(_, is_option)| !**is_option).map(|(name, _)| name.clone()).collect()
    }
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
    /// From the scope's root.
    pub(super) way: Way,
    pub(super) class: &'c FieldClass,
}

impl<'c> Places<'c> {
    /// The root of a scope of a trace class of this version.
    pub(super) fn new(scopes: Scopes<'c>, scope: Scope, version: Version) -> Self {
        let named_options = version == Version::V1_8;
        Places { scopes, scope, named_options, around: Vec::new(), way: Way::default() }
    }

    /// Whether the place is a member of the scope's own structure.
    pub(super) fn is_top(&self) -> bool {
        self.around.len() == 1
    }

    /// The name of the member or option at hand.
    pub(super) fn name(&self) -> &str {
        self.way.names.last().map_or("", String::as_str)
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
        format!("{scope}, field `{}`", self.way.names.join("."))
    }

    /// Does something at each member of a structure in turn.
    pub(super) fn members<T>(
        &mut self,
        class: &'c StructureClass,
        mut at: impl FnMut(&mut Self, &'c Member) -> T,
    ) -> Vec<T> {
        self.around.push(Around { class, index: 0, depth: self.way.names.len() });
        let members = class.members.iter().enumerate();
        let results = members.map(|(index, member)| {
            if let Some(around) = self.around.last_mut() {
                around.index = index;
            }
            self.step(&member.name, index, false, |places| at(places, member))
        });
        let results = results.collect();
        self.around.pop();
        results
    }

    /// Does something at an option of a variant.
    pub(super) fn option<T>(&mut self, name: &str, index: usize, at: impl FnOnce(&mut Self) -> T) -> T {
        self.step(name, index, true, at)
    }

    fn step<T>(&mut self, name: &str, index: usize, is_option: bool, at: impl FnOnce(&mut Self) -> T) -> T {
        self.way.push(name, index, is_option);
        let result = at(self);
        self.way.pop();
        result
    }

    /// The field that `location` means from here.
    pub(super) fn find(&self, location: &FieldLocation) -> Option<Found<'c>> {
        let (path, named) = (location.path.as_slice(), self.named_options);
        match location.origin {
            Origin::Scope(scope) if scope < self.scope => self.in_scope(scope, path, named),
            Origin::Scope(scope) if scope == self.scope => self.within(0, path, named),
            Origin::Scope(_) => None,
            Origin::Relative { up } => {
                self.within(self.around.len().checked_sub(1 + up as usize)?, path, named)
            }
            Origin::Search => self.search(path, named),
        }
    }

    /// Whether `names` alone mean the field in CTF 1.8, which looks for them from the inside out.
    pub(super) fn is_meant_by(&self, names: &[String], field: &Found<'_>) -> bool {
        let found = self.search(names, true);
        found.is_some_and(|found| (found.scope, &found.way) == (field.scope, &field.way))
    }

    /// The structures around this place in which the field lies, from the inside out: how many steps lead to
    /// each, and how many are within it. None if the field is in another scope.
    pub(super) fn around(&self, field: &Found<'_>) -> impl Iterator<Item = (usize, u32)> {
        let around = self.around.iter().rev().zip(0..).filter(|_| field.scope == self.scope);
        let contains = |depth: usize| field.way.indices.starts_with(&self.way.indices[..depth]);
        around.filter(move |(around, _)| contains(around.depth)).map(|(around, up)| (around.depth, up))
    }

    fn search(&self, path: &[String], named: bool) -> Option<Found<'c>> {
        let here = (0..self.around.len()).rev().find_map(|around| self.within(around, path, named));
        here.or_else(|| {
            let before = SCOPES.iter().rev().filter(|scope| **scope < self.scope);
            before.into_iter().find_map(|scope| self.in_scope(*scope, path, named))
        })
    }

    fn in_scope(&self, scope: Scope, path: &[String], named: bool) -> Option<Found<'c>> {
        let mut way = Way::default();
        let class = member(&self.scopes[scope as usize]?.members, path, named, &mut way)?;
        Some(Found { scope, way, class })
    }

    /// The field at `path` from one of the structures around.
    fn within(&self, mut around: usize, mut path: &[String], named: bool) -> Option<Found<'c>> {
        // What is around is gone through as it is, whatever options that takes.
        while let (false, Some(Around { class, index, .. }), Some((head, tail))) =
            (named, self.around.get(around), path.split_first())
            && class.members[*index].name == *head
            && around + 1 < self.around.len()
        {
            (around, path) = (around + 1, tail);
        }
        let Around { class, index, depth } = self.around.get(around)?;
        let mut way = self.way.first(*depth);
        let class = member(&class.members[..=*index], path, named, &mut way)?;
        Some(Found { scope: self.scope, way, class })
    }
}

const SCOPES: [Scope; 6] = [
    Scope::PacketHeader,
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::CommonContext,
    Scope::SpecificContext,
    Scope::Payload,
];

/// What `path` names among `members` and below; adds what it goes through to `way`.
fn member<'c>(members: &'c [Member], path: &[String], named: bool, way: &mut Way) -> Option<&'c FieldClass> {
    let (head, tail) = path.split_first()?;
    let index = members.iter().position(|member| member.name == *head)?;
    way.push(head, index, false);
    below(&members[index].class, tail, named, way)
}

/// It goes through arrays and optionals without naming them, and if options are not `named`, through the only
/// one of a variant: a path that means one field in each of several options cannot be said in CTF 1.8.
fn below<'c>(class: &'c FieldClass, path: &[String], named: bool, way: &mut Way) -> Option<&'c FieldClass> {
    let Some((head, tail)) = path.split_first() else { return Some(class) };
    match through(class) {
        FieldClass::Structure(class) => member(&class.members, path, named, way),
        FieldClass::Variant(class) => {
            let (index, path) = match (named, class.options.as_slice()) {
                (true, options) => (options.iter().position(|option| option.name == *head)?, tail),
                (false, [_]) => (0, path),
                (false, _) => return None,
            };
            let option = &class.options[index];
            way.push(&option.name, index, true);
            below(&option.class, path, named, way)
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
