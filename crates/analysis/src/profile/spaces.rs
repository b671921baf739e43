//! Which code is where: of each process the files that are mapped as code, of the kernel its functions.

use std::collections::{BTreeMap, HashMap};

use tracewing_units::Pid;
use tracewing_vocabulary::profile::is_generated;

use super::event::{Mapping, ProfileEvent, Sample};
use super::samples::{Code, Codes, Image};
use crate::stored::{put_each, stored};
use tracewing_trace::super_trace::{Bytes, Stored};

/// Mappings of a process that are kept.
const MAPPINGS: usize = 1 << 16;
/// Functions of a process, compiled at run time, that are kept.
const JIT_FUNCTIONS: usize = 1 << 18;
/// Names of such functions that are kept, of all processes together.
const JIT_NAMES: usize = 1 << 20;

#[derive(Debug, Clone)]
struct Mapped {
    end: u64,
    offset: u64,
    image: u32,
    /// Not of a file.
    is_generated: bool,
}

stored! {
    SHAPE:
    Mapped { end offset image is_generated }
    Image { path build_id }
}

/// By where it begins.
type Space = BTreeMap<u64, Mapped>;

/// The address spaces of all processes, and of the kernel.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    processes: HashMap<Pid, Space>,
    /// How many mappings there are of all processes.
    mapped: usize,
    /// Functions of the kernel: begin, to end and number.
    kernel: BTreeMap<u64, (u64, u32)>,
    /// Functions that processes have compiled at run time, likewise.
    jit: HashMap<Pid, BTreeMap<u64, (u64, u32)>>,
    /// How many of these there are of all processes.
    compiled: usize,
    /// The numbers of their names.
    jit_names: HashMap<String, u32>,
    images: HashMap<Image, u32>,
    /// What each process has mapped first: the program that it executes.
    programs: HashMap<Pid, u32>,
    codes: Codes,
}

impl Spaces {
    /// Handles an explanation of a process; returns the values of counters.
    pub(super) fn learn(&mut self, process: Pid, said: ProfileEvent) -> Option<Vec<(String, u64)>> {
        match said {
            ProfileEvent::Mapping(mapping) => self.map(process, mapping),
            ProfileEvent::Exec => self.clear(process),
            ProfileEvent::Fork { child } => self.fork(process, child),
            ProfileEvent::KernelSymbol { begin, end, name } => self.kernel_function(begin, end, name),
            ProfileEvent::JitSymbol { begin, end, name } => self.jit_function(process, begin, end, name),
            ProfileEvent::Counters(values) => return Some(values),
        }
        None
    }

    /// How many mappings and names are known.
    pub(super) fn count(&self) -> usize {
        self.mapped
            + self.compiled
            + self.processes.len()
            + self.jit.len()
            + self.images.len()
            + self.codes.kernel.len()
            + self.codes.jit.len()
    }

    /// The code of a sample's chain, the innermost first, and where in it the program's part begins.
    pub(super) fn chain(&mut self, process: Option<Pid>, sample: &Sample) -> (Vec<u32>, usize) {
        let (kernel, user) = match (sample.kernel.is_empty() && sample.user.is_empty(), sample.in_program) {
            (true, true) => (&[][..], &[sample.ip][..]),
            (true, false) => (&[sample.ip][..], &[][..]),
            (false, _) => (&sample.kernel[..], &sample.user[..]),
        };
        // The innermost address is that of the next instruction to run; the others are those to which calls
        // return, which may be the next function's first.
        let inside = |at: usize, address: u64| if at == 0 { address } else { address.saturating_sub(1) };
        let mut codes = Vec::with_capacity(kernel.len() + user.len());
        for (at, address) in kernel.iter().enumerate() {
            codes.push(self.of_kernel(inside(at, *address)));
        }
        for (at, address) in user.iter().enumerate() {
            codes.push(self.of_program(process.unwrap_or(Pid(0)), inside(at, *address)));
        }
        (codes, kernel.len())
    }

