//! What users write, parsed and checked: patterns, rules, predicates; and the compiler from predicates to
//! filters.

mod check;
mod class;
mod compile;
mod condition;
mod error;
mod glob;
mod integer;
mod layout;
mod lexer;
mod parser;
mod predicate;
mod relation;
mod rule;
mod selection;
mod thread;

pub use check::{Found, Schema, Type};
pub use condition::{Condition, Test, Value};
pub use error::{CompileError, Problem};
pub use glob::Glob;
pub use integer::Integer;
pub use predicate::{Literal, Predicate, PredicateError, Scope, Variable};
pub use relation::Orders;
pub use rule::{Action, Decision, Process, ProcessPattern, Rule, Rules, TooManyRules};
pub use selection::{Levels, Majors, SelectionError};
pub use thread::ThreadPattern;
