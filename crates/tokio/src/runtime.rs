//! A runtime's name, its workers' idle times and, with `tokio_unstable`, all of its tasks.

use std::sync::Arc;
use tokio::runtime::{Builder, worker_index};
use tracewing::user_thread;

/// Names the runtime and makes it record when its workers park and unpark.
///
/// With `tokio_unstable` it also records every task that is spawned on it. This uses the builder's hooks
/// (`on_thread_park`, `on_thread_unpark` and, with `tokio_unstable`, `on_task_spawn`, `on_before_task_poll`,
/// `on_after_task_poll`, `on_task_terminate`), each of which exists once: it replaces hooks set before, and
/// hooks set afterwards replace it.
///
/// # Panics
/// The name is empty or blank.
pub fn runtime<'a>(builder: &'a mut Builder, name: &str) -> &'a mut Builder {
    builder.name(name);
    let name: Arc<str> = name.into();
    // A thread becomes a worker after it has started, and may stop being one in `block_in_place`.
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
