//! The declared scope of a trace, and which state-changing events its classes can report.

use crate::open::extract::{has_some_interrupts, has_some_switches, has_some_system_calls};
use crate::open::recording::Trace;
use std::collections::HashSet;
use tracewing_ctf::model::{EnvValue, TraceClass};
use tracewing_units::Pid;
use tracewing_vocabulary::kernel::{Interrupt, InterruptEvent, SystemCall};
use tracewing_vocabulary::{environment, kernel, user_thread};

/// What a trace says that it is of.
pub(super) fn domain(trace: &Trace) -> Option<&str> {
    text_of(trace, environment::DOMAIN)
}

pub(super) const KERNEL: &str = environment::KERNEL;

/// Of samples, taken by the kernel (`tracewing-profile`).
pub(super) const PROFILE: &str = environment::PROFILE;

/// A text in a trace's environment.
pub(super) fn text_of<'t>(trace: &'t Trace, name: &str) -> Option<&'t str> {
    match trace.class().env(name)? {
        EnvValue::String(text) => Some(text),
        _ => None,
    }
}

/// Whether a trace is the kernel's.
pub(crate) fn is_kernel(trace: &Trace) -> bool {
    domain(trace) == Some(KERNEL)
}

/// Declares that a kernel trace has all threads' events, in the environment of tracewing's traces.
const SCOPE: (&str, &str) = (environment::SCOPE, environment::SYSTEM);

/// Whether a trace declares that it has the kernel's events of the whole machine: switches may be missing,
/// but no thread is left out.
pub(super) fn is_system_wide(trace: &Trace) -> bool {
    is_kernel(trace) && text_of(trace, SCOPE.0) == Some(SCOPE.1)
}

/// Whether a trace has the kernel's events of only some threads: tracewing's declare it if they have all.
pub(super) fn is_of_some(trace: &Trace) -> bool {
    is_kernel(trace)
        && !is_system_wide(trace)
        && text_of(trace, environment::TRACER_NAME) == Some(environment::TRACEWING)
}

/// The process whose tree's kernel events a trace has, if declared.
pub(super) fn root_process(trace: &Trace) -> Option<Pid> {
    match trace.class().env(environment::ROOT_PROCESS)? {
        EnvValue::Integer(process) => i32::try_from(*process).ok().map(Pid).filter(|_| is_of_some(trace)),
        EnvValue::String(_) => None,
    }
}

/// Whether the kernel chose a trace's events by a list of threads, as an extract's metadata says, too.
pub(super) fn is_of_listed(trace: &Trace) -> bool {
    let attached = trace.class().env(environment::ATTACHED_PROCESSES);
    is_of_some(trace) && (attached.is_some() || root_process(trace).is_some())
}

/// The names of a trace's event classes.
pub(super) fn class_names(trace: &Trace) -> impl Iterator<Item = &str> {
    let streams = &trace.class().data_stream_classes;
    streams.iter().flat_map(|stream| &stream.event_record_classes).filter_map(|class| class.name.as_deref())
}

/// Whether a trace has switches of threads, and not only some of them, so that a thread that does not leave a
/// CPU is known to be there.
pub(super) fn has_switches(trace: &Trace) -> bool {
    is_kernel(trace)
        && !has_some_switches(trace)
        && class_names(trace).any(|name| name == kernel::Switch::NAME)
}

/// Whether a trace has switches of user threads, and not only some of them.
pub(super) fn has_user_switches(trace: &Trace) -> bool {
    !has_some_switches(trace) && class_names(trace).any(|name| name == user_thread::Switch::NAME)
}

/// Whether a trace has wakes of user threads, all of them.
pub(super) fn has_user_wakes(trace: &Trace) -> bool {
    class_names(trace).any(|name| name == user_thread::Wake::NAME)
        && !trace.leaves_out(user_thread::Wake::NAME)
}

/// Whether events of a class say when a system call begins or ends.
pub(crate) fn is_of_system_call(name: &str) -> bool {
    SystemCall::of_name(name).is_some()
}

/// Whether events of a class say when an interrupt begins or ends.
pub(crate) fn is_of_interrupt(name: &str) -> bool {
    InterruptEvent::of_name(name).is_some()
}

/// Whether a trace has begins and ends of all kinds of interrupts, and not only some of them.
pub(super) fn has_interrupts(trace: &Trace) -> bool {
    let names: Vec<&str> = class_names(trace).filter(|name| is_of_interrupt(name)).collect();
    is_kernel(trace)
        && !has_some_interrupts(trace)
        && Interrupt::are_all(text_of(trace, environment::ARCHITECTURE), names.iter().copied())
}

/// Whether a trace has the page faults of programs, all of them.
pub(super) fn has_page_faults(trace: &Trace) -> bool {
    is_kernel(trace)
        && class_names(trace).any(|name| name == kernel::PageFaultUser::NAME)
        && !trace.leaves_out(kernel::PageFaultUser::NAME)
}

/// Whether a trace has begins and ends of all system calls that the kernel records.
pub(super) fn has_system_calls(trace: &Trace) -> bool {
    let has_all = || match calls_of_ours(trace) {
        Some(calls) => calls == Some(environment::ALL),
        None => describes_calls(trace, SystemCall::Entry) && describes_calls(trace, SystemCall::Exit),
    };
    is_kernel(trace) && !has_some_system_calls(trace) && has_all()
}

/// Whether a trace had begins of all system calls that the kernel records, before an extract was made of it.
pub(super) fn has_system_call_entries(trace: &Trace) -> bool {
    let has_all = || match calls_of_ours(trace) {
        Some(calls) => matches!(calls, Some(environment::ALL | environment::ENTRIES)),
        None => describes_calls(trace, SystemCall::Entry),
    };
    is_kernel(trace) && has_all()
}

/// Which system calls a trace of ours says that it has; `None` if it is not one.
fn calls_of_ours(trace: &Trace) -> Option<Option<&str>> {
    let is_ours = text_of(trace, environment::TRACER_NAME) == Some(environment::TRACEWING);
    is_ours.then(|| text_of(trace, environment::SYSTEM_CALLS))
}

/// Whether a trace describes an event of each call of [`SystemCall::OF_ALL_KERNELS`].
fn describes_calls(trace: &Trace, event: fn(&'static str) -> SystemCall<'static>) -> bool {
    let described: HashSet<_> = class_names(trace).filter_map(SystemCall::of_name).collect();
    SystemCall::OF_ALL_KERNELS.into_iter().all(|call| described.contains(&event(call)))
}

/// A part of a trace does not have everybody's events.
pub(crate) fn forget_scope(class: &mut TraceClass) {
    class.env.retain(|(name, _)| name != SCOPE.0);
}
