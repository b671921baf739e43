//! From a predicate and the description of a class to tests whose sides have compatible types.

use super::condition::{Condition, Test};
use super::error::{Misuse, Problem, Sort};
use super::glob::Glob;
use super::integer::Integer;
use super::quantity::Counted;
use super::relation::Orders;
use super::selection::LEVELS;
use super::tree::{Comparison, Leaf, Literal, Node, Operand, Variable};
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// Describes the events of one class to a predicate.
pub trait Schema {
    /// The location of a value in an event of the class.
    type Place: Clone;

    /// Finds a variable.
    ///
    /// # Errors
    /// The reason why the class does not have it.
    fn find(&self, variable: &Variable) -> Result<Found<Self::Place>, Problem>;

    /// The unit of a variable's values; `None` if it is not known, or they have none.
    fn unit(&self, _variable: &Variable) -> Option<&str> {
        None
    }
}

/// A class's values for a [`Variable`].
#[derive(Debug, Clone, PartialEq)]
pub enum Found<P> {
    /// Each event has its own value, or none.
    Value(P, Type),
    /// All events of the class have the same value.
    Known(Literal),
}

/// The type of a variable's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Integers, and truth values.
    Integer,
    /// Floating-point numbers.
    Real,
    /// Texts, and characters.
    Text,
    /// Texts from this fixed set.
    Word(&'static [&'static str]),
    /// Integers with labels for some of them.
    Enumeration(Vec<(RangeInclusive<Integer>, String)>),
}

impl Type {
    fn sort(&self) -> Sort {
        match self {
            Self::Integer => Sort::Integer,
            Self::Real => Sort::Real,
            Self::Text | Self::Word(_) => Sort::Text,
            Self::Enumeration(_) => Sort::Enumeration,
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Word(_))
    }
}

impl Literal {
    fn sort(&self) -> Sort {
        match self {
            Self::Integer(_) => Sort::Integer,
            Self::Real(_) => Sort::Real,
            Self::Text(_) => Sort::Text,
        }
    }
}

/// A side of a relation, looked up.
enum Side<'n, P> {
    /// A literal, or the constant value of a variable for the class.
    Literal(Literal, Option<&'n Variable>),
    Value {
        variable: &'n Variable,
        place: P,
        kind: Type,
        mask: Option<u128>,
    },
}

impl<P> Side<'_, P> {
    fn sort(&self) -> Sort {
        match self {
            Side::Literal(literal, _) => literal.sort(),
            Side::Value { kind, .. } => kind.sort(),
        }
    }

    fn name(&self) -> String {
        match self {
            Side::Value { variable, .. } | Side::Literal(_, Some(variable)) => variable.to_string(),
            Side::Literal(Literal::Integer(number), None) => number.to_string(),
            Side::Literal(Literal::Real(number), None) => number.to_string(),
            Side::Literal(Literal::Text(text), None) => format!("{text:?}"),
        }
    }

    fn misused(&self, misuse: Misuse) -> Problem {
        Problem::Misused(self.name(), self.sort(), misuse)
    }
}

/// Resolves a predicate to the tests for one class.
///
/// A comparison with a field that the class lacks, or has with another type, is unknown for all its events.
///
/// # Errors
/// The predicate holds for none of its events because of such a comparison.
pub(crate) fn resolve<S: Schema>(node: &Node, schema: &S) -> Result<Condition<S::Place>, Problem> {
    let mut resolver = Resolver { schema, unknown: None };
    let condition = resolver.node(node, true);
    match (&condition, resolver.unknown) {
        (Condition::Constant(false), Some(problem)) => Err(problem),
        _ => Ok(condition),
    }
}

struct Resolver<'s, S> {
    schema: &'s S,
    /// Why a comparison is unknown: the first reason, but a type rather than an absence.
    unknown: Option<Problem>,
}

