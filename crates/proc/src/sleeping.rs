//! `syscall`: the system call that a thread sleeps in (`proc_pid_syscall(5)`).

use std::io::ErrorKind;

use tracewing_units::{Pid, Tid};

/// A system call in which a thread sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleeping {
    /// The call's number, as the instruction that made it counts: not always x86-64's.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// The thread's stack pointer.
    pub stack_pointer: u64,
    /// The address to which the call returns.
    pub returns_to: u64,
}

/// A process may not be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forbidden;

impl Sleeping {
    /// `None` if the thread runs, sleeps in no system call, or has ended.
    ///
    /// # Errors
    /// It may not be looked into.
    pub fn of(pid: Pid, tid: Tid) -> Result<Option<Self>, Forbidden> {
        match crate::read(format!("/proc/{pid}/task/{tid}/syscall")) {
            Ok(bytes) => Ok(str::from_utf8(&bytes).ok().and_then(Self::parse)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(Forbidden),
            Err(_) => Ok(None),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut hexadecimal = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = hexadecimal()?;
        }
        Some(Self { number, arguments, stack_pointer: hexadecimal()?, returns_to: hexadecimal()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_threads_name_their_call() {
        let text = "7 0x7ffe 0x1 0xffffffffffffffff 0x0 0x0 0x0 0x7ffd00 0x7f11\n";
        let found = Sleeping::parse(text).unwrap();
        assert_eq!((found.number, found.arguments[2]), (7, u64::MAX));
        assert_eq!((found.stack_pointer, found.returns_to), (0x7ffd00, 0x7f11));
        for text in ["running\n", "-1 0x7ffd00 0x7f11\n", "", "7 0x1"] {
            assert_eq!(Sleeping::parse(text), None, "{text}");
        }
    }
}
