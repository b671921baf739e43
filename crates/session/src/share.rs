//! What the snapshots of a flight recorder may have of the room that the channels of a session share.
//!
//! Channels come and go while a session is started, so each flight recorder looks at the session's folder:
//! which of the recorders there live (each holds a lock that no other user can hold, [`Exclusive`]), and of
//! what kind they are. What has ended keeps what it has written. Of the rest, the snapshots of all flight
//! recorders have a half, or all if no other channel lives, and each recorder has an equal part of that. The
//! archives of other channels make room for what the snapshots have ([`crate::shared`]).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tracewing_consumer::description::{DESCRIPTION, IS_TRIGGER};
use tracewing_consumer::folder::USER;
use tracewing_files::{Dir, Exclusive, Tree};

use crate::archive_names::FOLDER;

/// Bytes of a description in which its first members are.
const BEGIN: u64 = 4096;
/// Time between two looks at how much a recorder has left that has ended: programs may still move it away.
const ENDED: Duration = Duration::from_secs(60);

/// The session's folder, and what is known of its recorders.
pub(crate) struct Share {
    /// Bytes that all channels may have.
    most: u64,
    /// Open from the begin on, since it may be moved, and another one be put in its place; `None` if it could
    /// not be opened.
    session: Option<Dir>,
    /// The name of this recorder's folder, and its owner.
    own: OsString,
    owner: u32,
    /// What the last look has found.
    bytes: u64,
    /// By the folders of recorders that live, those that are no flight recorders.
    known: BTreeMap<OsString, Kind>,
    /// By the folders of those that do not, how many bytes they had, and when.
    ended: BTreeMap<OsString, (u64, Instant)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flight,
    /// Writes a trace.
    Channel,
    /// Waits for events.
    Trigger,
    /// Writes a trace that is not described yet.
    Beginning,
    /// Does not live.
    Ended,
    /// Is no folder, such as a log.
    File,
}

impl Share {
    /// For the recorder that writes to `output`.
    pub(crate) fn new(most: u64, output: &Dir) -> Self {
        let own = output.path().file_name().map(OsStr::to_owned).unwrap_or_default();
        let (session, known, ended) = (output.above().ok(), BTreeMap::new(), BTreeMap::new());
        let owner = output.owner().unwrap_or_else(|_| geteuid().as_raw());
        Self { most, session, own, owner, bytes: most, known, ended }
    }

    /// Bytes that this recorder's snapshots may have at present. If the folder cannot be read now, it is as
    /// before.
    pub(crate) fn bytes(&mut self, now: Instant) -> u64 {
        self.bytes = self.look(now).unwrap_or(self.bytes);
        self.bytes
    }

    fn look(&mut self, now: Instant) -> io::Result<u64> {
        let session = self.session.clone().ok_or(io::ErrorKind::NotFound)?;
        let (mut taken, mut flights, mut has_channel) = (0_u64, 1, false);
        let names = session.entries()?;
        self.known.retain(|name, _| names.contains(name));
        self.ended.retain(|name, _| names.contains(name));
        // What others have put there takes nothing from this user's recorders.
        let (own, owner) = (self.own.clone(), self.owner);
        for name in names.iter().filter(|name| **name != own && session.has_of(name, owner)) {
            let kind = match session.folder(name)? {
                Some(folder) => self.kind(name, &folder)?,
                None => Kind::File,
            };
            let bytes = match kind {
                Kind::Flight => {
                    flights += 1;
                    continue;
                }
                Kind::Channel => {
                    has_channel = true;
                    continue;
                }
                Kind::Ended => self.size_of_ended(&session, name, now)?,
                Kind::Trigger | Kind::Beginning | Kind::File => session.size_of(name)?,
            };
            taken = taken.saturating_add(bytes);
        }
        let rest = self.most.saturating_sub(taken);
        Ok(if has_channel { rest / 2 } else { rest } / flights)
    }

    fn kind(&mut self, name: &OsString, folder: &Dir) -> io::Result<Kind> {
        if !Exclusive::is_held(folder)? {
            self.known.remove(name);
            return Ok(Kind::Ended);
        }
        self.ended.remove(name);
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        if ![USER, FOLDER, DESCRIPTION].iter().any(|part| folder.has(part)) {
            return Ok(Kind::Flight);
        }
        if !folder.has(DESCRIPTION) {
            return Ok(Kind::Beginning);
        }
        let mut begin = Vec::new();
        Tree::of(folder)?.file(Path::new(DESCRIPTION))?.take(BEGIN).read_to_end(&mut begin)?;
        // What others have named has no line of its own there.
        let is_trigger = String::from_utf8_lossy(&begin).lines().any(|line| line.trim() == IS_TRIGGER);
        let kind = if is_trigger { Kind::Trigger } else { Kind::Channel };
        self.known.insert(name.clone(), kind);
        Ok(kind)
    }

