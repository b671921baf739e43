//! Emits events from the places where that is difficult, one of them per run, and prints how many from where.
//!
//! The first argument names the scene. It is played in a child, so that it may end as it likes; the process
//! itself emits nothing and prints the counts at the end.

mod counts;

use core::ffi::{c_int, c_void};
use std::ffi::CString;
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use counts::Counts;
use tracewing::{Event, emit};

#[derive(Event)]
#[event(provider = "tasks")]
struct Step {
    place: u32,
    sequence: u64,
}

#[derive(Event)]
#[event(provider = "tasks")]
struct Word<'a> {
    place: u32,
    sequence: u64,
    text: &'a str,
}

#[derive(Event)]
#[event(provider = "tasks")]
struct Big {
    place: u32,
    sequence: u64,
    bytes: [u8; 3000],
}

#[derive(Event)]
#[event(provider = "tasks")]
struct Slice<'a> {
    place: u32,
    sequence: u64,
    bytes: &'a [u8],
}

static COUNTS: OnceLock<Counts> = OnceLock::new();

fn counts() -> Counts {
    *COUNTS.get().expect("set when the program starts")
}

/// Emits an event of constant size, and every fourth time another that is gathered.
#[inline(never)]
fn step(place: u32) {
    counts().around(place, |sequence| {
        if sequence % 4 == 3 {
            emit!(Word { place, sequence, text: "gathered" });
        } else {
            emit!(Step { place, sequence });
        }
    });
}

fn steps(place: u32, count: u32) {
    (0..count).for_each(|_| step(place));
}

/// Scenes other than this one see nothing of what stands before `main` and after `exit`.
static AT_EXIT: AtomicBool = AtomicBool::new(false);

const SCENES: &[(&str, fn())] = &[
    ("vfork", vfork),
    ("clone", clone),
    ("spawn", spawn),
    ("forks", forks),
    ("fork_in_handler", fork_in_handler),
    ("exits", exits),
    ("signals", signals),
    ("small_stack", small_stack),
    ("exec", exec),
    ("large", large),
    ("kills", kills),
    ("endless", endless),
    ("late_threads", late_threads),
    ("with_plugin", with_plugin),
    ("leaf", || steps(1, 100)),
    ("sequences", sequences),
];

fn main() {
    COUNTS.get_or_init(Counts::get);
    let scene = std::env::args().nth(1).unwrap_or_default();
    let Some((_, play)) = SCENES.iter().find(|(name, _)| *name == scene) else {
        eprintln!("no scene {scene:?}");
        std::process::exit(2);
    };
    if matches!(scene.as_str(), "leaf" | "endless" | "sequences") {
        return play();
    }
    // SAFETY: no other thread is running.
    let child = unsafe { libc::fork() };
    if child == 0 {
        play();
        std::process::exit(0);
    }
    let status = wait(child);
    counts().print();
    assert_eq!(status, 0, "the scene ended badly");
}

fn wait(child: libc::pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: a child of this process, and a number to write to. Signals may interrupt the call.
    while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
    status
}

/// Threads that emit at place 10 and above until `body` is done, at least once each; less once they have
/// emitted much, since a busy machine takes long for `body`.
fn among_others(threads: u32, body: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for place in 10..10 + threads {
            let done = &done;
            scope.spawn(move || {
                steps(place, 20);
                while !done.load(Relaxed) {
                    let (pause, count) = if counts().emitted(place) < 10_000 { (100, 20) } else { (500, 1) };
                    thread::sleep(Duration::from_micros(pause));
                    steps(place, count);
                }
            });
        }
        body();
        done.store(true, Relaxed);
    });
}

/// Children that run on this thread's memory, stack and thread block.
fn vfork() {
    unsafe extern "C" {
        fn vfork() -> libc::pid_t;
    }
    #[inline(never)]
    fn child() -> ! {
        steps(2, 5);
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) }
    }
    among_others(3, || {
        for _ in 0..500 {
            steps(1, 5);
            // SAFETY: the child calls one function, which does not return.
            let pid = unsafe { vfork() };
            if pid == 0 {
                child();
            }
            steps(1, 5);
            wait(pid);
        }
    });
}

