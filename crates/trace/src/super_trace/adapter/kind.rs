//! What happened, from the meaning of an event's class and the values of its fields.
//!
//! An activity is built in place, since a copy right after the write, in other sizes, would stall: hence the
//! inlining.

use tracewing_ctf::decode::Record;
use tracewing_vocabulary::{Reader, kernel, own, profile, recorder, user_thread};

use super::super::activity::{Activity, Kind, SwitchCause, UserThreadKind};
use super::meaning::Meaning;
use crate::merge::event::EventRef;
use crate::merge::fields::Places;

/// The fields of an event of the vocabulary.
pub(super) struct Fields<'f, 'e> {
    pub(super) event: &'f EventRef<'e>,
    pub(super) record: Option<Record<'e>>,
    pub(super) places: Option<&'f Places>,
}

impl<'e> Fields<'_, 'e> {
    #[inline(always)]
    pub(super) fn read<R: Reader<'e>>(&self) -> Option<R> {
        self.places?.read_record(self.event, self.record)
    }
}

#[inline(always)]
fn some<'e>(head: Activity<'_>, kind: Kind<'e>) -> Option<Activity<'e>> {
    let Activity { time, cpu, tid, process, context, .. } = head;
    Some(Activity { time, cpu, tid, process, context, kind })
}

#[inline(always)]
fn user<'e>(head: Activity<'_>, kind: UserThreadKind<'e>) -> Option<Activity<'e>> {
    some(head, Kind::UserThread(kind))
}

/// The activity of a kind that meaning and fields determine completely; `head` contains the rest.
#[inline(always)]
pub(super) fn plain<'e>(meaning: Meaning, of: &Fields<'_, 'e>, head: Activity<'e>) -> Option<Activity<'e>> {
    match meaning {
        Meaning::Switch => some(head, of.read::<kernel::Switch<'_>>()?.into()),
        Meaning::Waking => some(head, of.read::<kernel::Waking<'_>>()?.into()),
        Meaning::Wakeup => some(head, of.read::<kernel::Wakeup<'_>>()?.into()),
        Meaning::Fork => some(head, of.read::<kernel::Fork<'_>>()?.into()),
        Meaning::NewTask => some(head, of.read::<kernel::NewTask>()?.into()),
        Meaning::Exec => some(head, Kind::Exec { file: of.read::<kernel::Exec<'_>>()?.filename }),
        Meaning::Exit => {
            let kernel::ThreadExit { comm } = of.read()?;
            some(head, Kind::Exit { name: comm.unwrap_or_default() })
        }
        Meaning::SystemCall(call) => some(head, Kind::SystemCall { call }),
        Meaning::UnendedCall(call, returns) => some(head, Kind::UnendedCall { call, returns }),
        Meaning::SystemCallEnd(call) => some(head, Kind::SystemCallEnd { call }),
        Meaning::InterruptExit(interrupt) => some(head, Kind::InterruptExit(interrupt)),
        Meaning::PageFault { user: true } => some(head, of.read::<kernel::PageFaultUser>()?.into()),
        Meaning::PageFault { user: false } => some(head, Kind::PageFault { user: false, high: false }),
        Meaning::Introduction => some(head, of.read::<own::Thread<'_>>()?.into()),
        Meaning::Dump => some(head, of.read::<kernel::StateDump<'_>>()?.into()),
        Meaning::KnownThread => some(head, of.read::<recorder::KnownThread<'_>>()?.into()),
        Meaning::Socket => some(head, Kind::Socket),
        Meaning::Sample { by_timer } => {
            let user = of.read::<profile::SampledMode>()?.0 == Some(profile::Mode::User);
            some(head, Kind::Sample { user, by_timer })
        }
        Meaning::Made => {
            let profile::Fork { child_tid, child_pid } = of.read()?;
            some(head, Kind::Made { child: child_tid, process: child_pid })
        }
        Meaning::Asleep | Meaning::Named | Meaning::Stateless => some(head, Kind::Stateless),
        Meaning::LockWait(on @ Some(_)) => some(head, Kind::Waits { on }),
        Meaning::LockWaitEnd => some(head, Kind::Waits { on: None }),
        Meaning::User | Meaning::LockWait(None) => some(head, Kind::User),
        Meaning::Kernel | Meaning::InterruptEntry(..) | Meaning::Raise => some(head, Kind::Kernel),
        Meaning::UserThread(class) => of_user_thread(class, of, head),
    }
}

/// The same of an event of a user thread.
#[inline(always)]
fn of_user_thread<'e>(
    class: user_thread::Class,
    of: &Fields<'_, 'e>,
    head: Activity<'e>,
) -> Option<Activity<'e>> {
    use user_thread::Class::*;
    match class {
        Create => {
            let user_thread::Create { thread, origin, .. } = of.read()?;
            user(head, UserThreadKind::Create { thread, origin })
        }
        Existed => {
            let user_thread::Existed { thread, origin } = of.read()?;
            user(head, UserThreadKind::Existed { thread, origin })
        }
        Origin => {
            let user_thread::Origin { origin, name, file, line, .. } = of.read()?;
            let (file, line) = file.zip(line).unwrap_or_default();
            user(head, UserThreadKind::Origin { origin, name, file, line: line.into() })
        }
        Name => {
            let user_thread::Name { thread, name } = of.read()?;
            user(head, UserThreadKind::Rename { thread, name })
        }
        Switch => {
            let user_thread::Switch { prev, next, cause } = of.read()?;
            user(head, UserThreadKind::Switch { prev, next, cause: cause_of(cause) })
        }
        Wake => user(head, UserThreadKind::Wake { thread: of.read::<user_thread::Wake>()?.thread }),
        Exit => user(head, UserThreadKind::Exit { thread: of.read::<user_thread::Exit>()?.thread }),
        Acquired => some(head, request_ends(of.read::<user_thread::Acquired>()?.waited)),
        GivenUp => some(head, request_ends(of.read::<user_thread::GivenUp>()?.waited)),
        Worker | Park | Unpark => user(head, UserThreadKind::Worker),
        Wait | Released => some(head, Kind::User),
    }
}

impl<'e> From<kernel::Switch<'e>> for Kind<'e> {
    #[inline(always)]
    fn from(event: kernel::Switch<'e>) -> Self {
        let kernel::Switch { prev_tid, prev_comm, prev_state, next_tid, next_comm } = event;
        let (prev_name, next_name) = (prev_comm, next_comm);
        Self::Switch { prev: prev_tid, prev_name, prev_state, next: next_tid, next_name }
    }
}

impl<'e> From<kernel::Waking<'e>> for Kind<'e> {
    #[inline(always)]
    fn from(kernel::Waking { tid, comm }: kernel::Waking<'e>) -> Self {
        Self::Waking { tid, name: comm }
    }
}

impl<'e> From<kernel::Wakeup<'e>> for Kind<'e> {
    #[inline(always)]
    fn from(kernel::Wakeup { tid, comm }: kernel::Wakeup<'e>) -> Self {
        Self::Wakeup { tid, name: comm }
    }
}

impl<'e> From<kernel::Fork<'e>> for Kind<'e> {
    #[inline(always)]
    fn from(kernel::Fork { child_tid, child_comm }: kernel::Fork<'e>) -> Self {
        Self::Fork { child: child_tid, name: child_comm }
    }
}

impl From<kernel::NewTask> for Kind<'_> {
    #[inline(always)]
    fn from(kernel::NewTask { tid, clone_flags }: kernel::NewTask) -> Self {
        Self::NewTask { child: tid, same_process: clone_flags & kernel::CLONE_THREAD != 0 }
    }
}

impl From<kernel::PageFaultUser> for Kind<'_> {
    #[inline(always)]
    fn from(kernel::PageFaultUser { address, ip }: kernel::PageFaultUser) -> Self {
        let is_high = |address: Option<u64>| address.is_none_or(|address| address > u64::from(u32::MAX));
        Self::PageFault { user: true, high: is_high(address) || is_high(ip) }
    }
}

