//! Buffers that are mapped, and those that no thread writes to any more.

use core::ffi::c_int;
use core::ptr::NonNull;

use tracewing_abi::children::{self, Children};
use tracewing_abi::region::{CONTROL, PAGE};
use tracewing_ring::Region;

use super::super::access::Access;
use super::super::system::Fd;
use super::{Joined, NO_KEYS, system};

/// Bytes of a region that are mapped in advance: what the first events of a program take, and all of those of
/// a short one. Where the recorder has given it more memory already, that, up to a bound.
const POPULATED: usize = 256 << 10;
const MOST_POPULATED: usize = 16 << 20;

/// A mapped region that no thread writes to yet. Unmapped if it stays unused.
pub(in super::super) struct Buffers {
    pub(super) region: Region,
    pub(super) inherited: bool,
    pub(super) children: Option<&'static Children>,
    /// Bytes that the recorder has taken for it.
    allocated: usize,
    pub(super) is_used: bool,
}

impl Buffers {
    /// Maps the region in `file`. Where children do not inherit it, there may be a file in which they count
    /// their losses.
    pub(in super::super) fn map(
        file: &Fd,
        children: Option<&Fd>,
        size: usize,
        inherited: bool,
    ) -> Option<Self> {
        Self::map_raw(file.raw(), children.map(Fd::raw), size, inherited)
    }

    pub(super) fn map_raw(
        file: c_int,
        children: Option<c_int>,
        size: usize,
        inherited: bool,
    ) -> Option<Self> {
        let base = system::map_shared(file, size)?;
        let is_kept = inherited || system::keep_from_children(base, size);
        // SAFETY: mapped just now with this size, from a memfd that its maker has sealed against truncation.
        let region = unsafe { Region::attach(base, size) }.ok().filter(|_| is_kept);
        let Some(region) = region else {
            // SAFETY: mapped here, and no other code has its address.
            unsafe { system::unmap(base, size) };
            return None;
        };
        let page = children.and_then(|file| system::map_shared(file, children::SIZE));
        // SAFETY: a page of atomics, for which any bytes are valid; unmapped after its last use.
        let children = page.map(|page| unsafe { page.cast::<Children>().as_ref() });
        Some(Self { region, inherited, children, allocated: system::allocated(file), is_used: false })
    }

    pub(in super::super) fn region(&self) -> &Region {
        &self.region
    }

    /// Maps the first pages of each CPU's part of a region before the first event comes to them: a page fault
    /// costs as much as 50 events. All of them would take a short program longer to start than to run.
    pub(super) fn populate(&self) {
        let geometry = self.region.geometry();
        let used = CONTROL + geometry.physical_sub_buffers() * geometry.sub_buffer_bytes();
        let bytes = self.allocated.clamp(POPULATED, MOST_POPULATED);
        let each = used.min(bytes / geometry.cpus()) & !(PAGE - 1);
        for cpu in 0..geometry.cpus() {
            // A page that cannot be had now is mapped, or not, when it is touched.
            system::populate(self.region.base(), geometry.control_offset(cpu), each);
        }
    }

    /// What a child of this process will find that takes the region over, by the number that the recorder has
    /// given it.
    pub(in super::super) fn for_child(mut self, number: u64, access: Access) -> Option<NonNull<Joined>> {
        let page: NonNull<Joined> = system::map_private(size_of::<Joined>())?.cast();
        let Self { region, inherited, children, .. } = self;
        // SAFETY: fresh memory, a page and thus large enough and aligned.
        unsafe { page.write(Joined { region, inherited, children, number, access, own: &NO_KEYS }) };
        self.is_used = true;
        Some(page)
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if !self.is_used {
            // SAFETY: mapped here, and no other code has their addresses.
            unsafe { unmap_buffers(&self.region, self.children) };
        }
    }
}

/// # Safety
/// They are not in use.
unsafe fn unmap_buffers(region: &Region, children: Option<&'static Children>) {
    // SAFETY: the caller's.
    unsafe {
        system::unmap(region.base(), region.geometry().size());
        if let Some(children) = children {
            system::unmap(NonNull::from(children).cast(), children::SIZE);
        }
    }
}

/// Unmaps what [`Buffers::for_child`] has made.
///
/// # Safety
/// It is not in use any more.
pub(in super::super) unsafe fn unmap(joined: NonNull<Joined>) {
    // SAFETY: the caller's; a whole value.
    unsafe {
        unmap_buffers(&joined.as_ref().region, joined.as_ref().children);
        system::unmap(joined.cast(), size_of::<Joined>());
    }
}
