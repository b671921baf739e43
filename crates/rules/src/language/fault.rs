//! What is wrong with a text that is no predicate, and where.

/// Why a text is no predicate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredicateFault {
    /// More bytes than a predicate may have.
    #[error("a condition has at most {0} bytes")]
    Length(usize),
    /// A `-` without a number.
    #[error("expected a number after `-`")]
    MissingNumber,
    /// A single `=`.
    #[error("write `==` to compare")]
    Assignment,
    /// A single `|`.
    #[error("write `||` for \"or\"")]
    SingleBar,
    /// A `~` alone.
    #[error("write `=~` to match a pattern")]
    Tilde,
    /// A `^`.
    #[error("there is no `^` in conditions")]
    Caret,
    /// A character that begins no word.
    #[error("this character has no meaning here")]
    Character,
    /// Digits that are no number.
    #[error("this is not a number")]
    NoNumber,
    /// Digits and letters that are no number with a unit.
    #[error(
        "this is not a number; units are ns, us, ms, s, min and h, and for sizes B, K, M, G, KiB, MiB and GiB"
    )]
    NoQuantity,
    /// A floating-point number beyond the largest finite one.
    #[error("this number is too large")]
    LargeReal,
    /// An integer of more than 128 bits.
    #[error("this number has more than 128 bits")]
    LargeInteger,
    /// A quote that is not closed.
    #[error("this text has no end")]
    OpenText,
    /// An unknown escape.
    #[error("only \\n \\r \\t \\\\ \\\" \\' \\x41 and \\u{{41}} can follow `\\` in a text")]
    Escape,
    /// A text with NUL.
    #[error("no text of an event contains a NUL character")]
    Nul,
    /// A `)` without `(`.
    #[error("this `)` closes nothing")]
    Unopened,
    /// The word `and`.
    #[error("write `&&` for \"and\"")]
    WordAnd,
    /// The word `or`.
    #[error("write `||` for \"or\"")]
    WordOr,
    /// Something after a complete condition.
    #[error("expected `&&`, `||` or the end")]
    NoConnective,
    /// More than 64 parentheses and `!` in each other.
    #[error("nested too deeply")]
    Depth,
    /// `=~` or `!~` without a text.
    #[error("expected a pattern in quotes, as in \"shop-*\"")]
    NoPattern,
    /// A relation of a relation.
    #[error("comparisons cannot be chained: write `a < b && b < c`")]
    Chain,
    /// `!` before a relation without parentheses.
    #[error("write `!(a == b)` to negate a comparison")]
    NegatedRelation,
    /// A `(` without `)`.
    #[error("expected `)`")]
    Unclosed,
    /// A `[` without `]`.
    #[error("expected `]`")]
    UnclosedIndex,
    /// `&` after what is no field.
    #[error("`&` takes bits of a field, as in `(flags & 6) == 2`")]
    BitsOfValue,
    /// `&` without an integer.
    #[error("expected the bits as an integer, as in `flags & 0x10`")]
    NoBits,
    /// `&` with a negative integer.
    #[error("the bits are a number that is not negative")]
    NegativeBits,
    /// No field and no value.
    #[error("expected a field or a value")]
    NoOperand,
    /// Something else where only a field or a context can be.
    #[error("expected a field, or $ and a name")]
    NoVariable,
    /// `len` of an element.
    #[error("an element has no length")]
    LengthOfElement,
    /// `[` without a number.
    #[error("expected the element's number, from 0 on")]
    NoIndex,
    /// An index beyond 32 bits.
    #[error("no field has so many elements")]
    LargeIndex,
    /// No name after `$` or `.`.
    #[error("expected a name")]
    NoName,
    /// A relation as a side of a relation.
    #[error("only a field or a value can be compared")]
    RelationAsOperand,
}

/// What is wrong at a byte of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub at: usize,
    pub what: PredicateFault,
}

impl Fault {
    pub(crate) fn new(at: usize, what: PredicateFault) -> Self {
        Self { at, what }
    }
}

/// A text is no predicate. Shown in three lines: what is wrong, the text's line, and a `^` below the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  {line}\n  {caret:>column$}", caret = '^', column = column + 1)]
pub struct PredicateError {
    what: PredicateFault,
    line: String,
    column: usize,
    position: usize,
}

impl PredicateError {
    pub(crate) fn new(text: &str, Fault { at, what }: Fault) -> Self {
        /// Characters shown on either side of the place.
        const AROUND: usize = 60;
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let column = text[start..at].chars().count();
        let skipped = column.saturating_sub(AROUND);
        let shown = text[start..end].chars().skip(skipped).take(2 * AROUND);
        let line = shown.map(|char| if char.is_control() { ' ' } else { char }).collect();
        Self { what, line, column: column - skipped, position: at }
    }

    /// What is wrong, in a few words.
    pub fn fault(&self) -> &PredicateFault {
        &self.what
    }

    /// The byte of the text at which it is wrong; its length where something is missing at its end.
    pub fn position(&self) -> usize {
        self.position
    }
}
