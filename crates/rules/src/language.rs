//! The user's language, parsed and checked: patterns, rules, predicates; and the compiler from predicates to
//! filters.

mod check;
mod class;
mod closest;
mod compile;
mod condition;
mod error;
mod fault;
mod fit;
mod glob;
mod integer;
mod layout;
mod lexer;
mod parser;
mod predicate;
mod quantity;
mod relation;
mod rule;
mod selection;
mod thread;
mod tree;

pub use check::{Found, Schema, Type};
pub use closest::closest;
pub use condition::{Condition, Test, Value};
pub use error::{CompileError, Misuse, Problem, Sort};
pub use fault::{PredicateError, PredicateFault};
pub use fit::Fit;
pub use glob::Glob;
pub use integer::Integer;
pub use predicate::Predicate;
pub use relation::Orders;
pub use rule::{Action, Decision, Process, ProcessPattern, Rule, Rules, TooManyRules};
pub use selection::{Levels, Majors, SelectionError};
pub use thread::ThreadPattern;
pub use tree::{Literal, Scope, Variable};
