//! The events of provider `user_thread`. `docs/reference/tasks.md` explains them.

tracewing_vocabulary::user_thread_events!(crate::declared_events);

// The types of fields, as a program has them.
type Task = u64;
type OriginId = u64;
type Ticket = u64;
type LockAddress = u64;
