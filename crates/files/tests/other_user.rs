//! Single files, the cache and reading, with files that another user has placed. Needs root, for a second
//! user's files.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use tracewing_files::{Dir, OutputFile, Refused, Tree};

const OTHER: u32 = 54321;

/// Whether this process can create a file of another user.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        tracewing_testing::skip(tracewing_testing::Cause::Root, "files of a second user need root");
    }
    is_root
}

fn write(path: &Path, content: &str) -> std::io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(content.as_bytes())?;
    file.finish()
}

fn refusal<T>(result: std::io::Result<T>) -> Option<Refused> {
    result.err().and_then(|error| Refused::of(&error))
}

#[test]
fn one_file_replaces_only_a_regular_file_of_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let [own, victim, link] = ["own", "victim", "link"].map(|name| folder.path().join(name));
    write(&own, "first").unwrap();
    write(&own, "second").unwrap();
    assert_eq!(fs::read_to_string(&own).unwrap(), "second");
    assert_eq!(fs::metadata(&own).unwrap().mode() & 0o137, 0);
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    assert_eq!(refusal(write(&link, "x")), Some(Refused::Link));
    symlink("/dev/null", folder.path().join("null")).unwrap();
    assert_eq!(refusal(write(&folder.path().join("null"), "x")), Some(Refused::Link));
    // Another name (hard link) of a file keeps its content.
    let hard = folder.path().join("hard");
    fs::hard_link(&victim, &hard).unwrap();
    write(&hard, "new").unwrap();
    assert_eq!([&victim, &hard].map(|path| fs::read_to_string(path).unwrap()), ["precious", "new"]);
    assert_eq!(refusal(write(folder.path(), "x")), Some(Refused::NotAFile));
    drop(OutputFile::create(&own).unwrap());
    assert_eq!(fs::read_to_string(&own).unwrap(), "second", "one that was not finished");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "no temporary file is left");
    if is_root() {
        chown(&victim, Some(OTHER), None).unwrap();
        assert_eq!(refusal(write(&victim, "x")), Some(Refused::Foreign(OTHER)));
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), 0o666.into()).unwrap();
        chown(folder.path().join("pipe"), Some(OTHER), None).unwrap();
        assert_eq!(refusal(write(&folder.path().join("pipe"), "x")), Some(Refused::Foreign(OTHER)));
    }
}

#[test]
fn pipes_devices_and_descriptors_are_written() {
    let folder = tempfile::tempdir().unwrap();
    write(Path::new("/dev/null"), "x").unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    write(&pipe, "through a pipe").unwrap();
    assert_eq!(reader.join().unwrap(), "through a pipe");
    let file = tempfile::tempfile_in(folder.path()).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    for name in [format!("/dev/fd/{number}"), format!("/proc/self/fd/{number}")] {
        write(Path::new(&name), "x").unwrap();
    }
    assert_eq!(file.metadata().unwrap().len(), 2);
    assert!(write(Path::new("/dev/fd/987654"), "x").is_err());
}

#[test]
fn a_folder_for_output_is_new_or_empty_and_only_its_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/c");
    let (dir, made) = Dir::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o027, 0);
    assert!(Dir::create(&path).is_ok(), "it is empty and ours");
    drop(dir);
    made.remove_empty();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    fs::create_dir(folder.path().join("d")).unwrap();
    symlink("d", folder.path().join("link")).unwrap();
    assert_eq!(refusal(Dir::create(&folder.path().join("link"))), Some(Refused::Link));
    fs::set_permissions(folder.path().join("d"), fs::Permissions::from_mode(0o720)).unwrap();
    assert_eq!(refusal(Dir::create(&folder.path().join("d"))), Some(Refused::Writable));
    if is_root() {
        fs::set_permissions(folder.path().join("d"), fs::Permissions::from_mode(0o700)).unwrap();
        chown(folder.path().join("d"), Some(OTHER), None).unwrap();
        assert_eq!(refusal(Dir::create(&folder.path().join("d"))), Some(Refused::Foreign(OTHER)));
        assert_eq!(refusal(Dir::private(&folder.path().join("d/cache"))), Some(Refused::Foreign(OTHER)));
        assert!(!folder.path().join("d/cache").exists(), "nothing is made in another user's home");
    }
    let cache = folder.path().join("x/cache");
    Dir::private(&cache).unwrap().replace("f", b"1").unwrap();
    assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
    Dir::private(&cache).unwrap().replace("f", b"2").unwrap();
    assert_eq!(fs::read(cache.join("f")).unwrap(), b"2");
}

#[test]
fn the_path_of_a_private_folder_leads_through_no_folder_of_another_user() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, folder.path().join("link")).unwrap();
    let path = fs::canonicalize(&real).unwrap().join("cache");
    assert_eq!(Dir::private(&folder.path().join("link/cache")).unwrap().own_path().unwrap(), path);
    let of_parent = |mode: u32, owner: Option<u32>| {
        fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
        chown(&real, owner, None).unwrap();
        refusal(Dir::private(&real.join("cache/inner")).and_then(|dir| dir.own_path()))
    };
    assert_eq!(of_parent(0o777, None), Some(Refused::Writable));
    assert_eq!(of_parent(0o1777, None), None);
    if is_root() {
        assert_eq!(of_parent(0o755, Some(OTHER)), Some(Refused::Foreign(OTHER)));
    }
}

#[test]
fn planted_links_are_replaced_or_refused_and_never_followed() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let (dir, _) = Dir::create(&folder.path().join("d")).unwrap();
    for name in [".f.new", "f", "stream"] {
        symlink(&victim, folder.path().join("d").join(name)).unwrap();
    }
    dir.replace("f", b"new").unwrap();
    assert!(dir.create_file("stream").is_err());
    symlink(folder.path(), folder.path().join("d/sub")).unwrap();
    assert!(dir.make("sub").is_err());
    assert!(dir.remove_all("sub").is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_to_string(folder.path().join("d/f")).unwrap(), "new");
    let tree = dir.make("tree").unwrap();
    symlink(folder.path(), folder.path().join("d/tree/out")).unwrap();
    tree.make("deep").unwrap().create_file("file").unwrap();
    dir.remove_all("tree").unwrap();
    assert!(
        victim.exists() && !folder.path().join("d/tree").exists(),
        "a link is removed, not what it leads to"
    );
}

#[test]
fn what_is_read_lies_below_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("trace");
    fs::create_dir_all(root.join("user/index")).unwrap();
    fs::write(root.join("user/stream"), "inside").unwrap();
    fs::write(folder.path().join("secret"), "outside").unwrap();
    for (name, to) in
        [("in", "stream"), ("out", "../../secret"), ("abs", "/etc/passwd"), ("deep", "../user/stream")]
    {
        symlink(to, root.join("user").join(name)).unwrap();
    }
    symlink(folder.path(), root.join("away")).unwrap();
    let tree = Tree::open(&root).unwrap();
    let read = |name: &str| {
        let mut text = String::new();
        tree.file(Path::new(name)).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
    };
    for name in ["user/stream", "user/in", "user/deep"] {
        assert_eq!(read(name).unwrap(), "inside", "{name}");
    }
    for name in ["user/out", "user/abs", "away/secret", "../secret", "/etc/passwd"] {
        assert_eq!(refusal(read(name)), Some(Refused::LinkOut), "{name}");
    }
    assert_eq!(refusal(read("user")), Some(Refused::NotAFile));
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), 0o600.into()).unwrap();
    assert_eq!(refusal(read("pipe")), Some(Refused::NotAFile), "no writer is waited for");
}
