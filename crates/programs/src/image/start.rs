//! The objects with which a program starts: its executable, and the libraries that it needs (`DT_NEEDED`).
//! They stay until it ends. All others may be plug-ins, and be unloaded: also what is pre-loaded, of which
//! only the environment says so.
//!
//! Names are read from the process's memory, and are its own word. So a name that two objects answer to means
//! neither of them, and all names together have a limit.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use object::elf::{DT_NEEDED, DT_NULL, DT_SONAME, DT_STRTAB, DynamicTag};

use super::{Image as _, Memory, Object, Process};

/// Maximum number of bytes of a dynamic section, and of a name.
const MOST_DYNAMIC: u64 = 64 << 10;
const MOST_NAME: usize = 256;
/// Maximum number of names that are read, of all objects together.
const MOST_NAMES: usize = 4096;

/// What an object is called, and what it needs.
#[derive(Default)]
struct Names {
    /// The name in the object, by which others need it.
    own: Option<String>,
    needed: Vec<String>,
}

/// The objects of a process with which its program starts, by their index; the first one is its executable,
/// as `/proc/PID/exe` has it. What cannot be read is left out.
pub fn started_with(executable: &Path, process: &Process) -> BTreeSet<usize> {
    let objects = process.objects();
    let mut room = MOST_NAMES;
    let all: Vec<Names> = objects.iter().map(|object| Names::of(process, object, &mut room)).collect();
    let paths: Vec<&str> = objects.iter().map(|object| object.name.as_str()).collect();
    let first = (0..objects.len()).filter(|object| Path::new(paths[*object]) == executable);
    closure(&paths, &all, first.collect())
}

/// Those objects that the first ones need, and all that these need.
fn closure(paths: &[&str], all: &[Names], first: Vec<usize>) -> BTreeSet<usize> {
    // `None`: more than one has the name.
    let mut by_name: HashMap<&str, Option<usize>> = HashMap::new();
    for (object, (path, names)) in paths.iter().zip(all).enumerate() {
        let own = names.own.as_deref();
        for name in own.into_iter().chain(Some(file_name(path)).filter(|name| own != Some(*name))) {
            by_name.entry(name).and_modify(|only| *only = None).or_insert(Some(object));
        }
    }
    let mut started: BTreeSet<usize> = first.iter().copied().collect();
    let mut next = first;
    while let Some(object) = next.pop() {
        let needed = all[object].needed.iter();
        let needed = needed.filter_map(|name| by_name.get(file_name(name)).copied().flatten());
        next.extend(needed.filter(|object| started.insert(*object)));
    }
    started
}

impl Names {
    /// `room`: how many more names may be read.
    fn of(process: &Process, object: &Object, room: &mut usize) -> Self {
        let Some(section) = object.elf.dynamic else { return Self::default() };
        let size = section.in_memory.min(MOST_DYNAMIC) as usize;
        let begin = section.address.wrapping_add(object.bias);
        let bytes = Memory::read(process, begin, size).unwrap_or_default();
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let entries = bytes.chunks_exact(16).map(|entry| (word(&entry[..8]), word(&entry[8..])));
        let entries: Vec<(DynamicTag, u64)> = entries
            .map(|(tag, value)| (DynamicTag(tag.cast_signed()), value))
            .take_while(|(tag, _)| *tag != DT_NULL)
            .collect();
        let of = |wanted| entries.iter().filter(move |(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let Some(strings) = of(DT_STRTAB).next() else { return Self::default() };
        // The dynamic linker has added the bias, unless it has not come to this object yet.
        let strings = if strings < object.bias { strings.wrapping_add(object.bias) } else { strings };
        let mut name = |offset: u64| {
            *room = room.checked_sub(1)?;
            text(process, strings.checked_add(offset)?)
        };
        let own = of(DT_SONAME).next().and_then(&mut name);
        Self { own, needed: of(DT_NEEDED).filter_map(&mut name).collect() }
    }
}

fn text(process: &Process, address: u64) -> Option<String> {
    // The mapping may end before the longest name would.
    [MOST_NAME, 16].into_iter().find_map(|length| {
        let bytes = Memory::read(process, address, length)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        String::from_utf8(bytes[..end].to_vec()).ok()
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};
    use tracewing_units::Pid;

    /// What is pre-loaded is there, as a plug-in is.
    #[test]
    fn programs_start_with_what_they_are_linked_to_and_nothing_else() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; read line"]).env("LD_PRELOAD", "libm.so.6");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        let pid = Pid(child.id() as i32);
        let process = Process::open(pid).unwrap();
        let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        let started = started_with(&executable, &process);
        drop(child.stdin.take());
        child.wait().unwrap();
        let names: Vec<&str> = process.objects().iter().map(|object| object.name.as_str()).collect();
        let find = |part: &str| names.iter().position(|name| name.contains(part)).unwrap();
        assert!(started.contains(&find("/libc.so")), "{names:?}, {started:?}");
        assert!(started.contains(&find(executable.to_str().unwrap())), "{names:?}, {started:?}");
        assert!(!started.contains(&find("/libm.so")), "{names:?}, {started:?}");
    }

    #[test]
    fn names_that_two_objects_have_mean_neither() {
        let names = |own: Option<&str>, needed: &[&str]| Names {
            own: own.map(str::to_owned),
            needed: needed.iter().map(|name| (*name).to_owned()).collect(),
        };
        let paths = ["/bin/x", "/lib/liba.so.1.2", "/lib/libb.so", "/plugins/libb.so", "/lib/libc.so"];
        let all = [
            names(None, &["liba.so.1", "libb.so", "missing.so"]),
            names(Some("liba.so.1"), &["/lib/libc.so", "liba.so.1"]),
            names(None, &[]),
            names(None, &[]),
            names(Some("libc.so"), &["liba.so.1"]),
        ];
        assert_eq!(closure(&paths, &all, vec![0]), BTreeSet::from([0, 1, 4]));
        assert_eq!(closure(&paths, &all, Vec::new()), BTreeSet::new());
    }
}
