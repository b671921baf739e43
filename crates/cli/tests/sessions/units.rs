//! The units in `contrib/systemd`, as far as systemd checks them without running them.

use crate::harness::{self, Printed, RunExt};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_testing::{Cause, skip};

const ANALYZE: &str = "/usr/bin/systemd-analyze";
const UNITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/systemd");
/// In which unit files the program is.
const INSTALLED: &str = "/usr/bin/tracewing";

/// The units of a folder, which run the program of these tests; also the folder of a user.
fn copied(from: &Path, to: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(to).unwrap();
    let mut units = Vec::new();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let unit = to.join(entry.file_name().unwrap());
        fs::write(&unit, fs::read_to_string(&entry).unwrap().replace(INSTALLED, harness::TRACEWING)).unwrap();
        units.push(unit);
    }
    units.sort();
    units
}

/// What systemd says against units. It succeeds although it ignores a line.
fn verified(folder: &Path, options: &[&str], units: &[PathBuf]) -> String {
    let mut verify = Command::new(ANALYZE);
    verify.args(options).args(["verify", "--man=no"]).args(units).env("XDG_RUNTIME_DIR", folder);
    let output = verify.ran();
    let notes = output.notes();
    if output.status.success() { notes } else { format!("{}: {notes}", output.status) }
}

#[test]
fn systemd_knows_each_line_of_the_units() {
    let analyze = Path::new(ANALYZE);
    if !analyze.exists() {
        return skip(Cause::File(analyze), "systemd is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let of_machine = copied(Path::new(UNITS), &folder.path().join("system"));
    let of_user = copied(&Path::new(UNITS).join("user"), &folder.path().join("user"));
    for (options, units) in [(&["--system"][..], &of_machine), (&["--user"], &of_user)] {
        let names: Vec<_> = units.iter().map(|unit| unit.file_name().unwrap()).collect();
        assert_eq!(names, ["tracewing.path", "tracewing.service"]);
        assert_eq!(verified(folder.path(), options, units), "", "{options:?}");
        let wrong = fs::read_to_string(&units[1]).unwrap() + "[Service]\nNoSuchLine=yes\n";
        fs::write(&units[1], wrong).unwrap();
        assert!(verified(folder.path(), options, units).contains("NoSuchLine"), "a mistake is found");
    }
}