    /// A file's code is at a place from now on.
    pub(super) fn map(&mut self, process: Pid, mapping: Mapping) {
        let Mapping { begin, end, offset, path, build_id } = mapping;
        if begin >= end {
            return; // no code at all
        }
        let is_generated = is_generated(path.as_bytes());
        let image = Image { path, build_id };
        let next = self.images.len() as u32;
        let number = *self.images.entry(image.clone()).or_insert_with(|| {
            self.codes.images.push(image);
            next
        });
        self.programs.entry(process).or_insert(number);
        let space = self.processes.entry(process).or_default();
        let below = space.range(..begin).next_back().filter(|(_, mapped)| mapped.end > begin);
        let covered: Vec<u64> =
            below.into_iter().chain(space.range(begin..end)).map(|(begin, _)| *begin).collect();
        let before = space.len();
        for begin in covered {
            space.remove(&begin);
        }
        if space.len() < MAPPINGS {
            space.insert(begin, Mapped { end, offset, image: number, is_generated });
        }
        self.mapped = self.mapped - before + space.len();
    }

    /// A process begins with a new program.
    pub(super) fn clear(&mut self, process: Pid) {
        self.replace(process, None);
        self.programs.remove(&process);
        self.forget_compiled(process);
    }

    /// A child has what its parent has, except that it names itself what it compiles at run time.
    pub(super) fn fork(&mut self, parent: Pid, child: Pid) {
        self.forget_compiled(child);
        self.replace(child, self.processes.get(&parent).cloned());
        match self.programs.get(&parent).copied() {
            Some(program) => self.programs.insert(child, program),
            None => self.programs.remove(&child),
        };
    }

    /// Nothing is known any more of what a process has compiled at run time.
    fn forget_compiled(&mut self, process: Pid) {
        self.compiled -= self.jit.remove(&process).map_or(0, |functions| functions.len());
    }

    /// A process has these mappings from now on.
    fn replace(&mut self, process: Pid, space: Option<Space>) {
        self.mapped += space.as_ref().map_or(0, Space::len);
        let before = match space {
            Some(space) => self.processes.insert(process, space),
            None => self.processes.remove(&process),
        };
        self.mapped -= before.map_or(0, |before| before.len());
    }

    /// The kernel has a function there.
    pub(super) fn kernel_function(&mut self, begin: u64, end: u64, name: String) {
        let is_known = |(known_end, number): &(u64, u32)| {
            *known_end == end && self.codes.kernel.get(*number as usize) == Some(&name)
        };
        if !self.kernel.get(&begin).is_some_and(is_known) {
            self.kernel.insert(begin, (end, self.codes.kernel.len() as u32));
            self.codes.kernel.push(name);
        }
    }

    /// The process has compiled a function at run time. It replaces those that it overlaps: its code was put
    /// into memory that had become free, as for the recorder.
    pub(super) fn jit_function(&mut self, process: Pid, begin: u64, end: u64, name: String) {
        if begin >= end {
            return; // no code at all
        }
        let number = self.jit_name(name);
        let functions = self.jit.entry(process).or_default();
        let below = functions.range(..begin).next_back().filter(|(_, (ends, _))| *ends > begin);
        let replaced: Vec<u64> =
            below.into_iter().chain(functions.range(begin..end)).map(|(begin, _)| *begin).collect();
        let before = functions.len();
        for begin in replaced {
            functions.remove(&begin);
        }
        if let Some(number) = number.filter(|_| functions.len() < JIT_FUNCTIONS) {
            functions.insert(begin, (end, number));
        }
        self.compiled = self.compiled - before + functions.len();
    }

    /// The number of a name of such a function; `None` if there are too many.
    fn jit_name(&mut self, name: String) -> Option<u32> {
        if let Some(number) = self.jit_names.get(&name) {
            return Some(*number);
        }
        if self.codes.jit.len() >= JIT_NAMES {
            return None;
        }
        let number = self.codes.jit.len() as u32;
        self.codes.jit.push(name.clone());
        self.jit_names.insert(name, number);
        Some(number)
    }

