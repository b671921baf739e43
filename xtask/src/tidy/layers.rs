//! The rule that nothing imports from its own layer or a higher one: crates from crates, and modules of a
//! crate from each other.
//!
//! The table "Layers" in `ARCHITECTURE.md` assigns layers: one row for the crates, by their `Cargo.toml`s,
//! and one for the modules of each crate that has layers. A module that no row names is below all others. The
//! root of a crate, `lib.rs` or `main.rs`, is above all: what it defines itself, no module imports.

use super::imports;
use super::{File, Finding, Tree};
use std::collections::BTreeMap;

/// Where the table is.
const PAGE: &str = "ARCHITECTURE.md";

/// The line above the table, as [`PAGE`] has it.
const HEAD: &str = "| of | from the bottom to the top |";

/// What a row is of that is about crates; all others are of modules in such a folder.
const CRATES: &str = "crates";

/// How high each name is.
type Ranks = BTreeMap<String, usize>;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(page) = tree.files.get(PAGE) else { return };
    let rows: Vec<_> = page.text.lines().skip_while(|line| *line != HEAD).skip(2).map_while(row).collect();
    if rows.is_empty() {
        findings.push(page.finding(1, format!("there is no table `{HEAD}`")));
    }
    for (of, ranks) in &rows {
        for name in ranks.keys() {
            let places = ["/Cargo.toml", ".rs", "/mod.rs"].map(|end| format!("{of}/{name}{end}"));
            if !places.iter().any(|place| tree.files.contains_key(place)) {
                findings.push(page.finding(1, format!("there is no `{name}` in `{of}`")));
            }
        }
        for file in tree.files.values() {
            match of == CRATES {
                true => dependencies(file, ranks, findings),
                false => modules(file, of, ranks, tree, findings),
            }
        }
    }
}

/// `` | `crates` | abi files < ring | `` as what it is of, and the ranks.
fn row(line: &str) -> Option<(String, Ranks)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let (of, layers) = (cells.next()?.trim_matches('`'), cells.next()?);
    let ranks = layers.split('<').enumerate().flat_map(|(rank, layer)| {
        layer.split_whitespace().map(move |name| (name.trim_matches('`').to_owned(), rank))
    });
    Some((of.to_owned(), ranks.collect()))
}

/// What a crate needs; for its tests and examples it may need any other.
fn dependencies(file: &File, ranks: &Ranks, findings: &mut Vec<Finding>) {
    let name = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"));
    let Some(name) = name.filter(|name| !name.contains('/')) else { return };
    let Some(rank) = ranks.get(name) else {
        findings.push(file.finding(1, format!("`{name}` is in no layer of {PAGE}")));
        return;
    };
    let mut section = "";
    for (index, line) in file.text.lines().enumerate() {
        if let Some(begin) = line.strip_prefix('[') {
            section = begin.trim_end().trim_end_matches(']');
        }
        let word = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let needed = if word == "tracewing" { Some(word) } else { word.strip_prefix("tracewing-") };
        let is_of_tests = !section.ends_with("dependencies") || section.ends_with("dev-dependencies");
        let Some(needed) = needed.filter(|_| !is_of_tests) else { continue };
        if ranks.get(needed).is_none_or(|needed| needed >= rank) {
            findings
                .push(file.finding(index + 1, format!("`{name}` needs `{needed}`, which is not below it")));
        }
    }
}

