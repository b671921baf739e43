//! Where the dynamic linker looks for a library (`man 8 ld.so`): the run path of the object that needs it,
//! `LD_LIBRARY_PATH`, the cache that `ldconfig` writes, the default folders.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The linker's cache, and the maximum number of bytes read from it.
const CACHE: &str = "/etc/ld.so.cache";
const MOST_CACHE: u64 = 64 << 20;
/// Magic bytes at the start of the cache's table (glibc, sysdeps/generic/dl-cache.h), and the sizes of its
/// header and of an entry.
const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const CACHE_HEADER: usize = 48;
const CACHE_ENTRY: usize = 24;

const DEFAULT_FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

pub(crate) struct Search {
    library_path: Vec<PathBuf>,
    cache: HashMap<String, Vec<PathBuf>>,
}

impl Search {
    pub(crate) fn of_this_machine() -> Self {
        let library_path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = library_path.as_bytes().split(|byte| matches!(byte, b':' | b';'));
        let folders = folders.filter(|folder| !folder.is_empty());
        let library_path = folders.map(|folder| PathBuf::from(OsStr::from_bytes(folder))).collect();
        Self { library_path, cache: cached(&read(Path::new(CACHE)).unwrap_or_default()) }
    }

    /// Where a library that the file `user` needs may be, the likeliest path first.
    pub(crate) fn candidates(&self, name: &str, run_path: Option<&str>, user: &Path) -> Vec<PathBuf> {
        if name.contains('/') {
            return vec![PathBuf::from(name)];
        }
        let absolute = std::path::absolute(user).unwrap_or_else(|_| user.to_owned());
        let origin = absolute.parent().unwrap_or(Path::new("/")).to_string_lossy();
        let run_path = run_path.unwrap_or_default().split(':').filter(|folder| !folder.is_empty());
        let run_path = run_path
            .map(|folder| PathBuf::from(folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)));
        let folders = run_path.chain(self.library_path.iter().cloned()).map(|folder| folder.join(name));
        let defaults = DEFAULT_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
        let cached = self.cache.get(name).into_iter().flatten().cloned();
        folders.chain(cached).chain(defaults).collect()
    }
}

/// The library of that name (`libc.so.6`), as found for a program without a run path.
pub fn find_library(name: &str) -> Option<PathBuf> {
    let candidates = Search::of_this_machine().candidates(name, None, Path::new("/"));
    candidates.into_iter().find(|path| path.is_file())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(
        &mut std::io::Read::take(std::fs::File::open(path).ok()?, MOST_CACHE),
        &mut bytes,
    )
    .ok()?;
    Some(bytes)
}

/// The libraries in a cache: a header with their number in the first word after the magic; entries `u32
/// flags; u32 name, path (from the header on); u32, u64` for kinds of processors.
fn cached(bytes: &[u8]) -> HashMap<String, Vec<PathBuf>> {
    let mut libraries: HashMap<String, Vec<PathBuf>> = HashMap::new();
    // An older table may come first.
    let begin = bytes.windows(CACHE_MAGIC.len()).position(|window| window == CACHE_MAGIC);
    let Some(table) = begin.map(|begin| &bytes[begin..]) else { return libraries };
    let word = |at: usize| Some(u32::from_le_bytes(table.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let text = |at: u32| {
        let bytes = table.get(usize::try_from(at).ok()?..)?;
        bytes.split(|byte| *byte == 0).next()
    };
    let count = word(CACHE_MAGIC.len()).map_or(0, |count| count as usize);
    for entry in (0..count).map_while(|index| index.checked_mul(CACHE_ENTRY)?.checked_add(CACHE_HEADER)) {
        let Some((name, path)) = word(entry + 4).zip(word(entry + 8)) else { break };
        let Some((name, path)) = text(name).zip(text(path)) else { break };
        let path = PathBuf::from(OsStr::from_bytes(path));
        libraries.entry(String::from_utf8_lossy(name).into_owned()).or_default().push(path);
    }
    libraries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_cache_knows_its_c_library() {
        let Some(bytes) = read(Path::new(CACHE)) else {
            tracewing_testing::skip(
                tracewing_testing::Cause::File(Path::new(CACHE)),
                format_args!("no {CACHE}"),
            );
            return;
        };
        let libraries = cached(&bytes);
        assert!(libraries["libc.so.6"].iter().any(|path| path.is_file()), "{libraries:?}");
        for end in (0..bytes.len()).step_by(997) {
            cached(&bytes[..end]);
        }
    }

    #[test]
    fn the_run_path_comes_first_and_knows_its_object() {
        let search = Search { library_path: vec!["/over".into()], cache: HashMap::new() };
        let candidates =
            search.candidates("liba.so", Some("$ORIGIN/../lib:/opt"), Path::new("/srv/bin/shop"));
        let texts: Vec<_> = candidates.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(texts[..3], ["/srv/bin/../lib/liba.so", "/opt/liba.so", "/over/liba.so"]);
        assert_eq!(search.candidates("./liba.so", Some("/opt"), Path::new("/x")), [Path::new("./liba.so")]);
    }
}
