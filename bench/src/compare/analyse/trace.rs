//! A recording of any size: the kernel's events of four CPUs, and those of a program whose worker threads run
//! tasks. Tasks and threads come and go.

use crate::compare::layout::trace_class;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tracewing_ctf::model::{EnumerationClass, FieldClass, IntegerClass, StructureClass, TraceClass};
use tracewing_ctf::tsdl;
use tracewing_ctf::write::{PACKET_HEADER_SIZE, PacketHeader, USER_EVENT_HEADER_SIZE};
use tracewing_units::{Cpu, Cycles};
use tracewing_vocabulary::{environment, kernel, own, user_thread};

const CPUS: usize = 4;
/// Worker threads of each CPU; one has it at a time.
const WORKERS: usize = 4;
/// Tasks that live at a time, of each CPU.
const TASKS: u64 = 1024;
/// About so many events are of one round of a CPU.
const ROUND: u64 = 17;
const PROCESS: i32 = 1000;
/// The first thread of the first CPU.
pub const FIRST_WORKER: &str = "1001";
/// What all tasks have in common.
const ORIGIN: u64 = 1;
/// Bytes of a packet.
const PACKET: usize = 256 << 10;
/// Nanoseconds between two events of a CPU.
const DISTANCE: u64 = 200;

const KERNEL: [&str; 8] = [
    kernel::Switch::NAME,
    kernel::Waking::NAME,
    kernel::Wakeup::NAME,
    "syscall_entry_read",
    "syscall_exit_read",
    "x86_irq_vectors_local_timer_entry",
    "x86_irq_vectors_local_timer_exit",
    kernel::NewTask::NAME,
];
const USER: [&str; 7] = [
    user_thread::Create::NAME,
    user_thread::Switch::NAME,
    user_thread::Wake::NAME,
    user_thread::Exit::NAME,
    "shop:served",
    own::Thread::NAME,
    user_thread::Origin::NAME,
];

#[derive(Default)]
pub struct Made {
    pub events: u64,
    pub switches: u64,
    pub polls: u64,
    pub tasks: u64,
    pub threads: u64,
    pub bytes: u64,
}

/// How fast tasks and threads come and go.
#[derive(Clone, Copy)]
pub struct Lives {
    /// So many rounds of a CPU later, a task ends and another one begins.
    task: u64,
    /// The same of a thread.
    thread: u64,
}

impl Lives {
    /// Very many tasks.
    pub const SHORT: Lives = Lives { task: 8, thread: 4096 };

    /// Of so many events, about so many tasks and threads altogether.
    pub fn of(events: u64, tasks: u64, threads: u64) -> Lives {
        let rounds = events / ROUND;
        Lives { task: (rounds / tasks).max(1), thread: (rounds / threads).max(1) }
    }
}

/// Writes a recording of about so many events.
pub fn make(folder: &Path, events: u64, lives: Lives) -> Result<Made> {
    let mut made = Made::default();
    let mut cpus = Vec::new();
    for (name, uuid, class) in [
        ("kernel", *b"bench kernel tr.", kernel_class as fn([u8; 16]) -> TraceClass),
        ("user", *b"bench user trace", user_class),
    ] {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).context("cannot make the recording")?;
        std::fs::write(folder.join("metadata"), tsdl::print(&class(uuid)))?;
        for cpu in 0..CPUS {
            let file = BufWriter::new(File::create(folder.join(format!("channel_{cpu}")))?);
            cpus.push(Stream {
                file,
                uuid,
                cpu: cpu as u32,
                packet: vec![0; PACKET_HEADER_SIZE],
                begin: 0,
                seq: 0,
            });
        }
    }
    let user = cpus.split_off(CPUS);
    for (cpu, (kernel, user)) in cpus.into_iter().zip(user).enumerate() {
        let mut machine = Machine::new(cpu as u64, lives, kernel, user);
        machine.start()?;
        while machine.made.events < events / CPUS as u64 {
            machine.round()?;
        }
        let part = machine.end()?;
        made.events += part.events;
        made.switches += part.switches;
        made.polls += part.polls;
        made.tasks += part.tasks;
        made.threads += part.threads;
        made.bytes += part.bytes;
    }
    Ok(made)
}

/// One stream of a trace.
struct Stream {
    file: BufWriter<File>,
    uuid: [u8; 16],
    cpu: u32,
    packet: Vec<u8>,
    begin: u64,
    seq: u64,
}

impl Stream {
    fn event(&mut self, stamp: u64, id: usize, tid: i32, payload: &[u8]) -> Result<u64> {
        let mut written = 0;
        let length = USER_EVENT_HEADER_SIZE + 4 + payload.len();
        if self.packet.len() + length > PACKET {
            written = self.flush(stamp)?;
        }
        self.packet.extend((stamp as u32).to_le_bytes());
        self.packet.extend((id as u16).to_le_bytes());
        self.packet.extend((length as u16).to_le_bytes());
        self.packet.extend(tid.to_le_bytes());
        self.packet.extend(payload);
        Ok(written)
    }

