//! What the tests attach to, and, since each attempt may need a process of its own, what attaches.
//!
//! `target WAY [MILLISECONDS]` prints its process id and the address of its entry, waits in the way that is
//! asked for, and prints what the wait returned, for how many milliseconds it lasted, and how often the
//! entry's function was called. `target calls MILLISECONDS NAME` waits by a call, of which `target names`
//! prints the names. `target attach PID ENTRY [COUNT]` attaches.

mod calls;
mod signals;

use std::arch::asm;
use std::io::{Write, stdout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tracewing_abi::attach::Saved;
use tracewing_abi::ways::Way;
use tracewing_attach::{Place, SystemCall, Target};
use tracewing_units::Pid;

/// Whether the function starts no thread: one that is stopped would keep it waiting.
static IS_ALONE: AtomicBool = AtomicBool::new(false);
/// How often the function was called.
static CALLED: AtomicU32 = AtomicU32::new(0);

/// What programs do when they are attached to: memory, threads, arithmetic in all kinds of registers.
extern "C" fn function(_: *const Saved, _: i64) -> i64 {
    let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
    let sum: f64 = std::hint::black_box(&numbers).iter().map(|number| number.sqrt()).sum();
    // SAFETY: the registers are named as overwritten.
    unsafe { asm!("vpcmpeqd ymm0, ymm0, ymm0", "vmovdqa ymm15, ymm0", out("ymm0") _, out("ymm15") _) };
    CALLED.fetch_add(1, Relaxed);
    if IS_ALONE.load(Relaxed) {
        return 42;
    }
    let is_right = std::thread::spawn(move || sum > 21_000.0).join().is_ok_and(|right| right);
    if is_right { 42 } else { -1 }
}

tracewing_abi::attach_entry!(entry, function, now, no_ways);

/// A time of loading.
fn now() -> u64 {
    1
}

/// It is in no recording that another copy could join.
///
/// # Safety
/// None is needed: nothing is written.
unsafe extern "C" fn no_ways(_: *mut Way, _: usize) -> usize {
    0
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<i64>().ok()).unwrap_or(-1);
    if arguments[1] == "attach" {
        return attach(Pid(number(2) as i32), number(3) as u64, number(4).max(1));
    }
    if arguments[1] == "names" {
        return calls::names().for_each(|name| println!("{name}"));
    }
    println!("{} {}", std::process::id(), (entry as *const ()).addr());
    let begin = Instant::now();
    let result = wait(&arguments[1], number(2));
    let last = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let errno = if result < 0 { last } else { 0 };
    println!("{result} {errno} {} {}", begin.elapsed().as_millis(), CALLED.load(Relaxed));
    let _ = stdout().flush();
}

/// What [`function`] needs of a filter.
const CALLS: [SystemCall; 2] = [
    SystemCall { name: "mmap", number: libc::SYS_mmap, arguments: [0; 6], without: None },
    SystemCall { name: "clone3", number: libc::SYS_clone3, arguments: [0; 6], without: None },
];

fn attach(pid: Pid, entry: u64, count: i64) {
    for _ in 0..count {
        match Target::open(pid)
            .and_then(|target| target.call(Place { entry, word: None }, &CALLS, Duration::from_secs(1)))
        {
            Ok(called) => println!("{} {} {}", called.result, called.tid, called.stopped.as_nanos()),
            Err(refusal) => println!("{refusal}"),
        }
    }
}

