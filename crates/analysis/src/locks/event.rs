//! What an event says about a lock.

use std::collections::HashMap;

use tracewing_ctf::decode::{Compound, Event, MemberHandle, Value, Visitor};
use tracewing_ctf::model::Scope;
use tracewing_trace::EventRef;

use super::Kind;

/// Elements of a call chain that are kept.
const FRAMES: usize = 128;

/// An event of provider `lock`, or one of the kernel's about its own locks. Locks and places are addresses.
#[derive(Debug, PartialEq)]
pub(super) enum LockEvent {
    Requested { lock: u64, caller: u64, kind: Kind, owner: i32 },
    Acquired { lock: u64, caller: u64, kind: Kind },
    Refused { lock: u64, caller: u64, kind: Kind },
    Released { lock: u64 },
    NotReleased { lock: u64 },
    ConditionWait { condition: u64, lock: u64, caller: u64 },
    ConditionWoken { condition: u64, lock: u64 },
    BarrierWait { barrier: u64, caller: u64 },
    BarrierPassed { barrier: u64 },
    CalledFrom { chain: u64 },
    CallChain { chain: u64, frames: Vec<u64> },
    Image { begin: u64, end: u64, bias: u64, path: String },
    KernelWait { lock: u64, kind: Kind },
    KernelHas { lock: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
    Requested,
    Acquired,
    Refused,
    Released,
    NotReleased,
    ConditionWait,
    ConditionWoken,
    BarrierWait,
    BarrierPassed,
    CalledFrom,
    CallChain,
    Image,
    KernelWait,
    KernelHas,
}

/// What an event of this name means, and the fields that it must have.
fn meaning(name: &str) -> Option<(Meaning, &'static [&'static str])> {
    Some(match name {
        "lock:requested" => (Meaning::Requested, &["lock", "caller", "kind", "owner"]),
        "lock:acquired" => (Meaning::Acquired, &["lock", "caller", "kind"]),
        "lock:refused" => (Meaning::Refused, &["lock", "caller", "kind"]),
        "lock:released" => (Meaning::Released, &["lock"]),
        "lock:not_released" => (Meaning::NotReleased, &["lock"]),
        "lock:condition_wait" => (Meaning::ConditionWait, &["condition", "lock", "caller"]),
        "lock:condition_woken" => (Meaning::ConditionWoken, &["condition", "lock"]),
        "lock:barrier_wait" => (Meaning::BarrierWait, &["barrier", "caller"]),
        "lock:barrier_passed" => (Meaning::BarrierPassed, &["barrier"]),
        "lock:called_from" => (Meaning::CalledFrom, &["chain"]),
        "lock:call_chain" => (Meaning::CallChain, &["chain"]),
        "lock:image" => (Meaning::Image, &["begin", "end", "bias", "path"]),
        "contention_begin" => (Meaning::KernelWait, &["lock_addr", "flags"]),
        "contention_end" => (Meaning::KernelHas, &["lock_addr"]),
        _ => return None,
    })
}

/// An event class: what its events mean, and where their fields are.
type Class = (Meaning, Vec<MemberHandle>);

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// By stream and class; `None` for events about something else.
    classes: HashMap<(usize, usize), Option<Class>>,
}

impl Reader {
    /// What an event says; `None` where that is not about locks, or not what its name promises.
    pub(super) fn read(&mut self, event: &EventRef<'_>) -> Option<LockEvent> {
        let decoded = event.decoded();
        let place = (event.stream_index(), decoded.class_index());
        let class = self.classes.entry(place).or_insert_with(|| class_of(event));
        let (meaning, handles) = class.as_ref()?;
        let number = |at: usize| unsigned(decoded.member(*handles.get(at)?)?);
        let kind = |at: usize| Kind::of_number(number(at)?);
        Some(match meaning {
            Meaning::Requested => LockEvent::Requested {
                lock: number(0)?,
                caller: number(1)?,
                kind: kind(2)?,
                owner: number(3)? as i32,
            },
            Meaning::Acquired => LockEvent::Acquired { lock: number(0)?, caller: number(1)?, kind: kind(2)? },
            Meaning::Refused => LockEvent::Refused { lock: number(0)?, caller: number(1)?, kind: kind(2)? },
            Meaning::Released => LockEvent::Released { lock: number(0)? },
            Meaning::NotReleased => LockEvent::NotReleased { lock: number(0)? },
            Meaning::ConditionWait => {
                LockEvent::ConditionWait { condition: number(0)?, lock: number(1)?, caller: number(2)? }
            }
            Meaning::ConditionWoken => LockEvent::ConditionWoken { condition: number(0)?, lock: number(1)? },
            Meaning::BarrierWait => LockEvent::BarrierWait { barrier: number(0)?, caller: number(1)? },
            Meaning::BarrierPassed => LockEvent::BarrierPassed { barrier: number(0)? },
            Meaning::CalledFrom => LockEvent::CalledFrom { chain: number(0)? },
            Meaning::CallChain => LockEvent::CallChain { chain: number(0)?, frames: frames(&decoded) },
            Meaning::Image => LockEvent::Image {
                begin: number(0)?,
                end: number(1)?,
                bias: number(2)?,
                path: match decoded.member(*handles.get(3)?)? {
                    Value::Text(path) => String::from_utf8_lossy(path).into_owned(),
                    _ => return None,
                },
            },
            Meaning::KernelWait => {
                LockEvent::KernelWait { lock: number(0)?, kind: Kind::of_kernel_flags(number(1)?) }
            }
            Meaning::KernelHas => LockEvent::KernelHas { lock: number(0)? },
        })
    }
}

#[cold]
fn class_of(event: &EventRef<'_>) -> Option<Class> {
    let decoded = event.decoded();
    let (meaning, fields) = meaning(decoded.class().name.as_deref()?)?;
    let streams = &event.trace().class().data_stream_classes;
    let stream = streams.iter().position(|class| class.id == event.stream().class_id())?;
    let decoder = event.trace().decoder();
    let handle = |name: &&str| decoder.member(stream, decoded.class_index(), Scope::Payload, name);
    Some((meaning, fields.iter().map(handle).collect::<Option<_>>()?))
}

fn unsigned(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => Some(number),
        Value::Signed(number, _) | Value::SignedEnumeration(number, _) => Some(number.cast_unsigned()),
        Value::Boolean(is_true) => Some(is_true.into()),
        _ => None,
    }
}

/// The elements of the one array that a call chain has.
fn frames(event: &Event<'_>) -> Vec<u64> {
    struct Elements(Vec<u64>);

    impl Visitor for Elements {
        fn value(&mut self, name: Option<&str>, value: Value<'_>) {
            if let (None, Some(element)) = (name, unsigned(value))
                && self.0.len() < FRAMES
            {
                self.0.push(element);
            }
        }

        fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}

        fn end(&mut self, _: Compound<'_>) {}
    }

    let mut elements = Elements(Vec::new());
    event.visit(Scope::Payload, &mut elements);
    elements.0
}
