//! Tasks of a runtime with hooks; the program records itself into the folder that is its argument.

use std::future::pending;
use tokio::runtime::Builder;
use tokio::task::{LocalSet, coop::consume_budget};
use tracewing_tokio as traced;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let session = tracewing::Session::builder().output(folder).event("user_thread:*").start().unwrap();
    {
        let runtime = traced::runtime(&mut Builder::new_current_thread(), "hooked").build().unwrap();
        runtime.block_on(async {
            // 1: only the hooks see it. Its child records itself.
            let library = tokio::spawn(async {
                traced::Builder::new().name("own").spawn(traced::yield_now()).await.unwrap();
            });
            library.await.unwrap();
            // 3: spends its budget.
            let hungry = tokio::spawn(async {
                for _ in 0..129 {
                    consume_budget().await;
                }
            });
            hungry.await.unwrap();
            // 4: is cancelled.
            let waits = tokio::spawn(pending::<()>());
            tokio::task::yield_now().await;
            waits.abort();
            waits.await.unwrap_err();
            // 5: has a future inside that is a user thread.
            tokio::spawn(async { traced::Builder::new().name("inside").instrument(async {}).await }).await.unwrap();
            // These record themselves.
            let set = LocalSet::new();
            traced::Builder::new().name("local").spawn_local_on(async {}, &set);
            set.await;
            traced::Builder::new().name("blocking").spawn_blocking(|| ()).await.unwrap();
            // 9: ends with the runtime.
            tokio::spawn(pending::<()>());
        });
    }
    assert_eq!(tracewing::user_thread::current(), None);
    assert_eq!(session.stop().unwrap().lost, 0);
}
