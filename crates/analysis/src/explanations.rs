//! What events explain of later ones, whichever threads they are of: where code is, and what it is called.
//! Analyses of functions and samples take it from a checkpoint.

use crate::functions::{Code, FunctionRead};
use crate::profile::{Explained, ExplanationRead};
use crate::stored::PartKind;
use tracewing_trace::super_trace::{Located, Part};

/// What events have explained so far.
#[derive(Debug, Default)]
pub struct Explanations {
    code: Code,
    explained: Explained,
}

impl Explanations {
    /// Takes the next event, of which this was read.
    #[inline]
    pub fn learn(
        &mut self,
        function: Option<&FunctionRead>,
        said: Option<ExplanationRead>,
        at: &Located<'_>,
    ) {
        self.code.learn(function, at);
        if let Some(said) = said {
            self.explained.learn(said, false);
        }
    }

    /// As parts of a checkpoint.
    pub fn parts(&self) -> Vec<Part> {
        vec![
            PartKind::Functions.part(Code::SHAPE, &self.code),
            PartKind::Profile.part(Explained::SHAPE, &self.explained),
        ]
    }
}