impl<S: Schema> Resolver<'_, S> {
    /// The condition that holds where the node's truth is known and is `expected`.
    fn node(&mut self, node: &Node, expected: bool) -> Condition<S::Place> {
        match node {
            Node::Any(nodes) if expected => Condition::any(self.nodes(nodes, expected)),
            Node::All(nodes) if !expected => Condition::any(self.nodes(nodes, expected)),
            Node::Any(nodes) | Node::All(nodes) => Condition::all(self.nodes(nodes, expected)),
            Node::Not(node) => self.node(node, !expected),
            Node::Comparison(comparison) => {
                resolve_comparison(comparison, self.schema, expected).unwrap_or_else(|problem| {
                    if self.unknown.as_ref().is_none_or(|first| first.is_absence() && !problem.is_absence()) {
                        self.unknown = Some(problem);
                    }
                    // Neither the comparison nor its opposite is true.
                    Condition::Constant(false)
                })
            }
        }
    }

    fn nodes(&mut self, nodes: &[Node], expected: bool) -> Vec<Condition<S::Place>> {
        nodes.iter().map(|node| self.node(node, expected)).collect()
    }
}

/// The condition that holds where the comparison's truth is known and is `expected`.
///
/// # Errors
/// The truth is unknown for all events of the class.
pub(crate) fn resolve_comparison<S: Schema>(
    comparison: &Comparison,
    schema: &S,
    expected: bool,
) -> Result<Condition<S::Place>, Problem> {
    match comparison {
        Comparison::True(operand) => truth(look_up(operand, None, schema)?, expected),
        Comparison::Relation(left, orders, right) => {
            let [of_left, of_right] = [left, right].map(Operand::variable);
            relation(look_up(left, of_right, schema)?, *orders, look_up(right, of_left, schema)?, expected)
        }
        Comparison::Match { operand, pattern, negated } => {
            matching(look_up(operand, None, schema)?, pattern, *negated == expected)
        }
    }
}

fn relation<P: Clone>(
    left: Side<'_, P>,
    orders: Orders,
    right: Side<'_, P>,
    expected: bool,
) -> Result<Condition<P>, Problem> {
    match (left, right) {
        (Side::Literal(left, name), Side::Literal(right, other)) => {
            let (left, right) = (with_level(left, other)?, with_level(right, name)?);
            Ok(Condition::Constant(fold(&left, name, orders, &right)? == expected))
        }
        (Side::Literal(left, _), right) => with_literal(right, orders.mirrored(), left, expected),
        (left, Side::Literal(right, _)) => with_literal(left, orders, right, expected),
        (left, right) => Ok(Condition::Test(pair(left, orders, right)?, expected)),
    }
}

/// A literal that is compared with a known variable: if that is `$level`, a level's word becomes its number.
fn with_level(literal: Literal, other: Option<&Variable>) -> Result<Literal, Problem> {
    match (literal, other) {
        (Literal::Text(word), Some(variable)) if variable.to_string() == "$level" => {
            let level = LEVELS.into_iter().find(|(known, _)| *known == word);
            let known = || LEVELS.map(|(word, _)| word.to_owned()).into();
            level
                .map(|(_, level)| Literal::Integer((level as u8).into()))
                .ok_or_else(|| Problem::NoLabel(variable.clone(), word, known()))
        }
        (literal, _) => Ok(literal),
    }
}

/// A side of a relation. `other`: the variable on the other side, in whose unit a quantity is counted.
fn look_up<'n, S: Schema>(
    operand: &'n Operand,
    other: Option<&Variable>,
    schema: &S,
) -> Result<Side<'n, S::Place>, Problem> {
    let mask = operand.mask.map(Integer::bits);
    match &operand.value {
        Leaf::Literal(literal) => Ok(Side::Literal(literal.clone(), None)),
        Leaf::Quantity(quantity) => {
            let of = other.and_then(|variable| Some((variable, schema.unit(variable)?)));
            let literal = match (quantity.counted(of.map(|(_, unit)| unit)), of) {
                (Some(Counted::Whole(number)), _) => Literal::Integer(number),
                (Some(Counted::Real(number)), _) => Literal::Real(number),
                (None, Some((variable, unit))) => {
                    let (variable, unit) = (variable.clone(), unit.to_owned());
                    return Err(Problem::Unit(variable, unit, quantity.to_string()));
                }
                (None, None) => unreachable!("nanoseconds and bytes are of its dimension"),
            };
            Ok(Side::Literal(literal, None))
        }
        Leaf::Variable(variable) => Ok(match schema.find(variable)? {
            Found::Value(place, kind) => {
                let side = Side::Value { variable, place, kind, mask };
                if mask.is_some()
                    && matches!(&side, Side::Value { kind, .. } if kind.is_text() || *kind == Type::Real)
                {
                    return Err(side.misused(Misuse::Bits));
                }
                side
            }
            Found::Known(literal) => {
                let literal = match (literal, mask) {
                    (Literal::Integer(number), Some(mask)) => Literal::Integer((number.bits() & mask).into()),
                    (literal, None) => literal,
                    (literal, Some(_)) => {
                        return Err(Side::<S::Place>::Literal(literal, Some(variable)).misused(Misuse::Bits));
                    }
                };
                Side::Literal(literal, Some(variable))
            }
        }),
    }
}

