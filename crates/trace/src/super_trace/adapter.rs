//! Makes [`Activity`] from events, by the names that LTTng and tracewing share, `user_thread:*` and `lock:*`.

use super::activity::{Activity, Context, Interrupt, Kind, Name, Scope, SwitchCause, UserThreadKind};
use crate::merge::EventRef;
use crate::open::{Stream, Trace};
use crate::part::{has_some_interrupts, has_some_switches, has_some_system_calls};
use std::collections::{HashMap, HashSet};
use tracewing_ctf::decode::{Decoder, Event, MemberHandle, Record, RecordField, Value};
use tracewing_ctf::model::{self, EnvValue, TraceClass};

/// `CLONE_THREAD` of `include/uapi/linux/sched.h`.
const CLONE_THREAD: i64 = 0x0001_0000;

/// LTTng's `enum lttng_thread_type`, as its state dump tells it.
const KERNEL_THREAD: i64 = 1;

/// How many names are kept apart.
const NAMES: usize = 1 << 16;

/// Remembers what each event class means, so that names are looked up once.
#[derive(Debug, Default)]
pub struct Adapter {
    /// By stream and event class.
    classes: Vec<Vec<Option<Class>>>,
    names: Vec<String>,
    numbers: HashMap<String, Name>,
    general: General,
    /// By trace: the first threads of processes that have introduced themselves since their last exec.
    introduced: HashSet<(usize, i32)>,
}

/// What is known of an event class.
#[derive(Debug)]
struct Class {
    meaning: Meaning,
    /// Who recorded it: `tid` in our traces, `vtid` (LTTng-UST) or `tid` (LTTng's kernel tracer) in LTTng's.
    tid: Option<Member>,
    /// Its process, with which LTTng's events can be recorded: `vpid` or `pid`.
    process: Option<Member>,
    /// What ftrace says of the CPU, where that matters ([`tells_context`]): `flags` in our traces.
    flags: Option<Member>,
    /// Its fields, in the order in which [`fields`] lists them.
    fields: Vec<Member>,
}

/// A member of a class' events.
#[derive(Debug)]
struct Member {
    handle: MemberHandle,
    /// Where it lies in events that need no walk.
    field: Option<RecordField>,
}

impl Member {
    fn new(handle: MemberHandle, decoder: &Decoder) -> Self {
        Member { handle, field: decoder.record_field(handle) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
    Switch,
    Waking,
    Wakeup,
    Fork,
    NewTask,
    Exec,
    Exit,
    SystemCall(Name),
    /// A system call whose end is not recorded; whether it returns to the program at once.
    UnendedCall(Name, bool),
    SystemCallEnd(Name),
    /// What it is called where its field does not say.
    InterruptEntry(Interrupt, Name),
    InterruptExit(Interrupt),
    Raise,
    Socket,
    PageFault {
        user: bool,
    },
    Introduction,
    Dump,
    Create,
    Origin,
    Rename,
    UserSwitch,
    Wake,
    UserExit,
    Wait,
    Acquired,
    Worker,
    /// For what kind of lock a thread waits: its field says that, or there is but one.
    LockWait(Option<Name>),
    LockWaitEnd,
    Sample {
        by_timer: bool,
    },
    Named,
    Made,
    Aside,
    User,
    Kernel,
}

/// What softirqs and interrupts are called of which no event says which they are.
#[derive(Debug, Default)]
struct General {
    softirq: Name,
    interrupt: Name,
}

impl General {
    /// What ftrace's flags say (`enum trace_flag_type` of `include/linux/trace_events.h`).
    fn context(&self, flags: i64) -> Context {
        const HARD_OR_NMI: i64 = 0x08 | 0x40;
        const SOFTIRQ: i64 = 0x10;
        match flags {
            _ if flags & HARD_OR_NMI != 0 => Context::Interrupt(self.interrupt),
            _ if flags & SOFTIRQ != 0 => Context::Softirq(self.softirq),
            _ => Context::Thread,
        }
    }
}

/// Whether it matters of an event whose work the CPU was at: an interrupt does such a thing as well as a thread.
fn tells_context(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Waking | Meaning::Wakeup | Meaning::Raise)
}

/// The fields that an event of this meaning must have.
fn fields(meaning: Meaning) -> &'static [&'static str] {
    match meaning {
        Meaning::Switch => &["prev_tid", "prev_comm", "prev_state", "next_tid", "next_comm"],
        Meaning::Waking | Meaning::Wakeup => &["tid", "comm"],
        Meaning::Fork => &["child_tid", "child_comm"],
        Meaning::NewTask => &["tid", "clone_flags"],
        Meaning::Exec => &["filename"],
        Meaning::Introduction => &["pid", "name"],
        Meaning::Dump => &["tid", "pid", "name"],
        Meaning::Create => &["thread", "origin"],
        Meaning::Origin => &["origin", "name"],
        Meaning::Rename => &["thread", "name"],
        Meaning::UserSwitch => &["prev", "next", "cause"],
        Meaning::Wake | Meaning::UserExit => &["thread"],
        Meaning::Wait | Meaning::LockWait(None) => &["kind"],
        Meaning::Sample { .. } => &["mode"],
        Meaning::Named => &["name"],
        Meaning::Made => &["child_tid", "child_pid"],
        Meaning::InterruptEntry(Interrupt::Softirq, _) | Meaning::Raise => &["vec"],
        Meaning::InterruptEntry(Interrupt::Handler, _) => &["name"],
        _ => &[],
    }
}