impl<'e> From<kernel::StateDump<'e>> for Kind<'e> {
    #[inline(always)]
    fn from(kernel::StateDump { tid, pid, name, r#type, .. }: kernel::StateDump<'e>) -> Self {
        Self::Dump { tid, process: pid, name, is_kernel: r#type == Some(kernel::KERNEL_THREAD) }
    }
}

impl<'e> From<recorder::KnownThread<'e>> for Kind<'e> {
    #[inline(always)]
    fn from(recorder::KnownThread { tid, pid, name }: recorder::KnownThread<'e>) -> Self {
        Self::Dump { tid, process: pid, name, is_kernel: false }
    }
}

impl<'e> From<own::Thread<'e>> for Kind<'e> {
    #[inline(always)]
    fn from(own::Thread { pid, name }: own::Thread<'e>) -> Self {
        Self::Introduction { process: pid, name }
    }
}

/// One that has not waited says nothing of what its user thread waits for: that may be another one's.
fn request_ends(waited: Option<bool>) -> Kind<'static> {
    if waited == Some(false) { Kind::User } else { Kind::UserThread(UserThreadKind::Acquired) }
}

fn cause_of(cause: Option<user_thread::Cause>) -> SwitchCause {
    use user_thread::Cause;
    match cause {
        Some(Cause::Ended) => SwitchCause::Ended,
        Some(Cause::Blocked) => SwitchCause::Blocked,
        Some(Cause::Yielded) => SwitchCause::Yielded,
        Some(Cause::Budget) => SwitchCause::Budget,
        Some(Cause::Preempted) => SwitchCause::Preempted,
        Some(Cause::Nested) => SwitchCause::Nested,
        Some(Cause::Pending) => SwitchCause::Pending,
        Some(Cause::None) | None => SwitchCause::Unknown,
    }
}
