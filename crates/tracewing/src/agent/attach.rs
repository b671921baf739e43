//! Which buffers the process writes to: a [`Slot`] for each recording that it takes part in.
//!
//! [`Slot::joined`] holds the region, its use, and its [`Own`] page, with the attachment that the fast half
//! of the event path reads. A forked child inherits all of that and the classes' ids, and finds the page
//! wiped. Where the region is shared, its first event comes to [`process_key`], which attaches it again. Else
//! the child has not got the region: it takes over the one that its parent had for it ([`take_over`],
//! `spare`), or counts its losses ([`Joined::children`]) until the agent's thread has got one for it.
//!
//! Threads may be anywhere between a look at a slot and their last access to what it names. In the slow half
//! they are counted ([`Visit`]); in the fast half of `Publish` they are in a sequence, which `membarrier`
//! restarts. So a region can be unmapped when the recording is over. The fast half of `Smp` is not counted:
//! there zeroes take the region's place, and two pages stay.

use core::ffi::c_int;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicU64, Ordering::*};
use core::time::Duration;

use tracewing_abi::children::{self, Children};
use tracewing_abi::region::{CONTROL, PAGE, Protocol};
use tracewing_ring::thread::RECORDINGS;
use tracewing_ring::{Attachment, Region};

use super::access::Access;
use super::system::Fd;
use super::{fork, identity, spare, system};

/// The region that a process writes to. A forked child that has not got it finds nothing at its place: the
/// key is looked for first ([`Joined::has_region`]).
pub(super) struct Joined {
    pub(super) region: Region,
    /// A forked child writes to it, too.
    inherited: bool,
    /// Where a child counts that has none.
    children: Option<&'static Children>,
    /// What the recorder calls it, where the process has taken it over from its parent; else 0.
    number: u64,
    access: Access,
    own: &'static Own,
}

/// What belongs to one process and one region: a forked child finds it zeroed.
#[repr(C)]
struct Own {
    attachment: Attachment,
    /// Key of the process where the protocol is `Smp`, whose events never take the fast half of `Publish`.
    smp_key: AtomicU64,
}

/// Of a region that this process does not write to any more.
static NO_KEYS: Own = Own { attachment: Attachment::new(), smp_key: AtomicU64::new(0) };

static DETACHED: Attachment = Attachment::new();
/// Distance of a thread's `struct rseq` from its thread pointer, once the process is attached with `Publish`.
pub(crate) static RSEQ_OFFSET: AtomicIsize = AtomicIsize::new(0);

/// The process's part in one recording.
pub(crate) struct Slot {
    joined: AtomicPtr<Joined>,
    /// A page that was detached. It is never unmapped, since the fast half may have loaded its address and
    /// not yet its key.
    spare: AtomicPtr<Own>,
    /// The region, if its protocol is `Smp` and it is a recorder's: for the fast half of that protocol.
    smp: AtomicPtr<Joined>,
    taken: AtomicBool,
}

/// What the fast half of the event path reads, for each slot; always valid.
pub(crate) static ATTACHMENTS: [AtomicPtr<Attachment>; RECORDINGS] =
    [const { AtomicPtr::new((&raw const DETACHED).cast_mut()) }; RECORDINGS];

/// All of them, taken or not.
static SLOTS: [Slot; RECORDINGS] = [const { Slot::new() }; RECORDINGS];

impl Slot {
    const fn new() -> Self {
        Self {
            joined: AtomicPtr::new(core::ptr::null_mut()),
            spare: AtomicPtr::new(core::ptr::null_mut()),
            smp: AtomicPtr::new(core::ptr::null_mut()),
            taken: AtomicBool::new(false),
        }
    }

    /// A free one's number, from now on the caller's.
    pub(super) fn take() -> Option<usize> {
        SLOTS.iter().position(|slot| !slot.taken.swap(true, Acquire)) // with `give_back`
    }

    /// The region for the fast half of protocol `Smp`.
    pub(super) fn smp(number: usize) -> &'static AtomicPtr<Joined> {
        &SLOTS[number].smp
    }

    /// Lets another recording have it. No class is wanted any more.
    pub(super) fn give_back(number: usize) {
        SLOTS[number].taken.store(false, Release); // with `take`
    }
}

/// Bytes of a region that are mapped in advance: what the first events of a program take, and all of those of
/// a short one. Where the recorder has given it more memory already, that, up to a bound.
const POPULATED: usize = 256 << 10;
const MOST_POPULATED: usize = 16 << 20;