impl Adapter {
    /// An adapter that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the super-trace needs of an event; `None` if it has no time, or a value that its name does not promise.
    pub fn activity<'e>(&mut self, event: &EventRef<'e>) -> Option<Activity<'e>> {
        let time = event.stamp()?.ns;
        let (stream, (index, record)) = (event.stream_index(), event.record());
        if self.classes.get(stream).and_then(|known| known.get(index)).is_none_or(Option::is_none) {
            self.learn(event);
        }
        let class = self.classes[stream][index].as_ref()?;
        let fields = Fields { event, record, members: &class.fields };
        let id = |member: &Option<Member>| number_of_thread(fields.integer_of(member.as_ref()?)?);
        // 0 is an idle thread's, and one's that the recorder cannot see from its namespace.
        let (tid, process) = (id(&class.tid), id(&class.process).filter(|&process| process > 0));
        let cpu = event.cpu().and_then(|cpu| u32::try_from(cpu).ok());
        let mut head = Activity { time, cpu, tid, process, context: Context::Unknown, kind: Kind::Aside };
        if let Some(flags) = class.flags.as_ref().and_then(|flags| fields.integer_of(flags)) {
            head.context = self.general.context(flags);
        }
        let kind = match class.meaning {
            Meaning::Wait => {
                let label = label(&event.decoded(), class.fields.first()?.handle);
                let kind = self.number(label);
                Kind::UserThread(UserThreadKind::Wait { kind })
            }
            Meaning::LockWait(None) => {
                let label = label(&event.decoded(), class.fields.first()?.handle);
                Kind::Waits { on: Some(self.number(label)) }
            }
            Meaning::Raise => {
                let name = self.number(fields.integer(0).and_then(softirq)?);
                Kind::Raise { name }
            }
            Meaning::InterruptEntry(kind, general) => {
                let name = match kind {
                    Interrupt::Softirq => fields.integer(0).and_then(softirq),
                    Interrupt::Handler => fields.text(0).and_then(|name| std::str::from_utf8(name).ok()),
                    Interrupt::Vector => None,
                };
                let name = name.map_or(general, |name| self.number(name));
                Kind::InterruptEntry { kind, name }
            }
            Meaning::Named => {
                let name = fields.text(0)?;
                process.map_or(Kind::Aside, |process| Kind::Named { process, name })
            }
            meaning @ (Meaning::Introduction | Meaning::Exec) => {
                let Activity { kind, .. } = plain(meaning, &fields, head)?;
                self.program(event.stream().trace_index(), tid, kind)
            }
            meaning => return plain(meaning, &fields, head),
        };
        Some(Activity { kind, ..head })
    }

    /// Tells introductions of new programs from the first ones.
    #[cold]
    fn program<'e>(&mut self, trace: usize, tid: Option<i32>, kind: Kind<'e>) -> Kind<'e> {
        match (kind, tid) {
            (Kind::Introduction { process, name }, Some(tid))
                if tid == process && !self.introduced.insert((trace, tid)) =>
            {
                Kind::Program { name }
            }
            (Kind::Exec { .. }, Some(tid)) => {
                self.introduced.retain(|(_, introduced)| *introduced != tid);
                kind
            }
            _ => kind,
        }
    }

    /// What a system call, another cause of waiting, or an interrupt is called.
    pub fn name(&self, name: Name) -> &str {
        self.names.get(name.0 as usize).map_or("", String::as_str)
    }

    /// All names so far, each at the place of its number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Which events a loss concerns.
    pub fn scope(trace: &Trace, stream: &Stream) -> Scope {
        match domain(trace) {
            Some(KERNEL) => {}
            Some(PROFILE) => return Scope::Samples,
            _ => return Scope::User,
        }
        Scope::Kernel(Self::stream_cpu(stream))
    }

    /// The CPU of a stream. Streams are numbered by CPU, as in `channel_0` and `uid0_1`, by us and by LTTng.
    pub fn stream_cpu(stream: &Stream) -> Option<u32> {
        let file = stream.name().rsplit('/').next().unwrap_or_default();
        file.rsplit('_').next().and_then(|cpu| cpu.parse().ok())
    }

    #[cold]
    fn learn(&mut self, event: &EventRef<'_>) {
        let decoded = event.decoded();
        let (stream, index) = (event.stream_index(), decoded.class_index());
        let streams = &event.trace().class().data_stream_classes;
        let place = streams.iter().position(|class| class.id == event.stream().class_id());
        let member = |scope, name: &str| event.trace().decoder().member(place?, index, scope, name);
        let context = |name| member(model::Scope::CommonContext, name);
        let name = decoded.class().name.as_deref().unwrap_or_default();
        let is_ours = is_kernel(event.trace()) && text_of(event.trace(), "tracer_name") == Some("tracewing");
        if is_ours {
            self.general = General { softirq: self.number("softirq"), interrupt: self.number("interrupt") };
        }
        let (mut meaning, plain) = match domain(event.trace()) {
            Some(KERNEL) => (ended(self.kernel_meaning(name), name, event.trace()), Meaning::Kernel),
            Some(PROFILE) => (profile_meaning(name, event.trace()), Meaning::Aside),
            _ => (self.user_meaning(name), Meaning::User),
        };
        let wanted = fields(meaning);
        let mut fields: Vec<_> =
            wanted.iter().filter_map(|name| member(model::Scope::Payload, name)).collect();
        if meaning == Meaning::NewTask && member(model::Scope::Payload, "tid").is_none() {
            fields.splice(0..0, member(model::Scope::Payload, "pid"));
        }
        if meaning == Meaning::Dump {
            fields.extend(member(model::Scope::Payload, "type"));
        }
        if meaning == Meaning::Origin {
            let place = ["file", "line"].map(|name| member(model::Scope::Payload, name));
            fields.extend(place.iter().flatten().filter(|_| place.iter().all(Option::is_some)).copied());
        }
        // An interrupt is one, also where nobody tells its name.
        if fields.len() < wanted.len() && !matches!(meaning, Meaning::InterruptEntry(..)) {
            meaning = plain;
        }
        let tid = context("tid").or_else(|| context("vtid"));
        let flags = context("flags").filter(|_| tells_context(meaning) && is_ours);
        let process = context("pid").or_else(|| context("vpid"));
        let member = |handle| Member::new(handle, event.trace().decoder());
        let (tid, process, flags) = (tid.map(member), process.map(member), flags.map(member));
        let class = Class { meaning, tid, process, flags, fields: fields.into_iter().map(member).collect() };
        if self.classes.len() <= stream {
            self.classes.resize_with(stream + 1, Vec::new);
        }
        let known = &mut self.classes[stream];
        if known.len() <= index {
            known.resize_with(index + 1, || None);
        }
        known[index] = Some(class);
    }

    fn kernel_meaning(&mut self, name: &str) -> Meaning {
        match (name, interrupt(name)) {
            (SWITCH, _) => Meaning::Switch,
            ("sched_waking", _) => Meaning::Waking,
            ("sched_wakeup" | "sched_wakeup_new", _) => Meaning::Wakeup,
            ("sched_process_fork", _) => Meaning::Fork,
            ("task_newtask", _) => Meaning::NewTask,
            ("sched_process_exec", _) => Meaning::Exec,
            ("sched_process_exit", _) => Meaning::Exit,
            ("lttng_statedump_process_state", _) => Meaning::Dump,
            ("irq_softirq_raise" | "softirq_raise", _) => Meaning::Raise,
            ("sock_send_length" | "sock_recv_length", _) => Meaning::Socket,
            ("x86_exceptions_page_fault_user", _) => Meaning::PageFault { user: true },
            ("x86_exceptions_page_fault_kernel", _) => Meaning::PageFault { user: false },
            (_, Some((kind, part))) if part.ends_with(BEGIN) => {
                let general = match kind {
                    Interrupt::Vector => &part[..part.len() - BEGIN.len()],
                    Interrupt::Handler => "interrupt",
                    Interrupt::Softirq => "softirq",
                };
                Meaning::InterruptEntry(kind, self.number(general))
            }
            (_, Some((kind, _))) => Meaning::InterruptExit(kind),
            _ => match (name.strip_prefix(CALL.0), name.strip_prefix(CALL.1)) {
                (Some(call), _) => Meaning::SystemCall(self.number(call)),
                (_, Some(call)) => Meaning::SystemCallEnd(self.number(call)),
                _ => Meaning::Kernel,
            },
        }
    }

    fn user_meaning(&mut self, name: &str) -> Meaning {
        match name {
            "tracewing:thread" => Meaning::Introduction,
            "tracewing:known_thread" => Meaning::Dump,
            "user_thread:create" => Meaning::Create,
            "user_thread:origin" => Meaning::Origin,
            "user_thread:name" => Meaning::Rename,
            "user_thread:switch" => Meaning::UserSwitch,
            "user_thread:wake" => Meaning::Wake,
            "user_thread:exit" => Meaning::UserExit,
            "user_thread:wait" => Meaning::Wait,
            "user_thread:acquired" | "user_thread:given_up" => Meaning::Acquired,
            "user_thread:worker" | "user_thread:park" | "user_thread:unpark" => Meaning::Worker,
            "lock:requested" => Meaning::LockWait(None),
            "lock:condition_wait" => Meaning::LockWait(Some(self.number("condition"))),
            "lock:barrier_wait" => Meaning::LockWait(Some(self.number("barrier"))),
            // Who gives back a lock was cancelled while it waited for a condition, if it has not told before that it goes on.
            "lock:acquired"
            | "lock:refused"
            | "lock:condition_woken"
            | "lock:barrier_passed"
            | "lock:released" => Meaning::LockWaitEnd,
            _ => Meaning::User,
        }
    }

    fn number(&mut self, name: &str) -> Name {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // No machine has so many; the last one stands for the rest.
        if self.names.len() >= NAMES {
            return Name(NAMES as u32 - 1);
        }
        let number = Name(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// A softirq's name by its number (the kernel's `include/linux/interrupt.h`).
fn softirq(number: i64) -> Option<&'static str> {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(usize::try_from(number).ok()?).copied()
}

/// What a trace says that it is of.
fn domain(trace: &Trace) -> Option<&str> {
    text_of(trace, "domain")
}

const KERNEL: &str = "kernel";
/// Of samples, taken by the kernel (`tracewing-profile`).
const PROFILE: &str = "profile";

/// A text in a trace's environment.
fn text_of<'t>(trace: &'t Trace, name: &str) -> Option<&'t str> {
    match trace.class().env(name)? {
        EnvValue::String(text) => Some(text),
        _ => None,
    }
}