fn truth<P: Clone>(side: Side<'_, P>, expected: bool) -> Result<Condition<P>, Problem> {
    match side {
        Side::Literal(Literal::Integer(number), _) => {
            Ok(Condition::Constant((number != Integer::from(0_u8)) == expected))
        }
        Side::Value { place, kind: Type::Integer | Type::Enumeration(_), mask, .. } => {
            let test = Test::Integer { place, mask, orders: Orders::NOT_EQUAL, right: 0_u8.into() };
            Ok(Condition::Test(test, expected))
        }
        side => Err(side.misused(Misuse::Alone)),
    }
}

fn with_literal<P: Clone>(
    side: Side<'_, P>,
    orders: Orders,
    right: Literal,
    expected: bool,
) -> Result<Condition<P>, Problem> {
    let equality = orders == Orders::EQUAL || orders == Orders::NOT_EQUAL;
    let test = match (side, right) {
        (
            Side::Value { place, kind: Type::Integer | Type::Enumeration(_), mask, .. },
            Literal::Integer(right),
        ) => Test::Integer { place, mask, orders, right },
        (
            Side::Value { place, kind: Type::Integer | Type::Enumeration(_), mask, .. },
            Literal::Real(right),
        ) => {
            let (orders, right) = orders.with_integer(right);
            Test::Integer { place, mask, orders, right }
        }
        (Side::Value { place, kind: Type::Real, .. }, Literal::Integer(right)) => {
            let (orders, right) = orders.with_real(right);
            Test::Real { place, orders, right }
        }
        (Side::Value { place, kind: Type::Real, .. }, Literal::Real(right)) => {
            Test::Real { place, orders, right }
        }
        (Side::Value { variable, kind: Type::Word(words), .. }, Literal::Text(text))
            if equality && !words.contains(&&*text) =>
        {
            let known = words.iter().map(|&word| word.to_owned()).collect();
            return Err(Problem::NoLabel(variable.clone(), text, known));
        }
        (Side::Value { place, kind: Type::Text | Type::Word(_), .. }, Literal::Text(text)) if equality => {
            Test::Text { place, negated: orders == Orders::NOT_EQUAL, text }
        }
        (
            Side::Value { variable, place, kind: Type::Enumeration(labels), mask: None },
            Literal::Text(text),
        ) if equality => {
            if !labels.iter().any(|(_, label)| *label == text) {
                let known = labels.into_iter().map(|(_, label)| label).collect();
                return Err(Problem::NoLabel(variable.clone(), text, known));
            }
            let negated = (orders == Orders::NOT_EQUAL) == expected;
            return Ok(labelled(&place, &labels, negated, |label| label == text));
        }
        (
            side @ Side::Value { kind: Type::Text | Type::Word(_) | Type::Enumeration(_), mask: None, .. },
            Literal::Text(_),
        ) => {
            return Err(side.misused(Misuse::Order));
        }
        (side, right) => return Err(Problem::Mismatch(side.name(), side.sort(), right.sort())),
    };
    Ok(Condition::Test(test, expected))
}

