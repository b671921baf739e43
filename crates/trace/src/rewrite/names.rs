//! Which classes of events say what others mean.

use tracewing_ctf::model::EventRecordClass;
use tracewing_vocabulary::{Class, kernel, user_thread};

/// Whether events of a class say what others mean: names of threads and processes, and where in memory which
/// file is.
pub(crate) fn explains(class: &EventRecordClass) -> bool {
    class.name.as_deref().is_some_and(is_explanation)
}

/// Whether events of this name do.
pub(crate) fn is_explanation(name: &str) -> bool {
    kernel::is_state_dump(name) || Class::of_name(name).is_some_and(Class::explains)
}

/// Whether events of a class give the names of single threads of the kernel.
pub(crate) fn names_lwp(class: &EventRecordClass) -> bool {
    use kernel::Class::{Exec, Fork, NewTask};
    let name = class.name.as_deref();
    matches!(name.and_then(kernel::Class::of_name), Some(NewTask | Fork | Exec))
}

/// Whether events of a class say what single tasks are called.
pub(crate) fn names_task(class: &EventRecordClass) -> bool {
    use user_thread::Class::{Create, Name};
    let name = class.name.as_deref();
    matches!(name.and_then(user_thread::Class::of_name), Some(Create | Name))
}
