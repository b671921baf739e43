//! Threads execute 1,000 sites while another thread switches them at random: a site that was switched on
//! before it is executed is on, one that was switched off is off. Meanwhile there are signals whose handler
//! executes sites, forks whose children switch, and a library with sites that is loaded and unloaded.
//!
//! Arguments: seconds, `plugin` (a library with its own copy of the crate) or `shared` (with ours), its path.

use library::tracewing_abi::schema::Class;
use library::tracewing_trigger::{Kind, Place, Record, Site, is_on, objects, switch};
use std::ffi::{CStr, CString, c_int};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SITES: usize = 1000;
const THREADS: usize = 8;

struct Numbered<const N: usize>;

impl<const N: usize> Place for Numbered<N> {
    const SITE: &'static Site = &Site {
        class: &Class::named("hammer:site"),
        owner: Site::no_owner,
        file: file!(),
        line: N as u32,
        kind: Kind::Event,
    };
}

#[inline(never)]
fn hit<const N: usize>() -> bool {
    is_on::<Numbered<N>>()
}

#[rustfmt::skip]
macro_rules! ten {
    ($m:ident, $n:expr) => {
        [
            $m!($n), $m!($n + 1), $m!($n + 2), $m!($n + 3), $m!($n + 4),
            $m!($n + 5), $m!($n + 6), $m!($n + 7), $m!($n + 8), $m!($n + 9),
        ]
    };
}
#[rustfmt::skip]
macro_rules! one { ($n:expr) => { hit::<{ $n }> as fn() -> bool }; }
#[rustfmt::skip]
macro_rules! tens { ($n:expr) => { ten!(one, 10 * ($n)) }; }
#[rustfmt::skip]
macro_rules! hundreds { ($n:expr) => { ten!(tens, 10 * ($n)) }; }

static HIT: [[[fn() -> bool; 10]; 10]; 10] = ten!(hundreds, 0);

/// Expected behaviour of a site: twice a number that grows with every change, plus 1 if it is on. While a
/// change is in progress, either behaviour is allowed.
static EXPECTED: [AtomicU32; SITES] = [const { AtomicU32::new(2) }; SITES];
const CHANGING: u32 = 1;

static STOP: AtomicBool = AtomicBool::new(false);
static EXECUTED: AtomicUsize = AtomicUsize::new(0);
static IN_HANDLERS: AtomicUsize = AtomicUsize::new(0);
/// The first site that misbehaved, and what was expected.
static WRONG: AtomicUsize = AtomicUsize::new(0);

/// Executes a site and checks what it did, unless it was being switched.
fn execute(site: usize) {
    let before = EXPECTED[site].load(Ordering::SeqCst);
    let is_on = HIT[site / 100][site / 10 % 10][site % 10]();
    let after = EXPECTED[site].load(Ordering::SeqCst);
    if before == after && before != CHANGING && is_on != (before & 1 != 0) {
        WRONG.store(site << 1 | usize::from(is_on) | 1 << 20, Ordering::SeqCst);
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % below
    }
}

extern "C" fn on_signal(_: c_int) {
    let number = IN_HANDLERS.fetch_add(1, Ordering::Relaxed);
    for site in 0..20 {
        execute((number * 37 + site * 13) % SITES);
    }
}

