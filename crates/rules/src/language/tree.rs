//! A predicate's tree.

use super::glob::Glob;
use super::integer::Integer;
use super::quantity::Quantity;
use super::relation::Orders;
use std::fmt;

/// A part of a predicate that is true, false or unknown.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    Comparison(Comparison),
}

/// The smallest part that is true, false or unknown.
#[derive(Debug, Clone)]
pub(crate) enum Comparison {
    /// An operand alone.
    True(Operand),
    Relation(Operand, Orders, Operand),
    Match {
        operand: Operand,
        pattern: Glob,
        negated: bool,
    },
}

impl Node {
    /// Calls `visit` with each comparison, in the order of the text.
    pub(crate) fn comparisons(&self, visit: &mut impl FnMut(&Comparison)) {
        match self {
            Self::Any(nodes) | Self::All(nodes) => nodes.iter().for_each(|node| node.comparisons(visit)),
            Self::Not(node) => node.comparisons(visit),
            Self::Comparison(comparison) => visit(comparison),
        }
    }

    pub(crate) fn variables(&self, visit: &mut impl FnMut(&Variable)) {
        let mut operand = |operand: &Operand| {
            if let Leaf::Variable(variable) = &operand.value {
                visit(variable);
            }
        };
        self.comparisons(&mut |comparison| match comparison {
            Comparison::True(one) | Comparison::Match { operand: one, .. } => operand(one),
            Comparison::Relation(left, _, right) => [left, right].into_iter().for_each(&mut operand),
        });
    }
}

/// A side of a relation.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub value: Leaf,
    /// The bits that count.
    pub mask: Option<Integer>,
}

impl Operand {
    /// The variable that it is.
    pub(crate) fn variable(&self) -> Option<&Variable> {
        match &self.value {
            Leaf::Variable(variable) => Some(variable),
            Leaf::Literal(_) | Leaf::Quantity(_) => None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Leaf {
    Literal(Literal),
    /// A number with a unit.
    Quantity(Box<Quantity>),
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

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sigil = if self.scope == Scope::Context { "$" } else { "" };
        let (open, close) = if self.length { ("len(", ")") } else { ("", "") };
        write!(f, "{open}{sigil}{}{close}", self.name)?;
        self.index.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}
