//! An argument of a USDT probe: `SIZE@OPERAND`, the operand as the assembler for x86-64 writes it, and its
//! translation to the kernel's syntax of fetch arguments.
//!
//! | operand | meaning | fetched as |
//! |---|---|---|
//! | `%rdi`, `%edi` | a register, or its lower part | `%di` |
//! | `$-5` | a constant | `\-5` |
//! | `-8(%rbp)` | memory at an address in a register | `-8(%bp)` |
//! | `counter(%rip)`, `counter+4(%rip)` | memory at a symbol | `@+FILEOFFSET` |
//!
//! The kernel cannot compute more than that: no index (`(%rax,%rbx,8)`), no vector register, no second byte
//! (`%ah`).

use crate::probes::OperandFault;
use crate::probes::place::{Place, register};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operand {
    size: u8,
    signed: bool,
    pub(crate) at: At,
}

/// Location of an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum At {
    Known(Place),
    /// An offset in bytes from a symbol.
    Symbol(String, i64),
}

impl Operand {
    /// # Errors
    /// The reason why the kernel cannot fetch it.
    pub(crate) fn parse(text: &str) -> Result<Self, OperandFault> {
        let wrong = || OperandFault::Malformed;
        let (size, operand) = text.split_once('@').ok_or_else(wrong)?;
        if size.ends_with('f') {
            return Err(OperandFault::Float);
        }
        let bytes: i8 = size.parse().map_err(|_| wrong())?;
        if !matches!(bytes.unsigned_abs(), 1 | 2 | 4 | 8) {
            return Err(wrong());
        }
        let at = if let Some(constant) = operand.strip_prefix('$') {
            At::Known(Place::Constant(number(constant).ok_or_else(wrong)?))
        } else if operand.starts_with('%') {
            At::Known(Place::Register(register(operand).ok_or_else(|| no_register(operand))?))
        } else {
            memory(operand)?
        };
        Ok(Self { size: bytes.unsigned_abs(), signed: bytes < 0, at })
    }

    /// Its type, by the kernel's name.
    pub(crate) fn kind(&self) -> String {
        format!("{}{}", if self.signed { 's' } else { 'u' }, u32::from(self.size) * 8)
    }
}

/// `8(%rax)`, `name+4(%rip)`, `-4+name(%rip)`.
fn memory(operand: &str) -> Result<At, OperandFault> {
    let wrong = || OperandFault::Malformed;
    let (displacement, base) = operand.split_once('(').ok_or_else(wrong)?;
    let base = base.strip_suffix(')').ok_or_else(wrong)?;
    if base.contains(',') {
        return Err(OperandFault::Index);
    }
    if base != "%rip" {
        let base = register(base).ok_or_else(|| no_register(base))?;
        let displacement = if displacement.is_empty() { Some(0) } else { number(displacement) };
        return Ok(At::Known(Place::Register(base).memory(displacement.ok_or_else(wrong)?)));
    }
    let (mut name, mut offset) = (None, 0_i64);
    let mut rest = displacement;
    while !rest.is_empty() {
        let end = rest[1..].find(['+', '-']).map_or(rest.len(), |at| at + 1);
        let (part, tail) = rest.split_at(end);
        match number(part) {
            Some(number) => offset = offset.wrapping_add(number),
            None if name.is_none() => name = Some(part.trim_start_matches('+').to_owned()),
            None => return Err(wrong()),
        }
        rest = tail;
    }
    name.map(|name| At::Symbol(name, offset)).ok_or(OperandFault::NoSymbol)
}

fn no_register(text: &str) -> OperandFault {
    OperandFault::Register(text.to_owned())
}

fn number(text: &str) -> Option<i64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value }.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(text: &str) -> Result<String, OperandFault> {
        let operand = Operand::parse(text)?;
        match operand.at {
            At::Known(place) => Ok(place.fetch(&operand_kind(text))),
            At::Symbol(name, offset) => Ok(format!("{name}{offset:+}")),
        }
    }

    fn operand_kind(text: &str) -> String {
        Operand::parse(text).unwrap().kind()
    }

    #[test]
    fn operands_as_gcc_and_clang_write_them() {
        for (text, expected) in [
            ("8@%rdi", "%di:u64"),
            ("-4@%eax", "%ax:s32"),
            ("1@%r10b", "%r10:u8"),
            ("-2@%sil", "%si:s16"),
            ("-4@$5", "\\5:s32"),
            ("8@$-5", "\\-5:u64"),
            ("8@(%rax)", "+0(%ax):u64"),
            ("4@-8(%rbp)", "-8(%bp):u32"),
            ("8@0x10(%r12)", "+16(%r12):u64"),
            ("4@counter(%rip)", "counter+0"),
            ("4@counter+8(%rip)", "counter+8"),
            ("4@-4+counter(%rip)", "counter-4"),
        ] {
            assert_eq!(fetch(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, reason) in [
            ("8@(%rax,%rbx,8)", "index"),
            ("8f@%xmm0", "floating-point"),
            ("8@%xmm0", "%xmm0"),
            ("1@%ah", "%ah"),
            ("8", "malformed"),
            ("3@%rax", "malformed"),
            ("8@8(%rax", "malformed"),
            ("8@(%rip)", "no symbol"),
        ] {
            let error = fetch(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }
}