/// Whether a trace is the kernel's.
pub(crate) fn is_kernel(trace: &Trace) -> bool {
    domain(trace) == Some(KERNEL)
}

/// Says that a kernel trace has everybody's events, in the environment of tracewing's.
const SCOPE: (&str, &str) = ("scope", "system");

/// Whether a trace has the kernel's events of the whole machine, and says so: switches may be missing there, but nobody is left out.
pub(crate) fn is_system_wide(trace: &Trace) -> bool {
    is_kernel(trace) && text_of(trace, SCOPE.0) == Some(SCOPE.1)
}

/// Whether a trace has the kernel's events of some threads only: tracewing's say it where they have everybody's.
pub(crate) fn is_of_some(trace: &Trace) -> bool {
    is_kernel(trace) && !is_system_wide(trace) && text_of(trace, "tracer_name") == Some("tracewing")
}

/// The process whose tree a trace has the kernel's events of, if it says so.
pub(crate) fn root_process(trace: &Trace) -> Option<i32> {
    match trace.class().env("root_process")? {
        EnvValue::Integer(process) => i32::try_from(*process).ok().filter(|_| is_of_some(trace)),
        EnvValue::String(_) => None,
    }
}

/// A switch of threads.
pub(crate) const SWITCH: &str = "sched_switch";

