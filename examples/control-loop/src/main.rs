//! A control loop that never waits for its log: a real-time thread pushes log entries into a wait-free queue
//! ([`SlotFifo`]), and so does a signal handler that interrupts it; a second thread takes them out.
//!
//! ```text
//! control-loop [CYCLES]
//! kill -USR1 PID        notes the moment in the log
//! ```
//!
//! Entries without room in the log are counted and dropped: the reader never slows the loop down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tracewing_ring::slot_fifo::SlotFifo;

const PERIOD: Duration = Duration::from_micros(500);
const TARGET: f64 = 100.0;

/// An entry of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Entry {
    /// A cycle began this many nanoseconds too late, at this position.
    Cycle {
        late: u64,
        position: f64,
    },
    Asked,
}

static LOG: SlotFifo<Entry, 256> = SlotFifo::new();

/// Whether the loop is done.
static DONE: AtomicBool = AtomicBool::new(false);

/// A weight on a spring, which a motor pulls.
#[derive(Default)]
struct Plant {
    position: f64,
    speed: f64,
    /// The controller's sum of deviations.
    missing: f64,
}

impl Plant {
    /// One period under proportional-integral control.
    fn step(&mut self) {
        let error = TARGET - self.position;
        self.missing += error;
        let force = 0.4 * error + 0.01 * self.missing;
        self.speed = 0.8 * self.speed + 0.1 * (force - 0.1 * self.position);
        self.position += self.speed;
    }
}

/// The loop. It allocates nothing, takes no lock, and waits only for its next period.
fn control(cycles: u32) {
    let mut plant = Plant::default();
    let mut due = Instant::now();
    for _ in 0..cycles {
        due += PERIOD;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let late = due.elapsed().as_nanos() as u64;
        plant.step();
        // A full log has counted the entry as lost.
        let _ = LOG.try_push(Entry::Cycle { late, position: plant.position });
    }
}

extern "C" fn asked(_signal: libc::c_int) {
    let _ = LOG.try_push(Entry::Asked);
}

/// The totals of the log.
#[derive(Debug, Default)]
struct Summary {
    cycles: u64,
    asked: u64,
    latest: u64,
    position: f64,
    /// Entries that were dropped.
    missing: u64,
}

/// Takes out all entries until the loop is done.
fn read() -> Summary {
    let mut reader = LOG.reader().expect("there is one reader");
    let mut summary = Summary::default();
    loop {
        let is_over = DONE.load(Ordering::Acquire); // with the release in `run`
        while let Some(entry) = reader.pop() {
            match entry {
                Entry::Cycle { late, position } => {
                    summary.cycles += 1;
                    summary.latest = summary.latest.max(late);
                    summary.position = position;
                }
                Entry::Asked => {
                    summary.asked += 1;
                    println!("asked: the position is {:.2}", summary.position);
                }
            }
        }
        if is_over {
            return Summary { missing: LOG.failed(), ..summary };
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Installs the handler that notes the signal.
fn listen() {
    // SAFETY: the handler pushes into a wait-free queue, and does nothing else.
    unsafe { libc::signal(libc::SIGUSR1, asked as *const () as libc::sighandler_t) };
}

/// Runs the loop and its reader.
fn run(cycles: u32) -> Summary {
    let reader = thread::spawn(read);
    control(cycles);
    DONE.store(true, Ordering::Release); // with the acquire in `read`: all entries were pushed before
    reader.join().expect("the reader does not panic")
}

fn main() {
    let cycles = std::env::args().nth(1).and_then(|cycles| cycles.parse().ok()).unwrap_or(4000);
    listen();
    let summary = run(cycles);
    println!(
        "{} cycles, the latest {} µs late; position {:.2}; {} entries had no room",
        summary.cycles,
        summary.latest / 1000,
        summary.position,
        summary.missing
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_read_or_counted() {
        let cycles = 300;
        listen();
        let signals = thread::spawn(|| {
            // SAFETY: a signal that has a handler.
            (0..20).for_each(|_| assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0));
        });
        let summary = run(cycles);
        signals.join().unwrap();
        // Signals that came after the loop's end.
        let mut reader = LOG.reader().unwrap();
        let late = std::iter::from_fn(|| reader.pop()).count() as u64;
        assert_eq!(summary.cycles + summary.asked + LOG.failed() + late, u64::from(cycles) + 20);
    }

    #[test]
    fn the_controller_reaches_its_target() {
        let mut plant = Plant::default();
        (0..4000).for_each(|_| plant.step());
        assert!((plant.position - TARGET).abs() < 1.0, "{}", plant.position);
    }
}
