//! The events of provider `lock`: those of this module's locks, and further ones that the crate
//! `tracewing-preload` emits. `docs/reference/locks.md` explains them.

tracewing_vocabulary::lock_events!(crate::declared_events);

// The types of fields, as a program has them.
type LockAddress = u64;
type Caller = u64;
type Chain = u64;
type Owner = i32;
