//! Splits TSDL text into tokens (specification 1.8.3, appendix C.1), each with its place for error messages.

use crate::{Error, TsdlFault};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A keyword or an identifier.
    Word(String),
    /// A string literal, escapes resolved.
    Text(String),
    /// An integer or character literal.
    Number(u64),
    /// An operator or a separator.
    Sign(&'static str),
    /// The end of the text.
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Number(number) => write!(f, "{number}"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end of the metadata"),
        }
    }
}

/// Longest first, so that the first match is the right one.
const SIGNS: [&str; 19] =
    ["...", ":=", "->", "{", "}", "(", ")", "[", "]", "<", ">", ";", ",", "=", ":", ".", "+", "-", "*"];

/// The tokens of `text` and the offset of each in bytes; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, Error> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(text, at)?;
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push((Token::End, at));
            return Ok(tokens);
        };
        let (token, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' => word(text, at)?,
            '0'..='9' => number(text, at)?,
            '"' => {
                let (value, length) = quoted(text, at, '"')?;
                (Token::Text(value), length)
            }
            '\'' => {
                let (value, length) = quoted(text, at, '\'')?;
                match value.as_bytes() {
                    [byte] => (Token::Number(u64::from(*byte)), length),
                    _ => return Err(error_at(text, at, TsdlFault::CharacterLiteral)),
                }
            }
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => return Err(error_at(text, at, TsdlFault::Character(first))),
            },
        };
        tokens.push((token, at));
        at += length;
    }
}

/// A metadata error at a byte offset of the text.
#[cold]
pub(super) fn error_at(text: &str, at: usize, fault: TsdlFault) -> Error {
    crate::metadata_text::error_at(text, at, fault)
}

/// The offset of the first byte after blanks, comments and escaped newlines.
fn skip_blanks(text: &str, mut at: usize) -> Result<usize, Error> {
    loop {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\x0b', '\x0c']).len();
        if blanks > 0 {
            at += blanks;
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/");
            at += 4 + end.ok_or_else(|| error_at(text, at, TsdlFault::OpenComment))?;
        } else if let Some(length) = continuation(rest) {
            at += length;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            return Ok(at);
        }
    }
}

/// The length of a backslash at the end of a line, with the end of the line.
fn continuation(text: &str) -> Option<usize> {
    ["\\\n", "\\\r\n"].iter().find(|end| text.starts_with(**end)).map(|end| end.len())
}

/// A word, or a literal with the prefix of wide characters.
fn word(text: &str, at: usize) -> Result<(Token, usize), Error> {
    let rest = &text[at..];
    if rest.starts_with("L\"") {
        let (value, length) = quoted(text, at + 1, '"')?;
        return Ok((Token::Text(value), length + 1));
    }
    let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    Ok((Token::Word(rest[..length].to_owned()), length))
}

/// A decimal, octal or hexadecimal literal with C's suffixes.
fn number(text: &str, at: usize) -> Result<(Token, usize), Error> {
    let rest = &text[at..];
    let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let digits = rest[..length].trim_end_matches(['u', 'U', 'l', 'L']);
    let value = if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(&digits[1..], 8)
    } else {
        digits.parse()
    };
    match value {
        Ok(value) => Ok((Token::Number(value), length)),
        Err(_) => Err(error_at(text, at, TsdlFault::Number(rest[..length].to_owned()))),
    }
}

/// A literal between `quote`s, and its length with them.
fn quoted(text: &str, at: usize, quote: char) -> Result<(String, usize), Error> {
    let mut bytes = Vec::new();
    let mut chars = text[at + 1..].char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        let place = at + 1 + offset;
        match c {
            '\n' => break,
            // For C programs, the text would end here.
            '\0' => return Err(error_at(text, place, TsdlFault::Character(c))),
            '\\' if continuation(&text[place..]).is_some() => {
                while chars.next().is_some_and(|(_, c)| c != '\n') {}
            }
            '\\' => {
                let Some((_, escape)) = chars.next() else { break };
                let mut code = |first: u32, radix: u32, most: usize| {
                    let mut value = first;
                    for _ in 0..most {
                        let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(radix)) else { break };
                        value = value * radix + digit;
                        chars.next();
                    }
                    value
                };
                let byte = match escape {
                    'a' => 7,
                    'b' => 8,
                    'f' => 12,
                    'n' => 10,
                    'r' => 13,
                    't' => 9,
                    'v' => 11,
                    '\\' | '"' | '\'' | '?' => escape as u32,
                    '0'..='7' => code(escape as u32 - '0' as u32, 8, 2),
                    'x' => code(0, 16, 2),
                    _ => return Err(error_at(text, place, TsdlFault::UnknownEscape(escape))),
                };
                bytes.push(u8::try_from(byte).map_err(|_| error_at(text, place, TsdlFault::LargeEscape))?);
            }
            c if c == quote => {
                let value = String::from_utf8_lossy(&bytes).into_owned();
                return Ok((value, offset + 2));
            }
            c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Err(error_at(text, at, TsdlFault::OpenLiteral(quote)))
}
