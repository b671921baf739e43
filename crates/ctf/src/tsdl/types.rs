//! Parses field classes: type specifiers, declarators, `typedef` and `typealias` (specification 1.8.3, sections 4 and
//! 7.3.1, appendix C.2).

use std::collections::HashMap;
use std::sync::Arc;

use super::KEYWORDS;
use super::lex::Token;
use super::parse::{Attribute, Parser, Value};
use crate::Error;
use crate::metadata::DEEPEST_FIELD_CLASS as DEEPEST;
use crate::model::{
    DisplayBase, DynamicArrayClass, Encoding, EnumerationClass, FieldClass, FieldLocation, FloatClass,
    IntegerClass, Member, Origin, Scope, StaticArrayClass, StringClass, StructureClass, VariantClass,
    VariantOption,
};

/// A field class, how many it consists of and how deep it goes, and the token where it began.
#[derive(Clone)]
pub(super) struct Sized {
    pub(super) class: FieldClass,
    pub(super) nodes: u64,
    pub(super) depth: u32,
    pub(super) place: usize,
}

/// Named field classes, innermost scope last. Names of structures, variants and enumerations carry that word in front.
pub(super) struct TypeScopes(Vec<HashMap<String, Sized>>);

impl Default for TypeScopes {
    fn default() -> Self {
        TypeScopes(vec![HashMap::new()])
    }
}

impl TypeScopes {
    pub(super) fn open(&mut self) {
        self.0.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.0.pop();
    }

    fn find(&self, name: &str) -> Option<&Sized> {
        self.0.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Whether the name is new in the innermost scope.
    fn add(&mut self, name: String, class: Sized) -> bool {
        self.0.last_mut().is_some_and(|scope| scope.insert(name, class).is_none())
    }
}

/// A name with its array dimensions, outermost first.
struct Declarator {
    name: String,
    place: usize,
    dimensions: Vec<Dimension>,
}

enum Dimension {
    Length(u64),
    Location(FieldLocation),
}

impl Parser<'_> {
    /// Whether a field class declaration begins here rather than an attribute.
    pub(super) fn starts_declaration(&self) -> bool {
        let Some(word) = self.peek_word() else { return false };
        match word {
            "typedef" | "typealias" => true,
            "struct" | "variant" | "enum" => {
                !matches!(self.tokens.get(self.at + 1), Some((Token::Sign("=" | ":="), _)))
            }
            _ => false,
        }
    }

    /// `typedef`, `typealias`, or a named structure, variant or enumeration by itself.
    pub(super) fn declaration(&mut self) -> Result<(), Error> {
        let place = self.at;
        if self.eat_word("typealias") {
            let class = self.aliased()?;
            self.expect(":=")?;
            let place = self.at;
            let name = self.alias_name()?;
            self.add_type(name, class, place)?;
        } else if self.eat_word("typedef") {
            let class = self.class_specifier()?;
            loop {
                let declarator = self.declarator()?;
                let class = self.apply(class.clone(), declarator.dimensions)?;
                self.add_type(declarator.name, class, declarator.place)?;
                if !self.eat(",") {
                    break;
                }
            }
        } else if matches!(self.peek_word(), Some("struct" | "variant" | "enum")) {
            self.class_specifier()?;
        } else {
            return Err(self.error(
                place,
                format!(
                    "expected `trace`, `env`, `clock`, `stream`, `event`, `callsite` or a field class, found {}",
                    self.peek()
                ),
            ));
        }
        self.expect(";")
    }

    fn add_type(&mut self, name: String, class: Sized, place: usize) -> Result<(), Error> {
        let message = format!("`{name}` is declared twice in this scope");
        if self.scopes.add(name, class) { Ok(()) } else { Err(self.error(place, message)) }
    }

    /// The left side of a `typealias`: a specifier with an optional unnamed declarator.
    fn aliased(&mut self) -> Result<Sized, Error> {
        let class = self.class_specifier()?;
        let dimensions = self.dimensions()?;
        self.apply(class, dimensions)
    }