    fn flush(&mut self, end: u64) -> Result<u64> {
        let bytes = self.packet.len() as u64;
        let header = PacketHeader {
            uuid: self.uuid,
            stream_id: 0,
            stream_instance_id: self.cpu.into(),
            begin: Cycles(self.begin),
            end: Cycles(end),
            content_bytes: bytes,
            packet_bytes: bytes,
            seq: self.seq,
            discarded: 0,
            cpu: Cpu(self.cpu),
        };
        self.packet[..PACKET_HEADER_SIZE].copy_from_slice(&header.encode());
        self.file.write_all(&self.packet).context("cannot write the recording")?;
        self.packet.truncate(PACKET_HEADER_SIZE);
        (self.begin, self.seq) = (end, self.seq + 1);
        Ok(bytes)
    }
}

/// One CPU with its threads and tasks.
struct Machine {
    kernel: Stream,
    user: Stream,
    now: u64,
    cpu: u64,
    /// Threads by turns: the first has the CPU.
    threads: [i32; WORKERS],
    next_thread: i32,
    lives: Lives,
    rounds: u64,
    made: Made,
}

impl Machine {
    fn new(cpu: u64, lives: Lives, kernel: Stream, user: Stream) -> Self {
        let first = PROCESS + 1 + cpu as i32 * 100_000;
        Machine {
            kernel,
            user,
            now: 1 + cpu,
            cpu,
            threads: std::array::from_fn(|index| first + index as i32),
            next_thread: first + WORKERS as i32,
            lives,
            rounds: 0,
            made: Made { threads: WORKERS as u64, ..Made::default() },
        }
    }

    fn kernel(&mut self, name: &str, payload: &[u8]) -> Result<()> {
        let id = KERNEL.iter().position(|known| *known == name).context("no such event")?;
        self.now += DISTANCE;
        self.made.events += 1;
        self.made.bytes += self.kernel.event(self.now, id, self.threads[0], payload)?;
        Ok(())
    }

    fn user(&mut self, name: &str, payload: &[u8]) -> Result<()> {
        let id = USER.iter().position(|known| *known == name).context("no such event")?;
        self.now += DISTANCE;
        self.made.events += 1;
        self.made.bytes += self.user.event(self.now, id, self.threads[0], payload)?;
        Ok(())
    }

    /// The task of a number that counts from 0 in each CPU.
    fn task(&self, number: u64) -> u64 {
        1 + number * CPUS as u64 + self.cpu
    }

    fn create(&mut self) -> Result<()> {
        let task = self.task(self.made.tasks);
        self.made.tasks += 1;
        self.user(user_thread::Create::NAME, &[task.to_le_bytes(), ORIGIN.to_le_bytes()].concat())
    }

    fn poll(&mut self, prev: u64, next: u64, cause: u8) -> Result<()> {
        self.user(
            user_thread::Switch::NAME,
            &[&prev.to_le_bytes()[..], &next.to_le_bytes(), &[cause]].concat(),
        )
    }

    fn switch(&mut self, state: i64) -> Result<()> {
        let (prev, next) = (self.threads[0], self.threads[1]);
        self.made.switches += 1;
        let payload = [
            &b"worker\0"[..],
            &prev.to_le_bytes(),
            &20_i32.to_le_bytes(),
            &state.to_le_bytes(),
            b"worker\0",
            &next.to_le_bytes(),
            &20_i32.to_le_bytes(),
        ];
        self.kernel(kernel::Switch::NAME, &payload.concat())?;
        self.threads.rotate_left(1);
        Ok(())
    }

    fn woken(&mut self, tid: i32) -> Result<()> {
        let payload = [&b"worker\0"[..], &tid.to_le_bytes(), &20_i32.to_le_bytes()].concat();
        self.kernel(kernel::Waking::NAME, &payload)?;
        self.kernel(kernel::Wakeup::NAME, &payload)
    }

    fn introduce(&mut self) -> Result<()> {
        self.user(own::Thread::NAME, &[&PROCESS.to_le_bytes()[..], b"worker\0"].concat())
    }

    fn start(&mut self) -> Result<()> {
        for _ in 0..WORKERS {
            self.introduce()?;
            self.switch(0)?;
        }
        self.user(user_thread::Origin::NAME, &[&ORIGIN.to_le_bytes()[..], b"serve\0"].concat())?;
        (0..TASKS).try_for_each(|_| self.create())
    }

