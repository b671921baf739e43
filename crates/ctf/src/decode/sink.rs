//! What is done with the fields that a walk comes to.

use super::program::Role;
use super::{Compound, Value, Visitor};

/// Receives fields while they are walked.
pub(crate) trait Sink {
    /// Whether every field is to be shown.
    const SHOWS: bool;
    /// A field that means something to the decoder.
    fn mark(&mut self, role: Role, size: u32, value: u64);
    fn value(&mut self, name: Option<&str>, value: Value<'_>);
    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>);
    fn end(&mut self, compound: Compound<'_>);
}

/// Shows fields to a visitor.
pub(super) struct Shown<'v, V>(pub(super) &'v mut V);

impl<V: Visitor> Sink for Shown<'_, V> {
    const SHOWS: bool = true;
    fn mark(&mut self, _: Role, _: u32, _: u64) {}
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        self.0.value(name, value);
    }
    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        self.0.begin(name, compound);
    }
    fn end(&mut self, compound: Compound<'_>) {
        self.0.end(compound);
    }
}

/// Steps over fields whose values do not matter.
pub(super) struct Nothing;

impl Sink for Nothing {
    const SHOWS: bool = false;
    fn mark(&mut self, _: Role, _: u32, _: u64) {}
    fn value(&mut self, _: Option<&str>, _: Value<'_>) {}
    fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}
    fn end(&mut self, _: Compound<'_>) {}
}
