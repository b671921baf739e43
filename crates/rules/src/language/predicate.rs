//! A predicate as it was written: its tree, and what was wrong with a text that is none.

use super::check::{Schema, resolve};
use super::class::ClassSchema;
use super::condition::Condition;
use super::error::CompileError;
use super::glob::Glob;
use super::integer::Integer;
use super::relation::Orders;
use super::{compile, parser};
use std::collections::HashSet;
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

/// A part of a predicate that is true or false.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    /// An operand alone.
    True(Operand),
    Compare(Operand, Orders, Operand),
    Match {
        operand: Operand,
        pattern: Glob,
        negated: bool,
    },
}

impl Node {
    fn variables(&self, visit: &mut impl FnMut(&Variable)) {
        let mut operand = |operand: &Operand| {
            if let Leaf::Variable(variable) = &operand.value {
                visit(variable);
            }
        };
        match self {
            Self::Any(nodes) | Self::All(nodes) => nodes.iter().for_each(|node| node.variables(visit)),
            Self::Not(node) => node.variables(visit),
            Self::True(one) | Self::Match { operand: one, .. } => operand(one),
            Self::Compare(left, _, right) => [left, right].into_iter().for_each(operand),
        }
    }
}

/// A side of a relation.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub value: Leaf,
    /// The bits that count.
    pub mask: Option<Integer>,
}

#[derive(Debug, Clone)]
pub(crate) enum Leaf {
    Literal(Literal),
    Variable(Variable),
}

/// A value that stands in a predicate's text.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `5`, `0xff`, `true`.
    Integer(Integer),
    /// `1.5`; finite.
    Real(f64),
    /// `"x"`, without NUL.
    Text(String),
}

/// Where a [`Variable`] is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The event's own fields.
    Field,
    /// What is known about an event besides: `$name`.
    Context,
}

/// What a predicate asks an event for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Field or context.
    pub scope: Scope,
    /// Its name; where it is a part of another, the way to it: `point.x`, `points[1].x`, `matrix[1]`.
    pub name: String,
    /// `[index]` at the end.
    pub index: Option<u32>,
    /// Whether its length is asked for, instead of its value.
    pub length: bool,
}

impl std::str::FromStr for Variable {
    type Err = PredicateError;

    fn from_str(text: &str) -> Result<Self, PredicateError> {
        match Predicate::parse(text)?.root {
            Node::True(Operand { value: Leaf::Variable(variable), mask: None }) => Ok(variable),
            _ => Err(PredicateError::new(text, Fault::new(0, "expected a field, or $ and a name"))),
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sigil = if self.scope == Scope::Context { "$" } else { "" };
        let (open, close) = if self.length { ("len(", ")") } else { ("", "") };
        write!(f, "{open}{sigil}{}{close}", self.name)?;
        self.index.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}

impl Predicate {
    /// Reads a predicate of at most 4096 bytes.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn parse(text: &str) -> Result<Self, PredicateError> {
        let fail = |fault: Fault| PredicateError::new(text, fault);
        if text.len() > LONGEST {
            return Err(fail(Fault::new(0, format!("a condition has at most {LONGEST} bytes"))));
        }
        Ok(Self { text: text.into(), root: parser::parse(text).map_err(fail)? })
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The filter for events of a class ([`filter`](crate::filter)), at most
    /// [`MAX_FILTER`](crate::filter::MAX_FILTER) bytes; empty where it holds for all of them.
    ///
    /// # Errors
    /// The class has no event for which it holds, or the filter is too large.
    pub fn compile(&self, class: &ClassView<'_>) -> Result<Vec<u8>, CompileError> {
        let schema = ClassSchema::new(class);
        let fail = |problem| CompileError { class: class.name.to_owned(), problem };
        let condition = resolve(&self.root, &schema).map_err(fail)?;
        compile::compile(&condition, &schema.layout).map_err(fail)
    }

    /// The predicate for a class of events that another `schema` describes. `class` is its name, for the
    /// error.
    ///
    /// # Errors
    /// The class has no event for which it holds.
    pub fn resolve<S: Schema>(&self, class: &str, schema: &S) -> Result<Condition<S::Place>, CompileError> {
        resolve(&self.root, schema).map_err(|problem| CompileError { class: class.to_owned(), problem })
    }

    /// Whether it asks for the context of this name, without its `$`.
    pub fn asks_for_context(&self, name: &str) -> bool {
        let mut asks = false;
        self.root.variables(&mut |variable| {
            asks |= variable.scope == Scope::Context && variable.name == name;
        });
        asks
    }

    /// Whether all that it asks for is such.
    pub fn asks_only_for(&self, is_such: impl Fn(&Variable) -> bool) -> bool {
        let mut only = true;
        self.root.variables(&mut |variable| only &= is_such(variable));
        only
    }

    /// The variables that a class of programs lacks; comparisons with them are unknown for its events.
    pub fn lacking(&self, class: &ClassView<'_>) -> HashSet<Variable> {
        self.lacking_in(&ClassSchema::new(class))
    }

    /// As [`Predicate::lacking`], for a class that another `schema` describes.
    pub fn lacking_in<S: Schema>(&self, schema: &S) -> HashSet<Variable> {
        let mut lacking = HashSet::new();
        self.root.variables(&mut |variable| {
            if schema.find(variable).is_err_and(|problem| problem.is_absence()) {
                lacking.insert(variable.clone());
            }
        });
        lacking
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

/// What is wrong at a byte of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub at: usize,
    pub what: String,
}

impl Fault {
    pub(crate) fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

/// A text is no predicate. Shown in three lines: what is wrong, the text's line, and a `^` below the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  {line}\n  {caret:>column$}", caret = '^', column = column + 1)]
pub struct PredicateError {
    what: String,
    line: String,
    column: usize,
    position: usize,
}

impl PredicateError {
    fn new(text: &str, Fault { at, what }: Fault) -> Self {
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
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The byte of the text at which it is wrong; its length where something is missing at its end.
    pub fn position(&self) -> usize {
        self.position
    }
}
