//! Makes recordings that are well-formed but nonsensical: of every class that is interpreted, with random
//! numbers, names and times, most of them at the ends of their ranges or so few that events collide.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;
use tracewing_ctf::model::{
    ClockClass, DataStreamClass, EnumerationClass, EventRecordClass, FieldClass, IntegerClass,
    StructureClass, TraceClass,
};
use tracewing_ctf::{tsdl, write};
use tracewing_units::{Cpu, Cycles};

/// Cycles a second, so a cycle is a nanosecond.
const FREQUENCY: u64 = 1_000_000_000;

/// A type of fields: `Int` bits and sign, or what its name says.
#[derive(Debug, Clone, Copy)]
enum Type {
    Unsigned(u32),
    Signed(u32),
    Text,
    /// An enumeration of a byte, with some labels.
    Kind,
    /// A sequence of addresses.
    Chain,
}

use Type::{Chain, Kind, Signed, Text, Unsigned};

type Schema = &'static [(&'static str, &'static [(&'static str, Type)])];

const KERNEL: Schema = &[
    (
        "sched_switch",
        &[
            ("prev_comm", Text),
            ("prev_tid", Signed(32)),
            ("prev_prio", Signed(32)),
            ("prev_state", Signed(64)),
            ("next_comm", Text),
            ("next_tid", Signed(32)),
            ("next_prio", Signed(32)),
        ],
    ),
    (
        "sched_waking",
        &[("comm", Text), ("tid", Signed(32)), ("prio", Signed(32)), ("target_cpu", Signed(32))],
    ),
    (
        "sched_wakeup",
        &[("comm", Text), ("tid", Signed(32)), ("prio", Signed(32)), ("target_cpu", Signed(32))],
    ),
    ("sched_wakeup_new", &[("comm", Text), ("tid", Signed(32))]),
    (
        "sched_process_fork",
        &[("parent_comm", Text), ("parent_tid", Signed(32)), ("child_comm", Text), ("child_tid", Signed(32))],
    ),
    ("task_newtask", &[("tid", Signed(32)), ("comm", Text), ("clone_flags", Unsigned(64))]),
    ("sched_process_exec", &[("filename", Text), ("tid", Signed(32)), ("old_tid", Signed(32))]),
    ("sched_process_exit", &[("comm", Text), ("tid", Signed(32))]),
    (
        "lttng_statedump_process_state",
        &[("tid", Signed(32)), ("pid", Signed(32)), ("name", Text), ("type", Signed(32))],
    ),
    ("irq_handler_entry", &[("irq", Signed(32)), ("name", Text)]),
    ("irq_handler_exit", &[("irq", Signed(32)), ("ret", Signed(32))]),
    ("irq_softirq_entry", &[("vec", Unsigned(32))]),
    ("irq_softirq_exit", &[("vec", Unsigned(32))]),
    ("irq_softirq_raise", &[("vec", Unsigned(32))]),
    ("x86_irq_vectors_local_timer_entry", &[("vector", Signed(32))]),
    ("x86_irq_vectors_local_timer_exit", &[("vector", Signed(32))]),
    ("x86_exceptions_page_fault_user", &[("address", Unsigned(64))]),
    ("x86_exceptions_page_fault_kernel", &[("address", Unsigned(64))]),
    ("sock_send_length", &[("sk", Unsigned(64)), ("ret", Signed(32))]),
    ("sock_recv_length", &[("sk", Unsigned(64)), ("ret", Signed(32))]),
    ("contention_begin", &[("lock_addr", Unsigned(64)), ("flags", Unsigned(32))]),
    ("contention_end", &[("lock_addr", Unsigned(64)), ("ret", Signed(32))]),
    ("syscall_entry_futex", &[("uaddr", Unsigned(64)), ("op", Unsigned(64)), ("val", Unsigned(64))]),
    ("syscall_exit_futex", &[("ret", Signed(64))]),
    ("syscall_entry_read", &[("fd", Unsigned(64)), ("count", Unsigned(64))]),
    ("syscall_exit_read", &[("ret", Signed(64))]),
    ("syscall_entry_clone", &[("flags", Unsigned(64))]),
    ("syscall_exit_clone", &[("ret", Signed(64))]),
    ("syscall_entry_exit_group", &[("code", Signed(64))]),
    ("tracewing_statedump_asleep", &[("tid", Signed(32)), ("system_call", Text)]),
    ("probe", &[("ip", Unsigned(64))]),
    ("probe%return", &[("ip", Unsigned(64)), ("func", Unsigned(64))]),
];

