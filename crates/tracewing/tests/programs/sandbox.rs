//! Emits under filters for system calls that end the process for any but a few: `sandbox SCENE`. Says before
//! the filter comes how many events it will emit.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::*};

use tracewing::{Event, emit, event, span, user_thread};

#[derive(Event)]
#[event(provider = "sandbox")]
struct Step {
    number: u32,
}

#[derive(Event)]
#[event(provider = "sandbox", ordered)]
struct Ordered {
    number: u32,
}

#[derive(Event)]
#[event(provider = "sandbox")]
struct Text<'a> {
    text: &'a str,
}

/// What every filter here allows: no more than what the mode without filters does, and waiting for threads.
const STRICT: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_futex,
];
/// What making threads takes besides.
const THREADS: &[i64] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_rt_sigprocmask,
];

/// What `fork` takes, and waiting for the child.
const FORKS: &[i64] =
    &[libc::SYS_clone, libc::SYS_set_robust_list, libc::SYS_rt_sigprocmask, libc::SYS_wait4];

/// From now on every other system call ends the process: of all threads, or of the calling one.
fn sandbox(allowed: &[i64], all_threads: bool) {
    let flags = if all_threads { libc::SECCOMP_FILTER_FLAG_TSYNC } else { 0 };
    filter(allowed, libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS, flags);
}

/// Installs a filter: what it says of these system calls, and of all others.
fn filter(listed: &[i64], of_listed: u32, of_others: u32, flags: libc::c_ulong) {
    let mut program = tracewing_testing::filter(listed, of_listed, of_others);
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: numbers, and a filter that is complete.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::c_ulong::from(libc::SECCOMP_SET_MODE_FILTER);
        let installed = match IS_RAW.load(Relaxed) {
            true => seccomp(set, flags, &raw const filter),
            false => libc::syscall(libc::SYS_seccomp, set, flags, &raw const filter),
        };
        assert_eq!(installed, 0);
    }
}

