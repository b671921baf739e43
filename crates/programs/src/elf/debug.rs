//! Finds debug information that was split off a file (`.note.gnu.build-id`, `.gnu_debuglink`; gdb's manual,
//! *Debugging Information in Separate Files*).

use std::path::{Path, PathBuf};

/// Where distributions install debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// The path of the debug information for this build id, whether or not it exists; `None` if the id is too
/// short.
pub(crate) fn by_build_id(id: &str) -> Option<PathBuf> {
    let (folder, name) = id.split_at_checked(2).filter(|(_, name)| !name.is_empty())?;
    Some(Path::new(DEBUG_FOLDER).join(format!(".build-id/{folder}/{name}.debug")))
}

/// A build id in hexadecimal.
pub(crate) fn hexadecimal(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(feature = "probes")]
/// The file with the debug information of a file that lacks it, if there is one.
pub(crate) fn debug_file<'d>(path: &Path, file: &impl object::Object<'d>) -> Option<PathBuf> {
    let by_id = file.build_id().ok().flatten().and_then(|id| by_build_id(&hexadecimal(id)));
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("/"));
    let by_link = file.gnu_debuglink().ok().flatten().map(|(name, _)| {
        let name = String::from_utf8_lossy(name).into_owned();
        let below = Path::new(DEBUG_FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
        [folder.join(&name), folder.join(".debug").join(&name), below.join(&name)]
    });
    let mut candidates = by_id.into_iter().chain(by_link.into_iter().flatten());
    candidates.find(|candidate| candidate.is_file() && *candidate != real)
}
