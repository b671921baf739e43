//! The rule that the modules of one folder do not depend on each other in a cycle.
//!
//! A module stands for everything below it: an import of `a::b` by `c::d` makes `c` depend on `a` in the
//! folder of both. Definitions in the folder's own file, and dependencies of its tests, are ignored.

use super::imports;
use super::{File, Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// Which modules of a folder need which, and the first import that says so: its file and line.
type Needs = BTreeMap<String, BTreeMap<String, (String, usize)>>;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &File>> = BTreeMap::new();
    for file in tree.files.values() {
        if let Some((source, module)) = module_of(&file.path) {
            crates.entry(source).or_default().insert(module, file);
        }
    }
    for modules in crates.into_values() {
        let mut folders: BTreeMap<Module, Needs> = BTreeMap::new();
        for (module, file) in &modules {
            for import in imports::of(file, module) {
                for depth in 0..module.len() {
                    let folder = &module[..depth];
                    if let Some(needed) = needed(&modules, folder, &import.path)
                        && needed != module[depth]
                    {
                        let needs = folders.entry(folder.to_vec()).or_default();
                        let of_module = needs.entry(module[depth].clone()).or_default();
                        of_module.entry(needed).or_insert((file.path.clone(), import.line));
                    }
                }
            }
        }
        for needs in folders.values() {
            findings.extend(cycles(needs).iter().map(|members| finding(members, needs)));
        }
    }
}

/// The `src` folder in which a file is, and its module's path; none for roots of crates and for tests.
fn module_of(path: &str) -> Option<(&str, Module)> {
    let (before, below) = path.split_once("/src/")?;
    let module: Module = below.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    let is_outside = module.len() == 1 && ["lib", "main"].contains(&module[0].as_str());
    let is_test = module.iter().any(|name| name == "tests" || name == "bin");
    let module = if module.last().is_some_and(|name| name == "mod") {
        module[..module.len() - 1].to_vec()
    } else {
        module
    };
    (!is_outside && !is_test).then(|| (&path[..before.len() + "/src".len()], module))
}

/// The module of the folder that an import reaches, also by a name that the folder's own file re-exports.
fn needed(modules: &BTreeMap<Module, &File>, folder: &[String], path: &[String]) -> Option<String> {
    let first = path.strip_prefix(folder)?.first()?;
    let is_child = |name: &String| {
        let child: Module = folder.iter().chain([name]).cloned().collect();
        modules.range(child.clone()..).next().is_some_and(|(module, _)| module.starts_with(&child))
    };
    if is_child(first) {
        return Some(first.clone());
    }
    let exported = imports::re_exports(modules.get(folder)?);
    exported.get(first).and_then(|path| path.first()).filter(|name| is_child(name)).cloned()
}

/// The greatest sets of modules that need each other.
fn cycles(needs: &Needs) -> Vec<BTreeSet<&String>> {
    let reached = |from: &String| {
        let mut reached: BTreeSet<&String> = BTreeSet::new();
        let mut open: Vec<&String> = needs.get(from).into_iter().flat_map(BTreeMap::keys).collect();
        while let Some(name) = open.pop() {
            if reached.insert(name) {
                open.extend(needs.get(name).into_iter().flat_map(BTreeMap::keys));
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        needs.keys().map(|name| (name, reached(name))).collect();
    let mut cycles: Vec<BTreeSet<&String>> = Vec::new();
    for (name, others) in reached.iter().filter(|(name, others)| others.contains(*name)) {
        if !cycles.iter().any(|cycle| cycle.contains(name)) {
            let back = |other: &&&String| reached.get(**other).is_some_and(|needed| needed.contains(name));
            cycles.push(others.iter().filter(back).copied().collect());
        }
    }
    cycles
}

/// One finding for a cycle, at the first import within it.
fn finding(members: &BTreeSet<&String>, needs: &Needs) -> Finding {
    let mut within =
        members.iter().flat_map(|member| &needs[*member]).filter(|(needed, _)| members.contains(needed));
    let (path, line) = within.next().map(|(_, place)| place.clone()).unwrap_or_default();
    let names: Vec<&str> = members.iter().map(|name| name.as_str()).collect();
    Finding { path, line, message: format!("the modules {} need each other", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Tree::of(files), &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn modules_that_need_each_other_are_found_in_every_folder() {
        let cycle = [
            ("crates/x/src/lib.rs", "mod a;\n"),
            ("crates/x/src/a/mod.rs", "mod b;\nmod c;\nmod d;\n"),
            ("crates/x/src/a/b.rs", "//! B.\n\nuse super::c::C;\n"),
            ("crates/x/src/a/c/mod.rs", "mod e;\n"),
            ("crates/x/src/a/c/e.rs", "use crate::a::d::D;\n"),
            ("crates/x/src/a/d.rs", "fn f() { super::b::g() }\n"),
        ];
        assert_eq!(found(&cycle), ["crates/x/src/a/b.rs:3: the modules b, c, d need each other"]);
        assert_eq!(found(&cycle[..5]), [""; 0]);
        let at_the_root =
            [("crates/y/src/a.rs", "use crate::b;\n"), ("crates/y/src/b.rs", "use super::a;\n")];
        assert_eq!(found(&at_the_root), ["crates/y/src/a.rs:1: the modules a, b need each other"]);
    }

    #[test]
    fn names_that_a_folder_re_exports_lead_to_their_modules() {
        let of = |own: &str| {
            found(&[
                ("crates/x/src/a.rs", own),
                ("crates/x/src/a/b.rs", "use super::C;\n"),
                ("crates/x/src/a/c.rs", "use super::b::B;\n"),
            ])
        };
        assert_eq!(
            of("mod b;\nmod c;\npub use c::C;\n"),
            ["crates/x/src/a/b.rs:1: the modules b, c need each other"]
        );
        assert_eq!(of("mod b;\nmod c;\npub struct C;\n"), [""; 0]);
    }

    #[test]
    fn tests_and_what_is_below_a_module_do_not_count() {
        let files = [
            ("crates/x/src/a.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n"),
            ("crates/x/src/a/inner.rs", "use super::A;\nuse crate::a::other;\n"),
            ("crates/x/src/a/other.rs", ""),
            ("crates/x/src/c.rs", "use crate::a;\n"),
            ("crates/x/src/b/tests.rs", "use crate::a;\n"),
            ("crates/x/src/b/mod.rs", ""),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
