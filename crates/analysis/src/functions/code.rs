//! What events say of later calls: where code is, which program each process executes, and which of several
//! probes at one place counts.

use super::event::{Counting, FunctionEvent, FunctionRead};
use crate::images::{self, Images};
use crate::programs::{self, Programs};
use crate::stored::stored;
use tracewing_trace::super_trace::Located;

/// What was said so far.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(super) counting: Counting,
    pub(super) images: Images,
    pub(super) programs: Programs,
}

stored! { OF_CODE: Code { counting images programs } }

impl Code {
    /// Changes with what is stored of it.
    pub(crate) const SHAPE: u64 = OF_CODE ^ images::SHAPE ^ programs::SHAPE;

    /// Takes an event whose call is not followed.
    #[inline]
    pub(crate) fn learn(&mut self, read: Option<&FunctionRead>, at: &Located<'_>) {
        self.images.follow(at);
        if let Some(read) = read {
            self.learn_image(read, at);
        }
    }

    /// How many files, processes and probes are known.
    pub(crate) fn count(&self) -> usize {
        self.images.count() + self.programs.count() + self.counting.count()
    }

    fn learn_image(&mut self, read: &FunctionRead, at: &Located<'_>) {
        let process = at.place.process;
        if !self.counting.counts(read, process) {
            return;
        }
        let FunctionEvent::Image { begin, end, bias, path } = &read.event else { return };
        if self.programs.changed(at.state, process).is_some() {
            self.images.forget(process);
        }
        self.images.learn(process, *begin..*end, *bias, path.clone());
    }
}
