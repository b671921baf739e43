//! Reasons why a predicate holds for no event of a class.

use super::tree::Variable;

/// The reason why a predicate cannot be applied to the events of a class. Those events are left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {class:?}: {problem}")]
pub struct CompileError {
    /// Full name of the class.
    pub class: String,
    /// The first problem that was found.
    pub problem: Problem,
}

/// A reason why a predicate cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No field, or context, of this name; with similar names.
    #[error("it has no `{0}`{list}", list = listed(.1))]
    Missing(Variable, Vec<String>),
    /// A comparison of values of incompatible types.
    #[error("`{0}` is {1} and cannot be compared with {2}")]
    Mismatch(String, Sort, Sort),
    /// An operand that needs a relation, or has an unsuitable one.
    #[error("`{0}` is {1}: {2}")]
    Misused(String, Sort, Misuse),
    /// An array or slice without an index.
    #[error("`{0}` has several values: ask for one of them, as in `{0}[0]`, or for `len({0})`")]
    Several(Variable),
    /// A structure, or a variant of several fields; with its parts.
    #[error("`{0}` is made of parts: ask for one of them{list}", list = listed(.1))]
    Parts(Variable, Vec<String>),
    /// An index for a single value.
    #[error("`{0}`: the field has a single value")]
    Single(Variable),
    /// An index after the end of an array.
    #[error("`{0}`: the array has {1} values")]
    AfterEnd(Variable, u64),
    /// The length of a value that has none.
    #[error("`{0}`: the field has no length")]
    NoLength(Variable),
    /// A number with a unit that measures something else than the variable's.
    #[error("`{0}` is in {1} and cannot be compared with {2}")]
    Unit(Variable, String, String),
    /// A label that the enumeration does not have.
    #[error("`{0}` has no label {1:?}{list}", list = listed(.2))]
    NoLabel(Variable, String, Vec<String>),
    /// The filter has more than [`MAX_FILTER`](crate::filter::MAX_FILTER) bytes.
    #[error("the condition is too large: more than {} bytes when compiled", crate::filter::MAX_FILTER)]
    TooLarge,
    /// More positions are needed than a filter has registers for.
    #[error("the condition asks for too many fields after texts, slices and optional fields")]
    TooManyPositions,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Sort {
    /// A whole number.
    #[error("an integer")]
    Integer,
    /// A number that need not be whole.
    #[error("a floating-point number")]
    Real,
    /// Characters.
    #[error("a text")]
    Text,
    /// A number with labels.
    #[error("an enumeration")]
    Enumeration,
}

/// Why an operand is unsuitable: what would be suitable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// It has no order.
    #[error("compare it with `==`, `!=`, `=~` or `!~`")]
    Order,
    /// It has no bits.
    #[error("`&` takes bits of integers")]
    Bits,
    /// It is no condition by itself.
    #[error("compare it with something")]
    Alone,
    /// It is matched with a pattern.
    #[error("only texts match patterns")]
    Pattern,
    /// Its bits are compared with a field.
    #[error("bits in common are compared with a number, not with another field")]
    BitsOfTwo,
}

impl Problem {
    /// Whether the class lacks a compared field, rather than has it with another type.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Missing(..) | Self::AfterEnd(..))
    }
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    if names.is_empty() {
        return String::new();
    }
    let more = if names.len() > MOST { ", …" } else { "" };
    format!(" (it has {}{more})", names[..names.len().min(MOST)].join(", "))
}
