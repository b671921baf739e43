//! What field classes say of others: where a length or a selector is, and which of its values select.

use super::value::{Object, Value};
use crate::model::{FieldLocation, Origin, Scope};
use crate::{Error, JsonFault, Needed};

/// An integer range set (section 5.3.2) of integers of either kind.
pub(super) fn ranges(value: Value<'_>) -> Result<Vec<(i128, i128)>, Error> {
    ranges_within(value, i64::MIN.into(), u64::MAX.into())
}

/// An integer range set of integers from `least` to `most`.
pub(super) fn ranges_within(value: Value<'_>, least: i128, most: i128) -> Result<Vec<(i128, i128)>, Error> {
    let ranges = value.array()?;
    if ranges.is_empty() {
        return Err(value.error(JsonFault::Expected(Needed::Ranges)));
    }
    let range = |range: Value<'_>| match range.array()?.as_slice() {
        [first, last] => {
            let (first, last) = (first.integer(least, most)?, last.integer(least, most)?);
            match first <= last {
                true => Ok((first, last)),
                false => Err(range.error(JsonFault::EmptyRange { first, last })),
            }
        }
        _ => Err(range.error(JsonFault::Expected(Needed::Range))),
    };
    ranges.into_iter().map(range).collect()
}

/// The same values in ranges that do not meet.
pub(super) fn joined(mut ranges: Vec<(i128, i128)>) -> Vec<(i128, i128)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let meet = next.0 <= before.1;
        if meet {
            before.1 = before.1.max(next.1);
        }
        meet
    });
    ranges
}

/// A field location (section 5.3.1).
pub(super) fn location(object: &mut Object<'_>, name: &str) -> Result<FieldLocation, Error> {
    let place = object.require(name)?;
    let mut location = place.object()?;
    let origins = [
        ("packet-header", Scope::PacketHeader),
        ("packet-context", Scope::PacketContext),
        ("event-record-header", Scope::EventHeader),
        ("event-record-common-context", Scope::CommonContext),
        ("event-record-specific-context", Scope::SpecificContext),
        ("event-record-payload", Scope::Payload),
    ];
    let origin = location.get("origin").map(|value| value.word(&origins)).transpose()?;
    let steps = location.require("path")?;
    location.finish()?;
    let (mut up, mut path, mut last) = (0, Vec::new(), None);
    for step in steps.array()? {
        last = Some(step);
        if !step.is_null() {
            path.push(step.string()?);
        } else if path.pop().is_none() {
            // Back from a member to the structure it is in goes nowhere; only the others leave structures.
            if origin.is_some() {
                return Err(step.error(JsonFault::AboveRoot));
            }
            up += 1;
        }
    }
    if last.is_none_or(|last| last.is_null()) {
        return Err(last.unwrap_or(steps).error(JsonFault::Expected(Needed::PathEnd)));
    }
    let origin = origin.map_or(Origin::Relative { up }, Origin::Scope);
    Ok(FieldLocation { place: steps.place(), ..FieldLocation::new(origin, path) })
}