const TICKETED: &[(&str, Type)] = &[
    ("kind", Kind),
    ("object", Unsigned(64)),
    ("ticket", Unsigned(64)),
    ("origin", Unsigned(64)),
    ("waited", Unsigned(8)),
];

const USER: Schema = &[
    ("tracewing:thread", &[("pid", Signed(32)), ("name", Text)]),
    ("tracewing:known_thread", &[("tid", Signed(32)), ("pid", Signed(32)), ("name", Text)]),
    (
        "tracewing:thread_context",
        &[
            ("tid", Signed(32)),
            ("pid", Signed(32)),
            ("since", Unsigned(64)),
            ("process", Text),
            ("uid", Unsigned(32)),
        ],
    ),
    ("user_thread:create", &[("thread", Unsigned(64)), ("origin", Unsigned(64))]),
    ("user_thread:origin", &[("origin", Unsigned(64)), ("name", Text)]),
    ("user_thread:existed", &[("thread", Unsigned(64)), ("origin", Unsigned(64))]),
    ("user_thread:name", &[("thread", Unsigned(64)), ("name", Text)]),
    ("user_thread:switch", &[("prev", Unsigned(64)), ("next", Unsigned(64)), ("cause", Kind)]),
    ("user_thread:wake", &[("thread", Unsigned(64))]),
    ("user_thread:exit", &[("thread", Unsigned(64)), ("outcome", Kind)]),
    ("user_thread:wait", &[("kind", Kind), ("object", Unsigned(64))]),
    ("user_thread:acquired", &[("kind", Kind), ("object", Unsigned(64))]),
    ("user_thread:released", &[("kind", Kind), ("object", Unsigned(64))]),
    // With tickets, as they are recorded today; those above are of older recordings.
    (
        "user_thread:origin",
        &[("origin", Unsigned(64)), ("name", Text), ("file", Text), ("line", Unsigned(32))],
    ),
    (
        "user_thread:wait",
        &[("kind", Kind), ("object", Unsigned(64)), ("ticket", Unsigned(64)), ("origin", Unsigned(64))],
    ),
    ("user_thread:acquired", TICKETED),
    ("user_thread:given_up", TICKETED),
    ("user_thread:released", &[("kind", Kind), ("object", Unsigned(64)), ("ticket", Unsigned(64))]),
    ("user_thread:worker", &[("index", Unsigned(64))]),
    ("user_thread:park", &[]),
    ("user_thread:unpark", &[]),
    (
        "lock:requested",
        &[("lock", Unsigned(64)), ("caller", Unsigned(64)), ("kind", Kind), ("owner", Signed(32))],
    ),
    (
        "lock:acquired",
        &[("lock", Unsigned(64)), ("caller", Unsigned(64)), ("kind", Kind), ("waited", Unsigned(8))],
    ),
    (
        "lock:refused",
        &[("lock", Unsigned(64)), ("caller", Unsigned(64)), ("kind", Kind), ("error", Signed(32))],
    ),
    ("lock:released", &[("lock", Unsigned(64))]),
    ("lock:not_released", &[("lock", Unsigned(64)), ("error", Signed(32))]),
    ("lock:condition_wait", &[("condition", Unsigned(64)), ("lock", Unsigned(64)), ("caller", Unsigned(64))]),
    ("lock:condition_woken", &[("condition", Unsigned(64)), ("lock", Unsigned(64))]),
    ("lock:barrier_wait", &[("barrier", Unsigned(64)), ("caller", Unsigned(64))]),
    ("lock:barrier_passed", &[("barrier", Unsigned(64))]),
    ("lock:called_from", &[("chain", Unsigned(64))]),
    ("lock:call_chain", &[("chain", Unsigned(64)), ("frames", Chain)]),
    ("lock:image", &[("begin", Unsigned(64)), ("end", Unsigned(64)), ("bias", Unsigned(64)), ("path", Text)]),
    ("lock:spun", &[("spins", Unsigned(64))]),
    ("lock:place", &[("caller", Unsigned(64)), ("file", Text), ("line", Unsigned(32))]),
    ("lock:shadowed", &[("function", Text), ("path", Text)]),
    ("function:entry", &[("function", Unsigned(64))]),
    ("function:exit", &[("function", Unsigned(64))]),
    ("function:entry:main", &[]),
    ("function:exit:main", &[]),
    ("function:not_followed", &[]),
    (
        "function:image",
        &[("begin", Unsigned(64)), ("end", Unsigned(64)), ("bias", Unsigned(64)), ("path", Text)],
    ),
    ("shop:work_begin", &[("span", Unsigned(64)), ("parent", Unsigned(64))]),
    ("shop:work_end", &[("span", Unsigned(64))]),
    ("shop:note", &[("n", Signed(64)), ("text", Text)]),
];

