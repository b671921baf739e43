//! The tracer's own events: threads, and the panic after which a snapshot is taken.

tracewing_vocabulary::own_events!(crate::declared_events);

/// As a [`Thread`] has it.
type Pid = i32;
