//! What the parser of CTF 1.8 metadata knows between blocks.

use std::collections::{HashMap, HashSet};

use super::lex::Token;
use crate::LimitFault;
use crate::metadata_text::Warnings;
use crate::model::{ByteOrder, FieldClass};

/// The state of a parse.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<(Token, usize)>,
    pub(super) at: usize,
    pub(super) scopes: TypeScopes,
    /// The trace's byte order, found ahead because field classes may precede the trace block.
    pub(super) native: Option<ByteOrder>,
    /// Field classes that may still come.
    pub(super) budget: u64,
    /// Clock names in `map` attributes and the tokens where they are, to be checked when all clocks are
    /// known.
    pub(super) clock_uses: Vec<(String, usize)>,
    /// Places of the environment's entries by name.
    pub(super) env: HashMap<String, usize>,
    pub(super) warnings: &'t mut Warnings,
    /// Names that members of one structure would share without the underscores before them.
    pub(super) ambiguous: HashSet<String>,
    /// The names in lengths and tags, and the tokens where they are.
    pub(super) references: Vec<(String, usize)>,
}

/// A field class, how many it consists of and how deep it goes, and the token where it began.
#[derive(Clone)]
pub(super) struct Sized {
    pub(super) class: FieldClass,
    pub(super) nodes: u64,
    pub(super) depth: u32,
    pub(super) place: usize,
}

/// Named field classes, innermost scope last. Names of structures, variants and enumerations carry that word
/// in front.
pub(super) struct TypeScopes(Vec<HashMap<String, Sized>>);

impl Default for TypeScopes {
    fn default() -> Self {
        TypeScopes(vec![HashMap::new()])
    }
}

impl TypeScopes {
    /// Opens a scope unless scopes are nested too deep already: the parser recurses with them.
    pub(super) fn open_within(&mut self, deepest: u32) -> Result<(), LimitFault> {
        if self.0.len() > deepest as usize {
            return Err(LimitFault::Depth(deepest));
        }
        self.open();
        Ok(())
    }

    pub(super) fn open(&mut self) {
        self.0.push(HashMap::new());
    }

    pub(super) fn is_outermost(&self) -> bool {
        self.0.len() == 1
    }

    pub(super) fn close(&mut self) {
        self.0.pop();
    }

    pub(super) fn find(&self, name: &str) -> Option<&Sized> {
        self.0.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Whether the name is new in the innermost scope.
    pub(super) fn add(&mut self, name: String, class: Sized) -> bool {
        self.0.last_mut().is_some_and(|scope| scope.insert(name, class).is_none())
    }
}
