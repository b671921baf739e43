//! Filters: a condition on an event's fields, compiled for one event class, which a program evaluates before
//! it writes an event. A filter comes from the recorder, is kept as words in memory, and may be overwritten
//! while it runs.
//!
//! [`evaluate`] is total: any words and any payload give an answer. It runs each instruction at most once,
//! since jumps only lead forward, allocates nothing and calls nothing through pointers.
//! [`Predicate::compile`](crate::Predicate::compile) compiles conditions to filters.
//!
//! # Words
//!
//! A filter is at most [`MAX_FILTER`] bytes: instructions ([`Instruction`], one 64-bit word), each followed
//! by its operands. Words are little-endian where they are bytes.
//!
//! | bits | what |
//! |---|---|
//! | 0..8 | [`Operation`]; for `Integer`, the sum of operation and load |
//! | 8..16 | what to load ([`Load`]) |
//! | 16..20 | base: the register whose value is added to the offset; 0 is the payload's begin |
//! | 20..24 | accepted orders of loaded value and operand: 1 less, 2 equal, 4 greater, in sum |
//! | 24..32 | next word if accepted |
//! | 32..40 | next word if not |
//! | 40..48 | words of a text; the register that `Locate` sets |
//! | 48..64 | offset of the value from the base, bytes |
//!
//! The next word is the index of a word after the instruction, or [`ACCEPT`]; anything else, for instance
//! [`REJECT`], rejects the event. A value outside the payload also rejects it, as does an instruction that
//! does not exist, such as a word of zeros. A filter without words accepts everything.

mod payload;

use core::cmp;

use payload::{Payload, Text};
use tracewing_abi::atomic::{AtomicU64, Ordering};
use tracewing_abi::schema::Scalar;

use crate::pattern;

/// Largest filter, bytes.
pub const MAX_FILTER: usize = 1024;
/// Largest filter, words.
pub const MAX_WORDS: usize = MAX_FILTER / 8;
/// Registers for positions in the payload, including register 0, which is always 0. A register's number is
/// taken modulo this.
pub const REGISTERS: usize = 8;
/// Jump target: the event is accepted.
pub const ACCEPT: u8 = 0xff;
/// Jump target: the event is rejected.
pub const REJECT: u8 = 0xfe;

/// Supplies values that are not in the payload. It is called only when a filter needs such a value, since an
/// answer may cost a system call.
pub trait Surroundings: Clone {
    /// Kernel thread id, as the event records it.
    fn tid(&self) -> u32;
    /// Process id.
    fn pid(&self) -> u32;
    /// CPU number.
    fn cpu(&self) -> u32;
}

