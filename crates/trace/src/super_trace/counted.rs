//! How many events of each name there were, for checkpoints: the n-th occurrence of an event need not be
//! searched from the beginning.

use crate::merge::event::EventRef;
use crate::merge::fields::Classes;
use std::collections::HashMap;

/// Counts events as the search for an occurrence does: those with a stamp, by name, of all traces.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    /// Places in `names` by class.
    classes: Classes<Option<usize>>,
    names: Vec<(String, u64)>,
    places: HashMap<String, usize>,
}

impl Counted {
    /// Counts an event.
    #[inline]
    pub(super) fn count(&mut self, event: &EventRef<'_>) {
        if event.stamp().is_none() {
            return;
        }
        let Self { classes, names, places } = self;
        if let Some(place) = *classes.of(event, |event| place_of(event, names, places)) {
            names[place].1 += 1;
        }
    }

    /// The names so far, each with the number of its events.
    pub(super) fn names(&self) -> &[(String, u64)] {
        &self.names
    }
}

/// The place of an event's name; patterns match no event without a name.
#[cold]
fn place_of(
    event: &EventRef<'_>,
    names: &mut Vec<(String, u64)>,
    places: &mut HashMap<String, usize>,
) -> Option<usize> {
    let decoded = event.decoded();
    let name = decoded.class().name.as_deref()?;
    let place = places.entry(name.to_owned()).or_insert_with(|| {
        names.push((name.to_owned(), 0));
        names.len() - 1
    });
    Some(*place)
}
