//! The tables by which a debugger or profiler finds the callers of code without frame pointers: `.eh_frame`
//! (LSB Core 5.0, 10.6). The index of them that files have, too, is not used: it may contradict them.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, EhFrame, Encoding, EndianSlice, LittleEndian, Operation,
    UnwindExpression, UnwindSection,
};
use object::{Object, ObjectSection, ReadRef};

use super::{Content, Segments, hexadecimal};

/// A section of a file, in memory.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Addresses, as in the file's program headers.
    pub addresses: Range<u64>,
    /// Its bytes; empty where only the addresses matter.
    pub bytes: Arc<[u8]>,
}

/// A file's tables.
#[derive(Debug, Clone)]
pub struct UnwindTables {
    /// `.eh_frame`: how to restore the registers of the caller, by address.
    pub frames: Section,
    /// `.text`; only the addresses.
    pub text: Option<Section>,
    /// `.got`, which some tables refer to; only the addresses.
    pub got: Option<Section>,
    /// Build id in hexadecimal; empty if there is none.
    pub build_id: String,
    segments: Segments,
}

impl UnwindTables {
    /// Reads the tables of an executable or library; `None` if it is neither, has none, or has some with
    /// loops, which no compiler writes: following a stack would not end.
    pub fn read(path: &Path) -> Option<Self> {
        Self::of(object::File::parse(&Content::open(path)?).ok()?)
    }

    /// The same, of an open file, which is a regular one.
    pub fn of_file(file: File) -> Option<Self> {
        Self::of(object::File::parse(&Content::of(file)).ok()?)
    }

    /// The tables of an image that is in memory as it is in a file, such as the vdso; `None` as for
    /// [`UnwindTables::read`].
    pub fn of_image(bytes: &[u8]) -> Option<Self> {
        Self::of(object::File::parse(bytes).ok()?)
    }

    fn of<'d>(file: object::File<'d, impl ReadRef<'d>>) -> Option<Self> {
        let place = |name: &str| {
            let section = file.section_by_name(name)?;
            let addresses = section.address()..section.address().checked_add(section.size())?;
            Some(Section { addresses, bytes: Arc::default() })
        };
        let frames = file.section_by_name(".eh_frame")?.data().ok()?;
        let (at, text, got) = (place(".eh_frame")?, place(".text"), place(".got"));
        (!has_jumps(frames, &at, text.as_ref(), got.as_ref())).then_some(())?;
        Some(Self {
            frames: Section { bytes: frames.into(), ..at },
            text,
            got,
            build_id: file.build_id().ok().flatten().map(hexadecimal).unwrap_or_default(),
            segments: Segments::of(&file),
        })
    }

    /// Bytes that the tables take.
    pub fn bytes(&self) -> usize {
        self.frames.bytes.len()
    }

    /// The address, as in the file's program headers, at which code begins that is mapped from these file
    /// offsets.
    pub fn code_address(&self, offsets: &Range<u64>) -> Option<u64> {
        self.segments.code_address(offsets)
    }
}

type Bytes<'b> = EndianSlice<'b, LittleEndian>;

/// Whether an expression in `.eh_frame` has a jump, or may have: what cannot be parsed.
fn has_jumps(bytes: &[u8], at: &Section, text: Option<&Section>, got: Option<&Section>) -> bool {
    let frames = EhFrame::new(bytes, LittleEndian);
    let mut bases = BaseAddresses::default().set_eh_frame(at.addresses.start);
    if let Some(text) = text {
        bases = bases.set_text(text.addresses.start);
    }
    if let Some(got) = got {
        bases = bases.set_got(got.addresses.start);
    }
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let jumps = match entry {
            CieOrFde::Cie(cie) => jumps(&frames, cie.encoding(), cie.instructions(&frames, &bases)),
            CieOrFde::Fde(partial) => match partial.parse(EhFrame::cie_from_offset) {
                Ok(fde) => jumps(&frames, fde.cie().encoding(), fde.instructions(&frames, &bases)),
                Err(_) => true,
            },
        };
        if jumps {
            return true;
        }
    }
    false
}

fn jumps<'b>(
    frames: &EhFrame<Bytes<'b>>,
    encoding: Encoding,
    mut instructions: gimli::CallFrameInstructionIter<'_, Bytes<'b>>,
) -> bool {
    let is_jump = |expression: UnwindExpression<usize>| {
        let Ok(expression) = expression.get(frames) else { return false };
        let mut operations = expression.operations(encoding);
        std::iter::from_fn(|| operations.next().ok().flatten())
            .any(|operation| matches!(operation, Operation::Skip { .. } | Operation::Bra { .. }))
    };
    std::iter::from_fn(|| instructions.next().ok().flatten()).any(|instruction| match instruction {
        CallFrameInstruction::DefCfaExpression { expression }
        | CallFrameInstruction::Expression { expression, .. }
        | CallFrameInstruction::ValExpression { expression, .. } => is_jump(expression),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table for one function, whose frame is found by this expression (DWARF 5, 6.4).
    fn table(expression: &[u8]) -> Vec<u8> {
        let entry = |mut content: Vec<u8>| {
            content.resize(content.len().next_multiple_of(8) + 4, 0); // DW_CFA_nop
            [&(content.len() as u32).to_le_bytes()[..], &content].concat()
        };
        // Version 1, no augmentation, code 1, data -8, return address in 16; the frame is at rsp + 8.
        let common = entry([&[0; 4][..], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8]].concat());
        let back = (common.len() as u32 + 4).to_le_bytes();
        let (begin, length) = (0x1000_u64.to_le_bytes(), 0x100_u64.to_le_bytes());
        let function = [&back[..], &begin, &length, &[0x0f, expression.len() as u8], expression].concat();
        [common, entry(function), vec![0; 4]].concat()
    }

    #[test]
    fn tables_with_jumps_are_refused() {
        let has_jumps = |bytes: &[u8]| has_jumps(bytes, &Section::default(), None, None);
        assert!(!has_jumps(&table(&[0x77, 8]))); // rsp + 8
        assert!(has_jumps(&table(&[0x2f, 0xfd, 0xff]))); // DW_OP_skip to itself
        assert!(has_jumps(&table(&[0x77, 8, 0x30, 0x28, 0, 0]))); // DW_OP_bra
    }

    #[test]
    fn this_program_has_tables_and_text_has_none() {
        let tables = UnwindTables::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(!tables.frames.bytes.is_empty() && tables.text.is_some());
        assert_eq!(tables.bytes() as u64, tables.frames.addresses.end - tables.frames.addresses.start);
        let text = tables.text.as_ref().unwrap().addresses.clone();
        let begin = tables.code_address(&(0..u64::MAX)).unwrap();
        assert!(begin <= text.start && text.start - begin < text.start + 1);
        assert!(UnwindTables::read(Path::new(file!())).is_none());
        assert!(UnwindTables::read(Path::new("/dev/null")).is_none());
    }
}