    /// The right side of a `typealias`: words and stars.
    fn alias_name(&mut self) -> Result<String, Error> {
        let mut name = self.word("the alias")?;
        loop {
            if let Some(word) = self.peek_word() {
                name.push(' ');
                name.push_str(word);
                self.at += 1;
            } else if self.eat("*") {
                name.push_str(" *");
            } else {
                return Ok(name);
            }
        }
    }

    /// A field class without the declarator's array dimensions.
    pub(super) fn class_specifier(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        while self.eat_word("const") {}
        let sized = match self.peek_word() {
            Some("integer") => self.leaf(place, Parser::integer)?,
            Some("floating_point") => self.leaf(place, Parser::float)?,
            Some("string") => self.leaf(place, Parser::string)?,
            Some("struct") => self.structure()?,
            Some("variant") => self.variant()?,
            Some("enum") => self.enumeration()?,
            Some(_) => self.named()?,
            None => return Err(self.unexpected("a field class")),
        };
        if sized.depth > DEEPEST {
            return Err(self.error(place, format!("field classes are nested more than {DEEPEST} deep")));
        }
        if sized.nodes > self.most() {
            let message = format!("this field class consists of more than {} others", self.most());
            return Err(self.error(place, message));
        }
        Ok(sized)
    }

    fn leaf(
        &mut self,
        place: usize,
        parse: fn(&mut Self) -> Result<FieldClass, Error>,
    ) -> Result<Sized, Error> {
        self.at += 1;
        Ok(Sized { class: parse(self)?, nodes: 1, depth: 1, place })
    }

    /// A reference to a `typedef` or `typealias`, possibly of several words.
    fn named(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        let mut name = self.word("a field class")?;
        if KEYWORDS.contains(&name.as_str()) {
            // `unsigned long` and the like; a plain name is one word, and the declarator follows.
            while let Some(word) = self.peek_word().filter(|word| KEYWORDS.contains(word)) {
                name.push(' ');
                name.push_str(word);
                self.at += 1;
            }
        }
        while self.eat("*") {
            name.push_str(" *");
        }
        match self.scopes.find(&name) {
            Some(found) => Ok(Sized { place, ..found.clone() }),
            None => Err(self.error(place, format!("there is no field class called `{name}`"))),
        }
    }

    /// The attributes between braces.
    fn attributes(&mut self) -> Result<Vec<Attribute>, Error> {
        self.expect("{")?;
        let mut attributes: Vec<Attribute> = Vec::new();
        while !self.eat("}") {
            let start = self.at;
            let name = self.name_path("an attribute or `}`")?.join(".");
            if attributes.iter().any(|attribute| attribute.name == name) {
                return Err(self.error(start, format!("`{name}` is given twice")));
            }
            self.expect("=")?;
            let place = self.at;
            let value = self.value()?;
            self.expect(";")?;
            attributes.push(Attribute { name, value, place });
        }
        Ok(attributes)
    }

    fn integer(&mut self) -> Result<FieldClass, Error> {
        let place = self.at - 1;
        let (mut size, mut align) = (None, None);
        let mut class = IntegerClass::unsigned(8);
        class.byte_order = self.native.unwrap_or(class.byte_order);
        for attribute in self.attributes()? {
            match attribute.name.as_str() {
                "size" => match self.unsigned(&attribute)? {
                    bits @ 1..=64 => size = Some(bits as u32),
                    bits => {
                        return Err(
                            self.error(attribute.place, format!("{bits} bits; an integer has 1 to 64"))
                        );
                    }
                },
                "align" => align = Some(self.alignment(&attribute)?),
                "signed" => class.signed = self.boolean(&attribute)?,
                "byte_order" => class.byte_order = self.byte_order(&attribute)?.unwrap_or(class.byte_order),
                "base" => class.base = self.base(&attribute)?,
                "encoding" => class.encoding = self.encoding(&attribute)?,
                "map" => {
                    if let Value::Path(path) = &attribute.value
                        && let [first, clock, last] = path.as_slice()
                        && (first.as_str(), last.as_str()) == ("clock", "value")
                    {
                        self.clock_uses.push((clock.clone(), attribute.place));
                        class.mapped_clock = Some(clock.as_str().into());
                    } else {
                        return Err(self.error(attribute.place, "expected `clock.NAME.value`"));
                    }
                }
                _ => {}
            }
        }
        class.size = size.ok_or_else(|| self.error(place, "this integer has no `size`"))?;
        class.align = align.unwrap_or(if class.size.is_multiple_of(8) { 8 } else { 1 });
        Ok(class.into())
    }

