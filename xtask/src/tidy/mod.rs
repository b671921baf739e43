//! `cargo xtask tidy`: the house rules that neither rustfmt nor clippy knows, as a test.
//!
//! This file gathers the project's files and the findings. The rules are in this folder, each with tests that
//! show it failing.

mod comments;
mod cycles;
mod events;
mod files;
mod functions;
mod imports;
mod language;
mod layers;
mod lexer;
mod licences;
mod links;
mod locks;
mod messages;
mod references;
mod skips;
mod text;
mod units;
mod vocabulary;
mod width;

use anyhow::{Context, Result, bail};
use clap::Args;
use lexer::Line;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// Endings of the files that the rules look at.
const ENDINGS: &[&str] = &["rs", "md", "toml", "c", "h", "py", "sh"];

/// What `cargo xtask tidy` accepts.
#[derive(Args)]
pub struct Options {
    /// Check nothing, but count the idioms that the pages must not have, in the pages, comments, names and
    /// strings below these files and folders (a folder ends with `/`)
    #[arg(long, value_name = "ROOT", num_args = 1..)]
    count_idioms: Option<Vec<String>>,
}

/// Checks or counts.
pub fn run_with(options: &Options) -> Result<()> {
    let Some(roots) = &options.count_idioms else { return run() };
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let counts = language::counts(&Tree::read(&crate::root()?)?, &roots);
    for place in [language::Place::Prose, language::Place::Names, language::Place::Strings] {
        let here = counts.iter().filter(|((of, _), _)| *of == place);
        for ((_, idiom), count) in here.clone() {
            println!("{count:6}  {idiom}");
        }
        println!("{:6}  in all of {place:?}", here.map(|(_, count)| count).sum::<usize>());
    }
    Ok(())
}

/// Runs every rule over the project; prints what it finds and fails if there is anything.
pub fn run() -> Result<()> {
    let root = crate::root()?;
    let tree = Tree::read(&root)?;
    let mut findings = check(&tree);
    functions::check(&tree, &mut findings);
    let metadata = metadata(&root)?;
    findings.extend(licences::check(&licences::of_dependencies(&metadata)?));
    let needs = locks::needs(&metadata);
    for path in tree.paths.iter().filter(|path| path.ends_with("/Cargo.lock")) {
        let lock = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        findings.extend(locks::check(path, &lock, &needs));
    }
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} breaches of the house rules", findings.len());
    }
    println!("{} files obey the house rules", tree.files.len());
    Ok(())
}

/// What cargo knows of all packages that the workspace builds, its own included.
fn metadata(root: &Path) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")
}

/// Writes docs/reference/events.md.
pub fn write_events() -> Result<()> {
    let root = crate::root()?;
    let text = events::text(&Tree::read(&root)?);
    std::fs::write(root.join(events::PAGE), text).with_context(|| format!("cannot write {}", events::PAGE))
}

/// Writes docs/reference/messages.md.
pub fn write_messages() -> Result<()> {
    let root = crate::root()?;
    let (text, lacks) = messages::text(&Tree::read(&root)?)?;
    std::fs::write(root.join(messages::PAGE), text)
        .with_context(|| format!("cannot write {}", messages::PAGE))?;
    match lacks.is_empty() {
        true => Ok(()),
        false => bail!("{}", lacks.join("\n")),
    }
}

/// All rules that need only the files.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    layers::check(tree, &mut findings);
    cycles::check(tree, &mut findings);
    events::check(tree, &mut findings);
    messages::check(tree, &mut findings);
    skips::check_listed(tree, &mut findings);
    recipes(tree, &mut findings);
    for file in tree.files.values() {
        text::check(file, &mut findings);
        comments::check(file, &mut findings);
        files::check(file, &mut findings);
        skips::check(file, &mut findings);
        units::check(file, &mut findings);
        vocabulary::check(file, &mut findings);
        width::check(file, &mut findings);
        references::check(file, tree, &mut findings);
        links::check(file, tree, &mut findings);
        language::check(file, &mut findings);
    }
    findings
}

/// The page of recipes has the code and the commands that `cargo xtask recipes` runs.
fn recipes(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(page) = tree.files.get(crate::recipes::PAGE) else { return };
    let faults =
        crate::recipes::faults(&page.text, |path| tree.files.get(path).map(|file| file.text.clone()));
    findings.extend(faults.into_iter().map(|fault| page.finding(1, fault)));
}

/// One breach of one rule.
#[derive(Debug)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A file of the project. `lines` is empty unless it is Rust.
struct File {
    path: String,
    text: String,
    lines: Vec<Line>,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        let lines = if path.ends_with(".rs") { lexer::split(text) } else { Vec::new() };
        Self { path: path.to_owned(), text: text.to_owned(), lines }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines, with their numbers, that go into a crate and not only into its tests. None of files whose
    /// paths begin as `exempt` says, each with the reason.
    fn source(&self, exempt: &[(&str, &str)]) -> impl Iterator<Item = (usize, &Line)> {
        let is_source = self.is_rust()
            && self.path.starts_with("crates/")
            && self.path.contains("/src/")
            && !self.path.contains("/tests")
            && !exempt.iter().any(|(path, _)| self.path.starts_with(path));
        let count = if is_source { comments::tests_begin(self) } else { 0 };
        (1..).zip(&self.lines).take(count)
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// The project's files by path relative to its root, and the paths of its folders.
struct Tree {
    files: BTreeMap<String, File>,
    /// Every path there is, whatever its ending.
    paths: Vec<String>,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let mut tree = Self { files: BTreeMap::new(), paths: Vec::new() };
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries =
            std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            if entry.file_type()?.is_dir() {
                if name != ".git" && !name.starts_with("target") {
                    self.paths.push(path.clone());
                    self.read_folder(&entry.path(), &path)?;
                }
                continue;
            }
            if ENDINGS.iter().any(|ending| name.ends_with(&format!(".{ending}"))) {
                let text =
                    std::fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
                self.files.insert(path.clone(), File::new(&path, &text));
            }
            self.paths.push(path);
        }
        Ok(())
    }

    /// Whether a path, or the end of one, names a file or folder of the project.
    fn has(&self, reference: &str) -> bool {
        let reference = reference.trim_start_matches("./").trim_end_matches('/');
        self.paths.iter().any(|path| {
            path.strip_suffix(reference).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    }
}

#[cfg(test)]
impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self { files: BTreeMap::new(), paths: Vec::new() };
        for (path, text) in files {
            tree.files.insert((*path).to_owned(), File::new(path, text));
            tree.paths.push((*path).to_owned());
        }
        tree
    }
}

/// The messages of all rules for one file.
#[cfg(test)]
fn messages(path: &str, text: &str) -> Vec<String> {
    check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_file_has_no_findings() {
        assert_eq!(messages("a.rs", "//! Does one thing.\n\nfn one() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn paths_match_at_component_borders() {
        let tree = Tree::of(&[("crates/ring/src/reader.rs", "")]);
        assert!(tree.has("crates/ring/src/reader.rs"));
        assert!(tree.has("src/reader.rs"));
        assert!(tree.has("reader.rs"));
        assert!(!tree.has("ader.rs"));
    }
}
