//! A process as `/proc` shows it: its name, its parent, and whether it is still the same one.

use std::fs;
use std::path::Path;

use tracewing_proc::{Stat, guarded};
use tracewing_rules::Process;
use tracewing_units::Pid;

/// A process that joins, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its process id in the recorder's PID namespace.
    pub pid: Pid,
    /// File name of its executable, or where that is not known the name of its main thread; may be empty.
    pub name: String,
    /// When it began, in the kernel's ticks: process ids come back. 0 where that is not known.
    began: u64,
    /// Where its stack begins: somewhere else once it has executed a file, if only the same one again. 0
    /// where that is unknown.
    stack: u64,
}

impl Program {
    /// The living process with this id.
    pub(crate) fn of(pid: Pid) -> Self {
        let stat = stat(pid);
        let (path, stack) = guarded::program(pid);
        Self {
            pid,
            name: path.as_deref().and_then(file_name).or_else(|| main_thread(pid)).unwrap_or_default(),
            began: stat.as_ref().and_then(Stat::began).unwrap_or(0),
            stack: if stat.is_some() { stack } else { 0 },
        }
    }

    /// A program that has died; only its id was known.
    pub(crate) fn nameless(pid: Pid) -> Self {
        Self { pid, name: String::new(), began: 0, stack: 0 }
    }

    /// As event rules see it.
    pub(crate) fn process(&self) -> Process<'_> {
        Process { pid: self.pid, name: &self.name }
    }

    /// As messages have it.
    pub(crate) fn identity(&self) -> (Pid, String) {
        (self.pid, self.name.clone())
    }

    /// When it began, in the kernel's ticks after boot; 0 where that is not known.
    pub(crate) fn began(&self) -> u64 {
        self.began
    }

    /// Whether the process is still there, and has executed no other file since.
    pub(crate) fn is_alive(&self) -> bool {
        self.began != 0 && *self == Self::of(self.pid)
    }
}

pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    stat(pid)?.parent()
}

fn file_name(executable: &Path) -> Option<String> {
    let name = executable.file_name()?.to_string_lossy();
    // The kernel's words for a file that was replaced.
    Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
}

/// The name of a process's first thread.
pub(crate) fn main_thread(pid: Pid) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// Whether a process is a kernel thread.
pub(crate) fn is_of_kernel(pid: Pid) -> bool {
    stat(pid).and_then(|stat| stat.is_of_kernel()).unwrap_or(false)
}

/// Time since boot in the ticks of [`Program::began`].
pub(crate) fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // `USER_HZ`, the same on all machines on which this runs.
    now.tv_sec.unsigned_abs() * 100 + now.tv_nsec.unsigned_abs() / 10_000_000
}

/// `stat` of a process that lives and is not about to end.
fn stat(pid: Pid) -> Option<Stat> {
    Stat::of(pid).filter(|stat| stat.is_ending() == Some(false) && !stat.has_ended())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::Stdio;

    #[test]
    fn a_process_that_executes_its_file_again_is_another_program() {
        if fs::read_to_string("/proc/sys/kernel/randomize_va_space").is_ok_and(|text| text.trim() == "0") {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Setting("/proc/sys/kernel/randomize_va_space", "2"),
                "address spaces are not randomised here",
            );
        }
        let again = "read line; exec sh -c 'read line'";
        let mut shell = std::process::Command::new("sh");
        let mut child = shell.args(["-c", again]).stdin(Stdio::piped()).spawn().unwrap();
        let begin = std::time::Instant::now();
        let mut program = Program::of(Pid::from_unsigned(child.id()));
        // Until it is the shell.
        while fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap()
            != format!("sh\0-c\0{again}\0")
        {
            assert!(begin.elapsed().as_secs() < 30);
        }
        while !program.is_alive() {
            program = Program::of(Pid::from_unsigned(child.id()));
        }
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        while program.is_alive() {
            assert!(begin.elapsed().as_secs() < 30);
            std::thread::yield_now();
        }
        assert_eq!(Program::of(program.pid).name, program.name);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn processes_are_known_again() {
        let mut cat = std::process::Command::new("cat");
        let mut child = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // A child that answers has finished executing; in the midst of that, its stack lies at several
        // places.
        child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = Pid::from_unsigned(child.id());
        let program = Program::of(pid);
        assert_eq!(
            (program.name.as_str(), parent(pid)),
            ("cat", Some(Pid::from_unsigned(std::process::id())))
        );
        assert!(program.is_alive());
        assert!(!Program { began: program.began - 1, ..program.clone() }.is_alive());
        child.kill().unwrap();
        // Not waited for: it is a zombie now.
        let begin = std::time::Instant::now();
        while program.is_alive() && begin.elapsed().as_secs() < 30 {
            std::thread::yield_now();
        }
        assert!(!program.is_alive());
        child.wait().unwrap();
        assert_eq!(parent(pid), None);
    }
}
