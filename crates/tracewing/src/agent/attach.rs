//! Which buffers the process writes to.
//!
//! [`JOINED`] says it: the region, how it may be used, and its [`Own`] page, in which the attachment lies that the fast half
//! of the event path reads through [`ATTACHMENT`]. A forked child inherits all of that and the classes' ids, and finds
//! the page wiped: its first event comes to [`process_key`], which attaches it again, to the same region if that is shared,
//! else to one that the recorder gives it. There every thread, and every signal handler, that finds the process without
//! buffers asks for some; the first answer counts, so that nobody waits for another and nobody's event is lost.
//!
//! A region that a recorder gave is never unmapped: threads may be anywhere between a look at [`JOINED`] and their last
//! access. Who looks while there is a session of the program's own is counted ([`Visit`]); the session's region is unmapped
//! when all have left.

use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU64, Ordering::*};

use tracewing_abi::region::{CONTROL, PAGE, Protocol};
use tracewing_ring::{Attachment, Region};

use super::{join, system};
use crate::class;

/// A region that this process has mapped.
pub(super) struct Joined {
    pub(super) region: Region,
    /// A forked child may write to it, too.
    inherited: bool,
    own: &'static Own,
}

/// What belongs to one process and one region: a forked child finds it zeroed.
#[repr(C)]
struct Own {
    attachment: Attachment,
    /// Key of the process where the protocol is `Smp`, whose events never take the fast half of `Publish`.
    smp_key: AtomicU64,
}

static DETACHED: Attachment = Attachment::new();
/// What the fast half of the event path reads; always valid.
pub(crate) static ATTACHMENT: AtomicPtr<Attachment> = AtomicPtr::new((&raw const DETACHED).cast_mut());
/// Distance of a thread's `struct rseq` from its thread pointer, once the process is attached with `Publish`.
pub(crate) static RSEQ_OFFSET: AtomicIsize = AtomicIsize::new(0);

static JOINED: AtomicPtr<Joined> = AtomicPtr::new(core::ptr::null_mut());
/// A page that was detached. It is never unmapped, since the fast half may have loaded its address and not yet its key.
static SPARE: AtomicPtr<Own> = AtomicPtr::new(core::ptr::null_mut());

/// Bytes of a region that are mapped in advance, where all processes of a user share it, and where it is this one's own.
const POPULATED_SHARED: usize = 64 << 20;
const POPULATED_OWN: usize = 8 << 20;

/// Looks at [`JOINED`] before it counts as changing for ever.
const ATTEMPTS: u32 = 64;

/// The region in use, held as long as the value.
pub(super) struct Visit {
    joined: &'static Joined,
    #[cfg(feature = "session")]
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
        core::ptr::eq(JOINED.load(Relaxed), self.joined)
    }
}

/// The region in use, if there is one. None either after [`ATTEMPTS`] sessions have begun or ended between two looks: an
/// event then belongs to no recording that is known to live.
pub(super) fn joined() -> Option<Visit> {
    for _ in 0..ATTEMPTS {
        let joined = JOINED.load(Acquire); // with the release in `begin`
        if joined.is_null() {
            return None;
        }
        #[cfg(feature = "session")]
        let counted = visits::count();
        // Unchanged: a session that ends now waits for this visit. Ordered behind the count by the fence there.
        if core::ptr::eq(JOINED.load(Acquire), joined) {
            return Some(Visit {
                // SAFETY: of a recorder's, then never freed; or of a session's, then freed when no visit is left.
                joined: unsafe { &*joined },
                #[cfg(feature = "session")]
                _counted: counted,
            });
        }
    }
    None
}

/// Whether protocol `Publish` can be used: on x86-64, where the C library has registered restartable sequences for its
/// threads (glibc since 2.35, unless its tunable `glibc.pthread.rseq` is 0) in an area that has all that is needed.
pub(crate) fn can_publish() -> bool {
    tracewing_ring::thread::rseq_of_libc().is_some()
}

