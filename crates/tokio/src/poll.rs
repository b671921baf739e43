//! What is told around one poll of a task. None of it depends on the future's type: programs have it once.

use crate::here::HERE;
use crate::life::{Life, Run};
use crate::living::Living;
use crate::waker::{self, TaskWaker};
use std::task::Waker;
use tracewing::user_thread;

/// A poll of a task that goes on. If this is dropped instead of [ended](Self::end), the task panicked.
///
/// Its parts are written where they stay, one by one: processors wait where memory is read in larger pieces
/// than it was just written.
pub(crate) struct TaskPoll<'a> {
    life: &'a mut Life,
    run: Run,
    living: Living,
    /// Where the future lies.
    address: usize,
    waker: TaskWaker<'a>,
    is_over: bool,
}

impl<'a> TaskPoll<'a> {
    /// The task whose life this is runs from now on, with tokio's waker `behind`; its future lies at this
    /// address.
    #[inline(never)]
    pub fn begin(life: &'a mut Life, living: Living, behind: &'a Waker, address: usize) -> Self {
        HERE.with(|here| {
            let run = life.begin(here);
            let waker = match user_thread::wants_wake() {
                true => TaskWaker::lend(living, behind, address, here),
                false => TaskWaker::Untold(behind),
            };
            Self { life, run, living, address, waker, is_over: false }
        })
    }

    /// What to poll the future with.
    #[inline(always)]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// The poll is over, and with it the task, if that is `ready`.
    #[inline(never)]
    pub fn end(&mut self, ready: bool) {
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

    /// The task ends: its wakers tell nothing any more.
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
