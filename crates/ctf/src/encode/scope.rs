//! Writes the fields of one scope in order, each checked against its class.
//!
//! It runs the same program as the decoder, with the given values instead of read ones. The first error is
//! kept; everything after it is ignored.

use super::body::{Body, Frame};
use super::known::Known;
use super::scalar::{Number, Scalar};
use crate::ValueFault;
use crate::decode::program::{Kind, Node, Program};
use crate::decode::{Compound, Value, Visitor};

/// Takes the fields of one scope, in the order of the class; as a [`Visitor`], those of a decoded one.
pub struct ScopeWriter<'w> {
    pub(super) body: &'w mut Body,
    pub(super) program: &'w Program,
    pub(super) known: &'w Known,
    /// Whether what is shown are the fields of this class in the words of another, so that names may differ.
    by_place: bool,
    /// Whether a field was shown, in contrast to those that the writer knows by itself.
    pub(super) given: bool,
}

impl<'w> ScopeWriter<'w> {
    pub(super) fn new(body: &'w mut Body, program: &'w Program, known: &'w Known) -> Self {
        let root = &program.nodes[0];
        body.align(root.align);
        body.open.clear();
        if let Kind::Structure { first, count, .. } = root.kind {
            body.open.push(Frame::Structure { next: first, end: first + count });
        }
        ScopeWriter { body, program, known, by_place: false, given: false }
    }

    /// Ends the scope; what is wrong, with the name of the field, if anything was.
    pub(super) fn finish(mut self) -> Result<(), Box<(String, ValueFault)>> {
        if self.body.open.len() > 1 {
            self.fail(ValueFault::Open);
        }
        self.end_compound();
        self.body.error.take().map_or(Ok(()), Err)
    }

    pub(super) fn begin_structure(&mut self, name: Option<&str>) {
        self.begin_compound(name, "a structure", |writer, node| match node.kind {
            Kind::Structure { first, count, .. } => {
                writer.body.align(node.align);
                Some(Frame::Structure { next: first, end: first + count })
            }
            _ => None,
        });
    }

    pub(super) fn begin_array(&mut self, name: Option<&str>, length: u64) {
        self.begin_compound(name, "an array", |writer, node| match node.kind {
            Kind::Array { length: declared, element } => {
                writer.body.align(node.align);
                if let Err(fault) = writer.check_length(declared, length) {
                    writer.fail(fault);
                }
                Some(Frame::Array { element, left: length, length })
            }
            Kind::Blob { length: declared } => {
                writer.body.align(8);
                if let Err(fault) = writer.check_length(declared, length) {
                    writer.fail(fault);
                }
                Some(Frame::Bytes { left: length, length })
            }
            _ => None,
        });
    }

    /// A variant begins. The tag has selected an option, which is to be the one of this name, if there is
    /// one.
    pub(super) fn begin_variant(&mut self, name: Option<&str>, option: Option<&str>) {
        self.begin_compound(name, "a variant", |writer, node| match &node.kind {
            Kind::Variant(variant) => {
                let Some(content) = variant.select(writer.body.slots[variant.slot as usize].get()) else {
                    writer.fail(ValueFault::NothingSelected("a variant"));
                    return Some(Frame::Choice { content: 0, done: true });
                };
                let selected = writer.program.nodes[content as usize].name.as_deref().unwrap_or_default();
                if let Some(option) = option.filter(|option| *option != selected) {
                    writer.fail(ValueFault::OtherOption {
                        option: option.to_owned(),
                        selected: selected.to_owned(),
                    });
                }
                Some(Frame::Choice { content, done: false })
            }
            _ => None,
        });
    }

    /// An optional begins. If the class has no optionals, it is a variant whose tag selects an empty
    /// structure for an absent value.
    pub(super) fn begin_optional(&mut self, name: Option<&str>, present: bool) {
        self.begin_compound(name, "an optional", |writer, node| match &node.kind {
            Kind::Optional(optional) => {
                let enabled = optional.enabled(writer.body.slots[optional.slot as usize].get());
                if enabled != present {
                    writer.fail(ValueFault::Presence { present });
                }
                Some(Frame::Choice { content: optional.field, done: !present })
            }
            Kind::Variant(variant) => {
                let content = variant.select(writer.body.slots[variant.slot as usize].get());
                let Some(content) = content else {
                    writer.fail(ValueFault::NothingSelected("an optional"));
                    return Some(Frame::Choice { content: 0, done: true });
                };
                let empty = is_empty(&writer.program.nodes[content as usize]);
                if !present && !empty {
                    writer.fail(ValueFault::Absent);
                }
                Some(Frame::Choice { content, done: !present })
            }
            _ => None,
        });
    }

