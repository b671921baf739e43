//! The situation of the multi-level trace paper's Figure 3, with tokio: tasks `work/0`, `work/1`, … compute,
//! and a task `daemon` polls the network for messages and lets the others run if there is none. So a message
//! is handled only after all of them have had their turn, although the kernel received it long before.
//!
//! `tracewing record -o trace -- reactivity` records which tasks ran meanwhile; the event
//! `reactivity:received_msg` records that a message is handled.

use clap::Parser;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tracewing::event;
use tracewing_tokio as traced;

/// Tasks that compute, and one that handles messages late.
#[derive(Parser)]
struct Options {
    /// Tasks that compute
    #[arg(long, default_value_t = 20)]
    tasks: usize,
    /// Threads that run tasks
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// How long a task computes before it lets others run, ms
    #[arg(long, default_value_t = 5)]
    quantum: u64,
    /// Messages, of which one is sent every 50 ms
    #[arg(long, default_value_t = 20)]
    messages: u64,
}

fn main() -> std::io::Result<()> {
    let options = Options::parse();
    let (socket, sender) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    socket.set_nonblocking(true)?;
    let to = socket.local_addr()?;
    let mut builder = Builder::new_multi_thread();
    let runtime = traced::runtime(&mut builder, "reactivity").worker_threads(options.workers).build()?;
    for number in 0..options.tasks {
        let name = format!("work/{number}");
        traced::Builder::new().name(&name).spawn_on(work(options.quantum), runtime.handle());
    }
    let begin = Instant::now();
    let daemon = treat(socket, options.messages, begin);
    let daemon = traced::Builder::new().name("daemon").spawn_on(daemon, runtime.handle());
    let sends = thread::spawn(move || send(&sender, to, options.messages, begin));
    let late = runtime.block_on(daemon).expect("the task does not panic")?;
    sends.join().expect("the thread does not panic")?;
    println!(
        "{} messages, treated {:.1} ms after they were sent",
        options.messages,
        late.as_secs_f64() * 1e3
    );
    runtime.shutdown_background();
    Ok(())
}

/// Computes for one quantum at a time.
async fn work(quantum: u64) {
    loop {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(quantum) {
            std::hint::spin_loop();
        }
        traced::yield_now().await;
    }
}

/// Sends messages that contain their send time, ns since `begin`.
fn send(socket: &UdpSocket, to: SocketAddr, messages: u64, begin: Instant) -> std::io::Result<()> {
    for message in 0..messages {
        thread::sleep(Duration::from_millis(50));
        event!("reactivity:sent_msg", message);
        socket.send_to(&(begin.elapsed().as_nanos() as u64).to_le_bytes(), to)?;
    }
    Ok(())
}

/// Polls for messages. Returns the average delay until they were handled.
async fn treat(socket: UdpSocket, messages: u64, begin: Instant) -> std::io::Result<Duration> {
    let (mut message, mut late) = (0, Duration::ZERO);
    while message < messages {
        let mut sent = [0; 8];
        match socket.recv(&mut sent) {
            Ok(_) => {
                event!("reactivity:received_msg", message);
                late += begin.elapsed().saturating_sub(Duration::from_nanos(u64::from_le_bytes(sent)));
                message += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => traced::yield_now().await,
            Err(error) => return Err(error),
        }
    }
    Ok(late.checked_div(messages as u32).unwrap_or_default())
}
