//! Compiles field classes into nodes.

use std::sync::Arc;

use super::compiler::Compiler;
use super::program::{Integer, Kind, Length, NONE, Node, Optional, Role, Variant, keys};
use super::refer::Referred;
use super::resolve::Frame;
use crate::model::{
    BitArrayClass, BitOrder, ByteOrder, Encoding, FieldClass, IntegerClass, OptionalClass, Scope,
    StructureClass, VariantClass,
};
use crate::{Error, Reference, TraceClassFault};

/// Field classes inside one another; more would exhaust the stack.
const DEEPEST: usize = 64;

impl Compiler {
    pub(super) fn node<'c>(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        class: &'c FieldClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Node, Error> {
        if stack.len() > DEEPEST {
            return Err(self.error(TraceClassFault::Depth(DEEPEST)));
        }
        self.spend(name, name.map_or(0, str::len))?;
        let align = class.alignment();
        if !align.is_power_of_two() {
            return Err(self.field_error(name, TraceClassFault::Alignment(align)));
        }
        if let Some((size, order)) = number(class) {
            self.packed[order as usize] |= align < 8;
            self.ragged[order as usize] |= align < 8 || !size.is_multiple_of(8);
        }
        let kind = self.kind(scope, name, class, stack)?;
        Ok(Node { name: name.map(Into::into), align, skip: u64::MAX, kind })
    }

    fn kind<'c>(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        class: &'c FieldClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        Ok(match class {
            FieldClass::BitArray(class) => Kind::BitArray(self.bits(name, class)?, class.clone()),
            FieldClass::BitMap(class) => Kind::BitMap(self.bits(name, &class.bits)?, class.clone()),
            FieldClass::Boolean(class) => Kind::Boolean(self.bits(name, class)?),
            FieldClass::Integer(class) => {
                Kind::Integer(self.integer(scope, name, class, stack)?, class.clone())
            }
            FieldClass::Enumeration(class) => {
                Kind::Enumeration(self.integer(scope, name, &class.integer, stack)?, class.clone())
            }
            FieldClass::VariableInteger(class) => {
                Kind::Variable(self.integer(scope, name, class, stack)?, class.clone())
            }
            FieldClass::VariableEnumeration(class) => {
                Kind::VariableEnumeration(self.integer(scope, name, &class.integer, stack)?, class.clone())
            }
            FieldClass::Float(class) if matches!(class.size, 16 | 32 | 64 | 128) => Kind::Float {
                size: class.size,
                order: class.byte_order,
                reversed: is_reversed(class.byte_order, class.bit_order),
            },
            FieldClass::Float(class) => {
                return Err(self.field_error(name, TraceClassFault::FloatSize(class.size)));
            }
            FieldClass::String(class) if class.encoding.unit() == 1 => Kind::String,
            FieldClass::String(class) => Kind::WideString(class.encoding),
            FieldClass::StaticString(class) => text(Length::Fixed(class.length), class.encoding),
            FieldClass::DynamicString(class) => {
                text(self.length(scope, name, &class.length, stack)?, class.encoding)
            }
            FieldClass::StaticBlob(class) => Kind::Blob { length: Length::Fixed(class.length) },
            FieldClass::DynamicBlob(class) => {
                Kind::Blob { length: self.length(scope, name, &class.length, stack)? }
            }
            FieldClass::Structure(class) => self.structure(scope, class, stack)?,
            FieldClass::StaticArray(class) => {
                self.array(scope, Length::Fixed(class.length), &class.element, stack)?
            }
            FieldClass::DynamicArray(class) => {
                let length = self.length(scope, name, &class.length, stack)?;
                self.array(scope, length, &class.element, stack)?
            }
            FieldClass::Optional(class) => self.optional(scope, name, class, stack)?,
            FieldClass::Variant(class) => self.variant(scope, name, class, stack)?,
        })
    }

    /// The members follow one another; what they contain comes after them.
    fn structure<'c>(
        &mut self,
        scope: Scope,
        class: &'c Arc<StructureClass>,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        let first = self.nodes(scope).len();
        self.nodes(scope).resize_with(first + class.members.len(), placeholder);
        for (index, member) in class.members.iter().enumerate() {
            stack.push(Frame::Structure { class, first, index });
            self.at = member.place.or(self.at);
            let node = self.node(scope, Some(&member.name), &member.class, stack)?;
            stack.pop();
            self.nodes(scope)[first + index] = node;
        }
        Ok(Kind::Structure { first: first as u32, count: class.members.len() as u32, class: class.clone() })
    }

    fn optional<'c>(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        class: &'c OptionalClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        let Referred { slot, signed, boolean, .. } =
            self.refer(scope, name, (Reference::Selector, &class.selector), stack)?;
        let ranges = match (boolean, class.ranges.as_slice()) {
            (true, []) => &[(1, i128::MAX)],
            (true, _) => {
                return Err(self.field_error(name, TraceClassFault::RangesOfBoolean));
            }
            (false, []) => {
                return Err(self.field_error(name, TraceClassFault::NoRanges));
            }
            (false, ranges) => ranges,
        };
        self.spend(name, size_of_val(ranges))?;
        let ranges = ranges.iter().filter_map(|range| keys(signed, *range)).collect();
        let place = self.nodes(scope).len();
        self.nodes(scope).push(placeholder());
        stack.push(Frame::Through);
        let node = self.node(scope, name, &class.class, stack)?;
        stack.pop();
        self.nodes(scope)[place] = node;
        Ok(Kind::Optional(Box::new(Optional { slot, signed, ranges, field: place as u32 })))
    }

    fn variant<'c>(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        class: &'c VariantClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        let tag = self.refer(scope, name, (Reference::Tag, &class.tag), stack)?;
        if tag.boolean {
            return Err(self.field_error(name, TraceClassFault::BooleanTag));
        }
        let first = self.nodes(scope).len();
        self.nodes(scope).resize_with(first + class.options.len(), placeholder);
        let (slot, signed) = (tag.slot, tag.signed);
        let mut ranges = Vec::new();
        for (index, option) in class.options.iter().enumerate() {
            self.at = option.place.or(self.at);
            let own = match (option.ranges.as_slice(), &tag.labels) {
                ([], Some(labels)) => {
                    let mapping = labels.mappings.iter().find(|mapping| mapping.label == option.name);
                    mapping.map(|mapping| mapping.ranges.as_slice()).unwrap_or_default()
                }
                ([], None) => return Err(self.field_error(name, TraceClassFault::NoEnumeration)),
                (ranges, _) => ranges,
            };
            self.spend(name, size_of_val(own))?;
            let keys = own.iter().filter_map(|range| keys(signed, *range));
            ranges.extend(keys.map(|(low, high)| (low, high, index as u32)));
            stack.push(Frame::Option(&option.name));
            let node = self.node(scope, Some(&option.name), &option.class, stack)?;
            stack.pop();
            self.nodes(scope)[first + index] = node;
        }
        if let Some([one, other]) = selected_twice(&ranges) {
            let [first, second] = [one, other].map(|option| class.options[option as usize].name.clone());
            return Err(self.field_error(name, TraceClassFault::TwoOptions { first, second }));
        }
        let (first, count) = (first as u32, class.options.len() as u32);
        Ok(Kind::Variant(Box::new(Variant { slot, signed, ranges, first, count })))
    }

    fn array<'c>(
        &mut self,
        scope: Scope,
        length: Length,
        element: &'c FieldClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        if let FieldClass::Integer(class) = element
            && class.size == 8
            && class.align == 8
            && class.encoding != Encoding::None
        {
            return Ok(Kind::Text { length });
        }
        let place = self.nodes(scope).len();
        self.nodes(scope).push(placeholder());
        stack.push(Frame::Through);
        let node = self.node(scope, None, element, stack)?;
        stack.pop();
        self.nodes(scope)[place] = node;
        Ok(Kind::Array { length, element: place as u32 })
    }

    /// Bits of fixed length that are no integer.
    fn bits(&self, name: Option<&str>, class: &BitArrayClass) -> Result<Integer, Error> {
        if !(1..=64).contains(&class.size) {
            return Err(self.field_error(name, TraceClassFault::BitsSize(class.size)));
        }
        Ok(Integer {
            size: class.size,
            order: class.byte_order,
            reversed: is_reversed(class.byte_order, class.bit_order),
            signed: false,
            slot: NONE,
            role: Role::None,
        })
    }

    fn integer(
        &self,
        scope: Scope,
        name: Option<&str>,
        class: &IntegerClass,
        stack: &[Frame<'_>],
    ) -> Result<Integer, Error> {
        if !(1..=64).contains(&class.size) {
            return Err(self.field_error(name, TraceClassFault::IntegerSize(class.size)));
        }
        let cpu =
            scope == Scope::PacketContext && stack.len() == 1 && name == Some("cpu_id") && !class.signed;
        let role = Role::new(class.roles, scope, self.has_clock);
        let role = if cpu && role == Role::None { Role::Cpu } else { role };
        if class.signed && !matches!(role, Role::None) {
            return Err(self.field_error(name, TraceClassFault::Signed));
        }
        if role == Role::Magic && class.size != 32 {
            return Err(self.field_error(name, TraceClassFault::MagicSize(class.size)));
        }
        Ok(Integer {
            size: class.size,
            order: class.byte_order,
            reversed: is_reversed(class.byte_order, class.bit_order),
            signed: class.signed,
            slot: NONE,
            role,
        })
    }
}

