//! A typical web server: plain `axum::serve`, whose tasks the program does not instrument, and spans and
//! events of `tracing`. It keeps its own log ([`desk`]) for a comparison with `tracewing`, and so do its
//! clients, which are threads of the same process.
//!
//!     tracewing record --clock mono -o trace -- axum_server LOG

mod desk;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use desk::{CONNECTIONS, Desk, Log, REQUESTS, computed, now};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tracewing_tokio as traced;
use tracing::{Instrument, Level};
use tracing_subscriber::prelude::*;

/// The answer to each request, at the end of its header.
const DONE: &str = "done\n";

/// `request ID BEGINS BEGAN ENDS ENDED`, around two events; all of it in a span,
/// `span ID MAKES MADE CLOSES CLOSED`.
async fn order(State(desk): State<Arc<Desk>>, Path(id): Path<u64>) -> &'static str {
    let makes = now();
    let span = tracing::info_span!(target: "desk", "order", id);
    let made = now();
    let answer = async {
        let begins = now();
        tracing::event!(name: "request", target: "server", Level::INFO, id);
        let began = now();
        desk.answer(id).await;
        let ends = now();
        tracing::event!(name: "response", target: "server", Level::INFO, id);
        desk.log.line("request", &[id, begins, began, ends, now()]);
    };
    desk.log.polls(id, answer.instrument(span.clone())).await;
    let closes = now();
    drop(span);
    desk.log.line("span", &[id, makes, made, closes, now()]);
    DONE
}

/// Requests a connection's orders, one after the other: `call ID BEGIN ASKS ANSWERED END`, stamps outside and
/// inside of two events; `by ID TID`; `client TID COMPUTED BEGIN END`, the second in ns of CPU time. Its log
/// is its own until it ends: it waits for no other thread.
fn client(book: &Log, connection: u64, server: SocketAddr) {
    let log = Log::default();
    let tid = rustix::thread::gettid().as_raw_pid().unsigned_abs();
    let (begins, cpu) = (now(), computed());
    let mut stream = TcpStream::connect(server).expect("the server listens");
    for id in (connection * REQUESTS..).take(REQUESTS as usize) {
        let begin = now();
        tracewing::event!("client:call", id);
        let asks = now();
        write!(stream, "GET /order/{id} HTTP/1.1\r\nHost: desk\r\n\r\n").expect("the server reads");
        let mut answer = Vec::new();
        while !answer.ends_with(DONE.as_bytes()) {
            let mut part = [0; 1024];
            let length = stream.read(&mut part).expect("the server answers");
            assert!(length > 0, "it hung up: {answer:?}");
            answer.extend_from_slice(&part[..length]);
        }
        let answered = now();
        tracewing::event!("client:answer", id);
        log.line("call", &[id, begin, asks, answered, now()]);
        log.line("by", &[id, tid.into()]);
    }
    log.line("client", &[tid.into(), computed() - cpu, begins, now()]);
    book.add(&log);
}

fn main() {
    tracing_subscriber::registry().with(tracewing_tracing::layer()).init();
    let file = std::env::args().nth(1).expect("a file");
    let log = Log::default();
    let desk = Arc::new(Desk::new(log.clone()));
    let mut builder = Builder::new_multi_thread();
    traced::runtime(&mut builder, "server").worker_threads(2).enable_all();
    let runtime = builder.build().expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).expect("a port");
    let server = listener.local_addr().expect("its address");
    let router = Router::new().route("/order/{id}", get(order)).with_state(desk);
    runtime.spawn(async { axum::serve(listener, router).await });
    thread::scope(|clients| {
        for connection in 0..CONNECTIONS {
            let log = &log;
            clients.spawn(move || client(log, connection, server));
        }
    });
    // The server never ends by itself; its tasks end with the runtime.
    drop(runtime);
    log.end(&file);
}
