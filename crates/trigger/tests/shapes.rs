//! A function with a disabled site executes the instructions of the function without the site, and one more:
//! the test compiles `shapes/shapes.rs` for release and compares the assembly of each pair of functions on
//! the paths that are possible while sites are off.

mod common;

use common::dependencies;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use tracewing_testing::Workspace;

/// Stands for the site's instruction in a listing.
const SITE: &str = "(site)";

fn listing(features: &str) -> String {
    let name = if features.is_empty() { "shapes_absent" } else { "shapes" };
    let workspace = Workspace::new(env!("CARGO_TARGET_TMPDIR"), name, &["shapes"]);
    workspace.package("shapes", "[lib]", include_str!("shapes/shapes.rs"), &dependencies(features));
    let mut cargo = workspace.cargo("rustc");
    cargo.args([
        "-pshapes",
        "--release",
        "--lib",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--",
        "--emit=asm",
    ]);
    let output = cargo.args(["-Ccodegen-units=1", "-Cdebuginfo=0"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let folder = workspace.target().join("x86_64-unknown-linux-gnu/release/deps");
    let listings: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "s"))
        .collect();
    let newest = listings.iter().max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    fs::read_to_string(newest.unwrap()).unwrap()
}

/// A function's code: instructions, and the positions of labels among them.
#[derive(Default)]
struct Code<'a> {
    instructions: Vec<&'a str>,
    labels: BTreeMap<&'a str, usize>,
}

impl<'a> Code<'a> {
    /// The function `name` of a listing.
    fn of(listing: &'a str, name: &str) -> Self {
        let mut code = Self::default();
        // The compiler merges equal functions.
        let alias = format!("{name} = ");
        let name = listing.lines().find_map(|line| line.strip_prefix(&alias)).unwrap_or(name);
        let start = format!("{name}:");
        let lines = listing.lines().map(str::trim).skip_while(|line| **line != start).skip(1);
        let mut is_code = true;
        for line in lines {
            let line = line.split('#').next().unwrap().trim();
            if line.starts_with(".Lfunc_end") {
                return code;
            } else if let Some(section) = line.strip_prefix(".section") {
                is_code = section.trim().strip_prefix(".text.").is_some_and(|of| of.starts_with(name));
            } else if !is_code || line.is_empty() {
            } else if line == ".byte\t15" {
                code.instructions.push(SITE);
            } else if let Some(label) = line.strip_suffix(':') {
                code.labels.insert(label, code.instructions.len());
            } else if !line.starts_with('.') {
                code.instructions.push(line);
            }
        }
        panic!("no function {name} in the listing")
    }

    /// The target of a jump within the function.
    fn target(&self, instruction: &str) -> Option<usize> {
        let (operation, operand) = instruction.split_once('\t')?;
        operation.starts_with('j').then(|| self.labels.get(operand).copied()).flatten()
    }

    /// The instructions that can be executed while sites are off, without the sites themselves, jumps with
    /// the number of their target instruction; and the number of sites.
    fn executed(&self) -> (String, usize) {
        let mut executable = BTreeSet::new();
        let mut todo = vec![0];
        while let Some(at) = todo.pop() {
            if !executable.insert(at) {
                continue;
            }
            let instruction = self.instructions[at];
            todo.extend(self.target(instruction));
            let ends = ["jmp", "ret", "ud2"].iter().any(|operation| instruction.starts_with(operation));
            if !ends {
                todo.push(at + 1);
            }
        }
        let is_site = |at: &&usize| self.instructions[**at] == SITE;
        let kept: Vec<usize> = executable.iter().filter(|at| !is_site(at)).copied().collect();
        let sites = executable.len() - kept.len();
        let text = |&at: &usize| {
            let instruction = self.instructions[at];
            match self.target(instruction) {
                // The first one that is kept from there on.
                Some(target) => {
                    let number = kept.partition_point(|&other| other < target);
                    format!("{} {number}", instruction.split('\t').next().unwrap())
                }
                None => instruction.replace('\t', " "),
            }
        };
        (anonymous(&kept.iter().map(text).collect::<Vec<_>>().join("\n")), sites)
    }
}

