//! User threads, such as tasks of an async runtime. `docs/reference/tasks.md` explains how the events fit
//! together.

use crate::declare::readers;
use tracewing_units::{LockAddress, Origin as OriginId, Task, Ticket};

/// Passes the declaration of the events of provider `user_thread` to a macro.
#[macro_export]
macro_rules! user_thread_events {
    ($($then:ident)::+) => { $($then)::+ ! {
        provider "user_thread" named "user_thread:";
        enumerations {
            /// Why an LWP stopped running a user thread.
            Cause: u8 {
                /// The LWP was running no user thread.
                None = 0 "none",
                /// The user thread has ended.
                Ended = 1 "ended",
                /// It is blocked.
                Blocked = 2 "blocked",
                /// It is ready and lets others run: it woke itself.
                Yielded = 3 "yielded",
                /// It is ready, and has used up its budget for one poll.
                Budget = 4 "budget",
                /// Its time slice has expired.
                Preempted = 5 "preempted",
                /// It runs another user thread inside itself and continues when that one stops.
                Nested = 6 "nested",
                /// It has not ended. Whether it is blocked or ready is not known, as of tasks that only hooks
                /// of their runtime report.
                Pending = 7 "pending",
            }

            /// How a user thread ended.
            Outcome: u8 {
                /// It ran to completion.
                Completed = 0 "completed",
                /// It was dropped before completion.
                Cancelled = 1 "cancelled",
                /// It panicked.
                Panicked = 2 "panicked",
                /// One of these; the runtime does not say which.
                Unknown = 3 "unknown",
            }

            /// What a user thread waits for or holds.
            Kind: u8 {
                /// A mutex.
                Mutex = 0 "mutex",
                /// A read-write lock, for reading.
                Read = 1 "read",
                /// A read-write lock, for writing.
                Write = 2 "write",
                /// Permits of a semaphore.
                Semaphore = 3 "semaphore",
                /// Sending to a channel that is full.
                Send = 4 "send",
                /// Receiving from a channel that is empty.
                Receive = 5 "receive",
                /// A notification.
                Notified = 6 "notified",
            }
        }
        events {
            /// A user thread was created and is ready to run.
            Create "create" {
                /// The user thread; unique within its process.
                thread: Task,
                /// The user thread that created it; 0 if none did.
                @optional parent: Task,
                /// Its origin, described by `user_thread:origin`.
                origin: OriginId [hex],
            }

            /// A user thread that was created when nothing recorded it, or before this archive; reported when
            /// it next runs or ends after a recording of its program has begun, was rotated, or has changed
            /// its rules. It can come several times.
            Existed "existed" {
                /// The user thread; unique within its process.
                thread: Task,
                /// Its origin, described by `user_thread:origin`.
                origin: OriginId [hex],
            }

            /// What user threads created at one place have in common; without name and runtime, the place of
            /// a request. Repeated in each sub-buffer that refers to it.
            Origin<'e> "origin" {
                /// Hash of the other fields; identifies the origin.
                origin: OriginId [hex],
                /// Name; may be empty.
                name: &'e str,
                /// Runtime that runs it; empty if unnamed.
                @optional runtime: &'e str,
                /// Source file.
                @optional file: &'e str,
                /// Line in that file.
                @optional line: u32,
            }

            /// A user thread is renamed.
            Name<'e> "name" {
                /// The user thread; unique within its process.
                thread: Task,
                /// Name; may be empty.
                name: &'e str,
            }

            /// The LWP stops running `prev` and starts running `next`.
            Switch "switch" {
                /// User thread that was running; 0 if none was.
                prev: Task,
                /// User thread that runs from now on; 0 if none does.
                next: Task,
                /// Why `prev` stopped.
                cause: Cause,
            }

            /// A user thread was made ready by the code running on this CPU.
            Wake "wake" {
                /// The user thread; unique within its process.
                thread: Task,
            }

            /// A user thread ends.
            Exit "exit" {
                /// The user thread; unique within its process.
                thread: Task,
                /// How it ended.
                @optional outcome: Outcome,
            }

            /// A request could not acquire its object at once and waits. The events of one request have the
            /// same ticket, whichever threads and user threads emit them.
            Wait "wait" {
                /// Kind of object.
                kind: Kind,
                /// Address of the object.
                object: LockAddress [hex],
                /// Identifies the request within its process; 0 if it began before the recording.
                @optional ticket: Ticket,
                /// Origin whose file and line are those of the request.
                @optional origin: OriginId [hex],
            }

            /// A request acquired its object.
            Acquired "acquired" [ordered] {
                /// Kind of object.
                kind: Kind,
                /// Address of the object.
                object: LockAddress [hex],
                /// Identifies the request within its process; 0 if it began before the recording.
                @optional ticket: Ticket,
                /// Origin whose file and line are those of the request.
                @optional origin: OriginId [hex],
                /// Whether it had to wait.
                @optional waited: bool,
            }

            /// A request ends without its object: its future was dropped, the object was closed, or it did
            /// not want to wait.
            GivenUp "given_up" {
                /// Kind of object.
                kind: Kind,
                /// Address of the object.
                object: LockAddress [hex],
                /// Identifies the request within its process; 0 if it began before the recording.
                @optional ticket: Ticket,
                /// Origin whose file and line are those of the request.
                @optional origin: OriginId [hex],
                /// Whether it has waited.
                @optional waited: bool,
            }

            /// An acquired object is released.
            Released "released" {
                /// Kind of object.
                kind: Kind,
                /// Address of the object.
                object: LockAddress [hex],
                /// Identifies the request within its process; 0 if it began before the recording.
                @optional ticket: Ticket,
            }

            /// This LWP is a worker of a runtime.
            Worker<'e> "worker" {
                /// Runtime that runs it; empty if unnamed.
                @optional runtime: &'e str,
                /// Number of the worker within its runtime.
                @optional worker: u32,
            }

            /// The worker is idle.
            Park "park" {
                /// Number of the worker within its runtime.
                @optional worker: u32,
            }

            /// The worker is busy again.
            Unpark "unpark" {
                /// Number of the worker within its runtime.
                @optional worker: u32,
            }
        }
    } };
}

user_thread_events!(readers);
