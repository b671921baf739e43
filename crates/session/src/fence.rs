//! What a recorder of root may change in the file system, once it has no capabilities: only what is below the
//! folders of its recording, and sockets where those of recorders are. It executes nothing, connects to no
//! network, and can no longer look into other processes; what it has to know of them, others open for it
//! ([`crate::helpers`]). The kernel's means for this is Landlock (`man 7 landlock`), from Linux 5.19 on.
//! Where there is none, the recorder can change root's files.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags, path_beneath_rules,
};
use tracewing_files::Dir;

/// What the calling thread, and those that it starts, may change from now on: everything below `folders`;
/// in the folder of the socket `socket`, to remove sockets; in the folder `list`, what a list of recorders
/// needs; where any of them is, to remove empty folders. To be called by the first thread, before there are
/// others. Gives whether the kernel enforces it.
pub(crate) fn close(folders: &[&Dir], socket: &Path, list: Option<OwnedFd>) -> bool {
    try_close(folders, socket, list).is_ok_and(|status| status != RulesetStatus::NotEnforced)
}

fn try_close(folders: &[&Dir], socket: &Path, list: Option<OwnedFd>) -> Result<RulesetStatus, RulesetError> {
    let all = AccessFs::from_write(ABI::V7);
    let rules = Ruleset::default()
        // Without it, the kernel would refuse to rename files from one folder to another.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all | AccessFs::Execute)?
        .handle_access(AccessNet::from_all(ABI::V7))?
        .scope(Scope::AbstractUnixSocket)?;
    let of_list = make_bitflags!(AccessFs::{MakeReg | WriteFile | Truncate | RemoveFile | Refer});
    let mut rules = rules.create()?;
    for folder in folders {
        rules = rules.add_rule(PathBeneath::new(folder, all))?;
    }
    if let Some(list) = list {
        rules = rules.add_rule(PathBeneath::new(list, of_list))?;
    }
    let sockets = socket.parent().unwrap_or(Path::new("/"));
    let made = folders.iter().map(|folder| folder.path()).chain([sockets]);
    let parents: Vec<PathBuf> =
        made.filter_map(|path| Some(path.canonicalize().ok()?.parent()?.to_owned())).collect();
    rules = rules.add_rules(path_beneath_rules([sockets], AccessFs::RemoveFile))?;
    rules = rules.add_rules(path_beneath_rules(parents, AccessFs::RemoveDir))?;
    Ok(rules.restrict_self()?.ruleset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::process::Command;

    #[test]
    fn only_what_is_the_recordings_can_be_changed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let made = ["output", "sockets", "list", "other"].map(|name| Dir::create(&at(name)).unwrap().0);
        fs::write(at("other/file"), "before").unwrap();
        fs::create_dir(at("sockets/own")).unwrap();
        std::os::unix::net::UnixListener::bind(at("sockets/own/join")).unwrap();
        let list = rustix::fs::open(at("list"), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        // Of this thread alone.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if !close(&[&made[0]], &at("sockets/own/join"), Some(list)) {
                    let cause = tracewing_testing::Cause::Listed("no Landlock");
                    return tracewing_testing::skip(cause, "the kernel has no Landlock");
                }
                fs::create_dir(at("output/archive")).unwrap();
                fs::write(at("output/archive/stream"), "events").unwrap();
                fs::rename(at("output/archive/stream"), at("output/stream")).unwrap();
                fs::remove_file(at("sockets/own/join")).unwrap();
                fs::remove_dir(at("sockets/own")).unwrap();
                fs::write(at("list/new"), "list").unwrap();
                fs::rename(at("list/new"), at("list/join")).unwrap();

                let denied = |result: std::io::Result<()>| {
                    assert_eq!(result.unwrap_err().kind(), PermissionDenied);
                };
                denied(fs::write(at("other/file"), "after"));
                denied(fs::write(at("other/new"), "after"));
                denied(fs::remove_file(at("other/file")));
                denied(fs::create_dir(at("other/folder")));
                denied(fs::write(at("sockets/file"), "after"));
                denied(fs::create_dir(at("sockets/folder")));
                denied(fs::create_dir(at("list/folder")));
                denied(Command::new("true").status().map(drop));
                assert_eq!(fs::read_to_string(at("other/file")).unwrap(), "before");
            });
        });
    }
}