/// The same with a stack of their own.
fn clone() {
    extern "C" fn child(_: *mut c_void) -> c_int {
        steps(2, 5);
        0
    }
    let mut stack = vec![0_u128; 8192];
    let top = stack.as_mut_ptr_range().end;
    among_others(3, || {
        for _ in 0..500 {
            steps(1, 5);
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            // SAFETY: the parent is suspended until the child has ended, so that it has the memory for
            // itself.
            let pid = unsafe { libc::clone(child, top.cast(), flags, null_mut()) };
            assert!(pid > 0);
            steps(1, 5);
            wait(pid);
        }
    });
}

fn spawn() {
    among_others(3, || {
        for _ in 0..20 {
            steps(2, 5);
            let program = std::env::current_exe().unwrap();
            assert!(std::process::Command::new(program).arg("leaf").status().unwrap().success());
        }
    });
}

/// Children of a process whose other threads are emitting, and their children.
fn forks() {
    among_others(6, || {
        for _ in 0..40 {
            // SAFETY: the child does only what a signal handler may do.
            let child = unsafe { libc::fork() };
            if child == 0 {
                steps(1, 30);
                // SAFETY: as above.
                let grandchild = unsafe { libc::fork() };
                steps(2, 30);
                if grandchild != 0 {
                    wait(grandchild);
                }
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) };
            }
            steps(3, 30);
            wait(child);
        }
    });
}

/// Installs a handler; with `on_stack` it runs on the thread's alternate stack.
fn handle(signal: c_int, handler: extern "C" fn(c_int), on_stack: bool) {
    // SAFETY: zeroes are a valid `sigaction`; the handler emits and calls what handlers may.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART | if on_stack { libc::SA_ONSTACK } else { 0 };
        assert_eq!(libc::sigaction(signal, &action, null_mut()), 0);
    }
}

fn timer(microseconds: i64) {
    let time = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: a timer that sends SIGALRM, for which there is a handler.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, null_mut()) }, 0);
}

fn fork_in_handler() {
    static FORKS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_: c_int) {
        step(2);
        if FORKS.fetch_add(1, Relaxed) < 100 {
            // SAFETY: fork may be called by handlers (of programs without handlers registered by
            // `pthread_atfork`).
            let child = unsafe { libc::syscall(libc::SYS_fork) } as libc::pid_t;
            if child == 0 {
                steps(3, 10);
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) };
            }
            steps(2, 3);
            wait(child);
        }
    }
    handle(libc::SIGALRM, handler, false);
    timer(1000);
    while FORKS.load(Relaxed) < 100 {
        step(1);
        if counts().emitted(1) > 20_000 {
            thread::sleep(Duration::from_micros(100));
        }
    }
    timer(0);
}

/// A timer at 10 kHz whose handler emits, in the middle of other events.
fn signals() {
    extern "C" fn handler(_: c_int) {
        step(2);
    }
    handle(libc::SIGALRM, handler, false);
    timer(100);
    while counts().emitted(2) < 1500 {
        steps(1, 10);
        if counts().emitted(1) > 40_000 {
            thread::sleep(Duration::from_micros(50));
        }
    }
    timer(0);
}

