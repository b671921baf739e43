//! `/proc/PID/status` and `/proc/PID/task/TID/syscall` (Linux, Documentation/filesystems/proc.rst).

use std::fs::{self, File};
use std::io::{ErrorKind, Read};

/// What a process or thread reports of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// `R`, `S`, `D`, `T` (stopped), `t` (stopped by a tracer), `Z`, `X`.
    pub state: u8,
    /// The process that a thread belongs to.
    pub process: i32,
    /// Thread id of its tracer; 0: none.
    pub tracer: i32,
    /// Process id of its parent.
    pub parent: i32,
    /// Real, effective and saved user.
    pub users: [u32; 3],
    /// Seccomp: 0 none, 1 strict, 2 filter.
    pub seccomp: u32,
    /// Signals that wait for this thread or for any of the process, and those that are blocked.
    pub pending: u64,
    /// Signals that it blocks, and those that its process has handlers for.
    pub blocked: u64,
    /// See `blocked`.
    pub caught: u64,
    /// Whether it has memory; threads of the kernel have none.
    pub has_memory: bool,
    /// Whether return addresses are protected by the processor (shadow stacks).
    pub has_shadow_stack: bool,
}

impl Status {
    /// `None` where there is no such process or thread.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        Self::of(&format!("/proc/{pid}/status"))
    }

    /// The same of one of its threads.
    pub(crate) fn of_thread(pid: i32, tid: i32) -> Option<Self> {
        Self::of(&format!("/proc/{pid}/task/{tid}/status"))
    }

    /// With as few system calls as possible: a thread may be stopped meanwhile.
    fn of(path: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(4096);
        File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
        Some(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Self {
        let mut status = Self::default();
        // The kernel escapes line breaks in names.
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = str::from_utf8(line) else { continue };
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let signals = || u64::from_str_radix(value, 16).unwrap_or(0);
            match key {
                "State" => status.state = value.bytes().next().unwrap_or(0),
                "Tgid" => status.process = value.parse().unwrap_or(0),
                "TracerPid" => status.tracer = value.parse().unwrap_or(0),
                "PPid" => status.parent = value.parse().unwrap_or(0),
                "Uid" => {
                    let users = value.split_whitespace().filter_map(|user| user.parse().ok());
                    status.users.iter_mut().zip(users).for_each(|(place, user)| *place = user);
                }
                "Seccomp" => status.seccomp = value.parse().unwrap_or(0),
                "SigPnd" | "ShdPnd" => status.pending |= signals(),
                "SigBlk" => status.blocked = signals(),
                "SigCgt" => status.caught = signals(),
                "VmSize" => status.has_memory = true,
                "x86_Thread_features" => status.has_shadow_stack = value.contains("shstk"),
                _ => {}
            }
        }
        status
    }
}

/// A system call in which a thread sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sleeping {
    pub number: i64,
    pub arguments: [u64; 6],
    pub stack_pointer: u64,
}

/// The system call in which a thread sleeps; `None` where it runs, or has ended.
///
/// # Errors
/// It may not be looked into.
pub(crate) fn sleeping(pid: i32, tid: i32) -> Result<Option<Sleeping>, Forbidden> {
    match fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")) {
        Ok(text) => Ok(parse_syscall(&text)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(Forbidden),
        Err(_) => Ok(None),
    }
}

/// A process may not be looked into.
#[derive(Debug)]
pub(crate) struct Forbidden;

fn parse_syscall(text: &str) -> Option<Sleeping> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let mut hexadecimal = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = hexadecimal()?;
    }
    Some(Sleeping { number, arguments, stack_pointer: hexadecimal()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read() {
        let text = "Name:\ta\\nState: Z\nState:\tS (sleeping)\nTgid:\t5\nPPid:\t7\nTracerPid:\t9\nUid:\t1\t2\t3\t4\nSeccomp:\t2\n\
                    SigPnd:\t0000000000000001\nShdPnd:\t0000000000000002\nSigBlk:\t8000000000000000\nSigCgt:\t0000000000000006\nVmSize:\t1 kB\n";
        let expected = Status {
            state: b'S',
            process: 5,
            tracer: 9,
            parent: 7,
            users: [1, 2, 3],
            seccomp: 2,
            pending: 3,
            blocked: 1 << 63,
            caught: 6,
            has_memory: true,
            has_shadow_stack: false,
        };
        assert_eq!(Status::parse(text.as_bytes()), expected);
    }

    #[test]
    fn sleeping_threads_name_their_call() {
        let text = "7 0x7ffe 0x1 0xffffffffffffffff 0x0 0x0 0x0 0x7ffd00 0x7f11\n";
        let found = parse_syscall(text).unwrap();
        assert_eq!((found.number, found.arguments[2], found.stack_pointer), (7, u64::MAX, 0x7ffd00));
        for text in ["running\n", "-1 0x7ffd00 0x7f11\n", "", "7 0x1"] {
            assert_eq!(parse_syscall(text), None, "{text}");
        }
    }
}
