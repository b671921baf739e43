//! The events of provider `user_thread`. `docs/reference/tasks.md` explains them.

tracewing_vocabulary::user_thread_events!(crate::declared_events);
