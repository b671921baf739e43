//! Instructions of a filter, as the module above lays out their words.

use core::cmp;

use tracewing_abi::schema::Scalar;

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant = $number),+ }

        impl $name {
            #[inline]
            pub(super) fn from_number(number: u8) -> Option<Self> {
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
    pub(super) fn is_signed(self) -> bool {
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
pub(super) struct Word(pub(super) u64);

impl Word {
    #[inline(always)]
    pub(super) fn byte(self, index: u32) -> u8 {
        (self.0 >> (index * 8)) as u8
    }

    #[inline(always)]
    pub(super) fn load(self) -> Load {
        Load(self.byte(1))
    }

    #[inline(always)]
    pub(super) fn accepts(self, order: cmp::Ordering) -> bool {
        self.0 >> (20 + 1 + order as i32) & 1 != 0
    }

    #[inline(always)]
    pub(super) fn target(self, accepted: bool) -> u8 {
        if accepted { self.byte(3) } else { self.byte(4) }
    }
}

/// Bytes of each scalar, by its number.
pub(super) const SIZES: [u8; 14] = [1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1, 4, 16, 16];