impl Surroundings for Context {
    fn tid(&self) -> u32 {
        self.tid
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn cpu(&self) -> u32 {
        self.cpu
    }
}

/// Surroundings that are already known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// Kernel thread id, as the event records it.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// CPU number.
    pub cpu: u32,
}

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant = $number),+ }

        impl $name {
            #[inline]
            fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

numbered! {
    /// What an instruction does. All but `Locate` compare two values and continue at one of two places.
    Operation {
        /// Sets a register to the position after the `Text`, `Slice` or `Optional` at base + offset, and
        /// continues with the next instruction. [`Instruction::load`] is the scalar, or [`Load::TEXT`];
        /// [`Instruction::orders`] is the shape ([`SLICE`], [`OPTIONAL`]).
        Locate = 1,
        /// An integer masked by the first word, compared with the second word, both unsigned.
        Masked = 3,
        /// An integer compared with two words of the same signedness, low one first.
        Wide = 4,
        /// An integer masked by the first two words, compared with the next two, all unsigned.
        WideMasked = 5,
        /// A floating-point number compared with one of 64 bits. NaN has no order.
        Real = 6,
        /// A text compared with words of bytes, with a NUL after the last byte if it does not fill its word:
        /// equal or (as "less") not equal.
        Text = 7,
        /// A text compared with a pattern ([`crate::pattern`]), stored in the same way.
        Glob = 8,
        /// An integer compared with another one, which a further word describes as an instruction with
        /// `load`, `base` and `offset`.
        IntegerPair = 9,
        /// A floating-point number compared with another one, described likewise.
        RealPair = 10,
        /// A text compared with another one, described likewise.
        TextPair = 11,
        /// An integer compared with one word of the same signedness. Bits 0..8 are the sum of this number and
        /// the load, so that the most frequent comparison takes a single jump.
        Integer = 16,
    }
}

/// [`Instruction::orders`] of a `Locate` of a slice.
pub const SLICE: u8 = 1;
/// [`Instruction::orders`] of a `Locate` of an optional value.
pub const OPTIONAL: u8 = 2;

/// Accepted orders: the loaded value is less than the operand.
pub const LESS: u8 = 1;
/// Accepted orders: equal.
pub const EQUAL: u8 = 2;
/// Accepted orders: greater.
pub const GREATER: u8 = 4;

/// The source of a value: a position of the payload, or elsewhere. Below 16: the [`Scalar`] of that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load(pub u8);

impl Load {
    /// Kernel thread id, unsigned.
    pub const TID: Self = Self(16);
    /// Process id, unsigned.
    pub const PID: Self = Self(17);
    /// CPU number, unsigned.
    pub const CPU: Self = Self(18);
    /// Bytes of the text before its NUL, unsigned.
    pub const LENGTH: Self = Self(19);
    /// A text up to its NUL.
    pub const TEXT: Self = Self(20);

    /// A value in the payload; `Char` is a text.
    pub const fn scalar(scalar: Scalar) -> Self {
        Self(scalar as u8)
    }

    #[inline]
    fn is_signed(self) -> bool {
        const SIGNED: u32 = 1 << Scalar::I8 as u32
            | 1 << Scalar::I16 as u32
            | 1 << Scalar::I32 as u32
            | 1 << Scalar::I64 as u32
            | 1 << Scalar::I128 as u32;
        self.0 < 16 && SIGNED >> self.0 & 1 != 0
    }
}

/// One instruction; see the [module](self) for its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the module's table has them")]
pub struct Instruction {
    pub operation: Operation,
    pub load: Load,
    pub base: u8,
    pub orders: u8,
    pub accepted: u8,
    pub rejected: u8,
    pub extra: u8,
    pub offset: u16,
}

impl Instruction {
    /// The instruction as a 64-bit word.
    pub const fn encode(self) -> u64 {
        let [low, high] = self.offset.to_le_bytes();
        let operation = match self.operation {
            Operation::Integer => (Operation::Integer as u8).wrapping_add(self.load.0),
            other => other as u8,
        };
        u64::from_le_bytes([
            operation,
            self.load.0,
            self.base & 15 | self.orders << 4,
            self.accepted,
            self.rejected,
            self.extra,
            low,
            high,
        ])
    }
}

/// An instruction as received; decoded by shifts, so that it stays in a CPU register.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    #[inline(always)]
    fn byte(self, index: u32) -> u8 {
        (self.0 >> (index * 8)) as u8
    }

    #[inline(always)]
    fn load(self) -> Load {
        Load(self.byte(1))
    }

    #[inline(always)]
    fn accepts(self, order: cmp::Ordering) -> bool {
        self.0 >> (20 + 1 + order as i32) & 1 != 0
    }

    #[inline(always)]
    fn target(self, accepted: bool) -> u8 {
        if accepted { self.byte(3) } else { self.byte(4) }
    }
}

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
                let pattern = Pattern { words: self.words(at + 1, word), bytes: 0, left: 0 };
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
            Load::TID => self.context.tid().into(),
            Load::PID => self.context.pid().into(),
            Load::CPU => self.context.cpu().into(),
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
        Words(self.program.get(at..at + usize::from(word.byte(5))).unwrap_or_default())
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

/// Bytes of each scalar, by its number.
const SIZES: [u8; 14] = [1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1, 4, 16, 16];

/// Operands, each loaded when it is needed.
#[derive(Clone, Copy)]
struct Words<'p>(&'p [AtomicU64]);

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first.load(Ordering::Relaxed))
    }
}

/// The bytes of a pattern, up to its NUL or the end of its words.
#[derive(Clone, Copy)]
struct Pattern<'p> {
    words: Words<'p>,
    /// The next bytes, the first one lowest, and their number.
    bytes: u64,
    left: u8,
}

impl Iterator for Pattern<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.left == 0 {
            self.bytes = self.words.next()?;
            self.left = 8;
        }
        let byte = self.bytes as u8;
        if byte == 0 {
            return None;
        }
        self.bytes >>= 8;
        self.left -= 1;
        Some(byte)
    }
}
