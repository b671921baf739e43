//! A program that keeps an account of the events it emits: eight threads, and three children that are forked
//! while the threads run, one of which is killed with `kill -9` while it emits.
//!
//! ```text
//! ledger TRUTH.json [EVENTS]
//! tracewing record -o T -- ledger truth.json
//! ```
//!
//! TRUTH.json then lists for every task (thread or child) how many events of each kind it began to emit and
//! how many it had emitted: two numbers that differ by at most one, and only for the killed child. EVENTS is
//! the number per task (20,000). The events that a recording of the program lists, and those that it counts
//! as lost, must add up to these numbers.

mod account;

use std::ffi::CStr;
use std::thread;

use account::{Kind, Ledger};
use tracewing::{Event, emit};

const THREADS: usize = 8;
const CHILDREN: usize = 3;
/// The child that is killed.
const VICTIM: usize = THREADS;

/// Money was paid in.
#[derive(Event)]
#[event(print = "entry {entry}: {amount} paid in")]
struct Deposit {
    /// Number of the event among all of the task's events.
    entry: u64,
    #[event(unit = "cent")]
    amount: u32,
}

/// Money went from one account to another. A recording with this event also has the deposit before it.
#[derive(Event)]
#[event(ordered)]
struct Transfer {
    entry: u64,
    from: u16,
    to: u16,
    amount: u64,
}

/// A remark of a customer.
#[derive(Event)]
struct Remark<'a> {
    entry: u64,
    text: &'a str,
}

/// Emits the task's event number `entry`, and notes it in the account.
fn enter(ledger: &Ledger, task: usize, entry: u64) {
    let kind = Kind::ALL[(entry % 3) as usize];
    ledger.begin(task, kind);
    match kind {
        Kind::Deposit => emit!(Deposit { entry, amount: 100 }),
        Kind::Transfer => emit!(Transfer { entry, from: task as u16, to: 0, amount: entry }),
        Kind::Remark => emit!(Remark { entry, text: &"so it goes "[..(entry % 12) as usize] }),
    }
    ledger.end(task, kind);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let truth = arguments.next().ok_or("usage: ledger TRUTH.json [EVENTS]")?;
    let events: u64 = arguments.next().map_or(Ok(20_000), |number| number.parse())?;

    let ledger = Ledger::new(THREADS + CHILDREN)?;
    thread::scope(|scope| {
        for task in 0..THREADS {
            let ledger = &ledger;
            scope.spawn(move || {
                ledger.open(task);
                (0..events).for_each(|entry| enter(ledger, task, entry));
            });
        }
        let children: Vec<libc::pid_t> =
            (THREADS..THREADS + CHILDREN).map(|task| fork(&ledger, task, events)).collect();
        while ledger.emitted(VICTIM) < events {
            thread::yield_now();
        }
        // SAFETY: a child of ours, not waited for yet.
        unsafe { libc::kill(children[0], libc::SIGKILL) };
        for child in children {
            // SAFETY: as above; the status is not asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    });
    std::fs::write(truth, ledger.to_json().to_string())?;
    Ok(())
}

/// A child that emits its events and exits; the victim continues until it is killed.
fn fork(ledger: &Ledger, task: usize, events: u64) -> libc::pid_t {
    const NAME: &CStr = c"ledger-child";
    // SAFETY: other threads are running, so the child does only what a signal handler may do, and exits
    // without unwinding.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: a name of fewer than 16 bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
        ledger.open(task);
        let last = if task == VICTIM { u64::MAX } else { events };
        (0..last).for_each(|entry| enter(ledger, task, entry));
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    pid
}