/// Whether a trace has switches of threads, and not only some of them, so that who does not leave a CPU is known to be there.
pub(crate) fn has_switches(trace: &Trace) -> bool {
    let streams = &trace.class().data_stream_classes;
    let mut classes = streams.iter().flat_map(|stream| &stream.event_record_classes);
    is_kernel(trace)
        && !has_some_switches(trace)
        && classes.any(|class| class.name.as_deref() == Some(SWITCH))
}

/// A switch of user threads.
pub(crate) const USER_SWITCH: &str = "user_thread:switch";

/// Whether a trace has switches of user threads, and not only some of them.
pub(crate) fn has_user_switches(trace: &Trace) -> bool {
    let streams = &trace.class().data_stream_classes;
    let mut classes = streams.iter().flat_map(|stream| &stream.event_record_classes);
    !has_some_switches(trace) && classes.any(|class| class.name.as_deref() == Some(USER_SWITCH))
}

/// Events of this begin tell of the begin of a system call, of that of its end.
const CALL: (&str, &str) = ("syscall_entry_", "syscall_exit_");

/// Returns to the program that a signal handler has interrupted. ftrace records no end of it: by then the thread has the registers of
/// that program, the number of a system call among them.
const SIGNAL_RETURN: &str = "rt_sigreturn";

