//! What the programs of the package contain of other projects: the crates that are linked in, with authors
//! and licences, and the notices that come with them.

use crate::steps::cargo_command;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The begin of `copyright`, in the form that Debian has for it.
const HEAD: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tracewing

Files: *
Copyright: the authors of tracewing, and those listed below
License: Apache-2.0 or MIT
 On Debian systems, the text of Apache-2.0 is in /usr/share/common-licenses/Apache-2.0; that of MIT follows.
 .
";

/// How the names of files with notices begin, in capitals.
const NOTICES: [&str; 7] = ["AUTHORS", "COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE", "UNLICENSE"];

/// A crate that is linked into a program.
pub(super) struct Linked {
    name: String,
    version: String,
    authors: Vec<String>,
    licence: String,
    folder: PathBuf,
}

/// The crates of other projects that are linked into the programs that the arguments select for cargo.
pub(super) fn linked(selected: &[&str]) -> Result<Vec<Linked>> {
    let tree = ["tree", "--locked", "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"];
    let tree = String::from_utf8(super::output(&mut cargo_command(&[&tree[..], selected].concat())?)?)?;
    let metadata = ["metadata", "--locked", "--format-version", "1"];
    let metadata = serde_json::from_slice(&super::output(&mut cargo_command(&metadata)?)?)?;
    of_metadata(&tree, &metadata)
}

/// The packages of `cargo metadata` that `cargo tree` lists.
fn of_metadata(tree: &str, metadata: &Value) -> Result<Vec<Linked>> {
    let versions = tree.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.next()?.strip_prefix('v')?))
    });
    let versions: BTreeSet<(&str, &str)> = versions.collect();
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut all = Vec::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let is_ours = package["source"].is_null();
        if is_ours || !versions.contains(&(&*name, &*version)) {
            continue;
        }
        let authors = package["authors"].as_array().into_iter().flatten();
        let authors = authors.filter_map(Value::as_str).map(str::to_owned).collect();
        let folder = PathBuf::from(text("manifest_path")).parent().map(Path::to_owned).unwrap_or_default();
        all.push(Linked { name, version, authors, licence: text("license"), folder });
    }
    ensure!(!all.is_empty(), "cargo tree lists no crate of another project");
    all.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(all)
}

/// The file `copyright` of the package, with the text of our licence.
pub(super) fn copyright(linked: &[Linked], mit: &str) -> Result<String> {
    let compiler = super::line(Command::new("rustc").arg("--version").current_dir(crate::root()?))?;
    let mit = mit.lines().map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") });
    Ok(HEAD.to_owned() + &mit.collect::<String>() + &comment(linked, &compiler))
}

fn comment(linked: &[Linked], compiler: &str) -> String {
    let mut comment = format!(
        "Comment: The programs contain the standard library of Rust ({compiler}; the Rust Project Developers;\n \
         MIT OR Apache-2.0) and the following crates. The sources of each are at https://crates.io/crates/NAME,\n \
         the notices that come with them in /usr/share/doc/tracewing/notices.gz.\n .\n"
    );
    for Linked { name, version, authors, licence, .. } in linked {
        let authors = if authors.is_empty() { String::new() } else { format!("; {}", authors.join(", ")) };
        comment += &format!(" {name} {version}: {licence}{authors}\n");
    }
    comment
}

/// The notices of crates: each text once, after the crates that have it.
pub(super) fn texts(linked: &[Linked]) -> Result<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for Linked { name, version, folder, .. } in linked {
        let files = files(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        if files.is_empty() {
            without.push(format!("{name} {version}"));
        }
        for file in files {
            let text = String::from_utf8_lossy(&fs::read(folder.join(&file))?).trim_end().to_owned();
            places.entry(text).or_default().push(format!("{name} {version}: {file}"));
        }
    }
    let mut sections: Vec<(Vec<String>, String)> =
        places.into_iter().map(|(text, places)| (places, text)).collect();
    sections.sort();
    let line = "=".repeat(78);
    let mut all: String = sections
        .iter()
        .map(|(places, text)| format!("{line}\n{}\n{line}\n\n{text}\n\n", places.join("\n")))
        .collect();
    if !without.is_empty() {
        all += &format!("{line}\nWithout a notice of their own: {}\n", without.join(", "));
    }
    Ok(all)
}

/// The names of the files with notices, in order.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_notice = NOTICES.iter().any(|begin| name.to_uppercase().starts_with(begin));
        if is_notice && entry.file_type()?.is_file() {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn crates_are_those_that_are_linked() {
        let package = |name: &str, version: &str, source: Option<&str>| {
            json!({
                "name": name, "version": version, "source": source, "authors": ["A", "B"], "license": "MIT",
                "manifest_path": format!("/r/{name}/Cargo.toml"),
            })
        };
        let packages = [
            package("two", "2.0.0", Some("registry")),
            package("one", "1.0.0+x", Some("registry")),
            package("one", "0.9.0", Some("registry")),
            package("own", "0.1.0", None),
        ];
        let tree = "own v0.1.0 (/clone)\none v1.0.0+x\ntwo v2.0.0 (*)\n\n";
        let linked = of_metadata(tree, &json!({ "packages": packages })).unwrap();
        let lines: Vec<_> = comment(&linked, "rustc 1").lines().skip(4).map(str::to_owned).collect();
        assert_eq!(lines, [" one 1.0.0+x: MIT; A, B", " two 2.0.0: MIT; A, B"]);
        assert_eq!(linked[1].folder, Path::new("/r/two"));
        assert!(of_metadata("own v0.1.0 (/clone)\n", &json!({ "packages": packages })).is_err());
    }

    #[test]
    fn each_notice_is_listed_once() {
        let place = tempfile::tempdir().unwrap();
        let linked = |name: &str, files: &[(&str, &str)]| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            files.iter().for_each(|(file, text)| fs::write(folder.join(file), text).unwrap());
            Linked {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                authors: Vec::new(),
                licence: "MIT".to_owned(),
                folder,
            }
        };
        let all = [
            linked("a", &[("LICENSE", "of a\n"), ("lib.rs", "code")]),
            linked("b", &[("license-mit", "of both\n")]),
            linked("c", &[("COPYING", "of both"), ("Notice.txt", "of c")]),
            linked("d", &[]),
        ];
        let texts = texts(&all).unwrap();
        let line = "=".repeat(78);
        let section = |places: &str, text: &str| format!("{line}\n{places}\n{line}\n\n{text}\n\n");
        let expected = section("a 1.0.0: LICENSE", "of a")
            + &section("b 1.0.0: license-mit\nc 1.0.0: COPYING", "of both")
            + &section("c 1.0.0: Notice.txt", "of c")
            + &format!("{line}\nWithout a notice of their own: d 1.0.0\n");
        assert_eq!(texts, expected);
    }
}
