//! Follows copies of stacks by the tables in the files that a process has mapped, so that the callers of code
//! without frame pointers are known.
//!
//! What is mapped where is known from the kernel's records and, since those of several CPUs come one CPU
//! after the other, from `/proc/PID/maps` where a record has not been seen yet. A file's tables are read when
//! the first stack leads into it. In code without tables, such as a compiler makes at run time, frame
//! pointers are followed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use tracewing_proc::guarded;
use tracewing_programs::elf::{Section, UnwindTables};
use tracewing_units::Pid;

use crate::events::FRAMES;
use crate::local_file;
use crate::present;
use crate::record::{Mapping, Record, StackCopy};

/// When so many processes are known, or twice as many as lived at the last look, those that have ended are
/// forgotten.
const MOST_PROCESSES: usize = 1 << 10;
/// Bytes of tables that may be held: those of some hundred large programs.
const MOST_BYTES: usize = 1 << 30;
/// The cache knows states of the modules by numbers of 16 bits.
const MOST_CHANGES: u32 = 1 << 15;

type Bytes = Arc<[u8]>;
/// Path and build id, as in a mapping's record.
type FileName = (Vec<u8>, String);

/// The code of all processes that have records.
#[derive(Default)]
pub(crate) struct Unwinding {
    /// A forked one shares what is known of its parent until it is known to have other code.
    processes: HashMap<Pid, Arc<Process>>,
    /// How many of them lived at the last look.
    lived: usize,
    /// `None` if a file has no tables.
    files: HashMap<FileName, Option<Arc<UnwindTables>>>,
    /// Bytes of these tables.
    held: usize,
    /// How to get from a function to its caller, of all processes.
    cache: CacheX86_64,
    /// Since when the cache has grown: how often modules have changed.
    changes: u32,
}

/// The code of a process.
#[derive(Clone, Default)]
struct Process {
    /// By where they begin.
    mappings: BTreeMap<u64, Mapped>,
    unwinder: UnwinderX86_64<Bytes>,
    /// Pages of code that is in no mapping, as far as `/proc` shows.
    unmapped: BTreeSet<u64>,
}

#[derive(Clone)]
struct Mapped {
    end: u64,
    /// In the file.
    offset: u64,
    file: FileName,
    /// Whether its tables have been looked for.
    is_read: bool,
}

impl Unwinding {
    /// Learns from a record what is mapped.
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::Mapping(mapping) => self.process(mapping.thread.pid).map(mapping),
            Record::Name { thread, exec: true, .. } => drop(self.processes.remove(&thread.pid)),
            Record::Fork { parent, child } if parent.pid != child.pid => {
                if let Some(parent) = self.processes.get(&parent.pid).map(Arc::clone) {
                    self.make_room(child.pid, lives);
                    self.processes.insert(child.pid, parent);
                }
            }
            _ => {}
        }
    }

    /// Gives the addresses of a stack: of the function that runs, and where its callers continue, as far as
    /// the copy reaches.
    pub(crate) fn follow(&mut self, pid: Pid, stack: &StackCopy<'_>, frames: &mut Vec<u64>) {
        if self.changes > MOST_CHANGES {
            (self.cache, self.changes) = (CacheX86_64::new(), 0);
        }
        self.make_room(pid, lives);
        // Each round without a result reads one more file, or finds one more page without a mapping.
        for _ in 0..FRAMES {
            frames.clear();
            let process = self.processes.entry(pid).or_default();
            let Some(unknown) = process.follow(stack, &mut self.cache, frames) else { return };
            self.look_for(pid, unknown);
        }
    }

    /// Reads the tables of the file that is mapped at an address.
    fn look_for(&mut self, pid: Pid, address: u64) {
        self.changes += 1;
        let process = Arc::make_mut(self.processes.entry(pid).or_default());
        if process.at(address).is_none() {
            present::mappings_of(pid, |mapping| process.map(&mapping));
        }
        let Some(begin) = process.at(address).map(|(begin, _)| begin) else {
            process.unmapped.insert(page(address));
            return;
        };
        let Some(mapped) = process.mappings.get_mut(&begin) else { return };
        mapped.is_read = true;
        let tables = self.files.entry(mapped.file.clone()).or_insert_with(|| {
            let tables = read(pid, &mapped.file).filter(|tables| tables.bytes() + self.held <= MOST_BYTES)?;
            self.held += tables.bytes();
            Some(tables)
        });
        let module = tables.as_ref().and_then(|tables| module(begin, mapped, tables));
        module.into_iter().for_each(|module| process.unwinder.add_module(module));
    }

    fn process(&mut self, pid: Pid) -> &mut Process {
        self.changes += 1;
        self.make_room(pid, lives);
        Arc::make_mut(self.processes.entry(pid).or_default())
    }

    /// Forgets the processes that have ended if too many are known to add this one. The limit doubles with
    /// those that live, so that each new process costs a fixed number of looks at most.
    fn make_room(&mut self, pid: Pid, mut lives: impl FnMut(Pid) -> bool) {
        let most = MOST_PROCESSES.max(2 * self.lived);
        if self.processes.len() >= most && !self.processes.contains_key(&pid) {
            self.processes.retain(|pid, _| lives(*pid));
            self.lived = self.processes.len();
        }
    }
}

