//! Spawns its first tasks under a filter that ends the process at each system call that the runtime does not
//! make by itself. Prints the number of tasks first.

use tokio::runtime::Builder;
use tracewing_tokio as traced;

/// The calls of a runtime, of memory for its tasks, and of the exits of the process and of the agent's
/// thread.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_futex,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_sched_yield,
    libc::SYS_rt_sigreturn,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// A task from each of four places in the source.
macro_rules! four {
    ($task:expr) => {
        [traced::spawn($task), traced::spawn($task), traced::spawn($task), traced::spawn($task)]
    };
}

async fn work(mutex: &'static traced::sync::Mutex<u64>) {
    for _ in 0..3 {
        tokio::task::yield_now().await;
        *mutex.lock().await += 1;
    }
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mutex: &traced::sync::Mutex<u64> = Box::leak(Box::new(traced::sync::Mutex::new(0)));
    // The runtime's threads have started.
    let ready =
        [(); 2].map(|()| runtime.spawn(async { std::thread::sleep(std::time::Duration::from_millis(20)) }));
    ready.into_iter().for_each(|ready| runtime.block_on(ready).unwrap());
    println!("tasks 40");
    tracewing_testing::allow_only(ALLOWED, true);
    runtime.block_on(async {
        for _ in 0..10 {
            for task in four!(work(mutex)) {
                task.await.unwrap();
            }
        }
        assert_eq!(*mutex.lock().await, 120);
    });
    // SAFETY: ends the process, by a call that is allowed.
    unsafe { libc::_exit(0) }
}
