//! The work of servers that keep their own log: when each request waited for which lock, and how long it held
//! it, by their own stamps of CLOCK_MONOTONIC. The reports of `tracewing` are compared with that log. A line
//! of the log is an operation, followed by numbers; the function that writes a line documents them.

use rustix::time::ClockId;
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex as Unrecorded};
use std::time::Duration;
use tracewing_tokio as traced;

/// Connections, and requests per connection.
pub const CONNECTIONS: u64 = 8;
pub const REQUESTS: u64 = 6;

/// Current time of a clock, ns.
fn clock(id: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(id);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

pub fn now() -> u64 {
    clock(ClockId::Monotonic)
}

/// CPU time of this thread, ns.
pub fn computed() -> u64 {
    clock(ClockId::ThreadCPUTime)
}

/// The program's log.
#[derive(Clone, Default)]
pub struct Log(Arc<Unrecorded<String>>);

impl Log {
    pub fn line(&self, operation: &str, numbers: &[u64]) {
        let mut log = self.0.lock().expect("no writer panics");
        log.push_str(operation);
        numbers.iter().for_each(|number| write!(log, " {number}").expect("it is memory"));
        log.push('\n');
    }

    /// Takes over another log's lines.
    #[allow(dead_code, reason = "not all servers have several")]
    pub fn add(&self, other: &Log) {
        let lines = other.0.lock().expect("no writer panics");
        self.0.lock().expect("no writer panics").push_str(&lines);
    }

    /// `process PID COMPUTED`, the second in ns of CPU time, and the file.
    pub fn end(&self, file: &str) {
        self.line("process", &[std::process::id().into(), clock(ClockId::ProcessCPUTime)]);
        let log = self.0.lock().expect("no writer panics");
        std::fs::write(file, log.as_bytes()).expect("the log");
    }

    /// `lock ADDRESS LINE WAITED ASKED TRIED POLLS GOT GIVES GAVE`: whether its first poll was without
    /// success, stamps around both calls, and after the first poll and before the last one. Or, if it does
    /// not get the lock within `time`, `gave_up ADDRESS LINE WAITED ASKED ENDED`.
    async fn lock<G>(
        &self,
        (address, line): (u64, u32),
        time: Duration,
        lock: impl Future<Output = G>,
        held: impl Future,
    ) {
        let asked = now();
        let (mut waited, mut tried, mut polls) = (false, None, asked);
        let result = {
            let mut lock = pin!(lock);
            let polled = poll_fn(|context| {
                polls = now();
                let poll = lock.as_mut().poll(context);
                waited |= poll.is_pending();
                tried.get_or_insert_with(now);
                poll
            });
            tokio::time::timeout(time, polled).await
        };
        let got = now();
        let Ok(guard) = result else {
            return self.line("gave_up", &[address, line.into(), waited.into(), asked, got]);
        };
        held.await;
        let gives = now();
        drop(guard);
        let tried = tried.unwrap_or(got);
        self.line("lock", &[address, line.into(), waited.into(), asked, tried, polls, got, gives, now()]);
    }

    /// `polls OF POLLS COMPUTED TASK BEGIN END`, the third in ns of CPU time; TASK is 0 where no task is
    /// known.
    pub async fn polls<T>(&self, of: u64, future: impl Future<Output = T>) -> T {
        let (mut polls, mut cpu, begins) = (0, 0, now());
        let task = tracewing::user_thread::current().map_or(0, |task| task.get().get());
        let mut future = pin!(future);
        let result = poll_fn(|context| {
            let begin = computed();
            let poll = future.as_mut().poll(context);
            (polls, cpu) = (polls + 1, cpu + computed() - begin);
            poll
        })
        .await;
        self.line("polls", &[of, polls, cpu, task, begins, now()]);
        result
    }
}

/// Longer than any wait for a lock.
const ALWAYS: Duration = Duration::from_secs(600);

async fn sleep(microseconds: u64) {
    tokio::time::sleep(Duration::from_micros(microseconds)).await;
}

fn address<T>(of: &T) -> u64 {
    (&raw const *of).addr() as u64
}

/// Computes as long as a request does.
#[tracewing::traced]
#[inline(never)]
fn search(guard: &mut u64) {
    let until = computed() + 100_000;
    while computed() < until {
        *guard += 1;
    }
}

/// The resources of requests.
pub struct Desk {
    ledger: traced::sync::Mutex<u64>,
    table: traced::sync::RwLock<u64>,
    cache: tracewing::sync::Mutex<u64>,
    pub log: Log,
}

impl Desk {
    pub fn new(log: Log) -> Self {
        Self {
            ledger: traced::sync::Mutex::new(0),
            table: traced::sync::RwLock::new(0),
            cache: tracewing::sync::Mutex::new(0),
            log,
        }
    }

    /// Holds the ledger across an await, as a program should not.
    async fn book(&self) {
        self.log.lock((address(&self.ledger), line!()), ALWAYS, self.ledger.lock(), sleep(2000)).await;
    }

    async fn try_to_book(&self) {
        let time = Duration::from_micros(200);
        self.log.lock((address(&self.ledger), line!()), time, self.ledger.lock(), async {}).await;
    }

    /// `refused ADDRESS LINE` where another task has the ledger.
    fn look_into_ledger(&self) {
        let asked = now();
        let (address, line) = (address(&self.ledger), line!() + 1);
        let guard = self.ledger.try_lock();
        let got = now();
        let Ok(guard) = guard else { return self.log.line("refused", &[address, line.into()]) };
        let gives = now();
        drop(guard);
        self.log.line("lock", &[address, line.into(), 0, asked, got, asked, got, gives, now()]);
    }

    async fn read(&self) {
        self.log.lock((address(&self.table), line!()), ALWAYS, self.table.read(), sleep(300)).await;
    }

    async fn write(&self) {
        self.log.lock((address(&self.table), line!()), ALWAYS, self.table.write(), sleep(300)).await;
    }

    /// Holds a lock of threads while it computes, in a function that lasts at least 100 µs and at most from
    /// GOT to GIVES: `cache ADDRESS 0 0 ASKED GOT GIVES GAVE`.
    fn look_up(&self) {
        let asked = now();
        let mut guard = self.cache.lock().expect("no holder panics");
        let got = now();
        search(&mut guard);
        let gives = now();
        drop(guard);
        self.log.line("cache", &[address(&self.cache), 0, 0, asked, got, gives, now()]);
    }

    /// Handles one request.
    pub async fn answer(&self, id: u64) {
        self.look_up();
        self.read().await;
        self.book().await;
        if id.is_multiple_of(3) {
            self.write().await;
        }
        self.try_to_book().await;
        self.look_into_ledger();
    }
}