/// Two options of a variant that the same value of its tag selects: which of them is there is unknown.
fn selected_twice(ranges: &[(u64, u64, u32)]) -> Option<[u32; 2]> {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable();
    let mut last: Option<(u64, u32)> = None;
    for (low, high, option) in ranges {
        if let Some((_, other)) = last.filter(|(before, other)| low <= *before && *other != option) {
            return Some([other, option]);
        }
        last = last.filter(|(before, _)| *before > high).or(Some((high, option)));
    }
    None
}

/// Stands for a node that is being compiled; a string is what no program's root is.
pub(super) fn placeholder() -> Node {
    Node { name: None, align: 1, skip: u64::MAX, kind: Kind::String }
}

/// Size and byte order of a number of fixed size.
fn number(class: &FieldClass) -> Option<(u32, ByteOrder)> {
    match class {
        FieldClass::BitArray(class) | FieldClass::Boolean(class) => Some((class.size, class.byte_order)),
        FieldClass::BitMap(class) => Some((class.bits.size, class.bits.byte_order)),
        FieldClass::Integer(class) => Some((class.size, class.byte_order)),
        FieldClass::Enumeration(class) => Some((class.integer.size, class.integer.byte_order)),
        FieldClass::Float(class) => Some((class.size, class.byte_order)),
        _ => None,
    }
}

/// A string of so many bytes.
fn text(length: Length, encoding: Encoding) -> Kind {
    if encoding.unit() == 1 { Kind::Text { length } } else { Kind::WideText { length, encoding } }
}

/// Whether bits lie in the order that the byte order does not suggest.
fn is_reversed(byte_order: ByteOrder, bit_order: Option<BitOrder>) -> bool {
    bit_order.is_some_and(|order| (order == BitOrder::FirstToLast) != (byte_order == ByteOrder::Little))
}
