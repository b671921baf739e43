//! Every event of the running kernel: its format is understood, its fields tile the record, its class prints
//! as metadata that babeltrace2 takes.

mod common;

use common::{options, traceable};
use std::path::{Path, PathBuf};
use tracewing_kernel::format::{Format, Shape};
use tracewing_kernel::print::Hints;
use tracewing_kernel::{Scope, Tracefs, compile};

fn format_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => format_files(&entry.path(), found),
            false if entry.file_name() == "format" => found.push(entry.path()),
            false => {}
        }
    }
}

#[test]
fn every_format_of_this_kernel_is_understood() {
    if !traceable() {
        return;
    }
    let tracefs = Tracefs::open().unwrap();
    let mut files = Vec::new();
    format_files(&tracefs.root().join("events"), &mut files);
    assert!(files.len() > 500, "only {} format files", files.len());
    let word = tracefs.layout().word();
    let (mut enumerations, mut labels_offered) = (0, 0);
    for path in &files {
        let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let system = path.parent().unwrap().parent().unwrap().file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let format = Format::parse(&text, word).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(format.name, name);
        assert_eq!(
            format.common.len() + format.fields.len(),
            text.matches("\tfield:").count(),
            "{}",
            path.display()
        );
        let mut end = 0;
        for field in format.common.iter().chain(&format.fields) {
            assert!(field.offset >= end, "{}: {} overlaps", path.display(), field.name);
            end = field.offset + field.size;
            // Bytes stand for what is not understood: this kernel has nothing of that kind besides real
            // bytes.
            if let Shape::Array(element, _) = field.shape
                && element.size == 1
            {
                let bytes =
                    ["char", "unsigned char", "u8", "__u8", "uint8_t"].contains(&field.c_type.as_str());
                assert!(bytes, "{}: {} of type {}", path.display(), field.name, field.c_type);
            }
        }
        let class = compile(0, system, &format, word).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let payload = class.record.payload.unwrap();
        let enums = |class: &tracewing_ctf::model::FieldClass| {
            matches!(class, tracewing_ctf::model::FieldClass::Enumeration(_))
        };
        enumerations += payload.members.iter().filter(|member| enums(&member.class)).count();
        let hints = Hints::parse(&format.print);
        labels_offered += format.fields.iter().filter(|field| hints.labels(&field.name).is_some()).count();
    }
    assert!(enumerations > 20 && enumerations <= labels_offered, "{enumerations} of {labels_offered}");
    println!("{} formats, {enumerations} enumerations", files.len());
}

#[test]
fn the_metadata_of_every_event_is_taken_by_babeltrace2() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    // A tree without a root: every event is enabled, nothing is recorded.
    let recorder = common::start_in(&trace, &options(Scope::Tree, &["*"])).unwrap();
    let summary = recorder.finish().unwrap();
    assert!(summary.streams.iter().all(|stream| stream.events == 0), "{summary:?}");
    let Some(lines) = common::babeltrace(&trace) else { return };
    assert!(lines.is_empty());
}
