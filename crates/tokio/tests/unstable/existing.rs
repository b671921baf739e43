//! Tasks that only the hooks know, and that exist when the program begins to record itself into the folder
//! that is its argument.

use std::future::pending;
use tokio::runtime::Builder;
use tracewing_tokio as traced;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let runtime = traced::runtime(&mut Builder::new_current_thread(), "hooked").build().unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let _within = runtime.enter();
    let listens = tokio::spawn(async move { while receiver.recv().await.is_some() {} });
    let waits = tokio::spawn(pending::<()>());
    runtime.block_on(tokio::task::yield_now());

    let session = tracewing::Session::builder().output(folder).event("user_thread:*").start().unwrap();
    sender.send(()).unwrap();
    runtime.block_on(tokio::task::yield_now());
    waits.abort();
    runtime.block_on(waits).unwrap_err();
    drop(sender);
    runtime.block_on(listens).unwrap();
    assert_eq!(session.stop().unwrap().lost, 0);
}
