//! Parses field classes: type specifiers, declarators, `typedef` and `typealias` (specification 1.8.3,
//! sections 4 and 7.3.1, appendix C.2).

use std::sync::Arc;

use super::KEYWORDS;
use super::lex::Token;
use super::parser::{Parser, Sized};
use crate::metadata_text::DEEPEST_FIELD_CLASS as DEEPEST;
use crate::model::{
    DisplayBase, DynamicArrayClass, FieldClass, FieldLocation, Origin, Scope, StaticArrayClass,
};
use crate::{Error, LimitFault, TsdlFault, TsdlNeeded};

/// A name with its array dimensions, outermost first.
pub(super) struct Declarator {
    pub(super) name: String,
    pub(super) place: usize,
    pub(super) dimensions: Vec<Dimension>,
}

pub(super) enum Dimension {
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
                self.lengths_are_no_types(&declarator)?;
                let class = self.apply(class.clone(), declarator.dimensions)?;
                self.add_type(declarator.name, class, declarator.place)?;
                if !self.eat(",") {
                    break;
                }
            }
        } else if matches!(self.peek_word(), Some("struct" | "variant" | "enum")) {
            self.class_specifier()?;
            if self.follows_body() && !self.at_sign(";") {
                return Ok(());
            }
        } else {
            let expected = TsdlNeeded::Statement;
            return Err(self.error(place, TsdlFault::Unexpected { expected, found: self.peek().to_string() }));
        }
        self.expect(";")
    }

    /// Checks the lengths of a `typedef` outside of blocks, where no field is seen whose name hides a type.
    fn lengths_are_no_types(&self, declarator: &Declarator) -> Result<(), Error> {
        let types = declarator.dimensions.iter().filter_map(|dimension| match dimension {
            Dimension::Location(FieldLocation { origin: Origin::Search, path, .. }) => match &path[..] {
                [name] if self.scopes.is_outermost() && self.scopes.find(name).is_some() => Some(name),
                _ => None,
            },
            _ => None,
        });
        let fault = |name: &String| Err(self.error(declarator.place, TsdlFault::TypeAsLength(name.clone())));
        types.into_iter().next().map_or(Ok(()), fault)
    }

    /// Whether the last token ends a body, perhaps with its `align(N)`: as for babeltrace2, another
    /// declaration may follow at once.
    fn follows_body(&self) -> bool {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        matches!(last, Some((Token::Sign("}" | ")"), _)))
    }

    /// Whether a declaration among members ends here without a `;`: another one follows its body.
    pub(super) fn ends_declaration(&self) -> bool {
        let another = matches!(
            self.peek_word(),
            Some(
                "struct"
                    | "variant"
                    | "enum"
                    | "typedef"
                    | "typealias"
                    | "integer"
                    | "floating_point"
                    | "string"
            )
        );
        self.follows_body() && (another || self.at_sign("}"))
    }

    pub(super) fn add_type(&mut self, name: String, class: Sized, place: usize) -> Result<(), Error> {
        let fault = TsdlFault::SecondType(name.clone());
        if self.scopes.add(name, class) { Ok(()) } else { Err(self.error(place, fault)) }
    }

    /// The left side of a `typealias`: a specifier with an optional unnamed declarator.
    fn aliased(&mut self) -> Result<Sized, Error> {
        let class = self.class_specifier()?;
        let dimensions = self.dimensions()?;
        self.apply(class, dimensions)
    }

    /// The right side of a `typealias`: words and stars.
    fn alias_name(&mut self) -> Result<String, Error> {
        const NO_NAMES: [&str; 12] = [
            "trace",
            "env",
            "clock",
            "stream",
            "event",
            "callsite",
            "integer",
            "floating_point",
            "string",
            "typedef",
            "typealias",
            "align",
        ];
        if let Some(keyword) = self.peek_word().filter(|word| NO_NAMES.contains(word)) {
            return Err(self.error(
                self.at,
                TsdlFault::Keyword { keyword: keyword.to_owned(), expected: TsdlNeeded::Name },
            ));
        }
        let mut name = self.word(TsdlNeeded::Alias)?;
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
        let mut is_const = false;
        while self.eat_word("const") {
            is_const = true;
        }
        let sized = match self.peek_word() {
            Some("integer") => self.leaf(place, Parser::integer)?,
            Some("floating_point") => self.leaf(place, Parser::float)?,
            Some("string") => self.leaf(place, Parser::string)?,
            Some("struct") => self.structure()?,
            Some("variant") => self.variant()?,
            Some("enum") => self.enumeration()?,
            Some(_) => self.named(is_const)?,
            None => return Err(self.unexpected(TsdlNeeded::FieldClass)),
        };
        if sized.depth > DEEPEST {
            return Err(self.error(place, LimitFault::Depth(DEEPEST)));
        }
        if sized.nodes > self.most() {
            return Err(self.error(place, LimitFault::Parts(self.most())));
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

    /// A reference to a `typedef` or `typealias`, possibly of several words. One that is declared as `const`
    /// may have another layout than the plain one.
    fn named(&mut self, is_const: bool) -> Result<Sized, Error> {
        let place = self.at;
        let mut name = self.word(TsdlNeeded::FieldClass)?;
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
        let constant = is_const.then(|| self.scopes.find(&format!("const {name}"))).flatten();
        let Some(found) = constant.or_else(|| self.scopes.find(&name)) else {
            return Err(self.error(place, TsdlFault::NoFieldClass(name)));
        };
        let mut sized = Sized { place, ..found.clone() };
        // As babeltrace2 has it.
        if let (true, FieldClass::Integer(pointer)) = (name.ends_with('*'), &mut sized.class) {
            pointer.base = DisplayBase::Hexadecimal;
        }
        Ok(sized)
    }

    pub(super) fn declarator(&mut self) -> Result<Declarator, Error> {
        let place = self.at;
        let name = self.word(TsdlNeeded::Name)?;
        if KEYWORDS.contains(&name.as_str()) {
            return Err(self.error(place, TsdlFault::Keyword { keyword: name, expected: TsdlNeeded::Name }));
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
    pub(super) fn apply(&self, mut sized: Sized, dimensions: Vec<Dimension>) -> Result<Sized, Error> {
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
                return Err(self.error(sized.place, LimitFault::Depth(DEEPEST)));
            }
        }
        Ok(sized)
    }

    /// A reference to an earlier field.
    pub(super) fn location(&mut self) -> Result<FieldLocation, Error> {
        const ORIGINS: [(&[&str], Scope); 6] = [
            (&["trace", "packet", "header"], Scope::PacketHeader),
            (&["stream", "packet", "context"], Scope::PacketContext),
            (&["stream", "event", "header"], Scope::EventHeader),
            (&["stream", "event", "context"], Scope::CommonContext),
            (&["event", "context"], Scope::SpecificContext),
            (&["event", "fields"], Scope::Payload),
        ];
        let start = self.at;
        let place = self.place(start);
        let path = self.name_path(TsdlNeeded::Field)?;
        let found = ORIGINS.iter().find(|(prefix, _)| {
            path.len() > prefix.len() && path.iter().zip(*prefix).all(|(part, word)| part == word)
        });
        let (origin, skip) =
            found.map_or((Origin::Search, 0), |(prefix, scope)| (Origin::Scope(*scope), prefix.len()));
        if let Some(keyword) = path[skip..].iter().find(|name| KEYWORDS.contains(&name.as_str())) {
            return Err(self.error(
                start,
                TsdlFault::Keyword { keyword: keyword.clone(), expected: TsdlNeeded::FieldName },
            ));
        }
        let names = path.iter().skip(skip).map(|name| plain_name(name).to_owned());
        let path: Vec<String> = names.collect();
        self.references.extend(path.iter().map(|name| (name.clone(), start)));
        Ok(FieldLocation { place, ..FieldLocation::new(origin, path) })
    }
}

/// A field's name without the underscore that protects it.
pub(super) fn plain_name(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}
