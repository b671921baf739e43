//! What events explain of later ones, whichever threads they are of: where code is, what it is called, and
//! which locks are held and waited for. Analyses of functions, samples and locks take it from a checkpoint.

use crate::analysis::Input;
use crate::functions::{Code, FunctionRead};
use crate::locks::{EarlierLocks, LockRead};
use crate::profile::{Explained, ExplanationRead};
use crate::stored::PartKind;
use tracewing_trace::super_trace::{Change, Located, Part};

/// Mappings of files and names of code that are kept, at most: checkpoints lack what has more of them.
const MOST: usize = 1 << 20;
/// Events between two looks at how many there are.
const PERIOD: u32 = 1 << 8;

/// Numbers that change where analyses read other [parts](Explanations::parts).
pub fn shapes_of_parts() -> [u64; 3] {
    [Code::SHAPE, Explained::SHAPE, EarlierLocks::SHAPE]
}

/// What events have explained so far.
#[derive(Debug)]
pub struct Explanations {
    code: Option<Code>,
    explained: Option<Explained>,
    locks: Option<Box<EarlierLocks>>,
    /// Of each part in [`Self::parts`].
    taken: [Taken; 3],
    /// How many there may be of each.
    most: usize,
    /// Events until the next look.
    left: u32,
}

impl Default for Explanations {
    fn default() -> Self {
        Self::of_at_most(MOST)
    }
}

impl Explanations {
    /// Those that keep no more than so many mappings and names of each kind.
    pub(crate) fn of_at_most(most: usize) -> Self {
        let (code, explained) = (Some(Code::default()), Some(Explained::default()));
        let (locks, taken) = (Some(Box::new(EarlierLocks::new())), Default::default());
        Self { code, explained, locks, taken, most, left: PERIOD }
    }

    /// Takes the next event, of which this was read.
    #[inline]
    pub fn learn(
        &mut self,
        function: Option<&FunctionRead>,
        lock: Option<&LockRead>,
        said: Option<ExplanationRead>,
        at: &Located<'_>,
    ) {
        self.code.iter_mut().for_each(|code| code.learn(function, at));
        self.locks.iter_mut().for_each(|locks| locks.learn(lock, at));
        if let Some(said) = said {
            self.explains(said);
        }
        self.left -= 1;
        if self.left == 0 {
            self.bound();
        }
    }

    fn explains(&mut self, said: ExplanationRead) {
        if let Some(explained) = &mut self.explained {
            explained.learn(said, false);
            // A fork may add many at once.
            self.explained.take_if(|explained| explained.count() > self.most);
        }
    }

    /// Gives up what has become too much.
    #[cold]
    fn bound(&mut self) {
        self.left = PERIOD;
        self.code.take_if(|code| code.count() > self.most);
        self.locks.take_if(|locks| locks.exceeds(self.most));
    }

    /// Takes a change.
    #[inline]
    pub fn change(&mut self, change: Change<'_>) {
        self.locks.iter_mut().for_each(|locks| locks.change(change));
    }

    /// Takes what is neither an event nor a change.
    pub fn input(&mut self, input: Input<'_>) {
        self.locks.iter_mut().for_each(|locks| locks.input(input));
    }

    /// Events come before those that are analysed, without what they change: of locks, not all is known then.
    pub fn lacks_changes(&mut self) {
        self.locks = None;
    }

    /// As parts of a checkpoint, without those that take more than `room` bytes.
    pub fn parts(&mut self, room: u64) -> Vec<Part> {
        let Self { code, explained, locks, taken: [of_code, of_explained, of_locks], .. } = self;
        let code = code.as_ref().and_then(|code| {
            of_code.part(code.count(), room, || PartKind::Functions.part(Code::SHAPE, code))
        });
        let explained = explained.as_ref().and_then(|explained| {
            of_explained.part(explained.count(), room, || PartKind::Profile.part(Explained::SHAPE, explained))
        });
        let locks = locks.as_ref().and_then(|locks| of_locks.part(locks.count(), room, || locks.part()));
        code.into_iter().chain(explained).chain(locks).collect()
    }
}

/// How much a part took when it was made last.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    things: usize,
    bytes: usize,
}

impl Taken {
    /// The part of so many things, unless it takes more than `room` bytes. Where it is too large anyway, it
    /// is not made again.
    fn part(&mut self, things: usize, room: u64, make: impl FnOnce() -> Part) -> Option<Part> {
        if self.exceeds(things, room) {
            return None;
        }
        let part = make();
        *self = Self { things, bytes: part.bytes.len() };
        Some(part).filter(|part| part.bytes.len() as u64 <= room)
    }

    /// Whether a part of so many things is too large: more things take no less than before, and fewer ones
    /// take as much apiece.
    fn exceeds(self, things: usize, room: u64) -> bool {
        let bytes = self.bytes as u128 * things.min(self.things) as u128;
        bytes > u128::from(room) * self.things as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_too_large_is_not_made_again() {
        let (mut taken, mut made) = (Taken::default(), 0);
        let mut is_there = |things, room, bytes| {
            let part = taken.part(things, room, || {
                made += 1;
                Part { kind: 0, bytes: vec![0; bytes].into() }
            });
            (part.is_some(), made)
        };
        assert_eq!(is_there(10, 99, 100), (false, 1));
        assert_eq!([is_there(10, 99, 100), is_there(12, 99, 120)], [(false, 1); 2]);
        assert_eq!(is_there(12, 120, 120), (true, 2), "now there is room for it");
        assert_eq!(is_there(6, 59, 60), (false, 2));
        assert_eq!(is_there(6, 60, 60), (true, 3), "of fewer things, less is needed");
        assert_eq!(is_there(0, 0, 7), (false, 4));
        assert_eq!(is_there(0, 7, 7), (true, 5));
    }
}