    fn size_of_ended(&mut self, session: &Dir, name: &OsString, now: Instant) -> io::Result<u64> {
        if let Some((bytes, _)) =
            self.ended.get(name).filter(|(_, seen)| now.saturating_duration_since(*seen) < ENDED)
        {
            return Ok(*bytes);
        }
        let bytes = session.size_of(name)?;
        self.ended.insert(name.clone(), (bytes, now));
        Ok(bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use tracewing_files::LOCK_FILE;
    use tracewing_testing::wait_until;

    const MOST: u64 = 10_000;

    /// A recorder, which lives as long as this.
    pub(crate) struct Living {
        pub(crate) folder: Dir,
        lock: Exclusive,
    }

    impl Living {
        pub(crate) fn begins(folder: Dir) -> Self {
            Self { lock: Exclusive::wait(&folder).unwrap(), folder }
        }

        /// Until a child that another test has just made executes a program, it has the lock, too.
        pub(crate) fn ends(self) {
            drop(self.lock);
            wait_until("the lock is not held", || !Exclusive::is_held(&self.folder).unwrap());
        }
    }

    fn recorder(session: &Path, name: &str, description: Option<&str>) -> Living {
        let (folder, _) = Dir::create(&session.join(name)).unwrap();
        if let Some(text) = description {
            fs::write(session.join(name).join(DESCRIPTION), text).unwrap();
        }
        Living::begins(folder)
    }

    fn write(session: &Path, file: &str, bytes: usize) {
        fs::create_dir_all(session.join(file).parent().unwrap()).unwrap();
        fs::write(session.join(file), vec![0; bytes]).unwrap();
    }

    #[test]
    fn the_room_is_divided_among_the_recorders_that_live() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path();
        let own = recorder(session, "own", None);
        let mut share = Share::new(MOST, &own.folder);
        let mut now = Instant::now();
        let mut bytes = || {
            now += ENDED;
            share.bytes(now)
        };
        write(session, "own/snapshot-1/stream", 9000);
        write(session, "own.log", 100);
        assert_eq!(bytes(), MOST - 100, "there is no other");

        let channel = recorder(session, "channel", Some(""));
        assert_eq!(bytes(), (MOST - 100) / 2, "archives have a half");
        write(session, "channel/archives/x", 4000);
        let flight = recorder(session, "flight", None);
        assert_eq!(bytes(), (MOST - 100) / 4, "two flight recorders");
        write(session, "flight/snapshot-1/stream", 300);

        let trigger = recorder(session, "hit", Some(&format!("{{\n  {IS_TRIGGER}\n  \"command\"")));
        let of_trigger = fs::metadata(session.join("hit").join(DESCRIPTION)).unwrap().len();
        assert_eq!(bytes(), (MOST - 100 - of_trigger) / 4, "what has fired");

        channel.ends();
        assert_eq!(bytes(), (MOST - 100 - of_trigger - 4000) / 2, "what has ended keeps what it has");
        flight.ends();
        assert_eq!(bytes(), MOST - 100 - of_trigger - 4300);
        trigger.ends();
        assert_eq!(bytes(), MOST - 100 - of_trigger - 4300);
        write(session, "ended/archives/x", 20_000);
        assert_eq!(bytes(), 0, "there is no more room");
    }

    #[test]
    fn a_recorder_that_begins_is_no_flight_recorder() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path();
        let own = recorder(session, "own", None);
        let mut share = Share::new(MOST, &own.folder);
        let now = Instant::now();
        let begins = recorder(session, "begins", None);
        fs::create_dir(session.join("begins").join(USER)).unwrap();
        assert_eq!(share.bytes(now), MOST);
        // It is described now; what it records is called like a member of a trigger.
        let text = format!("{{\n  \"command\": [\n    \"{}\"", IS_TRIGGER.replace('"', "\\\""));
        fs::write(session.join("begins").join(DESCRIPTION), text).unwrap();
        assert_eq!(share.bytes(now), MOST / 2);
        begins.ends();
        assert!(share.bytes(now) < MOST);
    }