/// What a module of the crate in the folder `source` imports.
fn modules(file: &File, source: &str, ranks: &Ranks, tree: &Tree, findings: &mut Vec<Finding>) {
    let below = file.path.strip_prefix(source).and_then(|path| path.strip_prefix('/'));
    let Some(path) = below.and_then(|path| path.strip_suffix(".rs")) else { return };
    let module: Vec<String> = path.split('/').filter(|name| *name != "mod").map(str::to_owned).collect();
    let top = &module[0];
    if ["lib", "main"].contains(&top.as_str()) {
        return;
    }
    let roots = ["lib", "main"].map(|name| tree.files.get(&format!("{source}/{name}.rs")));
    let root = roots.into_iter().flatten().next();
    let exported = root.map(imports::re_exports).unwrap_or_default();
    let above = root.map(imports::items).unwrap_or_default();
    let mut last = 0;
    for import in imports::of(file, &module) {
        if let Some(name) = import.path.first().filter(|name| above.contains(*name)) {
            let message = format!("`{top}` imports `{name}` of the crate's root, which is above all modules");
            findings.push(file.finding(import.line, message));
        }
        let path = import.path.first().and_then(|name| exported.get(name)).unwrap_or(&import.path);
        let Some(target) = path.first().filter(|target| *target != top) else { continue };
        let Some(rank) = ranks.get(target) else { continue };
        if ranks.get(top).is_none_or(|own| rank >= own) && last != import.line {
            last = import.line;
            findings.push(
                file.finding(import.line, format!("`{top}` imports `{target}`, which is not below it")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Layers\n\n| of | from the bottom to the top |\n|---|---|\n\
        | `crates` | abi files < ring < cli |\n\
        | `crates/cli/src` | read < show list |\n\nText.\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        let root = "//! Head.\nmod error;\nmod list;\nmod read;\nmod show;\npub use error::Error;\npub use show::Table;\npub const fn run() {}\n";
        let mut files =
            vec![(PAGE, TABLE), ("crates/cli/src/lib.rs", root), ("crates/cli/src/read/mod.rs", "")];
        files.extend(["crates/cli/src/show.rs", "crates/cli/src/list.rs"].map(|path| (path, "")));
        let crates = ["abi", "files", "ring", "cli"].map(|name| format!("crates/{name}/Cargo.toml"));
        files.extend(crates.iter().map(|path| (path.as_str(), "")));
        files.push((path, text));
        findings(&Tree::of(&files))
    }

    fn findings(tree: &Tree) -> Vec<String> {
        let mut findings = Vec::new();
        check(tree, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_upward_import_is_found() {
        let upward = "crates/cli/src/read/file.rs:3: `read` imports `show`, which is not below it";
        for import in ["use crate::show::Table;", "use crate::Table;", "use super::super::show;"] {
            assert_eq!(found("crates/cli/src/read/file.rs", &format!("//! Head.\n\n{import}\n")), [upward]);
        }
        let sideways = found("crates/cli/src/show.rs", "fn f() { crate::list::g() }\n");
        assert_eq!(sideways, ["crates/cli/src/show.rs:1: `show` imports `list`, which is not below it"]);
        let unnamed = found("crates/cli/src/other.rs", "use crate::read::File;\n");
        assert_eq!(unnamed, ["crates/cli/src/other.rs:1: `other` imports `read`, which is not below it"]);
    }

    #[test]
    fn an_import_of_what_the_root_defines_is_found() {
        let root =
            "crates/cli/src/read.rs:1: `read` imports `run` of the crate's root, which is above all modules";
        assert_eq!(found("crates/cli/src/read.rs", "use crate::run;\n"), [root]);
        assert_eq!(found("crates/cli/src/read.rs", "use crate::running;\n"), [""; 0]);
    }

    #[test]
    fn imports_from_below_are_not() {
        let text = "use crate::Error;\nuse crate::read::File;\nuse super::error;\nuse crate::show::a;\n";
        assert_eq!(found("crates/cli/src/show.rs", text), [""; 0]);
        assert_eq!(found("crates/cli/src/main.rs", "use crate::show;\n"), [""; 0]);
        assert_eq!(found("crates/other/src/read.rs", "use crate::show;\n"), [""; 0]);
        let tests = "//! Head.\n#[cfg(test)]\nmod tests {\n    use crate::show;\n}\n";
        assert_eq!(found("crates/cli/src/read.rs", tests), [""; 0]);
    }

    #[test]
    fn a_crate_needs_lower_ones_only() {
        let manifest = |needs: &str| format!("[package]\nname = \"x\"\n\n{needs}\n");
        let of = |name: &str, needs: &str| found(&format!("crates/{name}/Cargo.toml"), &manifest(needs));
        assert_eq!(
            of("ring", "[dependencies]\ntracewing-cli.workspace = true"),
            ["crates/ring/Cargo.toml:5: `ring` needs `cli`, which is not below it"]
        );
        assert_eq!(
            of("abi", "[dependencies]\ntracewing-files = { path = \"..\" }"),
            ["crates/abi/Cargo.toml:5: `abi` needs `files`, which is not below it"]
        );
        assert_eq!(of("new", ""), ["crates/new/Cargo.toml:1: `new` is in no layer of ARCHITECTURE.md"]);
        assert_eq!(of("cli", "[dependencies]\ntracewing-ring.workspace = true\nlibc = \"1\""), [""; 0]);
        assert_eq!(of("abi", "[dev-dependencies]\ntracewing-cli.workspace = true"), [""; 0]);
    }

    #[test]
    fn a_table_that_is_gone_or_wrong_is_found() {
        assert_eq!(findings(&Tree::of(&[(PAGE, "# Layers\n")])).len(), 1);
        let table = format!("{HEAD}\n|---|---|\n| `crates` | abi < gone |\n");
        let wrong = findings(&Tree::of(&[(PAGE, &table), ("crates/abi/Cargo.toml", "")]));
        assert_eq!(wrong, ["ARCHITECTURE.md:1: there is no `gone` in `crates`"]);
    }
}
