//! A server under load: tasks of tokio answer clients, which are threads that ask and sleep in turn. Tasks
//! report themselves, and each request is an event.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

const CLIENTS: usize = 4;
/// Pause between two requests of a client, so that there is a load, and the machine has time for more.
const PAUSE: Duration = Duration::from_micros(500);

static ENDS: AtomicBool = AtomicBool::new(false);
static ANSWERED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);

/// The server with its clients.
pub struct Server {
    runtime: Runtime,
    clients: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts them.
    pub fn start() -> Result<Self> {
        let mut builder = Builder::new_multi_thread();
        tracewing_tokio::runtime(&mut builder, "server").worker_threads(2).enable_all();
        let runtime = builder.build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        tracewing_tokio::Builder::new().name("accept").spawn_on(accept(listener), runtime.handle());
        let clients = (0..CLIENTS).map(|_| std::thread::spawn(move || ask(address))).collect();
        Ok(Self { runtime, clients })
    }

    /// Ends them; gives how many requests were answered, and how many failed.
    pub fn end(self) -> Result<(u64, u64)> {
        ENDS.store(true, Relaxed);
        for client in self.clients {
            if client.join().is_err() {
                bail!("a client has panicked");
            }
        }
        self.runtime.shutdown_background();
        Ok((ANSWERED.load(Relaxed), FAILED.load(Relaxed)))
    }
}

async fn accept(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tracewing_tokio::Builder::new().name("connection").spawn(async move {
            let mut number = [0; 8];
            while stream.read_exact(&mut number).await.is_ok() {
                let request = u64::from_le_bytes(number);
                tracewing::event!("bench_attach:request", request);
                if stream.write_all(&(!request).to_le_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

fn ask(server: SocketAddr) {
    let mut stream = None;
    let mut request = 0_u64;
    while !ENDS.load(Relaxed) {
        request += 1;
        match answer(&mut stream, server, request) {
            Ok(()) => ANSWERED.fetch_add(1, Relaxed),
            Err(error) => {
                eprintln!("bench-tasks: request {request}: {error:#}");
                stream = None;
                FAILED.fetch_add(1, Relaxed)
            }
        };
        std::thread::sleep(PAUSE);
    }
}

/// One request, over the connection that there is, or else over a new one.
fn answer(stream: &mut Option<TcpStream>, server: SocketAddr, request: u64) -> Result<()> {
    let stream = match stream {
        Some(stream) => stream,
        None => {
            let new = TcpStream::connect(server).context("cannot connect")?;
            new.set_nodelay(true)?;
            // A request that takes so long has failed.
            new.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.insert(new)
        }
    };
    let mut answer = [0; 8];
    stream.write_all(&request.to_le_bytes()).context("cannot be sent")?;
    stream.read_exact(&mut answer).context("has no answer")?;
    if u64::from_le_bytes(answer) != !request {
        bail!("has the wrong answer");
    }
    Ok(())
}
