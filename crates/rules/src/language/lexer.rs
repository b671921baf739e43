//! From a predicate's text to its words.

use super::fault::{Fault, PredicateFault};
use super::integer::Integer;
use super::quantity::Quantity;

/// A word of the grammar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Name(String),
    Integer(Integer),
    Real(f64),
    /// A number with a unit.
    Quantity(Quantity),
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// Longest first, since the first match is taken.
const SIGNS: [&str; 18] =
    ["&&", "||", "==", "!=", "<=", ">=", "=~", "!~", "<", ">", "!", "&", "(", ")", "[", "]", "$", "."];

/// Operators of other languages, and the fault that names the ones meant.
const FOREIGN: [(&str, PredicateFault); 4] = [
    ("=", PredicateFault::Assignment),
    ("|", PredicateFault::SingleBar),
    ("~", PredicateFault::Tilde),
    ("^", PredicateFault::Caret),
];

pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes characters while `fits` accepts them.
    fn take_while(&mut self, mut fits: impl FnMut(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|char| !fits(char)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// The next word and its position.
    pub(crate) fn next(&mut self) -> Result<(Token, usize), Fault> {
        self.take_while(char::is_whitespace);
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok((Token::End, start)) };
        let token = match first {
            '"' | '\'' => self.text(first)?,
            '0'..='9' => self.number(Integer::from(1_u8))?,
            '-' => {
                self.at += 1;
                if !self.rest().starts_with(|char: char| char.is_ascii_digit()) {
                    return Err(Fault::new(start, PredicateFault::MissingNumber));
                }
                self.number(Integer::from(-1)).map_err(|fault| Fault { at: start, ..fault })?
            }
            '_' => self.name(),
            letter if letter.is_alphabetic() => self.name(),
            _ => self.sign()?,
        };
        Ok((token, start))
    }

    /// Whether this character comes next, ignoring spaces.
    pub(crate) fn is_followed_by(&self, char: char) -> bool {
        self.rest().trim_start().starts_with(char)
    }

    fn name(&mut self) -> Token {
        Token::Name(self.take_while(|char| char == '_' || char.is_alphanumeric()).to_owned())
    }

    fn sign(&mut self) -> Result<Token, Fault> {
        let (start, rest) = (self.at, self.rest());
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            self.at += sign.len();
            return Ok(Token::Sign(sign));
        }
        if let Some((_, meant)) = FOREIGN.into_iter().find(|(sign, _)| rest.starts_with(sign)) {
            return Err(Fault::new(start, meant));
        }
        Err(Fault::new(start, PredicateFault::Character))
    }

    fn number(&mut self, unit: Integer) -> Result<Token, Fault> {
        let start = self.at;
        let radix = match self.rest().as_bytes() {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'o' | b'O', ..] => 8,
            [b'0', b'b' | b'B', ..] => 2,
            _ => 10,
        };
        if radix != 10 {
            self.at += 2;
        }
        let mut before = ' ';
        let mut real = false;
        let word = self.take_while(|char| {
            let exponent = real && matches!((before, char), ('e' | 'E', '+' | '-'));
            let fits = char == '_' || char.is_alphanumeric() || radix == 10 && (char == '.' || exponent);
            real |= radix == 10 && matches!(char, '.' | 'e' | 'E');
            before = char;
            fits
        });
        let word = word.replace('_', "");
        let negative = unit.is_negative();
        let digits = if radix == 10 { word.trim_end_matches(char::is_alphabetic) } else { &word };
        if digits.len() < word.len() {
            let name = &word[digits.len()..];
            let quantity = Quantity::parse(digits, name, negative).map(Token::Quantity);
            return quantity.ok_or_else(|| Fault::new(start, PredicateFault::NoQuantity));
        }
        if real {
            let number: f64 = digits.parse().map_err(|_| Fault::new(start, PredicateFault::NoNumber))?;
            if number.is_infinite() {
                return Err(Fault::new(start, PredicateFault::LargeReal));
            }
            return Ok(Token::Real(if negative { -number } else { number }));
        }
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return Err(Fault::new(start, PredicateFault::NoNumber));
        }
        let number = u128::from_str_radix(digits, radix).ok().map(Integer::from);
        let number = if negative { number.and_then(Integer::checked_neg) } else { number };
        number.map(Token::Integer).ok_or_else(|| Fault::new(start, PredicateFault::LargeInteger))
    }

    fn text(&mut self, quote: char) -> Result<Token, Fault> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            text += self.take_while(|char| char != quote && char != '\\');
            let at = self.at;
            match self.rest().chars().next() {
                None => return Err(Fault::new(start, PredicateFault::OpenText)),
                Some('\\') => {
                    self.at += 1;
                    text.push(self.escaped().ok_or_else(|| Fault::new(at, PredicateFault::Escape))?);
                }
                Some(_) => {
                    self.at += 1;
                    break;
                }
            }
        }
        if text.contains('\0') {
            return Err(Fault::new(start, PredicateFault::Nul));
        }
        Ok(Token::Text(text))
    }

    /// The character that an escape denotes.
    fn escaped(&mut self) -> Option<char> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        let digits = match letter {
            'n' => return Some('\n'),
            'r' => return Some('\r'),
            't' => return Some('\t'),
            '\\' | '"' | '\'' => return Some(letter),
            'x' => {
                let digits = self.rest().get(..2)?;
                self.at += 2;
                u32::from_str_radix(digits, 16).ok().filter(|number| *number < 0x80)?;
                digits
            }
            'u' => {
                let (digits, _) = self.rest().strip_prefix('{')?.split_once('}')?;
                self.at += digits.len() + 2;
                digits
            }
            _ => return None,
        };
        if !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Token, Fault> {
        let mut lexer = Lexer::new(text);
        let (token, _) = lexer.next()?;
        assert_eq!(lexer.next().unwrap().0, Token::End, "{text}");
        Ok(token)
    }

    #[test]
    fn numbers() {
        for (text, expected) in [
            ("0", 0),
            ("1_000", 1000),
            ("0xff", 255),
            ("0XF_f", 255),
            ("0o17", 15),
            ("0b1010_1010", 170),
            ("-5", -5),
            ("-0x10", -16),
        ] {
            assert_eq!(one(text), Ok(Token::Integer(Integer::from(expected))), "{text}");
        }
        assert_eq!(one(&u128::MAX.to_string()), Ok(Token::Integer(Integer::MAX)));
        assert_eq!(one(&i128::MIN.to_string()), Ok(Token::Integer(Integer::MIN)));
        for (text, expected) in [("1.5", 1.5), ("-1e3", -1000.0), ("2.5e-3", 0.0025), ("1_0.2_5", 10.25)] {
            assert_eq!(one(text), Ok(Token::Real(expected)), "{text}");
        }
        for text in
            ["0x", "12a", "1.2.3", "0b12", "1e", "1e999", "-", "340282366920938463463374607431768211456"]
        {
            assert!(one(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts() {
        for (text, expected) in [
            (r#""""#, ""),
            (r#""a'b""#, "a'b"),
            (r#"'a"b'"#, "a\"b"),
            (r#""\n\r\t\\\"\'""#, "\n\r\t\\\"'"),
            (r#""\x41\u{fc}é""#, "Aüé"),
        ] {
            assert_eq!(one(text), Ok(Token::Text(expected.into())), "{text}");
        }
        for text in [
            "\"",
            "'a",
            r#""\"#,
            r#""\q""#,
            r#""\xé""#,
            r#""\x80""#,
            r#""\u{d800}""#,
            r#""\u{+1}""#,
            r#""\0""#,
        ] {
            assert!(one(text).is_err(), "{text}");
        }
        assert!(one("\"a\\x00b\"").is_err());
    }
}