/// Time for a thread in the fast half of `Smp` to finish its event: some nanoseconds, unless it is
/// interrupted.
const GRACE: Duration = Duration::from_millis(20);

/// Number of times that a slot is read before it is assumed to be changing permanently.
const ATTEMPTS: u32 = 64;

/// The region in use, held as long as the value.
pub(super) struct Visit {
    joined: &'static Joined,
    slot: usize,
    _counted: Option<visits::Counted>,
}

impl Deref for Visit {
    type Target = Joined;

    fn deref(&self) -> &Joined {
        self.joined
    }
}

impl Visit {
    /// Whether this is still the region to use.
    pub(super) fn is_current(&self) -> bool {
        core::ptr::eq(SLOTS[self.slot].joined.load(Relaxed), self.joined)
    }

    /// The slot's number.
    pub(super) fn slot(&self) -> usize {
        self.slot
    }
}

/// The region in use in a slot, if there is one. None either after [`ATTEMPTS`] sessions have begun or ended
/// between two looks: an event then belongs to no recording that is known to live.
pub(super) fn joined(slot: usize) -> Option<Visit> {
    for _ in 0..ATTEMPTS {
        let joined = SLOTS[slot].joined.load(Acquire); // with the release in `begin`
        if joined.is_null() {
            return None;
        }
        let counted = visits::count();
        // Unchanged: a thread that ends the recording now waits for this visit. Ordered after the count by
        // the fence there.
        if core::ptr::eq(SLOTS[slot].joined.load(Acquire), joined) {
            return Some(Visit {
                // SAFETY: freed when no visit is left.
                joined: unsafe { &*joined },
                slot,
                _counted: counted,
            });
        }
    }
    None
}

/// Whether protocol `Publish` can be used: on x86-64, where the C library has registered restartable
/// sequences for its threads (glibc since 2.35, unless its tunable `glibc.pthread.rseq` is 0) in an area that
/// has all that is needed.
pub(crate) fn can_publish() -> bool {
    tracewing_ring::thread::rseq_of_libc().is_some()
}

/// Makes a region the one that this process writes to for a recording, in place of `before`; `None` if that
/// is not the one any more.
fn begin(slot: usize, buffers: &Buffers, access: Access, before: *mut Joined) -> Option<NonNull<Joined>> {
    let Buffers { region, inherited, children, .. } = *buffers;
    if region.protocol() == Protocol::Publish {
        let offset = tracewing_ring::thread::rseq_of_libc()?;
        RSEQ_OFFSET.store(offset, Relaxed); // read only under a key, which is stored (release) later
    }
    let place = system::map_private(size_of::<Joined>())?;
    let page: *mut Joined = place.as_ptr().cast();
    let (slot, attachment) = (&SLOTS[slot], &ATTACHMENTS[slot]);
    let begun = own(slot).is_some_and(|own| {
        let joined = Joined { region, inherited, children, number: 0, access, own };
        new_key(&joined);
        // SAFETY: fresh memory, a page and thus large enough and aligned.
        unsafe { page.write(joined) };
        // Release, with `joined`.
        let is_first = slot.joined.compare_exchange(before, page, AcqRel, Relaxed).is_ok();
        if is_first {
            attachment.store((&raw const own.attachment).cast_mut(), Release); // with the fast half's dependent loads
        } else {
            spare(slot, own);
        }
        is_first
    });
    if !begun {
        // SAFETY: mapped here, and no other code has its address.
        unsafe { system::unmap(place, size_of::<Joined>()) };
    }
    NonNull::new(page).filter(|_| begun)
}

/// A page without keys.
fn own(slot: &Slot) -> Option<&'static Own> {
    let spare = slot.spare.swap(core::ptr::null_mut(), Acquire); // with the release in `spare`
    let page =
        if spare.is_null() { system::map_wiped_on_fork(size_of::<Own>())?.as_ptr().cast() } else { spare };
    // SAFETY: a page that is never unmapped; zeroes are a valid `Own`.
    Some(unsafe { &*page })
}

/// Takes the keys from a page, which serves again after the caller's `membarrier`, if any thread can be in a
/// sequence that has seen them.
fn spare(slot: &Slot, own: &'static Own) {
    own.smp_key.store(0, Relaxed);
    own.attachment.detach();
    slot.spare.store((&raw const *own).cast_mut(), Release); // with `own`
}