fn wait(way: &str, milliseconds: i64) -> i64 {
    let time = libc::timespec { tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000 };
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
    // SAFETY: all-zero is an empty set.
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: system calls with live values of the types that they take.
    unsafe {
        match way {
            "poll" => libc::poll(null_mut(), 0, milliseconds as i32).into(),
            "ppoll" => {
                libc::sigaddset(&raw mut mask, libc::SIGUSR2);
                libc::ppoll(null_mut(), 0, &raw const time, &raw const mask).into()
            }
            "select" => {
                let mut time = libc::timeval { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 };
                libc::select(0, null_mut(), null_mut(), null_mut(), &raw mut time).into()
            }
            "nanosleep" => libc::nanosleep(&raw const time, null_mut()).into(),
            "epoll_wait" => {
                let epoll = libc::epoll_create1(0);
                libc::epoll_wait(epoll, &raw mut event, 1, milliseconds as i32).into()
            }
            "read" => libc::read(0, (&raw mut event).cast(), 1) as i64,
            "registers" => registers(milliseconds),
            "turns" => turns(milliseconds),
            "queued" => signals::queued(milliseconds),
            "users" => signals::users(milliseconds),
            "stopped" => {
                IS_ALONE.store(true, Relaxed);
                signals::stopped(milliseconds)
            }
            "calls" => calls::again(&std::env::args().nth(3).unwrap_or_default(), milliseconds),
            "lock" => lock(),
            "malloc" => malloc(milliseconds),
            "exit" => exit(milliseconds),
            "no_first_thread" => {
                std::thread::spawn(move || std::process::exit(i32::from(wait("poll", milliseconds) != 0)));
                libc::syscall(libc::SYS_exit, 0)
            }
            "busy" => loop {
                drop(std::hint::black_box(vec![0_u8; 64]));
            },
            "handler" => handler(milliseconds as i32, 0),
            "handler_aside" => handler(milliseconds as i32, libc::SA_ONSTACK),
            "interrupted" => interrupted(milliseconds),
            "awaited" => awaited(milliseconds),
            "threads" => threads(milliseconds),
            "join" => std::thread::spawn(move || wait("poll", milliseconds)).join().unwrap_or(-1),
            "undumpable" => {
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
                wait("poll", milliseconds)
            }
            "vfork" => vfork(milliseconds),
            "vfork_beside" => {
                std::thread::spawn(move || vfork(milliseconds));
                wait("poll", milliseconds)
            }
            "allow" => {
                filter(libc::SYS_sched_setattr);
                wait("poll", milliseconds)
            }
            "no_clone" => {
                filter(libc::SYS_clone3);
                wait("poll", milliseconds)
            }
            _ => -1,
        }
    }
}

/// Sleeps with known values in all registers, again and again, and counts those that differ afterwards.
fn registers(milliseconds: i64) -> i64 {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    let (expected, mut found) = ([0x5a_u8; 32], [0_u8; 32]);
    let begin = Instant::now();
    let mut wrong = 0;
    while begin.elapsed() < Duration::from_millis(milliseconds as u64) {
        let (r12, r13, r8, rdx): (u64, u64, u64, u64);
        // SAFETY: `nanosleep` with a live time; the stack is not used, other registers are named.
        unsafe {
            asm!(
                "vmovdqu ymm7, [{expected}]",
                "mov r12, 12", "mov r13, 13", "mov r8, 8", "mov rdx, 99",
                "mov eax, 35",
                "syscall",
                "vmovdqu [{found}], ymm7",
                expected = in(reg) expected.as_ptr(),
                found = in(reg) found.as_mut_ptr(),
                in("rdi") &raw const time,
                in("rsi") 0,
                out("rax") _, out("rcx") _, out("r11") _, out("ymm7") _,
                out("r12") r12, out("r13") r13, out("r8") r8, out("rdx") rdx,
            );
        }
        wrong += i64::from(found != expected || [r12, r13, r8, rdx] != [12, 13, 8, 99]);
        found = [0; 32];
    }
    wrong
}

/// Sleeps so often for a millisecond, with the number of turns that are left in a register; gives how many
/// more turns there were. Registers of an earlier turn would repeat some.
fn turns(count: i64) -> i64 {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    let mut counted = 0_i64;
    // SAFETY: `nanosleep` with a live time; the counter is live; other registers are named.
    unsafe {
        asm!(
            "2:",
            "inc qword ptr [r13]",
            "mov eax, 35",
            "syscall",
            "dec r12",
            "jnz 2b",
            inout("r12") count => _,
            in("r13") &raw mut counted,
            in("rdi") &raw const time,
            in("rsi") 0,
            out("rax") _, out("rcx") _, out("r11") _,
        );
    }
    counted - count
}

/// Waits for a lock that another thread holds, which is busy.
fn lock() -> i64 {
    static mut LOCK: libc::pthread_mutex_t = libc::PTHREAD_MUTEX_INITIALIZER;
    // SAFETY: a lock that is never destroyed.
    unsafe {
        libc::pthread_mutex_lock(&raw mut LOCK);
        std::thread::spawn(|| libc::pthread_mutex_lock(&raw mut LOCK));
    }
    wait("busy", 0)
}

/// Sleeps inside of a signal handler.
fn handler(milliseconds: i32, flags: libc::c_int) -> i64 {
    static TIME: AtomicI32 = AtomicI32::new(0);
    extern "C" fn on_signal(_: libc::c_int) {
        // SAFETY: a call with numbers.
        unsafe { libc::poll(null_mut(), 0, TIME.load(Relaxed)) };
    }
    TIME.store(milliseconds, Relaxed);
    // SAFETY: all-zero is a valid `sigaction`; a handler of the right type, and a signal to this thread, which
    // has an alternate stack of the standard library's.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGUSR1, &raw const action, null_mut());
        libc::raise(libc::SIGUSR1).into()
    }
}

