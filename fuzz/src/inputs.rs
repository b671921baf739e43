//! An input's parts, and seeds: the traces of the project's own tests and of `../shared/ctf-conformance`, in
//! the form of each target, and earlier findings of the fuzzer (`fuzz/findings`).

use std::fs;
use std::path::{Path, PathBuf};

/// Names of the fuzz targets.
pub const TARGETS: [&str; 6] = ["tsdl", "ctf2", "packets", "index", "trace", "convert"];

/// Longest input, in bytes. Longer streams are truncated.
pub const MOST_BYTES: usize = 64 << 10;

/// Separates the parts of an input.
const SEPARATOR: &[u8] = b"\n\0NEXT\0\n";

/// The first part of an input, and the rest after the separator.
pub fn split(input: &[u8]) -> (&[u8], &[u8]) {
    match input.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
        Some(at) => (&input[..at], &input[at + SEPARATOR.len()..]),
        None => (input, &[]),
    }
}

/// The seeds of a target, from the project in `root`.
pub fn of(target: &str, root: &Path) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for folder in ["crates/ctf/tests/data", "../shared/ctf-conformance"] {
        traces(&root.join(folder), target, &mut inputs);
    }
    inputs.extend(
        files(&root.join("fuzz/findings").join(target)).iter().filter_map(|path| fs::read(path).ok()),
    );
    inputs.retain(|input| !input.is_empty() && input.len() <= MOST_BYTES);
    inputs.sort();
    inputs.dedup();
    inputs
}

/// Adds the parts for a target of all traces in a folder and below it.
fn traces(folder: &Path, target: &str, inputs: &mut Vec<Vec<u8>>) {
    let Ok(metadata) = fs::read(folder.join("metadata")) else {
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        below.filter(|entry| entry.path().is_dir()).for_each(|entry| traces(&entry.path(), target, inputs));
        return;
    };
    let is_ctf2 = metadata.windows(6).any(|window| window == b"\"type\"");
    match target {
        "tsdl" if !is_ctf2 => inputs.push(metadata),
        "ctf2" if is_ctf2 => inputs.push(metadata),
        "index" => inputs.extend(files(&folder.join("index")).iter().filter_map(|path| fs::read(path).ok())),
        "packets" | "trace" | "convert" => {
            for path in files(folder).iter().filter(|path| !path.ends_with("metadata")) {
                let mut stream = fs::read(path).unwrap_or_default();
                stream.truncate(MOST_BYTES.saturating_sub(metadata.len()) / 2);
                let mut input = [&metadata, SEPARATOR, &stream].concat();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if target == "trace"
                    && let Ok(index) = fs::read(folder.join(format!("index/{name}.idx")))
                {
                    input = [&input, SEPARATOR, &index].concat();
                }
                inputs.push(input);
            }
        }
        _ => {}
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}
