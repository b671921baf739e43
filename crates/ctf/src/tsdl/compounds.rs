//! Parses structures and variants, and what is found by their names (specification 1.8.3, section 4.2).

use std::collections::HashSet;
use std::sync::Arc;

use super::lex::Token;
use super::parser::{Parser, Sized};
use super::types::plain_name;
use super::values::Attribute;
use crate::metadata_text::DEEPEST_FIELD_CLASS as DEEPEST;
use crate::model::{FieldClass, FieldLocation, Member, Origin, StructureClass, VariantClass, VariantOption};
use crate::{Error, TsdlFault, TsdlNeeded, TsdlType};

impl Parser<'_> {
    /// `struct NAME? { … }? align(N)?`
    pub(super) fn structure(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        self.at += 1;
        let name = self.tag_name()?;
        if !self.at_sign("{") {
            let mut found = self.declared(TsdlType::Structure, name, place)?;
            let min_align = self.least_alignment()?;
            if let (FieldClass::Structure(class), true) = (&mut found.class, min_align > 0) {
                let class = Arc::make_mut(class);
                class.min_align = class.min_align.max(min_align);
            }
            return Ok(found);
        }
        let (mut members, nodes, depth) = self.members(place)?;
        self.take_underscores(&mut members);
        let min_align = self.least_alignment()?;
        let class = StructureClass { min_align, members, ..StructureClass::default() }.into();
        self.finish(TsdlType::Structure, name, Sized { class, nodes, depth, place })
    }

    /// `align(N)`, or nothing, which gives 0.
    fn least_alignment(&mut self) -> Result<u32, Error> {
        if !self.eat_word("align") {
            return Ok(0);
        }
        self.expect("(")?;
        let place = self.at;
        let value = self.value()?;
        let align = self.alignment(&Attribute { name: "align".to_owned(), start: place, value, place })?;
        self.expect(")")?;
        Ok(align)
    }

    /// `variant NAME? <TAG>? { … }?`
    pub(super) fn variant(&mut self) -> Result<Sized, Error> {
        let place = self.at;
        self.at += 1;
        let name = self.tag_name()?;
        let mut tag = FieldLocation::new(Origin::Search, Vec::new());
        if self.eat("<") {
            tag = self.location()?;
            self.expect(">")?;
        }
        if !self.at_sign("{") {
            let mut found = self.declared(TsdlType::Variant, name, place)?;
            if let (FieldClass::Variant(class), false) = (&mut found.class, tag.path.is_empty()) {
                Arc::make_mut(class).tag = tag;
            }
            return Ok(found);
        }
        // An option is found by its label, underscore and all.
        let (options, nodes, depth) = self.members(place)?;
        let options = options.into_iter().map(|Member { name, class, place, .. }| VariantOption {
            place,
            ..VariantOption::new(name, class)
        });
        let class = VariantClass { options: options.collect(), ..VariantClass::new(tag) }.into();
        self.finish(TsdlType::Variant, name, Sized { class, nodes, depth, place })
    }

    /// The optional name after `struct`, `variant` or `enum`.
    pub(super) fn tag_name(&mut self) -> Result<Option<String>, Error> {
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
    pub(super) fn declared(
        &mut self,
        kind: TsdlType,
        name: Option<String>,
        place: usize,
    ) -> Result<Sized, Error> {
        let Some(name) = name else { return Err(self.unexpected(TsdlNeeded::NameOrBody)) };
        match self.scopes.find(&format!("{kind} {name}")) {
            Some(found) => Ok(Sized { place, ..found.clone() }),
            None => Err(self.error(place, TsdlFault::NoType { kind, name })),
        }
    }

    pub(super) fn finish(
        &mut self,
        kind: TsdlType,
        name: Option<String>,
        class: Sized,
    ) -> Result<Sized, Error> {
        if let Some(name) = name {
            self.add_type(format!("{kind} {name}"), class.clone(), class.place)?;
        }
        Ok(class)
    }

    /// Takes the protecting underscores off members' names, but where two would be the same then.
    fn take_underscores(&mut self, members: &mut [Member]) {
        let written: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let mut names: Vec<&str> = written.iter().map(|name| plain_name(name)).collect();
        loop {
            let mut seen = HashSet::new();
            let twice: HashSet<&str> = names.iter().copied().filter(|name| !seen.insert(*name)).collect();
            if twice.is_empty() {
                break;
            }
            self.ambiguous.extend(twice.iter().map(|name| (*name).to_owned()));
            // What is written differs, so each round leaves fewer that may be the same.
            for (name, written) in names.iter_mut().zip(&written) {
                if twice.contains(name) {
                    *name = written;
                }
            }
        }
        for (member, name) in members.iter_mut().zip(names) {
            name.clone_into(&mut member.name);
        }
    }

    /// Checks the tag of a variant that was written at token `first` where that is one of the `members`
    /// before it: then it is wrong wherever the structure is used, and if it is used nowhere.
    fn check_tag_among(&self, first: usize, class: &Sized, members: &[Member]) -> Result<(), Error> {
        let is_at = |at: usize| matches!(self.tokens.get(first + at), Some((Token::Sign("<"), _)));
        let FieldClass::Variant(variant) = &class.class else { return Ok(()) };
        let ([tag], true) = (variant.tag.path.as_slice(), is_at(1) || is_at(2)) else { return Ok(()) };
        let mut named = members.iter().filter(|member| plain_name(&member.name) == tag);
        let (Some(member), None) = (named.next(), named.next()) else { return Ok(()) };
        let FieldClass::Enumeration(enumeration) = &member.class else {
            return Err(self.error(first, TsdlFault::TagIsNoEnumeration(member.name.clone())));
        };
        let is_label = |name: &str| enumeration.mappings.iter().any(|mapping| mapping.label == name);
        match variant.options.is_empty() || variant.options.iter().any(|option| is_label(&option.name)) {
            true => Ok(()),
            false => Err(self.error(first, TsdlFault::NoOption(member.name.clone()))),
        }
    }

    /// Members between braces, with the names as they are written, and how many field classes they and their
    /// parent are, and how deep.
    fn members(&mut self, place: usize) -> Result<(Vec<Member>, u64, u32), Error> {
        self.scopes.open_within(DEEPEST).map_err(|fault| self.error(place, fault))?;
        self.expect("{")?;
        let mut members: Vec<Member> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        let (mut nodes, mut depth) = (1_u64, 0);
        while !self.eat("}") {
            if matches!(self.peek_word(), Some("typedef" | "typealias")) {
                self.declaration()?;
                continue;
            }
            let may_stand_alone = matches!(self.peek_word(), Some("struct" | "variant" | "enum"));
            let has_name = matches!(self.tokens.get(self.at + 1), Some((Token::Word(_), _)));
            let first = self.at;
            let class = self.class_specifier()?;
            self.check_tag_among(first, &class, &members)?;
            if may_stand_alone && (self.eat(";") || (has_name && self.ends_declaration())) {
                // A named structure, variant or enumeration without a member of it.
                continue;
            }
            loop {
                let declarator = self.declarator()?;
                let class = self.apply(class.clone(), declarator.dimensions)?;
                if let FieldClass::Variant(variant) = &class.class
                    && variant.tag.path.is_empty()
                {
                    return Err(self.error(class.place, TsdlFault::NoTag));
                }
                let name = declarator.name;
                if !names.insert(name.clone()) {
                    return Err(self.error(declarator.place, TsdlFault::SecondMember(name)));
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
}
