//! A predicate: parsed from its text, and resolved or compiled for a class.

use super::check::{Schema, resolve};
use super::class::{ClassSchema, PID, TID};
use super::condition::Condition;
use super::error::CompileError;
use super::fault::{Fault, PredicateError, PredicateFault};
use super::tree::{Comparison, Leaf, Node, Operand, Scope, Variable};
use super::{compile, parser};
use std::fmt;
use tracewing_abi::schema::ClassView;

/// Longest predicate, bytes.
pub(crate) const LONGEST: usize = 4096;

/// A condition on an event's fields; [the grammar](crate#predicates).
#[derive(Debug, Clone)]
pub struct Predicate {
    text: Box<str>,
    pub(crate) root: Node,
}

impl std::str::FromStr for Variable {
    type Err = PredicateError;

    fn from_str(text: &str) -> Result<Self, PredicateError> {
        match Predicate::parse(text)?.root {
            Node::Comparison(Comparison::True(Operand { value: Leaf::Variable(variable), mask: None })) => {
                Ok(variable)
            }
            _ => Err(PredicateError::new(text, Fault::new(0, PredicateFault::NoVariable))),
        }
    }
}

impl Predicate {
    /// Reads a predicate of at most 4096 bytes.
    ///
    /// # Errors
    /// The text is not a predicate; the error says why and at which byte.
    pub fn parse(text: &str) -> Result<Self, PredicateError> {
        let fail = |fault: Fault| PredicateError::new(text, fault);
        if text.len() > LONGEST {
            return Err(fail(Fault::new(0, PredicateFault::Length(LONGEST))));
        }
        Ok(Self { text: text.into(), root: parser::parse(text).map_err(fail)? })
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The filter for events of a class ([`filter`](crate::filter)), at most
    /// [`MAX_FILTER`](crate::filter::MAX_FILTER) bytes; empty if it holds for all of them.
    ///
    /// # Errors
    /// The class has no event for which it holds, or the filter is too large.
    pub fn compile(&self, class: &ClassView<'_>) -> Result<Vec<u8>, CompileError> {
        let schema = ClassSchema::new(class);
        let fail = |problem| CompileError { class: class.name.to_owned(), problem };
        let condition = resolve(&self.root, &schema).map_err(fail)?;
        compile::compile(&condition, &schema.layout).map_err(fail)
    }

    /// Resolves the predicate for a class of events that another `schema` describes. `class` is its name, for
    /// the error.
    ///
    /// # Errors
    /// The class has no event for which it holds.
    pub fn resolve<S: Schema>(&self, class: &str, schema: &S) -> Result<Condition<S::Place>, CompileError> {
        resolve(&self.root, schema).map_err(|problem| CompileError { class: class.to_owned(), problem })
    }

    /// Whether it reads the context of this name (without its `$`).
    pub fn asks_for_context(&self, name: &str) -> bool {
        let mut asks = false;
        self.root.variables(&mut |variable| {
            asks |= variable.scope == Scope::Context && variable.name == name;
        });
        asks
    }

    /// Whether `is_such` holds for every variable that it reads.
    pub fn asks_only_for(&self, is_such: impl Fn(&Variable) -> bool) -> bool {
        let mut only = true;
        self.root.variables(&mut |variable| only &= is_such(variable));
        only
    }

    /// Whether it uses the number of the thread or process, `$tid` or `$pid`.
    pub fn uses_numbers(&self) -> bool {
        let mut uses = false;
        self.root.variables(&mut |variable| {
            uses |= variable.scope == Scope::Context && [TID, PID].contains(&variable.name.as_str());
        });
        uses
    }

    /// Whether a class that `schema` describes has every variable that it reads.
    pub fn finds_all<S: Schema>(&self, schema: &S) -> bool {
        self.asks_only_for(|variable| !schema.find(variable).is_err_and(|problem| problem.is_absence()))
    }
}

impl PartialEq for Predicate {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Predicate {}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Predicate {
    type Err = PredicateError;

    fn from_str(text: &str) -> Result<Self, PredicateError> {
        Self::parse(text)
    }
}
