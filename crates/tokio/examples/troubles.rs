//! Several faulty tasks and a sound one: `tracewing tasks` shows which is which.
//!
//!     tracewing record -o trace -- troubles; tracewing tasks trace

use rustix::time::{ClockId, clock_gettime};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::runtime::Builder;
use tracewing_tokio as traced;

/// How often each task repeats its fault.
const TIMES: usize = 40;

/// CPU time of this thread.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn main() {
    let mut builder = Builder::new_current_thread();
    let runtime = traced::runtime(&mut builder, "troubles").enable_all().build().expect("a runtime");
    let _within = runtime.enter();
    let name = |name| traced::Builder::new().name(name);
    runtime.block_on(name("main").instrument(async move {
        let blocks = name("blocks").spawn(async {
            for _ in 0..TIMES {
                std::thread::sleep(Duration::from_millis(2));
                traced::yield_now().await;
            }
        });
        let hogs = name("hogs").spawn(async {
            for _ in 0..TIMES {
                let until = computed() + Duration::from_millis(12);
                while computed() < until {}
                traced::yield_now().await;
            }
        });
        let (slot, is_over) = (Arc::new(Mutex::new(None::<Waker>)), Arc::new(AtomicBool::new(false)));
        let vain = {
            let (slot, is_over) = (slot.clone(), is_over.clone());
            name("vain").spawn(poll_fn(move |context| {
                *slot.lock().expect("no thread panics") = Some(context.waker().clone());
                // Acquire: sees everything that `wakes` did before it set `is_over`.
                if is_over.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
            }))
        };
        let wakes = name("wakes").spawn(async move {
            for turn in 0..=TIMES {
                tokio::time::sleep(Duration::from_millis(1)).await;
                // Release: partner of the load in `vain`.
                is_over.store(turn == TIMES, Ordering::Release);
                slot.lock().expect("no thread panics").take().into_iter().for_each(Waker::wake);
            }
        });
        for task in [blocks, hogs, vain, wakes] {
            task.await.expect("no task panics");
        }
    }));
}
