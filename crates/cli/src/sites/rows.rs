//! The places of an image as rows: sites, and USDT probes; and the columns that they have.

use crate::table::{Cell, Column, columns};
use serde_json::{Value, json};
use std::path::Path;
use tracewing_abi::schema::{Base, Scalar};
use tracewing_abi::site::Kind;
use tracewing_programs::image::{Image, Place};
use tracewing_programs::probes::{Usdt, usdt};
use tracewing_programs::sites::{Field, Listing, Site};
use tracewing_units::Pid;

/// The state of a site that records.
const ON: &str = "on";

/// A place where a program can be traced.
pub struct Row {
    pub name: String,
    /// Sites have one, and USDT probes none.
    level: Option<String>,
    major: u8,
    state: String,
    kind: &'static str,
    process: Option<Pid>,
    object: String,
    address: Option<u64>,
    source: Option<(String, u32)>,
    fields: Cell,
    description: String,
}

pub fn columns() -> Vec<Column<Row>> {
    columns! { row: Row;
        text "name" "name" key, "name of the event or the probe" => row.name.as_str().into();
        text "level" "level" low, "level of the event" => row.level.as_deref().map_or(Cell::None, Cell::from);
        number "major" "major" low, "major class of the event" => Cell::Count(row.major.into());
        text "state" "state" key, "on or off, or breakpoint or uprobe if one is in its place" => row.state.as_str().into();
        text "kind" "kind" normal, "event, callback or usdt" => row.kind.into();
        number "process" "process" low, "id of the process that it is in" => Cell::count(row.process.map(|pid| pid.as_unsigned().into()));
        text "object" "object" high, "program or library; in text, without its folder"
            => row.object.as_str().into(), in_text: row.object_name();
        text "address" "address" normal, "address in the file, or in the process"
            => row.address.map_or(Cell::None, |address| format!("{address:#x}").into());
        text "source" "source" normal + only_text, "file and line of the source" => row.file_and_line();
        text "file" "file" extra, "file of the source" => row.source.as_ref().map_or(Cell::None, |(file, _)| file.as_str().into());
        number "line" "line" extra, "line of the source" => Cell::count(row.source.as_ref().map(|(_, line)| u64::from(*line)));
        list "fields" "fields" high + shrinking, "names, types and units of the fields" => row.fields.clone();
        text "description" "description" extra, "the author's description; arguments of a USDT probe" => row.description.as_str().into();
    }
}

impl Row {
    pub fn is_on(&self) -> bool {
        self.state == ON
    }

    fn object_name(&self) -> Cell {
        Path::new(&self.object).file_name().unwrap_or_default().to_string_lossy().into_owned().into()
    }

    fn file_and_line(&self) -> Cell {
        self.source.as_ref().map_or(Cell::None, |(file, line)| format!("{file}:{line}").into())
    }
}

/// The sites of an image.
pub fn site_rows(image: &dyn Image, listing: &Listing, process: Option<Pid>) -> Vec<Row> {
    let row = |site: &Site| {
        let object = image.objects().get(site.object).map_or("", |object| object.name.as_str());
        site_row(site, object, process)
    };
    listing.sites.iter().map(row).collect()
}

fn site_row(site: &Site, object: &str, process: Option<Pid>) -> Row {
    Row {
        name: site.class.name.clone(),
        level: Some(format!("{:?}", site.class.level).to_lowercase()),
        major: site.class.major,
        state: site.state.to_string(),
        kind: match site.kind {
            Kind::Event => "event",
            Kind::Callback => "callback",
        },
        process,
        object: object.to_owned(),
        address: site.address,
        source: Some((site.file.clone(), site.line)),
        fields: list(site.class.fields.iter().map(field)),
        description: site.class.description.clone(),
    }
}

/// A field as text, `wait u64 (ns)`, and as JSON has it.
fn field(field: &Field) -> (String, Value) {
    let mut text = format!("{} {field}", field.name);
    let mut members = json!({ "name": field.name, "type": field.to_string() });
    if !field.unit.is_empty() {
        text += &format!(" ({})", field.unit);
        members["unit"] = field.unit.as_str().into();
    }
    let base = match field.base {
        Base::Decimal => None,
        Base::Hexadecimal => Some("hexadecimal"),
        Base::Octal => Some("octal"),
        Base::Binary => Some("binary"),
    };
    if let Some(base) = base {
        members["base"] = base.into();
    }
    if !field.labels.is_empty() {
        let label =
            |(value, label): &(u64, String)| json!({ "value": number(field.scalar, *value), "label": label });
        members["labels"] = field.labels.iter().map(label).collect();
    }
    (text, members)
}

fn list(fields: impl Iterator<Item = (String, Value)>) -> Cell {
    let (texts, members): (Vec<_>, Vec<_>) = fields.unzip();
    Cell::list(texts.join(", "), members.into())
}

/// What a processor executes where a debugger or a uprobe has put its breakpoint.
const BREAKPOINT: u8 = 0xcc;

/// The USDT probes of those objects of an image that `is_chosen` by name; a file that cannot be read has
/// none.
pub fn usdt_rows(image: &dyn Image, process: Option<Pid>, is_chosen: impl Fn(&String) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (object, of) in image.objects().iter().enumerate().filter(|(_, object)| is_chosen(&object.name)) {
        let found = usdt(Path::new(&of.name)).unwrap_or_default();
        rows.extend(found.iter().map(|probe| {
            let place = |address: u64| Place { object, address: address.wrapping_add(of.bias) };
            let (mut code, mut counter) = ([0], [0; 2]);
            let is_counted = probe.semaphore.and_then(|at| image.read(place(at), &mut counter)).is_some();
            let has_breakpoint =
                image.read(place(probe.address), &mut code).is_some() && code == [BREAKPOINT];
            let is_on = has_breakpoint || is_counted && counter != [0; 2];
            usdt_row(probe, &of.name, place(probe.address).address, is_on, process)
        }));
    }
    rows
}

fn usdt_row(probe: &Usdt, object: &str, address: u64, is_on: bool, process: Option<Pid>) -> Row {
    let field = |(nth, kind): (usize, Option<String>)| {
        let (name, kind) = (format!("arg{}", nth + 1), kind.unwrap_or_else(|| "unknown".to_owned()));
        (format!("{name} {kind}"), json!({ "name": name, "type": kind }))
    };
    Row {
        name: format!("{}:{}", probe.provider, probe.name),
        level: None,
        major: 0,
        state: (if is_on { ON } else { "off" }).to_owned(),
        kind: "usdt",
        process,
        object: object.to_owned(),
        address: Some(address),
        source: None,
        fields: list(probe.types().enumerate().map(field)),
        description: probe.arguments.clone(),
    }
}

/// The value of a label, whose bits are sign-extended where the type is signed.
fn number(scalar: Scalar, bits: u64) -> i128 {
    match scalar {
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => bits.cast_signed().into(),
        _ => bits.into(),
    }
}
