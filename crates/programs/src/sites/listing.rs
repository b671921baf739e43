//! All sites of an image.

use std::collections::BTreeMap;

use tracewing_abi::site::{HEAD, Instruction, Record};

use crate::elf::Processor;
use crate::image::{Image, Place, half_word, word};
use crate::sites::code::returned_address;
use crate::sites::describe::Reader;
use crate::sites::records::records;
use crate::sites::site::{Site, State};

/// Maximum number of records.
const MOST_RECORDS: u64 = 1 << 20;

const RECORD_DISTANCE: u64 = Record::DISTANCE as u64;
const RECORD_DESCRIBE: u64 = Record::DESCRIBE as u64;
const RECORD_ON: u64 = Record::ON as u64;
const RECORD_SIZE: u64 = size_of::<Record>() as u64;

/// The sites of an image, and remarks about missing ones.
#[derive(Debug, Default)]
pub struct Listing {
    /// Sorted by name, then by source file and line, object and address.
    pub sites: Vec<Site>,
    /// Sentences that say what is missing and why.
    pub remarks: Vec<String>,
    /// Whether some object lists its sites, even if there are none.
    pub is_instrumented: bool,
}

impl Listing {
    /// Reads all sites. Records that make no sense are left out, with a remark.
    pub fn of(image: &dyn Image) -> Self {
        let mut listing = Self::default();
        let mut reader = Reader::new(image);
        let mut left = MOST_RECORDS;
        for (index, object) in image.objects().iter().enumerate() {
            let found = records(image, index);
            if found.damaged {
                listing
                    .remarks
                    .push(format!("{}: its notes are damaged, so sites may be missing", object.name));
            }
            for version in &found.other_versions {
                listing.remarks.push(format!(
                    "{}: it has sites of another version of tracewing (format {version}): use that version's \
                     `tracewing sites`",
                    object.name
                ));
            }
            listing.is_instrumented |= !found.stretches.is_empty();
            let mut unreadable: BTreeMap<&'static str, u64> = BTreeMap::new();
            for (first, count) in &found.stretches {
                let count = (*count).min(left);
                left -= count;
                for record in (0..count).map(|record| first.plus(record * RECORD_SIZE)) {
                    match site(image, object.elf.processor, record, &mut reader) {
                        Ok(site) => listing.sites.push(site),
                        Err(what) => *unreadable.entry(what).or_default() += 1,
                    }
                }
            }
            for (what, count) in unreadable {
                let sites = if count == 1 { "site" } else { "sites" };
                listing
                    .remarks
                    .push(format!("{}: the {what} of {count} {sites} cannot be read", object.name));
            }
        }
        if left == 0 {
            listing.remarks.push(format!("only the first {MOST_RECORDS} sites are listed"));
        }
        listing.sites.sort_by(|a, b| key(a).cmp(&key(b)));
        listing
    }
}

fn key(site: &Site) -> (&str, &str, u32, usize, Option<u64>) {
    (&site.class.name, &site.file, site.line, site.object, site.address)
}

/// Reads one record and the site that it refers to, or returns what cannot be read.
fn site(
    image: &dyn Image,
    processor: Processor,
    record: Place,
    reader: &mut Reader<'_>,
) -> Result<Site, &'static str> {
    let distance = word(image, record.plus(RECORD_DISTANCE)).ok_or("record")?;
    let instruction = (distance != 0).then(|| record.plus(distance));
    let describe = image.pointer(record.plus(RECORD_DESCRIBE)).ok_or("address of the description")?;
    let described = returned_address(image, processor, describe).ok_or("way to the description")?;
    let described = reader.site(described)?;
    let state = match instruction {
        Some(at) => {
            let mut head = [0; HEAD];
            image.read(at, &mut head).ok_or("instruction")?;
            match Instruction::from_head(head) {
                Ok(Instruction { is_on, has_breakpoint: true }) => State::Breakpoint { is_on },
                Ok(Instruction { is_on: true, .. }) => State::On,
                Ok(Instruction { is_on: false, .. }) => State::Off,
                Err(byte) => State::Unknown(byte),
            }
        }
        None => match half_word(image, record.plus(RECORD_ON)).ok_or("record")? {
            0 => State::Off,
            _ => State::On,
        },
    };
    Ok(Site {
        class: described.class,
        kind: described.kind,
        file: described.file,
        line: described.line,
        object: record.object,
        address: instruction.map(|at| at.address),
        state,
    })
}
