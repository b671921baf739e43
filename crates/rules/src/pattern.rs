//! Shell patterns over bytes that come one at a time: what every pattern of the project means, without
//! allocation, so that the event path can ask one too. How patterns are kept is others' business.
//!
//! | pattern | stands for |
//! |---|---|
//! | `*` | any characters, also none |
//! | `?` | one character |
//! | `[a-z_]` | one of these; a `]` that comes first stands for itself |
//! | `[!a-z]`, `[^a-z]` | one that is none of these |
//! | `\*` | the character behind `\` |
//!
//! A `[` that is never closed and a `\` at the end stand for themselves. Characters are those of UTF-8; a
//! byte that is part of none is a character of its own, equal to no other.

const LITERALLY: u32 = b'\\' as u32;
const ANY: u32 = b'*' as u32;
const ONE: u32 = b'?' as u32;
const OPEN: u32 = b'[' as u32;
const CLOSE: u32 = b']' as u32;
const DASH: u32 = b'-' as u32;

/// Whether all of `text` matches `pattern`.
///
/// Takes at most as many steps as both have characters, multiplied; only the last star is ever tried again.
/// It ends whatever the iterators give, also where clones of one give different bytes, as long as each ends.
pub fn matches<P, T>(mut pattern: P, mut text: T) -> bool
where
    P: Iterator<Item = u8> + Clone,
    T: Iterator<Item = u8> + Clone,
{
    // Where to go on after a mismatch: behind the last star, which then swallows one character more.
    let mut star: Option<(P, T)> = None;
    loop {
        let mut behind = pattern.clone();
        let token = next(&mut behind);
        if token == Some(ANY) {
            if behind.clone().next().is_none() {
                return true;
            }
            star = Some((behind.clone(), text.clone()));
            pattern = behind;
            continue;
        }
        let mut rest = text.clone();
        let Some(found) = next(&mut rest) else {
            // Every other token takes a character, and a longer star would leave fewer of them.
            return token.is_none();
        };
        if token.is_some_and(|token| accepts(token, &mut behind, found)) {
            (pattern, text) = (behind, rest);
        } else {
            let Some((behind, swallowed)) = &mut star else { return false };
            next(swallowed);
            (pattern, text) = (behind.clone(), swallowed.clone());
        }
    }
}

/// Whether a token accepts a character. `behind` is what follows the token's first character, afterwards what
/// follows the token.
fn accepts<P: Iterator<Item = u8> + Clone>(token: u32, behind: &mut P, found: u32) -> bool {
    match token {
        ONE => true,
        LITERALLY => next(behind).unwrap_or(LITERALLY) == found,
        OPEN => {
            let mut members = behind.clone();
            match set(&mut members, found) {
                Some(accepted) => {
                    *behind = members;
                    accepted
                }
                None => found == OPEN,
            }
        }
        literal => literal == found,
    }
}

/// Whether the set behind a `[` has a character; `None` if it is not closed.
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

/// Takes one character; a byte that is part of none gives a number behind those of all characters.
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
