//! The sequences as ordinary code on the region's words, step by step as `steps` lists them.
//!
//! What the kernel does for restartable sequences is a [`Processor`]: it remembers which task's sequence is
//! in progress, and forgets it when another task's sequence begins there, when the task migrates, or at a
//! `membarrier`. At every step a [`Task`] checks whether its sequence is still the remembered one, as the
//! kernel checks when it resumes a thread, and starts again if not. A step is atomic with respect to tasks on
//! the same processor; the reader, elsewhere, sees its stores one by one.
//!
//! The model checker runs this code against the reader that ships (`tests/loom`), and a test compares its
//! stores with those of the instructions (`tests/ring/stepping.rs`). The orderings are the ones that the
//! protocol needs; x86-64 gives stronger ones.

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, header_word};
use tracewing_abi::region::SubBufferHeader;
use tracewing_units::{Cpu, Tid};

use super::open::{Request, plan};
use super::steps::{event_steps, open_steps};
use super::{Opened, Outcome};
use crate::clock::now;
use crate::sync::AtomicU64;
use crate::sync::Mutex;
use crate::sync::Ordering::*;
use crate::{Attachment, Buffer, EnableWord, Region};

/// Aborts in a row after which a task gives up: fewer than the instructions tolerate, so that the checker
/// ends.
const ATTEMPTS: u32 = 3;

/// A processor, as seen by restartable sequences.
#[derive(Debug)]
pub struct Processor {
    /// The task whose sequence is in progress; 0 for none.
    running: Mutex<u64>,
}

impl Default for Processor {
    fn default() -> Self {
        Self { running: Mutex::new(0) }
    }
}

impl Processor {
    /// The effect of an interrupt that leads to a preemption, a signal or a `membarrier`: a sequence in
    /// progress starts again.
    pub fn interrupt(&self) {
        *self.running.lock().unwrap() = 0;
    }
}

/// What happens to a task before a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing; the task continues.
    Continue,
    /// It moves to the processor with this number.
    Migrate(usize),
    /// The task is killed before the step.
    Die,
}

/// A thread that writes.
pub struct Task<'a> {
    /// All processors; the region has a buffer for each.
    pub processors: &'a [Processor],
    /// Index of the processor that the task runs on.
    pub on: usize,
    /// The attachment of the task's process.
    pub attachment: &'a Attachment,
    /// The key that the task has entered under.
    pub key: u64,
    /// Thread id, not 0.
    pub tid: Tid,
    /// The word of the class, if the model checks it.
    pub enabled: Option<&'a EnableWord>,
    /// Called before every step.
    pub fate: &'a dyn Fn() -> Fate,
}

/// How a step ends.
enum Flow<T> {
    Next,
    Leave(T),
    Restart,
    Dead,
}

/// Steps as values of the type named `Step` at the place of use.
macro_rules! list {
    ($($step:ident)+) => { [$(Step::$step),+] };
}

impl Task<'_> {
    /// Runs a sequence: `None` if the task was killed in it.
    fn run<S: Copy, T>(
        &mut self,
        steps: &[S],
        gave_up: T,
        mut act: impl FnMut(&Self, S) -> Flow<T>,
    ) -> Option<Option<T>> {
        for _ in 0..ATTEMPTS {
            *self.processors[self.on].running.lock().unwrap() = self.tid.0 as u64;
            let mut steps = steps.iter();
            let flow = loop {
                let Some(step) = steps.next() else { break Flow::Next };
                match (self.fate)() {
                    Fate::Continue => {}
                    Fate::Migrate(to) => {
                        self.on = to;
                        break Flow::Restart;
                    }
                    Fate::Die => return None,
                }
                let running = self.processors[self.on].running.lock().unwrap();
                if *running != self.tid.0 as u64 {
                    break Flow::Restart;
                }
                match act(self, *step) {
                    Flow::Next => {}
                    other => break other,
                }
            };
            match flow {
                Flow::Next => return Some(None),
                Flow::Leave(outcome) => return Some(Some(outcome)),
                Flow::Restart => {}
                Flow::Dead => return None,
            }
        }
        Some(Some(gave_up))
    }
}

/// What the event's steps keep in registers.
#[derive(Default)]
struct Registers {
    buffer: Option<Buffer>,
    head: u64,
    stamp: u64,
    physical: usize,
    at: usize,
    new_head: u64,
}