    fn float(&mut self) -> Result<FieldClass, Error> {
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
                _ => {}
            }
        }
        class.size = match (exponent, mantissa) {
            (8, 24) => 32,
            (11, 53) => 64,
            _ => {
                let message = format!(
                    "exp_dig = {exponent} and mant_dig = {mantissa}; expected 8 and 24 (32 bits) or 11 and 53 (64 bits)"
                );
                return Err(self.error(place, message));
            }
        };
        Ok(class.into())
    }

    fn string(&mut self) -> Result<FieldClass, Error> {
        let mut encoding = Encoding::Utf8;
        if self.at_sign("{") {
            for attribute in self.attributes()? {
                if attribute.name == "encoding" {
                    encoding = self.encoding(&attribute)?;
                }
            }
        }
        Ok(FieldClass::String(StringClass::new(encoding)))
    }

    fn alignment(&self, attribute: &Attribute) -> Result<u32, Error> {
        match u32::try_from(self.unsigned(attribute)?) {
            Ok(bits) if bits.is_power_of_two() => Ok(bits),
            _ => Err(self.error(attribute.place, "an alignment is a power of two, in bits")),
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
            _ => Err(self.error(attribute.place, format!("base {word}; expected 2, 8, 10 or 16"))),
        }
    }

    fn encoding(&self, attribute: &Attribute) -> Result<Encoding, Error> {
        match self.text_of(attribute)?.as_str() {
            "none" => Ok(Encoding::None),
            "UTF8" | "utf8" | "UTF-8" | "utf-8" => Ok(Encoding::Utf8),
            "ASCII" | "ascii" => Ok(Encoding::Ascii),
            other => {
                Err(self.error(attribute.place, format!("encoding `{other}`; expected none, UTF8 or ASCII")))
            }
        }
    }

    /// `struct NAME? { … }? align(N)?`
    fn structure(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        self.at += 1;
        let name = self.tag_name()?;
        if !self.at_sign("{") {
            let mut found = self.declared("struct", name, place)?;
            let min_align = self.least_alignment()?;
            if let (FieldClass::Structure(class), true) = (&mut found.class, min_align > 0) {
                let class = Arc::make_mut(class);
                class.min_align = class.min_align.max(min_align);
            }
            return Ok(found);
        }
        let (members, nodes, depth) = self.members(place, plain_name)?;
        let min_align = self.least_alignment()?;
        let class = StructureClass { min_align, members, ..StructureClass::default() }.into();
        self.finish("struct", name, Sized { class, nodes, depth, place })
    }

    /// `align(N)`, or nothing, which gives 0.
    fn least_alignment(&mut self) -> Result<u32, Error> {
        if !self.eat_word("align") {
            return Ok(0);
        }
        self.expect("(")?;
        let place = self.at;
        let value = self.value()?;
        let align = self.alignment(&Attribute { name: "align".to_owned(), value, place })?;
        self.expect(")")?;
        Ok(align)
    }

    /// `variant NAME? <TAG>? { … }?`
    fn variant(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        self.at += 1;
        let name = self.tag_name()?;
        let mut tag = FieldLocation::new(Origin::Search, Vec::new());
        if self.eat("<") {
            tag = self.location()?;
            self.expect(">")?;
        }
        if !self.at_sign("{") {
            let mut found = self.declared("variant", name, place)?;
            if let (FieldClass::Variant(class), false) = (&mut found.class, tag.path.is_empty()) {
                Arc::make_mut(class).tag = tag;
            }
            return Ok(found);
        }
        // An option is found by its label, underscore and all.
        let (options, nodes, depth) = self.members(place, |name| name)?;
        let options = options.into_iter().map(|Member { name, class, place, .. }| VariantOption {
            place,
            ..VariantOption::new(name, class)
        });
        let class = VariantClass { options: options.collect(), ..VariantClass::new(tag) }.into();
        self.finish("variant", name, Sized { class, nodes, depth, place })
    }

    /// `enum NAME? (: CONTAINER)? { … }?`
    fn enumeration(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        self.at += 1;
        let name = self.tag_name()?;
        let container = match self.eat(":") {
            true if matches!(self.peek_word(), Some("struct" | "variant" | "enum")) => {
                return Err(self.unexpected("an integer"));
            }
            true => Some(self.class_specifier()?),
            false => None,
        };
        if container.is_none() && !self.at_sign("{") {
            return self.declared("enum", name, place);
        }
        let container = match container {
            Some(container) => container,
            None => match self.scopes.find("int") {
                Some(found) => found.clone(),
                None => {
                    return Err(self.error(place, "this enumeration has no container, and there is no `int`"));
                }
            },
        };
        let FieldClass::Integer(integer) = container.class else {
            return Err(self.error(container.place, "an enumeration's container is an integer"));
        };
        let mut class = EnumerationClass::new(integer);
        self.expect("{")?;
        let mut next = 0;
        while !self.eat("}") {
            let label = match self.peek() {
                Token::Text(label) | Token::Word(label) => label.clone(),
                _ => return Err(self.unexpected("a label or `}`")),
            };
            self.at += 1;
            let place = self.at;
            let mut last = next;
            if self.eat("=") {
                next = self.number()?;
                last = if self.eat("...") { self.number()? } else { next };
            }
            let (least, most) = match class.integer.signed {
                true => (-(1_i128 << (class.integer.size - 1)), (1_i128 << (class.integer.size - 1)) - 1),
                false => (0, (1_i128 << class.integer.size) - 1),
            };
            if next > last {
                return Err(self.error(place, format!("the range {next} ... {last} is empty")));
            }
            if next < least || last > most {
                let range = if next == last { next.to_string() } else { format!("{next} ... {last}") };
                let message = format!("{range} does not fit the container, which holds {least} to {most}");
                return Err(self.error(place, message));
            }
            class.add(label, next, last);
            next = last + 1;
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        if class.mappings.is_empty() {
            return Err(self.error(place, "this enumeration has no labels"));
        }
        self.finish("enum", name, Sized { class: class.into(), nodes: 1, depth: 1, place })
    }

    /// The optional name behind `struct`, `variant` or `enum`.
    fn tag_name(&mut self) -> Result<Option<String>, Error> {
        match self.peek() {
            Token::Word(word) if word != "align" => {
                let word = word.clone();
                self.at += 1;
                Ok(Some(word))
            }
            _ => Ok(None),
        }
    }

    /// A structure, variant or enumeration that was declared before.
    fn declared(&mut self, kind: &str, name: Option<String>, place: usize) -> Result<Sized, Error> {
        let Some(name) = name else { return Err(self.unexpected("a name or `{`")) };
        match self.scopes.find(&format!("{kind} {name}")) {
            Some(found) => Ok(Sized { place, ..found.clone() }),
            None => Err(self.error(place, format!("there is no `{kind} {name}`"))),
        }
    }

    fn finish(&mut self, kind: &str, name: Option<String>, class: Sized) -> Result<Sized, Error> {
        if let Some(name) = name {
            self.add_type(format!("{kind} {name}"), class.clone(), class.place)?;
        }
        Ok(class)
    }

    /// Members between braces, and how many field classes they and their parent are, and how deep.
    fn members(&mut self, place: usize, plain: fn(&str) -> &str) -> Result<(Vec<Member>, u64, u32), Error> {
        self.scopes.open_within(DEEPEST).map_err(|message| self.error(place, message))?;
        self.expect("{")?;
        let mut members: Vec<Member> = Vec::new();
        let mut names: std::collections::HashSet<String> = std::collections::HashSet::new();
        let (mut nodes, mut depth) = (1_u64, 0);
        while !self.eat("}") {
            if matches!(self.peek_word(), Some("typedef" | "typealias")) {
                self.declaration()?;
                continue;
            }
            let may_stand_alone = matches!(self.peek_word(), Some("struct" | "variant" | "enum"));
            let class = self.class_specifier()?;
            if may_stand_alone && self.eat(";") {
                // A named structure, variant or enumeration without a member of it.
                continue;
            }
            loop {
                let declarator = self.declarator()?;
                let class = self.apply(class.clone(), declarator.dimensions)?;
                if let FieldClass::Variant(variant) = &class.class
                    && variant.tag.path.is_empty()
                {
                    return Err(self.error(class.place, "this variant has no tag; expected `<TAG>`"));
                }
                let name = plain(&declarator.name).to_owned();
                if !names.insert(name.clone()) {
                    return Err(self.error(declarator.place, format!("a second member called `{name}`")));
                }
                nodes = nodes.saturating_add(class.nodes);
                depth = depth.max(class.depth);
                let place = self.place(declarator.place);
                members.push(Member { place, ..Member::new(name, class.class) });
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        self.scopes.close();
        Ok((members, nodes, depth + 1))
    }

    fn declarator(&mut self) -> Result<Declarator, Error> {
        let place = self.at;
        let name = self.word("a name")?;
        if KEYWORDS.contains(&name.as_str()) {
            return Err(self.error(place, format!("`{name}` is a keyword; expected a name")));
        }
        Ok(Declarator { name, place, dimensions: self.dimensions()? })
    }

    fn dimensions(&mut self) -> Result<Vec<Dimension>, Error> {
        let mut dimensions = Vec::new();
        while self.eat("[") {
            dimensions.push(match self.peek() {
                Token::Number(length) => {
                    let length = *length;
                    self.at += 1;
                    Dimension::Length(length)
                }
                _ => Dimension::Location(self.location()?),
            });
            self.expect("]")?;
        }
        Ok(dimensions)
    }

    /// The class with its array dimensions around it.
    fn apply(&self, mut sized: Sized, dimensions: Vec<Dimension>) -> Result<Sized, Error> {
        for dimension in dimensions.into_iter().rev() {
            let element = sized.class;
            sized.class = match dimension {
                Dimension::Length(length) => {
                    FieldClass::StaticArray(Arc::new(StaticArrayClass::new(length, element)))
                }
                Dimension::Location(length) => {
                    FieldClass::DynamicArray(Arc::new(DynamicArrayClass::new(length, element)))
                }
            };
            sized.nodes = sized.nodes.saturating_add(1);
            sized.depth += 1;
            if sized.depth > DEEPEST {
                return Err(
                    self.error(sized.place, format!("field classes are nested more than {DEEPEST} deep"))
                );
            }
        }
        Ok(sized)
    }

    /// A reference to an earlier field.
    fn location(&mut self) -> Result<FieldLocation, Error> {
        const ORIGINS: [(&[&str], Scope); 6] = [
            (&["trace", "packet", "header"], Scope::PacketHeader),
            (&["stream", "packet", "context"], Scope::PacketContext),
            (&["stream", "event", "header"], Scope::EventHeader),
            (&["stream", "event", "context"], Scope::CommonContext),
            (&["event", "context"], Scope::SpecificContext),
            (&["event", "fields"], Scope::Payload),
        ];
        let place = self.place(self.at);
        let path = self.name_path("a field")?;
        let found = ORIGINS.iter().find(|(prefix, _)| {
            path.len() > prefix.len() && path.iter().zip(*prefix).all(|(part, word)| part == word)
        });
        let (origin, skip) =
            found.map_or((Origin::Search, 0), |(prefix, scope)| (Origin::Scope(*scope), prefix.len()));
        let names = path.into_iter().skip(skip);
        let path = names.map(|name| plain_name(&name).to_owned()).collect();
        Ok(FieldLocation { place, ..FieldLocation::new(origin, path) })
    }
}

/// A field's name without the underscore that protects it.
fn plain_name(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}

impl TypeScopes {
    /// Opens a scope unless scopes are nested too deep already: the parser recurses with them.
    fn open_within(&mut self, deepest: u32) -> Result<(), String> {
        if self.0.len() > deepest as usize {
            return Err(format!("field classes are nested more than {deepest} deep"));
        }
        self.open();
        Ok(())
    }
}
