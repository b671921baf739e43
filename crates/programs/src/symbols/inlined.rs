//! Which functions were inlined at an address, from debug information (DWARF 5, 3.3.8.2).
//!
//! The file may be anybody's: nothing here recurses, and what one file can make this hold is limited. The
//! library's own search for inlined functions recurses as deep as the file nests them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use gimli::{AttributeValue, Dwarf, Error, UnitHeader, UnitRef};

use super::{LONGEST, Reader, demangled};

/// Ranges of addresses that are kept for one file.
const MOST: usize = 1 << 22;
/// Functions inlined into one another that are named at one address.
const DEEPEST: usize = 256;
/// References that are followed from an inlined function to one that has a name.
const HOPS: usize = 8;

/// Offset of an entry in `.debug_info`.
type Entry = usize;

/// The calls that a file's compiler has replaced by the functions' code.
pub(super) struct Inlined {
    dwarf: Arc<Dwarf<Reader>>,
    /// In the order of their offsets.
    units: Vec<UnitHeader<Reader>>,
    /// Code of units, by its begin.
    ranges: Vec<(Range<u64>, usize)>,
    /// Of units that were asked for: their calls by level, and there by begin of their code.
    calls: HashMap<usize, Vec<Call>>,
    names: HashMap<Entry, Option<String>>,
    /// Ranges that may still be kept.
    left: usize,
}

/// A part of the code of an inlined function.
struct Call {
    /// How many other inlined functions it is in.
    level: usize,
    code: Range<u64>,
    function: Option<Entry>,
}

impl Inlined {
    pub(super) fn new(dwarf: Arc<Dwarf<Reader>>) -> Self {
        let (units, ranges) = (Vec::new(), Vec::new());
        let mut inlined =
            Self { dwarf, units, ranges, calls: HashMap::new(), names: HashMap::new(), left: MOST };
        let mut headers = inlined.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            // A unit that cannot be read has no calls.
            let _ = inlined.add_unit(header);
        }
        inlined.ranges.sort_by_key(|(code, _)| code.start);
        inlined
    }

    fn add_unit(&mut self, header: UnitHeader<Reader>) -> Result<(), Error> {
        let number = self.units.len();
        let dwarf = Arc::clone(&self.dwarf);
        self.units.push(header.clone());
        let unit = dwarf.unit(header)?;
        let unit = unit.unit_ref(&dwarf);
        let mut entries = unit.entries_raw(None)?;
        let Some(root) = entries.read_abbreviation()? else { return Ok(()) };
        let mut place = Place::default();
        for attribute in root.attributes() {
            let attribute = entries.read_attribute(*attribute)?;
            place.learn(unit, attribute.name(), attribute.value())?;
        }
        let (ranges, left) = (&mut self.ranges, &mut self.left);
        place.each_range(unit, left, |code| ranges.push((code, number)))
    }

    /// The names of the functions that were inlined at an address, the innermost first; none if the code
    /// there is that of a function as it was compiled by itself.
    pub(super) fn at(&mut self, address: u64) -> Vec<String> {
        let before = self.ranges.partition_point(|(code, _)| code.start <= address);
        let Some((code, number)) = before.checked_sub(1).map(|last| self.ranges[last].clone()) else {
            return Vec::new();
        };
        if !code.contains(&address) {
            return Vec::new();
        }
        if !self.calls.contains_key(&number) {
            let calls = self.read_calls(number).unwrap_or_default();
            self.calls.insert(number, calls);
        }
        let calls = &self.calls[&number];
        let functions: Vec<Entry> = (0..DEEPEST)
            .map_while(|level| innermost(calls, level, address))
            .filter_map(|call| call.function)
            .collect();
        functions.into_iter().rev().filter_map(|function| self.name(function)).collect()
    }

    /// The calls in a unit.
    fn read_calls(&mut self, number: usize) -> Result<Vec<Call>, Error> {
        let dwarf = Arc::clone(&self.dwarf);
        let unit = dwarf.unit(self.units[number].clone())?;
        let unit = unit.unit_ref(&dwarf);
        let mut calls = Vec::new();
        // Functions around the entry at hand: depth of their entries, and level of what is inlined there.
        let mut around: Vec<(isize, usize)> = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let Some(kind) = entries.read_abbreviation()? else { continue };
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            let level = around.last().map_or(0, |(_, level)| *level);
            match kind.tag() {
                gimli::DW_TAG_inlined_subroutine => {
                    let mut place = Place::default();
                    for attribute in kind.attributes() {
                        let attribute = entries.read_attribute(*attribute)?;
                        place.learn(unit, attribute.name(), attribute.value())?;
                    }
                    let function = place.function;
                    place.each_range(unit, &mut self.left, |code| {
                        calls.push(Call { level, code, function })
                    })?;
                    around.push((depth, level + 1));
                }
                tag => {
                    if tag == gimli::DW_TAG_subprogram {
                        around.push((depth, 0));
                    }
                    entries.skip_attributes(kind.attributes())?;
                }
            }
        }
        calls.sort_by_key(|call| (call.level, call.code.start));
        Ok(calls)
    }

    fn name(&mut self, function: Entry) -> Option<String> {
        if !self.names.contains_key(&function) {
            let name = self.find_name(function).ok().flatten();
            self.names.insert(function, name);
        }
        self.names[&function].clone()
    }

    /// A function's name, which its declaration may have.
    fn find_name(&self, function: Entry) -> Result<Option<String>, Error> {
        let mut at = function;
        for _ in 0..HOPS {
            let begin = |unit: &UnitHeader<Reader>| unit.debug_info_offset().map_or(0, |offset| offset.0);
            let after = self.units.partition_point(|unit| begin(unit) <= at);
            let Some(header) = after.checked_sub(1).map(|last| &self.units[last]) else { return Ok(None) };
            let Some(offset) = gimli::DebugInfoOffset(at).to_unit_offset(header) else { return Ok(None) };
            let unit = self.dwarf.unit(header.clone())?;
            let unit = unit.unit_ref(&self.dwarf);
            let entry = unit.entry(offset)?;
            if let Some(name) =
                entry.attr_value(gimli::DW_AT_linkage_name).or(entry.attr_value(gimli::DW_AT_name))
            {
                let name = unit.attr_string(name)?;
                let name = String::from_utf8_lossy(name.bytes()).into_owned();
                return Ok((!name.is_empty() && name.len() <= LONGEST).then(|| demangled(&name)));
            }
            let other = entry
                .attr_value(gimli::DW_AT_specification)
                .or(entry.attr_value(gimli::DW_AT_abstract_origin));
            let Some(next) = other.and_then(|other| self::entry(unit, &other)) else { return Ok(None) };
            at = next;
        }
        Ok(None)
    }
}

