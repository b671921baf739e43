//! The index of a complete recording that is shown while it is made.
//!
//! The pass is that of [`Cache::make`], and so is the index that it leaves. Now and then it pauses, and an
//! index of now is made.

use crate::body::Body;
use crate::cache::{Cache, Careful};
use crate::error::Error;
use crate::format::{HEAD, head};
use crate::groups;
use crate::identity;
use crate::index::Index;
use crate::make::{Pass, conclude};
use crate::now::{Changes, Look, Numbers, Shows, Watch, has_failed};
use crate::parts::FunctionNames;
use std::cell::Cell;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};
use tracewing_analysis::{Ongoing, Pairs, is_worth_threads};
use tracewing_files::Dir;
use tracewing_trace::super_trace::Pauses;
use tracewing_trace::{Filter, Progress, Recording};
use tracewing_units::Timestamp;

/// See [`Shows::new`]: the user waits for all of it, too.
const SHARE: u32 = 12;
/// Time until there is something to be seen. What takes less is seen when it is complete.
const FIRST: Duration = Duration::from_millis(150);

impl Cache {
    /// Makes the index of a recording, and shows it to `watch` as it grows: the length of an index of now is
    /// the time up to which all is known. Returns the complete index, which is the one that [`Cache::make`]
    /// makes; `None` if `watch` has stopped it, and then nothing is kept.
    ///
    /// # Errors
    /// As [`Cache::make`].
    pub fn fill(&self, recording: &Recording, watch: Watch<'_>) -> Result<Option<Index>, Error> {
        let write = |folder: &Dir, file| {
            self.fill_file(recording, folder, &file, watch).map_err(|error| self.unwritten(folder, error))
        };
        self.put(recording, write, Option::is_some)
    }

    fn fill_file(
        &self,
        recording: &Recording,
        folder: &Dir,
        file: &File,
        watch: Watch<'_>,
    ) -> Result<Option<Index>, Error> {
        let io = |cause| Error::Io { path: self.path().to_owned(), cause };
        let again = || file.try_clone().map_err(io);
        let identity = identity::of(recording);
        let mut out = Careful::new(folder, again()?);
        if !self.pass_over(recording, (folder, file, &mut out), &head(identity), watch)? {
            return Ok(None);
        }
        groups::add((again()?, self.path()), identity, groups::LEAST, &mut out)?;
        let gone = || Error::Io { path: self.path_of(recording), cause: ErrorKind::NotFound.into() };
        Index::open(again()?, &self.path_of(recording), identity)?.map(Some).ok_or_else(gone)
    }

    /// Writes all but the groups; false if `watch` has stopped it.
    fn pass_over(
        &self,
        recording: &Recording,
        (folder, file, out): (&Dir, &File, &mut Careful<'_>),
        head: &[u8; HEAD],
        watch: Watch<'_>,
    ) -> Result<bool, Error> {
        let (filter, failed) = (Filter::default(), Cell::new(false));
        let mut body = Body::new(out);
        body.write(head);
        thread::scope(|scope| {
            let mut pass = Pass::new(body, Pairs::of(recording, &filter), self.path(), &failed);
            if !Pauses::of(recording).are_over() {
                pass.parts.keep_explanations();
            }
            let mut ongoing = Ongoing::new(recording, &filter, &mut pass)?;
            let shared = is_worth_threads(recording).then_some(scope);
            let read = self.read(recording, &mut ongoing, (file, shared), watch)?;
            if has_failed(&mut ongoing, true) {
                drop(ongoing);
                return Err(self.failure(pass, folder));
            }
            let Some(failure) = read else { return Ok(false) };
            let ran = ongoing.finish(recording, failure);
            let io = |cause| Error::Io { path: self.path().to_owned(), cause };
            conclude(pass, &ran, head, false).map_err(io)?;
            Ok(true)
        })
    }

    /// Reads the recording, and makes an index of now from time to time. Another thread makes the blocks in
    /// between if there is a scope for it. Gives why it could not be read to its end, if it could not;
    /// nothing if `watch` has stopped it.
    fn read<'s, 'w: 's>(
        &self,
        recording: &Recording,
        ongoing: &mut Ongoing<'_, Pass<'w>>,
        (file, shared): (&File, Option<&'s Scope<'s, '_>>),
        watch: Watch<'_>,
    ) -> Result<Option<Option<tracewing_trace::Error>>, Error> {
        let (mut merge, total) = (ongoing.pausing(recording, Pauses::of(recording)), recording.bytes());
        let (mut shows, mut functions, mut numbers) =
            (Shows::new(SHARE, FIRST), FunctionNames::new(), Numbers::default());
        loop {
            if let Some(scope) = shared {
                ongoing.analysis().states.sink.writer.move_apart(scope, thread::Builder::new);
            }
            let mut is_stopped = false;
            let read = ongoing.read(recording, &mut merge, Timestamp::MAX, &mut |done| {
                is_stopped = watch(Look::Reads(Progress { done, total })).is_break();
                shows.is_old = true;
                if is_stopped || shows.are_due() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            // What was read of a recording that is damaged is shown.
            match read {
                _ if is_stopped || has_failed(ongoing, true) => return Ok(None),
                Ok(true) => return Ok(Some(None)),
                Err(failure) => return Ok(Some(Some(failure))),
                Ok(false) => {}
            }
            if let Some((first, last)) = ongoing.times() {
                let begin = Instant::now();
                let file =
                    file.try_clone().map_err(|cause| Error::Io { path: self.path().to_owned(), cause })?;
                let (index, states) =
                    self.now(file, ongoing, (first, last, last), &mut functions, &mut numbers)?;
                shows.took(begin);
                if watch(Look::Grown(Box::new(index), Changes { passes: 1, states })).is_break() {
                    return Ok(None);
                }
            }
        }
    }
}
