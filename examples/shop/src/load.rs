//! The clients: each sends an order, waits for the answer, thinks a little, and sends the next.

use crate::events::Answered;
use crate::inventory::ITEMS;
use anyhow::{Context, Result, anyhow};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tracewing::emit;

/// Names of the customers.
const CUSTOMERS: &[&str] = &["Ada", "Barbara", "Edsger", "Frances", "Grace", "Leslie", "Radia", "Tony"];

/// Keeps the server busy for `duration` and prints how many orders were answered.
pub fn run(server: SocketAddr, clients: u32, duration: Duration) -> Result<()> {
    let end = Instant::now() + duration;
    let threads: Vec<_> = (0..clients)
        .map(|client| Builder::new().name(format!("client-{client}")).spawn(move || buy(server, client, end)))
        .collect::<Result<_, _>>()?;
    let mut answered = 0;
    for thread in threads {
        answered += thread.join().map_err(|_| anyhow!("a client panicked"))??;
    }
    println!("{answered} orders answered in {} s", duration.as_secs());
    Ok(())
}

fn buy(server: SocketAddr, client: u32, end: Instant) -> Result<u64> {
    let mut output = TcpStream::connect(server).with_context(|| format!("cannot reach {server}"))?;
    output.set_nodelay(true)?;
    let mut input = BufReader::new(output.try_clone()?);
    let mut answer = String::new();
    let mut random = u64::from(client) + 1;
    let mut answered = 0;
    while Instant::now() < end {
        random = next(random);
        let customer = CUSTOMERS[(random >> 8) as usize % CUSTOMERS.len()];
        let order = format!("{} {} {customer}\n", random % u64::from(ITEMS), 1 + (random >> 16) % 9);
        let begin = Instant::now();
        output.write_all(order.as_bytes())?;
        answer.clear();
        if input.read_line(&mut answer)? == 0 {
            break;
        }
        emit!(Answered { client, latency: u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX) });
        answered += 1;
        std::thread::sleep(Duration::from_micros(random >> 32 & 0xff));
    }
    Ok(answered)
}

/// A xorshift step (Marsaglia): not random, but well distributed, and the same in each run.
fn next(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}
