//! The babeltrace project's cases, where `../shared/ctf-conformance` has them.

mod common;

use std::path::{Path, PathBuf};

use tracewing_ctf::model::Version;
use tracewing_ctf::{json, metadata, tsdl};

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/ctf-conformance").join(folder);
    let Ok(entries) = folder.canonicalize().and_then(std::fs::read_dir) else {
        tracewing_testing::skip(
            tracewing_testing::Cause::File(&folder),
            "there is no ../shared/ctf-conformance",
        );
        return Vec::new();
    };
    let mut cases: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// Printed in its own language, each trace class stays what it is. `cargo xtask conformance` decodes the
/// cases.
#[test]
fn metadata_survives_printing() {
    for case in cases("fields") {
        let class = metadata::parse(&std::fs::read(case.join("trace/metadata")).unwrap());
        let class = class.unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        let printed = match class.version {
            Version::V1_8 => tsdl::print(&class),
            Version::V2 => json::print(&class),
        };
        assert_eq!(metadata::parse(printed.as_bytes()).expect(&printed), class, "{printed}");
    }
}

/// Folders below `folder` with a metadata file.
fn traces(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("metadata").is_file() {
        found.push(folder.to_owned());
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            traces(&entry.path(), found);
        }
    }
}

#[test]
fn good_traces() {
    let mut found = Vec::new();
    cases("traces/1/succeed").iter().for_each(|case| traces(case, &mut found));
    for trace in found {
        common::same_as_babeltrace(&trace);
    }
}

#[test]
fn bad_traces() {
    let mut found = Vec::new();
    cases("traces/1/fail").iter().for_each(|case| traces(case, &mut found));
    for trace in found {
        let (text, error) = common::print_trace(&trace);
        assert!(error.is_some(), "{} printed\n{text}", trace.display());
    }
}