const PROFILE: Schema = &[
    (
        "profile:sample",
        &[("ip", Unsigned(64)), ("period", Unsigned(64)), ("mode", Kind), ("kernel", Chain), ("user", Chain)],
    ),
    (
        "profile:mapping",
        &[
            ("begin", Unsigned(64)),
            ("end", Unsigned(64)),
            ("offset", Unsigned(64)),
            ("path", Text),
            ("build_id", Text),
        ],
    ),
    ("profile:thread", &[("name", Text), ("exec", Unsigned(8))]),
    ("profile:fork", &[("child_pid", Signed(32)), ("child_tid", Signed(32))]),
    ("profile:kernel_symbol", &[("begin", Unsigned(64)), ("end", Unsigned(64)), ("name", Text)]),
    ("profile:counters", &[("cycles", Unsigned(64)), ("instructions", Unsigned(64))]),
];

const LABELS: [&str; 6] = ["none", "mutex", "reader", "writer", "blocked", "user"];
const TEXTS: [&[u8]; 9] = [
    b"",
    b"a",
    b"b",
    b"swapper/0",
    b"x\xff\xfe",
    b"\n\"\x1b[31m",
    b"/bin/true",
    b"vdso",
    b"[kernel.kallsyms]",
];

/// Numbers at random, the same ones for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..4).for_each(|_| _ = random.below(2));
        random
    }

    /// By xorshift.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn number(&mut self) -> u64 {
        const ENDS: [u64; 16] = [
            0,
            1,
            0x7f,
            0xff,
            0x100,
            0x1000,
            0x2000,
            0x3000,
            i32::MAX as u64,
            1 << 31,
            u32::MAX as u64,
            1 << 32,
            i64::MAX as u64,
            1 << 63,
            u64::MAX - 1,
            u64::MAX,
        ];
        match self.below(4) {
            0 => ENDS[self.below(ENDS.len())],
            1 => ENDS[self.below(ENDS.len())].wrapping_add(self.below(5) as u64).wrapping_sub(2),
            _ => self.below(6) as u64,
        }
    }
}

fn structure(fields: &[(&str, Type)]) -> StructureClass {
    fields.iter().fold(StructureClass::new(), |class, (name, kind)| match kind {
        Unsigned(bits) => class.with(*name, FieldClass::unsigned(*bits)),
        Signed(bits) => class.with(*name, FieldClass::signed(*bits)),
        Text => class.with(*name, FieldClass::string()),
        Kind => {
            let labelled = LABELS
                .iter()
                .zip(0..)
                .fold(EnumerationClass::new(IntegerClass::unsigned(8)), |class, (label, value)| {
                    class.with(*label, value, value)
                });
            class.with(*name, labelled)
        }
        Chain => {
            let length = format!("_{name}_length");
            class
                .with(length.clone(), FieldClass::unsigned(16))
                .with(*name, FieldClass::sequence(FieldClass::unsigned(64), length.as_str()))
        }
    })
}

fn payload(fields: &[(&str, Type)], random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (_, kind) in fields {
        match kind {
            Unsigned(bits) | Signed(bits) => {
                bytes.extend_from_slice(&random.number().to_le_bytes()[..*bits as usize / 8]);
            }
            Text if random.below(40) == 0 => {
                bytes.resize(bytes.len() + 300, b'w');
                bytes.push(0);
            }
            Text => {
                bytes.extend_from_slice(TEXTS[random.below(TEXTS.len())]);
                bytes.push(0);
            }
            Kind => bytes.push(if random.below(8) == 0 { 255 } else { random.below(12) as u8 }),
            Chain => {
                let length = random.below(5);
                bytes.extend_from_slice(&(length as u16).to_le_bytes());
                (0..length).for_each(|_| bytes.extend_from_slice(&random.number().to_le_bytes()));
            }
        }
    }
    bytes
}

