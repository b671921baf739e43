//! A predicate resolved for one class: tests on values at known places. It is evaluated here on decoded
//! values, and `compile` turns it into a filter.
//!
//! Truth is Kleene's: a test of a value that the event does not have is unknown, and so is its opposite; an
//! event matches only if the whole is true. By the laws of De Morgan, which hold in that logic, `check` moves
//! every `!` of the text to the tests below it. Only "and" and "or" remain; whether they are true does not
//! change when unknown is replaced by false. So `holds` and the filter treat unknown as false and need two
//! values only.

use super::glob::Glob;
use super::integer::Integer;
use super::relation::Orders;

/// A predicate for the events of one class. `P` is the location of a value in an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition<P> {
    /// Holds for all events, or for none.
    Constant(bool),
    /// One comparison, and its expected result.
    Test(Test<P>, bool),
    /// All of these hold.
    All(Vec<Condition<P>>),
    /// At least one of these holds.
    Any(Vec<Condition<P>>),
}

/// One comparison. It is unknown if the event has no value at one of the places.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Test<P> {
    /// An integer, or its bits that are in the mask, against a number.
    Integer { place: P, mask: Option<u128>, orders: Orders, right: Integer },
    /// A floating-point number against a finite one.
    Real { place: P, orders: Orders, right: f64 },
    /// A text equals (or, negated, differs from) a given one.
    Text { place: P, negated: bool, text: String },
    /// A text matches a pattern, or does not.
    Glob { place: P, negated: bool, pattern: Glob },
    /// An integer against another one.
    IntegerPair { left: P, orders: Orders, right: P },
    /// A floating-point number against another one.
    RealPair { left: P, orders: Orders, right: P },
    /// A text equals another one, or differs from it.
    TextPair { left: P, negated: bool, right: P },
}

/// A value of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// An integer, an enumeration's value, or 1 and 0 for true and false.
    Integer(Integer),
    /// A floating-point number.
    Real(f64),
    /// A text; UTF-8 if its author meant it so.
    Text(&'a [u8]),
}

impl<P> Condition<P> {
    pub(crate) fn all(parts: Vec<Self>) -> Self {
        Self::joined(parts, false, Self::All)
    }

    pub(crate) fn any(parts: Vec<Self>) -> Self {
        Self::joined(parts, true, Self::Any)
    }

    /// Leaves out neutral parts; a part that is always `deciding` decides the whole.
    fn joined(mut parts: Vec<Self>, deciding: bool, join: fn(Vec<Self>) -> Self) -> Self {
        if parts.iter().any(|part| matches!(part, Self::Constant(value) if *value == deciding)) {
            return Self::Constant(deciding);
        }
        parts.retain(|part| !matches!(part, Self::Constant(_)));
        match parts.pop() {
            None => Self::Constant(!deciding),
            Some(part) if parts.is_empty() => part,
            Some(part) => {
                parts.push(part);
                join(parts)
            }
        }
    }

    /// Whether it holds for the event whose values `value` returns; `None` if the event has none at a place.
    pub fn holds<'a>(&self, value: &mut impl FnMut(&P) -> Option<Value<'a>>) -> bool {
        match self {
            Self::Constant(holds) => *holds,
            Self::Test(test, expected) => test.truth(value) == Some(*expected),
            Self::All(parts) => parts.iter().all(|part| part.holds(value)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(value)),
        }
    }

    /// Calls `visit` with each place that the condition reads, in the order of the text.
    pub fn places<'c>(&'c self, visit: &mut impl FnMut(&'c P)) {
        match self {
            Self::Constant(_) => {}
            Self::Test(test, _) => {
                let (first, second) = test.places();
                visit(first);
                second.map(visit);
            }
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.places(visit)),
        }
    }
}

impl<P> Test<P> {
    pub(crate) fn places(&self) -> (&P, Option<&P>) {
        match self {
            Self::Integer { place, .. }
            | Self::Real { place, .. }
            | Self::Text { place, .. }
            | Self::Glob { place, .. } => (place, None),
            Self::IntegerPair { left, right, .. }
            | Self::RealPair { left, right, .. }
            | Self::TextPair { left, right, .. } => (left, Some(right)),
        }
    }

    /// The truth value; `None` if unknown.
    fn truth<'a>(&self, value: &mut impl FnMut(&P) -> Option<Value<'a>>) -> Option<bool> {
        Some(match self {
            Self::Integer { place, mask, orders, right } => {
                let left = integer(value(place)?)?;
                let left = mask.map_or(left, |mask| (left.bits() & mask).into());
                orders.accept(Some(left.cmp(right)))
            }
            Self::Real { place, orders, right } => orders.accept(real(value(place)?)?.partial_cmp(right)),
            Self::Text { place, negated, text: right } => {
                (text(value(place)?)? == right.as_bytes()) != *negated
            }
            Self::Glob { place, negated, pattern } => pattern.matches_bytes(text(value(place)?)?) != *negated,
            Self::IntegerPair { left, orders, right } => {
                orders.accept(Some(integer(value(left)?)?.cmp(&integer(value(right)?)?)))
            }
            Self::RealPair { left, orders, right } => {
                orders.accept(real(value(left)?)?.partial_cmp(&real(value(right)?)?))
            }
            Self::TextPair { left, negated, right } => {
                (text(value(left)?)? == text(value(right)?)?) != *negated
            }
        })
    }
}

fn integer(value: Value<'_>) -> Option<Integer> {
    if let Value::Integer(number) = value { Some(number) } else { None }
}

fn real(value: Value<'_>) -> Option<f64> {
    if let Value::Real(number) = value { Some(number) } else { None }
}

fn text(value: Value<'_>) -> Option<&[u8]> {
    if let Value::Text(bytes) = value { Some(bytes) } else { None }
}