    fn begin_compound(
        &mut self,
        name: Option<&str>,
        what: &'static str,
        begin: impl FnOnce(&mut Self, &'w Node) -> Option<Frame>,
    ) {
        let Some(node) = self.next(name) else { return };
        match begin(self, node) {
            Some(frame) => self.body.open.push(frame),
            None => self.fail(ValueFault::Kind { value: what, class: what_is(&node.kind) }),
        }
    }

    /// The innermost compound ends.
    pub(super) fn end_compound(&mut self) {
        if self.body.error.is_some() {
            return;
        }
        match self.body.open.last() {
            Some(&Frame::Structure { next, end }) => {
                for index in next..end {
                    self.step_to(index);
                    self.fill(index);
                }
            }
            Some(
                &(Frame::Array { left: left @ 1.., length, .. } | Frame::Bytes { left: left @ 1.., length }),
            ) => {
                self.fail(ValueFault::FewElements { there: length - left, expected: length });
            }
            Some(&Frame::Choice { done: false, .. }) => self.fail(ValueFault::NoValue),
            _ => {}
        }
        self.body.open.pop();
    }

    pub(super) fn scalar(&mut self, name: Option<&str>, scalar: Scalar<'_>) {
        if let Some(Frame::Bytes { left: left @ 1.., .. }) = self.body.open.last_mut() {
            *left -= 1;
            return match scalar.number() {
                Ok(Number::Unsigned(byte @ 0..=0xff)) => self.body.append(&[byte as u8]),
                _ => self.fail(ValueFault::NoByte),
            };
        }
        if let Some(node) = self.next(name) {
            self.write(node, scalar);
        }
    }

    fn step_to(&mut self, index: u32) {
        if let Some(Frame::Structure { next, .. }) = self.body.open.last_mut() {
            *next = index + 1;
        }
    }

    /// The node of the next field, which is called `name` if it has one.
    fn next(&mut self, name: Option<&str>) -> Option<&'w Node> {
        self.given = true;
        let program = self.program;
        while self.body.error.is_none() {
            let node = match self.body.open.last_mut()? {
                Frame::Structure { next, end } if *next < *end => {
                    *next += 1;
                    let (index, node) = (*next - 1, &program.nodes[*next as usize - 1]);
                    let is = |node: &Node| name.is_none_or(|name| node.name.as_deref() == Some(name));
                    let rest = &program.nodes[*next as usize..*end as usize];
                    let same = is(node) || (self.by_place && !rest.iter().any(is));
                    if let Some(value) = self.known.instead(node) {
                        self.write(node, Scalar::Unsigned(value));
                        if same {
                            return None;
                        }
                        continue;
                    }
                    if !same {
                        self.fill(index);
                        continue;
                    }
                    node
                }
                Frame::Array { element, left: left @ 1.., .. } => {
                    *left -= 1;
                    &program.nodes[*element as usize]
                }
                Frame::Choice { content, done: done @ false } => {
                    *done = true;
                    &program.nodes[*content as usize]
                }
                _ => {
                    self.fail(ValueFault::Surplus(name.map(str::to_owned)));
                    return None;
                }
            };
            return Some(node);
        }
        None
    }

    /// Writes a field that was not given, if its value is known.
    fn fill(&mut self, index: u32) {
        let program = self.program;
        let node = &program.nodes[index as usize];
        if let Some(value) = self.known.value(node) {
            return self.write(node, Scalar::Unsigned(value));
        }
        match &node.kind {
            Kind::Structure { first, count, .. } if self.known.header => {
                self.body.align(node.align);
                (*first..first + count).for_each(|member| self.fill(member));
            }
            Kind::Variant(variant) if self.known.header => {
                match variant.select(self.body.slots[variant.slot as usize].get()) {
                    Some(option) => self.fill(option),
                    None => self.fail(ValueFault::NoOption),
                }
            }
            Kind::Array { .. } | Kind::Blob { .. }
                if let Some(uuid) = self.known.uuid(self.body.at.next_multiple_of(node.align.into())) =>
            {
                self.write(node, Scalar::Blob(&uuid));
            }
            _ => self.fail(ValueFault::Missing(node.name.as_deref().unwrap_or_default().to_owned())),
        }
    }

    /// Keeps the first thing that is wrong, and where.
    #[cold]
    pub(super) fn fail(&mut self, fault: ValueFault) {
        if self.body.error.is_some() {
            return;
        }
        let mut place = String::new();
        for frame in &self.body.open {
            let node = match frame {
                Frame::Structure { next, .. } => next.checked_sub(1),
                Frame::Choice { content, .. } => Some(*content),
                Frame::Array { left, length, .. } | Frame::Bytes { left, length } => {
                    place += &format!("[{}]", (length - left).saturating_sub(1));
                    None
                }
            };
            let node = node.and_then(|node| self.program.nodes.get(node as usize));
            if let Some(name) = node.and_then(|node| node.name.as_deref()) {
                if !place.is_empty() {
                    place.push('.');
                }
                place += name;
            }
        }
        self.body.error = Some(Box::new((place, fault)));
    }
}

impl Visitor for ScopeWriter<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        self.by_place = true;
        self.scalar(name, value.into());
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        self.by_place = true;
        match compound {
            Compound::Structure(_) => self.begin_structure(name),
            Compound::Array { length } => self.begin_array(name, length),
            Compound::Optional { present } => self.begin_optional(name, present),
            // Names may differ in another version; the tag has the same value.
            Compound::Variant { .. } => self.begin_variant(name, None),
        }
    }

    fn end(&mut self, _: Compound<'_>) {
        self.end_compound();
    }
}

/// Whether a field is a structure without members.
fn is_empty(node: &Node) -> bool {
    matches!(node.kind, Kind::Structure { count: 0, .. })
}

/// What a class is, for messages.
pub(super) fn what_is(kind: &Kind) -> &'static str {
    match kind {
        Kind::Boolean(_) => "a boolean",
        Kind::Float { .. } => "a floating point number",
        Kind::String | Kind::WideString(_) | Kind::Text { .. } | Kind::WideText { .. } => "a string",
        Kind::Blob { .. } => "bytes",
        Kind::Structure { .. } => "a structure",
        Kind::Array { .. } => "an array",
        Kind::Optional(_) => "an optional",
        Kind::Variant(_) => "a variant",
        _ => "an integer",
    }
}
