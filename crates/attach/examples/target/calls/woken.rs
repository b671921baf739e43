//! Calls that wait until a child ends the wait.

use super::*;

pub const ALL: &[Call] = &[
    ("pipe", || passed(pipe())),
    // SAFETY: numbers.
    ("eventfd", || passed([unsafe { libc::eventfd(0, 0) }; 2])),
    ("timerfd", timerfd),
    ("terminal_characters", || halves(terminal(8, 0), |own| read(own, 8))),
    ("recv_all", || halves(pair(), |own| receive(own, libc::MSG_WAITALL))),
    ("recvmsg_all", || halves(pair(), |own| receive_message(own, libc::MSG_WAITALL))),
    ("recv_low_water", recv_low_water),
    ("write", || sender(|to, _| write(to, 4096))),
    ("sendfile", || sender(sendfile)),
    ("splice", || sender(splice)),
    ("accept", accept),
    ("connect", connect),
    ("sigwaitinfo", sigwaitinfo),
    ("pause", pause),
    ("wait4", wait4),
    ("waitid", waitid),
    ("flock", || locked(flock)),
    ("setlkw", || locked(setlkw)),
    ("msgrcv", msgrcv),
];

/// Eight bytes that are written by one descriptor, and read by the other.
fn passed([from, to]: [i32; 2]) -> Wait {
    Box::new(move || meanwhile(|| assert_eq!(write(to, 8), 8), 8, || read(from, 8)))
}

fn timerfd() -> Wait {
    // SAFETY: numbers.
    let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) };
    Box::new(move || {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let times = libc::itimerspec { it_interval: none, it_value: SPEC };
        expect(8, || {
            // SAFETY: live times.
            unsafe { libc::timerfd_settime(timer, 0, &raw const times, null_mut()) };
            read(timer, 8)
        })
    })
}

/// Eight bytes, half of which have come before.
fn halves([own, other]: [i32; 2], receive: fn(i32) -> i64) -> Wait {
    Box::new(move || {
        write(other, 4);
        meanwhile(|| assert_eq!(write(other, 4), 4), 8, || receive(own))
    })
}

fn recv_low_water() -> Wait {
    let ends = pair();
    set(ends[0], libc::SO_RCVLOWAT, 8);
    halves(ends, |own| receive(own, 0))
}

/// Into a pipe that is full, from a file that has as much.
fn sender(send: fn(i32, i32) -> i64) -> Wait {
    // SAFETY: a name and a number.
    let file = unsafe {
        let file = libc::memfd_create(c"sent".as_ptr(), 0);
        libc::ftruncate(file, 4096);
        file
    };
    Box::new(move || {
        let [from, to] = pipe();
        fill(to);
        let drain = || (0..16).for_each(|_| assert_eq!(read(from, 4096), 4096));
        let waited = meanwhile(drain, 4096, || send(to, file));
        close(&[from, to]);
        waited
    })
}

fn sendfile(to: i32, file: i32) -> i64 {
    let mut at = 0_i64;
    // SAFETY: a live number.
    unsafe { libc::sendfile(to, file, &raw mut at, 4096) as i64 }
}

fn splice(to: i32, file: i32) -> i64 {
    let mut at = 0_i64;
    // SAFETY: a live number.
    unsafe { libc::splice(file, &raw mut at, to, null_mut(), 4096, 0) as i64 }
}

fn accept() -> Wait {
    // SAFETY: an address of this size.
    let (listener, address, size) = unsafe {
        let listener = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        libc::listen(listener, 1);
        let mut address: libc::sockaddr_in = zeroed();
        let mut size = size_of::<libc::sockaddr_in>() as u32;
        libc::getsockname(listener, (&raw mut address).cast(), &raw mut size);
        (listener, address, size)
    };
    Box::new(move || {
        // SAFETY: as above.
        let connect = || unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
            libc::connect(socket, (&raw const address).cast(), size);
        };
        let mut accepted = -1;
        let waited = meanwhile(connect, 1, || {
            // SAFETY: no address is asked for.
            accepted = unsafe { libc::accept(listener, null_mut(), null_mut()) };
            i64::from(accepted.signum())
        });
        close(&[accepted]);
        waited
    })
}