/// The steps of `gather` (and, compact, of `fixed`). `None` if the task was killed.
pub fn event(
    task: &mut Task<'_>,
    region: &Region,
    id: u16,
    payload: &[u8],
    is_extended: bool,
) -> Option<Outcome> {
    #[derive(Clone, Copy)]
    enum Step {
        Key,
        Enabled,
        Buffer,
        Head,
        Clock,
        Room,
        Place,
        Age,
        Header,
        Thread,
        Payload,
        Advance,
        Armed,
        Commit,
    }
    let header = if is_extended { EXTENDED_HEADER } else { HEADER };
    let length = header + CONTEXT + payload.len();
    let geometry = region.geometry();
    let mut r = Registers::default();
    let mut last_cpu = 0;
    let steps = event_steps!(list);
    let ended = task.run(&steps, Outcome::Interrupted, |task, step| {
        let buffer = r.buffer.as_ref();
        match (step, buffer) {
            (Step::Key, _) => {
                if task.attachment.key() != task.key {
                    return Flow::Leave(Outcome::Detached);
                }
            }
            (Step::Enabled, _) => {
                if task.enabled.is_some_and(|enabled| enabled.id() != id) {
                    return Flow::Leave(Outcome::Disabled);
                }
            }
            (Step::Buffer, _) => {
                last_cpu = task.on;
                r.buffer = Some(region.buffer(task.on));
            }
            (_, None) => return Flow::Dead,
            (Step::Head, Some(buffer)) => r.head = buffer.control().head.load(Relaxed),
            (Step::Clock, _) => r.stamp = now(region.clock()),
            (Step::Room, _) => {
                if geometry.at(r.head) == 0 || geometry.at(r.head) + length >= geometry.sub_buffer_bytes() {
                    return Flow::Leave(Outcome::Full { cpu: Cpu::at(task.on), head: r.head });
                }
            }
            (Step::Place, _) => (r.physical, r.at) = (geometry.physical(r.head), geometry.at(r.head)),
            (Step::Age, Some(buffer)) => {
                let begin = buffer.header(r.physical).begin.load(Relaxed);
                if is_extended {
                    r.stamp = r.stamp.max(begin);
                } else if r.stamp.wrapping_sub(begin) >> 32 != 0 {
                    return Flow::Leave(Outcome::Extend);
                }
            }
            (Step::Header, Some(buffer)) => {
                let id_or_mark = if is_extended { EXTENDED_ID } else { id };
                buffer.store(
                    r.physical,
                    r.at,
                    &header_word(r.stamp, id_or_mark, length as u16).to_le_bytes(),
                );
                if is_extended {
                    buffer.store(r.physical, r.at + HEADER, &r.stamp.to_le_bytes());
                    buffer.store(r.physical, r.at + HEADER + 8, &id.to_le_bytes());
                }
            }
            (Step::Thread, Some(buffer)) => {
                buffer.store(r.physical, r.at + header, &task.tid.0.to_le_bytes())
            }
            (Step::Payload, Some(buffer)) => buffer.store(r.physical, r.at + header + CONTEXT, payload),
            (Step::Advance, _) => r.new_head = r.head + length as u64,
            (Step::Armed, _) => {}
            // Release, with the reader's load of `head`: the event is complete.
            (Step::Commit, Some(buffer)) => buffer.control().head.store(r.new_head, Release),
        }
        Flow::Next
    })?;
    Some(ended.unwrap_or(Outcome::Written))
}

/// The steps of opening a sub-buffer, after the claim, which is shipped code. `None` if the task was killed.
pub fn open(task: &mut Task<'_>, region: &Region, cpu: Cpu, head: u64) -> Option<Opened> {
    #[derive(Clone, Copy)]
    enum Step {
        Key,
        SameCpu,
        SameHead,
        Clock,
        Close,
        Open,
        Armed,
        Commit,
    }
    let buffer = region.buffer(cpu.index());
    let request = match plan(&buffer, cpu, head) {
        Ok(request) => request,
        Err(opened) => return Some(opened),
    };
    let (position, old, new) = parts(&request);
    let mut stamp = 0;
    let steps = open_steps!(list);
    let ended = task.run(&steps, Opened::Interrupted, |task, step| {
        match step {
            Step::Key if task.attachment.key() != task.key => return Flow::Leave(Opened::Retry),
            Step::SameCpu if task.on as u64 != request.cpu => return Flow::Leave(Opened::Retry),
            Step::SameHead if position.load(Relaxed) != request.head => return Flow::Leave(Opened::Retry),
            Step::Key | Step::SameCpu | Step::SameHead | Step::Armed => {}
            Step::Clock => stamp = now(region.clock()),
            Step::Close => {
                stamp = stamp.max(old.begin.load(Relaxed));
                old.end.store(stamp, Relaxed);
                old.used.store(request.used, Relaxed);
            }
            Step::Open => {
                let words = [&new.begin, &new.sequence, &new.lost, &new.before];
                let values = [stamp, request.sequence, request.lost, request.before];
                // Release, as for events: partner is the acquire fence in `Reader::copied`.
                words.into_iter().zip(values).for_each(|(word, value)| word.store(value, Release));
            }
            // Release, with the reader's load of `head`: both headers are complete.
            Step::Commit => position.store(request.new_head, Release),
        }
        Flow::Next
    })?;
    Some(ended.unwrap_or(Opened::Retry))
}

fn parts(request: &Request) -> (&AtomicU64, &SubBufferHeader, &SubBufferHeader) {
    // SAFETY: `plan` made them from references into the region, which the caller's borrow keeps.
    unsafe { (&*request.control, &*request.old, &*request.new) }
}
