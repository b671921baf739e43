//! The events of provider `user_thread`. `docs/tasks.md` says what they mean together.

tracewing_vocabulary::user_thread_events!(crate::declared_events);
