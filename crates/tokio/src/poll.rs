//! The events around one poll of a task. Nothing here depends on the future's type, so programs contain it
//! once.

use crate::here::HERE;
use crate::life::{Life, Run};
use crate::living::Living;
use crate::waker::{self, TaskWaker};
use std::task::Waker;
use tracewing::user_thread;

/// A poll in progress. If this is dropped instead of [ended](Self::end), the task panicked.
///
/// Its fields are written in place, one by one: a CPU stalls when memory is read in larger pieces than it was
/// just written in.
pub(crate) struct TaskPoll<'a> {
    life: &'a mut Life,
    run: Run,
    living: Living,
    /// Address of the future.
    address: usize,
    waker: TaskWaker<'a>,
    is_over: bool,
}

impl<'a> TaskPoll<'a> {
    /// Begins a poll of the task with this life; tokio polls it with the waker `inner`, and its future is at
    /// this address.
    #[inline(never)]
    pub(crate) fn begin(life: &'a mut Life, living: Living, inner: &'a Waker, address: usize) -> Self {
        HERE.with(|here| {
            let run = life.begin(here);
            let waker = match user_thread::wants_wake() {
                true => TaskWaker::lend(living, inner, address, here),
                false => TaskWaker::Unrecorded(inner),
            };
            Self { life, run, living, address, waker, is_over: false }
        })
    }

    /// The waker to poll the future with.
    #[inline(always)]
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Ends the poll, and with it the task if that is `ready`.
    #[inline(never)]
    pub(crate) fn end(&mut self, ready: bool) {
        self.is_over = true;
        HERE.with(|here| {
            let living = self.waker.give_back(self.living, here);
            if ready {
                self.retire(living);
                self.life.complete(self.run, here);
            } else {
                if living != self.living {
                    self.life.keep();
                }
                self.life.stop(self.run, here);
            }
        });
    }

    #[cold]
    fn panic(&mut self) {
        HERE.with(|here| {
            let living = self.waker.give_back(self.living, here);
            self.life.panic(self.run, here); // before what it retires
            self.retire(living);
        });
    }

    /// Ends the task: its wakers record nothing any more.
    #[inline]
    fn retire(&self, living: Living) {
        if living.is_kept() {
            waker::retire_within(self.address, living.thread());
        }
    }
}

impl Drop for TaskPoll<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_over {
            self.panic();
        }
    }
}
