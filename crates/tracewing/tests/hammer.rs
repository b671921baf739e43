//! 8 threads run over 1,000 sites while another one switches them on and off at random. At the same time
//! signals interrupt all of them, processes are forked, and a library is loaded and unloaded. After `rule`
//! (the session's `enable` and `disable`) returns, no disabled event is recorded, and no enabled one is
//! missing.
//!
//! `TRACEWING_SECONDS` sets the duration; the default is 3.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use tracewing::rules::Rule;
use tracewing::{Session, SessionBuilder};
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::Scope;
use tracewing_testing::build;
use tracewing_trace::{Merge, Message, Recording, TimeRange};

const THREADS: u32 = 8;
const SITES: usize = 1000;
/// A thread's number for events of its signal handler, above the threads' own.
const HANDLER: u32 = 100;
const CHILD: u32 = 200;

/// A separate site for each name; `event!` accepts only literal names.
macro_rules! site {
    ($thread:expr, $number:expr, $($digit:literal)*) => {{
        use tracewing::__private::{AdHocSite, Declaration, FieldDeclaration};
        struct Here;
        impl Declaration for Here {
            const NAME: &'static str = concat!("hammer:e", $($digit),*);
            const LEVEL: tracewing::Level = tracewing::Level::Info;
            const MAJOR: u8 = 0;
            const DESCRIPTION: &'static str = "";
            const PRINT: &'static str = "";
            const FILE: &'static str = file!();
            const LINE: u32 = line!();
            const FIELDS: &'static [FieldDeclaration] =
                &[FieldDeclaration::plain("thread"), FieldDeclaration::plain("number")];
        }
        let site = AdHocSite::<Here, _, 2>::new();
        if site.is_on() {
            site.record((&$thread, (&$number, ())));
        }
    }};
}

macro_rules! ten {
    ($index:expr, [$($with:tt)*], $then:ident) => {
        match $index % 10 {
            0 => $then!($($with)* 0),
            1 => $then!($($with)* 1),
            2 => $then!($($with)* 2),
            3 => $then!($($with)* 3),
            4 => $then!($($with)* 4),
            5 => $then!($($with)* 5),
            6 => $then!($($with)* 6),
            7 => $then!($($with)* 7),
            8 => $then!($($with)* 8),
            _ => $then!($($with)* 9),
        }
    };
}

macro_rules! with_one_digit {
    ($index:expr, $thread:expr, $number:expr, $($digit:literal)*) => {
        ten!($index / 10, [$index, $thread, $number, $($digit)*], with_two_digits)
    };
}

macro_rules! with_two_digits {
    ($index:expr, $thread:expr, $number:expr, $($digit:literal)*) => {
        ten!($index, [$thread, $number, $($digit)*], site)
    };
}

/// Comes to site `index`, whose name has the index's three digits.
fn come_to(index: usize, thread: u32, number: u64) {
    ten!(index / 100, [index, thread, number,], with_one_digit)
}

/// Of each site: 4n while it is off, 4n + 1 while it is being switched on, 4n + 2 while on, 4n + 3 while it
/// is being switched off.
static STATES: [AtomicU64; SITES] = [const { AtomicU64::new(0) }; SITES];
static STOP: AtomicBool = AtomicBool::new(false);
static HANDLED: AtomicU64 = AtomicU64::new(0);

fn is_on(state: u64) -> bool {
    state % 4 == 2
}

fn now() -> u64 {
    // SAFETY: two instructions that every x86-64 processor has.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// xorshift: numbers without a lock.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Gives the numbers of the events that must be in the trace.
fn hammer(thread: u32) -> Vec<u64> {
    let mut random = Random(0x9e37_79b9 + u64::from(thread));
    let mut sure = Vec::new();
    let mut number = 0;
    while !STOP.load(Relaxed) {
        let index = random.next() as usize % SITES;
        let before = STATES[index].load(SeqCst);
        come_to(index, thread, number);
        if is_on(before) && STATES[index].load(SeqCst) == before {
            sure.push(number);
        }
        number += 1;
        // Few enough events for any disk.
        for _ in 0..random.next() % 4000 {
            std::hint::spin_loop();
        }
    }
    sure
}

/// Stops the threads, even where a check has failed.
struct StopAtTheEnd;

impl Drop for StopAtTheEnd {
    fn drop(&mut self) {
        STOP.store(true, Relaxed);
    }
}

extern "C" fn handle(_signal: libc::c_int) {
    let number = HANDLED.fetch_add(1, Relaxed);
    come_to(number as usize % SITES, HANDLER, number);
}

/// A change of one site: when it was asked for, when it was made, and what it was.
type Change = (u64, u64, bool);

/// Switches sites at random: a tenth of them, or one.
fn switch(session: &Session, seconds: u64) -> Vec<Vec<Change>> {
    let mut random = Random(12345);
    let mut changes = vec![Vec::new(); SITES];
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let (digit, place, on) = (random.next() % 10, random.next() % 3, random.next().is_multiple_of(3));
        let pattern = match place {
            0 => format!("hammer:e{digit}??"),
            1 => format!("hammer:e?{digit}?"),
            _ => format!("hammer:e12{digit}"),
        };
        let glob = tracewing::rules::Glob::new(pattern.as_str());
        let chosen: Vec<usize> =
            (0..SITES).filter(|index| glob.matches(&format!("hammer:e{index:03}"))).collect();
        let turned: Vec<usize> =
            chosen.into_iter().filter(|index| is_on(STATES[*index].load(SeqCst)) != on).collect();
        turned.iter().for_each(|index| _ = STATES[*index].fetch_add(1, SeqCst));
        let asked = now();
        let rule = if on { Rule::enable([pattern]) } else { Rule::disable([pattern]) };
        session.rule(rule).unwrap();
        let made = now();
        for index in turned {
            STATES[index].fetch_add(1, SeqCst);
            changes[index].push((asked, made, on));
        }
    }
    changes
}

