//! Tasks that other threads wake while they run: another worker takes them as soon as their poll is over. The
//! program records itself into the folder that is its argument.

use std::sync::Arc;
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tracewing_tokio as traced;

const ROUNDS: u32 = 20_000;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let session = tracewing::Session::builder()
        .output(folder)
        .event("user_thread:switch")
        .sub_buffers(64)
        .sub_buffer_size(1 << 20)
        .start()
        .unwrap();
    let mut builder = Builder::new_multi_thread();
    let runtime = traced::runtime(builder.worker_threads(4), "steals").build().unwrap();
    let doors: Vec<Arc<Notify>> = (0..3).map(|_| Arc::default()).collect();
    let tasks = doors.iter().cloned().map(|door| {
        runtime.spawn(async move {
            for _ in 0..ROUNDS {
                door.notified().await;
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    thread::scope(|threads| {
        for (door, task) in doors.iter().zip(&tasks) {
            threads.spawn(|| {
                while !task.is_finished() {
                    door.notify_one();
                }
            });
        }
    });
    drop(runtime);
    assert_eq!(session.stop().unwrap().lost, 0);
}