    /// The code at an address of a process.
    pub(super) fn of_program(&mut self, process: Pid, address: u64) -> u32 {
        let space = self.processes.get(&process);
        let mapped = space.and_then(|space| space.range(..=address).next_back());
        let mapped = mapped.filter(|(_, mapped)| address < mapped.end);
        let jit = self.jit.get(&process).filter(|_| mapped.is_none_or(|(_, mapped)| mapped.is_generated));
        let jit = jit.and_then(|functions| functions.range(..=address).next_back());
        let code = match (jit.filter(|(_, (end, _))| address < *end), mapped) {
            (Some((_, (_, function))), _) => Code::Jit { function: *function },
            (None, Some((begin, mapped))) => {
                Code::File { image: mapped.image, offset: mapped.offset.wrapping_add(address - begin) }
            }
            (None, None) => Code::Unknown,
        };
        self.codes.number(code)
    }

    /// The code at an address of the kernel.
    pub(super) fn of_kernel(&mut self, address: u64) -> u32 {
        let function = self.kernel.range(..=address).next_back().filter(|(_, (end, _))| address < *end);
        self.codes.number(Code::Kernel { function: function.map(|(_, (_, number))| *number) })
    }

    /// All code that was asked for, and the files that processes execute.
    pub(super) fn finish(self) -> (Codes, HashMap<Pid, String>) {
        let path = |image: u32| self.codes.images[image as usize].path.clone();
        let programs = self.programs.iter().map(|(process, image)| (*process, path(*image))).collect();
        (self.codes, programs)
    }
}

/// Without the code that was asked for, of which there is none at a checkpoint.
impl Stored for Spaces {
    fn put(&self, out: &mut Vec<u8>) {
        #[rustfmt::skip] // A list, which is complete.
        let Self {
            processes, mapped: _, kernel, jit, compiled: _, jit_names: _, images: _, programs, codes,
        } = self;
        let Codes { images: files, kernel: functions, jit: names, .. } = codes;
        put_each!(out: files functions names processes kernel jit programs);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let codes = Codes::of(Stored::take(bytes)?, Stored::take(bytes)?, Stored::take(bytes)?);
        let processes: HashMap<Pid, Space> = Stored::take(bytes)?;
        let kernel = Stored::take(bytes)?;
        let jit: HashMap<Pid, BTreeMap<_, _>> = Stored::take(bytes)?;
        let this = Self {
            mapped: processes.values().map(Space::len).sum(),
            processes,
            kernel,
            compiled: jit.values().map(BTreeMap::len).sum(),
            jit,
            jit_names: codes.jit.iter().cloned().zip(0..).collect(),
            images: codes.images.iter().cloned().zip(0..).collect(),
            programs: Stored::take(bytes)?,
            codes,
        };
        this.has_names().then_some(this)
    }
}

