//! Evaluates a filter: one instruction after the other, from its words and the payload's bytes.

use core::cmp;

use tracewing_abi::atomic::{AtomicU64, Ordering};
use tracewing_abi::schema::Scalar;

use super::instruction::{Load, OPTIONAL, Operation, SIZES, SLICE, Word};
use super::operands::{Pattern, Words};
use super::payload::{Payload, Text};
use super::{ACCEPT, REGISTERS, Surroundings};
use crate::pattern;

/// Whether the filter accepts the event with this payload (the segments' bytes one after the other).
///
/// Each word of the program is loaded once per evaluation, and each word of a pattern once per attempt. A
/// filter that is overwritten meanwhile gives a meaningless answer, but it gives one.
pub fn evaluate<'a>(
    program: &[AtomicU64],
    segments: impl Iterator<Item = &'a [u8]> + Clone,
    context: &impl Surroundings,
) -> bool {
    if program.is_empty() {
        return true;
    }
    let run = Run { program, payload: Payload(segments), context };
    let mut registers = [0; REGISTERS];
    let mut at = 0;
    loop {
        let Some(next) = run.step(&mut registers, at) else { return false };
        if next == ACCEPT {
            return true;
        }
        if usize::from(next) <= at {
            return false;
        }
        at = next.into();
    }
}

/// Positions in the payload.
type Registers = [u32; REGISTERS];

/// The constant part of a run. Functions that are not inlined get a copy, so that the loop can keep it in CPU
/// registers.
#[derive(Clone)]
struct Run<'p, I, C> {
    program: &'p [AtomicU64],
    payload: Payload<I>,
    context: &'p C,
}