/// The call at this level that has the code at an address.
fn innermost(calls: &[Call], level: usize, address: u64) -> Option<&Call> {
    let before = calls.partition_point(|call| (call.level, call.code.start) <= (level, address));
    let call = &calls[before.checked_sub(1)?];
    (call.level == level && call.code.contains(&address)).then_some(call)
}

/// The entry that an attribute refers to.
fn entry(unit: UnitRef<'_, Reader>, value: &AttributeValue<Reader>) -> Option<Entry> {
    match value {
        AttributeValue::UnitRef(offset) => Some(offset.to_debug_info_offset(&unit.header)?.0),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}

/// Attributes of an entry that has code.
#[derive(Default)]
struct Place {
    begin: Option<u64>,
    end: Option<u64>,
    size: Option<u64>,
    ranges: Option<gimli::RangeListsOffset>,
    function: Option<Entry>,
}

impl Place {
    fn learn(
        &mut self,
        unit: UnitRef<'_, Reader>,
        name: gimli::DwAt,
        value: AttributeValue<Reader>,
    ) -> Result<(), Error> {
        match name {
            gimli::DW_AT_low_pc => self.begin = unit.attr_address(value)?,
            gimli::DW_AT_high_pc => match value {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.end = unit.attr_address(value)?,
            },
            gimli::DW_AT_ranges => self.ranges = unit.attr_ranges_offset(value)?,
            gimli::DW_AT_abstract_origin => self.function = entry(unit, &value),
            _ => {}
        }
        Ok(())
    }

    /// Shows the ranges of its code to `each`, as long as any are `left`.
    fn each_range(
        &self,
        unit: UnitRef<'_, Reader>,
        left: &mut usize,
        mut each: impl FnMut(Range<u64>),
    ) -> Result<(), Error> {
        let mut keep = |code: Range<u64>| {
            let is_kept = *left > 0;
            *left = left.saturating_sub(1);
            if is_kept && !code.is_empty() {
                each(code);
            }
            is_kept
        };
        if let Some(list) = self.ranges {
            let mut ranges = unit.ranges(list)?;
            while let Some(range) = ranges.next()? {
                if !keep(range.begin..range.end) {
                    break;
                }
            }
        } else if let Some(begin) = self.begin {
            let end = self.size.map_or(self.end, |size| begin.checked_add(size));
            keep(begin..end.unwrap_or(begin));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{RunTimeEndian, SectionId};

    /// A file that is all code from 0 on, with a function that was inlined into itself so often.
    fn nested(depth: u64) -> Inlined {
        // DWARF 5, 7.5.3: code, tag, children, and pairs of attribute and form.
        let abbreviations = [
            &[1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0][..], // unit: low_pc, high_pc
            &[2, 0x2e, 1, 0x03, 0x08, 0, 0],                 // function: name
            &[3, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0], // inlined: origin, low_pc, high_pc
            &[0],
        ]
        .concat();
        const SIZE: u64 = 1 << 40;
        let mut entries = vec![1];
        entries.extend([0, SIZE].map(u64::to_le_bytes).concat());
        // The unit's header has 12 bytes.
        let function = 12 + entries.len() as u32;
        entries.extend(*b"\x02looped\0");
        for level in 0..depth {
            entries.push(3);
            entries.extend(function.to_le_bytes());
            entries.extend([level, SIZE - level].map(u64::to_le_bytes).concat());
        }
        entries.extend(vec![0; depth as usize + 2]);
        let mut unit = (8 + entries.len() as u32).to_le_bytes().to_vec();
        unit.extend([5, 0, 1, 8, 0, 0, 0, 0]); // version, kind, bytes of an address, abbreviations
        unit.extend(entries);
        let load = |id: SectionId| {
            let bytes = match id {
                SectionId::DebugAbbrev => abbreviations.clone(),
                SectionId::DebugInfo => unit.clone(),
                _ => Vec::new(),
            };
            Ok::<_, Error>(Reader::new(bytes.into(), RunTimeEndian::Little))
        };
        Inlined::new(Arc::new(Dwarf::load(load).unwrap()))
    }

    #[test]
    fn functions_are_found_as_deep_as_the_address_is_in_them() {
        let mut inlined = nested(3);
        for (address, count) in [(0, 1), (1, 2), (2, 3), (1000, 3), (1 << 41, 0)] {
            assert_eq!(inlined.at(address), vec!["looped"; count], "{address}");
        }
    }

    #[test]
    fn a_file_that_nests_without_end_is_read() {
        assert_eq!(nested(1_000_000).at(1 << 30).len(), DEEPEST);
    }
}
