//! The folder of a service: a file for each session, as `tracewing session save` writes them.

use crate::defaults::distrust;
use crate::session::definition::Definition;
use anyhow::{Context, Error, Result, anyhow};
use rustix::process::geteuid;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ROOTS: &str = "/etc/tracewing/sessions.d";

/// A session, with its file.
pub type Kept = (PathBuf, Definition);

/// What is in a folder of sessions.
pub struct Content {
    pub sessions: Vec<Kept>,
    /// Files that cannot be read, have mistakes, or can be written by others, and why.
    pub left_out: Vec<(PathBuf, Error)>,
}

impl Content {
    pub fn read(folder: &Path) -> Result<Self> {
        let mut content = Self { sessions: Vec::new(), left_out: Vec::new() };
        for path in paths(folder)? {
            // What a session says is run with this user's rights.
            let trusted = match File::open(&path).ok().as_ref().and_then(distrust) {
                Some(why) => Err(anyhow!("{} is left out: {why}", path.display())),
                None => Definition::read(&path),
            };
            match trusted {
                Ok(session) => content.sessions.push((path, session)),
                Err(error) => content.left_out.push((path, error)),
            }
        }
        Ok(content)
    }
}

/// The files of a folder, by which a change of them is noticed, also of their permissions and owners.
#[derive(PartialEq)]
pub struct Files(Vec<(PathBuf, Option<About>)>);

#[derive(PartialEq)]
struct About {
    inode: u64,
    len: u64,
    /// When it was changed in any way, in seconds and nanoseconds.
    changed: (i64, i64),
}

impl Files {
    pub fn of(folder: &Path) -> Self {
        let with_about = |path: PathBuf| {
            let about = path.metadata().ok().map(|data| About {
                inode: data.ino(),
                len: data.len(),
                changed: (data.ctime(), data.ctime_nsec()),
            });
            (path, about)
        };
        Self(paths(folder).unwrap_or_default().into_iter().map(with_about).collect())
    }
}

/// The files with sessions, in the order of their names.
fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort_unstable();
    Ok(paths)
}

/// That of this user.
pub fn default_folder() -> Result<PathBuf> {
    if geteuid().is_root() {
        return Ok(ROOTS.into());
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Ok(config
        .context("no folder of sessions: neither XDG_CONFIG_HOME nor HOME is set")?
        .join("tracewing/sessions"))
}