fn connect() -> Wait {
    Box::new(|| {
        let full = Full::new();
        // SAFETY: numbers.
        let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
        // SAFETY: no address is asked for.
        let accept = || assert!(unsafe { libc::accept(full.listener, null_mut(), null_mut()) } >= 0);
        let waited = meanwhile(accept, 0, || full.connect(socket));
        close(&[socket, full.listener]);
        waited
    })
}

fn sigwaitinfo() -> Wait {
    let mask = blocked();
    Box::new(move || {
        // SAFETY: numbers.
        let kill = || assert_eq!(unsafe { libc::kill(libc::getppid(), libc::SIGUSR2) }, 0);
        // SAFETY: a live set.
        meanwhile(kill, libc::SIGUSR2, || unsafe { libc::sigwaitinfo(&raw const mask, null_mut()).into() })
    })
}

fn pause() -> Wait {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: a handler of the right type.
    unsafe { libc::signal(libc::SIGALRM, nothing as *const () as libc::sighandler_t) };
    Box::new(|| {
        // A signal may come before the wait does; there will be another.
        let second = libc::timeval { tv_sec: 1, tv_usec: 0 };
        let timer = libc::itimerval { it_interval: second, it_value: limit() };
        // SAFETY: a live timer.
        let wait = || unsafe {
            libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut());
            libc::pause().into()
        };
        expect(-libc::EINTR, wait)
    })
}

fn wait4() -> Wait {
    // SAFETY: no status is asked for.
    Box::new(|| meanwhile(|| (), 1, || unsafe { libc::waitpid(-1, null_mut(), 0).signum().into() }))
}

fn waitid() -> Wait {
    Box::new(|| {
        meanwhile(
            || (),
            0,
            // SAFETY: room for the information.
            || unsafe {
                let mut information: libc::siginfo_t = zeroed();
                libc::waitid(libc::P_ALL, 0, &raw mut information, libc::WEXITED | libc::WNOWAIT).into()
            },
        )
    })
}

/// A lock of a file, which a child has. Only the child's time with it is known.
fn locked(lock: fn(i32, bool) -> i64) -> Wait {
    // SAFETY: a name and a number.
    let file = unsafe { libc::memfd_create(c"locked".as_ptr(), 0) };
    let path = std::ffi::CString::new(format!("/proc/self/fd/{file}")).unwrap();
    Box::new(move || {
        let [from, to] = pipe();
        // SAFETY: there are no other threads; the child makes system calls only, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: a live path.
            lock(unsafe { libc::open(path.as_ptr(), libc::O_RDWR) }, true);
            write(to, 1);
            sleep(TIME);
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        read(from, 1);
        let waited = expect(0, || lock(file, true));
        lock(file, false);
        // SAFETY: the child just made.
        unsafe { libc::waitpid(child, null_mut(), 0) };
        close(&[from, to]);
        Waited { time: waited.time.max(TIME), ..waited }
    })
}

fn flock(file: i32, is_taken: bool) -> i64 {
    // SAFETY: numbers.
    unsafe { libc::flock(file, if is_taken { libc::LOCK_EX } else { libc::LOCK_UN }).into() }
}

fn setlkw(file: i32, is_taken: bool) -> i64 {
    // SAFETY: all-zero is a lock of a whole file, of some kind.
    unsafe {
        let mut all: libc::flock = zeroed();
        all.l_type = if is_taken { libc::F_WRLCK } else { libc::F_UNLCK } as i16;
        libc::fcntl(file, libc::F_SETLKW, &raw const all).into()
    }
}

fn msgrcv() -> Wait {
    // SAFETY: numbers.
    let queue = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
    remove_at_end(move || {
        // SAFETY: numbers.
        unsafe { libc::msgctl(queue, libc::IPC_RMID, null_mut()) };
    });
    Box::new(move || {
        let (sent, mut got) = ([1_u64, 0], [0_u64; 2]);
        // SAFETY: a message of that size.
        let send = || assert_eq!(unsafe { libc::msgsnd(queue, sent.as_ptr().cast(), 8, 0) }, 0);
        // SAFETY: room for it.
        meanwhile(send, 8, || unsafe { libc::msgrcv(queue, got.as_mut_ptr().cast(), 8, 0, 0) as i64 })
    })
}
