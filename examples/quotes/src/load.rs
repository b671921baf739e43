//! Clients of the server: each requests prices without a pause, and measures each response time.

use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Items that clients ask for.
const ITEMS: u64 = 40;

/// Pause between two requests of a client.
const PAUSE: Duration = Duration::from_millis(1);

/// Runs the clients and returns the response times, the shortest first.
///
/// # Errors
/// The server closes a connection.
pub fn run(server: SocketAddr, clients: u64, time: Duration) -> Result<Vec<Duration>> {
    let threads: Vec<_> =
        (0..clients).map(|client| thread::spawn(move || ask(server, client, time))).collect();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().expect("a client does not panic")?);
    }
    times.sort_unstable();
    Ok(times)
}

fn ask(server: SocketAddr, client: u64, time: Duration) -> Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    let (begin, mut item, mut times) = (Instant::now(), client, Vec::new());
    while begin.elapsed() < time {
        item = (item + 7) % ITEMS;
        let sent = Instant::now();
        stream.write_all(&item.to_le_bytes())?;
        stream.read_exact(&mut [0; 8])?;
        times.push(sent.elapsed());
        thread::sleep(PAUSE);
    }
    Ok(times)
}
