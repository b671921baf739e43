//! The known classes and their sites, and what the recordings enable of them.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU16;

use tracewing_ring::thread::RECORDINGS;
use tracewing_trigger::{Kind, Record, switch};

use super::answer::{Changed, Granted, Registrar, SwitchFault};
use crate::agent::filters::Filters;
use crate::agent::made::{self, Seen};
use crate::agent::system;
use crate::class::EventClass;

pub(super) struct Known {
    pub(super) class: &'static EventClass,
    pub(super) sites: Vec<&'static Record>,
}

pub(super) struct Member {
    pub(super) registrar: Registrar,
    /// How many of the known classes were sent to it.
    pub(super) sent: usize,
    /// Indices of the classes with each id.
    pub(super) ids: HashMap<u16, Vec<usize>>,
}

/// What is known of the process, and what is enabled.
pub(in super::super) struct Control {
    pub(super) objects: HashSet<usize>,
    pub(super) classes: Vec<Known>,
    pub(super) indices: HashMap<usize, usize>,
    /// Which of the classes that are made at run time have got here.
    pub(super) seen: Seen,
    pub(super) members: [Option<Member>; RECORDINGS],
    pub(super) filters: Filters,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            objects: HashSet::new(),
            classes: Vec::new(),
            indices: HashMap::new(),
            seen: Seen::NONE,
            members: [const { None }; RECORDINGS],
            filters: Filters::new(),
        }
    }

    pub(super) fn index(&mut self, class: &'static EventClass) -> usize {
        *self.indices.entry(core::ptr::from_ref(class) as usize).or_insert_with(|| {
            self.classes.push(Known { class, sites: Vec::new() });
            self.classes.len() - 1
        })
    }

    pub(super) fn add_site(&mut self, record: &'static Record) {
        let site = record.site();
        if site.kind != Kind::Event {
            return;
        }
        // SAFETY: what `event` has given as the owner: a class, which lives as long as its object.
        let index = self.index(unsafe { &*(site.owner)().cast::<EventClass>() });
        let known = &mut self.classes[index];
        if !known.sites.iter().any(|known| core::ptr::eq(*known, record)) {
            known.sites.push(record);
        }
    }

    /// Takes over what was made at run time since the last time.
    pub(super) fn find_made(&mut self) {
        for class in made::since(&mut self.seen) {
            self.index(class);
        }
    }

    pub(super) fn news(&mut self, slot: usize) -> Option<(usize, Vec<&'static EventClass>, Registrar)> {
        self.find_made();
        let member = self.members[slot].as_mut()?;
        let first = core::mem::replace(&mut member.sent, self.classes.len());
        let news: Vec<_> = self.classes[first..].iter().map(|known| known.class).collect();
        (!news.is_empty()).then(|| (first, news, member.registrar.clone()))
    }

    pub(super) fn apply(
        &mut self,
        slot: usize,
        ids: &HashMap<u16, Vec<usize>>,
        grants: impl Iterator<Item = Granted>,
    ) -> Changed {
        let mut changed = Changed::default();
        let (mut replaced, mut turned, mut is_revoked) = (Vec::new(), Vec::new(), false);
        for grant in grants {
            for &index in ids.get(&grant.id).into_iter().flatten() {
                let class = self.classes[index].class;
                let filter = match grant.on && !grant.filter.is_empty() {
                    true => self.filters.add(&grant.filter),
                    false => Some(0),
                };
                if filter.is_none() {
                    changed.why.get_or_insert(SwitchFault::NoRoom);
                }
                let id = filter.and_then(|_| NonZeroU16::new(grant.id).filter(|_| grant.on));
                // A disabled class loses its id first: a thread that finds no filter afterwards must not
                // write.
                let is_turned_off = id.is_none() && class.set_enabled(slot, None);
                let before = class.set_filter(slot, filter.unwrap_or(0));
                let is_turned_on = id.is_some() && class.set_enabled(slot, id);
                is_revoked |= id.is_none() || before != 0;
                replaced.push(before);
                if is_turned_off || is_turned_on {
                    turned.push((index, is_turned_on));
                }
            }
        }
        if is_revoked {
            // Every sequence that has seen an id that is gone begins again. Without `Publish` there is none.
            system::membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
        }
        replaced.into_iter().for_each(|filter| self.filters.remove(filter));
        self.switch_sites(&turned, &mut changed);
        changed
    }

    fn switch_sites(&self, turned: &[(usize, bool)], changed: &mut Changed) {
        let sites =
            |&(index, on): &(usize, bool)| self.classes[index].sites.iter().map(move |site| (*site, on));
        let sites: Vec<(&Record, bool)> = turned.iter().flat_map(sites).collect();
        match switch(&sites) {
            Ok(switched) => {
                changed.failed += switched.obstructed;
                if let Some(obstacle) = switched.obstacle {
                    changed.why.get_or_insert(SwitchFault::Obstacle(obstacle));
                }
            }
            Err(error) => {
                changed.failed += sites.len() - error.changed;
                changed.why.get_or_insert(SwitchFault::Refused(error));
            }
        }
    }
}
