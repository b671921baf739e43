//! Finds the CTF traces at and below a path, and names them like babeltrace2.
//!
//! A folder with a regular file `metadata` is a trace, and its subfolders are not searched. So a tracewing
//! folder gives `kernel` and `user`, an LTTng session one trace per domain and buffer owner, a rotated one
//! those of every chunk. A folder to which several links lead is visited once: links to folders with links
//! would lead to it in endless ways. Hidden folders are not entered: in them lies what a conversion, a
//! snapshot or a rotation of LTTng has not finished. Folders are visited in the order in which the file
//! system lists them: babeltrace2 does that too, and if two streams are indistinguishable, the first one
//! found comes first.

use crate::{Error, NoTrace};
use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tracewing_files::{Refused, Tree};

/// Deepest nesting of folders that is followed.
const MAX_DEPTH: usize = 64;

/// A folder that holds a CTF trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The folder: absolute, without `.`, `..` and doubled slashes; symbolic links are kept.
    pub path: PathBuf,
    /// The path from where the search began, if that was further up.
    pub name: Option<String>,
    /// Where the search began: links are not followed out of there.
    pub(crate) root: Arc<Path>,
}

/// Finds the traces at or below `input`.
///
/// # Errors
/// `input` does not exist or cannot be read, or there is no trace at or below it.
pub fn find(input: &Path) -> Result<Vec<Found>, Error> {
    let root = normalize(input)?;
    let meta = fs::metadata(&root).map_err(Error::io(input))?;
    if !meta.is_dir() {
        return Err(Error::NotATrace { path: input.to_owned(), cause: NoTrace::File });
    }
    let mut found = Vec::new();
    let tree = Tree::open(&root).map_err(Error::io(input))?;
    let seen = HashSet::from([tree.id().map_err(Error::io(input))?]);
    let mut search = Search { tree: &tree, root: root.as_path().into(), seen, refused: None };
    search.visit(&root, MAX_DEPTH, &mut found)?;
    match search.refused {
        None if found.is_empty() => {
            Err(Error::NotATrace { path: input.to_owned(), cause: NoTrace::NoMetadata })
        }
        // Of a folder without a trace, a link is not what the user has to know first.
        Some((link, _)) if found.is_empty() => {
            Err(Error::NotATrace { path: input.to_owned(), cause: NoTrace::LinksOut(link) })
        }
        Some((link, error)) => Err(Error::io(&link)(error)),
        None => Ok(found),
    }
}

/// A search under way.
struct Search<'a> {
    tree: &'a Tree,
    root: Arc<Path>,
    /// Folders that were visited.
    seen: HashSet<(u64, u64)>,
    /// The first link that leads out of the recording.
    refused: Option<(PathBuf, std::io::Error)>,
}

impl Search<'_> {
    fn visit(&mut self, folder: &Path, depth: usize, found: &mut Vec<Found>) -> Result<(), Error> {
        let below = folder.strip_prefix(&self.root).unwrap_or(Path::new("")).to_owned();
        let (metadata, path) = (below.join("metadata"), folder.join("metadata"));
        if is_there(self.tree.file(&metadata)).map_err(Error::io(&path))?.is_some() {
            let name = Some(&below).filter(|name| !name.as_os_str().is_empty());
            found.push(Found {
                path: folder.to_owned(),
                name: name.map(|name| name.to_string_lossy().into_owned()),
                root: self.root.clone(),
            });
            return Ok(());
        }
        for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
            let entry = entry.map_err(Error::io(folder))?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            // What disappears meanwhile, or a link that leads nowhere, is no trace.
            match is_there(self.tree.folder(&below.join(entry.file_name())).and_then(|folder| folder.id())) {
                Ok(Some(id)) if depth > 1 && self.seen.insert(id) => self.visit(&path, depth - 1, found)?,
                Ok(_) => {}
                Err(error) => _ = self.refused.get_or_insert((path, error)),
            }
        }
        Ok(())
    }
}

/// The opened file, or nothing if it does not exist or is of another kind; a link that leads out of the
/// recording is an error.
fn is_there<T>(opened: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if Refused::of(&error) == Some(Refused::LinkOut) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The absolute path without `.`, `..` and doubled slashes, by its text alone.
fn normalize(path: &Path) -> Result<PathBuf, Error> {
    let absolute = std::path::absolute(path).map_err(Error::io(path))?;
    let mut normal = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    Ok(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("metadata"), "").unwrap();
    }

    #[test]
    fn finds_traces_below_and_names_them_from_the_root() {
        let root = tempfile::tempdir().unwrap();
        trace(&root.path().join("kernel"));
        trace(&root.path().join("a/b/user"));
        trace(&root.path().join("kernel/inner"));
        let mut names: Vec<_> = find(root.path()).unwrap().into_iter().map(|found| found.name).collect();
        names.sort();
        assert_eq!(names, [Some("a/b/user".to_owned()), Some("kernel".to_owned())]);
        let itself = find(&root.path().join("a/../kernel/.")).unwrap();
        let path = root.path().join("kernel");
        assert_eq!(itself, [Found { root: path.as_path().into(), path, name: None }]);
    }

    #[test]
    fn a_link_that_leads_back_ends_the_search() {
        let root = tempfile::tempdir().unwrap();
        trace(&root.path().join("below/user"));
        std::os::unix::fs::symlink("..", root.path().join("below/up")).unwrap();
        assert_eq!(find(root.path()).unwrap().len(), 1);
    }

    #[test]
    fn links_that_fan_out_are_followed_once() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..40 {
            let folder = root.path().join(number.to_string());
            fs::create_dir(&folder).unwrap();
            for name in ["a", "b"] {
                std::os::unix::fs::symlink(format!("../{}", number + 1), folder.join(name)).unwrap();
            }
        }
        trace(&root.path().join("40"));
        assert_eq!(find(root.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_link_that_leads_out_is_refused() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        trace(&other.path().join("trace"));
        std::os::unix::fs::symlink(other.path(), root.path().join("away")).unwrap();
        let message = find(root.path()).unwrap_err().to_string();
        assert!(
            message.contains("no trace found") && message.contains("away) are not followed"),
            "{message}"
        );
        trace(&root.path().join("kernel"));
        let message = find(root.path()).unwrap_err().to_string();
        assert!(message.contains("away: a symbolic link leads out of the recording"), "{message}");
        assert_eq!(find(&root.path().join("away")).unwrap().len(), 1, "the user has named it");
        fs::remove_file(root.path().join("away")).unwrap();
        std::os::unix::fs::symlink(other.path().join("trace/metadata"), root.path().join("metadata"))
            .unwrap();
        let message = find(root.path()).unwrap_err().to_string();
        assert!(message.contains("metadata: a symbolic link leads out"), "{message}");
    }

    #[test]
    fn what_is_not_finished_is_no_trace() {
        let root = tempfile::tempdir().unwrap();
        trace(&root.path().join(".out.unfinished/user"));
        assert!(find(root.path()).is_err());
        assert_eq!(find(&root.path().join(".out.unfinished")).unwrap().len(), 1);
    }

    #[test]
    fn says_what_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let message = find(root.path()).unwrap_err().to_string();
        assert!(message.contains("no file `metadata`"), "{message}");
        let message = find(&root.path().join("nowhere")).unwrap_err().to_string();
        assert!(message.contains("nowhere: No such file"), "{message}");
    }
}
