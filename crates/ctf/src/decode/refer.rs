//! Ties lengths, tags and selectors to the fields that they refer to: a slot for the value, in both programs.

use std::sync::Arc;

use super::compiler::Compiler;
use super::program::{Integer, Kind, Length, NONE};
use super::resolve::{self, Frame};
use super::skip::set_skips;
use crate::model::{EnumerationClass, FieldLocation, Scope};
use crate::{Error, Reference, TraceClassFault};

/// What a length, a tag or a selector refers to.
pub(super) struct Referred {
    pub(super) slot: u32,
    pub(super) signed: bool,
    pub(super) boolean: bool,
    pub(super) labels: Option<Arc<EnumerationClass>>,
}

impl Referred {
    fn new(integer: &Integer) -> Self {
        Referred { slot: integer.slot, signed: integer.signed, boolean: false, labels: None }
    }
}

/// For each of `slots` another one that is the same, or itself.
pub(super) fn same_slots(slots: u32, pairs: &[(u32, u32)]) -> Vec<u32> {
    let mut same: Vec<u32> = (0..slots).collect();
    for &(one, other) in pairs {
        let (one, other) = (first_of(&mut same, one), first_of(&mut same, other));
        same[other as usize] = one;
    }
    same
}

/// The one slot that stands for all that are the same as `slot`.
pub(super) fn first_of(same: &mut [u32], mut slot: u32) -> u32 {
    while same[slot as usize] != slot {
        // Each look makes the way to the first one shorter.
        same[slot as usize] = same[same[slot as usize] as usize];
        slot = same[slot as usize];
    }
    slot
}

impl Compiler {
    /// The length that an earlier field says.
    pub(super) fn length(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        location: &FieldLocation,
        stack: &[Frame<'_>],
    ) -> Result<Length, Error> {
        let length = self.refer(scope, name, (Reference::Length, location), stack)?;
        let found = match length {
            Referred { boolean: true, .. } => "a boolean",
            Referred { signed: true, .. } => "signed",
            Referred { slot, .. } => return Ok(Length::Slot(slot)),
        };
        self.at = location.place.or(self.at);
        let path = location.path.join(".");
        Err(self.field_error(name, TraceClassFault::Length { path, found }))
    }

    /// The field that a length, a tag or a selector refers to; several if they are alternatives.
    pub(super) fn refer(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        (reference, location): (Reference, &FieldLocation),
        stack: &[Frame<'_>],
    ) -> Result<Referred, Error> {
        let (found, places) = resolve::find(self, scope, location, stack);
        let around = self.at;
        self.at = location.place.or(around);
        let path = location.path.join(".");
        let mut referred: Option<Referred> = None;
        for &place in &places {
            let one = match &self.nodes(found)[place].kind {
                Kind::Integer(integer, _) | Kind::Variable(integer, _) => Referred::new(integer),
                Kind::Enumeration(integer, class) | Kind::VariableEnumeration(integer, class) => {
                    Referred { labels: Some(class.clone()), ..Referred::new(integer) }
                }
                Kind::Boolean(integer) => Referred { boolean: true, ..Referred::new(integer) },
                _ => return Err(self.field_error(name, TraceClassFault::NoInteger { reference, path })),
            };
            match &mut referred {
                None => referred = Some(one),
                Some(first) if (first.signed, first.boolean) != (one.signed, one.boolean) => {
                    return Err(self.field_error(name, TraceClassFault::Mixed { reference, path }));
                }
                Some(first) if first.slot == NONE => first.slot = one.slot,
                Some(first) if one.slot != NONE && one.slot != first.slot => {
                    // The fields exclude each other, so that one slot does for both.
                    self.merged.push((first.slot, one.slot));
                }
                Some(_) => {}
            }
        }
        let Some(mut referred) = referred else {
            return Err(self.field_error(name, TraceClassFault::NoEarlierField { reference, path }));
        };
        self.at = around;
        if referred.slot == NONE {
            referred.slot = self.slots;
            self.slots += 1;
        }
        for place in places {
            if let Some(integer) = self.nodes(found)[place].kind.integer_mut() {
                integer.slot = referred.slot;
            }
        }
        self.outward[found as usize] |= found != scope;
        if found != scope
            && let Some(program) = &mut self.programs[found as usize]
        {
            // The referred field can no longer be skipped, nor can what contains it.
            set_skips(program, 0);
        }
        Ok(referred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_are_one() {
        let mut same = same_slots(6, &[(0, 1), (2, 3), (3, 1), (5, 5)]);
        let firsts: Vec<_> = (0..6).map(|slot| first_of(&mut same, slot)).collect();
        assert_eq!(firsts, [2, 2, 2, 2, 4, 5]);
    }
}