/// What a handler needs of its stack, first event of the thread included.
fn small_stack() {
    extern "C" fn handler(_: c_int) {
        step(2);
    }
    const SIZE: usize = 64 << 10;
    const UNTOUCHED: u8 = 0xa5;
    thread::spawn(|| {
        let mut stack = vec![UNTOUCHED; SIZE];
        let alternate = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
        // SAFETY: memory of that size, in use until the thread ends.
        assert_eq!(unsafe { libc::sigaltstack(&alternate, null_mut()) }, 0);
        extern "C" fn nothing(_: c_int) {}
        let used = |handler| {
            handle(libc::SIGUSR1, handler, true);
            // SAFETY: a signal to this thread, for which there is a handler.
            unsafe { libc::raise(libc::SIGUSR1) };
            // SAFETY: the vector's memory, which the kernel and the handler have changed.
            let untouched =
                (0..SIZE).take_while(|at| unsafe { stack.as_ptr().add(*at).read_volatile() } == UNTOUCHED);
            SIZE - untouched.count()
        };
        let without = used(nothing);
        let with = used(handler);
        handle(libc::SIGUSR1, handler, true);
        for _ in 0..7 {
            // SAFETY: as above.
            unsafe { libc::raise(libc::SIGUSR1) };
        }
        eprintln!("stack {}", used(handler).max(with) - without);
        let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: SIZE };
        // SAFETY: the thread goes back to its own stack.
        unsafe { libc::sigaltstack(&none, null_mut()) };
    })
    .join()
    .unwrap();
}

extern "C" fn in_fini_array() {
    if AT_EXIT.load(Relaxed) {
        steps(7, 3);
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static FINI: extern "C" fn() = in_fini_array;

/// Code that runs while a thread or the process ends.
fn exits() {
    struct Droppable(u32);
    impl Drop for Droppable {
        fn drop(&mut self) {
            steps(self.0, 3);
        }
    }
    thread_local! {
        static LOCAL: Droppable = const { Droppable(3) };
    }
    // SAFETY: has no conditions of its own; the C library wants the type.
    unsafe extern "C" fn key_destructor(_: *mut c_void) {
        steps(4, 3);
    }
    extern "C" fn at_exit() {
        steps(5, 3);
    }
    let mut key = 0;
    // SAFETY: a key to write to and a function that ignores its argument.
    assert_eq!(unsafe { libc::pthread_key_create(&mut key, Some(key_destructor)) }, 0);
    for emits_first in [true, false] {
        thread::spawn(move || {
            // SAFETY: the key was made above.
            unsafe { libc::pthread_setspecific(key, (&raw const FINI).cast()) };
            LOCAL.with(|local| black_box(local.0));
            if emits_first {
                step(1);
            }
        })
        .join()
        .unwrap();
    }
    let ends: [fn() -> !; 3] = [
        || std::process::exit(0),
        // SAFETY: ends the process.
        || unsafe { libc::_exit(0) },
        || std::process::abort(),
    ];
    for end in ends {
        // SAFETY: the threads above have ended.
        let child = unsafe { libc::fork() };
        if child == 0 {
            AT_EXIT.store(true, Relaxed);
            // SAFETY: functions without arguments.
            unsafe { libc::atexit(at_exit) };
            step(2);
            end();
        }
        wait(child);
    }
}

fn exec() {
    for _ in 0..20 {
        // SAFETY: no other thread is running.
        let child = unsafe { libc::fork() };
        if child == 0 {
            steps(2, 10);
            let program =
                CString::new(std::env::current_exe().unwrap().into_os_string().into_encoded_bytes());
            let program = program.unwrap();
            let arguments = [program.as_ptr(), c"leaf".as_ptr(), core::ptr::null()];
            // SAFETY: NUL-terminated strings, and a null at the end.
            unsafe { libc::execv(program.as_ptr(), arguments.as_ptr()) };
            std::process::abort();
        }
        assert_eq!(wait(child), 0);
    }
}

/// Events larger than half a sub-buffer of 4 KiB, and than their length field can say.
fn large() {
    let bytes = vec![7; 70_000];
    for _ in 0..10 {
        step(1);
        counts().around(2, |sequence| emit!(Big { place: 2, sequence, bytes: [1; 3000] }));
        counts().around(3, |sequence| emit!(Slice { place: 3, sequence, bytes: &bytes[..3000] }));
        counts().around(4, |sequence| emit!(Slice { place: 4, sequence, bytes: &bytes }));
        counts().around(5, |sequence| emit!(Slice { place: 5, sequence, bytes: &bytes[..65_520] }));
        counts().around(6, |sequence| emit!(Slice { place: 6, sequence, bytes: &bytes[..1000] }));
    }
}

/// A plug-in, named by the second argument, that has its own copy of tracewing.
fn with_plugin() {
    let path = CString::new(std::env::args().nth(2).unwrap()).unwrap();
    // SAFETY: the library's initialisers are Rust's; the functions are declared so there.
    let emit = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null(), "cannot load {path:?}");
        let begin = libc::dlsym(handle, c"plugin_begin".as_ptr());
        core::mem::transmute::<*mut c_void, extern "C" fn()>(begin)();
        let emit = libc::dlsym(handle, c"plugin_emit".as_ptr());
        core::mem::transmute::<*mut c_void, extern "C" fn(u32, u32)>(emit)
    };
    thread::scope(|scope| {
        for place in 1..4 {
            scope.spawn(move || {
                for _ in 0..50 {
                    steps(place, 7);
                    emit(place + 20, 7);
                }
            });
        }
    });
}