/// Attaches this process to the region and gives its key. Several threads may do so at once.
pub(super) fn new_key(joined: &Joined) -> u64 {
    let key = tracewing_ring::thread::unique_key();
    match joined.region.protocol() {
        Protocol::Publish => joined.own.attachment.attach(&joined.region, key),
        Protocol::Smp | Protocol::Local => {
            match joined.own.smp_key.compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => key,
                Err(current) => current,
            }
        }
    }
}

impl Joined {
    /// How its recorder is reached.
    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// Whether a forked child keeps using the region.
    pub(super) fn is_inherited(&self) -> bool {
        self.inherited
    }

    /// Whether this process has the region, and not its parent alone.
    pub(super) fn has_region(&self) -> bool {
        self.inherited || self.key() != 0
    }

    /// What the recorder calls the region, if the process has taken it over from its parent.
    pub(super) fn number(&self) -> Option<u64> {
        (self.number != 0).then_some(self.number)
    }

    /// Where a child counts that does not have the region; `None` if they are not counted, or the recording
    /// is over.
    pub(super) fn children(&self) -> Option<&'static Children> {
        self.children.filter(|children| children.is_open())
    }

    fn key(&self) -> u64 {
        match self.region.protocol() {
            Protocol::Publish => self.own.attachment.key(),
            Protocol::Smp | Protocol::Local => self.own.smp_key.load(Relaxed), // only compared; says nothing about other memory
        }
    }

    /// What the fast half reads while this is the region in use.
    pub(super) fn attachment(&self) -> &'static Attachment {
        &self.own.attachment
    }
}

/// The key under which this process is attached. A forked child that is not yet attached becomes so here,
/// unless it needs a region of its own. `None` if there is no key; the caller then checks for another region.
pub(super) fn process_key(visit: &Visit) -> Option<u64> {
    let key = visit.key();
    if key != 0 {
        return Some(key);
    }
    visit.inherited.then(|| new_key(visit))
}

/// The recording is over, or this process has no part in it: nothing is written any more. Which classes are
/// wanted is the agent's business; this may be a signal handler.
pub(super) fn end(visit: &Visit) {
    let joined = (&raw const *visit.joined).cast_mut();
    if SLOTS[visit.slot].joined.compare_exchange(joined, core::ptr::null_mut(), Relaxed, Relaxed).is_ok() {
        visit.own.smp_key.store(0, Relaxed); // only compared
        visit.own.attachment.detach();
    }
}

/// The recorder has closed the region: the fast half writes nothing to it any more. The slot stays the
/// recording's until [`leave`].
pub(super) fn stop(visit: &Visit) {
    visit.own.smp_key.store(0, Relaxed); // only compared
    visit.own.attachment.detach();
}

/// Cleans up a recording in a slot, and frees the slot. When this returns, no thread of the process writes to
/// the region any more (`Smp`: except one that had passed all checks). No class may be enabled in the slot.
pub(crate) fn leave(slot: usize) {
    spare::forget(slot);
    // None: a forked child that has got no buffers of its own, and never gets any.
    let Some(visit) = joined(slot) else { return Slot::give_back(slot) };
    end(&visit);
    let joined = visit.joined;
    // Relaxed: a thread that finds it gone takes the slow half.
    let was_offered = || !SLOTS[slot].smp.swap(core::ptr::null_mut(), Relaxed).is_null();
    let mut has_fast_smp = was_offered();
    // Restarts every sequence that has seen the old key; each finds it gone. Without `Publish` there is none.
    // Refused only where a filter for system calls has come since the process took part.
    let restart = || {
        system::membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)
            || joined.region.protocol() != Protocol::Publish
    };
    let mut all_left = restart();
    drop(visit);
    all_left &= visits::wait_for_end();
    has_fast_smp |= was_offered(); // by a visitor that had just got it (`join::rejoin`)
    if has_fast_smp {
        all_left = false; // threads in it are not counted
        std::thread::sleep(GRACE);
    }
    // Once more: a visitor that found the key gone may have made a new one before it left.
    joined.own.attachment.detach();
    all_left &= restart();
    let (base, size) = (joined.region.base(), joined.region.geometry().size());
    joined.access.close();
    if all_left {
        spare(&SLOTS[slot], joined.own);
        // SAFETY: the consumer has a mapping of its own. No thread is in a sequence with the old key, none
        // is in the slow half, and none finds its way to the region again.
        unsafe {
            system::unmap(base, size);
            if let Some(children) = joined.children {
                system::unmap(NonNull::from(children).cast(), children::SIZE);
            }
            system::unmap(NonNull::from(joined).cast(), size_of::<Joined>());
        }
    } else {
        // SAFETY: a thread may be stopped between its look and its last access, for longer than it is
        // possible to wait: it finds zeroes, and writes where no reader looks. What it may still read or
        // detach is not used again.
        unsafe {
            system::map_zeroes_over(base, size);
            if let Some(children) = joined.children {
                system::map_zeroes_over(NonNull::from(children).cast(), children::SIZE);
            }
        }
    }
    Slot::give_back(slot);
}

