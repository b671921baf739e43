//! Creates user threads: tokio's functions for spawning, recorded.

#[cfg(tokio_unstable)]
use crate::hooks::Known;
use crate::{Instrumented, future::Task, life::Life};
use std::future::Future;
use std::panic::Location;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle, JoinSet, LocalSet};

/// Spawns a task, as [`tokio::spawn`] does.
///
/// # Panics
/// The caller is outside of a runtime.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Builder::new().spawn(future)
}

/// Spawns a task on the current [`LocalSet`] or local runtime, as [`tokio::task::spawn_local`] does.
///
/// # Panics
/// The caller is outside of both.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    Builder::new().spawn_local(future)
}

/// Runs a function on a thread where it may block, as [`tokio::task::spawn_blocking`] does. It is a user
/// thread that is switched to once.
///
/// # Panics
/// The caller is outside of a runtime.
#[track_caller]
pub fn spawn_blocking<F, R>(function: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Builder::new().spawn_blocking(function)
}

/// Makes a future a user thread of its own, whatever polls it: for instance a child of a task that runs
/// several futures.
///
/// ```
/// # async fn request() {}
/// # async fn timeout() {}
/// # async fn serve() {
/// tokio::select! {
///     () = tracewing_tokio::instrument(request()) => {}
///     () = tracewing_tokio::instrument(timeout()) => {}
/// }
/// # }
/// ```
#[track_caller]
pub fn instrument<F: Future>(future: F) -> Instrumented<F> {
    Builder::new().instrument(future)
}

/// Spawns tasks that have names. A task without a name is named after the type of its future, which for an
/// `async fn` is its path.
#[derive(Debug, Clone, Copy, Default)]
pub struct Builder<'a> {
    name: Option<&'a str>,
}

impl<'a> Builder<'a> {
    /// A builder of tasks without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of the task in the trace.
    pub fn name(self, name: &'a str) -> Self {
        Self { name: Some(name) }
    }

    #[track_caller]
    fn life<F>(self, runtime: Option<&Handle>) -> Life {
        Life::new::<F>(self.name, runtime, Location::caller())
    }

    #[track_caller]
    fn task<F: Future>(self, future: F, runtime: Option<&Handle>) -> Task<F> {
        Task::new(future, self.life::<F>(runtime))
    }

    /// As [`instrument`], with this builder's name.
    #[track_caller]
    pub fn instrument<F: Future>(self, future: F) -> Instrumented<F> {
        Instrumented::new(future, self.life::<F>(None))
    }

    /// As [`spawn`], with this builder's name.
    ///
    /// # Panics
    /// The caller is outside of a runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let future = self.task(future, None);
        #[cfg(tokio_unstable)]
        let _known = Known::begin();
        tokio::spawn(future)
    }

    /// Spawns a task on this runtime.
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, runtime: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let future = self.task(future, Some(runtime));
        #[cfg(tokio_unstable)]
        let _known = Known::begin();
        runtime.spawn(future)
    }

    /// Spawns a task into this set, on the current runtime.
    ///
    /// # Panics
    /// The caller is outside of a runtime.
    #[track_caller]
    pub fn spawn_in<F>(self, future: F, set: &mut JoinSet<F::Output>) -> AbortHandle
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let future = self.task(future, None);
        #[cfg(tokio_unstable)]
        let _known = Known::begin();
        set.spawn(future)
    }

    /// As [`spawn_local`], with this builder's name.
    ///
    /// # Panics
    /// The caller is outside of a [`LocalSet`] and a local runtime.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let future = self.task(future, None);
        #[cfg(tokio_unstable)]
        let _known = Known::begin();
        tokio::task::spawn_local(future)
    }

    /// Spawns a task on this set.
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, set: &LocalSet) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let future = self.task(future, None);
        #[cfg(tokio_unstable)]
        let _known = Known::begin();
        set.spawn_local(future)
    }

    /// As [`spawn_blocking`], with this builder's name.
    ///
    /// # Panics
    /// The caller is outside of a runtime.
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, function: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let mut life = self.life::<F>(None);
        let recorded = move || {
            let running = life.run();
            let result = function();
            running.complete();
            result
        };
        #[cfg(tokio_unstable)]
        let _known = Known::begin();
        tokio::task::spawn_blocking(recorded)
    }
}