/// Makes `region` the one that this process writes to, in place of `before`; `None` if that is not the one any more.
fn begin(region: Region, inherited: bool, before: *mut Joined) -> Option<NonNull<Joined>> {
    if region.protocol() == Protocol::Publish {
        let offset = tracewing_ring::thread::rseq_of_libc()?;
        RSEQ_OFFSET.store(offset, Relaxed); // read only under a key, which is stored (release) later
    }
    let place = system::map_private(size_of::<Joined>())?;
    let page: *mut Joined = place.as_ptr().cast();
    let begun = own().is_some_and(|own| {
        let joined = Joined { region, inherited, own };
        new_key(&joined);
        // SAFETY: fresh memory, a page and thus large enough and aligned.
        unsafe { page.write(joined) };
        // Release, with `joined`.
        let is_first = JOINED.compare_exchange(before, page, AcqRel, Relaxed).is_ok();
        if is_first {
            ATTACHMENT.store((&raw const own.attachment).cast_mut(), Release); // with the fast half's dependent loads
        } else {
            spare(own);
        }
        is_first
    });
    if !begun {
        // SAFETY: nobody was told of it.
        unsafe { system::unmap(place, size_of::<Joined>()) };
    }
    NonNull::new(page).filter(|_| begun)
}

/// A page without keys.
fn own() -> Option<&'static Own> {
    let spare = SPARE.swap(core::ptr::null_mut(), Acquire); // with the release in `spare`
    let page =
        if spare.is_null() { system::map_wiped_on_fork(size_of::<Own>())?.as_ptr().cast() } else { spare };
    // SAFETY: a page that is never unmapped; zeroes are a valid `Own`.
    Some(unsafe { &*page })
}

/// Takes the keys from a page, which serves again after the caller's `membarrier`, if any thread can be in a sequence that
/// has seen them.
fn spare(own: &'static Own) {
    own.smp_key.store(0, Relaxed);
    own.attachment.detach();
    SPARE.store((&raw const *own).cast_mut(), Release); // with `own`
}

/// Attaches this process to the region and gives its key. Several threads may do so at once.
fn new_key(joined: &Joined) -> u64 {
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
    /// What the fast half reads while this is the region in use.
    pub(super) fn attachment(&self) -> &'static Attachment {
        &self.own.attachment
    }
}

/// The key under which this very process is attached. A forked child that is not yet becomes so here, unless it
/// needs a region of its own and may not ask for one. `None` where there is no key; the caller looks whether there is another
/// region now.
pub(super) fn process_key(visit: &Visit, may_ask: bool) -> Option<u64> {
    let key = match visit.region.protocol() {
        Protocol::Publish => visit.own.attachment.key(),
        Protocol::Smp | Protocol::Local => visit.own.smp_key.load(Relaxed), // only compared; says nothing about other memory
    };
    if key != 0 {
        return Some(key);
    }
    if visit.inherited {
        return Some(new_key(visit));
    }
    if may_ask {
        join::rejoin(visit);
        end(visit); // if there is still no other
    }
    None
}

/// The recording is over, or this process has no part in it: switches everything off.
pub(super) fn end(visit: &Visit) {
    let joined = (&raw const *visit.joined).cast_mut();
    if JOINED.compare_exchange(joined, core::ptr::null_mut(), Relaxed, Relaxed).is_ok() {
        class::all().for_each(|class| class.set_id(0));
    }
}

/// Maps the region in `file` and makes it the one that this process writes to, in place of the one that is visited.
pub(super) fn attach_file(
    file: libc::c_int,
    size: usize,
    inherited: bool,
    before: Option<&Visit>,
) -> Option<NonNull<Joined>> {
    let base = system::map_shared(file, size)?;
    let before = before.map_or(core::ptr::null_mut(), |visit| (&raw const *visit.joined).cast_mut());
    // SAFETY: mapped just now with this size, from a memfd that its maker has sealed against truncation.
    let region = unsafe { Region::attach(base, size) };
    let attached = region.ok().and_then(|region| {
        populate(&region, if inherited { POPULATED_SHARED } else { POPULATED_OWN });
        begin(region, inherited, before)
    });
    if attached.is_none() {
        // SAFETY: `begin` has told nobody.
        unsafe { system::unmap(base, size) };
    }
    attached
}