    /// A thread polls a task, which reads: it sleeps, and the next thread polls another one meanwhile.
    fn round(&mut self) -> Result<()> {
        self.rounds += 1;
        let oldest = self.made.tasks - TASKS;
        let task = self.task(oldest + 1 + self.rounds % (TASKS - 1));
        self.user(user_thread::Wake::NAME, &task.to_le_bytes())?;
        self.poll(0, task, 0)?;
        self.made.polls += 1;
        self.user("shop:served", &self.rounds.to_le_bytes())?;
        if self.rounds.is_multiple_of(self.lives.task) {
            // The oldest task ends, whichever was polled.
            self.user(user_thread::Exit::NAME, &self.task(oldest).to_le_bytes())?;
            self.create()?;
        }
        self.kernel("syscall_entry_read", &3_u64.to_le_bytes())?;
        self.switch(1)?;
        let slept = self.threads[WORKERS - 1];
        self.kernel("x86_irq_vectors_local_timer_entry", &236_u32.to_le_bytes())?;
        self.woken(slept)?;
        self.kernel("x86_irq_vectors_local_timer_exit", &236_u32.to_le_bytes())?;
        for _ in 1..WORKERS {
            self.switch(0)?;
        }
        self.kernel("syscall_exit_read", &100_i64.to_le_bytes())?;
        self.poll(task, 0, 2)?;
        if self.rounds.is_multiple_of(self.lives.thread) {
            self.replace_a_thread()?;
        }
        Ok(())
    }

    fn replace_a_thread(&mut self) -> Result<()> {
        let child = self.next_thread;
        self.next_thread += 1;
        self.made.threads += 1;
        let payload = [&child.to_le_bytes()[..], b"worker\0", &0x10000_u64.to_le_bytes()].concat();
        self.kernel(kernel::NewTask::NAME, &payload)?;
        self.woken(child)?;
        self.switch(0x20)?;
        // The one that is gone was the last in turn.
        self.threads[WORKERS - 1] = child;
        Ok(())
    }

    fn end(mut self) -> Result<Made> {
        self.made.bytes += self.kernel.flush(self.now)?;
        self.made.bytes += self.user.flush(self.now)?;
        self.kernel.file.flush()?;
        self.user.file.flush()?;
        Ok(self.made)
    }
}

fn number(bits: u32) -> FieldClass {
    FieldClass::unsigned(bits)
}

fn kernel_class(uuid: [u8; 16]) -> TraceClass {
    let id = || FieldClass::signed(32);
    let comm = || FieldClass::string();
    let fields = |name: &str| match name {
        kernel::Switch::NAME => StructureClass::new()
            .with(kernel::Switch::prev_comm.name, comm())
            .with(kernel::Switch::prev_tid.name, id())
            .with("prev_prio", id())
            .with(kernel::Switch::prev_state.name, FieldClass::signed(64))
            .with(kernel::Switch::next_comm.name, comm())
            .with(kernel::Switch::next_tid.name, id())
            .with("next_prio", id()),
        kernel::Waking::NAME | kernel::Wakeup::NAME => StructureClass::new()
            .with(kernel::Waking::comm.name, comm())
            .with(kernel::Waking::tid.name, id())
            .with("prio", id()),
        kernel::NewTask::NAME => StructureClass::new()
            .with(kernel::NewTask::tid.name, id())
            .with("comm", comm())
            .with(kernel::NewTask::clone_flags.name, number(64)),
        "syscall_entry_read" => StructureClass::new().with("fd", number(64)),
        "syscall_exit_read" => StructureClass::new().with("ret", FieldClass::signed(64)),
        _ => StructureClass::new().with("vector", number(32)),
    };
    let mut class = trace_class(uuid, KERNEL.map(|name| (name, fields(name))).to_vec());
    class.set_env(environment::DOMAIN, environment::KERNEL);
    class
}

fn user_class(uuid: [u8; 16]) -> TraceClass {
    let causes = ["none", "ended", "blocked", "yielded"];
    let cause = causes
        .iter()
        .enumerate()
        .fold(EnumerationClass::new(IntegerClass::unsigned(8)), |class, (value, label)| {
            class.with(*label, value as i128, value as i128)
        });
    let fields = |name: &str| match name {
        user_thread::Create::NAME => StructureClass::new()
            .with(user_thread::Create::thread.name, number(64))
            .with(user_thread::Create::origin.name, number(64)),
        user_thread::Origin::NAME => StructureClass::new()
            .with(user_thread::Origin::origin.name, number(64))
            .with(user_thread::Origin::name.name, FieldClass::string()),
        user_thread::Switch::NAME => StructureClass::new()
            .with(user_thread::Switch::prev.name, number(64))
            .with(user_thread::Switch::next.name, number(64))
            .with(user_thread::Switch::cause.name, cause.clone()),
        own::Thread::NAME => StructureClass::new()
            .with(own::Thread::pid.name, FieldClass::signed(32))
            .with(own::Thread::name.name, FieldClass::string()),
        "shop:served" => StructureClass::new().with("order", number(64)),
        _ => StructureClass::new().with(user_thread::Wake::thread.name, number(64)),
    };
    let mut class = trace_class(uuid, USER.map(|name| (name, fields(name))).to_vec());
    class.set_env(environment::DOMAIN, "ust");
    class
}
