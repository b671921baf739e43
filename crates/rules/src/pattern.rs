//! Shell patterns over bytes that arrive one at a time: the meaning of every pattern of the project. They are
//! evaluated without allocation, so that the event path can use them too. Callers decide how to store them.
//!
//! | pattern | stands for |
//! |---|---|
//! | `*` | any number of characters |
//! | `?` | one character |
//! | `[a-z_]` | one of these; a leading `]` stands for itself |
//! | `[!a-z]`, `[^a-z]` | any other character |
//! | `\*` | the character after `\` |
//!
//! A `[` that is never closed and a `\` at the end stand for themselves. Characters are those of UTF-8; a
//! byte that belongs to none is a character of its own, equal to no other.

const LITERALLY: u32 = b'\\' as u32;
const ANY: u32 = b'*' as u32;
const ONE: u32 = b'?' as u32;
const OPEN: u32 = b'[' as u32;
const CLOSE: u32 = b']' as u32;
const DASH: u32 = b'-' as u32;

/// Whether all of `text` matches `pattern`.
///
/// The number of steps is at most the product of both lengths; only the last star is ever retried. It ends
/// whatever the iterators return, even if clones of one return different bytes, provided that each ends.
pub fn matches<P, T>(mut pattern: P, mut text: T) -> bool
where
    P: Iterator<Item = u8> + Clone,
    T: Iterator<Item = u8> + Clone,
{
    // Where to continue after a mismatch: after the last star, which then consumes one more character.
    let mut star: Option<(P, T)> = None;
    loop {
        let mut after = pattern.clone();
        let token = next(&mut after);
        if token == Some(ANY) {
            if after.clone().next().is_none() {
                return true;
            }
            star = Some((after.clone(), text.clone()));
            pattern = after;
            continue;
        }
        let mut rest = text.clone();
        let Some(found) = next(&mut rest) else {
            // Every other token takes a character, and a longer star would leave fewer of them.
            return token.is_none();
        };
        if token.is_some_and(|token| accepts(token, &mut after, found)) {
            (pattern, text) = (after, rest);
        } else {
            let Some((after, swallowed)) = &mut star else { return false };
            next(swallowed);
            (pattern, text) = (after.clone(), swallowed.clone());
        }
    }
}

/// Whether a token accepts a character. `rest` is the pattern after the token's first character, and
/// afterwards the pattern after the token.
fn accepts<P: Iterator<Item = u8> + Clone>(token: u32, rest: &mut P, found: u32) -> bool {
    match token {
        ONE => true,
        LITERALLY => next(rest).unwrap_or(LITERALLY) == found,
        OPEN => {
            let mut members = rest.clone();
            match set(&mut members, found) {
                Some(accepted) => {
                    *rest = members;
                    accepted
                }
                None => found == OPEN,
            }
        }
        literal => literal == found,
    }
}

/// Whether the set after a `[` contains a character; `None` if it is not closed.
fn set<P: Iterator<Item = u8> + Clone>(members: &mut P, found: u32) -> Option<bool> {
    let mut low = next(members)?;
    let negated = low == u32::from(b'!') || low == u32::from(b'^');
    if negated {
        low = next(members)?;
    }
    let mut among = false;
    loop {
        let mut high = low;
        let mut ahead = members.clone();
        if next(&mut ahead) == Some(DASH)
            && let Some(last) = next(&mut ahead)
            && last != CLOSE
        {
            high = last;
            *members = ahead;
        }
        among |= (low..=high).contains(&found);
        low = next(members)?;
        if low == CLOSE {
            return Some(among != negated);
        }
    }
}

/// Takes one character; a byte that belongs to none gives a number above those of all characters.
fn next(bytes: &mut (impl Iterator<Item = u8> + Clone)) -> Option<u32> {
    let first = bytes.next()?;
    let (more, bits, least) = match first {
        0..0x80 => return Some(first.into()),
        0xc2..0xe0 => (1, first & 0x1f, 0x80),
        0xe0..0xf0 => (2, first & 0x0f, 0x800),
        0xf0..0xf5 => (3, first & 0x07, 0x1_0000),
        _ => (0, 0, 1),
    };
    let mut ahead = bytes.clone();
    let mut number = u32::from(bits);
    for _ in 0..more {
        match ahead.next() {
            Some(byte) if byte & 0xc0 == 0x80 => number = number << 6 | u32::from(byte & 0x3f),
            _ => return Some(stray(first)),
        }
    }
    if number < least || char::from_u32(number).is_none() {
        return Some(stray(first));
    }
    *bytes = ahead;
    Some(number)
}

fn stray(byte: u8) -> u32 {
    char::MAX as u32 + 1 + u32::from(byte)
}
