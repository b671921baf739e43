//! Where the written traces and their streams lie.

use crate::Error;
use crate::open::recording::{Recording, Stream, Trace};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tracewing_files::Dir;

/// The place of a trace below the folder that is written: as below the path that was given.
pub(super) fn place(recording: &Recording, trace: &Trace) -> PathBuf {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = |folder: &Path| folder.file_name().map(PathBuf::from).unwrap_or_default();
    match trace.folders() {
        [folder] => {
            let inputs = recording.inputs().iter();
            let below =
                inputs.filter_map(|input| real(folder).strip_prefix(real(input)).ok().map(PathBuf::from));
            below.min().unwrap_or_else(|| name(folder))
        }
        // The chunks of one trace become one.
        _ if recording.traces().len() == 1 => PathBuf::new(),
        folders => name(&folders[0]),
    }
}

/// Creates a folder below another one, with the folders in between. Traces of several chunks may come from
/// folders of the same name: a number is appended to the second.
pub(super) fn make_below(top: &Dir, below: &Path) -> Result<Dir, Error> {
    let mut folder = top.clone();
    let names: Vec<String> = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    for (at, name) in names.iter().enumerate() {
        let mut number = 1;
        folder = loop {
            let name = if number == 1 { name.clone() } else { format!("{name}_{number}") };
            match folder.made_folder(&name) {
                Some(there) if at + 1 < names.len() || !there.has("metadata") => break there,
                Some(_) => number += 1,
                None => break folder.make(&name).map_err(Error::io(&folder.path().join(&name)))?,
            }
        };
    }
    Ok(folder)
}

/// A name for the file of a stream that is none of `taken`. Chunks have files of the same name, which may
/// belong to different streams: a number is appended to the second.
pub(super) fn free_name(taken: &HashSet<OsString>, stream: &Stream) -> OsString {
    let of_file = Path::new(stream.name()).file_name().unwrap_or_default();
    let mut name = of_file.to_owned();
    for number in 2.. {
        if !taken.contains(&name) {
            break;
        }
        name = of_file.to_owned();
        name.push(format!("_{number}"));
    }
    name
}