    #[test]
    fn what_has_ended_is_walked_once_a_minute() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path();
        let own = recorder(session, "own", None);
        let mut share = Share::new(MOST, &own.folder);
        let (now, later) = (Instant::now(), Instant::now() + ENDED);
        write(session, "channel/archives/x", 1000);
        write(session, &format!("channel/{DESCRIPTION}"), 0);
        assert_eq!(share.bytes(now), MOST - 1000);
        write(session, "channel/archives/y", 1000);
        assert_eq!(share.bytes(now + ENDED / 2), MOST - 1000, "it is known");
        assert_eq!(share.bytes(later), MOST - 2000);
        // A recorder that has lived since has written more.
        let channel = Living::begins(Dir::parent(session).unwrap().below("channel").unwrap());
        assert_eq!(share.bytes(later), MOST / 2);
        write(session, "channel/archives/z", 1000);
        channel.ends();
        assert_eq!(share.bytes(later), MOST - 3000);
        // Another one gets the name.
        fs::remove_dir_all(session.join("channel")).unwrap();
        assert_eq!(share.bytes(later), MOST);
        let _flight = recorder(session, "channel", None);
        assert_eq!(share.bytes(later), MOST / 2);
        assert!(share.known.is_empty() && share.ended.is_empty());
    }

    /// As if another user that may rename the session's folder put one in its place whose recorders all live.
    #[test]
    fn another_folder_in_its_place_takes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path().join("start");
        fs::create_dir(&session).unwrap();
        let own = recorder(&session, "own", None);
        let mut share = Share::new(MOST, &own.folder);
        fs::rename(&session, place.path().join("moved")).unwrap();
        fs::create_dir(&session).unwrap();
        let _others = ["1", "2", "3"].map(|name| recorder(&session, name, None));
        let now = Instant::now();
        assert_eq!(share.bytes(now), MOST);
        let _other = recorder(&place.path().join("moved"), "other", None);
        assert_eq!(share.bytes(now), MOST / 2, "one of the session");
        share.session = None;
        assert_eq!(share.bytes(now), MOST / 2, "what cannot be read is as before");
    }

    /// Another user that can read the folders of recorders.
    #[test]
    fn a_lock_of_another_user_makes_no_recorder_live() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path();
        let own = recorder(session, "own", None);
        let mut share = Share::new(MOST, &own.folder);
        let now = Instant::now();
        let ended = recorder(session, "channel", Some(""));
        write(session, "channel/archives/x", 1000);
        assert_eq!(share.bytes(now), MOST / 2);
        ended.ends();
        let mut locks = Command::new("flock");
        locks.args(["-x", "-n"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if tracewing_testing::am_root() {
            fs::set_permissions(session, fs::Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(session.join("channel"), fs::Permissions::from_mode(0o755)).unwrap();
            locks.uid(tracewing_testing::NOBODY).gid(tracewing_testing::NOBODY);
            let mut lock = Command::new("flock");
            lock.args(["-n", "-s"]).arg(session.join("channel").join(LOCK_FILE)).arg("true");
            let refused = lock.uid(tracewing_testing::NOBODY).output().unwrap();
            assert!(!refused.status.success() && !refused.stderr.is_empty(), "it cannot open the file");
        }
        let mut holder = locks.arg(session.join("channel")).args(["sh", "-c", "echo; cat"]).spawn().unwrap();
        assert_eq!(holder.stdout.as_mut().unwrap().read(&mut [0]).unwrap(), 1);
        assert!(Dir::parent(session).unwrap().below("channel").unwrap().is_locked());
        assert_eq!(share.bytes(now), MOST - 1000, "what has ended keeps what it has");
        drop(holder.stdin.take());
        holder.wait().unwrap();
    }

    #[test]
    fn what_belongs_to_another_user_takes_nothing() {
        if !tracewing_testing::am_root() {
            return tracewing_testing::skip(tracewing_testing::Cause::Root, "not root");
        }
        let place = tempfile::tempdir().unwrap();
        let session = place.path();
        let own = recorder(session, "own", None);
        let _others = ["1", "2"].map(|name| recorder(session, name, None));
        let mut share = Share::new(MOST, &own.folder);
        assert_eq!(share.bytes(Instant::now()), MOST / 3);
        std::os::unix::fs::chown(session.join("1"), Some(tracewing_testing::NOBODY), None).unwrap();
        assert_eq!(share.bytes(Instant::now()), MOST / 2);
    }
}
