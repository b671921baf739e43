//! `tracewing sites`: the places where programs can be traced, as a table, JSON or CSV.

use crate::format::TableFormat;
use crate::options::EventNames;
use crate::output::{Output, shown};
use crate::screen::{self, Form};
use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_abi::schema::{Base, Scalar};
use tracewing_abi::site::Kind;
use tracewing_programs::image::{Files, Image, Place, Process, find_library};
use tracewing_programs::probes::{Usdt, usdt};
use tracewing_programs::sites::{Listing, Site};
use tracewing_trace::Sink;

/// What `tracewing sites` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing sites target/release/shop                   of a program and the libraries that it needs
  tracewing sites shop plugins/*.so                     also of its plug-ins
  tracewing sites 4711 -e 'shop:*'                      of a process, with what is on
  tracewing sites shop --format csv > sites.csv
  tracewing sites libc.so.6 -e 'libc:memory_*'          USDT probes, for `tracewing record --usdt`

USDT probes are listed of the files that are named, and of a process's executable; of all libraries with --all-usdt. \
The program is not run. A line is one copy of a site: the compiler makes several where it inlines the code around it, or \
instantiates it for several types. Addresses are those of the file, or of the process. A process is only read: it \
may be stopped, or being debugged; reading it takes the rights of a debugger. In a file all sites are off. \
A site with a debugger's breakpoint or a uprobe on it is shown as such. A name of digits is a process: write ./4711 \
for a file.")]
pub struct Args {
    /// Programs, libraries and plug-ins (a path, or a command of your PATH), or process ids
    #[arg(required = true, value_name = "PROGRAM|PID")]
    sources: Vec<String>,

    #[command(flatten)]
    names: EventNames,

    /// Also the USDT probes of libraries that are not named
    #[arg(long)]
    all_usdt: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
}

/// A site as all forms of output show it. The names are part of the output.
#[derive(Serialize)]
struct Row {
    name: String,
    level: String,
    major: u8,
    state: String,
    kind: &'static str,
    process: Option<u32>,
    object: String,
    address: Option<String>,
    file: String,
    line: u32,
    fields: Vec<FieldRow>,
    description: String,
}

#[derive(Serialize)]
struct FieldRow {
    name: String,
    r#type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<LabelRow>,
}

#[derive(Serialize)]
struct LabelRow {
    value: i128,
    label: String,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (pids, programs): (Vec<_>, Vec<_>) = args.sources.iter().partition(|source| is_pid(source));
    let mut rows = Vec::new();
    let mut remarks = Vec::new();
    if !programs.is_empty() {
        let paths: Vec<_> = programs.iter().map(|program| path_of(program)).collect();
        let files = Files::open(&paths)?;
        let listing = Listing::of(&files);
        let missing = files.missing().iter();
        remarks.extend(
            missing.map(|name| {
                format!("{name} is needed and was not found: if it has sites, give its path, too")
            }),
        );
        let named: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let usdt = usdt_rows(&files, None, |object| args.all_usdt || named.contains(object));
        if usdt.is_empty() {
            remarks.extend(why_none(&listing, &shown_list(&programs)));
        }
        add(&mut rows, &files, listing, None, &mut remarks);
        rows.extend(usdt);
    }
    for pid in pids {
        let pid = pid.parse()?;
        let process = Process::open(pid)?;
        let listing = Listing::of(&process);
        let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let usdt = usdt_rows(&process, Some(pid), |object| args.all_usdt || Path::new(object) == executable);
        if usdt.is_empty() {
            remarks.extend(why_none(&listing, &format!("process {pid}")));
        }
        add(&mut rows, &process, listing, Some(pid), &mut remarks);
        rows.extend(usdt);
    }
    let all = rows.len();
    rows.retain(|row| args.names.choose(&row.name));
    if rows.is_empty() && all > 0 {
        remarks.push(format!("none of the {} has a name that matches", count(all)));
    }
    let mut out = screen::stdout(args.format.into());
    match args.format {
        TableFormat::Table => table(&mut out, &rows)?,
        TableFormat::Json => {
            let answer = serde_json::json!({ "sites": rows, "warnings": remarks });
            serde_json::to_writer(&mut out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => csv(&mut out, &rows)?,
    }
    out.flush()?;
    for remark in remarks {
        Output::new(Form::Text).warning(format!("WARNING: {}\n", shown(&remark)).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A number that is meant as a process id.
fn is_pid(source: &str) -> bool {
    source.bytes().all(|byte| byte.is_ascii_digit()) && source.parse::<u32>().is_ok()
}

/// The file of that name, or the command of that name which a shell would start, or the library of that name.
fn path_of(program: &str) -> PathBuf {
    let path = PathBuf::from(program);
    if program.contains('/') || path.exists() {
        return path;
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file());
    found.or_else(|| find_library(program)).unwrap_or(path)
}

fn shown_list(programs: &[&String]) -> String {
    programs.iter().map(|program| program.as_str()).collect::<Vec<_>>().join(", ")
}

/// Why there are no sites, where there are none and no remark tells.
fn why_none(listing: &Listing, of: &str) -> Option<String> {
    let reason = match (listing.sites.is_empty(), listing.remarks.is_empty(), listing.is_instrumented) {
        (false, ..) | (true, false, _) => return None,
        (true, true, true) => "the linker has dropped all of them, since no code with a site is ever called",
        (true, true, false) => {
            "nothing in it is linked with the crate `tracewing`, or emits nothing, or has its sites compiled out"
        }
    };
    Some(format!("no sites in {of}: {reason}"))
}

fn add(
    rows: &mut Vec<Row>,
    image: &dyn Image,
    listing: Listing,
    process: Option<u32>,
    remarks: &mut Vec<String>,
) {
    remarks.extend(listing.remarks);
    rows.extend(listing.sites.iter().map(|site| {
        let object = image.objects().get(site.object).map_or("", |object| object.name.as_str());
        row(site, object, process)
    }));
}

fn row(site: &Site, object: &str, process: Option<u32>) -> Row {
    let fields = site.class.fields.iter().map(|field| FieldRow {
        name: field.name.clone(),
        r#type: field.to_string(),
        unit: field.unit.clone(),
        base: match field.base {
            Base::Decimal => None,
            Base::Hexadecimal => Some("hexadecimal"),
            Base::Octal => Some("octal"),
            Base::Binary => Some("binary"),
        },
        labels: field
            .labels
            .iter()
            .map(|(value, label)| LabelRow { value: number(field.scalar, *value), label: label.clone() })
            .collect(),
    });
    Row {
        name: site.class.name.clone(),
        level: format!("{:?}", site.class.level).to_lowercase(),
        major: site.class.major,
        state: site.state.to_string(),
        kind: match site.kind {
            Kind::Event => "event",
            Kind::Callback => "callback",
        },
        process,
        object: object.to_owned(),
        address: site.address.map(|address| format!("{address:#x}")),
        file: site.file.clone(),
        line: site.line,
        fields: fields.collect(),
        description: site.class.description.clone(),
    }
}

/// What a processor executes where a debugger or a uprobe has put its breakpoint.
const BREAKPOINT: u8 = 0xcc;

/// The USDT probes of an image's objects whose names are `wanted`; a file that cannot be read has none.
fn usdt_rows(image: &dyn Image, process: Option<u32>, wanted: impl Fn(&String) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (object, of) in image.objects().iter().enumerate().filter(|(_, object)| wanted(&object.name)) {
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

fn usdt_row(probe: &Usdt, object: &str, address: u64, is_on: bool, process: Option<u32>) -> Row {
    let field = |(nth, kind): (usize, Option<String>)| FieldRow {
        name: format!("arg{}", nth + 1),
        r#type: kind.unwrap_or_else(|| "unknown".to_owned()),
        unit: String::new(),
        base: None,
        labels: Vec::new(),
    };
    Row {
        name: format!("{}:{}", probe.provider, probe.name),
        level: String::new(),
        major: 0,
        state: if is_on { "on" } else { "off" }.to_owned(),
        kind: "usdt",
        process,
        object: object.to_owned(),
        address: Some(format!("{address:#x}")),
        file: String::new(),
        line: 0,
        fields: probe.types().enumerate().map(field).collect(),
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

fn table(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut shown_table = Table::new();
    shown_table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    shown_table.set_header(["state", "level", "major", "object", "address", "source", "name and fields"]);
    for row in rows {
        let object = Path::new(&row.object).file_name().unwrap_or_default().to_string_lossy();
        let process = row.process.map_or_else(String::new, |pid| format!("{pid}/"));
        let is_usdt = row.kind == "usdt";
        let separator = if row.fields.is_empty() { "" } else { ": " };
        shown_table.add_row([
            row.state.clone(),
            if is_usdt { "usdt".to_owned() } else { row.level.clone() },
            row.major.to_string(),
            shown(&format!("{process}{object}")).into_owned(),
            row.address.clone().unwrap_or_else(|| "-".to_owned()),
            if is_usdt { "-".to_owned() } else { shown(&format!("{}:{}", row.file, row.line)).into_owned() },
            shown(&format!("{}{separator}{}", row.name, fields_text(row))).into_owned(),
        ]);
    }
    for (index, column) in shown_table.column_iter_mut().enumerate() {
        if matches!(index, 2 | 4) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
    }
    for line in shown_table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    let on = rows.iter().filter(|row| row.state == "on").count();
    let classes = {
        let mut names: Vec<_> = rows.iter().map(|row| &row.name).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    };
    writeln!(
        out,
        "{} of {classes} {}, {on} on",
        count(rows.len()),
        if classes == 1 { "name" } else { "names" }
    )
}

fn count(sites: usize) -> String {
    if sites == 1 { "1 site".to_owned() } else { format!("{sites} sites") }
}

/// `id u64, wait u64 (ns)`.
fn fields_text(row: &Row) -> String {
    let field = |field: &FieldRow| {
        let unit = if field.unit.is_empty() { String::new() } else { format!(" ({})", field.unit) };
        format!("{} {}{unit}", field.name, field.r#type)
    };
    row.fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn csv(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    writeln!(out, "name,level,major,state,kind,process,object,address,file,line,fields,description")?;
    for row in rows {
        // A name may hold anything.
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{}",
            quoted(&row.name),
            row.level,
            row.major,
            row.state,
            row.kind,
            row.process.map_or_else(String::new, |pid| pid.to_string()),
            quoted(&row.object),
            row.address.as_deref().unwrap_or_default(),
            quoted(&row.file),
            row.line,
            quoted(&fields_text(row)),
            quoted(&row.description),
        )?;
    }
    Ok(())
}