/// The hammer's sites, sorted by number.
fn records(all: &[&'static Record]) -> Vec<&'static Record> {
    let mut records: Vec<Option<&Record>> = vec![None; SITES];
    for record in all.iter().filter(|record| record.site().class.name == "hammer:site") {
        let place = &mut records[record.site().line as usize];
        assert!(place.replace(record).is_none(), "a site is there twice");
    }
    records.into_iter().map(|record| record.expect("a site is missing")).collect()
}

fn set(records: &[&'static Record], sites: &[usize], on: bool) {
    // The number grows only here: only one thread switches.
    let numbers: Vec<u32> =
        sites.iter().map(|&site| EXPECTED[site].swap(CHANGING, Ordering::SeqCst)).collect();
    let changes: Vec<_> = sites.iter().map(|&site| (records[site], on)).collect();
    let switched = switch(&changes).unwrap();
    assert_eq!(switched.obstructed, 0);
    assert!(switched.is_final);
    for (&site, number) in sites.iter().zip(numbers) {
        EXPECTED[site].store((number | 1) + 1 + u32::from(on), Ordering::SeqCst);
    }
}

fn switch_at_random(records: Vec<&'static Record>) -> usize {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut changes = 0;
    while !STOP.load(Ordering::Relaxed) {
        let count = 1 + random.next(64);
        let mut sites: Vec<usize> = (0..count).map(|_| random.next(SITES)).collect();
        sites.sort_unstable();
        sites.dedup();
        set(&records, &sites, random.next(2) == 0);
        changes += sites.len();
    }
    changes
}

/// In a child: switches all sites, whatever locks the parent's threads held.
fn in_child(records: &[&'static Record]) -> c_int {
    for on in [true, false] {
        let objects = objects();
        let changes: Vec<_> = records.iter().map(|&record| (record, on)).collect();
        if switch(&changes).is_err() || objects.iter().count() == 0 {
            return 2;
        }
        if (0..SITES).any(|site| HIT[site / 100][site / 10 % 10][site % 10]() != on) {
            return 3;
        }
    }
    0
}

fn fork_now(records: &[&'static Record]) {
    // SAFETY: the child allocates, which the C library allows after `fork`, and ends without destructors.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: kills a child that hangs; ends it.
        unsafe {
            libc::alarm(60);
            libc::_exit(in_child(records));
        }
    }
    let mut status = 0;
    // SAFETY: room for a status.
    while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
    assert_eq!(status, 0, "status of a child");
}

fn load_and_unload(kind: &str, path: &CStr) {
    // SAFETY: a string; the library's constructors are the crate's.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "cannot load {path:?}");
    // SAFETY: a handle that was just opened, and strings; the functions are of these types.
    let (hit, switch_own): (extern "C" fn() -> bool, extern "C" fn(bool) -> usize) = unsafe {
        (
            std::mem::transmute(libc::dlsym(library, c"hit".as_ptr())),
            std::mem::transmute(libc::dlsym(library, c"switch_own".as_ptr())),
        )
    };
    assert!(!hit());
    for on in [true, false] {
        if kind == "plugin" {
            // The other copy switches while this one does.
            assert!(switch_own(on) > 0);
        } else {
            let objects = objects();
            let own = objects.sites().filter(|record| record.site().class.name == "plugin");
            let _ = switch(&own.map(|record| (record, on)).collect::<Vec<_>>()).unwrap();
        }
        assert_eq!(hit(), on);
    }
    // SAFETY: nothing of the library is used any more.
    assert_eq!(unsafe { libc::dlclose(library) }, 0);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, seconds, kind, path] = &arguments[..] else { panic!("arguments: SECONDS KIND LIBRARY") };
    let end = Instant::now() + Duration::from_secs(seconds.parse().unwrap());
    let path = CString::new(path.as_str()).unwrap();
    // The program's own sites exist as long as it runs.
    let all: Vec<&'static Record> = {
        let objects = objects();
        // SAFETY: those of the program itself are never unloaded, and no library is loaded yet.
        objects.sites().map(|record| unsafe { &*std::ptr::from_ref(record) }).collect()
    };
    let records = records(&all);

    let handler: extern "C" fn(c_int) = on_signal;
    // SAFETY: a handler that may run anywhere.
    assert_ne!(unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) }, libc::SIG_ERR);
    let hammers: Vec<_> = (0..THREADS)
        .map(|number| {
            thread::spawn(move || {
                let mut random = Random(number as u64 + 1);
                while !STOP.load(Ordering::Relaxed) {
                    for _ in 0..1000 {
                        execute(random.next(SITES));
                    }
                    EXECUTED.fetch_add(1000, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let switcher = thread::spawn({
        let records = records.clone();
        move || switch_at_random(records)
    });

    let mut rounds = 0;
    while Instant::now() < end {
        for hammer in hammers.iter().cycle().take(10 * THREADS) {
            // SAFETY: the thread was not joined yet.
            unsafe { libc::pthread_kill(hammer.as_pthread_t(), libc::SIGUSR1) };
        }
        rounds += 1;
        if rounds % 50 == 0 {
            fork_now(&records);
        }
        if rounds % 20 == 0 {
            load_and_unload(kind, &path);
        }
        thread::sleep(Duration::from_micros(200));
    }
    STOP.store(true, Ordering::Relaxed);
    for hammer in hammers {
        hammer.join().unwrap();
    }
    let changes = switcher.join().unwrap();
    let wrong = WRONG.load(Ordering::SeqCst);
    assert_eq!(wrong, 0, "site {} was {}", (wrong & 0xfffff) >> 1, if wrong & 1 == 0 { "off" } else { "on" });
    println!(
        "executed {} changed {changes} handled {} forked {} loaded {}",
        EXECUTED.load(Ordering::Relaxed),
        IN_HANDLERS.load(Ordering::Relaxed),
        rounds / 50,
        rounds / 20
    );
}
