//! Fields inside of structures, arrays, optionals and variants, looked up by their path once and read from
//! many event records.

use super::Value;
use super::compile::Decoder;
use super::event::Event;
use super::program::{Kind, Length, Program};
use super::sink::Nothing;
use super::walk::Walk;
use crate::model::Scope;

/// A step on the way to a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep<'p> {
    /// The member of a structure, or the option of a variant, with this name.
    Name(&'p str),
    /// The element of an array with this index, from 0.
    Index(u64),
}

/// The way to a field of one event record class; see [`Decoder::path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathHandle {
    stream: usize,
    event: usize,
    scope: Scope,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The node of the structure member with this index.
    Member {
        node: u32,
        before: u32,
    },
    /// The node of a variant's option.
    Option(u32),
    Element(u64),
    /// Into an optional's field.
    Inside,
}

impl Decoder {
    /// Looks up the field at the end of a path from a scope's structure; `None` if the class has no such
    /// field. An optional is not a step of the path. `stream` and `event` are as for [`Decoder::member`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tracewing_ctf::decode::{Decoder, PathStep, Step, StreamReader, Value};
    /// # use tracewing_ctf::model::Scope;
    /// # let metadata = b"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; event { name = e; fields := struct {
    /// #     struct { integer { size = 8; } sizes[3]; } header; }; };";
    /// # let class = tracewing_ctf::tsdl::parse(metadata)?;
    /// let decoder = Decoder::new(Arc::new(class))?;
    /// let path = [PathStep::Name("header"), PathStep::Name("sizes"), PathStep::Index(1)];
    /// let second = decoder.path(0, 0, Scope::Payload, &path).expect("the class has header.sizes[1]");
    /// let mut reader = StreamReader::new(decoder, [1, 2, 3, 4, 5, 6]);
    /// let mut values = Vec::new();
    /// while reader.advance()? != Step::End {
    ///     reader.for_each_in_packet(|event| match event.at(&second) {
    ///         Some(Value::Unsigned(value, _)) => values.push(value),
    ///         _ => unreachable!(),
    ///     })?;
    /// }
    /// assert_eq!(values, [2, 5]);
    /// # Ok::<(), tracewing_ctf::Error>(())
    /// ```
    pub fn path(
        &self,
        stream: usize,
        event: usize,
        scope: Scope,
        path: &[PathStep<'_>],
    ) -> Option<PathHandle> {
        let program = self.program(stream, event, scope)?;
        let (mut node, mut steps) = (0, Vec::new());
        for step in path {
            while let Kind::Optional(optional) = &program.nodes[node as usize].kind {
                steps.push(Step::Inside);
                node = optional.field;
            }
            let named = |first: u32, count: u32, name: &str| {
                (first..first + count).find(|at| program.nodes[*at as usize].name.as_deref() == Some(name))
            };
            node = match (&program.nodes[node as usize].kind, *step) {
                (Kind::Structure { first, count, .. }, PathStep::Name(name)) => {
                    let node = named(*first, *count, name)?;
                    steps.push(Step::Member { node, before: node - first });
                    node
                }
                (Kind::Variant(variant), PathStep::Name(name)) => {
                    let node = named(variant.first, variant.count, name)?;
                    steps.push(Step::Option(node));
                    node
                }
                (Kind::Array { length, element }, PathStep::Index(index)) => {
                    if matches!(length, Length::Fixed(length) if index >= *length) {
                        return None;
                    }
                    steps.push(Step::Element(index));
                    *element
                }
                _ => return None,
            };
        }
        if let Kind::Optional(_) = program.nodes[node as usize].kind {
            steps.push(Step::Inside);
        }
        Some(PathHandle { stream, event, scope, steps })
    }
}

impl<'a> Event<'a> {
    /// The value at the end of a path that was looked up before. `None` if it is a compound, or not present
    /// in this event record: past an array's end, in an option that is not selected, in an optional without a
    /// field, or of another class.
    pub fn at(&self, path: &PathHandle) -> Option<Value<'a>> {
        let own = path.scope >= Scope::SpecificContext;
        if path.stream != self.stream || (own && path.event != self.event) {
            return None;
        }
        let program = self.program(path.scope)?;
        self.walk().follow(program, self.start(path.scope), &path.steps)
    }
}

impl<'a> Walk<'a> {
    /// The value at the end of `steps` from a scope's structure at bit `at`.
    fn follow(&mut self, program: &'a Program, at: u64, steps: &[Step]) -> Option<Value<'a>> {
        let mut node = program.nodes.first()?;
        let mut at = self.aligned(node, at).ok()?;
        for step in steps {
            let next = match (&node.kind, *step) {
                (Kind::Structure { .. }, Step::Member { node, before }) => {
                    for member in program.nodes.get((node - before) as usize..node as usize)? {
                        at = self.node(program, member, None, at, &mut Nothing).ok()?;
                    }
                    node
                }
                (Kind::Variant(variant), Step::Option(node)) => {
                    let tag = self.slots[variant.slot as usize].get();
                    (variant.select(tag) == Some(node)).then_some(node)?
                }
                (Kind::Optional(optional), Step::Inside) => {
                    let selector = self.slots[optional.slot as usize].get();
                    optional.enabled(selector).then_some(optional.field)?
                }
                (Kind::Array { length, element }, Step::Element(index)) => {
                    if index >= self.length(*length) {
                        return None;
                    }
                    let class = program.nodes.get(*element as usize)?;
                    for _ in 0..index {
                        at = self.node(program, class, None, at, &mut Nothing).ok()?;
                    }
                    *element
                }
                _ => return None,
            };
            node = program.nodes.get(next as usize)?;
            at = self.aligned(node, at).ok()?;
        }
        self.value(node, at)
    }
}