/// `second` is the common context's field after `tid`, if there is one.
fn trace_class(schema: Schema, env: &[(&str, &str)], second: Option<&str>) -> TraceClass {
    let mut class = TraceClass::new();
    for (name, text) in env {
        class.set_env(*name, *text);
    }
    class.clock_classes.push(ClockClass {
        uuid: Some([0xCC; 16]),
        offset_seconds: 1_795_235_140,
        ..ClockClass::new("tsc", FREQUENCY)
    });
    class.packet_header = Some(write::packet_header_class());
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class("tsc"));
    stream.event_header = Some(write::user_event_header_class("tsc"));
    let context = StructureClass::new().with("tid", FieldClass::signed(32));
    stream.common_context = Some(match second {
        Some(name) => context.with(name, FieldClass::signed(32)),
        None => context,
    });
    for (id, (name, fields)) in (0..).zip(schema) {
        stream.event_record_classes.push(EventRecordClass::new(id, *name).with_payload(structure(fields)));
    }
    class.data_stream_classes.push(stream);
    class
}

/// How far a stamp is from the one before. Two of the longest steps lead beyond what nanoseconds since 1970
/// can say.
fn step(random: &mut Random) -> u64 {
    match random.below(240) {
        0..4 => 1 << 33,
        4..7 => 1 << 50,
        7 => 1 << 62,
        8..48 => 0,
        _ => random.below(2000) as u64,
    }
}

fn packet(instance: u64, schema: Schema, has_second: bool, count: usize, random: &mut Random) -> Vec<u8> {
    let mut stamp = random.below(1000) as u64;
    let (begin, mut content) = (stamp, Vec::new());
    for _ in 0..count {
        let id = random.below(schema.len());
        let payload = payload(schema[id].1, random);
        let head = if has_second { 26 } else { 22 };
        stamp = stamp.saturating_add(step(random));
        content.extend_from_slice(&(stamp as u32).to_le_bytes());
        content.extend_from_slice(&write::EXTENDED_ID.to_le_bytes());
        content.extend_from_slice(&((head + payload.len()) as u16).to_le_bytes());
        content.extend_from_slice(&stamp.to_le_bytes());
        content.extend_from_slice(&(id as u16).to_le_bytes());
        for _ in 0..=usize::from(has_second) {
            content.extend_from_slice(&(random.number() as u32).to_le_bytes());
        }
        content.extend_from_slice(&payload);
    }
    let size = (write::PACKET_HEADER_SIZE + content.len()) as u64;
    let header = write::PacketHeader {
        uuid: [0; 16],
        stream_id: 0,
        stream_instance_id: instance,
        begin: Cycles(begin),
        end: Cycles(stamp),
        content_bytes: size,
        packet_bytes: size,
        seq: random.number(),
        discarded: random.number(),
        cpu: Cpu(random.number() as u32),
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(&content);
    bytes
}

/// Writes a recording with events of the kernel, of programs and of the profiler; the same one for the same
/// seed.
pub fn write_recording(folder: &Path, seed: u64) {
    let random = &mut Random::new(seed);
    let kernel: &[(&str, &str)] = match random.below(3) {
        0 => &[("domain", "kernel"), ("tracer_name", "tracewing"), ("scope", "system")],
        1 => &[("domain", "kernel"), ("tracer_name", "tracewing")],
        _ => &[("domain", "kernel")],
    };
    let event = ["cpu-clock", "cycles", ""][random.below(3)];
    let profile: &[(&str, &str)] =
        &[("domain", "profile"), ("profile_event", event), ("profile_counters", "cpu")];
    let traces = [
        ("kernel", KERNEL, kernel, Some("flags"), "channel_"),
        ("user", USER, &[("domain", "ust")][..], None, "uid0_"),
        ("profile", PROFILE, profile, Some("pid"), "cpu_"),
    ];
    for (name, schema, env, second, stream) in traces {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let class = trace_class(schema, env, second);
        std::fs::write(folder.join("metadata"), tsdl::print(&class)).unwrap();
        for instance in 0..2 {
            let count = 20 + random.below(200);
            let bytes = packet(instance, schema, second.is_some(), count, random);
            std::fs::write(folder.join(format!("{stream}{instance}")), bytes).unwrap();
        }
    }
}
