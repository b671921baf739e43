//! What a recorder of root gives up before it has threads, and before it reads a byte that a program has
//! written: all capabilities but those that its part of the recording needs, and all ways to get others.
//! What needs others is done by processes of its own ([`crate::helpers`]). `docs/explanation/security.md`
//! says what this is good for, and what not.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use tracewing_proc::Status;

/// To be debugger of programs of all users, and to read the filters for system calls of a thread that is to
/// be borrowed; to read these programs' files; to send signals to them.
const ATTACH: CapabilitySet = CapabilitySet::SYS_PTRACE
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::KILL);
/// To send descriptors: without it, the kernel refuses that to all processes of a user when programs of this
/// user have more in flight than one process may have open (`too_many_unix_fds`, `net/unix/garbage.c` and
/// `af_unix.c`), which any of them can achieve. Where root has no `SYS_RESOURCE`, as in some containers, the
/// other one that lifts this limit.
pub(crate) fn to_send() -> CapabilitySet {
    let is_permitted =
        |one| rustix::thread::capabilities(None).is_ok_and(|sets| sets.permitted.contains(one));
    let usual = CapabilitySet::SYS_RESOURCE;
    if is_permitted(usual) { usual } else { CapabilitySet::SYS_ADMIN }
}

/// To write to folders of other users, or to which their owner may not write.
const FOREIGN: CapabilitySet =
    CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::FOWNER);
const SET_GROUP: u32 = 0o2000;
/// What root as owner needs in a folder, and in files that it makes, if it has no capabilities.
const WRITE: u32 = 0o300;

/// Whether this process can give up capabilities: root with those that root usually has. Those of other users
/// come from files or from their session.
pub(crate) fn is_possible() -> bool {
    let is_root = rustix::process::getuid().is_root() && rustix::process::geteuid().is_root();
    let is_usual =
        capabilities_secure_bits().is_ok_and(|bits| !bits.contains(CapabilitiesSecureBits::NO_ROOT));
    // Without it, a debugger needs all capabilities that the other process has.
    let has_most = || capabilities(None).is_ok_and(|sets| sets.permitted.contains(CapabilitySet::SYS_PTRACE));
    is_root && is_usual && has_most()
}

/// What a recorder needs that writes below these folders; `attaches`: by itself, to running processes.
pub(crate) fn needed<'p>(folders: impl IntoIterator<Item = &'p Path>, attaches: bool) -> CapabilitySet {
    let attach = if attaches { ATTACH } else { CapabilitySet::empty() };
    folders.into_iter().fold(to_send() | attach, |needed, folder| needed | to_write(folder))
}

/// What root needs to write below a folder.
fn to_write(folder: &Path) -> CapabilitySet {
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_roots = |folder: &Path| folder.metadata().is_ok_and(|data| data.uid() == 0);
    let may_write = |mode: u32| mode & WRITE == WRITE;
    let is_writable = path.metadata().is_ok_and(|data| may_write(data.mode())) && may_write(!umask());
    let mut needed = CapabilitySet::empty();
    if !path.ancestors().all(is_roots) || !is_writable {
        needed |= FOREIGN;
    }
    // So that what is made in it has its group.
    if path.metadata().is_ok_and(|data| data.mode() & SET_GROUP != 0) {
        needed |= CapabilitySet::FSETID;
    }
    needed
}

/// What is taken from the permissions of new files; nothing where that is unknown.
fn umask() -> u32 {
    let umask = Status::own().and_then(|status| u32::from_str_radix(status.field("Umask")?, 8).ok());
    umask.unwrap_or_default()
}

/// Gives up all but `needed`. To be called by the first thread, before there are others: the kernel has
/// capabilities for each thread.
///
/// Where the kernel refuses, the recorder has more than it needs, and works.
pub(crate) fn confine(needed: CapabilitySet) {
    let Ok(sets) = capabilities(None) else { return };
    for capability in CapabilitySet::all().difference(needed).iter() {
        // The kernel refuses those that it does not have.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = set_no_new_privs(true);
    let (permitted, effective) = (sets.permitted & needed, sets.effective & needed);
    let inheritable = CapabilitySet::empty();
    let _ = set_capabilities(None, CapabilitySets { effective, permitted, inheritable });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recorder_needs_depends_on_its_folders() {
        let root = [Path::new("/"), Path::new("/tmp")];
        assert_eq!(needed(root, false), to_send());
        assert_eq!(needed(root, true), to_send() | ATTACH);
        let place = tempfile::tempdir_in("/tmp").unwrap();
        if std::os::unix::fs::chown(place.path(), Some(tracewing_testing::NOBODY), None).is_err() {
            return tracewing_testing::skip(tracewing_testing::Cause::Root, "a folder of another user");
        }
        let below = place.path().join("below");
        std::fs::create_dir(&below).unwrap();
        assert_eq!(needed([below.as_path()], false), to_send() | FOREIGN);
        rustix::fs::chmod(&below, rustix::fs::Mode::from_raw_mode(0o2750)).unwrap();
        assert_eq!(needed([below.as_path()], false), to_send() | FOREIGN | CapabilitySet::FSETID);
    }
}
