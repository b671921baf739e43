//! Which parts of an object are loaded where: addresses are those of its headers, before the loader chooses
//! the bias.

use std::ops::Range;

use object::elf::{PF_W, PF_X, ProgramHeader64};
use object::read::elf::ProgramHeader;
use object::{LittleEndian, Object, ObjectSegment, SegmentFlags};

/// A contiguous part of an object.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Address without the bias.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes stored in the file.
    pub in_file: u64,
    /// Bytes in memory; the rest is zero.
    pub in_memory: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Whether it holds code.
    pub executable: bool,
}

impl Segment {
    pub(super) fn of_header(header: &ProgramHeader64<LittleEndian>) -> Self {
        let endian = LittleEndian;
        Self {
            address: header.p_vaddr(endian),
            offset: header.p_offset(endian),
            in_file: header.p_filesz(endian).min(header.p_memsz(endian)),
            in_memory: header.p_memsz(endian),
            align: header.p_align(endian),
            executable: header.p_flags(endian).0 & PF_X.0 != 0,
        }
    }

    fn of_segment<'d>(segment: &impl ObjectSegment<'d>) -> Self {
        let (offset, in_file) = segment.file_range();
        let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
        Self {
            address: segment.address(),
            offset,
            in_file,
            in_memory: segment.size(),
            align: segment.align(),
            executable: is_code(segment.flags()),
        }
    }

    /// The file offset of an address, by this segment's distance. For another segment's data, this is where
    /// the kernel looks for it: it uses the distance of the code (`translate_user_vaddr` in its
    /// `trace_uprobe.c`).
    #[cfg(feature = "probes")]
    pub(crate) fn place(&self, address: u64) -> u64 {
        address.wrapping_sub(self.address).wrapping_add(self.offset)
    }
}

/// The loaded segments of a file, in the order of its headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segments(Vec<Segment>);

impl Segments {
    pub(crate) fn of<'d>(file: &impl Object<'d>) -> Self {
        Self(file.segments().map(|segment| Segment::of_segment(&segment)).collect())
    }

    /// Those of a file, also if this is the debug information that was split off it: `objcopy` sets the sizes
    /// of most segments in the file to 0 then, and changes their offsets. Linkers put each segment into the
    /// file as early after the one before as its address allows, modulo its alignment, since the kernel maps
    /// whole pages. What comes after the first writable segment is left out: its size in the file is unknown.
    pub(crate) fn restored<'d>(file: &impl Object<'d>) -> Self {
        let whole = Self::of(file);
        if !whole.0.iter().any(|segment| segment.executable && segment.in_file == 0) {
            return whole;
        }
        let is_writable =
            |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_W.0 != 0);
        let count = file.segments().take_while(|segment| !is_writable(segment.flags())).count();
        let mut end = 0_u64;
        let segments = whole.0.into_iter().take(count).map(|segment| {
            let offset = end.saturating_add(segment.address.wrapping_sub(end) % segment.align.max(1));
            end = offset.saturating_add(segment.in_memory);
            Segment { offset, in_file: segment.in_memory, ..segment }
        });
        Self(segments.collect())
    }

    /// The address at which code begins that is mapped from these file offsets. They are whole pages, whose
    /// first may also have the end of another segment.
    pub(crate) fn code_address(&self, offsets: &Range<u64>) -> Option<u64> {
        let is_mapped = |segment: &&Segment| {
            let end = segment.offset.saturating_add(segment.in_file);
            segment.executable && segment.offset < offsets.end && offsets.start < end
        };
        let segment = self.0.iter().find(is_mapped)?;
        Some(segment.address.wrapping_sub(segment.offset).wrapping_add(offsets.start))
    }

    /// Whether two addresses are of the same segment's code.
    pub(crate) fn has_both(&self, one: u64, other: u64) -> bool {
        let has = |segment: &Segment, address: u64| address.wrapping_sub(segment.address) < segment.in_file;
        self.0.iter().any(|segment| segment.executable && has(segment, one) && has(segment, other))
    }

    /// The address of a file offset.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let segment = self.0.iter().find(|segment| offset.wrapping_sub(segment.offset) < segment.in_file)?;
        Some(segment.address.wrapping_add(offset - segment.offset))
    }
}

#[cfg(feature = "probes")]
impl Segments {
    /// The segment of the instruction at an address.
    pub(crate) fn code(&self, address: u64) -> Option<&Segment> {
        self.find(address, |segment| segment.executable)
    }

    /// The file offset of the data at an address.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        Some(self.find(address, |_| true)?.place(address))
    }

    fn find(&self, address: u64, is_meant: impl Fn(&Segment) -> bool) -> Option<&Segment> {
        let holds = |segment: &Segment| {
            address.checked_sub(segment.address).is_some_and(|into| into < segment.in_file)
        };
        self.0.iter().find(|segment| holds(segment) && is_meant(segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    fn code(path: &Path) -> (Segment, Segment) {
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let code = |segments: Segments| segments.0.into_iter().find(|segment| segment.executable).unwrap();
        (code(Segments::of(&file)), code(Segments::restored(&file)))
    }

    /// This program is linked by the linker that Rust brings, the other by that of the system.
    #[test]
    fn code_of_debug_files_is_where_the_program_has_it() {
        if !tracewing_testing::installed(&["objcopy", "gcc"]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("program.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let compiled = |name: &str, option: &str| {
            let program = folder.path().join(name);
            let status = Command::new("gcc").args([option, "-o"]).args([&program, &source]).status();
            assert!(status.unwrap().success());
            program
        };
        let own = std::env::current_exe().unwrap();
        for program in [own, compiled("pie", "-pie"), compiled("fixed", "-no-pie")] {
            let debug = folder.path().join("debug");
            let mut objcopy = Command::new("objcopy");
            assert!(objcopy.arg("--only-keep-debug").args([&program, &debug]).status().unwrap().success());
            let (whole, same) = code(&program);
            let (emptied, restored) = code(&debug);
            let place = |segment: &Segment| (segment.address, segment.offset, segment.in_file);
            assert_eq!(place(&same), place(&whole), "{program:?}");
            assert_eq!(emptied.in_file, 0, "{program:?}");
            assert_eq!(place(&restored), place(&whole), "{program:?}");
        }
    }
}
