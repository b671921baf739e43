//! The CPUs for which a region has buffers.

use tracewing_units::Cpu;

/// Number of CPU buffers that a region needs: one more than the highest CPU number that can ever be online.
///
/// Source: `/sys/devices/system/cpu/possible` (Documentation/admin-guide/cputopology.rst). Without sysfs: the
/// number of configured CPUs.
pub fn possible_cpus() -> usize {
    std::fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|list| highest_cpu(&list))
        .map_or_else(configured_cpus, |highest| highest.index() + 1)
        .clamp(1, tracewing_abi::region::MAX_CPUS)
}

/// The largest number in a CPU list such as `0-3,8`.
fn highest_cpu(list: &str) -> Option<Cpu> {
    list.trim()
        .split([',', '-'])
        .map(|number| number.parse().ok())
        .try_fold(Cpu(0), |highest, number| number.map(|number: Cpu| highest.max(number)))
}

fn configured_cpus() -> usize {
    // SAFETY: sysconf takes a number and returns one.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(highest_cpu("0-1\n"), Some(Cpu(1)));
        assert_eq!(highest_cpu("0\n"), Some(Cpu(0)));
        assert_eq!(highest_cpu("0-3,8-11\n"), Some(Cpu(11)));
        assert_eq!(highest_cpu("\n"), None);
    }
}
