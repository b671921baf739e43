//! Which types are stored, with all their fields.

use super::{Bytes, Stored};
use crate::stream::cursor::{Lost, LostKind};
use crate::super_trace::activity::{Interrupt, Name};
use crate::super_trace::adapter::NAMES;
use crate::super_trace::calls::{Calls, Now};
use crate::super_trace::comm::Comm;
use crate::super_trace::cpu::CpuState;
use crate::super_trace::doing::{Mode, Waker};
use crate::super_trace::known::{Known, Part};
use crate::super_trace::lwp::{Carries, Dumped, Lwp, Program, Sight, State as LwpState};
use crate::super_trace::origins::Origins;
use crate::super_trace::serial::{LwpSerial, TaskSerial};
use crate::super_trace::user_thread::{Key, Owner, State as TaskState, UserThread};
use tracewing_units::{Caller, Chain, Cpu, LockAddress, Origin, Pid, Task, Ticket, Tid, Timestamp};

/// Changes with the list of types and fields.
pub(in super::super) const SHAPE: u64 = shape(LIST);

macro_rules! stored {
    (
        wrapped { $($wrapper:ident)* }
        structs { $($struct:ident { $($field:ident)* })* }
        enums { $($enum:ident {
            $($number:literal $variant:ident $(($inner:ident))? $({ $($member:ident)* })?,)*
        })* }
    ) => {
        const LIST: &str = stringify!(
            $($wrapper)* $($struct { $($field)* })*
            $($enum { $($number $variant $(($inner))? $({ $($member)* })?,)* })*
        );

        $(impl Stored for $wrapper {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            #[inline]
            fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
                Stored::take(bytes).map($wrapper)
            }
        })*

        $(impl Stored for $struct {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($field.put(out);)*
            }

            fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
                Some(Self { $($field: Stored::take(bytes)?),* })
            }
        })*

        $(impl Stored for $enum {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($inner))? $({ $($member),* })? => {
                        out.push($number);
                        $($inner.put(out);)?
                        $($($member.put(out);)*)?
                    })*
                }
            }

            fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
                Some(match u8::take(bytes)? {
                    $($number => {
                        $(let $inner = Stored::take(bytes)?;)?
                        Self::$variant $(($inner))? $({ $($member: Stored::take(bytes)?),* })?
                    })*
                    _ => return None,
                })
            }
        })*
    };
}

stored! {
    wrapped { Tid Pid Cpu Task Origin Caller Chain LockAddress Ticket LwpSerial TaskSerial Owner }
    structs {
        Lwp {
            serial tid process name followed is_kernel switches preemptions migrations wakeups system_calls
            page_faults user_events polls program carries exited carried_to sight reports_modes calls
            dies_unseen waits_for state since confirmed mode mode_confirmed mode_settled faulted executes
            interrupted interrupts last_cpu waking
        }
        Program { number since }
        Dumped { process name is_kernel }
        Calls { now before }
        Key { owner id }
        UserThread {
            serial process id name polls wakeups lwp_migrations cpu_migrations waits_for origin state since
            confirmed woken wakes_unseen hooked last_lwp last_cpu
        }
        Origins { new old }
        CpuState { current leaving interrupts raised softirq since idled leaves_idle }
        Waker {
            cpu interrupt call mode is_kernel process tid name lwp user_thread user_thread_serial
        }
        Lost { kind count range }
        Known { events latest went_back blind_until unseen_until losses dumped named carried counted parts }
        Part { kind bytes }
    }
    enums {
        LwpState {
            0 Unknown,
            1 Running { cpu },
            2 Runnable { preempted },
            3 Blocked { woken_before },
            4 Ended,
        }
        TaskState {
            0 Unknown,
            1 Running { tid },
            2 Runnable { preempted },
            3 Blocked { on },
            4 Nested,
        }
        Carries { 0 Unknown, 1 None, 2 Thread(key), 3 Late(key), }
        Sight { 0 Always, 1 Never, 2 Stranger, 3 WithThread { chosen }, }
        Now { 0 Unknown, 1 Recorded, 2 Missing, 3 Hidden, }
        Mode { 0 Unknown, 1 User, 2 SystemCall(name), 3 Interrupt(name), }
        Interrupt { 0 Handler, 1 Softirq, 2 Vector, 3 Call, }
        LostKind { 0 Events, 1 Packets, }
    }
}

impl Stored for Timestamp {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ns().put(out);
    }

    #[inline]
    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        i64::take(bytes).map(Timestamp::from_ns)
    }
}

impl Stored for Name {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    #[inline]
    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        u32::take(bytes).filter(|number| (*number as usize) < NAMES).map(Name)
    }
}

impl Stored for Comm {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_str().to_owned().put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        String::take(bytes).map(|name| Comm::new(&name))
    }
}

/// A number that differs for different lists of types and fields (FNV-1a).
pub const fn shape(list: &str) -> u64 {
    let bytes = list.as_bytes();
    let (mut sum, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        sum = (sum ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    sum
}
