//! The events of provider `user_thread`. `docs/reference/tasks.md` says what they mean together.

tracewing_vocabulary::user_thread_events!(crate::declared_events);
