//! `stat`: one line of fields, of which the second is the thread's name (`proc_pid_stat(5)`).

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use tracewing_units::{Cpu, Pid, Tid};

/// Flags of a thread, of the kernel's `linux/sched.h`: it is about to end (`PF_EXITING`), and it is a thread
/// of the kernel (`PF_KTHREAD`).
const ENDING: u64 = 4;
const OF_KERNEL: u64 = 0x20_0000;

/// What the kernel shows about a process or thread in `stat`.
#[derive(Debug, Clone)]
pub struct Stat {
    bytes: Vec<u8>,
    name: Range<usize>,
}

impl Stat {
    /// That of a process. `None` if there is none.
    pub fn of(pid: Pid) -> Option<Self> {
        Self::read(format!("/proc/{pid}/stat"))
    }

    /// That of a thread. `None` if there is none.
    pub fn of_thread(pid: Pid, tid: Tid) -> Option<Self> {
        Self::read(format!("/proc/{pid}/task/{tid}/stat"))
    }

    fn read(path: impl AsRef<Path>) -> Option<Self> {
        Self::parse(crate::read(path).ok()?)
    }

    /// From the file's content.
    pub fn parse(bytes: Vec<u8>) -> Option<Self> {
        // The name may hold anything, parentheses too.
        let begin = bytes.iter().position(|byte| *byte == b'(')? + 1;
        let end = bytes.iter().rposition(|byte| *byte == b')')?;
        (begin <= end).then_some(Self { bytes, name: begin..end })
    }

    /// The thread's name: any bytes.
    pub fn name(&self) -> &[u8] {
        &self.bytes[self.name.clone()]
    }

    /// A field after the name, by its number on the manual page: from 3 on.
    pub fn field<N: FromStr>(&self, number: usize) -> Option<N> {
        const FIRST: usize = 3;
        let rest = str::from_utf8(&self.bytes[self.name.end + 1..]).ok()?;
        rest.split_ascii_whitespace().nth(number.checked_sub(FIRST)?)?.parse().ok()
    }

    /// `R`, `S`, `D`, `T` (stopped), `t` (stopped by a tracer), `Z`, `X`.
    pub fn state(&self) -> Option<char> {
        self.field(3)
    }

    /// The process's parent.
    pub fn parent(&self) -> Option<Pid> {
        self.field(4)
    }

    /// Whether it is a thread of the kernel; `None` if that is not shown.
    pub fn is_of_kernel(&self) -> Option<bool> {
        self.has_flag(OF_KERNEL)
    }

    /// Whether it is about to end; `None` if that is not shown.
    pub fn is_ending(&self) -> Option<bool> {
        self.has_flag(ENDING)
    }

    /// Whether it has ended, and its parent has not waited for it yet.
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), Some('Z' | 'X'))
    }

    fn has_flag(&self, flag: u64) -> Option<bool> {
        Some(self.field::<u64>(9)? & flag != 0)
    }

    /// When it began, in ticks of the kernel after boot, of which a second has 100.
    pub fn began(&self) -> Option<u64> {
        self.field(22)
    }

    /// The CPU that it is on, or was last.
    pub fn cpu(&self) -> Option<Cpu> {
        self.field(39)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, state: char, flags: u64) -> Option<Stat> {
        let between = "0 ".repeat(21 - 9);
        let after = "0 ".repeat(38 - 22);
        Stat::parse(format!("7 ({name}) {state} 5 0 0 0 0 {flags} {between}1234 {after}3 0\n").into_bytes())
    }

    #[test]
    fn fields_are_counted_from_the_last_parenthesis() {
        for name in ["cat", "a) S 1 (b", ") R 9", ""] {
            let stat = stat(name, 'S', OF_KERNEL).unwrap();
            assert_eq!(stat.name(), name.as_bytes());
            assert_eq!((stat.state(), stat.parent()), (Some('S'), Some(Pid(5))), "{name}");
            assert_eq!((stat.began(), stat.cpu()), (Some(1234), Some(Cpu(3))), "{name}");
            assert_eq!(
                (stat.is_of_kernel(), stat.is_ending(), stat.has_ended()),
                (Some(true), Some(false), false)
            );
        }
        let ended = stat("cat", 'Z', ENDING).unwrap();
        assert_eq!(
            (ended.is_of_kernel(), ended.is_ending(), ended.has_ended()),
            (Some(false), Some(true), true)
        );
    }

    #[test]
    fn what_is_not_shown_is_unknown() {
        let cut = Stat::parse(b"7 (cat) S 5".to_vec()).unwrap();
        assert_eq!(
            (cut.began(), cut.cpu(), cut.is_of_kernel(), cut.field::<u64>(1)),
            (None, None, None, None)
        );
        for text in ["", "7 cat S", "7 )cat("] {
            assert!(Stat::parse(text.as_bytes().to_vec()).is_none(), "{text}");
        }
        assert!(Stat::of(Pid(-1)).is_none());
    }

    #[test]
    fn the_calling_thread_is_shown() {
        let own = Stat::of(Pid::from_unsigned(std::process::id())).unwrap();
        assert_eq!((own.is_of_kernel(), own.is_ending(), own.has_ended()), (Some(false), Some(false), false));
        assert!(own.began().is_some_and(|ticks| ticks > 0) && own.cpu().is_some());
    }
}