/// Maps the pages of a region before the first event comes to them: a page fault costs as much as 50 events. Where the whole
/// region exceeds `most` bytes, the first part of each CPU's.
fn populate(region: &Region, most: usize) {
    let geometry = region.geometry();
    let used = CONTROL + geometry.physical_sub_buffers() * geometry.sub_buffer_bytes();
    let each = used.min(most / geometry.cpus()) & !(PAGE - 1);
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

#[cfg(feature = "session")]
pub(crate) use in_process::{attach, detach, is_attached};

#[cfg(feature = "session")]
mod in_process {
    //! Sessions of the program's own: regions that come and go.

    use super::*;

    /// Whether some recording has the process.
    pub(crate) fn is_attached() -> bool {
        let Some(visit) = joined() else { return false };
        if visit.region.is_closed() {
            end(&visit); // nobody has emitted since
            return false;
        }
        true
    }

    /// As [`attach_file`], for the buffers of a session in this process. A child of the process shares them where the
    /// protocol allows. `false` where another recording was faster.
    pub(crate) fn attach(region: &Region, file: libc::c_int) -> bool {
        let inherited = region.protocol() == Protocol::Publish;
        if inherited && !system::membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ) {
            return false;
        }
        // Who is just noticing that an earlier recording is over must not switch this one off.
        visits::prepare() && {
            visits::wait_for_end();
            attach_file(file, region.geometry().size(), inherited, None).is_some()
        }
    }

    /// Ends the attachment to a session in this process. When it returns, no thread of the process writes to the session's
    /// memory any more.
    pub(crate) fn detach() {
        let Some(visit) = joined() else { return };
        end(&visit);
        spare(visit.own);
        // Restarts every sequence that has seen the old key; each finds it gone. Cannot fail once registered, and without
        // `Publish` there is no sequence.
        system::membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
        let joined = visit.joined;
        drop(visit);
        let (base, size) = (joined.region.base(), joined.region.geometry().size());
        if visits::wait_for_end() {
            // SAFETY: the session's consumer has a mapping of its own. No thread is in a sequence with the old key, none
            // is in the slow half, and none finds its way to the region again.
            unsafe {
                system::unmap(base, size);
                system::unmap(core::ptr::NonNull::from(joined).cast(), size_of::<Joined>());
            }
        } else {
            // SAFETY: a thread was stopped between its look and its last access, for as long as nobody can wait: it finds
            // zeroes, and writes where nobody reads.
            unsafe { system::map_zeroes_over(base, size) };
        }
    }
}

#[cfg(feature = "session")]
mod visits {
    //! How many threads are between a look at [`super::JOINED`] and their last access to what it names. Counted only in
    //! programs that record themselves, in a few words by CPU.

    use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::*, fence};

    use super::system;

    /// Looks, a millisecond apart, after which threads that have not left are taken as stopped.
    const PATIENCE: usize = 200;

    #[repr(C, align(64))]
    struct Count(AtomicI64);

    type Counts = [Count; 32];

    /// Zeroed in a forked child, in which those other threads are not.
    static COUNTS: AtomicPtr<Counts> = AtomicPtr::new(core::ptr::null_mut());

    fn counts() -> Option<&'static Counts> {
        // Acquire, with the release in `prepare`. SAFETY: null, or a page that is never unmapped; zeroes are valid.
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
            // SAFETY: nobody was told of it.
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
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            // Acquire, with the release of `Counted`'s drop.
            counts.iter().map(|count| count.0.load(Acquire)).sum::<i64>() == 0
        })
    }
}
