//! A scheduler of user threads whose every transition is scripted, and which keeps a log of its own: each
//! report, and the processor's time stamp before and after it. The argument is the file for the log, one line
//! per entry: `TID CPU NAME FIRST SECOND BEFORE AFTER`.
//!
//! | entry | is | FIRST, SECOND |
//! |---|---|---|
//! | `create`, `wake`, `exit` | an event of that name | user thread |
//! | `switch` | one | prev, next |
//! | `moved` | the thread was moved to this CPU by force | |
//! | `interrupted` | the thread looked at the clock at these two times, one after the other | user thread |
//! | `competed` | another thread had the CPU meanwhile | |
//!
//! What happens: computed phases with yields; a competitor of higher priority takes the CPU in the middle of
//! one; a user thread is moved to another CPU while it runs, and to another thread of the kernel; four are
//! woken in an order that is not that of their creation. Each thread of the kernel is bound to a CPU, two
//! different ones if there are as many.

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::fmt::Write as _;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tracewing::user_thread::{self, Cause, Outcome, UserThread};

const PHASES: u32 = 20;
/// Cycles that a phase computes.
const PHASE: u64 = 200_000;
/// Cycles for which the competitor has the CPU.
const COMPETITION: u64 = 5_000_000;
/// A thread that does not read the clock for so many cycles is not running.
const GAP: u64 = 1_000_000;

fn now() -> u64 {
    // SAFETY: every x86-64 processor has both; the fences order the reading with what is around it.
    unsafe {
        _mm_lfence();
        let stamp = _rdtsc();
        _mm_lfence();
        stamp
    }
}

fn tid() -> i32 {
    // SAFETY: asks for the thread's own number.
    unsafe { libc::gettid() }
}

/// Binds the calling thread to a CPU.
fn bind(cpu: usize) {
    // SAFETY: zeroes are an empty set; the CPU is one that the set it was taken from held.
    unsafe {
        let mut only: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut only);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&only), &only), 0);
    }
}

/// The first two CPUs that this process may use, the same twice if there is one.
fn cpus() -> [usize; 2] {
    // SAFETY: zeroes are an empty set, which is filled before it is read.
    let allowed = unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed), 0);
        (0..libc::CPU_SETSIZE as usize).filter(move |cpu| libc::CPU_ISSET(*cpu, &allowed))
    };
    let found: Vec<usize> = allowed.take(2).collect();
    [found[0], *found.last().unwrap()]
}

/// A thread of the kernel, and what it has to say.
struct Lwp {
    log: String,
}

impl Lwp {
    fn new() -> Self {
        Self { log: String::with_capacity(1 << 16) }
    }

    fn note(&mut self, name: &str, numbers: [Option<UserThread>; 2], [before, after]: [u64; 2]) {
        // SAFETY: asks for a number; the thread is bound to that CPU.
        let cpu = unsafe { libc::sched_getcpu() };
        let [first, second] = numbers.map(|thread| thread.map_or(0, |thread| thread.get().get()));
        writeln!(self.log, "{} {cpu} {name} {first} {second} {before} {after}", tid()).unwrap();
    }

    /// Emits an event by calling `emit`, and logs it.
    fn report<R>(
        &mut self,
        name: &str,
        first: Option<UserThread>,
        second: Option<UserThread>,
        emit: impl FnOnce() -> R,
    ) -> R {
        let before = now();
        let result = emit();
        let after = now();
        self.note(name, [first, second], [before, after]);
        result
    }

    fn create(&mut self, name: &str) -> UserThread {
        let before = now();
        let thread = user_thread::create(name, "truth", Location::caller());
        let after = now();
        self.note("create", [Some(thread), None], [before, after]);
        thread
    }

    fn switch(&mut self, next: Option<UserThread>, cause: Cause) {
        let prev = user_thread::current();
        self.report("switch", prev, next, || user_thread::switch(next, cause));
    }

    fn wake(&mut self, thread: UserThread) {
        self.report("wake", Some(thread), None, || user_thread::wake(thread));
    }

    /// Computes until `done`, and at least for one phase; notes when it did not run since `begin`.
    fn compute_since(&mut self, begin: u64, mut done: impl FnMut() -> bool) {
        let mut last = begin;
        loop {
            // Read before the clock: a competitor that took the CPU until it was done is after the last look.
            let enough = last >= begin + PHASE && done();
            let stamp = now();
            if stamp > last + GAP {
                self.note("interrupted", [user_thread::current(), None], [last, stamp]);
            }
            last = stamp;
            if enough {
                return;
            }
        }
    }

