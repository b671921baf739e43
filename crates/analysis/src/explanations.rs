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
        Self { code, explained, locks: Some(Box::new(EarlierLocks::new())), most, left: PERIOD }
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

    /// As parts of a checkpoint.
    pub fn parts(&self) -> Vec<Part> {
        let code = self.code.as_ref().map(|code| PartKind::Functions.part(Code::SHAPE, code));
        let explained =
            self.explained.as_ref().map(|explained| PartKind::Profile.part(Explained::SHAPE, explained));
        let locks = self.locks.as_ref().map(|locks| locks.part());
        code.into_iter().chain(explained).chain(locks).collect()
    }
}
