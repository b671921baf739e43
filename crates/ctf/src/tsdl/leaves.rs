//! Parses field classes that contain no others: integers, enumerations, floating point numbers, strings
//! (specification 1.8.3, section 4.1).

use std::collections::{HashMap, HashSet};

use super::lex::Token;
use super::parser::{Parser, Sized};
use super::values::{Attribute, Value};
use crate::model::{
    DisplayBase, Encoding, EnumerationClass, EnumerationMapping, FieldClass, FloatClass, IntegerClass,
    StringClass,
};
use crate::{Error, TsdlBlock, TsdlFault, TsdlMissing, TsdlNeeded, TsdlType};

impl Parser<'_> {
    /// The attributes between braces.
    fn attributes(&mut self) -> Result<Vec<Attribute>, Error> {
        self.expect("{")?;
        let mut attributes: Vec<Attribute> = Vec::new();
        let mut names = HashSet::new();
        while !self.eat("}") {
            let start = self.at;
            let name = self.name_path(TsdlNeeded::Attribute)?.join(".");
            if !names.insert(name.clone()) {
                return Err(self.error(start, TsdlFault::Twice(name)));
            }
            self.expect("=")?;
            let place = self.at;
            let value = self.value()?;
            self.expect(";")?;
            attributes.push(Attribute { name, start, value, place });
        }
        Ok(attributes)
    }

    pub(super) fn integer(&mut self) -> Result<FieldClass, Error> {
        let place = self.at - 1;
        let (mut size, mut align) = (None, None);
        let mut class = IntegerClass::unsigned(8);
        class.byte_order = self.native.unwrap_or(class.byte_order);
        for attribute in self.attributes()? {
            match attribute.name.as_str() {
                "size" => match self.unsigned(&attribute)? {
                    bits @ 1..=64 => size = Some(bits as u32),
                    0 => return Err(self.error(attribute.place, TsdlFault::NoBits)),
                    bits => return Err(self.error(attribute.place, TsdlFault::ManyBits(bits))),
                },
                "align" => align = Some(self.alignment(&attribute)?),
                "signed" => class.signed = self.boolean(&attribute)?,
                "byte_order" => class.byte_order = self.byte_order(&attribute)?.unwrap_or(class.byte_order),
                "base" => class.base = self.base(&attribute)?,
                "encoding" => class.encoding = self.encoding(&attribute)?,
                "map" => {
                    if let Value::Path(path) = &attribute.value
                        && let [first, clock, rest @ ..] = path.as_slice()
                        && first == "clock"
                        // As babeltrace2 does: the clock's only property need not be named.
                        && matches!(rest.first().map(String::as_str), None | Some("value"))
                        && rest.len() < 2
                    {
                        self.clock_uses.push((clock.clone(), attribute.place));
                        class.mapped_clock = Some(clock.as_str().into());
                    } else {
                        return Err(self.error(attribute.place, TsdlFault::Expected(TsdlNeeded::Clock)));
                    }
                }
                _ => self.unknown_attribute(TsdlBlock::Integer, &attribute.name, attribute.start),
            }
        }
        class.size = size.ok_or_else(|| self.error(place, TsdlFault::Missing(TsdlMissing::Size)))?;
        class.align = align.unwrap_or(if class.size.is_multiple_of(8) { 8 } else { 1 });
        Ok(class.into())
    }

    pub(super) fn float(&mut self) -> Result<FieldClass, Error> {
        let place = self.at - 1;
        let (mut exponent, mut mantissa) = (0, 0);
        let mut class = FloatClass::new(0);
        class.byte_order = self.native.unwrap_or(class.byte_order);
        for attribute in self.attributes()? {
            match attribute.name.as_str() {
                "exp_dig" => exponent = self.unsigned(&attribute)?,
                "mant_dig" => mantissa = self.unsigned(&attribute)?,
                "align" => class.align = self.alignment(&attribute)?,
                "byte_order" => class.byte_order = self.byte_order(&attribute)?.unwrap_or(class.byte_order),
                _ => self.unknown_attribute(TsdlBlock::Float, &attribute.name, attribute.start),
            }
        }
        class.size = match (exponent, mantissa) {
            (8, 24) => 32,
            (11, 53) => 64,
            _ => return Err(self.error(place, TsdlFault::Float { exponent, mantissa })),
        };
        Ok(class.into())
    }

    pub(super) fn string(&mut self) -> Result<FieldClass, Error> {
        let mut encoding = Encoding::Utf8;
        if self.at_sign("{") {
            for attribute in self.attributes()? {
                match attribute.name.as_str() {
                    "encoding" => encoding = self.encoding(&attribute)?,
                    _ => self.unknown_attribute(TsdlBlock::Text, &attribute.name, attribute.start),
                }
            }
        }
        Ok(FieldClass::String(StringClass::new(encoding)))
    }

    pub(super) fn alignment(&self, attribute: &Attribute) -> Result<u32, Error> {
        match u32::try_from(self.unsigned(attribute)?) {
            Ok(bits) if bits.is_power_of_two() => Ok(bits),
            _ => Err(self.error(attribute.place, TsdlFault::Alignment)),
        }
    }

    fn base(&self, attribute: &Attribute) -> Result<DisplayBase, Error> {
        let word = match &attribute.value {
            Value::Number(number) => number.to_string(),
            _ => self.text_of(attribute)?,
        };
        match word.as_str() {
            "2" | "b" | "bin" | "binary" => Ok(DisplayBase::Binary),
            "8" | "o" | "oct" | "octal" => Ok(DisplayBase::Octal),
            "10" | "d" | "dec" | "decimal" | "i" | "u" => Ok(DisplayBase::Decimal),
            "16" | "x" | "X" | "p" | "hex" | "hexadecimal" => Ok(DisplayBase::Hexadecimal),
            _ => Err(self.error(attribute.place, TsdlFault::Base(word))),
        }
    }

    fn encoding(&self, attribute: &Attribute) -> Result<Encoding, Error> {
        match self.text_of(attribute)?.as_str() {
            "none" => Ok(Encoding::None),
            "UTF8" | "utf8" | "UTF-8" | "utf-8" => Ok(Encoding::Utf8),
            "ASCII" | "ascii" => Ok(Encoding::Ascii),
            other => Err(self.error(attribute.place, TsdlFault::Encoding(other.to_owned()))),
        }
    }

    /// `enum NAME? (: CONTAINER)? { … }?`
    pub(super) fn enumeration(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        self.at += 1;
        let name = self.tag_name()?;
        let container = self.container()?;
        if container.is_none() && !self.at_sign("{") {
            return self.declared(TsdlType::Enumeration, name, place);
        }
        let container = match container {
            Some(container) => container,
            None => match self.scopes.find("int") {
                Some(found) => found.clone(),
                None => {
                    return Err(self.error(place, TsdlFault::NoContainer));
                }
            },
        };
        let FieldClass::Integer(integer) = container.class else {
            return Err(self.error(container.place, TsdlFault::Container));
        };
        let mut class = EnumerationClass::new(integer);
        let mut labels: HashMap<String, usize> = HashMap::new();
        self.expect("{")?;
        let mut next = 0;
        while !self.eat("}") {
            let (label, (first, last)) = self.label(&class, next)?;
            let at = *labels.entry(label).or_insert_with_key(|label| {
                class.mappings.push(EnumerationMapping { label: label.clone(), ranges: Vec::new() });
                class.mappings.len() - 1
            });
            class.mappings[at].ranges.push((first, last));
            next = last + 1;
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        if class.mappings.is_empty() {
            return Err(self.error(place, TsdlFault::NoLabels));
        }
        self.finish(TsdlType::Enumeration, name, Sized { class: class.into(), nodes: 1, depth: 1, place })
    }

    /// `: CONTAINER`, if it is there.
    fn container(&mut self) -> Result<Option<Sized>, Error> {
        match self.eat(":") {
            true if matches!(self.peek_word(), Some("struct" | "variant" | "enum")) => {
                Err(self.unexpected(TsdlNeeded::Integer))
            }
            true => self.class_specifier().map(Some),
            false => Ok(None),
        }
    }

    /// `LABEL (= FIRST (... LAST)?)?` with its range; without one of its own it is `next` alone.
    fn label(&mut self, class: &EnumerationClass, next: i128) -> Result<(String, (i128, i128)), Error> {
        let label = match self.peek() {
            Token::Text(label) | Token::Word(label) => label.clone(),
            _ => return Err(self.unexpected(TsdlNeeded::Label)),
        };
        self.at += 1;
        let place = self.at;
        let (mut first, mut last) = (next, next);
        if self.eat("=") {
            first = self.number()?;
            last = if self.eat("...") { self.number()? } else { first };
        }
        let (least, most) = match class.integer.signed {
            true => (-(1_i128 << (class.integer.size - 1)), (1_i128 << (class.integer.size - 1)) - 1),
            false => (0, (1_i128 << class.integer.size) - 1),
        };
        if first > last {
            return Err(self.error(place, TsdlFault::EmptyRange { first, last }));
        }
        if first < least || last > most {
            return Err(self.error(place, TsdlFault::LargeRange { first, last, least, most }));
        }
        Ok((label, (first, last)))
    }
}
