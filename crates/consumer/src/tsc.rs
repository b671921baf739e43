//! The x86-64 time stamp counter: whether it can be a clock, its frequency, its value.

use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};
use std::sync::OnceLock;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::NoTsc;

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Whether the counter runs at one speed in all power states (Intel SDM volume 3, "Invariant TSC") and the
/// kernel, which compares it across CPUs and with other clocks, trusts it.
pub(super) fn usable() -> Result<(), NoTsc> {
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
    if !invariant {
        return Err(NoTsc::NotInvariant);
    }
    match std::fs::read_to_string(CLOCK_SOURCE) {
        Ok(source) if source.trim() != "tsc" => Err(NoTsc::NotTrusted),
        _ => Ok(()),
    }
}

/// The counter, not read before what precedes it in the program is done.
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 processor has both instructions, and neither touches memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// The counter's frequency in Hz: the kernel's own conversion if it is exported, otherwise measured, which
/// takes a tenth of a second. Determined once, since it does not change while the machine runs.
pub(super) fn frequency() -> u64 {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| kernel_frequency().unwrap_or_else(|| super::measured_frequency(read)))
}

/// The frequency by which the kernel converts cycles to nanoseconds: `ns = cycles * time_mult >> time_shift`,
/// from the page that a perf event maps (`struct perf_event_mmap_page` in include/uapi/linux/perf_event.h).
fn kernel_frequency() -> Option<u64> {
    const TYPE_SOFTWARE: u32 = 1;
    const CONFIG_DUMMY: u64 = 9;
    const ATTRIBUTE_SIZE: usize = 64;
    const DISABLED: u64 = 1 << 0;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const CLOEXEC: libc::c_ulong = 1 << 3;
    const PAGE: usize = 4096;

    let mut attribute = [0_u64; ATTRIBUTE_SIZE / 8];
    attribute[0] = u64::from(TYPE_SOFTWARE) | (ATTRIBUTE_SIZE as u64) << 32;
    attribute[1] = CONFIG_DUMMY;
    attribute[5] = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
    // SAFETY: the attribute block is as long as it says; the event counts nothing, for this thread, on any
    // CPU.
    let event = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attribute.as_ptr(), 0_i32, -1_i32, -1_i32, CLOEXEC)
    };
    let event = i32::try_from(event).ok().filter(|&event| event >= 0)?;
    // SAFETY: the descriptor was just opened and has no other owner.
    let event: std::os::fd::OwnedFd = unsafe { std::os::fd::FromRawFd::from_raw_fd(event) };
    // SAFETY: a new mapping at an address that the kernel chooses.
    let page =
        unsafe { mmap(std::ptr::null_mut(), PAGE, ProtFlags::READ, MapFlags::SHARED, &event, 0) }.ok()?;
    // SAFETY: all offsets are aligned for their type and lie in the mapped page. The kernel may write it at
    // any time, hence volatile reads; the conversion it holds does not change while the clock source is the
    // counter.
    let (capabilities, shift, multiplier) = unsafe {
        (
            page.byte_add(40).cast::<u64>().read_volatile(),
            page.byte_add(50).cast::<u16>().read_volatile(),
            page.byte_add(52).cast::<u32>().read_volatile(),
        )
    };
    // SAFETY: the mapping made above, not used again.
    let _ = unsafe { munmap(page, PAGE) };
    let exports_user_time = capabilities & 1 << 3 != 0;
    if !exports_user_time || multiplier == 0 || shift > 63 {
        return None;
    }
    let scaled = u128::from(super::NANOSECONDS) << shift;
    u64::try_from((scaled + u128::from(multiplier) / 2) / u128::from(multiplier)).ok().filter(|&hz| hz > 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn frequency_is_that_of_a_processor() {
        if super::usable().is_err() {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Tsc,
                "this machine's time stamp counter is not usable as a clock",
            );
        }
        let frequency = super::frequency();
        assert!((100_000_000..20_000_000_000).contains(&frequency), "{frequency}");
    }
}