/// The meaning of the begin of a system call whose end the trace does not have, where events of the class `name` have that.
fn ended(meaning: Meaning, name: &str, trace: &Trace) -> Meaning {
    let (Meaning::SystemCall(number), Some(call)) = (meaning, name.strip_prefix(CALL.0)) else {
        return meaning;
    };
    let end = format!("{}{call}", CALL.1);
    let mut classes =
        trace.class().data_stream_classes.iter().flat_map(|stream| &stream.event_record_classes);
    let returns = call == SIGNAL_RETURN;
    let is_told = classes.any(|class| class.name.as_deref() == Some(&end)) && !trace.leaves_out(&end);
    if is_told && !returns { meaning } else { Meaning::UnendedCall(number, returns) }
}

/// Whether events of a class tell when a system call begins or ends.
pub(crate) fn is_of_system_call(name: &str) -> bool {
    name.starts_with(CALL.0) || name.starts_with(CALL.1)
}

/// The names of events end so that tell when an interrupt begins, and when it ends.
const BEGIN: &str = "_entry";
const END: &str = "_exit";

/// The kind of interrupt of whose begin or end events of a class tell, and the rest of their name.
fn interrupt(name: &str) -> Option<(Interrupt, &str)> {
    let kinds = [
        ("irq_handler", Interrupt::Handler),
        ("irq_softirq", Interrupt::Softirq),
        ("softirq", Interrupt::Softirq),
        ("x86_irq_vectors_", Interrupt::Vector),
    ];
    let (kind, part) = kinds.into_iter().find_map(|(start, kind)| Some((kind, name.strip_prefix(start)?)))?;
    (part.ends_with(BEGIN) || part.ends_with(END)).then_some((kind, part))
}

/// Whether events of a class tell when an interrupt begins or ends.
pub(crate) fn is_of_interrupt(name: &str) -> bool {
    interrupt(name).is_some()
}

