//! The objects with which a program starts (`man 8 ld.so`): its executable, what is pre-loaded, and the
//! libraries that these need. They stay until it ends. All others are plug-ins, and may be unloaded.
//!
//! Names are read from the process's memory, since a read of its files could take as long as their file
//! systems like.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use object::elf::{DT_NEEDED, DT_NULL, DT_SONAME, DT_STRTAB, DynamicTag};
use tracewing_units::Pid;

use super::{Image as _, Memory, Object, Process};

/// Maximum number of bytes of a dynamic section, and of a name.
const MOST_DYNAMIC: u64 = 64 << 10;
const MOST_NAME: u64 = 4096;
/// Maximum number of libraries that all objects need.
const MOST_NEEDED: usize = 16 << 10;
/// Maximum size of a list of what is pre-loaded, bytes.
const MOST_PRELOADED: u64 = 4 << 20;

/// What an object is called, and what it needs.
struct Names<'a> {
    path: &'a str,
    /// The name in the object, by which others need it.
    own: Option<String>,
    needed: Vec<String>,
}

/// The paths of those objects of a process with which its program starts. What cannot be read is left out.
pub fn started_with(pid: Pid, process: &Process) -> BTreeSet<&str> {
    let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let preloaded = preloaded(pid);
    let mut room = MOST_NEEDED;
    let objects = process.objects().iter();
    let all: Vec<Names<'_>> = objects.map(|object| Names::of(process, object, &mut room)).collect();
    let is_first = |object: &&Names<'_>| {
        Path::new(object.path) == executable || preloaded.iter().any(|name| object.is_called(name))
    };
    let mut started = BTreeSet::new();
    let mut next: Vec<&Names<'_>> = all.iter().filter(is_first).collect();
    while let Some(object) = next.pop() {
        if started.insert(object.path) {
            let is_needed = |other: &&Names<'_>| object.needed.iter().any(|name| other.is_called(name));
            next.extend(all.iter().filter(is_needed));
        }
    }
    started
}

impl<'a> Names<'a> {
    /// `room`: how many more libraries may be needed.
    fn of(process: &Process, object: &'a Object, room: &mut usize) -> Self {
        let mut this = Self { path: &object.name, own: None, needed: Vec::new() };
        let Some(section) = object.elf.dynamic else { return this };
        let size = section.in_memory.min(MOST_DYNAMIC) as usize;
        let bytes =
            Memory::read(process, section.address.wrapping_add(object.bias), size).unwrap_or_default();
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let entries = bytes.chunks_exact(16).map(|entry| (word(&entry[..8]), word(&entry[8..])));
        let entries: Vec<(DynamicTag, u64)> = entries
            .map(|(tag, value)| (DynamicTag(tag.cast_signed()), value))
            .take_while(|(tag, _)| *tag != DT_NULL)
            .collect();
        let Some((_, strings)) = entries.iter().find(|(tag, _)| *tag == DT_STRTAB) else { return this };
        // The dynamic linker has added the bias, unless it has not come to this object yet.
        let strings = if *strings < object.bias { strings.wrapping_add(object.bias) } else { *strings };
        let name = |offset: u64| text(process, strings.checked_add(offset)?);
        this.own = entries.iter().find(|(tag, _)| *tag == DT_SONAME).and_then(|(_, offset)| name(*offset));
        let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
        this.needed = needed.filter_map(|(_, offset)| name(*offset)).take(*room).collect();
        *room -= this.needed.len();
        this
    }

    /// Whether a name or path means this object.
    fn is_called(&self, name: &str) -> bool {
        let name = file_name(name);
        self.own.as_deref() == Some(name) || file_name(self.path) == name
    }
}

fn text(process: &Process, address: u64) -> Option<String> {
    // The mapping may end before the longest name would.
    let lengths = [64, MOST_NAME, 16].into_iter().filter_map(|length| usize::try_from(length).ok());
    lengths.into_iter().find_map(|length| {
        let bytes = Memory::read(process, address, length)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        String::from_utf8(bytes[..end].to_vec()).ok()
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What `LD_PRELOAD` and `/etc/ld.so.preload` name.
fn preloaded(pid: Pid) -> Vec<String> {
    let read = |path: &str| {
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MOST_PRELOADED).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let environment = read(&format!("/proc/{pid}/environ")).unwrap_or_default();
    let of_program = environment.split('\0').filter_map(|variable| variable.strip_prefix("LD_PRELOAD="));
    let of_machine = read("/etc/ld.so.preload").unwrap_or_default();
    let lists = of_program.chain([of_machine.as_str()]);
    let names = lists.flat_map(|list| list.split(|c: char| c == ':' || c.is_whitespace()));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A shell that waits is linked to the C library; what it is started with is named by its environment.
    #[test]
    fn programs_start_with_what_they_are_linked_to_and_what_is_preloaded() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; read line"]).env("LD_PRELOAD", "libm.so.6");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        let pid = Pid(child.id() as i32);
        let process = Process::open(pid).unwrap();
        let started = started_with(pid, &process);
        let has = |name: &str| started.iter().any(|path| file_name(path).starts_with(name));
        assert!(has("libc.so") && has("libm.so") && has("dash") | has("sh") | has("bash"), "{started:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    /// As long as nothing needs them, libraries are plug-ins.
    #[test]
    fn what_is_not_needed_has_not_started() {
        let names = |path, own: &str, needed: &[&str]| Names {
            path,
            own: Some(own.to_owned()),
            needed: needed.iter().map(|name| (*name).to_owned()).collect(),
        };
        let library = names("/usr/lib/liba.so.1.2", "liba.so.1", &["libb.so.2"]);
        assert!(library.is_called("liba.so.1") && library.is_called("/x/liba.so.1.2"));
        assert!(!library.is_called("liba.so") && !library.is_called("libb.so.2"));
    }
}