/// Whether an enumeration has, or does not have, a value with a matching label.
fn labelled<P: Clone>(
    place: &P,
    labels: &[(RangeInclusive<Integer>, String)],
    negated: bool,
    fits: impl Fn(&str) -> bool,
) -> Condition<P> {
    let test = |orders, right: &Integer| {
        Condition::Test(Test::Integer { place: place.clone(), mask: None, orders, right: *right }, true)
    };
    let tests = labels.iter().filter(|(_, label)| fits(label)).map(|(range, _)| {
        match (range.start() == range.end(), negated) {
            (true, false) => test(Orders::EQUAL, range.start()),
            (true, true) => test(Orders::NOT_EQUAL, range.start()),
            (false, false) => Condition::all(vec![
                test(Orders::AT_LEAST, range.start()),
                test(Orders::AT_MOST, range.end()),
            ]),
            (false, true) => {
                Condition::any(vec![test(Orders::LESS, range.start()), test(Orders::GREATER, range.end())])
            }
        }
    });
    if !negated {
        return Condition::any(tests.collect());
    }
    // Without a value even `!=` is not true, so something must be tested even if no label matches.
    let mut tests: Vec<_> = tests.collect();
    if tests.is_empty() {
        tests.push(test(Orders::AT_LEAST, &Integer::MIN));
    }
    Condition::all(tests)
}

fn matching<P: Clone>(side: Side<'_, P>, pattern: &Glob, negated: bool) -> Result<Condition<P>, Problem> {
    match side {
        Side::Literal(Literal::Text(text), _) => Ok(Condition::Constant(pattern.matches(&text) != negated)),
        Side::Value { place, kind: Type::Text | Type::Word(_), .. } => {
            Ok(Condition::Test(Test::Glob { place, negated, pattern: pattern.clone() }, true))
        }
        Side::Value { place, kind: Type::Enumeration(labels), mask: None, .. } => {
            Ok(labelled(&place, &labels, negated, |label| pattern.matches(label)))
        }
        side => Err(side.misused(Misuse::Pattern)),
    }
}

fn pair<P: Clone>(left: Side<'_, P>, orders: Orders, right: Side<'_, P>) -> Result<Test<P>, Problem> {
    let masked = |side: &Side<'_, P>| matches!(side, Side::Value { mask: Some(_), .. });
    if let Some(side) = [&left, &right].into_iter().find(|side| masked(side)) {
        return Err(side.misused(Misuse::BitsOfTwo));
    }
    let mismatch = Problem::Mismatch(left.name(), left.sort(), right.sort());
    let (
        Side::Value { place: left, kind: left_kind, variable, .. },
        Side::Value { place: right, kind: right_kind, .. },
    ) = (left, right)
    else {
        return Err(mismatch);
    };
    let integer = |kind: &Type| matches!(kind, Type::Integer | Type::Enumeration(_));
    Ok(match (&left_kind, &right_kind) {
        (left_kind, right_kind) if integer(left_kind) && integer(right_kind) => {
            Test::IntegerPair { left, orders, right }
        }
        (Type::Real, Type::Real) => Test::RealPair { left, orders, right },
        (left_kind, right_kind) if left_kind.is_text() && right_kind.is_text() => match orders {
            Orders::EQUAL => Test::TextPair { left, negated: false, right },
            Orders::NOT_EQUAL => Test::TextPair { left, negated: true, right },
            _ => return Err(Problem::Misused(variable.to_string(), Sort::Text, Misuse::Order)),
        },
        _ => return Err(mismatch),
    })
}

/// Whether a relation between two literals holds.
fn fold(left: &Literal, name: Option<&Variable>, orders: Orders, right: &Literal) -> Result<bool, Problem> {
    let side = || Side::<()>::Literal(left.clone(), name);
    let order = match (left, right) {
        (Literal::Integer(left), Literal::Integer(right)) => Some(left.cmp(right)),
        (Literal::Real(left), Literal::Real(right)) => left.partial_cmp(right),
        (Literal::Integer(left), Literal::Real(right)) => {
            let (orders, right) = orders.with_integer(*right);
            return Ok(orders.accept(Some(left.cmp(&right))));
        }
        (Literal::Real(left), Literal::Integer(right)) => {
            let (orders, right) = orders.with_real(*right);
            return Ok(orders.accept(left.partial_cmp(&right)));
        }
        (Literal::Text(left), Literal::Text(right)) => {
            if orders != Orders::EQUAL && orders != Orders::NOT_EQUAL {
                return Err(side().misused(Misuse::Order));
            }
            Some(if left == right { Ordering::Equal } else { Ordering::Less })
        }
        (_, right) => return Err(Problem::Mismatch(side().name(), left.sort(), right.sort())),
    };
    Ok(orders.accept(order))
}
