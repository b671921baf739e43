//! `tracewing sites`: the places where programs can be traced, as a table, JSON or CSV.

mod rows;

use crate::format::TableFormat;
use crate::options::EventNames;
use crate::output::{count_of, print_warning};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{TableOptions, heads, write_json};
use anyhow::{Context, Result};
use rows::{Row, columns, site_rows, usdt_rows};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_programs::image::{Files, Process, find_library};
use tracewing_programs::sites::Listing;
use tracewing_units::Pid;

const HELP: &str = "\
Examples:
  tracewing sites target/release/shop                   a program and the libraries that it needs
  tracewing sites shop plugins/*.so                     also its plug-ins
  tracewing sites 4711 -e 'shop:*'                      a process, and which events are on
  tracewing sites shop --format csv > sites.csv
  tracewing sites libstdc++.so.6 -e 'libstdcxx:*'       USDT probes, for `tracewing record --usdt`

USDT probes are listed for the named files and for a process's executable; with --all-usdt, for all libraries. The \
program is not run. Each row is one copy of a site: the compiler makes several if it inlines the surrounding code, or \
instantiates it for several types. Addresses are those in the file, or in the process. A process is only read, so it \
may be stopped or under a debugger; reading it needs debugger rights. In a file, all sites are off. A site with a \
debugger's breakpoint or a uprobe on it is shown as such. A name that consists of digits is a process; write ./4711 \
for a file.
";

/// What `tracewing sites` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&[view()])))]
pub struct Args {
    /// Programs, libraries and plug-ins (a path, or a command of your PATH), or process ids
    #[arg(required = true, value_name = "PROGRAM|PID")]
    sources: Vec<String>,

    #[command(flatten)]
    names: EventNames,

    /// Also list the USDT probes of libraries that are not named on the command line
    #[arg(long)]
    all_usdt: bool,

    #[command(flatten)]
    table: TableOptions,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (format, layout) = (args.table.format(), args.table.layout(&columns())?);
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
        rows.extend(site_rows(&files, &listing, None));
        remarks.extend(listing.remarks);
        rows.extend(usdt);
    }
    for pid in pids {
        let pid: Pid = pid.parse().with_context(|| format!("there is no process {pid}"))?;
        let process = Process::open(pid)?;
        let listing = Listing::of(&process);
        let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let usdt = usdt_rows(&process, Some(pid), |object| args.all_usdt || Path::new(object) == executable);
        if usdt.is_empty() {
            remarks.extend(why_none(&listing, &format!("process {pid}")));
        }
        rows.extend(site_rows(&process, &listing, Some(pid)));
        remarks.extend(listing.remarks);
        rows.extend(usdt);
    }
    let all = rows.len();
    rows.retain(|row| args.names.choose(&row.name));
    if rows.is_empty() && all > 0 {
        remarks.push(format!("none of the {} has a name that matches", count_of(all, "site")));
    }
    let mut out = screen::stdout(format.into());
    let table = layout.table(&rows);
    match format {
        // The remarks explain why there are none.
        TableFormat::Table if rows.is_empty() => {}
        TableFormat::Json => {
            let members = [("warnings", &remarks)];
            write_json(&mut out, &[("sites", table)], &members)?;
        }
        _ => table.write(&mut out, format, ("sites", &[]), |out| print_totals(out, &rows))?,
    }
    out.flush()?;
    for remark in remarks {
        print_warning(&remark);
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

/// Why there are no sites, unless a remark explains it.
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

/// Below the table: how many there are.
fn print_totals(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    let on = rows.iter().filter(|row| row.is_on()).count();
    let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
    writeln!(out, "{} of {}, {on} on", count_of(rows.len(), "site"), count_of(names.len(), "name"))
}

pub fn view() -> View {
    View::new("sites", heads(columns()))
}
