//! The running recording that a command is about, and `--user`, its owner.

use anyhow::{Context, Error, Result, anyhow, bail};
use rustix::process::getuid;
use tracewing_session::running::{Kind, Recordings, Running, Silent, Unseen};

#[derive(Debug, clap::Args)]
pub struct Which {
    /// The recording: its session or channel, the name of its command, or the process id of its command, its
    /// recorder, or a process that it attached to [default: the only one]
    #[arg(value_name = "PID|NAME")]
    recording: Option<String>,

    /// Use a recording of this user instead of your own; needs root
    #[arg(long, value_name = "NAME|UID")]
    user: Option<String>,
}

impl Which {
    /// # Errors
    /// No recording runs, or several do, or the user may not change it; or one does not answer that may be
    /// meant, too.
    pub fn find(&self, kind: Kind) -> Result<Running> {
        let recordings = recordings(self.user.as_deref())?;
        let Some(word) = self.recording.as_deref() else { return Ok(recordings.choose(None, kind)?) };
        let silent = recordings.silent_of(word.split_once('/').map_or(word, |(session, _)| session));
        if let Some(one) = silent.iter().find(|one| one.is_named(word)) {
            return Err(no_answer(one));
        }
        let unseen = not_asked(&recordings.unseen);
        let found = recordings.choose(Some(word), kind)?;
        // What these are is not known.
        let absent = silent.first().map(no_answer).or(unseen);
        match absent.filter(|_| found.is_named(word) && found.name != word) {
            Some(absent) => Err(absent),
            None => Ok(found),
        }
    }

    /// All channels if a session is named; otherwise the one recording. Also what is to be said of those that
    /// may be channels of the session, and do not answer or could not be asked.
    ///
    /// # Errors
    /// As [`Which::find`].
    pub fn find_all(&self, kind: Kind) -> Result<(Vec<Running>, Vec<Error>)> {
        let recordings = recordings(self.user.as_deref())?;
        let name = self.recording.as_deref();
        let mut silent = name.map(|name| recordings.silent_of(name)).unwrap_or_default();
        silent.retain(|one| one.may_be(kind));
        let unseen = not_asked(&recordings.unseen);
        let found = match (recordings.choose_all(name, kind), silent.iter().find(|one| one.name.is_some())) {
            (Err(_), Some(one)) => return Err(no_answer(one)),
            (found, _) => found?,
        };
        let is_session = |one: &Running| one.name.split_once('/').is_some_and(|(of, _)| Some(of) == name);
        let absent = silent.iter().map(no_answer).chain(unseen);
        let absent = absent.filter(|_| found.iter().any(is_session)).collect();
        Ok((found, absent))
    }
}

/// The running recordings of this user, or of the one that is named.
pub fn recordings(user: Option<&str>) -> Result<Recordings> {
    let Some(user) = user else { return Ok(Recordings::find()) };
    let uid = match user.parse() {
        Ok(uid) => uid,
        Err(_) => {
            let users = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
            uid_of(&users, user)
                .with_context(|| format!("no user {user:?} in /etc/passwd; give the user's number"))?
        }
    };
    let own = getuid();
    if !own.is_root() && own.as_raw() != uid {
        bail!("only root may ask recordings of other users");
    }
    Ok(Recordings::of(uid))
}

/// The number of a user in the text of `/etc/passwd`.
pub fn uid_of(users: &str, name: &str) -> Option<u32> {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = users.lines().map(fields);
    lines.find(|fields| fields.first().is_some_and(|first| first == name))?.get(2)?.parse().ok()
}

/// That a recorder which is meant does not answer.
pub fn no_answer(one: &Silent) -> Error {
    let Silent { pid, name, .. } = one;
    match name {
        Some(name) => anyhow!("{name} (process {pid}) does not answer: it was stopped, or its disk hangs"),
        None => anyhow!("process {pid} does not answer, and may be a recorder of the session"),
    }
}

/// That recorders may run which could not be asked; `None` if there are none.
pub fn not_asked(unseen: &[Unseen]) -> Option<Error> {
    let first = unseen.first()?;
    Some(anyhow!("not all recorders could be asked: {}", first.of(unseen.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let users = "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/bin/false\nbroken\n";
        assert_eq!(uid_of(users, "www-data"), Some(33));
        assert_eq!(
            ["root", "www", "broken", "x"].map(|name| uid_of(users, name)),
            [Some(0), None, None, None]
        );
    }
}
