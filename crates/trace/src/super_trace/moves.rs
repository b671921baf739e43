//! How threads and user threads move from state to state: each event's method names every state that it may
//! find.

mod lwp;
mod user_thread;
