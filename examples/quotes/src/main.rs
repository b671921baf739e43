//! A server that answers with prices, and its clients: the example of the tutorial, with a bug that its
//! recording shows. `quotes --fixed` is the server without the bug.
//!
//! `cache.rs` has the prices, `load.rs` the clients.

mod cache;
mod load;

use cache::Cache;
use clap::Parser;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracewing::event;
use tracewing_tokio as traced;

/// A server of prices and its clients.
#[derive(Parser)]
struct Arguments {
    /// Without the bug
    #[arg(long)]
    fixed: bool,
    /// How long the clients ask
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Clients that ask at the same time
    #[arg(long, default_value_t = 8)]
    clients: u64,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = traced::runtime(&mut builder, "quotes").worker_threads(2).enable_all().build()?;
    let cache = Arc::new(Cache::new(arguments.fixed));
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let address = listener.local_addr()?;
    traced::Builder::new().name("accept").spawn_on(accept(listener, cache), runtime.handle());
    let times = load::run(address, arguments.clients, Duration::from_secs(arguments.seconds))?;
    let within = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{} answers, half within {:.2} ms, 99 % within {:.2} ms",
        times.len(),
        within(0.5),
        within(0.99)
    );
    runtime.shutdown_background();
    Ok(())
}

/// A task for each connection.
async fn accept(listener: TcpListener, cache: Arc<Cache>) {
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        let name = format!("connection/{number}");
        traced::Builder::new().name(&name).spawn(serve(stream, Arc::clone(&cache)));
        number += 1;
    }
}

/// Answers the requests of a connection until it ends.
async fn serve(mut stream: TcpStream, cache: Arc<Cache>) {
    let mut item = [0; 8];
    while stream.read_exact(&mut item).await.is_ok() {
        let item = u64::from_le_bytes(item);
        event!("quotes:request", item);
        let price = cache.price(item).await;
        event!("quotes:answer", item, price);
        if stream.write_all(&price.to_le_bytes()).await.is_err() {
            return;
        }
    }
}
