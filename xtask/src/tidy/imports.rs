//! What a Rust file imports from its own crate: every path that begins with `crate::` or `super::`, in `use`
//! and elsewhere.
//!
//! It reads code as the lexer leaves it and does not resolve names, but for those that `lib.rs` re-exports:
//! `crate::Error` is an import of the module in which `Error` is.

use super::File;
use super::comments::tests_begin;
use std::collections::{BTreeMap, BTreeSet};

/// A path from the crate's root, and where it is written.
#[derive(Debug, PartialEq)]
pub(super) struct Import {
    pub path: Vec<String>,
    /// From 1.
    pub line: usize,
}

/// The imports of a file whose module has this path from the crate's root; those of its tests are left out.
pub(super) fn of(file: &File, module: &[String]) -> Vec<Import> {
    let code: Vec<char> = code(file).chars().collect();
    let mut imports = Vec::new();
    let mut line = 1;
    for at in 0..code.len() {
        line += usize::from(code[at] == '\n');
        let begins = at == 0 || !(code[at - 1].is_alphanumeric() || "_:$".contains(code[at - 1]));
        let Some(rest) = begins.then(|| origin(&code[at..])).flatten() else { continue };
        let (supers, rest) = rest;
        let base = match supers {
            0 => &[][..],
            supers => &module[..module.len().saturating_sub(supers)],
        };
        let mut paths = Vec::new();
        tree(rest, base, &mut paths);
        imports.extend(paths.into_iter().map(|path| Import { path, line }));
    }
    imports
}

/// What `use` declarations of a crate's root bring into it, by name.
pub(super) fn re_exports(root: &File) -> BTreeMap<String, Vec<String>> {
    let code = code(root);
    let mut names = BTreeMap::new();
    for declaration in code.split(';') {
        let Some((_, path)) = declaration.split_once("use ") else { continue };
        let mut paths = Vec::new();
        let path: Vec<char> = path.chars().collect();
        tree(path.strip_prefix(&['c', 'r', 'a', 't', 'e', ':', ':'][..]).unwrap_or(&path), &[], &mut paths);
        for path in paths {
            if let Some(name) = path.last() {
                names.insert(name.clone(), path);
            }
        }
    }
    names
}

/// The names of items that a crate's root defines itself.
pub(super) fn items(root: &File) -> BTreeSet<String> {
    const KINDS: [&str; 7] = ["struct", "enum", "trait", "fn", "type", "const", "static"];
    let name = |line: &str| {
        let mut words =
            line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        words.find(|word| KINDS.contains(word))?;
        words.find(|word| *word != "fn").map(str::to_owned)
    };
    let begins = |line: &&str| line.starts_with("pub ") || KINDS.iter().any(|kind| line.starts_with(kind));
    code(root).lines().filter(begins).filter_map(name).collect()
}

fn code(file: &File) -> String {
    let lines = file.lines.iter().take(tests_begin(file));
    lines.map(|line| format!("{}\n", line.code)).collect()
}

/// How many modules up a path begins, none for the crate's root, and what follows; `None` if no path begins
/// here.
fn origin(code: &[char]) -> Option<(usize, &[char])> {
    let after = |code: &'_ [char], word: &str| -> Option<usize> {
        let length = word.chars().count();
        (code.len() >= length && code[..length].iter().copied().eq(word.chars())).then_some(length)
    };
    if let Some(length) = after(code, "crate::") {
        return Some((0, &code[length..]));
    }
    let (mut supers, mut rest) = (0, code);
    while let Some(length) = after(rest, "super::") {
        (supers, rest) = (supers + 1, &rest[length..]);
    }
    (supers > 0).then_some((supers, rest))
}

/// Parses `a::{b, c::d}` and returns the code after it. `self` and `*` stand for the path before them.
fn tree<'c>(mut code: &'c [char], base: &[String], paths: &mut Vec<Vec<String>>) -> &'c [char] {
    let mut path = base.to_vec();
    loop {
        code = code.trim();
        let length = code.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
        let word: String = code[..length].iter().collect();
        if code.first() == Some(&'{') {
            code = &code[1..];
            loop {
                code = tree(code, &path, paths).trim();
                match code.first() {
                    Some(',') => code = &code[1..],
                    Some('}') => return &code[1..],
                    // What another name is given, or code that is no `use`.
                    Some(_) => {
                        let skipped = code.iter().take_while(|c| !",}".contains(**c)).count();
                        code = &code[skipped..];
                    }
                    None => return code,
                }
            }
        }
        if !word.is_empty() && word != "self" {
            path.push(word);
        }
        code = &code[length..];
        match code {
            [':', ':', rest @ ..] => code = rest,
            _ => {
                if path.len() > base.len() || length > 0 || code.first() == Some(&'*') {
                    paths.push(path);
                }
                return code.strip_prefix(&['*'][..]).unwrap_or(code);
            }
        }
    }
}

/// As [`str::trim_start`] does it.
trait Trim {
    fn trim(&self) -> &Self;
}

impl Trim for [char] {
    fn trim(&self) -> &Self {
        let spaces = self.iter().take_while(|c| c.is_whitespace()).count();
        &self[spaces..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(path: &str, module: &[&str], text: &str) -> Vec<(String, usize)> {
        let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
        let found = of(&File::new(path, text), &module);
        found.into_iter().map(|import| (import.path.join("/"), import.line)).collect()
    }

    #[test]
    fn every_path_of_a_group_is_found() {
        let text = "//! Head.\nuse crate::{Error, open::{self, find as f, part::*}};\nuse std::fs;\n";
        let paths = ["Error", "open", "open/find", "open/part"].map(|path| (path.to_owned(), 2));
        assert_eq!(imports("a.rs", &["a"], text), paths);
        let several = "use crate::a::{\n    b,\n    c,\n};\nuse crate::d;\n";
        assert_eq!(imports("e.rs", &["e"], several), [("a/b".into(), 1), ("a/c".into(), 1), ("d".into(), 5)]);
    }

    #[test]
    fn supers_lead_up() {
        let text = "use super::x;\nuse super::super::y;\npub(super) fn f() { super::super::z::g(); }\n";
        assert_eq!(
            imports("a/b.rs", &["a", "b"], text),
            [("a/x".into(), 1), ("y".into(), 2), ("z/g".into(), 3)]
        );
    }

    #[test]
    fn paths_in_code_count_and_those_in_tests_and_comments_do_not() {
        let text = "fn f() -> crate::a::B { x_crate::y() } // crate::c\n#[cfg(test)]\nmod tests {\n    use crate::d;\n}\n";
        assert_eq!(imports("e.rs", &["e"], text), [("a/B".into(), 1)]);
    }

    #[test]
    fn names_of_the_root_are_known() {
        let root = File::new(
            "lib.rs",
            "mod a;\npub use a::b::{C, D};\npub use other::E;\npub(crate) use crate::a::f;\n",
        );
        let names = re_exports(&root);
        assert_eq!(names["C"], ["a", "b", "C"]);
        assert_eq!(names["E"], ["other", "E"]);
        assert_eq!(names["f"], ["a", "f"]);
    }
}
