//! Calls that wait until their time-out.

use super::*;

pub const ALL: &[Call] = &[
    ("nanosleep", nanosleep),
    ("pselect", pselect),
    ("select_within", select),
    ("epoll_pwait", epoll_pwait),
    ("epoll_pwait2", epoll_pwait2),
    ("futex", || futex(libc::FUTEX_WAIT)),
    ("futex_bitset", || futex(libc::FUTEX_WAIT_BITSET)),
    ("read_time_out", || receiver(|socket| read(socket, 1))),
    ("recv_time_out", || receiver(|socket| receive(socket, 0))),
    ("recv_all_time_out", || receiver(|socket| receive(socket, libc::MSG_WAITALL))),
    ("recvmsg_time_out", || receiver(|socket| receive_message(socket, 0))),
    ("send_time_out", send),
    ("accept_time_out", accept),
    ("connect_time_out", connect),
    ("terminal_time_out", terminal_time_out),
    ("semtimedop", semtimedop),
    ("sigtimedwait", sigtimedwait),
    ("mq_timedreceive", mq_timedreceive),
    ("io_getevents", io_getevents),
];

fn nanosleep() -> Wait {
    // SAFETY: a live time.
    Box::new(|| expect(0, || unsafe { libc::nanosleep(&raw const SPEC, null_mut()).into() }))
}

fn pselect() -> Wait {
    let none = null_mut();
    // SAFETY: no sets, and a live time.
    let call =
        move || unsafe { libc::pselect(0, none, none, none, &raw const SPEC, std::ptr::null()).into() };
    Box::new(move || expect(0, call))
}

fn select() -> Wait {
    let none = null_mut();
    Box::new(move || {
        let mut time = limit();
        // SAFETY: no sets, and a live time.
        expect(0, || unsafe { libc::select(0, none, none, none, &raw mut time).into() })
    })
}

fn epoll_pwait() -> Wait {
    // SAFETY: a number.
    let epoll = unsafe { libc::epoll_create1(0) };
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for an event, and an empty set.
    Box::new(move || unsafe {
        let mask: libc::sigset_t = zeroed();
        expect(0, || libc::epoll_pwait(epoll, &raw mut event, 1, 20, &raw const mask).into())
    })
}

fn epoll_pwait2() -> Wait {
    // SAFETY: a number.
    let epoll = unsafe { libc::epoll_create1(0) };
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    Box::new(move || {
        let (event, time, mask) = (&raw mut event, &raw const SPEC, null_mut::<u64>());
        // SAFETY: room for an event, a live time, and no set.
        expect(0, || unsafe { libc::syscall(libc::SYS_epoll_pwait2, epoll, event, 1, time, mask, 0) })
    })
}

fn futex(operation: i32) -> Wait {
    Box::new(move || {
        let word = 0_u32;
        // One has the time at which it ends.
        let begin = Instant::now();
        let until = if operation == libc::FUTEX_WAIT { SPEC } else { super::until(libc::CLOCK_MONOTONIC) };
        let (word, until, other) = (&raw const word, &raw const until, null_mut::<u32>());
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        expect_since(begin, -libc::ETIMEDOUT, || {
            // SAFETY: a word and a time that are live.
            unsafe { libc::syscall(libc::SYS_futex, word, operation, 0, until, other, u32::MAX) }
        })
    })
}

/// The kernel counts a socket's time-out in ticks (`sock_set_timeout`, net/core/sock.c), of up to 10 ms. If the
/// last one before the call comes late, as on a busy virtual machine, the time-out ends so much earlier.
fn by_ticks(waited: Waited) -> Waited {
    Waited { time: waited.time + Duration::from_millis(10), ..waited }
}

/// From a socket that has a time-out.
fn receiver(receive: fn(i32) -> i64) -> Wait {
    let [own, _other] = pair();
    set(own, libc::SO_RCVTIMEO, limit());
    Box::new(move || by_ticks(expect(-libc::EAGAIN, || receive(own))))
}

fn send() -> Wait {
    let [own, _other] = pair();
    fill(own);
    set(own, libc::SO_SNDTIMEO, limit());
    Box::new(move || by_ticks(expect(-libc::EAGAIN, || write(own, 1))))
}

fn accept() -> Wait {
    // SAFETY: numbers.
    let listener = unsafe {
        let listener = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        libc::listen(listener, 1);
        listener
    };
    set(listener, libc::SO_RCVTIMEO, limit());
    // SAFETY: no address is asked for.
    let call = move || unsafe { libc::accept(listener, null_mut(), null_mut()).into() };
    Box::new(move || by_ticks(expect(-libc::EAGAIN, call)))
}

fn connect() -> Wait {
    let full = Full::new();
    Box::new(move || {
        // SAFETY: numbers.
        let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
        set(socket, libc::SO_SNDTIMEO, limit());
        let waited = expect(-libc::EAGAIN, || full.connect(socket));
        close(&[socket]);
        by_ticks(waited)
    })
}

fn terminal_time_out() -> Wait {
    let [own, _other] = terminal(0, 1);
    Box::new(move || expect(0, || read(own, 8)))
}

fn semtimedop() -> Wait {
    // SAFETY: numbers.
    let semaphore = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
    remove_at_end(move || {
        // SAFETY: numbers.
        unsafe { libc::semctl(semaphore, 0, libc::IPC_RMID) };
    });
    Box::new(move || {
        let mut take = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
        let (take, time) = (&raw mut take, &raw const SPEC);
        // SAFETY: an operation and a time that are live.
        expect(-libc::EAGAIN, || unsafe { libc::syscall(libc::SYS_semtimedop, semaphore, take, 1, time) })
    })
}

fn sigtimedwait() -> Wait {
    let mask = blocked();
    // SAFETY: a set and a time that are live.
    let call = move || unsafe { libc::sigtimedwait(&raw const mask, null_mut(), &raw const SPEC).into() };
    Box::new(move || expect(-libc::EAGAIN, call))
}

fn mq_timedreceive() -> Wait {
    // SAFETY: system calls with live values of the types that they take.
    let queue = unsafe {
        let mut attributes: libc::mq_attr = zeroed();
        (attributes.mq_maxmsg, attributes.mq_msgsize) = (1, 64);
        let name = std::ffi::CString::new(format!("/tracewing-{}", libc::getpid())).unwrap();
        let flags = libc::O_RDWR | libc::O_CREAT;
        let queue = libc::mq_open(name.as_ptr(), flags, 0o600, &raw mut attributes);
        libc::mq_unlink(name.as_ptr());
        queue
    };
    let mut message = [0_u8; 64];
    Box::new(move || {
        let begin = Instant::now();
        let until = super::until(libc::CLOCK_REALTIME);
        let (place, none) = (message.as_mut_ptr().cast(), null_mut());
        expect_since(begin, -libc::ETIMEDOUT, || {
            // SAFETY: room for a message, and a live time.
            unsafe { libc::mq_timedreceive(queue, place, 64, none, &raw const until) as i64 }
        })
    })
}

fn io_getevents() -> Wait {
    let mut context = 0_u64;
    // SAFETY: room for a number.
    unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) };
    let mut event = [0_u64; 4];
    Box::new(move || {
        let (event, time) = (event.as_mut_ptr(), &raw const SPEC);
        // SAFETY: room for an event, and a live time.
        expect(0, || unsafe { libc::syscall(libc::SYS_io_getevents, context, 1, 1, event, time) })
    })
}
