//! A poll allocates nothing, recorded or not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use tokio::runtime::{Builder, Runtime};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is the system's; a thread's counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of the calling thread in 100 polls that each clone and use the waker.
fn allocations(runtime: &Runtime, spawned: bool) -> u64 {
    let mut polls = 0;
    let mut first = 0;
    let future = tracewing_tokio::instrument(poll_fn(move |context| {
        context.waker().clone().wake_by_ref();
        polls += 1;
        match polls {
            // The first time, the runtime allocates space for the future's wakes.
            10 => first = ALLOCATIONS.get(),
            110 => return Poll::Ready(ALLOCATIONS.get() - first),
            _ => {}
        }
        Poll::Pending
    }));
    let nested = async {
        match spawned {
            true => tokio::spawn(future).await.unwrap(),
            false => future.await,
        }
    };
    runtime.block_on(nested)
}

/// Allocations in a task's first poll that keeps the waker, and afterwards.
fn allocations_of_a_task(runtime: &Runtime) -> u64 {
    let mut kept = None;
    let mut first = 0;
    let task = poll_fn(move |context| match kept.take() {
        None => {
            first = ALLOCATIONS.get();
            context.waker().wake_by_ref();
            kept = Some(context.waker().clone());
            Poll::Pending
        }
        Some(waker) => {
            assert!(waker.will_wake(context.waker()));
            Poll::Ready(ALLOCATIONS.get() - first)
        }
    });
    runtime.block_on(async { tracewing_tokio::spawn(task).await.unwrap() })
}

#[test]
fn polls_do_not_allocate() {
    let current_thread = Builder::new_current_thread().build().unwrap();
    let multi_thread = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let check = || {
        for runtime in [&current_thread, &multi_thread] {
            assert_eq!([true, false].map(|spawned| allocations(runtime, spawned)), [0, 0]);
            assert_eq!(allocations_of_a_task(runtime), 0);
        }
    };
    check();
    let folder = tempfile::tempdir().unwrap();
    let session = tracewing::Session::builder().output(folder.path().join("t")).start().unwrap();
    check();
    session.stop().unwrap();
}
