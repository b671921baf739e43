//! What a helper may do: it gives up all capabilities but the given ones, and all ways to get others.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Has the calling thread keep those of `kept` that it has, and no others. Threads that it starts have the
/// same. For a helper that needs more at its start than later.
///
/// # Errors
/// The system refuses what every process may do.
pub fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    for capability in CapabilitySet::all().difference(kept).iter() {
        // Refused for those that the kernel does not know, and without `CAP_SETPCAP`: `exec` then gives
        // nothing back because of what follows.
        let _ = remove_capability_from_bounding_set(capability);
    }
    set_no_new_privs(true)?;
    // Unknown before Linux 4.3, which has no ambient capabilities.
    let _ = clear_ambient_capability_set();
    let had = capabilities(None)?;
    let permitted = had.permitted & kept;
    let sets = CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    Ok(())
}
