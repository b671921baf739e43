//! The server: a thread per connection reads orders, a pool of workers serves them.

use crate::events::{Accepted, Dequeued, Enqueued, Outcome, Refused, Served};
use crate::inventory::Inventory;
use crate::queue::Queue;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Instant;
use tracewing::emit;

/// Capacity of the queue of orders.
const QUEUE: usize = 128;

/// Rounds of hashing for an order's receipt: the CPU's work.
const RECEIPT_ROUNDS: u64 = 2_000;

struct Order {
    number: u64,
    item: u32,
    quantity: u32,
    customer: String,
    client: TcpStream,
    since: Instant,
}

struct Shop {
    queue: Queue<Order>,
    inventory: Inventory,
    orders: AtomicU64,
}

/// Accepts connections until the listener fails.
pub fn serve(listener: &TcpListener, workers: u32) {
    let shop =
        Arc::new(Shop { queue: Queue::new(QUEUE), inventory: Inventory::new(), orders: AtomicU64::new(1) });
    for number in 0..workers {
        let shop = Arc::clone(&shop);
        start(format!("worker-{number}"), move || shop.work());
    }
    for (client, connection) in listener.incoming().zip(1_u64..) {
        let Ok(client) = client else { continue };
        let port = client.peer_addr().map_or(0, |address| address.port());
        emit!(Accepted { connection, port });
        let shop = Arc::clone(&shop);
        start(format!("reader-{connection}"), move || shop.read(connection, client));
    }
}

fn start(name: String, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = Builder::new().name(name.clone()).spawn(work) {
        eprintln!("shop: cannot start {name}: {error}");
    }
}

impl Shop {
    /// Reads orders, one `ITEM QUANTITY CUSTOMER` per line, until the client disconnects.
    fn read(&self, connection: u64, client: TcpStream) {
        let Ok(input) = client.try_clone() else { return };
        for line in BufReader::new(input).lines() {
            let (Ok(line), Ok(client)) = (line, client.try_clone()) else { return };
            let Some((item, quantity, customer)) = parse(&line) else {
                emit!(Refused { connection, line: &line });
                return;
            };
            let number = self.orders.fetch_add(1, Ordering::Relaxed);
            let order = Order {
                number,
                item,
                quantity,
                customer: customer.to_owned(),
                client,
                since: Instant::now(),
            };
            self.queue.push(order, |order, depth| {
                emit!(Enqueued { order: order.number, item, quantity, depth, customer: &order.customer });
            });
        }
    }

    fn work(&self) {
        loop {
            let (mut order, depth) = self.queue.pop();
            emit!(Dequeued { order: order.number, depth });
            let outcome = self.inventory.take(order.number, order.item, order.quantity);
            let receipt = receipt(&order);
            let answer = match outcome {
                Outcome::Sold => format!("sold {receipt:016x}\n"),
                Outcome::SoldOut => "sold out\n".to_owned(),
            };
            // A client that has disconnected needs no answer.
            let _ = order.client.write_all(answer.as_bytes());
            let latency = u64::try_from(order.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            emit!(Served { order: order.number, outcome, latency });
        }
    }
}

fn parse(line: &str) -> Option<(u32, u32, &str)> {
    let mut words = line.splitn(3, ' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?))
}

fn receipt(order: &Order) -> u64 {
    (0..RECEIPT_ROUNDS).fold(order.number, |sum, round| {
        let mut hasher = DefaultHasher::new();
        (sum, round, order.item, order.quantity, &order.customer).hash(&mut hasher);
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_nonsense_is_not() {
        assert_eq!(parse("3 17 Ada Lovelace"), Some((3, 17, "Ada Lovelace")));
        assert_eq!(parse("3 many Ada"), None);
        assert_eq!(parse("3 17"), None);
    }
}
