//! The rule that the `Cargo.lock` of each other workspace has what the project's crates depend on: these
//! workspaces are built with `--locked`, by commands that run less often than the tests.

use super::Finding;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The names of the crates that a crate always needs, by the crate's name.
type Needs = BTreeMap<String, BTreeSet<String>>;

/// What the project's crates need on every platform, of the output of `cargo metadata`.
pub(super) fn needs(metadata: &Value) -> Needs {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let is_needed = |needed: &Value| {
        needed["kind"].is_null() && needed["target"].is_null() && needed["optional"] != Value::Bool(true)
    };
    list(&metadata["packages"])
        .iter()
        .filter(|package| package["source"].is_null())
        .map(|package| {
            let needed = list(&package["dependencies"]);
            (name(package), needed.iter().filter(|needed| is_needed(needed)).map(name).collect())
        })
        .collect()
}

/// Finds the crates of the project that lack something in the lock file `path` with this content.
pub(super) fn check(path: &str, lock: &str, needs: &Needs) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, package) in packages(lock) {
        let (Some(name), None) = (value(package, "name"), value(package, "source")) else { continue };
        let Some(needed) = needs.get(name) else { continue };
        let listed: BTreeSet<&str> = package.lines().filter_map(dependency).collect();
        for lacking in needed.iter().filter(|needed| !listed.contains(needed.as_str())) {
            let message =
                format!("`{name}` lacks `{lacking}`: run `cargo update --workspace` in this folder");
            findings.push(Finding { path: path.to_owned(), line, message });
        }
    }
    findings
}

/// The parts of a lock file, each with the number of its first line.
fn packages(lock: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut line = 1;
    lock.split("[[package]]").map(move |package| {
        let begin = line;
        line += package.matches('\n').count();
        (begin, package)
    })
}

/// The value of a key of a package.
fn value<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

/// The name of a crate in a line of a list of dependencies. A version follows it where there are several.
fn dependency(line: &str) -> Option<&str> {
    line.strip_prefix(" \"")?.strip_suffix("\",")?.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lock_file_without_a_new_dependency_is_found() {
        let needed = |name: &str| json!({ "name": name, "kind": null, "target": null, "optional": false });
        let dev = json!({ "name": "proptest", "kind": "dev", "target": null, "optional": false });
        let optional = json!({ "name": "tower", "kind": null, "target": null, "optional": true });
        let metadata = json!({ "packages": [
            { "name": "ours", "source": null, "dependencies": [needed("libc"), needed("strsim"), dev, optional] },
            { "name": "libc", "source": "registry", "dependencies": [needed("never")] },
        ]});
        let lock = |strsim: &str| {
            format!(
                "version = 4\n\n[[package]]\nname = \"libc\"\nversion = \"0.2.0\"\nsource = \"registry\"\n\n\
                 [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\n \"libc 0.2.0\",\n{strsim}]\n"
            )
        };
        let found = |strsim| -> Vec<String> {
            let needs = needs(&metadata);
            check("a/Cargo.lock", &lock(strsim), &needs).iter().map(ToString::to_string).collect()
        };
        assert!(found(" \"strsim\",\n").is_empty());
        let lacking = "a/Cargo.lock:8: `ours` lacks `strsim`: run `cargo update --workspace` in this folder";
        assert_eq!(found(""), [lacking]);
    }
}