fn lives(pid: Pid) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

impl Process {
    /// Something is mapped, in place of what was there.
    fn map(&mut self, mapping: &Mapping<'_>) {
        let is_same = |mapped: &Mapped| mapped.end == mapping.end && mapped.file.0 == mapping.path;
        if self.mappings.get(&mapping.begin).is_some_and(is_same) {
            return;
        }
        let overlapped: Vec<u64> = self
            .mappings
            .range(..mapping.end)
            .filter(|(_, mapped)| mapped.end > mapping.begin)
            .map(|(begin, _)| *begin)
            .collect();
        for begin in overlapped {
            if self.mappings.remove(&begin).is_some_and(|mapped| mapped.is_read) {
                self.unwinder.remove_module(begin);
            }
        }
        let build_id = mapping.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = (mapping.path.to_vec(), build_id);
        let mapped = Mapped { end: mapping.end, offset: mapping.offset, file, is_read: false };
        self.mappings.insert(mapping.begin, mapped);
        self.unmapped.clear();
    }

    /// What is mapped at an address, and where it begins.
    fn at(&self, address: u64) -> Option<(u64, &Mapped)> {
        let (begin, mapped) = self.mappings.range(..=address).next_back()?;
        (address < mapped.end).then_some((*begin, mapped))
    }

    /// Appends a stack's addresses; returns one whose file has to be read first.
    fn follow(&self, stack: &StackCopy<'_>, cache: &mut CacheX86_64, frames: &mut Vec<u64>) -> Option<u64> {
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(stack.sp).ok_or(())?).map_err(drop)?;
            let word = stack.bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        let registers = UnwindRegsX86_64::new(stack.ip, stack.sp, stack.bp);
        let mut callers = self.unwinder.iter_frames(stack.ip, registers, cache, &mut read);
        // Where a stack cannot be followed further, what was found counts.
        while let Ok(Some(frame)) = callers.next()
            && frames.len() < FRAMES
        {
            frames.push(frame.address());
            let address = FrameAddress::address_for_lookup(frame);
            let is_known = match self.at(address) {
                Some((_, mapped)) => mapped.is_read,
                None => self.unmapped.contains(&page(address)),
            };
            if !is_known {
                return Some(address);
            }
        }
        None
    }
}

fn page(address: u64) -> u64 {
    address >> 12
}

/// The tables of a file as the process sees it; `None` if there are none, or it has been replaced.
fn read(pid: Pid, (path, build_id): &FileName) -> Option<Arc<UnwindTables>> {
    if path == b"[vdso]" {
        return vdso().map(Arc::new);
    }
    let path = Path::new(OsStr::from_bytes(path));
    if !path.is_absolute() {
        return None;
    }
    let in_its_root = guarded::mapped_file(pid, path).ok().and_then(UnwindTables::of_file);
    let tables = in_its_root.or_else(|| UnwindTables::of_file(local_file::open(path)?))?;
    let is_same = build_id.is_empty() || tables.build_id.is_empty() || tables.build_id == *build_id;
    is_same.then(|| Arc::new(tables))
}

/// The tables of the vdso, which is in no file: the kernel maps the same one into all processes, also this.
fn vdso() -> Option<UnwindTables> {
    let mut range = None;
    present::mappings_of(Pid::from_unsigned(std::process::id()), |mapping| {
        if mapping.path == b"[vdso]" {
            range = Some(mapping.begin..mapping.end);
        }
    });
    let range = range?;
    let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
    File::open("/proc/self/mem").and_then(|memory| memory.read_exact_at(&mut bytes, range.start)).ok()?;
    UnwindTables::of_image(&bytes)
}

