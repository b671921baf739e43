//! The events of provider `lock`: those of this module's locks, and those that the crate `tracewing-preload`
//! emits besides. `docs/reference/locks.md` says what they mean together.

tracewing_vocabulary::lock_events!(crate::declared_events);