/// Whether a trace has begins and ends of all kinds of interrupts, and not only some of them.
pub(crate) fn has_interrupts(trace: &Trace) -> bool {
    let streams = &trace.class().data_stream_classes;
    let names =
        || streams.iter().flat_map(|stream| &stream.event_record_classes).flat_map(|class| &class.name);
    let has = |kind, end| {
        let mut parts = names().filter_map(|name| interrupt(name));
        parts.any(|(of, part)| of == kind && part.ends_with(end))
    };
    let kinds = [Interrupt::Handler, Interrupt::Softirq, Interrupt::Vector];
    is_kernel(trace)
        && !has_some_interrupts(trace)
        && kinds.into_iter().all(|kind| has(kind, BEGIN) && has(kind, END))
}

/// Kernels have more system calls than this, and a recording of all of them describes them all.
const CALLS: usize = 200;

/// Whether a trace has begins and ends of system calls, and not only some of them.
pub(crate) fn has_system_calls(trace: &Trace) -> bool {
    let streams = &trace.class().data_stream_classes;
    let has_all = |begin| {
        let names =
            streams.iter().flat_map(|stream| &stream.event_record_classes).flat_map(|class| &class.name);
        names.filter(|name| name.starts_with(begin)).nth(CALLS).is_some()
    };
    is_kernel(trace) && !has_some_system_calls(trace) && has_all(CALL.0) && has_all(CALL.1)
}

/// A part of a trace does not have everybody's events.
pub(crate) fn forget_scope(class: &mut TraceClass) {
    class.env.retain(|(name, _)| name != SCOPE.0);
}

fn profile_meaning(name: &str, trace: &Trace) -> Meaning {
    match name {
        "profile:sample" => {
            Meaning::Sample { by_timer: text_of(trace, "profile_event") == Some("cpu-clock") }
        }
        "profile:thread" => Meaning::Named,
        "profile:fork" => Meaning::Made,
        _ => Meaning::Aside,
    }
}

/// The values of an event's fields, by their place in [`fields`].
struct Fields<'f, 'e> {
    event: &'f EventRef<'e>,
    record: Option<Record<'e>>,
    members: &'f [Member],
}

impl<'e> Fields<'_, 'e> {
    #[inline]
    fn integer_of(&self, Member { handle, field }: &Member) -> Option<i64> {
        match (field, &self.record) {
            (Some(field), Some(record)) => field.integer(record),
            _ => number(self.event.decoded().member(*handle)?),
        }
    }

    #[inline]
    fn integer(&self, place: usize) -> Option<i64> {
        self.integer_of(self.members.get(place)?)
    }

    /// The number of a thread or of a process.
    #[inline]
    fn tid(&self, place: usize) -> Option<i32> {
        number_of_thread(self.integer(place)?)
    }

    /// The number of a user thread, or of an origin: all 64 bits.
    #[inline]
    fn thread(&self, place: usize) -> Option<u64> {
        let Member { handle, field } = self.members.get(place)?;
        match (field, &self.record) {
            (Some(field), Some(record)) => field.unsigned(record),
            _ => match self.event.decoded().member(*handle)? {
                Value::Unsigned(number, _) => Some(number),
                _ => None,
            },
        }
    }

    #[inline]
    fn text(&self, place: usize) -> Option<&'e [u8]> {
        let Member { handle, field } = self.members.get(place)?;
        match (field, &self.record) {
            (Some(field), Some(record)) => field.text(record),
            _ => match self.event.decoded().member(*handle)? {
                Value::Text(bytes) => Some(bytes),
                _ => None,
            },
        }
    }
}

