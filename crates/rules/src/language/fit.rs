//! What a predicate asks for and none of several classes has. A class on its own may lack a field, or have it
//! with another type; if all of them do, the user has probably made a mistake.

use super::check::{Schema, resolve_comparison};
use super::class::ClassSchema;
use super::error::CompileError;
use super::predicate::Predicate;
use super::tree::Variable;
use std::collections::HashSet;
use tracewing_abi::schema::ClassView;

/// How the variables and comparisons of one predicate fit the classes that were added.
#[derive(Debug)]
pub struct Fit<'p> {
    predicate: &'p Predicate,
    /// The variables that all classes lack; `None` without classes.
    absent: Option<HashSet<Variable>>,
    /// By comparison.
    comparisons: Vec<Comparability>,
}

/// Whether a comparison is known in some class.
#[derive(Debug, Clone, Default)]
struct Comparability {
    is_known: bool,
    /// Why it is unknown in the first class that has its fields.
    mistyped: Option<CompileError>,
}

impl<'p> Fit<'p> {
    /// Without classes.
    pub fn new(predicate: &'p Predicate) -> Self {
        let mut comparisons = Vec::new();
        predicate.root.comparisons(&mut |_| comparisons.push(Comparability::default()));
        Self { predicate, absent: None, comparisons }
    }

    /// Adds a program's class.
    pub fn add_class(&mut self, class: &ClassView<'_>) {
        self.add(class.name, &ClassSchema::new(class));
    }

    /// Adds a class that `schema` describes. `class` is its name, for the reason.
    pub fn add<S: Schema>(&mut self, class: &str, schema: &S) {
        let mut absent = HashSet::new();
        self.predicate.root.variables(&mut |variable| {
            if schema.find(variable).is_err_and(|problem| problem.is_absence()) {
                absent.insert(variable.clone());
            }
        });
        self.absent = Some(match &self.absent {
            Some(others) => others & &absent,
            None => absent,
        });
        let mut comparisons = self.comparisons.iter_mut();
        self.predicate.root.comparisons(&mut |comparison| {
            // There are as many as there were for `new`.
            let Some(known) = comparisons.next() else { return };
            match resolve_comparison(comparison, schema, true) {
                Ok(_) => known.is_known = true,
                Err(problem) if !problem.is_absence() && known.mistyped.is_none() => {
                    known.mistyped = Some(CompileError { class: class.to_owned(), problem });
                }
                Err(_) => {}
            }
        });
    }

    /// A variable that all classes lack.
    pub fn absent(&self) -> Option<String> {
        self.absent.iter().flatten().map(Variable::to_string).min()
    }

    /// Why a comparison is unknown in all classes, though some have its fields: their types, in the first of
    /// these classes.
    pub fn mistyped(&self) -> Option<&CompileError> {
        self.comparisons.iter().filter(|known| !known.is_known).find_map(|known| known.mistyped.as_ref())
    }
}
