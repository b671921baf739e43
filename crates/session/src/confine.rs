//! What a recorder of root can do without: capabilities that no part of it uses are given up before it has
//! threads, and before it reads a byte that a program has written. `docs/explanation/security.md` says what
//! this is good for, and what not.
//!
//! Only where the recorder runs nothing for the user, so that the bounding set can be as small, and `exec`
//! gives nothing back. What it runs has to have the capabilities that it would have had without a recorder,
//! and may not get them by `exec`: the kernel then takes the program for one with raised privileges, takes
//! samples no more of it (`begin_new_exec`, `fs/exec.c`), and writes no core dumps.

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::options::{Action, Options};

/// What every recorder of root may need: to be debugger of programs of all users, which includes to see what
/// `/proc` shows of them; to read their files, and to write to the folder that the user has named, which
/// others may own; to run ahead of others; to send signals to what it has started; more descriptors; counters
/// of the processor.
const ALWAYS: CapabilitySet = CapabilitySet::SYS_PTRACE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::PERFMON);
/// For samples: buffers that exceed the limit of locked memory, and the kernel's symbols.
const SAMPLES: CapabilitySet = CapabilitySet::IPC_LOCK.union(CapabilitySet::SYSLOG);
/// To read the filters for system calls of a thread that is to be borrowed.
const FILTERS: CapabilitySet = CapabilitySet::SYS_ADMIN;

/// What a recording with these options needs.
fn needed(options: &Options, attaches: bool) -> CapabilitySet {
    let mut needed = ALWAYS;
    if options.profile.is_some() {
        needed |= SAMPLES;
    }
    if attaches {
        needed |= FILTERS;
    }
    needed
}

/// Whether the recorder executes programs that the user has named.
fn runs_something(options: &Options) -> bool {
    let actions = || options.triggers.iter().flat_map(|trigger| &trigger.actions);
    !options.command.is_empty()
        || options.rotate.command.is_some()
        || actions().any(|action| matches!(action, Action::Run(_)))
}

/// Gives up what the recording does not need; `attaches`: to running processes. To be called by the first
/// thread, before there are others: the kernel has capabilities for each thread. Only of root: other users'
/// capabilities come from files or from their session, and what they execute would not get them back.
///
/// Where the kernel refuses, the recorder has more than it needs, and works.
pub(crate) fn confine(options: &Options, attaches: bool) {
    let is_root = rustix::process::getuid().is_root() && rustix::process::geteuid().is_root();
    let is_usual =
        capabilities_secure_bits().is_ok_and(|bits| !bits.contains(CapabilitiesSecureBits::NO_ROOT));
    let Ok(sets) = capabilities(None) else { return };
    // Without it, a debugger needs all capabilities that the other process has.
    if runs_something(options) || !(is_root && is_usual && sets.permitted.contains(CapabilitySet::SYS_PTRACE))
    {
        return;
    }
    let mut needed = needed(options, attaches);
    // Before Linux 5.8, this was the one for samples.
    if !sets.permitted.contains(CapabilitySet::PERFMON) {
        needed |= FILTERS;
    }
    for capability in CapabilitySet::all().difference(needed).iter() {
        // The kernel refuses those that it does not have.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = set_no_new_privs(true);
    let (permitted, effective) = (sets.permitted & needed, sets.effective & needed);
    let _ = set_capabilities(None, CapabilitySets { effective, permitted, inheritable: sets.inheritable });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recording_needs_depends_on_its_options() {
        let plain = Options::new("t", ["true"]);
        assert!(!needed(&plain, false).intersects(FILTERS | SAMPLES | CapabilitySet::SETUID));
        assert!(needed(&plain, true).contains(FILTERS));
        let sampled = Options { profile: Some(99), ..plain.clone() };
        assert!(needed(&sampled, false).contains(SAMPLES));
        assert!(runs_something(&plain));
        let mut session = Options { command: Vec::new(), all_programs: true, ..plain };
        assert!(!runs_something(&session));
        session.rotate.command = Some("true".into());
        assert!(runs_something(&session));
    }
}
