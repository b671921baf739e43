//! Removes archives and snapshots: takes them away from readers at once, and their files on a thread, so that
//! the recorder does not wait for that.

use std::ffi::OsStr;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use tracewing_files::Dir;

/// Removes folders; has a thread once it was needed.
#[derive(Default)]
pub(crate) struct Remover(Option<Thread>);

struct Thread {
    /// Folders, each by its parent and its name.
    names: Sender<(Dir, String)>,
    thread: JoinHandle<()>,
}

impl Remover {
    /// Takes a folder away from readers, and has it removed. Says whether it was there.
    ///
    /// # Errors
    /// It cannot be renamed, and stays as it is.
    pub(crate) fn remove(&mut self, parent: &Dir, name: &str) -> io::Result<bool> {
        // Hidden, it is no trace any more; so readers find all of it, or nothing.
        let hidden = format!(".{name}.removed");
        match parent.rename(name, OsStr::new(&hidden)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            renamed => renamed?,
        }
        if self.0.is_none() {
            let (sender, names) = channel::<(Dir, String)>();
            let work = move || {
                // What cannot be removed stays there, hidden.
                names.into_iter().for_each(|(parent, name)| drop(parent.remove_all(&name)));
            };
            let thread = Builder::new().name("tracewing-remove".to_owned()).spawn(work);
            self.0 = thread.ok().map(|thread| Thread { names: sender, thread });
        }
        match &self.0 {
            Some(thread) => drop(thread.names.send((parent.clone(), hidden))),
            None => drop(parent.remove_all(&hidden)),
        }
        Ok(true)
    }

    /// Waits until all that was removed is gone.
    pub(crate) fn finish(&mut self) {
        if let Some(Thread { names, thread }) = self.0.take() {
            drop(names);
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}
