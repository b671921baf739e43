//! The cost of recording tasks: polls in a loop, tasks that yield, and a binary tree of tasks that spawn and
//! join (the program Sumtime of the multi-level trace paper). Each runs plain, instrumented without a
//! recording, and recorded.
//!
//! Run it with `--release`; with `--cfg tokio_unstable`, tasks that only tokio's hooks report come last. All
//! variants of a line run in turn, so that a disturbance affects all of them; the result is the median of
//! many rounds.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use tokio::runtime::{Builder, Runtime};
use tracewing::Session;
use tracewing_tokio as traced;

const ROUNDS: usize = 41;
const POLLS: u32 = 20_000;
const HEIGHT: u32 = 12;

struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
    fn wake_by_ref(self: &Arc<Self>) {}
}

/// CPU time of this process, ns.
fn cpu_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for the answer; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Duration of a poll that does nothing, ns.
fn polls(instrumented: bool) -> f64 {
    fn time(mut future: Pin<&mut impl Future<Output = ()>>) -> f64 {
        let waker = Waker::from(Arc::new(Idle));
        let mut context = Context::from_waker(&waker);
        let begin = cpu_time();
        for _ in 0..POLLS {
            let _ = std::hint::black_box(future.as_mut().poll(&mut context));
        }
        (cpu_time() - begin) / f64::from(POLLS)
    }
    let future = poll_fn(|_| Poll::<()>::Pending);
    if instrumented { time(pin!(traced::instrument(future))) } else { time(pin!(future)) }
}

/// Time from one poll to the next of a task that yields, on a runtime of one thread, ns.
fn yields(runtime: &Runtime, instrumented: bool) -> f64 {
    async fn yields() {
        for _ in 0..POLLS {
            tokio::task::yield_now().await;
        }
    }
    let begin = cpu_time();
    runtime.block_on(async {
        if instrumented { traced::spawn(yields()) } else { tokio::spawn(yields()) }.await.unwrap()
    });
    (cpu_time() - begin) / f64::from(POLLS)
}

fn sum(height: u32, instrumented: bool) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    let spawn = move || match instrumented {
        true => traced::Builder::new().name("sum").spawn(sum(height - 1, instrumented)),
        false => tokio::spawn(sum(height - 1, instrumented)),
    };
    Box::pin(async move {
        if height == 0 {
            return 1;
        }
        let (left, right) = (spawn(), spawn());
        left.await.unwrap() + right.await.unwrap()
    })
}

/// Time per task of the tree, ns.
fn tree(runtime: &Runtime, instrumented: bool) -> f64 {
    let begin = cpu_time();
    assert_eq!(runtime.block_on(sum(HEIGHT, instrumented)), 1 << HEIGHT);
    (cpu_time() - begin) / f64::from((2 << HEIGHT) - 1)
}

fn record(folder: &std::path::Path) -> Session {
    let _ = std::fs::remove_dir_all(folder);
    Session::builder()
        .output(folder)
        .event("user_thread:*")
        .flight_recorder()
        .start()
        .expect("a folder to write to")
}

fn compare(name: &str, folder: &std::path::Path, measure: impl Fn(bool) -> f64) {
    let mut all: [Vec<f64>; 3] = Default::default();
    let mut lost = false;
    for _ in 0..ROUNDS {
        all[0].push(measure(false));
        all[1].push(measure(true));
        let session = record(folder);
        all[2].push(measure(true));
        lost |= session.stop().expect("a recording").lost > 0;
    }
    let [plain, instrumented, recorded] = all.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    });
    // A percentage of nothing does not exist.
    let more =
        |ns: f64| if plain < 1.0 { String::new() } else { format!("{:+.1} %", (ns / plain - 1.0) * 100.0) };
    let lost = if lost { "  (events were lost)" } else { "" };
    println!(
        "{name:24} {plain:8.1} {instrumented:8.1} {:>8} {recorded:8.1} {:>8}{lost}",
        more(instrumented),
        more(recorded)
    );
}

fn main() {
    let folder = std::env::temp_dir().join(format!("tracewing-cost-{}", std::process::id()));
    let one = Builder::new_current_thread().build().unwrap();
    let two = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    println!("ns of CPU time, {ROUNDS} rounds    plain  instrumented      recorded");
    compare("a poll", &folder, polls);
    compare("a yield, one thread", &folder, |instrumented| yields(&one, instrumented));
    compare("a task, one thread", &folder, |instrumented| tree(&one, instrumented));
    compare("a task, two workers", &folder, |instrumented| tree(&two, instrumented));
    if cfg!(tokio_unstable) {
        let hooked = traced::runtime(&mut Builder::new_current_thread(), "hooked").build().unwrap();
        let runtime = |instrumented| if instrumented { &hooked } else { &one };
        compare("a yield, hooks", &folder, |instrumented| yields(runtime(instrumented), false));
        compare("a task, hooks", &folder, |instrumented| tree(runtime(instrumented), false));
    }
    let _ = std::fs::remove_dir_all(folder);
}