/// Counts waits that end without a signal, under a timer that sends some.
fn interrupted(milliseconds: i64) -> i64 {
    static SIGNALS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn on_signal(_: libc::c_int) {
        SIGNALS.fetch_add(1, Relaxed);
    }
    let every = libc::timeval { tv_sec: 0, tv_usec: 3000 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    let begin = Instant::now();
    let mut difference = 0;
    // SAFETY: a handler of the right type; a timer that is live.
    unsafe {
        libc::signal(libc::SIGALRM, on_signal as *const () as libc::sighandler_t);
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut());
        while begin.elapsed() < Duration::from_millis(milliseconds as u64) {
            let before = SIGNALS.load(Relaxed);
            let result = libc::poll(null_mut(), 0, 10_000);
            // Without a signal it does not return.
            difference += i64::from(result == 0 || SIGNALS.load(Relaxed) == before);
        }
    }
    difference
}

/// Counts waits that did not end when their signal came.
fn awaited(milliseconds: i64) -> i64 {
    extern "C" fn on_signal(_: libc::c_int) {}
    let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer =
        libc::itimerval { it_interval: never, it_value: libc::timeval { tv_sec: 0, tv_usec: 15_000 } };
    let longest = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    let begin = Instant::now();
    let mut missed = 0;
    // SAFETY: a handler of the right type; a timer that is live.
    unsafe {
        libc::signal(libc::SIGALRM, on_signal as *const () as libc::sighandler_t);
        while begin.elapsed() < Duration::from_millis(milliseconds as u64) {
            libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut());
            // The kernel repeats it with `ERESTARTNOHAND`; others would know of the handler by themselves.
            missed += i64::from(libc::ppoll(null_mut(), 0, &raw const longest, null_mut()) == 0);
        }
    }
    missed
}

fn threads(milliseconds: i64) -> i64 {
    let threads: Vec<_> = (0..500).map(|_| std::thread::spawn(move || wait("poll", milliseconds))).collect();
    threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
}

/// Threads that have the C library's allocator to themselves in turn, and often wait for it, and one that
/// only sleeps now and then. Counts what they find changed in what they allocated.
fn malloc(milliseconds: i64) -> i64 {
    // SAFETY: a setting, made before there are other threads: all threads allocate from one heap.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    let until = Instant::now() + Duration::from_millis(milliseconds as u64);
    let allocate = move |pause: Duration| {
        let (mut kept, mut wrong): (Vec<Vec<u64>>, i64) = (Vec::new(), 0);
        for number in 0_u64.. {
            if Instant::now() >= until {
                break;
            }
            // Too large for what threads keep for themselves.
            let mut one = Vec::with_capacity(200 + number as usize % 61 * 10);
            one.extend([number, !number]);
            kept.push(one);
            if kept.len() > 40 {
                let old = kept.swap_remove(number as usize % kept.len());
                wrong += i64::from(old[0] != !old[1]);
            }
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
        wrong
    };
    let pauses = [0, 0, 1].map(Duration::from_millis);
    let threads = pauses.map(|pause| std::thread::spawn(move || allocate(pause)));
    let own = allocate(Duration::ZERO);
    own + threads.into_iter().map(|thread| thread.join().unwrap_or(-1)).sum::<i64>()
}

/// Returns while another thread waits, so that the process ends with it.
fn exit(microseconds: i64) -> i64 {
    std::thread::spawn(|| wait("poll", 60_000));
    std::thread::sleep(Duration::from_micros(microseconds as u64));
    0
}

/// A child in this process's memory, for which this thread waits as nothing can interrupt.
fn vfork(milliseconds: i64) -> i64 {
    let time = libc::timespec { tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000 };
    let child: i64;
    // SAFETY: the child sleeps and ends, by calls that are given numbers and a live time, and does not touch
    // the stack that it shares; the registers are named.
    unsafe {
        asm!(
            "mov eax, {vfork}", "syscall",
            "test eax, eax", "jnz 2f",
            "mov eax, {nanosleep}", "mov rdi, {time}", "xor esi, esi", "syscall",
            "mov eax, {exit}", "xor edi, edi", "syscall",
            "2:",
            vfork = const libc::SYS_vfork,
            nanosleep = const libc::SYS_nanosleep,
            exit = const libc::SYS_exit,
            time = in(reg) &raw const time,
            out("rax") child, out("rcx") _, out("r11") _, out("rdi") _, out("rsi") _,
        );
        libc::waitpid(child as i32, null_mut(), 0).into()
    }
}

/// Installs a filter under which this call is the process's end.
fn filter(number: i64) {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(0x20, 0, 0, 0),
        step(0x15, 0, 1, number as u32),
        step(0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: numbers, and a filter that is complete.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
    }
}
