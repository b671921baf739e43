//! Threads and code mappings that existed before the recording of the whole system began, as `/proc` lists
//! them (`proc_pid_maps(5)`). Processes that end in the meantime are left out.

use std::fs;
use std::io::Read;
use std::str::FromStr;

use tracewing_proc::guarded;
use tracewing_programs::image::MapsLine;
use tracewing_units::{Pid, Tid};

use crate::record::{Mapping, Record, Thread};

/// Maximum number of bytes read per process: enough for 65,530 mappings, the kernel's usual limit, with long
/// paths.
const MOST_MAPS: u64 = 16 << 20;

/// All processes.
pub(crate) fn processes() -> Vec<Pid> {
    numbers("/proc")
}

/// The threads of a process; empty if it has ended.
pub(crate) fn threads(pid: Pid) -> Vec<Tid> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Reports the threads and mappings of these processes.
pub(crate) fn report_of(processes: &[Pid], mut each: impl FnMut(&Record<'_>, Thread)) {
    for &pid in processes {
        for tid in threads(pid) {
            let Ok(name) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) else { continue };
            let thread = Thread { pid, tid };
            each(&Record::Name { thread, name: name.trim_ascii_end(), exec: false }, thread);
        }
        let thread = Thread { pid, tid: pid.first_thread() };
        mappings_of(pid, |mapping| each(&Record::Mapping(mapping), thread));
    }
}

/// Reports the mappings of a process.
pub(crate) fn mappings_of(pid: Pid, each: impl FnMut(Mapping<'_>)) {
    let mut maps = Vec::new();
    // What was read before a failure is used.
    let _ = guarded::maps(pid).and_then(|file| file.take(MOST_MAPS).read_to_end(&mut maps));
    let thread = Thread { pid, tid: pid.first_thread() };
    maps.split(|byte| *byte == b'\n').filter_map(|line| mapping(thread, line)).for_each(each);
}

/// A mapping of code.
fn mapping(thread: Thread, line: &[u8]) -> Option<Mapping<'_>> {
    let MapsLine { begin, end, offset, path, .. } = MapsLine::parse(line).filter(MapsLine::is_executable)?;
    let path = if path.is_empty() { b"//anon" } else { path };
    Some(Mapping { thread, begin, end, offset, build_id: &[], path })
}

/// The entries of a directory whose names are numbers.
fn numbers<N: FromStr>(directory: &str) -> Vec<N> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_and_data_is_not() {
        let thread = Thread { pid: Pid(3), tid: Tid(3) };
        let read = |line: &'static [u8]| {
            mapping(thread, line).map(|found| (found.begin, found.end, found.offset, found.path))
        };
        assert_eq!(
            read(b"7f00-7f80 r-xp 00002000 08:01 1234      /lib/a b\xff.so"),
            Some((0x7f00, 0x7f80, 0x2000, &b"/lib/a b\xff.so"[..]))
        );
        assert_eq!(read(b"7f00-7f80 r-xp 00000000 00:00 0 "), Some((0x7f00, 0x7f80, 0, &b"//anon"[..])));
        assert_eq!(read(b"7f00-7f80 rw-p 00000000 00:00 0 [heap]"), None);
        assert_eq!(read(b"nonsense"), None);
    }

    #[test]
    fn this_process_is_there() {
        let own = Pid::from_unsigned(std::process::id());
        let (mut names, mut mappings) = (0, 0);
        report_of(&processes(), |record, thread| match record {
            Record::Name { .. } if thread.pid == own => names += 1,
            Record::Mapping(mapping) if thread.pid == own => {
                let this = this_process_is_there as *const () as u64;
                mappings += usize::from((mapping.begin..mapping.end).contains(&this));
            }
            _ => {}
        });
        assert!(names >= 1);
        assert_eq!(mappings, 1);
    }
}
