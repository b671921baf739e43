//! An order-processing server on the loopback, and clients that keep it busy: an example of a program
//! instrumented with tracewing. `tracewing record -- shop` records it.
//!
//! The server reads orders from TCP connections, queues them, and lets a pool of workers serve them from an
//! inventory protected by a lock. `events.rs` defines its events.

mod events;
mod inventory;
mod load;
mod queue;
mod server;

use anyhow::{Context, Result};
use clap::Parser;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::Duration;

/// An order-processing server and its clients. Without `--serve` and `--load` it runs both, in two processes.
#[derive(Parser)]
#[command(after_help = "Examples:\n  shop --seconds 5\n  shop --serve 127.0.0.1:7000\n  \
                        shop --load 127.0.0.1:7000 --clients 8 --seconds 10")]
struct Arguments {
    /// Only serve, at this address, until killed
    #[arg(long, value_name = "ADDRESS", conflicts_with = "load")]
    serve: Option<SocketAddr>,
    /// Only send orders to the server at this address
    #[arg(long, value_name = "ADDRESS")]
    load: Option<SocketAddr>,
    /// How long to send orders
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Clients that send orders
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Threads that serve orders
    #[arg(long, default_value_t = 4)]
    workers: u32,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(address) = arguments.load {
        return load::run(address, arguments.clients, Duration::from_secs(arguments.seconds));
    }
    let address = arguments.serve.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))?;
    let address = listener.local_addr()?;
    if arguments.serve.is_some() {
        println!("serving at {address}");
        server::serve(&listener, arguments.workers);
        return Ok(());
    }
    std::thread::spawn(move || server::serve(&listener, arguments.workers));
    let status = Command::new(std::env::current_exe()?)
        .args(["--load", &address.to_string()])
        .args(["--seconds", &arguments.seconds.to_string()])
        .args(["--clients", &arguments.clients.to_string()])
        .status()
        .context("cannot start the clients")?;
    anyhow::ensure!(status.success(), "the clients ended with {status}");
    Ok(())
}