/// Children that are killed while they emit.
fn kills() {
    for round in 0..200_u64 {
        // SAFETY: no other thread is running.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                steps(2, 50);
                thread::sleep(Duration::from_micros(20));
            }
        }
        step(1);
        thread::sleep(Duration::from_micros(round * 7919 % 2000));
        // SAFETY: a child of ours that was not waited for.
        unsafe { libc::kill(child, libc::SIGKILL) };
        wait(child);
    }
}

/// Emits until the file that the second argument names is there, then prints the counts, and whether its
/// events are on.
fn endless() {
    let stop = std::env::args().nth(2).unwrap();
    steps(1, 100);
    println!("ready");
    while !std::path::Path::new(&stop).exists() {
        steps(1, 10);
        thread::sleep(Duration::from_micros(500));
    }
    steps(1, 2000); // more than small buffers hold
    println!("on {}", u32::from(Step::class().is_on()));
    counts().print();
}

/// Threads that start and end on the same stacks.
fn late_threads() {
    for _ in 0..100 {
        let threads: Vec<_> = (1..5).map(|place| thread::spawn(move || steps(place, 7))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Prints the restartable sequences of the program, as file offsets and lengths, and emits events of one
/// constant size until standard input ends.
fn sequences() {
    #[repr(C)]
    struct Sequence {
        version: u32,
        flags: u32,
        start: u64,
        length: u64,
        abort: u64,
    }
    unsafe extern "C" {
        #[link_name = "__start___rseq_cs"]
        static START: [u8; 0];
        #[link_name = "__stop___rseq_cs"]
        static STOP: [u8; 0];
    }
    let count = (&raw const STOP as usize - &raw const START as usize) / size_of::<Sequence>();
    // SAFETY: the linker's symbols around the section in which these are.
    let sequences = unsafe { core::slice::from_raw_parts((&raw const START).cast::<Sequence>(), count) };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    for sequence in sequences {
        let offset = maps.lines().find_map(|line| {
            let mut parts = line.split_ascii_whitespace();
            let (begin, end) = parts.next()?.split_once('-')?;
            let offset = number(parts.nth(1)?);
            let inside = (number(begin)..number(end)).contains(&sequence.start);
            inside.then(|| sequence.start - number(begin) + offset)
        });
        println!("sequence {:x} {:x}", offset.unwrap(), sequence.length);
    }
    println!("ready");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for place in 1..4 {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    for _ in 0..10 {
                        counts().around(place, |sequence| emit!(Step { place, sequence }));
                    }
                    thread::sleep(Duration::from_micros(200));
                }
            });
        }
        let _ = std::io::stdin().lines().count();
        done.store(true, Relaxed);
    });
    counts().print();
}
