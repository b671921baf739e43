//! Which classes the recordings enable, and therefore which sites are on.
//!
//! A recording that the process takes part in is sent every class (of the program, of its libraries, of those
//! that are loaded later, and classes made at run time). It grants each an id, and decides whether to record
//! its events; later it may change its decision. A class's sites are on while any recording enables it.
//!
//! One lock protects all of this; the event path never takes it. The order of a change: to enable a class,
//! its words are set first and then its sites are switched on, so that a thread at a site that is on finds
//! the class enabled. To disable a class, its words are cleared first, then `membarrier` restarts every
//! sequence, which finds the id gone: from then on no event is written (protocol `Publish`), and the sites
//! follow.

mod answer;
mod state;

#[cfg(feature = "session")]
pub use answer::SwitchFault;
pub(crate) use answer::{Answer, Changed, Granted, Registrar, Rest};
pub(super) use state::Control;
use state::Member;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewing_ring::thread::RECORDINGS;
use tracewing_trigger::{Lock, Object, Record, objects, on_load, pin};

use super::{filtered, made, system, threads, watch};
use crate::class::EventClass;

static CONTROL: Mutex<Option<Control>> = Mutex::new(None);

/// Held while classes are sent to recordings, so that a thread that has made a class, or has found one that
/// another thread has just made, knows that all have been sent. A child that is forked in the meantime finds
/// it free. The dynamic linker is not called while it is held: `on_load`'s hook is called with the linker's
/// own lock held.
static SENDING: Lock = Lock::new();

/// Runs `body` with the lock, and without signals, whose handlers might want it.
fn locked<R>(body: impl FnOnce(&mut Control) -> R) -> R {
    system::without_signals(|| body(lock().get_or_insert_with(Control::new)))
}