impl<'a, I: Iterator<Item = &'a [u8]> + Clone, C: Surroundings> Run<'_, I, C> {
    #[inline(always)]
    fn word(&self, at: usize) -> Option<u64> {
        Some(self.program.get(at)?.load(Ordering::Relaxed))
    }

    fn wide(&self, at: usize) -> Option<u128> {
        Some(u128::from(self.word(at)?) | u128::from(self.word(at + 1)?) << 64)
    }

    /// Runs the instruction at `at` and returns the next place; `None` if there is no answer. Frequent
    /// operations are handled here, the rest in `step_slow`.
    #[inline(always)]
    fn step(&self, registers: &mut Registers, at: usize) -> Option<u8> {
        const fn integer(scalar: Scalar) -> u8 {
            Operation::Integer as u8 + scalar as u8
        }
        const U8: u8 = integer(Scalar::U8);
        const U16: u8 = integer(Scalar::U16);
        const U32: u8 = integer(Scalar::U32);
        const U64: u8 = integer(Scalar::U64);
        const I8: u8 = integer(Scalar::I8);
        const I16: u8 = integer(Scalar::I16);
        const I32: u8 = integer(Scalar::I32);
        const I64: u8 = integer(Scalar::I64);
        const BOOL: u8 = integer(Scalar::Bool);
        const TEXT: u8 = Operation::Text as u8;
        const REAL: u8 = Operation::Real as u8;
        const LOCATE: u8 = Operation::Locate as u8;
        let word = Word(self.word(at)?);
        macro_rules! compare {
            ($type:ty as $wide:ty) => {{
                let value = <$type>::from_le_bytes(self.payload.array(Self::position(registers, word))?);
                <$wide>::from(value).cmp(&(self.word(at + 1)? as $wide))
            }};
        }
        let order = match word.byte(0) {
            U8 | BOOL => compare!(u8 as u64),
            U16 => compare!(u16 as u64),
            U32 => compare!(u32 as u64),
            U64 => compare!(u64 as u64),
            I8 => compare!(i8 as i64),
            I16 => compare!(i16 as i64),
            I32 => compare!(i32 as i64),
            I64 => compare!(i64 as i64),
            TEXT => {
                let operand = self.word(at + 1);
                let head = self.payload.word(Self::position(registers, word));
                match (word.load(), word.byte(5), head, operand) {
                    // Up to seven bytes, out of eight that are readable: the text's, and its NUL.
                    (Load::TEXT, 1, Some(head), Some(operand)) if operand >> 56 == 0 => {
                        let shift = operand.leading_zeros() & !7;
                        equality((head ^ operand) << (shift - 8) == 0)
                    }
                    _ => self.clone().compare_text(registers, at, word)?,
                }
            }
            REAL => {
                let (value, operand) = (self.real(registers, word)?, f64::from_bits(self.word(at + 1)?));
                return Some(real_target(word, value, operand));
            }
            LOCATE => {
                self.clone().locate(registers, word)?;
                return u8::try_from(at + 1).ok();
            }
            _ => return self.clone().step_slow(registers, at, word),
        };
        Some(word.target(word.accepts(order)))
    }

    #[inline(never)]
    fn compare_text(self, registers: &Registers, at: usize, word: Word) -> Option<cmp::Ordering> {
        Some(equality(self.text(registers, word)?.equals(self.words(at + 1, word))))
    }

    #[inline(never)]
    fn step_slow(self, registers: &Registers, at: usize, word: Word) -> Option<u8> {
        const INTEGER: u8 = Operation::Integer as u8;
        if word.byte(0) >= INTEGER {
            let order = self.integer(registers, word)?.cmp(&self.word(at + 1)?);
            return Some(word.target(word.accepts(order)));
        }
        let order = match Operation::from_number(word.byte(0))? {
            // Handled in `step`, or above.
            Operation::Integer | Operation::Text | Operation::Real | Operation::Locate => return None,
            Operation::Masked => {
                let (mask, operand) = (self.word(at + 1)?, self.word(at + 2)?);
                (self.integer(registers, word)? & mask).cmp(&operand)
            }
            Operation::Wide => {
                let flip = if word.load().is_signed() { 1 << 127 } else { 0 };
                let (value, operand) = (self.wide_integer(registers, word)?, self.wide(at + 1)?);
                (value ^ flip).cmp(&(operand ^ flip))
            }
            Operation::WideMasked => {
                let (mask, operand) = (self.wide(at + 1)?, self.wide(at + 3)?);
                (self.wide_integer(registers, word)? & mask).cmp(&operand)
            }
            Operation::Glob => {
                let pattern = Pattern::new(self.words(at + 1, word));
                equality(pattern::matches(pattern, self.text(registers, word)?))
            }
            Operation::IntegerPair => {
                let key = |word: Word| {
                    let value = self.wide_integer(registers, word)?;
                    Some((!(word.load().is_signed() && value >> 127 != 0), value))
                };
                key(word)?.cmp(&key(Word(self.word(at + 1)?))?)
            }
            Operation::RealPair => {
                let other = Word(self.word(at + 1)?);
                return Some(real_target(word, self.real(registers, word)?, self.real(registers, other)?));
            }
            Operation::TextPair => {
                let other = Word(self.word(at + 1)?);
                equality(self.text(registers, word)?.eq(self.text(registers, other)?))
            }
        };
        Some(word.target(word.accepts(order)))
    }

    #[inline(always)]
    fn position(registers: &Registers, word: Word) -> usize {
        let base = registers[usize::from(word.byte(2)) % REGISTERS];
        base as usize + (word.0 >> 48) as usize
    }

    /// An integer of at most 64 bits, sign-extended if it is signed.
    fn integer(&self, registers: &Registers, word: Word) -> Option<u64> {
        const U8: u8 = Scalar::U8 as u8;
        const U16: u8 = Scalar::U16 as u8;
        const U32: u8 = Scalar::U32 as u8;
        const U64: u8 = Scalar::U64 as u8;
        const I8: u8 = Scalar::I8 as u8;
        const I16: u8 = Scalar::I16 as u8;
        const I32: u8 = Scalar::I32 as u8;
        const I64: u8 = Scalar::I64 as u8;
        const BOOL: u8 = Scalar::Bool as u8;
        let at = Self::position(registers, word);
        Some(match word.load() {
            Load(U64 | I64) => u64::from_le_bytes(self.payload.array(at)?),
            Load(U32) => u32::from_le_bytes(self.payload.array(at)?).into(),
            Load(U16) => u16::from_le_bytes(self.payload.array(at)?).into(),
            Load(U8 | BOOL) => u8::from_le_bytes(self.payload.array(at)?).into(),
            Load(I32) => i64::from(i32::from_le_bytes(self.payload.array(at)?)) as u64,
            Load(I16) => i64::from(i16::from_le_bytes(self.payload.array(at)?)) as u64,
            Load(I8) => i64::from(i8::from_le_bytes(self.payload.array(at)?)) as u64,
            Load::TID => self.context.tid().0.cast_unsigned().into(),
            Load::PID => self.context.pid().as_unsigned().into(),
            Load::CPU => self.context.cpu().0.into(),
            Load::LENGTH => self.payload.text(at)?.length()?,
            _ => return None,
        })
    }

    /// An integer of any size, sign-extended if it is signed.
    fn wide_integer(&self, registers: &Registers, word: Word) -> Option<u128> {
        const U128: u8 = Scalar::U128 as u8;
        const I128: u8 = Scalar::I128 as u8;
        match word.load() {
            Load(U128 | I128) => {
                Some(u128::from_le_bytes(self.payload.array(Self::position(registers, word))?))
            }
            load => {
                let value = self.integer(registers, word)?;
                Some(if load.is_signed() { i128::from(value as i64) as u128 } else { value.into() })
            }
        }
    }

    #[inline]
    fn real(&self, registers: &Registers, word: Word) -> Option<f64> {
        const F32: u8 = Scalar::F32 as u8;
        const F64: u8 = Scalar::F64 as u8;
        let at = Self::position(registers, word);
        Some(match word.load() {
            Load(F32) => f32::from_le_bytes(self.payload.array(at)?).into(),
            Load(F64) => f64::from_le_bytes(self.payload.array(at)?),
            _ => return None,
        })
    }

    fn text(&self, registers: &Registers, word: Word) -> Option<Text<'a, I>> {
        const CHAR: u8 = Scalar::Char as u8;
        let at = Self::position(registers, word);
        match word.load() {
            Load::TEXT => self.payload.text(at),
            Load(CHAR) => self.payload.char(at),
            _ => None,
        }
    }

    /// Sets a register to the position after a field without a constant size.
    #[inline(never)]
    fn locate(self, registers: &mut Registers, word: Word) -> Option<()> {
        let at = Self::position(registers, word);
        let size = || SIZES.get(usize::from(word.load().0)).map(|&size| usize::from(size));
        let length = match word.byte(2) >> 4 {
            SLICE => 2 + usize::from(u16::from_le_bytes(self.payload.array(at)?)) * size()?,
            OPTIONAL if self.payload.array(at)? == [0_u8] => 1,
            OPTIONAL => 1 + size()?,
            _ => usize::try_from(self.payload.text(at)?.length()?).ok()? + 1,
        };
        match usize::from(word.byte(5)) % REGISTERS {
            0 => None,
            register => {
                registers[register] = u32::try_from(at.checked_add(length)?).ok()?;
                Some(())
            }
        }
    }

    fn words(&self, at: usize, word: Word) -> Words<'_> {
        Words::new(self.program.get(at..at + usize::from(word.byte(5))).unwrap_or_default())
    }
}

/// "Less" stands for "not equal".
#[inline(always)]
fn equality(equal: bool) -> cmp::Ordering {
    if equal { cmp::Ordering::Equal } else { cmp::Ordering::Less }
}

/// NaN has no order.
#[inline(always)]
fn real_target(word: Word, left: f64, right: f64) -> u8 {
    word.target(left.partial_cmp(&right).is_some_and(|order| word.accepts(order)))
}