/// A mapping's code with its tables; `None` if the file does not load that part of it.
fn module(begin: u64, mapped: &Mapped, tables: &UnwindTables) -> Option<Module<Bytes>> {
    let offsets = mapped.offset..mapped.offset.checked_add(mapped.end - begin)?;
    let bias = begin.wrapping_sub(tables.code_address(&offsets)?);
    let addresses = |section: &Option<Section>| Some(section.as_ref()?.addresses.clone());
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: addresses(&tables.text),
        got_svma: addresses(&tables.got),
        eh_frame_svma: Some(tables.frames.addresses.clone()),
        eh_frame: Some(tables.frames.bytes.clone()),
        ..Default::default()
    };
    Some(Module::new(String::new(), begin..mapped.end, bias, sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Thread;
    use std::arch::asm;
    use std::hint::black_box;

    /// What the kernel would copy of this thread's stack.
    #[inline(never)]
    fn stack_of_this(copy: &mut Vec<u8>) -> (u64, u64, u64) {
        let (bp, sp, ip): (u64, u64, u64);
        // SAFETY: reads registers; then a part of this thread's own stack above `sp`, of which the test
        // harness has more.
        unsafe {
            asm!("mov {}, rbp", "mov {}, rsp", "lea {}, [rip]", out(reg) bp, out(reg) sp, out(reg) ip);
            copy.extend_from_slice(std::slice::from_raw_parts(sp as *const u8, 1 << 10));
        }
        black_box((bp, sp, ip))
    }

    #[inline(never)]
    fn caller(unwinding: &mut Unwinding, damage: impl FnOnce(&mut Vec<u8>)) -> Vec<u64> {
        let (mut bytes, mut frames) = (Vec::new(), Vec::new());
        let (bp, sp, ip) = stack_of_this(&mut bytes);
        damage(&mut bytes);
        let stack = StackCopy { bp, sp, ip, bytes: &bytes };
        unwinding.follow(Pid::from_unsigned(std::process::id()), &stack, &mut frames);
        black_box(frames)
    }

    #[test]
    fn callers_are_in_the_order_of_calls() {
        let frames = caller(&mut Unwinding::default(), |_| {});
        let functions =
            [stack_of_this as *const () as u64, callers_are_in_the_order_of_calls as *const () as u64];
        assert!((functions[0]..functions[0] + 4096).contains(&frames[0]), "{frames:x?} {functions:x?}");
        let own = functions[1]..functions[1] + 4096;
        assert!(frames[1..].iter().any(|frame| own.contains(frame)), "{frames:x?} {functions:x?}");
    }

    #[test]
    fn forked_processes_share_what_is_mapped_until_they_end() {
        let mut unwinding = Unwinding::default();
        let thread = |pid: Pid| Thread { pid, tid: pid.first_thread() };
        let parent = thread(Pid::from_unsigned(std::process::id()));
        present::mappings_of(parent.pid, |mapping| unwinding.note(&Record::Mapping(mapping)));
        for number in 0..3 * MOST_PROCESSES as i32 {
            let child = thread(Pid(i32::MAX - number));
            unwinding.note(&Record::Fork { parent, child });
            let [of_parent, of_child] = [parent, child].map(|thread| &unwinding.processes[&thread.pid]);
            assert!(Arc::ptr_eq(of_parent, of_child));
            assert!(unwinding.processes.len() <= MOST_PROCESSES);
        }
        let child = thread(Pid(i32::MAX));
        unwinding.note(&Record::Fork { parent, child });
        let begin = *unwinding.processes[&child.pid].mappings.keys().next().unwrap();
        let build_id = &[][..];
        let other = Mapping { thread: child, begin, end: begin + 1, offset: 0, build_id, path: b"/other" };
        unwinding.note(&Record::Mapping(other));
        let end = |thread: Thread| unwinding.processes[&thread.pid].mappings[&begin].end;
        assert!(end(child) == begin + 1 && end(parent) > begin + 1);
    }

    #[test]
    fn looks_for_living_processes_are_in_proportion_to_new_ones() {
        let (mut unwinding, mut looks) = (Unwinding::default(), 0);
        let count = 20 * MOST_PROCESSES;
        for number in 0..count as i32 {
            let pid = Pid(i32::MAX - number);
            unwinding.make_room(pid, |_| {
                looks += 1;
                true
            });
            unwinding.processes.entry(pid).or_default();
        }
        assert!((MOST_PROCESSES..=2 * count).contains(&looks), "{looks}");
        assert_eq!(unwinding.processes.len(), count);
    }

    #[test]
    fn the_vdso_has_tables() {
        assert!(vdso().is_some_and(|tables| tables.bytes() > 0 && tables.code_address(&(0..4096)).is_some()));
    }

    /// A hostile program makes its stack and its files as it likes.
    #[test]
    fn damaged_stacks_and_tables_end_a_chain_at_worst() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..200 {
            let mut unwinding = Unwinding::default();
            caller(&mut unwinding, |_| {}); // reads the files
            for tables in unwinding.files.values_mut().flatten() {
                let mut damaged = UnwindTables::clone(tables);
                let mut bytes = damaged.frames.bytes.to_vec();
                for _ in 0..bytes.len() / 16 {
                    let at = random() as usize % bytes.len();
                    bytes[at] = random() as u8;
                }
                damaged.frames.bytes = bytes.into();
                *tables = Arc::new(damaged);
            }
            unwinding.processes.clear();
            for _ in 0..20 {
                let frames = caller(&mut unwinding, |stack| {
                    for _ in 0..8 {
                        let at = random() as usize % (stack.len() / 8) * 8;
                        stack[at..at + 8].copy_from_slice(&(random() >> (random() % 64)).to_le_bytes());
                    }
                });
                assert!((1..=FRAMES).contains(&frames.len()));
            }
        }
    }
}