fn lock() -> Hold {
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` while no thread forks by the C library.
pub(super) fn with_lock<R>(body: impl FnOnce() -> R) -> R {
    system::without_signals(|| {
        let _lock = lock();
        body()
    })
}

pub(super) type Hold = MutexGuard<'static, Option<Control>>;

/// Holds the lock while the process forks, so that the child finds it free and everything in order.
pub(super) fn hold() -> Hold {
    lock()
}

/// Makes the process a member of the recording in a slot: sends it all classes.
pub(crate) fn join(slot: usize, registrar: Registrar) -> (Changed, Option<Rest>) {
    on_load(|_: &Object| send_all());
    locked(|control| {
        control.members[slot] = Some(Member { registrar, sent: 0, ids: HashMap::new() });
    });
    watch::set_member(slot, true);
    find_classes();
    let sending = SENDING.lock();
    let mut sent = send(slot);
    // Classes that were made before the recording was known to take first events. A late answer is followed
    // by this, too.
    if sent.1.is_none() {
        sent.1 = send(slot).1;
    }
    drop(sending);
    watch::notify();
    sent
}

/// The recording in a slot enables nothing any more, and is no longer informed of classes.
pub(crate) fn forget(slot: usize) {
    locked(|control| {
        if let Some(member) = control.members[slot].take() {
            let ids: Vec<u16> = member.ids.keys().copied().collect();
            let off = ids.into_iter().map(|id| Granted { id, on: false, filter: Vec::new() });
            control.apply(slot, &member.ids, off);
            control.find_made();
            for class in
                control.classes.iter().map(|known| known.class).filter(|class| class.is_pending(slot))
            {
                class.set_enabled(slot, None);
                class.decided(slot);
            }
        }
    });
    watch::set_member(slot, false);
    watch::notify();
}

/// A recording has changed its mind.
pub(crate) fn change(slot: usize, grants: impl Iterator<Item = Granted>) -> Changed {
    let changed = locked(|control| {
        let Some(member) = control.members[slot].take() else { return Changed::default() };
        let changed = control.apply(slot, &member.ids, grants);
        control.members[slot] = Some(member);
        changed
    });
    watch::notify();
    changed
}

/// The class with this description: the one that was made before, or a new one. `None` if it is too large for
/// a message.
pub(crate) fn register(description: tracewing_abi::schema::Class<'static>) -> Option<&'static EventClass> {
    let (class, is_settled) = made::add(description)?;
    if !is_settled {
        settle_made(class);
    }
    Some(class)
}

/// Puts a class in order that was made while a recording began or ended: it may or may not belong to the
/// recording.
#[cold]
fn settle_made(class: &'static EventClass) {
    locked(|control| {
        control.find_made();
        let index = control.index(class);
        let taken = made::taken();
        for (slot, member) in control.members.iter().enumerate() {
            let is_sent = member.as_ref().is_some_and(|member| member.sent > index);
            if taken & 1 << slot == 0 && class.is_pending(slot) {
                class.set_enabled(slot, None);
                class.decided(slot);
            } else if taken & 1 << slot != 0 && !is_sent {
                class.set_pending(slot);
            }
        }
    });
}

/// Sends all recordings the classes that they do not know yet, and informs those that wait for changes if
/// first events turn out to be disabled.
pub(crate) fn send_news() {
    let sending = SENDING.lock();
    let is_off = send_all_news();
    drop(sending);
    if is_off {
        watch::notify();
    }
}

/// For tests: all classes that a recording would be sent.
pub fn classes() -> Vec<&'static EventClass> {
    find_classes();
    locked(|control| control.classes.iter().map(|known| known.class).collect())
}

/// For tests: a recording without buffers that wants all events, or none any more.
pub fn pretend(wants: bool) {
    const SLOT: usize = RECORDINGS - 1;
    forget(SLOT);
    if !wants {
        return;
    }
    let grant = |_: &&EventClass| Granted { id: 1, on: true, filter: Vec::new() };
    join(SLOT, Arc::new(move |classes| classes.iter().map(grant).collect::<Vec<_>>().into()));
}

/// The classes that a recording has given an id, with these.
pub(crate) fn granted(slot: usize) -> Vec<(u16, &'static EventClass)> {
    locked(|control| {
        let ids = control.members[slot].iter().flat_map(|member| &member.ids);
        let first =
            |(id, indices): (&u16, &Vec<usize>)| Some((*id, control.classes[*indices.first()?].class));
        ids.filter_map(first).collect()
    })
}

/// Sends all recordings the classes that they do not know yet.
fn send_all() {
    // On the program's own thread, which may be filtered. Events of classes that no recording knows are not
    // recorded.
    let has_members = || locked(|control| control.members.iter().any(Option::is_some));
    if !filtered::is_alone() && has_members() {
        find_classes();
        let _sending = SENDING.lock();
        send_all_news();
    }
}

/// Returns whether a class is now off whose first events were accepted.
fn send_all_news() -> bool {
    let sent = (0..RECORDINGS).map(|slot| {
        let (changed, rest) = send(slot);
        rest.into_iter().for_each(|rest| {
            threads::start(rest);
        });
        changed.is_off
    });
    sent.fold(false, |is_off, changed| is_off | changed)
}

/// Sends the recording in a slot the classes that it does not know yet. The caller holds the lock for
/// reports; the control lock is free while the recording answers.
fn send(slot: usize) -> (Changed, Option<Rest>) {
    let Some((first, classes, registrar)) = locked(|control| control.news(slot)) else {
        return (Changed::default(), None);
    };
    let mut answer = registrar(&classes);
    if let Some(rest) = answer.rest.take() {
        let settle = move || {
            settle(slot, (first, &classes), &registrar, rest());
            send_news();
            watch::notify();
        };
        return (Changed::default(), Some(Box::new(settle)));
    }
    (settle(slot, (first, &classes), &registrar, answer), None)
}

/// Puts an answer to classes, with the index of the first of them, into force.
fn settle(
    slot: usize,
    (first, classes): (usize, &[&'static EventClass]),
    registrar: &Registrar,
    answer: Answer,
) -> Changed {
    let Answer { grants, connection, turn, .. } = answer;
    let changed = locked(|control| {
        // Another recording may have the slot by now, to which these ids mean nothing.
        let is_same = |member: &mut Member| Arc::ptr_eq(&member.registrar, registrar);
        let Some(mut member) = control.members[slot].take_if(is_same) else { return Changed::default() };
        for (index, grant) in (first..).zip(&grants).filter(|(_, grant)| grant.id != 0) {
            member.ids.entry(grant.id).or_default().push(index);
        }
        let granted: Vec<bool> = grants.iter().map(|grant| grant.id != 0).collect();
        let mut changed = control.apply(slot, &member.ids, grants.into_iter());
        for (class, is_granted) in classes.iter().zip(granted) {
            if !is_granted {
                class.set_enabled(slot, None);
            }
            changed.is_off |= class.decided(slot) && !class.is_on();
        }
        control.members[slot] = Some(member);
        changed
    });
    drop((connection, turn));
    changed
}

/// Looks for objects that are not known yet, and keeps them loaded: their classes are on, and a thread may be
/// anywhere in them.
fn find_classes() {
    let known = locked(|control| control.objects.clone());
    let found: Vec<usize> = objects().iter().map(address).filter(|found| !known.contains(found)).collect();
    // Not under any lock: the dynamic linker has its own, which callers of `on_load`'s hook hold.
    let kept: HashSet<usize> = found.into_iter().filter(|found| pin(*found as *const ())).collect();
    pin(find_classes as *const ());
    let all = objects();
    let records = all.iter().filter(|object| kept.contains(&address(object))).flat_map(Object::sites);
    let records = records.map(|record| {
        // SAFETY: its object is never unloaded.
        unsafe { &*core::ptr::from_ref(record) }
    });
    let records: Vec<&'static Record> = records.collect();
    drop(all);
    locked(|control| {
        control.objects.extend(kept);
        control.index(crate::agent::thread_class());
        control.index(made::class_of_first());
        records.into_iter().for_each(|record| control.add_site(record));
    });
}

fn address(object: &Object) -> usize {
    core::ptr::from_ref(object) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_for_a_recording_that_has_gone_are_not_its_successors() {
        const SLOT: usize = RECORDINGS - 2;
        let successor =
            || Member { registrar: Arc::new(|_| Answer::default()), sent: 0, ids: HashMap::new() };
        let gone = move |classes: &[&'static EventClass]| {
            forget(SLOT);
            locked(|control| control.members[SLOT] = Some(successor()));
            let grant = |_: &&EventClass| Granted { id: 7, on: true, filter: Vec::new() };
            classes.iter().map(grant).collect::<Vec<_>>().into()
        };
        join(SLOT, Arc::new(gone));
        let wanted: Vec<_> = classes().into_iter().filter_map(|class| class.want(SLOT).get()).collect();
        forget(SLOT);
        assert_eq!(wanted, []);
    }
}
