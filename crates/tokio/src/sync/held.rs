//! Guards: something held, and released when the guard is dropped.

use super::waited::Waited;
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use tracewing::user_thread::Request;

/// A guard of tokio's; its beginning and end are recorded.
#[must_use = "what is held is given back when this is dropped"]
pub struct Held<G> {
    // Dropped first: the next holder's acquisition comes after this release.
    release: Holding,
    guard: G,
}

/// Records the release for this request.
struct Holding(Request);

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.released();
    }
}

impl<G> Held<G> {
    /// Wraps the guard that the request got.
    pub(super) fn new(mut request: Request, guard: G) -> Self {
        request.acquired();
        Self { release: Holding(request), guard }
    }

    /// Waits for `lock` and wraps its guard.
    pub(super) async fn wait(mut request: Request, lock: impl Future<Output = G>) -> Self {
        let guard = Waited::new(&mut request, lock).await;
        Self::new(request, guard)
    }

    /// Wraps the guard that `lock` returns, if it returns one.
    pub(super) async fn try_wait<E>(
        mut request: Request,
        lock: impl Future<Output = Result<G, E>>,
    ) -> Result<Self, E> {
        let result = Waited::new(&mut request, lock).await;
        Self::tried(request, result)
    }

    /// Wraps the guard that a try got, if it got one.
    pub(super) fn tried<E>(mut request: Request, result: Result<G, E>) -> Result<Self, E> {
        match result {
            Ok(guard) => Ok(Self::new(request, guard)),
            Err(error) => {
                request.given_up();
                Err(error)
            }
        }
    }

    pub(super) fn guard(&self) -> &G {
        &self.guard
    }

    /// tokio's guard; its release is not recorded.
    pub(super) fn into_unrecorded(self) -> G {
        std::mem::forget(self.release);
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