    fn compute(&mut self, done: impl FnMut() -> bool) {
        self.compute_since(now(), done);
    }

    /// Runs a user thread for a phase.
    fn run(&mut self, thread: UserThread, cause: Cause) {
        self.switch(Some(thread), Cause::None);
        self.compute(|| true);
        self.switch(None, cause);
    }

    fn move_to(&mut self, cpu: usize) {
        bind(cpu);
        let here = now();
        self.note("moved", [None; 2], [here; 2]);
    }
}

/// Takes the CPU from the thread that has it, a millisecond after a request.
fn competitor(cpu: usize, orders: &mpsc::Receiver<Arc<AtomicBool>>, log: &Mutex<String>) {
    bind(cpu);
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: valid parameters. Without the right to it, the kernel shares the CPU out, which takes longer.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
    let mut lwp = Lwp::new();
    for done in orders {
        thread::sleep(Duration::from_millis(1));
        // Without the right to its priority, it shares the CPU: then all of it is what it has at a stretch.
        let (mut begin, mut last) = (now(), now());
        while last < begin + COMPETITION {
            let stamp = now();
            if stamp > last + GAP / 10 {
                begin = stamp;
            }
            last = stamp;
        }
        lwp.note("competed", [None; 2], [begin, last]);
        done.store(true, Release); // with the load in `script`
    }
    log.lock().unwrap().push_str(&lwp.log);
}

/// The script of the first thread, with another one that runs what it is sent and answers when it has.
fn script(
    [here, there]: [usize; 2],
    competitor: &mpsc::Sender<Arc<AtomicBool>>,
    other: &(mpsc::Sender<UserThread>, mpsc::Receiver<()>),
) -> String {
    bind(here);
    let mut lwp = Lwp::new();
    let names = ["phases", "preempted", "migrated", "waker", "woken/0", "woken/1", "woken/2", "woken/3"];
    let [phases, preempted, migrated, waker, woken @ ..] = names.map(|name| lwp.create(name));

    for _ in 0..PHASES {
        lwp.run(phases, Cause::Yielded);
    }
    lwp.report("exit", Some(phases), None, || user_thread::exit(phases, Outcome::Cancelled));

    for _ in 0..3 {
        let done = Arc::new(AtomicBool::new(false));
        lwp.switch(Some(preempted), Cause::None);
        // On a busy machine it may have the CPU before this thread computes.
        let begin = now();
        competitor.send(done.clone()).unwrap();
        lwp.compute_since(begin, || done.load(Acquire));
        lwp.switch(None, Cause::Budget);
    }

    for _ in 0..3 {
        lwp.switch(Some(migrated), Cause::None);
        lwp.compute(|| true);
        lwp.move_to(there);
        lwp.compute(|| true);
        lwp.move_to(here);
        lwp.compute(|| true);
        lwp.switch(None, Cause::Yielded);
        other.0.send(migrated).unwrap();
        other.1.recv().unwrap();
    }

    woken.iter().for_each(|thread| lwp.run(*thread, Cause::Blocked));
    lwp.switch(Some(waker), Cause::None);
    let order = [2, 0, 3, 1].map(|index| woken[index]);
    order.iter().for_each(|thread| lwp.wake(*thread));
    lwp.switch(None, Cause::Ended);
    order.iter().for_each(|thread| lwp.run(*thread, Cause::Ended));
    [preempted, migrated].iter().for_each(|thread| lwp.run(*thread, Cause::Ended));
    lwp.log
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file for the log");
    let cpus = cpus();
    let log = Mutex::new(String::new());
    thread::scope(|scope| {
        let (compete, orders) = mpsc::channel();
        let (run, to_run) = mpsc::channel::<UserThread>();
        let (ran, has_run) = mpsc::channel();
        let log = &log;
        scope.spawn(move || competitor(cpus[0], &orders, log));
        scope.spawn(move || {
            bind(cpus[1]);
            let mut lwp = Lwp::new();
            for thread in to_run {
                lwp.run(thread, Cause::Yielded);
                ran.send(()).unwrap();
            }
            log.lock().unwrap().push_str(&lwp.log);
        });
        let first = script(cpus, &compete, &(run, has_run));
        log.lock().unwrap().push_str(&first);
    });
    std::fs::write(file, log.into_inner().unwrap()).expect("the log can be written");
}
