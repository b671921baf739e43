//! A server that keeps its own log ([`desk`]), for a comparison with `tracewing`.
//!
//!     tracewing record --clock mono -o trace -- server LOG plain|spawned
//!
//! `plain` spawns its connections as most programs and libraries do, by `tokio::spawn`; `spawned` by this
//! crate's.

mod desk;

use desk::{CONNECTIONS, Desk, Log, REQUESTS, now};
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tracewing_tokio as traced;

/// `request ID BEGINS BEGAN ENDS ENDED`, around two events.
async fn answer(desk: &Desk, id: u64) {
    let begins = now();
    tracewing::event!("server:request", id);
    let began = now();
    desk.answer(id).await;
    let ends = now();
    tracewing::event!("server:response", id);
    desk.log.line("request", &[id, begins, began, ends, now()]);
}

async fn serve(desk: Arc<Desk>, connection: u64, mut requests: mpsc::Receiver<u64>) {
    let serve = async {
        while let Some(id) = requests.recv().await {
            answer(&desk, id).await;
        }
    };
    desk.log.polls(connection, serve).await;
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (file, how) = (arguments.next().expect("a file"), arguments.next().expect("plain or spawned"));
    let log = Log::default();
    let desk = Arc::new(Desk::new(log.clone()));
    let mut builder = Builder::new_multi_thread();
    traced::runtime(&mut builder, "server").worker_threads(2).enable_time();
    let runtime = builder.build().expect("a runtime");
    runtime.block_on(async {
        let mut connections = Vec::new();
        for connection in 0..CONNECTIONS {
            let (sender, receiver) = mpsc::channel(1);
            let serves = serve(desk.clone(), connection, receiver);
            let serves = match how.as_str() {
                "plain" => tokio::spawn(serves),
                _ => traced::Builder::new().name(&format!("connection/{connection}")).spawn(serves),
            };
            let sends = tokio::spawn(async move {
                for request in 0..REQUESTS {
                    let _ = sender.send(connection * REQUESTS + request).await;
                }
            });
            connections.push((serves, sends));
        }
        for (serves, sends) in connections {
            serves.await.expect("it serves");
            sends.await.expect("it sends");
        }
    });
    drop(runtime);
    log.end(&file);
}