/// A mapped region that no thread writes to yet. Unmapped if it stays unused.
pub(super) struct Buffers {
    region: Region,
    inherited: bool,
    children: Option<&'static Children>,
    /// Bytes that the recorder has taken for it.
    allocated: usize,
    is_used: bool,
}

impl Buffers {
    /// Maps the region in `file`. Where children do not inherit it, there may be a file in which they count
    /// their losses.
    pub(super) fn map(file: &Fd, children: Option<&Fd>, size: usize, inherited: bool) -> Option<Self> {
        Self::map_raw(file.raw(), children.map(Fd::raw), size, inherited)
    }

    fn map_raw(file: c_int, children: Option<c_int>, size: usize, inherited: bool) -> Option<Self> {
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

    /// The region.
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    /// What a child of this process will find that takes the region over, by the number that the recorder has
    /// given it.
    pub(super) fn for_child(mut self, number: u64, access: Access) -> Option<NonNull<Joined>> {
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
pub(super) unsafe fn unmap(joined: NonNull<Joined>) {
    // SAFETY: the caller's; a whole value.
    unsafe {
        unmap_buffers(&joined.as_ref().region, joined.as_ref().children);
        system::unmap(joined.cast(), size_of::<Joined>());
    }
}

/// In a forked child, whose only thread this is: takes over the region that its parent had for it, replacing
/// the parent's, which the child has not inherited. If there is none, the child has no region.
pub(super) fn take_over(slot: usize, new: Option<NonNull<Joined>>) -> Option<NonNull<Joined>> {
    let old = NonNull::new(SLOTS[slot].joined.load(Relaxed))?;
    // SAFETY: never freed while it is in the slot, and no other thread is there; its parts are copied.
    let Joined { region, inherited, children, access, own, .. } = unsafe { old.read() };
    if inherited {
        return None;
    }
    // A signal handler may have forked between a look for the key and one at the region.
    system::map_zeroes_into(region.base(), region.geometry().size());
    let new = new?;
    // SAFETY: this process's own copy of what `Buffers::for_child` has made; no other thread uses it yet.
    let joined = unsafe { &mut *new.as_ptr() };
    system::keep_from_children(joined.region.base(), joined.region.geometry().size());
    (joined.access, joined.own) = (access, own);
    if let Some(children) = children {
        // SAFETY: this process's mapping, which only the parent's `Joined` knows; counts that are stored
        // there are ignored.
        unsafe { system::map_zeroes_over(NonNull::from(children).cast(), children::SIZE) };
    }
    // SAFETY: as above. What was interrupted by the fork finds that it has not got its region.
    unsafe { (*old.as_ptr()).own = &NO_KEYS };
    new_key(joined);
    SLOTS[slot].joined.store(new.as_ptr(), Release); // with `joined`
    Some(new)
}

/// Takes part in a recording with these buffers, and gives the slot's number. `None` where the process takes
/// part in as many recordings as it can, or the system refuses.
pub(super) fn take_part(buffers: Buffers, access: Access) -> Option<(usize, NonNull<Joined>)> {
    fork::notice();
    // Without it a region with protocol `Publish` cannot be left again.
    system::membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);
    if !visits::prepare() || !identity::prepare() {
        return None;
    }
    let slot = Slot::take()?;
    let joined = attach_buffers(slot, buffers, access, None);
    if joined.is_none() {
        Slot::give_back(slot);
    }
    Some((slot, joined?))
}

/// Makes these buffers those that this process writes to for a recording, in place of the one that is
/// visited.
pub(super) fn attach_buffers(
    slot: usize,
    mut buffers: Buffers,
    access: Access,
    before: Option<&Visit>,
) -> Option<NonNull<Joined>> {
    let before = before.map_or(core::ptr::null_mut(), |visit| (&raw const *visit.joined).cast_mut());
    populate(&buffers.region, buffers.allocated.clamp(POPULATED, MOST_POPULATED));
    let attached = begin(slot, &buffers, access, before);
    buffers.is_used = attached.is_some();
    attached
}

/// Maps the first pages of each CPU's part of a region before the first event comes to them: a page fault
/// costs as much as 50 events. All of them would take a short program longer to start than to run.
fn populate(region: &Region, bytes: usize) {
    let geometry = region.geometry();
    let used = CONTROL + geometry.physical_sub_buffers() * geometry.sub_buffer_bytes();
    let each = used.min(bytes / geometry.cpus()) & !(PAGE - 1);
    for cpu in 0..geometry.cpus() {
        // A page that cannot be had now is mapped, or not, when it is touched.
        system::populate(region.base(), geometry.control_offset(cpu), each);
    }
}

impl Joined {
    /// The key of this very process, if it is attached with protocol `Smp`.
    pub(super) fn smp_key(&self) -> Option<u64> {
        let key = self.own.smp_key.load(Relaxed); // only compared; says nothing about other memory
        (key != 0).then_some(key)
    }
}

/// As [`take_part`], for the buffers of a session in this process. A child of the process shares them where
/// the protocol allows.
#[cfg(feature = "session")]
pub(crate) fn attach(region: &Region, file: libc::c_int) -> Option<usize> {
    let inherited = region.protocol() == Protocol::Publish;
    let buffers = Buffers::map_raw(file, None, region.geometry().size(), inherited)?;
    take_part(buffers, Access::None).map(|(slot, _)| slot)
}

/// Sets which major classes a session of the program itself enables.
#[cfg(feature = "session")]
pub(crate) fn set_majors(slot: usize, mask: u64) {
    if let Some(joined) = joined(slot).filter(|joined| joined.has_region()) {
        joined.region.majors().store(mask, Relaxed); // a wish, which orders nothing
    }
}

mod visits {
    //! How many threads are between a look at a slot and their last access to what it names, counted in a few
    //! words by CPU once the process has taken part in a recording.

    use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::*, fence};

    use super::system;
    use core::time::Duration;

    /// Number of looks, a millisecond apart, after which threads that have not left are assumed to be
    /// stopped.
    const PATIENCE: usize = 200;

    #[repr(C, align(64))]
    struct Count(AtomicI64);

    type Counts = [Count; 32];

    /// Zeroed in a forked child, in which those other threads are not.
    static COUNTS: AtomicPtr<Counts> = AtomicPtr::new(core::ptr::null_mut());

    fn counts() -> Option<&'static Counts> {
        // Acquire, with the release in `prepare`. SAFETY: null, or a page that is never unmapped; zeroes are
        // valid.
        unsafe { COUNTS.load(Acquire).as_ref() }
    }

