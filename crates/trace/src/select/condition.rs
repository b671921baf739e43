//! Evaluates predicates on events, in the traces of any tracer: finds the variables in the class, and their
//! values in each event. [`tracewing_rules`] defines the grammar and the comparisons.
//!
//! A variable's path may lead through structures, variants (by the option's name) and an array. Values that
//! tracewing writes as several fields are combined again: an optional field, and an integer of 128 bits.

mod classes;
mod schema;

use crate::open::recording::Trace;
use crate::select::values::{Path, Values, value};
use crate::super_trace::{Column, Seen};
use schema::ClassSchema;
use std::cell::RefCell;
use tracewing_ctf::decode::{Event, MemberHandle};
use tracewing_rules::{
    CompileError, Condition, Fit, Found, Integer, Literal, Predicate, Problem, Schema, Value, Variable,
};

/// A predicate for the events of one class.
#[derive(Debug)]
pub(crate) struct EventCondition {
    condition: Condition<Place>,
    paths: Vec<Path>,
}

/// Where an event has a value.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A member of a scope's structure.
    Member(MemberHandle),
    /// What is at the end of a path, by its index.
    Inner(usize),
    /// The two halves of an integer, by the indexes of their paths; the low one is unsigned.
    Halves(usize, usize),
    /// What the super-trace says of the event.
    Derived(Column),
}

impl EventCondition {
    /// Fits a predicate to an event class, which is given by its indices.
    ///
    /// # Errors
    /// It holds for no event of the class.
    pub(crate) fn new(
        predicate: &Predicate,
        trace: &Trace,
        stream: usize,
        event: usize,
    ) -> Result<Self, CompileError> {
        let class = ClassSchema { trace, stream, event, paths: RefCell::default() };
        let condition = predicate.resolve(class.name(), &class)?;
        Ok(Self { condition, paths: class.paths.into_inner() })
    }

    /// Adds an event class to those that a predicate shall fit.
    pub(crate) fn add_to(fit: &mut Fit<'_>, trace: &Trace, stream: usize, event: usize) {
        let class = ClassSchema { trace, stream, event, paths: RefCell::default() };
        fit.add(class.name(), &class);
    }

    /// Whether it uses columns that only the super-trace provides.
    pub(crate) fn asks_for_places(&self) -> bool {
        let mut asks = false;
        self.condition.places(&mut |place| asks |= matches!(place, Place::Derived(_)));
        asks
    }

    /// Whether it holds for an event of the class, which is `seen` if it asks for places. `values` is memory
    /// that is used again and again.
    pub(crate) fn holds(&self, event: &Event<'_>, seen: Option<&Seen<'_>>, values: &mut Values) -> bool {
        values.read(event, &self.paths);
        let values = &*values;
        self.condition.holds(&mut |place| place.value(event, seen, values))
    }
}

/// The value of a variable in the events of one class.
#[derive(Debug)]
pub(crate) struct EventValue {
    found: Found<Place>,
    paths: Vec<Path>,
}

impl EventValue {
    /// What the super-trace says of any event.
    pub(crate) fn derived(column: Column) -> Self {
        Self { found: Found::Value(Place::Derived(column), column.kind()), paths: Vec::new() }
    }

    /// Finds a variable in an event class, which is given by its indices.
    ///
    /// # Errors
    /// Why the class does not have it.
    pub(crate) fn new(
        variable: &Variable,
        trace: &Trace,
        stream: usize,
        event: usize,
    ) -> Result<Self, Problem> {
        let class = ClassSchema { trace, stream, event, paths: RefCell::default() };
        let found = class.find(variable)?;
        Ok(Self { found, paths: class.paths.into_inner() })
    }

    /// What `then` makes of the value of an event of the class, if that has one. `values` is memory that is
    /// used again and again.
    pub(crate) fn read<T>(
        &self,
        seen: &Seen<'_>,
        values: &mut Values,
        then: impl FnOnce(Value<'_>) -> T,
    ) -> Option<T> {
        let event = seen.event.decoded();
        values.read(&event, &self.paths);
        let value = match &self.found {
            Found::Value(place, _) => place.value(&event, Some(seen), values)?,
            Found::Known(Literal::Integer(number)) => Value::Integer(*number),
            Found::Known(Literal::Real(number)) => Value::Real(*number),
            Found::Known(Literal::Text(text)) => Value::Text(text.as_bytes()),
        };
        Some(then(value))
    }
}

impl Place {
    /// The value of an event there; `values` are those inside it.
    fn value<'v>(self, event: &Event<'v>, seen: Option<&Seen<'v>>, values: &'v Values) -> Option<Value<'v>> {
        match self {
            Place::Member(member) => event.member(member).map(value),
            Place::Inner(path) => values.get(path),
            Place::Derived(column) => column.of(seen?),
            Place::Halves(low, high) => match (values.get(low)?, values.get(high)?) {
                (Value::Integer(low), Value::Integer(high)) => {
                    let bits = low.bits() & u128::from(u64::MAX) | high.bits() << 64;
                    let number = if high.is_negative() { Integer::from(bits as i128) } else { bits.into() };
                    Some(Value::Integer(number))
                }
                _ => None,
            },
        }
    }
}