/// Whether filters are installed without the C library.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// # Safety
/// A filter that is complete.
unsafe fn seccomp(operation: libc::c_ulong, flags: libc::c_ulong, filter: *const libc::sock_fprog) -> i64 {
    let result;
    // SAFETY: the caller's; the kernel preserves all other registers.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_seccomp => result,
            in("rdi") operation, in("rsi") flags, in("rdx") filter,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

fn leave() -> ! {
    // SAFETY: ends the process, by a call that is allowed.
    unsafe { libc::_exit(0) }
}

fn steps(count: u32) {
    (0..count).for_each(|number| emit!(Step { number }));
}

/// One thread, from its first event on, through many sub-buffers.
fn first() {
    println!("events {}", 20_000);
    sandbox(STRICT, true);
    steps(20_000);
    leave();
}

/// Children, each of which emits under a filter of its only thread.
fn children() {
    println!("events 210");
    std::io::Write::flush(&mut std::io::stdout()).unwrap();
    // What `_Fork` makes of a thread is known by the id that the thread had.
    steps(10);
    for make in [libc::fork, plain_fork] {
        forked(make, || {
            sandbox(STRICT, false);
            steps(100);
        });
    }
}

/// Children of a program that is filtered already: nothing is allowed but what `fork` takes.
fn zygote() {
    println!("events 210");
    std::io::Write::flush(&mut std::io::stdout()).unwrap();
    steps(10);
    sandbox(&[STRICT, FORKS].concat(), true);
    (0..2).for_each(|_| forked(libc::fork, || steps(100)));
    leave();
}

/// Children whose filter comes at once, for all threads: also for one that is making the child a member of
/// the recording.
fn at_once() {
    println!("events 2000");
    std::io::Write::flush(&mut std::io::stdout()).unwrap();
    for _ in 0..200 {
        forked(libc::fork, || {
            sandbox(STRICT, true);
            steps(10);
        });
    }
}

unsafe extern "C" {
    #[link_name = "_Fork"]
    fn plain_fork() -> libc::pid_t;
}

/// Runs `body` in a child, and waits for its end.
fn forked(make: unsafe extern "C" fn() -> libc::pid_t, body: impl FnOnce()) {
    // SAFETY: the child emits and ends.
    let child = unsafe { make() };
    if child == 0 {
        body();
        leave();
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

/// Every kind of event.
fn kinds() {
    println!("events {}", 4 * 100 + 2 * 100 + 5 * 50 + 1);
    let location = Location::caller();
    let mutex = tracewing::sync::Mutex::new(0);
    sandbox(STRICT, true);
    for number in 0..100 {
        emit!(Ordered { number });
        emit!(Text { text: "some text" });
        event!("sandbox:ad_hoc", number);
        steps(1);
        let _span = span!("sandbox:span", number);
    }
    for _ in 0..50 {
        let thread = user_thread::create("one", "sandbox", location);
        user_thread::switch(Some(thread), user_thread::Cause::None);
        user_thread::wake(thread);
        user_thread::switch(None, user_thread::Cause::Blocked);
        user_thread::exit(thread, user_thread::Outcome::Cancelled);
    }
    *mutex.lock().unwrap() += 1;
    leave();
}

static FILTERED: AtomicBool = AtomicBool::new(false);

extern "C" fn emit_when_filtered(_: *mut c_void) -> *mut c_void {
    while !FILTERED.load(Acquire) {
        core::hint::spin_loop();
    }
    steps(100);
    null_mut()
}

fn thread() -> libc::pthread_t {
    let mut thread = 0;
    // SAFETY: a function of the right type.
    let result =
        unsafe { libc::pthread_create(&mut thread, core::ptr::null(), emit_when_filtered, null_mut()) };
    assert_eq!(result, 0);
    thread
}

fn join(thread: libc::pthread_t) {
    // SAFETY: a thread of this process that is joined only here.
    assert_eq!(unsafe { libc::pthread_join(thread, null_mut()) }, 0);
}

/// A thread that is older than the filter.
fn older() {
    println!("events 100");
    let thread = thread();
    sandbox(&[STRICT, THREADS].concat(), true);
    FILTERED.store(true, Release);
    join(thread);
    leave();
}

/// A thread that is younger.
fn younger() {
    println!("events 200");
    sandbox(&[STRICT, THREADS].concat(), true);
    FILTERED.store(true, Release);
    join(thread());
    steps(100);
    leave();
}

/// A program that outlives its recording: until it can read a line.
fn outlives() {
    println!("events 100");
    sandbox(STRICT, true);
    steps(100);
    let line = b"ready\n";
    let mut buffer = [0u8; 16];
    // SAFETY: buffers of those sizes.
    unsafe {
        libc::write(2, line.as_ptr().cast(), line.len());
        libc::read(0, buffer.as_mut_ptr().cast(), buffer.len());
    }
    steps(100);
    leave();
}

/// The same with a filter of which the agent does not know.
fn outlives_unseen() {
    IS_RAW.store(true, Relaxed);
    outlives();
}

/// The mode that knows no filters, and no clock.
fn strict() {
    println!("events {}", 10 + 10 + 1 + 2 + 2);
    steps(10);
    tracewing::before_sandbox();
    // SAFETY: numbers.
    unsafe { assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, 1, 0, 0, 0), 0) };
    steps(10);
    emit!(Text { text: "lost" });
    drop(span!("sandbox:span"));
    user_thread::create("one", "sandbox", Location::caller());
    // The mode allows no more than this one thread's end.
    // SAFETY: ends the thread.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// A program whose recorder, its parent, is stopped: first events of children and threads. What waited would
/// be ended.
fn stopped() {
    // SAFETY: a number.
    unsafe { libc::alarm(120) };
    unsafe extern "C" fn raw_fork() -> libc::pid_t {
        // SAFETY: a child like `fork`'s.
        unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
    }
    FILTERED.store(true, Release);
    steps(10);
    // SAFETY: numbers.
    let recorder = unsafe { libc::getppid() };
    // SAFETY: numbers.
    assert_eq!(unsafe { libc::kill(recorder, libc::SIGSTOP) }, 0);
    let emits = || steps(10);
    forked(libc::fork, emits);
    forked(libc::fork, emits);
    forked(plain_fork, emits);
    forked(raw_fork, emits);
    join(thread());
    assert!(std::process::Command::new("true").status().unwrap().success());
    println!("events {}", 10 + 4 * 10 + 100);
    // SAFETY: numbers.
    unsafe { libc::kill(recorder, libc::SIGCONT) };
}

/// A filter of this thread alone. Emits when standard input ends.
fn one() {
    sandbox(STRICT, false);
    let line = b"ready\n";
    // SAFETY: a buffer of that size.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    let mut byte = 0_u8;
    // SAFETY: a buffer of that size.
    while unsafe { libc::read(0, (&raw mut byte).cast(), 1) } > 0 {}
    steps(10);
    leave();
}

/// Executes the rest of the command line under a filter as containers have: a few calls are refused.
fn wrap() {
    let refused = [libc::SYS_ptrace, libc::SYS_bpf, libc::SYS_mount, libc::SYS_reboot, libc::SYS_kexec_load];
    // SAFETY: numbers.
    unsafe { assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0) };
    filter(&refused, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, libc::SECCOMP_RET_ALLOW, 0);
    execute_rest();
}

/// The same under one that allows everything.
fn wrap_allowing() {
    filter(&[], libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ALLOW, 0);
    execute_rest();
}

fn execute_rest() -> ! {
    let command: Vec<_> = std::env::args_os().skip(2).collect();
    let error =
        std::os::unix::process::CommandExt::exec(std::process::Command::new(&command[0]).args(&command[1..]));
    panic!("{error}");
}

/// The same under one that ends the program for all calls but those that it makes where it is not recorded
/// (of which `getpid` is tracewing's), and those that its dynamic linker makes.
fn wrap_killing() {
    #[rustfmt::skip]
    const ALLOWED: &[i64] = &[
        libc::SYS_execve, libc::SYS_openat, libc::SYS_close, libc::SYS_newfstatat, libc::SYS_pread64, libc::SYS_access, libc::SYS_brk,
        libc::SYS_arch_prctl, libc::SYS_set_tid_address, libc::SYS_prlimit64, libc::SYS_getrandom, libc::SYS_rt_sigaction,
        libc::SYS_sigaltstack, libc::SYS_sched_getaffinity, libc::SYS_gettid, libc::SYS_poll, libc::SYS_clock_nanosleep,
        libc::SYS_getpid,
    ];
    // SAFETY: numbers.
    unsafe { assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0) };
    let allowed = [STRICT, THREADS, ALLOWED].concat();
    filter(&allowed, libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS, 0);
    execute_rest();
}