impl Spaces {
    /// Whether all numbers are those of a file or a name.
    fn has_names(&self) -> bool {
        let is_of = |number: u32, count: usize| (number as usize) < count;
        let Codes { images, kernel, jit, .. } = &self.codes;
        let mut mapped = self.processes.values().flat_map(Space::values).map(|mapped| mapped.image);
        mapped.all(|image| is_of(image, images.len()))
            && self.programs.values().all(|image| is_of(*image, images.len()))
            && self.kernel.values().all(|(_, name)| is_of(*name, kernel.len()))
            && self.jit.values().flat_map(BTreeMap::values).all(|(_, name)| is_of(*name, jit.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recount;

    fn mapping(begin: u64, end: u64, offset: u64, path: &str) -> Mapping {
        Mapping { begin, end, offset, path: path.to_owned(), build_id: String::new() }
    }

    /// The file and the place in it of an address.
    fn at(spaces: &mut Spaces, process: Pid, address: u64) -> Option<(String, u64)> {
        let number = spaces.of_program(process, address);
        match spaces.codes.code(number) {
            Code::File { image, offset } => Some((spaces.codes.images[image as usize].path.clone(), offset)),
            _ => None,
        }
    }

    #[test]
    fn what_is_kept_is_counted() {
        recount::check(
            |spaces: &mut Spaces, kind, process, addresses| {
                let (begin, end) = (addresses.start, addresses.end);
                match kind {
                    0 => spaces.map(process, mapping(begin, end, 0, "a")),
                    1 => spaces.jit_function(process, begin, end, (end - begin).to_string()),
                    2 => spaces.fork(process, Pid(process.0 % 3 + 1)),
                    _ => spaces.clear(process),
                }
            },
            |spaces| {
                let mapped = spaces.processes.values().map(BTreeMap::len).sum();
                let compiled = spaces.jit.values().map(BTreeMap::len).sum();
                [(spaces.mapped, spaces.compiled), (mapped, compiled)]
            },
            |spaces| {
                let mut bytes = Vec::new();
                spaces.put(&mut bytes);
                let again = Spaces::take(&mut Bytes::new(&bytes)).unwrap();
                assert_eq!((again.mapped, again.compiled), (spaces.mapped, spaces.compiled));
                assert_eq!(again.count(), spaces.count());
            },
        );
    }

    #[test]
    fn mappings_and_names_are_counted() {
        let mut spaces = Spaces::default();
        let mut counts = Vec::new();
        // What is there, its process, and its file or name.
        spaces.map(Pid(1), mapping(0x1000, 0x2000, 0, "a"));
        counts.push(spaces.count());
        spaces.map(Pid(1), mapping(0x2000, 0x3000, 0, "a"));
        counts.push(spaces.count());
        spaces.jit_function(Pid(1), 0x10, 0x20, "f".to_owned());
        counts.push(spaces.count());
        spaces.kernel_function(0x10, 0x20, "f".to_owned());
        counts.push(spaces.count());
        assert_eq!(counts, [3, 4, 7, 8]);
    }

    #[test]
    fn code_is_what_was_mapped_there_last() {
        let mut spaces = Spaces::default();
        spaces.map(Pid(1), mapping(0x1000, 0x3000, 0x200, "a"));
        assert_eq!(at(&mut spaces, Pid(1), 0xfff), None);
        assert_eq!(at(&mut spaces, Pid(1), 0x1010), Some(("a".to_owned(), 0x210)));
        assert_eq!(at(&mut spaces, Pid(1), 0x3000), None);
        assert_eq!(at(&mut spaces, Pid(2), 0x1010), None);
        spaces.map(Pid(1), mapping(0x2000, 0x4000, 0, "b"));
        assert_eq!(at(&mut spaces, Pid(1), 0x2001), Some(("b".to_owned(), 1)));
        assert_eq!(at(&mut spaces, Pid(1), 0x1010), None, "what is mapped over a part is gone");
    }

    /// The name of a function that was compiled at run time.
    fn jit(spaces: &mut Spaces, process: Pid, address: u64) -> Option<String> {
        let number = spaces.of_program(process, address);
        match spaces.codes.code(number) {
            Code::Jit { function } => Some(spaces.codes.jit[function as usize].clone()),
            _ => None,
        }
    }

    #[test]
    fn code_compiled_at_run_time_has_the_names_of_its_process() {
        let mut spaces = Spaces::default();
        spaces.jit_function(Pid(1), 0x1100, 0x1200, "work".to_owned());
        spaces.map(Pid(1), mapping(0x1000, 0x2000, 0, "//anon"));
        assert_eq!(jit(&mut spaces, Pid(1), 0x1100).as_deref(), Some("work"));
        assert_eq!(at(&mut spaces, Pid(1), 0x1200), Some(("//anon".to_owned(), 0x200)));
        spaces.fork(Pid(1), Pid(2));
        assert_eq!(jit(&mut spaces, Pid(2), 0x1100), None, "names are of one process");
        spaces.map(Pid(1), mapping(0x1000, 0x1180, 0, "/lib/x"));
        assert_eq!(at(&mut spaces, Pid(1), 0x1100), Some(("/lib/x".to_owned(), 0x100)));
        assert_eq!(jit(&mut spaces, Pid(1), 0x1180).as_deref(), Some("work"));
        spaces.clear(Pid(1));
        assert_eq!(jit(&mut spaces, Pid(1), 0x1180), None);
    }

    #[test]
    fn later_functions_replace_those_that_they_overlap() {
        let mut spaces = Spaces::default();
        let functions = [
            (0x0ff0, 0x1008, "before"),
            (0x1080, 0x10a0, "within"),
            (0x10f0, 0x1120, "after"),
            (0x1120, 0x1130, "beside"),
            (0x1000, 0x1100, "first"),
        ];
        for (begin, end, name) in functions {
            spaces.jit_function(Pid(1), begin, end, name.to_owned());
        }
        let names = |spaces: &mut Spaces| {
            let addresses = [0xff8, 0x1004, 0x1090, 0x10c0, 0x1110, 0x1120];
            addresses.map(|at| jit(spaces, Pid(1), at).unwrap_or_default())
        };
        assert_eq!(names(&mut spaces), ["", "first", "first", "first", "", "beside"]);
        spaces.jit_function(Pid(1), 0x1080, 0x10a0, "second".to_owned());
        assert_eq!(names(&mut spaces), ["", "", "second", "", "", "beside"]);
    }

    #[test]
    fn functions_that_are_named_again_take_no_more_memory() {
        let mut spaces = Spaces::default();
        for name in ["f", "g", "f", "f", "g"].repeat(100) {
            spaces.jit_function(Pid(1), 0x10, 0x20, name.to_owned());
        }
        assert_eq!(spaces.codes.jit, ["f", "g"]);
        assert_eq!(jit(&mut spaces, Pid(1), 0x10).as_deref(), Some("g"));
        for begin in [0x20, u64::MAX] {
            spaces.jit_function(Pid(1), begin, 0x20, "none".to_owned());
        }
        assert_eq!(spaces.jit[&Pid(1)].len(), 1);
    }

    #[test]
    fn names_of_functions_compiled_at_run_time_are_bounded() {
        let mut spaces = Spaces::default();
        for number in 0..JIT_NAMES as u64 + 10 {
            spaces.jit_function(Pid(1), 0x10, 0x20, number.to_string());
        }
        assert_eq!(spaces.codes.jit.len(), JIT_NAMES);
        assert_eq!(jit(&mut spaces, Pid(1), 0x10), None, "the name before it is not its own");
        spaces.jit_function(Pid(1), 0x10, 0x20, "7".to_owned());
        assert_eq!(jit(&mut spaces, Pid(1), 0x10).as_deref(), Some("7"));
    }

    #[test]
    fn a_mapping_that_ends_before_it_begins_is_none() {
        let mut spaces = Spaces::default();
        spaces.map(Pid(1), mapping(0x1000, 0x3000, 0, "a"));
        spaces.map(Pid(1), mapping(0x2000, 0x1000, 0, "b"));
        spaces.map(Pid(1), mapping(u64::MAX, 0, 0, "b"));
        assert_eq!(at(&mut spaces, Pid(1), 0x1800), Some(("a".to_owned(), 0x800)));
    }

    #[test]
    fn a_kernel_function_that_is_reported_again_keeps_its_name() {
        let mut spaces = Spaces::default();
        for (begin, name) in [(0x10, "f"), (0x10, "f"), (0x30, "g"), (0x10, "h")] {
            spaces.kernel_function(begin, begin + 0x10, name.to_owned());
        }
        let name = |spaces: &mut Spaces, address| {
            let number = spaces.of_kernel(address);
            match spaces.codes.code(number) {
                Code::Kernel { function: Some(function) } => spaces.codes.kernel[function as usize].clone(),
                _ => String::new(),
            }
        };
        assert_eq!([0x10, 0x30].map(|address| name(&mut spaces, address)), ["h", "g"]);
    }

    #[test]
    fn children_inherit_and_new_programs_begin_empty() {
        let mut spaces = Spaces::default();
        spaces.map(Pid(1), mapping(0x1000, 0x3000, 0, "a"));
        spaces.fork(Pid(1), Pid(2));
        spaces.clear(Pid(1));
        assert_eq!(at(&mut spaces, Pid(1), 0x1001), None);
        assert_eq!(at(&mut spaces, Pid(2), 0x1001), Some(("a".to_owned(), 1)));
        spaces.fork(Pid(1), Pid(2));
        assert_eq!(at(&mut spaces, Pid(2), 0x1001), None, "another process of this number");
    }

    #[test]
    fn the_kernels_functions_have_an_end() {
        let mut spaces = Spaces::default();
        spaces.kernel_function(0x10, 0x20, "f".to_owned());
        let is_known = |spaces: &mut Spaces, address| {
            let number = spaces.of_kernel(address);
            matches!(spaces.codes.code(number), Code::Kernel { function: Some(0) })
        };
        assert!(is_known(&mut spaces, 0x10) && is_known(&mut spaces, 0x1f));
        assert!(!is_known(&mut spaces, 0x20) && !is_known(&mut spaces, 0xf));
    }
}
