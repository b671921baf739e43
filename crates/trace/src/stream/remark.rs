//! What a reader notices in a stream file that is no error: it is said once for each file.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where remarks on a file go, if anywhere.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    say: OnceLock<fn(&str)>,
    is_said: AtomicBool,
}

impl Remarks {
    /// Has `say` called with the first remark; the first call of this counts.
    pub(crate) fn go_to(&self, say: fn(&str)) {
        self.say.get_or_init(|| say);
    }

    /// Reports a remark, if it is the first.
    #[cold]
    pub(crate) fn remark(&self, text: impl FnOnce() -> String) {
        if let Some(say) = self.say.get()
            && !self.is_said.swap(true, Ordering::Relaxed)
        {
            say(&text());
        }
    }
}
