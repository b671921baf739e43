//! Tokens one after the other, and the values of attributes.

use super::lex::{self, Token};
use super::parser::Parser;
use crate::model::{ByteOrder, Place, Uuid};
use crate::{Error, TsdlBlock, TsdlFault, TsdlNeeded};

/// The right side of an attribute.
#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// A name, or names joined by dots.
    Path(Vec<String>),
    Number(i128),
}

/// An attribute of a block: the left side's names, the value, and the tokens where they begin.
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) value: Value,
    pub(super) place: usize,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(super) fn peek_word(&self) -> Option<&str> {
        match self.peek() {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &'static str) -> Result<(), Error> {
        if self.eat(sign) {
            return Ok(());
        }
        Err(self.error(self.at, TsdlFault::NoSign { expected: sign, found: self.peek().to_string() }))
    }

    pub(super) fn word(&mut self, what: TsdlNeeded) -> Result<String, Error> {
        match self.peek() {
            Token::Word(word) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Names joined by dots (or arrows).
    pub(super) fn name_path(&mut self, what: TsdlNeeded) -> Result<Vec<String>, Error> {
        let mut path = vec![self.word(what)?];
        while self.eat(".") || self.eat("->") {
            path.push(self.word(TsdlNeeded::Name)?);
        }
        Ok(path)
    }

    pub(super) fn value(&mut self) -> Result<Value, Error> {
        match self.peek().clone() {
            Token::Text(text) => {
                self.at += 1;
                Ok(Value::Text(text))
            }
            Token::Word(_) => Ok(Value::Path(self.name_path(TsdlNeeded::Value)?)),
            _ => Ok(Value::Number(self.number()?)),
        }
    }

    /// An integer literal with its sign.
    pub(super) fn number(&mut self) -> Result<i128, Error> {
        let mut negative = false;
        while matches!(self.peek(), Token::Sign("-" | "+")) {
            negative ^= matches!(self.peek(), Token::Sign("-"));
            self.at += 1;
        }
        let Token::Number(number) = *self.peek() else { return Err(self.unexpected(TsdlNeeded::Value)) };
        self.at += 1;
        Ok(if negative { -i128::from(number) } else { i128::from(number) })
    }

    pub(super) fn unsigned(&self, attribute: &Attribute) -> Result<u64, Error> {
        match attribute.value {
            Value::Number(number) => u64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| self.value_error(attribute, TsdlNeeded::Unsigned))
    }

    pub(super) fn signed(&self, attribute: &Attribute) -> Result<i64, Error> {
        match attribute.value {
            Value::Number(number) => i64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| self.value_error(attribute, TsdlNeeded::Signed64))
    }

    pub(super) fn boolean(&self, attribute: &Attribute) -> Result<bool, Error> {
        match &attribute.value {
            Value::Number(number) => Some(*number != 0),
            Value::Text(word) => truth(word),
            Value::Path(path) => path.first().filter(|_| path.len() == 1).and_then(|word| truth(word)),
        }
        .ok_or_else(|| self.value_error(attribute, TsdlNeeded::Truth))
    }

    pub(super) fn text_of(&self, attribute: &Attribute) -> Result<String, Error> {
        match &attribute.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Path(path) => Ok(path.join(".")),
            Value::Number(_) => Err(self.value_error(attribute, TsdlNeeded::Text)),
        }
    }

    pub(super) fn uuid(&self, attribute: &Attribute) -> Result<Uuid, Error> {
        let text = self.text_of(attribute)?;
        uuid_from_text(&text).ok_or_else(|| {
            let expected = TsdlNeeded::Uuid;
            self.error(attribute.place, TsdlFault::Expected(expected))
        })
    }

    /// The byte order that an attribute names; `None` for `native`.
    pub(super) fn byte_order(&self, attribute: &Attribute) -> Result<Option<ByteOrder>, Error> {
        match self.text_of(attribute)?.as_str() {
            "le" => Ok(Some(ByteOrder::Little)),
            "be" | "network" => Ok(Some(ByteOrder::Big)),
            "native" => Ok(None),
            _ => Err(self.error(attribute.place, TsdlFault::Expected(TsdlNeeded::ByteOrder))),
        }
    }

    #[cold]
    pub(super) fn unexpected(&self, expected: TsdlNeeded) -> Error {
        self.error(self.at, TsdlFault::Unexpected { expected, found: self.peek().to_string() })
    }

    /// An attribute's value is of another kind than the attribute takes.
    #[cold]
    pub(super) fn value_error(&self, attribute: &Attribute, expected: TsdlNeeded) -> Error {
        self.error(attribute.place, TsdlFault::Value { attribute: attribute.name.clone(), expected })
    }

    /// Where a token stands.
    pub(super) fn place(&self, token: usize) -> Place {
        self.tokens.get(token).map_or_else(Place::default, |(_, at)| Place::new(*at))
    }

    /// Warns of an attribute that no block of this kind has; it is ignored.
    pub(super) fn unknown_attribute(&mut self, block: TsdlBlock, name: &str, token: usize) {
        let attribute = if self.warnings.has_room() { name.to_owned() } else { String::new() };
        self.warn(token, TsdlFault::UnknownAttribute { attribute, block });
    }

    /// Warns of what is read in spite of it.
    pub(super) fn warn(&mut self, token: usize, fault: TsdlFault) {
        match self.warnings.has_room() {
            true => self.warnings.add(self.error(token, fault)),
            false => self.warnings.count(),
        }
    }

    /// An error at a token.
    #[cold]
    pub(super) fn error(&self, token: usize, fault: impl Into<TsdlFault>) -> Error {
        let at = self.tokens.get(token).map_or(self.text.len(), |(_, at)| *at);
        lex::error_at(self.text, at, fault.into())
    }
}

fn truth(word: &str) -> Option<bool> {
    match word {
        "true" | "TRUE" => Some(true),
        "false" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The UUID that a text of 36 characters names.
fn uuid_from_text(text: &str) -> Option<Uuid> {
    let mut uuid = [0; 16];
    let well_formed = text.len() == 36
        && text.bytes().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if !well_formed {
        return None;
    }
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| (byte as char).to_digit(16)).map(|d| d as u8).collect();
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(uuid)
}