fn interrupt_and_fork(plugin: &CStr, seconds: u64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        for _ in 0..50 {
            thread::sleep(Duration::from_micros(300));
            // SAFETY: a signal with a handler, to some thread of this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) };
        }
        // SAFETY: the child comes to some sites and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            (0..SITES).for_each(|index| come_to(index, CHILD, 0));
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        load_and_unload(plugin);
        let mut status = 0;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "a forked child died");
    }
}

/// A library with its own copy of tracewing and sites of its own.
fn plugin() -> CString {
    let built = build(env!("CARGO_TARGET_TMPDIR"), &["-p", "tracewing", "--example", "plugin"]);
    CString::new(built.join("examples/libplugin.so").into_os_string().into_encoded_bytes()).unwrap()
}

fn load_and_unload(path: &CStr) {
    // SAFETY: its initialisers are Rust's.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "{path:?} cannot be loaded");
        libc::dlclose(library);
    }
}

#[derive(Default)]
struct Fields(HashMap<String, u64>);

impl Visitor for Fields {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        if let (Some(name), Value::Unsigned(value, _)) = (name, value) {
            self.0.insert(name.to_owned(), value);
        }
    }
    fn begin(&mut self, _name: Option<&str>, _compound: Compound<'_>) {}
    fn end(&mut self, _compound: Compound<'_>) {}
}

/// Checks the trace against what was done. Returns the number of events and the most cycles between a change
/// that disables an event and that event.
fn check(trace: &Path, changes: &[Vec<Change>], sure: &[Vec<u64>]) -> (usize, u64) {
    let recording = Recording::open(&[trace]).unwrap();
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    let mut found: Vec<Vec<u64>> = vec![Vec::new(); THREADS as usize];
    let (mut events, mut latest) = (0, 0);
    while let Some(message) = merge.advance().unwrap() {
        let Message::Event(event) = message else { continue };
        let name = event.decoded().class().name.as_deref().unwrap_or_default();
        let Some(index) = name.strip_prefix("hammer:e") else { continue };
        events += 1;
        let stamp = event.stamp().unwrap().cycles.0;
        let changes = &changes[index.parse::<usize>().unwrap()];
        let last = changes.partition_point(|(asked, ..)| *asked <= stamp).checked_sub(1);
        let (_, made, on) = last.map_or((0, 0, false), |last| changes[last]);
        let mut fields = Fields::default();
        event.decoded().visit(Scope::Payload, &mut fields);
        // A forked child continues with the settings of its parent.
        if !on && fields.0["thread"] != u64::from(CHILD) {
            latest = latest.max(stamp.saturating_sub(made));
        }
        if let Some(found) = found.get_mut(fields.0["thread"] as usize) {
            found.push(fields.0["number"]);
        }
    }
    for (thread, (sure, found)) in sure.iter().zip(&found).enumerate() {
        assert!(found.is_sorted(), "thread {thread}");
        let missing = sure.iter().find(|number| found.binary_search(number).is_err());
        assert_eq!(missing, None, "thread {thread} came to a site that was on, and nothing is in the trace");
    }
    (events, latest)
}

#[test]
fn sites_are_switched_under_fire() {
    let seconds: u64 =
        std::env::var("TRACEWING_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let plugin = plugin();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let builder: SessionBuilder =
        Session::builder().output(&trace).sub_buffers(64).rule(Rule::enable(["nothing:*"]));
    let session = builder.start().unwrap();
    // SAFETY: the handler only emits.
    unsafe { libc::signal(libc::SIGUSR2, handle as *const () as libc::sighandler_t) };
    let (sure, changes) = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || hammer(thread))).collect();
        let stop = StopAtTheEnd;
        let others = scope.spawn(|| interrupt_and_fork(&plugin, seconds));
        let changes = switch(&session, seconds);
        others.join().unwrap();
        drop(stop);
        (threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>(), changes)
    });
    let summary = session.stop().unwrap();
    assert_eq!(summary.lost, 0);
    let (events, latest) = check(&trace, &changes, &sure);
    let switched: usize = changes.iter().map(Vec::len).sum();
    let sure: usize = sure.iter().map(Vec::len).sum();
    eprintln!(
        "{switched} sites switched, {events} events, {sure} of them sure to come, the latest {latest} cycles late"
    );
    assert!(switched > 100 && sure > 100, "nothing was tried");
    assert_eq!(latest, 0, "cycles after `rule`, an event came that it had disabled");
}
