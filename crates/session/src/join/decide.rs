//! Which classes are enabled in which programs: the rules, for classes that programs describe and for first
//! events, which are in the buffers before their classes are described.

use tracewing_abi::first::{self, Key};
use tracewing_consumer::firsts::Bound;
use tracewing_consumer::names;
use tracewing_rules::{Decision, Process, Rule, TooManyRules};
use tracewing_units::Pid;

use super::Join;
use crate::client::{Decided, Host};
use crate::program::Program;
use crate::regions::Origin;

/// How often the buffers are read at most until no first event waits in them.
const MOST_ROUNDS: usize = 1000;

impl Join {
    /// Adds a rule. First events from before fall under the rules from before: they are written first.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn change_rules(&mut self, rule: Rule) -> Result<(), TooManyRules> {
        self.write_firsts(false);
        self.rules.push(rule)?;
        if self.regions.firsts().has_seen() {
            self.regions.firsts().forget_processes();
            // Includes classes whose programs have all ended: a new program may emit their events before it
            // describes them.
            let ids: Vec<u16> = self.classes.described().map(|(id, _)| id).collect();
            self.decide_for(&Process { pid: Pid(0), name: "" }, &ids);
        }
        Ok(())
    }

    /// Writes the contents of the buffers until no first event waits for its class. With `waits`, waits for
    /// the disk if necessary.
    pub(crate) fn write_firsts(&mut self, waits: bool) {
        for _ in 0..MOST_ROUNDS {
            match self.regions.write_now(waits) {
                // The rest waits for classes that no program describes, or for the disk.
                Ok(written) if !self.resolve_firsts() && (written == 0 || !waits) => return,
                Ok(_) => {}
                Err(error) => {
                    self.error.get_or_insert(error);
                    return;
                }
            }
        }
    }

    /// Gives ids to the classes that were found in buffers, under the same limits as for classes that
    /// programs describe over their connections, and decides whether undecided classes are enabled. Returns
    /// whether packets have waited for that. Also remembers which programs have classes to describe.
    pub(crate) fn resolve_firsts(&mut self) -> bool {
        let mut was_waited_for = false;
        for (origin, found) in self.regions.take_found() {
            let mut is_resolved = !found.undecided.is_empty();
            for (key, description) in &found.descriptions {
                let ids = self.describe(origin.peer, &[&**description]);
                let is_taken = ids != [0];
                is_resolved |= is_taken || self.regions.firsts().bind(*key, Bound::Unknown);
                self.decide_for(&Process { pid: Pid(0), name: "" }, &ids);
            }
            for (key, pid) in &found.undecided {
                self.decide_in(origin, *key, *pid);
            }
            if is_resolved {
                self.regions.hurry(origin);
            }
            was_waited_for |= is_resolved;
            self.makers.extend(found.processes);
        }
        was_waited_for
    }

    /// Decides for a class in one process. It may have ended; then it is known if it has joined, or is a
    /// forked child of the one for which the region was made.
    fn decide_in(&mut self, origin: Origin, key: Key, pid: Pid) {
        let id = self.classes.id(key);
        let living = Program::of(pid);
        let parent = origin.is_only.then_some(origin.peer.pid);
        let known = self.programs.get(&pid).or_else(|| self.programs.get(&parent?));
        let name =
            if living.is_alive() { Some(living.name) } else { known.map(|program| program.name.clone()) };
        let bound = name.zip(id).map(|(name, id)| {
            let decided = self.ruling(&Process { pid, name: &name }, id);
            let is_written = !decided.on || self.enable(&[id]);
            if decided.on && is_written { Bound::on(id, &decided.filter) } else { Bound::Off }
        });
        self.regions.firsts().bind_in(key, pid, bound.unwrap_or(Bound::Unknown));
    }

    fn ruling(&self, process: &Process<'_>, id: u16) -> Decided {
        let Some(class) = self.classes.class(id) else { return Decided::default() };
        match self.rules.decide(&class, process) {
            Decision::Off => Decided::default(),
            Decision::On { filter } => Decided { on: true, filter: filter.unwrap_or_default() },
        }
    }

    /// Has the metadata describe these classes. `false` if it cannot be written.
    fn enable(&mut self, ids: &[u16]) -> bool {
        let enabled = self.classes.enable(ids.iter().copied());
        let is_written = enabled.is_ok();
        if let Err(error) = enabled {
            self.error.get_or_insert(error);
        }
        is_written
    }

    /// What the rules make of these classes in a process. The metadata then has those that are on; `None` if
    /// it cannot be written.
    pub(super) fn decide_for(&mut self, process: &Process<'_>, ids: &[u16]) -> Option<Vec<Decided>> {
        let decided: Vec<Decided> = ids.iter().map(|&id| self.ruling(process, id)).collect();
        // Of first events the trace has none.
        let is_first = |id| self.classes.class(id).is_some_and(|class| class.name == first::NAME);
        let on = ids.iter().zip(&decided).filter(|(id, decided)| decided.on && !is_first(**id));
        let on: Vec<u16> = on.map(|(id, _)| *id).collect();
        self.enable(&on).then(|| self.bind(ids, decided))
    }

    /// Has first events of these classes recorded as was decided.
    fn bind(&self, ids: &[u16], mut decided: Vec<Decided>) -> Vec<Decided> {
        let is_by_process = self.rules.ask_for_processes();
        let firsts = self.regions.firsts();
        for (&id, decided) in ids.iter().zip(&mut decided) {
            let Some(class) = self.classes.class(id) else { continue };
            if class.name == first::NAME {
                firsts.begin(id);
                *decided = Decided { on: true, ..Decided::default() };
                continue;
            }
            if class.name == names::CLASS {
                self.regions.begin_announcements(id);
            }
            let bound = match decided.on {
                _ if is_by_process => Bound::ByProcess,
                true => Bound::on(id, &decided.filter),
                false => Bound::Off,
            };
            if let Some(key) = self.classes.key(id) {
                firsts.bind(key, bound);
            }
        }
        decided
    }
}