    /// A visit, counted while the value lives.
    pub(super) struct Counted(&'static AtomicI64);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Release); // with `wait_for_end`: the visitor's accesses come first
        }
    }

    pub(super) fn count() -> Option<Counted> {
        let counts = counts()?;
        let count = &counts[system::current_cpu() % counts.len()].0;
        count.fetch_add(1, Relaxed);
        fence(SeqCst); // with `wait_for_end`: it sees the count, or the visitor sees what has changed
        Some(Counted(count))
    }

    /// Makes visits be counted from now on.
    pub(super) fn prepare() -> bool {
        if counts().is_some() {
            return true;
        }
        let Some(page) = system::map_wiped_on_fork(size_of::<Counts>()) else { return false };
        // Release, with the acquire load in `counts`.
        if COUNTS.compare_exchange(core::ptr::null_mut(), page.as_ptr().cast(), AcqRel, Relaxed).is_err() {
            // SAFETY: mapped here, and no other code has its address.
            unsafe { system::unmap(page, size_of::<Counts>()) };
        }
        true
    }

    /// Waits until all visits that began before have ended; `false` if some do not.
    pub(super) fn wait_for_end() -> bool {
        let Some(counts) = counts() else { return true };
        fence(SeqCst); // with `count`
        (0..PATIENCE).any(|look| {
            if look > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Acquire, with the release of `Counted`'s drop.
            counts.iter().map(|count| count.0.load(Acquire)).sum::<i64>() == 0
        })
    }
}