/// The activity of whose kind the meaning and the fields say all; `head` has the rest. It is built in the place to which it is
/// returned: what is copied right after it was written, in pieces of another size, waits for that.
#[inline(always)]
fn plain<'e>(meaning: Meaning, of: &Fields<'_, 'e>, head: Activity<'e>) -> Option<Activity<'e>> {
    let Activity { time, cpu, tid, process, context, .. } = head;
    let is = |kind| Some(Activity { time, cpu, tid, process, context, kind });
    match meaning {
        Meaning::Switch => is(Kind::Switch {
            prev: of.tid(0)?,
            prev_name: of.text(1)?,
            prev_state: of.integer(2)?,
            next: of.tid(3)?,
            next_name: of.text(4)?,
        }),
        Meaning::Waking => is(Kind::Waking { tid: of.tid(0)?, name: of.text(1)? }),
        Meaning::Wakeup => is(Kind::Wakeup { tid: of.tid(0)?, name: of.text(1)? }),
        Meaning::Fork => is(Kind::Fork { child: of.tid(0)?, name: of.text(1)? }),
        Meaning::NewTask => {
            is(Kind::NewTask { child: of.tid(0)?, same_process: of.integer(1)? & CLONE_THREAD != 0 })
        }
        Meaning::Exec => is(Kind::Exec { file: of.text(0)? }),
        Meaning::Exit => is(Kind::Exit),
        Meaning::SystemCall(call) => is(Kind::SystemCall { call }),
        Meaning::UnendedCall(call, returns) => is(Kind::UnendedCall { call, returns }),
        Meaning::SystemCallEnd(call) => is(Kind::SystemCallEnd { call }),
        Meaning::InterruptExit(interrupt) => is(Kind::InterruptExit(interrupt)),
        Meaning::PageFault { user } => is(Kind::PageFault { user }),
        Meaning::Introduction => is(Kind::Introduction { process: of.tid(0)?, name: of.text(1)? }),
        Meaning::Dump => is(Kind::Dump {
            tid: of.tid(0)?,
            process: of.tid(1)?,
            name: of.text(2)?,
            is_kernel: of.integer(3) == Some(KERNEL_THREAD),
        }),
        Meaning::Socket => is(Kind::Socket),
        Meaning::Sample { by_timer } => is(Kind::Sample { user: of.integer(0)? == 0, by_timer }),
        Meaning::Made => is(Kind::Made { child: of.tid(0)?, process: of.tid(1)? }),
        Meaning::Named | Meaning::Aside => is(Kind::Aside),
        Meaning::LockWait(on @ Some(_)) => is(Kind::Waits { on }),
        Meaning::LockWaitEnd => is(Kind::Waits { on: None }),
        Meaning::User | Meaning::Wait | Meaning::LockWait(None) => is(Kind::User),
        Meaning::Kernel | Meaning::InterruptEntry(..) | Meaning::Raise => is(Kind::Kernel),
        Meaning::Create => {
            is(Kind::UserThread(UserThreadKind::Create { thread: of.thread(0)?, origin: of.thread(1)? }))
        }
        Meaning::Origin => is(Kind::UserThread(UserThreadKind::Origin {
            origin: of.thread(0)?,
            name: of.text(1)?,
            file: of.text(2).unwrap_or_default(),
            line: of.thread(3).unwrap_or_default(),
        })),
        Meaning::Rename => {
            is(Kind::UserThread(UserThreadKind::Rename { thread: of.thread(0)?, name: of.text(1)? }))
        }
        Meaning::UserSwitch => is(Kind::UserThread(UserThreadKind::Switch {
            prev: of.thread(0)?,
            next: of.thread(1)?,
            cause: match of.integer(2)? {
                1 => SwitchCause::Ended,
                2 => SwitchCause::Blocked,
                3 => SwitchCause::Yielded,
                4 => SwitchCause::Budget,
                5 => SwitchCause::Preempted,
                6 => SwitchCause::Nested,
                _ => SwitchCause::Unknown,
            },
        })),
        Meaning::Wake => is(Kind::UserThread(UserThreadKind::Wake { thread: of.thread(0)? })),
        Meaning::UserExit => is(Kind::UserThread(UserThreadKind::Exit { thread: of.thread(0)? })),
        Meaning::Acquired => is(Kind::UserThread(UserThreadKind::Acquired)),
        Meaning::Worker => is(Kind::UserThread(UserThreadKind::Worker)),
    }
}

fn number(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => i64::try_from(number).ok(),
        Value::Signed(number, _) | Value::SignedEnumeration(number, _) => Some(number),
        _ => None,
    }
}

/// The kernel gives no number below 0.
#[inline]
fn number_of_thread(number: i64) -> Option<i32> {
    i32::try_from(number).ok().filter(|number| *number >= 0)
}

/// An enumeration's label; empty where it has none.
fn label<'e>(event: &Event<'e>, member: MemberHandle) -> &'e str {
    let label = match event.member(member) {
        Some(Value::UnsignedEnumeration(number, class)) => class.labels(i128::from(number)).next(),
        Some(Value::SignedEnumeration(number, class)) => class.labels(i128::from(number)).next(),
        _ => None,
    };
    label.unwrap_or_default()
}
