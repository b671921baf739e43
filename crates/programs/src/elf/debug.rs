//! Finds debug information that was split off a file (`.note.gnu.build-id`, `.gnu_debuglink`,
//! `.gnu_debugaltlink`; gdb's manual, *Debugging Information in Separate Files*).

use std::path::{Component, Path, PathBuf};

use super::Content;

/// Where distributions install debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";
/// Where dwz puts what several files share, in that folder.
const SHARED: &str = ".dwz/";

/// The path of the debug information for this build id, whether or not it exists; `None` if the id is too
/// short, or is none.
pub(crate) fn by_build_id(id: &str) -> Option<PathBuf> {
    // It may come from a trace.
    if !id.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let (folder, name) = id.split_at_checked(2).filter(|(_, name)| !name.is_empty())?;
    Some(Path::new(DEBUG_FOLDER).join(format!(".build-id/{folder}/{name}.debug")))
}

/// The file of which the debug information of several files is a part (`.gnu_debugaltlink`, which dwz
/// writes), if it is installed: only where distributions put it, since the name in the file can be anything.
pub(crate) fn shared_file<'d>(file: &impl object::Object<'d>) -> Option<PathBuf> {
    let (name, build_id) = file.gnu_debugaltlink().ok()??;
    let name = String::from_utf8_lossy(name).into_owned();
    let below = Path::new(name.rsplit_once(SHARED).map_or(&*name, |(_, below)| below));
    let is_below = below.components().all(|part| matches!(part, Component::Normal(_)));
    let by_name = is_below.then(|| Path::new(DEBUG_FOLDER).join(SHARED).join(below));
    let by_id = by_build_id(&hexadecimal(build_id));
    let is_it = |path: &PathBuf| {
        let has_id = || {
            let content = Content::open(path)?;
            let file = object::File::parse(&content).ok()?;
            Some(object::Object::build_id(&file).ok()?? == build_id)
        };
        has_id() == Some(true)
    };
    by_name.into_iter().chain(by_id).find(is_it)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_lead_to_no_other_folder() {
        let path = by_build_id("7e57ed").unwrap();
        assert_eq!(path, Path::new("/usr/lib/debug/.build-id/7e/57ed.debug"));
        for id in ["", "7", "7e", "7e/../../../etc", "..57", "7\u{e9}57"] {
            assert_eq!(by_build_id(id), None, "{id}");
        }
    }
}
