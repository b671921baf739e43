//! The state of a compilation, and what its steps share.

use super::program::{Node, Program};
use crate::model::{Place, Scope};
use crate::{Error, TraceClassFault};

/// Bytes of names and ranges in all programs together, and again of all layouts. Many field classes may share
/// a long one; each has a copy here.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// A compilation under way.
pub(super) struct Compiler {
    /// The programs by scope that are compiled so far for the current event record class.
    pub(super) programs: [Option<Program>; 6],
    pub(super) slots: u32,
    /// By scope: whether lengths or tags of other scopes refer to it.
    pub(super) outward: [bool; 6],
    pub(super) place: String,
    /// Where what is being compiled is declared.
    pub(super) at: Place,
    /// Whether paths name the options of variants.
    pub(super) named_options: bool,
    /// Slots that turned out to be one, in pairs.
    pub(super) merged: Vec<(u32, u32)>,
    /// Whether the data stream class at hand has a default clock.
    pub(super) has_clock: bool,
    /// Whether there are numbers, by byte order, that may begin inside a byte.
    pub(super) packed: [bool; 2],
    /// Whether there are numbers, by byte order, that may end inside a byte.
    pub(super) ragged: [bool; 2],
    /// How many more bytes names and ranges may take.
    pub(super) budget: usize,
    /// How many more entries the tables of ids may have.
    pub(super) entries: usize,
}

impl Compiler {
    pub(super) fn nodes(&mut self, scope: Scope) -> &mut Vec<Node> {
        &mut self.programs[scope as usize].get_or_insert_default().nodes
    }

    #[cold]
    pub(super) fn error(&self, fault: TraceClassFault) -> Error {
        Error::TraceClass { place: self.place.clone(), fault: Box::new(fault), at: self.at }
    }

    /// Takes bytes from the budget, for a field of this name.
    pub(super) fn spend(&mut self, name: Option<&str>, bytes: usize) -> Result<(), Error> {
        match self.budget.checked_sub(bytes) {
            Some(rest) => self.budget = rest,
            None => return Err(self.field_error(name, TraceClassFault::Memory(MOST_BYTES))),
        }
        Ok(())
    }

    #[cold]
    pub(super) fn field_error(&self, name: Option<&str>, fault: TraceClassFault) -> Error {
        let place = match name {
            Some(name) => format!("{}, field `{name}`", self.place),
            None => self.place.clone(),
        };
        Error::TraceClass { place, fault: Box::new(fault), at: self.at }
    }
}
