//! Guards: something that is held, and given back when it is dropped.

use std::fmt;
use std::ops::{Deref, DerefMut};
use tracewing::user_thread::{self, Kind};

/// A guard of tokio's, whose begin and end are told.
#[must_use = "what is held is given back when this is dropped"]
pub struct Held<G> {
    // Dropped first: who gets it next is told later.
    told: Told,
    guard: G,
}

struct Told {
    kind: Kind,
    object: u64,
}

impl Drop for Told {
    fn drop(&mut self) {
        user_thread::released(self.kind, self.object);
    }
}

impl<G> Held<G> {
    pub(super) fn new(kind: Kind, object: u64, guard: G) -> Self {
        user_thread::acquired(kind, object);
        Self { told: Told { kind, object }, guard }
    }

    pub(super) fn guard(&self) -> &G {
        &self.guard
    }

    /// tokio's guard, never to be told as released.
    pub(super) fn into_untold(self) -> G {
        std::mem::forget(self.told);
        self.guard
    }
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<G: fmt::Debug> fmt::Debug for Held<G> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(formatter)
    }
}

impl<G: fmt::Display> fmt::Display for Held<G> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(formatter)
    }
}
