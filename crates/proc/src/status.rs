//! `status`: a line `NAME:\tVALUE` for each field (`proc_pid_status(5)`).

use std::path::Path;
use std::str::FromStr;

use tracewing_units::{Pid, Tid};

/// What a process or thread reports about itself in `status`.
#[derive(Debug, Clone)]
pub struct Status(Vec<u8>);

impl Status {
    /// That of a process, or of a thread under its own number. `None` if there is none.
    pub fn of(pid: Pid) -> Option<Self> {
        Self::read(format!("/proc/{pid}/status"))
    }

    /// That of a thread. `None` if there is none.
    pub fn of_thread(pid: Pid, tid: Tid) -> Option<Self> {
        Self::read(format!("/proc/{pid}/task/{tid}/status"))
    }

    /// That of the calling process.
    pub fn own() -> Option<Self> {
        Self::read("/proc/self/status")
    }

    /// From a file, such as one in a folder of `/proc` that is held open.
    pub fn read(path: impl AsRef<Path>) -> Option<Self> {
        crate::read(path).ok().map(Self)
    }

    /// A field's value, without the space around it.
    pub fn field(&self, name: &str) -> Option<&str> {
        // The kernel escapes line breaks in names.
        let mut lines = self.0.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"))?;
        Some(str::from_utf8(value).ok()?.trim())
    }

    /// A field that is one number.
    pub fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.field(name)?.parse().ok()
    }

    /// A field that is a set of bits.
    pub fn set(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name)?, 16).ok()
    }

    /// `R`, `S`, `D`, `T` (stopped), `t` (stopped by a tracer), `Z`, `X`.
    pub fn state(&self) -> Option<u8> {
        self.field("State")?.bytes().next()
    }

    /// The process that a thread belongs to.
    pub fn process(&self) -> Option<Pid> {
        self.number("Tgid")
    }

    /// The process's parent; 0 if it is outside of this PID namespace.
    pub fn parent(&self) -> Option<Pid> {
        self.number("PPid")
    }

    /// The thread that traces this one.
    pub fn tracer(&self) -> Option<Tid> {
        self.number("TracerPid").filter(|tracer| *tracer != Tid(0))
    }

    /// Real, effective, saved and file system user.
    pub fn users(&self) -> Option<[u32; 4]> {
        self.four("Uid")
    }

    /// Real, effective, saved and file system group.
    pub fn groups(&self) -> Option<[u32; 4]> {
        self.four("Gid")
    }

    fn four(&self, name: &str) -> Option<[u32; 4]> {
        let mut numbers = self.field(name)?.split_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some([next()?, next()?, next()?, next()?])
    }

    /// The thread's numbers, from the outermost PID namespace that can be seen to its own.
    pub fn numbers(&self) -> Option<impl Iterator<Item = i32>> {
        Some(self.field("NSpid")?.split_ascii_whitespace().filter_map(|number| number.parse().ok()))
    }

    /// Whether the thread has seccomp filters, or is in seccomp's strict mode.
    pub fn is_filtered(&self) -> bool {
        self.number("Seccomp").is_some_and(|mode: u32| mode != 0)
    }

    /// How many seccomp filters the thread has. Kernels before 5.9 show only whether there are any.
    pub fn filters(&self) -> u32 {
        if self.is_filtered() { self.number("Seccomp_filters").unwrap_or(1).max(1) } else { 0 }
    }

    /// How often the thread has left a CPU.
    pub fn switches(&self) -> Option<u64> {
        let count = |name| self.number::<u64>(name);
        count("voluntary_ctxt_switches")?.checked_add(count("nonvoluntary_ctxt_switches")?)
    }

    /// Whether a signal that the thread does not block waits for it, or for any thread of its process.
    pub fn is_signalled(&self) -> bool {
        let set = |name| self.set(name).unwrap_or(0);
        (set("SigPnd") | set("ShdPnd")) & !set("SigBlk") != 0
    }

    /// Signals for which the process has handlers, the first one in the lowest bit.
    pub fn caught(&self) -> u64 {
        self.set("SigCgt").unwrap_or(0)
    }

    /// Whether it has memory; kernel threads have none.
    pub fn has_memory(&self) -> bool {
        self.field("VmSize").is_some()
    }

    /// Whether the processor protects the thread's return addresses.
    pub fn has_shadow_stack(&self) -> bool {
        self.field("x86_Thread_features").is_some_and(|features| features.contains("shstk"))
    }
}

impl From<&str> for Status {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let status = Status::from(
            "Name:\ta\\nState: Z\nState:\tS (sleeping)\nTgid:\t5\nPPid:\t7\nTracerPid:\t9\nUid:\t1\t2\t3\t4\n\
             NSpid:\t4711\t12\t1\nNSpgid:\t3\nVmSize:\t1 kB\nSigPnd:\t0000000000000001\n\
             ShdPnd:\t0000000000000002\nSigBlk:\t0000000000000003\nSigCgt:\t8000000000000006\n\
             x86_Thread_features:\tshstk\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n",
        );
        assert_eq!(status.state(), Some(b'S'));
        assert_eq!(
            (status.process(), status.parent(), status.tracer()),
            (Some(Pid(5)), Some(Pid(7)), Some(Tid(9)))
        );
        assert_eq!(status.users(), Some([1, 2, 3, 4]));
        assert!(status.numbers().unwrap().eq([4711, 12, 1]));
        assert_eq!((status.caught(), status.switches()), (1 << 63 | 6, Some(7)));
        assert!(status.has_memory() && status.has_shadow_stack() && !status.is_signalled());
        assert!(Status::from("SigPnd:\t2\nShdPnd:\t4\nSigBlk:\t2\n").is_signalled());
    }

    #[test]
    fn what_is_not_shown_is_unknown() {
        let status = Status::from("Name:\tState:\nTracerPid:\t0\nUid:\t1\t2\t3\n");
        assert_eq!(
            (status.state(), status.process(), status.tracer(), status.users()),
            (None, None, None, None)
        );
        assert_eq!((status.switches(), status.filters()), (None, 0));
        assert!(!status.has_memory() && !status.has_shadow_stack() && status.numbers().is_none());
        assert!(Status::of(Pid(-1)).is_none());
    }

    #[test]
    fn a_name_is_any_bytes() {
        let status = Status(b"Name:\tM\xfcller\nTgid:\t5\n".to_vec());
        assert_eq!((status.field("Name"), status.process()), (None, Some(Pid(5))));
    }

    #[test]
    fn filters_are_counted() {
        let filters = |text| Status::from(text).filters();
        assert_eq!(filters("Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n"), 0);
        assert_eq!(filters("Seccomp:\t2\nSeccomp_filters:\t3\n"), 3);
        assert_eq!(filters("Seccomp:\t2\n"), 1);
        assert_eq!(filters("Seccomp:\t1\nSeccomp_filters:\t0\n"), 1);
    }

    #[test]
    fn the_calling_thread_is_shown() {
        let own = Status::own().unwrap();
        assert_eq!(own.process(), Some(Pid::from_unsigned(std::process::id())));
        assert!(own.has_memory() && own.switches().is_some() && own.users().is_some());
    }
}