/// Emits, and lives for a while, and until its input ends.
fn lives() {
    steps(100);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    // SAFETY: a byte to write to.
    while unsafe { libc::read(0, [0_u8].as_mut_ptr().cast(), 1) } > 0 {}
    steps(100);
    println!("events 200");
}

/// A thread that names itself, and ends at once.
fn short() {
    println!("events 10");
    let body = || {
        // SAFETY: a string.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"by prctl".as_ptr()) };
        steps(10);
    };
    std::thread::spawn(body).join().unwrap();
}

/// A thread that names itself as the agent does not see, and lives until a line can be read.
fn named() {
    println!("events 10");
    let body = || {
        std::fs::write("/proc/thread-self/comm", "by a file").unwrap();
        steps(10);
        let _ = std::io::stdin().read_line(&mut String::new());
    };
    std::thread::spawn(body).join().unwrap();
}

const SCENES: &[(&str, fn())] = &[
    ("named", named),
    ("short", short),
    ("zygote", zygote),
    ("at_once", at_once),
    ("one", one),
    ("wrap", wrap),
    ("wrap_allowing", wrap_allowing),
    ("wrap_killing", wrap_killing),
    ("lives", lives),
    ("stopped", stopped),
    ("first", first),
    ("children", children),
    ("kinds", kinds),
    ("older", older),
    ("younger", younger),
    ("outlives", outlives),
    ("outlives_unseen", outlives_unseen),
    ("strict", strict),
];

fn main() {
    let scene = std::env::args().nth(1).unwrap_or_default();
    match SCENES.iter().find(|(name, _)| *name == scene) {
        Some((_, play)) => play(),
        None => panic!("no scene {scene:?}"),
    }
}