/// The text without register names: the compiler chooses freely which register holds what, and in which order
/// the operands of an addition are.
fn anonymous(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| {
        let kind = if part.starts_with("xmm") { "vector" } else { "register" };
        text + "%" + kind + part.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
    })
}

/// The code of the sites: a closure that preserves all general registers, or a function that preserves some.
const WAYS: [&str; 2] = ["with", "light"];

/// The executed instructions of `NAME_WAY` and `NAME_without`, and the number of sites in the former.
fn pair(listing: &str, name: &str, way: &str) -> ([String; 2], usize) {
    let (with, sites) = Code::of(listing, &format!("{name}_{way}")).executed();
    let (without, none) = Code::of(listing, &format!("{name}_without")).executed();
    assert_eq!(none, 0);
    ([with, without], sites)
}

/// Functions in which a site adds only its own instruction, with their number of sites.
const EXACT: [(&str, usize); 12] = [
    ("leaf", 1),
    ("at_the_end", 1),
    ("between_calls", 1),
    ("tail_call", 1),
    ("branch", 1),
    ("two_sites", 2),
    ("floats", 1),
    ("many_registers", 1),
    ("crossing", 1),
    ("memory", 1),
    ("generic_byte", 1),
    ("generic_word", 1),
];

/// Loops: the site's code is placed after the loop's body, and a jump passes it when the loop ends.
const LOOPS: [&str; 2] = ["loop_body", "closure"];

/// A loop that the compiler vectorises, but not with a site in it.
const VECTORS: &str = "sum";

fn is_supported() -> bool {
    let is = cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"));
    if !is {
        tracewing_testing::skip(tracewing_testing::Cause::Processor, "builds for x86_64-unknown-linux-gnu");
    }
    is
}

#[test]
fn a_site_that_is_off_adds_one_instruction() {
    if !is_supported() {
        return;
    }
    let listing = listing("\"sites\"");
    let ways = |name| WAYS.map(|way| (name, way));
    for (name, way) in EXACT.map(|(name, _)| name).into_iter().flat_map(ways) {
        let ([with, without], sites) = pair(&listing, name, way);
        assert_eq!(with, without, "{name} {way}");
        assert_eq!(Some(&(name, sites)), EXACT.iter().find(|shape| shape.0 == name), "{way}");
    }
    for (name, way) in LOOPS.into_iter().flat_map(ways) {
        let ([with, without], sites) = pair(&listing, name, way);
        let (jumps, rest): (Vec<&str>, Vec<&str>) = with.lines().partition(|line| line.starts_with("jmp"));
        assert_eq!(rest.join("\n"), without, "{name} {way}");
        assert_eq!((jumps.len(), sites), (1, 1), "{name} {way}");
    }
    let ([with, without], sites) = pair(&listing, VECTORS, "with");
    assert!(
        without.contains("paddq") && !with.contains("%vector"),
        "docs/explanation/triggers.md says otherwise"
    );
    assert_eq!(sites, 1);
}

#[test]
fn a_site_that_is_compiled_out_leaves_no_code() {
    if !is_supported() {
        return;
    }
    let listing = listing("");
    let names = EXACT.map(|(name, _)| name);
    let names = names.into_iter().chain(LOOPS).chain([VECTORS]);
    for (name, way) in names.flat_map(|name| WAYS.map(|way| (name, way))) {
        let ([with, without], sites) = pair(&listing, name, way);
        assert_eq!((with, sites), (without, 0), "{name} {way}");
    }
    for trace in ["tracewing_sites", ".note.tracewing", "init_array", "shapes:site", "trampoline"] {
        assert!(!listing.contains(trace), "{trace} is left");
    }
}
