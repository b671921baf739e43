//! Activities of adjacent events with all that they refer to, so that one thread can decode events and
//! another one fold them.

use super::activity::{Activity, Kind, UserThreadKind};

/// Some activities, in order; `None` stands for an event without one.
#[derive(Debug, Default)]
pub struct Batch {
    /// Without their texts.
    activities: Vec<Option<Activity<'static>>>,
    /// Their texts, one after the other, and the length of each.
    texts: Vec<u8>,
    lengths: Vec<usize>,
}

impl Batch {
    /// How many events it has.
    pub fn len(&self) -> usize {
        self.activities.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.activities.is_empty()
    }

    /// Adds the next one.
    #[inline]
    pub fn push(&mut self, activity: Option<&Activity<'_>>) {
        let Some(&Activity { time, cpu, tid, process, context, kind }) = activity else {
            return self.activities.push(None);
        };
        let kind = with_texts(kind, &mut |text: &[u8]| {
            self.texts.extend_from_slice(text);
            self.lengths.push(text.len());
            Default::default()
        });
        self.activities.push(Some(Activity { time, cpu, tid, process, context, kind }));
    }

    /// All of them, as they were.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Option<Activity<'_>>> {
        let (mut texts, mut lengths) = (self.texts.as_slice(), self.lengths.iter());
        let mut next = move || {
            let length = lengths.next().copied().unwrap_or(0);
            let (text, rest) = texts.split_at_checked(length).unwrap_or_default();
            texts = rest;
            text
        };
        self.activities.iter().map(move |activity| {
            let Activity { time, cpu, tid, process, context, kind } = (*activity)?;
            Some(Activity { time, cpu, tid, process, context, kind: with_texts(kind, &mut |_| next()) })
        })
    }

    /// Takes all out, and keeps the memory.
    pub fn clear(&mut self) {
        self.activities.clear();
        self.texts.clear();
        self.lengths.clear();
    }
}

/// The same kind with each of its texts replaced by what `text` makes of it, always in the same order.
#[inline(always)]
fn with_texts<'a, 'b>(kind: Kind<'a>, text: &mut impl FnMut(&'a [u8]) -> &'b [u8]) -> Kind<'b> {
    match kind {
        Kind::Switch { prev, prev_name, prev_state, next, next_name } => {
            let (prev_name, next_name) = (text(prev_name), text(next_name));
            Kind::Switch { prev, prev_name, prev_state, next, next_name }
        }
        Kind::Waking { tid, name } => Kind::Waking { tid, name: text(name) },
        Kind::Wakeup { tid, name } => Kind::Wakeup { tid, name: text(name) },
        Kind::Fork { child, name } => Kind::Fork { child, name: text(name) },
        Kind::NewTask { child, same_process } => Kind::NewTask { child, same_process },
        Kind::Exec { file } => Kind::Exec { file: text(file) },
        Kind::Exit => Kind::Exit,
        Kind::SystemCall { call } => Kind::SystemCall { call },
        Kind::UnendedCall { call, returns } => Kind::UnendedCall { call, returns },
        Kind::SystemCallEnd { call } => Kind::SystemCallEnd { call },
        Kind::InterruptEntry { kind, name } => Kind::InterruptEntry { kind, name },
        Kind::InterruptExit(interrupt) => Kind::InterruptExit(interrupt),
        Kind::Raise { name } => Kind::Raise { name },
        Kind::Socket => Kind::Socket,
        Kind::PageFault { user, high } => Kind::PageFault { user, high },
        Kind::Introduction { process, name } => Kind::Introduction { process, name: text(name) },
        Kind::Program { name } => Kind::Program { name: text(name) },
        Kind::Dump { tid, process, name, is_kernel } => {
            Kind::Dump { tid, process, name: text(name), is_kernel }
        }
        Kind::Asleep { tid, call } => Kind::Asleep { tid, call },
        Kind::UserThread(kind) => Kind::UserThread(of_user_thread(kind, text)),
        Kind::Waits { on } => Kind::Waits { on },
        Kind::Sample { user, by_timer } => Kind::Sample { user, by_timer },
        Kind::Named { process, name } => Kind::Named { process, name: text(name) },
        Kind::Made { child, process } => Kind::Made { child, process },
        Kind::Stateless => Kind::Stateless,
        Kind::User => Kind::User,
        Kind::Kernel => Kind::Kernel,
    }
}

#[inline(always)]
fn of_user_thread<'a, 'b>(
    kind: UserThreadKind<'a>,
    text: &mut impl FnMut(&'a [u8]) -> &'b [u8],
) -> UserThreadKind<'b> {
    match kind {
        UserThreadKind::Create { thread, origin } => UserThreadKind::Create { thread, origin },
        UserThreadKind::Existed { thread, origin } => UserThreadKind::Existed { thread, origin },
        UserThreadKind::Origin { origin, name, file, line } => {
            let (name, file) = (text(name), text(file));
            UserThreadKind::Origin { origin, name, file, line }
        }
        UserThreadKind::Rename { thread, name } => UserThreadKind::Rename { thread, name: text(name) },
        UserThreadKind::Switch { prev, next, cause } => UserThreadKind::Switch { prev, next, cause },
        UserThreadKind::Wake { thread } => UserThreadKind::Wake { thread },
        UserThreadKind::Exit { thread } => UserThreadKind::Exit { thread },
        UserThreadKind::Wait { kind } => UserThreadKind::Wait { kind },
        UserThreadKind::Acquired => UserThreadKind::Acquired,
        UserThreadKind::Worker => UserThreadKind::Worker,
    }
}
