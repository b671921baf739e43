//! A runtime that ends while its tasks, and then their destructors, spawn others; the program records itself
//! into the folder that is its argument.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tracewing_tokio as traced;

/// Spawns a task when it is dropped, which is when the runtime ends.
struct Spawns(u32);

impl Drop for Spawns {
    fn drop(&mut self) {
        if self.0 > 0 {
            let next = Spawns(self.0 - 1);
            Handle::current().spawn(async move {
                let _next = next;
                pending::<()>().await;
            });
        }
    }
}

/// Spawns others that do the same.
fn multiply(depth: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let _spawns = Spawns(3);
        for _ in 0..8 {
            if depth > 0 {
                tokio::spawn(multiply(depth - 1));
            }
            traced::Builder::new().name("inside").instrument(tokio::task::yield_now()).await;
        }
    })
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let session = tracewing::Session::builder().output(folder).event("user_thread:*").sub_buffers(64).start().unwrap();
    for _ in 0..10 {
        let runtime = traced::runtime(Builder::new_multi_thread().worker_threads(3), "ends").build().unwrap();
        runtime.spawn(multiply(2));
        runtime.spawn(multiply(2));
        std::thread::sleep(Duration::from_micros(300));
        let handle = runtime.handle().clone();
        drop(runtime);
        // It ends before it is spawned, and is never a task.
        drop(handle.spawn(pending::<()>()));
    }
    assert_eq!(tracewing::user_thread::current(), None);
    assert_eq!(session.stop().unwrap().lost, 0);
}
