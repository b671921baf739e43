//! A runtime's name, its workers' idle times and, with `tokio_unstable`, all of its tasks.

use std::sync::Arc;
use tokio::runtime::{Builder, worker_index};
use tracewing::user_thread;

/// Names the runtime, and has it tell when its workers park and unpark.
///
/// With `tokio_unstable` it also tells of every task that is spawned on it. This takes the builder's hooks
/// (`on_thread_park`, `on_thread_unpark` and, with `tokio_unstable`, `on_task_spawn`, `on_before_task_poll`,
/// `on_after_task_poll`, `on_task_terminate`), of which it has one each: hooks set before are lost, hooks set
/// afterwards take the place of these.
///
/// # Panics
/// The name is empty or blank.
pub fn runtime<'a>(builder: &'a mut Builder, name: &str) -> &'a mut Builder {
    builder.name(name);
    let name: Arc<str> = name.into();
    // A thread becomes a worker after it has started, and may cease to be one in `block_in_place`.
    let parked = {
        let name = name.clone();
        move || {
            if let Some(worker) = worker() {
                user_thread::worker(&name, worker);
                user_thread::park(worker);
            }
        }
    };
    builder.on_thread_park(parked).on_thread_unpark(|| {
        if let Some(worker) = worker() {
            user_thread::unpark(worker);
        }
    });
    #[cfg(tokio_unstable)]
    crate::hooks::install(builder, name);
    builder
}

fn worker() -> Option<u32> {
    worker_index().and_then(|index| index.try_into().ok())
}
