//! Makes [`Activity`] from the events of `tracewing-trace`, by the names that LTTng and tracewing share.

use crate::activity::{Activity, Kind, Scope};
use std::collections::HashMap;
use tracewing_ctf::decode::{Event, Value};
use tracewing_ctf::model::{self, EnvValue};
use tracewing_trace::{EventRef, Stream, Trace};

/// `CLONE_THREAD` of `include/uapi/linux/sched.h`.
const CLONE_THREAD: i64 = 0x0001_0000;

/// Remembers what each event class means, so that names are compared once.
#[derive(Debug, Default)]
pub struct Adapter {
    meanings: HashMap<(usize, u64, usize), Meaning>,
}

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Switch,
    Waking,
    Wakeup,
    Fork,
    NewTask,
    Exec,
    Exit,
    Syscall,
    InterruptEntry,
    InterruptExit,
    Introduction,
    Dump,
    User,
    Kernel,
}

impl Adapter {
    /// An adapter that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the analyses need of an event; `None` if it has no time, or lacks a field that its name promises.
    pub fn activity<'e>(&mut self, event: &EventRef<'e>) -> Option<Activity<'e>> {
        let decoded = event.decoded();
        let key = (event.trace_index(), event.stream().class_id(), decoded.class_index());
        let meaning = *self.meanings.entry(key).or_insert_with(|| meaning(event.trace(), &decoded));
        Some(Activity {
            time: event.stamp()?.ns,
            cpu: event.cpu().and_then(|cpu| u32::try_from(cpu).ok()),
            tid: context_tid(&decoded),
            kind: kind(meaning, &decoded)?,
        })
    }

    /// Which events a loss concerns.
    pub fn scope(trace: &Trace, stream: &Stream) -> Scope {
        if !is_kernel(trace) {
            return Scope::User;
        }
        // Kernel channels are numbered by CPU: channel_0, channel_1, by us and by LTTng.
        let file = stream.name().rsplit('/').next().unwrap_or_default();
        Scope::Kernel(file.rsplit('_').next().and_then(|cpu| cpu.parse().ok()))
    }
}

fn is_kernel(trace: &Trace) -> bool {
    matches!(trace.class().env("domain"), Some(EnvValue::String(domain)) if domain == "kernel")
}

fn meaning(trace: &Trace, event: &Event<'_>) -> Meaning {
    let name = event.class().name.as_deref().unwrap_or_default();
    if !is_kernel(trace) {
        return if name == "tracewing:thread" { Meaning::Introduction } else { Meaning::User };
    }
    let interrupt = ["irq_handler_", "irq_softirq_", "x86_irq_vectors_", "softirq_"]
        .iter()
        .any(|start| name.starts_with(start));
    match name {
        "sched_switch" => Meaning::Switch,
        "sched_waking" => Meaning::Waking,
        "sched_wakeup" | "sched_wakeup_new" => Meaning::Wakeup,
        "sched_process_fork" => Meaning::Fork,
        "task_newtask" => Meaning::NewTask,
        "sched_process_exec" => Meaning::Exec,
        "sched_process_exit" => Meaning::Exit,
        "lttng_statedump_process_state" => Meaning::Dump,
        _ if name.starts_with("syscall_entry_") => Meaning::Syscall,
        _ if interrupt && name.ends_with("_entry") => Meaning::InterruptEntry,
        _ if interrupt && name.ends_with("_exit") => Meaning::InterruptExit,
        _ => Meaning::Kernel,
    }
}

fn kind<'e>(meaning: Meaning, event: &Event<'e>) -> Option<Kind<'e>> {
    Some(match meaning {
        Meaning::Switch => Kind::Switch {
            prev: tid(event, "prev_tid")?,
            prev_name: text(event, "prev_comm")?,
            prev_state: integer(event, "prev_state")?,
            next: tid(event, "next_tid")?,
            next_name: text(event, "next_comm")?,
        },
        Meaning::Waking => Kind::Waking { tid: tid(event, "tid")?, name: text(event, "comm")? },
        Meaning::Wakeup => Kind::Wakeup { tid: tid(event, "tid")?, name: text(event, "comm")? },
        Meaning::Fork => Kind::Fork { child: tid(event, "child_tid")?, name: text(event, "child_comm")? },
        Meaning::NewTask => Kind::NewTask {
            child: tid(event, "tid").or_else(|| tid(event, "pid"))?,
            same_process: integer(event, "clone_flags")? & CLONE_THREAD != 0,
        },
        Meaning::Exec => Kind::Exec { file: text(event, "filename")? },
        Meaning::Exit => Kind::Exit,
        Meaning::Syscall => Kind::Syscall,
        Meaning::InterruptEntry => Kind::InterruptEntry,
        Meaning::InterruptExit => Kind::InterruptExit,
        Meaning::Introduction => {
            Kind::Introduction { process: tid(event, "pid")?, name: text(event, "name")? }
        }
        Meaning::Dump => {
            Kind::Dump { tid: tid(event, "tid")?, process: tid(event, "pid")?, name: text(event, "name")? }
        }
        Meaning::User => Kind::User,
        Meaning::Kernel => Kind::Kernel,
    })
}

/// `tid` in our traces, `vtid` (LTTng-UST) or `tid` (LTTng's kernel tracer) in LTTng's.
fn context_tid(event: &Event<'_>) -> Option<i32> {
    let scope = model::Scope::CommonContext;
    let value = event.field(scope, "tid").or_else(|| event.field(scope, "vtid"))?;
    i32::try_from(number(value)?).ok()
}

fn number(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => i64::try_from(number).ok(),
        Value::Signed(number, _) | Value::SignedEnumeration(number, _) => Some(number),
        _ => None,
    }
}

fn integer(event: &Event<'_>, name: &str) -> Option<i64> {
    number(event.field(model::Scope::Payload, name)?)
}

fn tid(event: &Event<'_>, name: &str) -> Option<i32> {
    i32::try_from(integer(event, name)?).ok()
}

fn text<'e>(event: &Event<'e>, name: &str) -> Option<&'e [u8]> {
    match event.field(model::Scope::Payload, name)? {
        Value::Text(bytes) => Some(bytes),
        _ => None,
    }
}
