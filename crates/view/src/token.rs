//! What the user's browser knows and other users do not: 128 random bits per recording, in a file that only
//! this user can read. It stays the same when the server is started again, so that an open page continues.

use crate::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracewing_files::{Dir, Tree};

/// Length in hexadecimal figures.
const FIGURES: usize = 32;

/// The token of a recording.
#[derive(Clone)]
pub struct Token {
    figures: String,
}

/// The user's folder for tokens: `$XDG_DATA_HOME/tracewing/view`, or `~/.local/share/tracewing/view`.
pub(crate) fn folder() -> Result<PathBuf, Error> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = || absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Ok(own().ok_or(Error::NoFolder)?.join("tracewing/view"))
}

impl Token {
    /// The token that the user's folder has for a recording, which `name` identifies; a new one if there is
    /// none.
    ///
    /// # Errors
    /// The folder cannot be used, or another user could write it.
    pub fn of(name: &str) -> Result<Self, Error> {
        let folder = folder()?;
        Self::within(&folder, name).map_err(|cause| Error::Io { path: folder, cause })
    }

    fn within(folder: &Path, name: &str) -> std::io::Result<Self> {
        let file = format!("{name}.token");
        let own = Dir::private(folder)?;
        if let Some(token) = read(folder, &file) {
            return Ok(token);
        }
        own.remove_abandoned()?;
        let token = Self::random()?;
        let unfinished = own.create_private_file(&file)?;
        unfinished.file().write_all(token.figures.as_bytes())?;
        own.supersede(unfinished, &file)?;
        Ok(token)
    }

    fn random() -> std::io::Result<Self> {
        let mut bytes = [0_u8; FIGURES / 2];
        let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        if filled < bytes.len() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let mut figures = String::new();
        for byte in bytes {
            let _ = write!(figures, "{byte:02x}");
        }
        Ok(Token { figures })
    }

    /// Its hexadecimal figures.
    pub fn figures(&self) -> &str {
        &self.figures
    }

    /// Whether a text is it; the time that this takes does not say how much of it was right.
    pub fn is(&self, other: &str) -> bool {
        let differ = |sum: u8, (one, other): (u8, u8)| sum | (one ^ other);
        other.len() == FIGURES && self.figures.bytes().zip(other.bytes()).fold(0, differ) == 0
    }
}

/// The token in a file of this user's that others cannot read.
fn read(folder: &Path, file: &str) -> Option<Token> {
    let file = Tree::open(folder).ok()?.file(Path::new(file)).ok()?;
    let about = file.metadata().ok()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o077 == 0;
    let mut figures = String::new();
    file.take(FIGURES as u64 + 1).read_to_string(&mut figures).ok()?;
    let is_token = figures.len() == FIGURES && figures.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_own && is_token).then_some(Token { figures })
}

/// Its figures are no matter for logs.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn it_is_kept_and_made_anew_where_others_could_have_seen_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data/view");
        let token = Token::within(&folder, "a").unwrap();
        let again = || Token::within(&folder, "a").unwrap();
        assert!(token.is(again().figures()));
        assert!(!token.is(Token::within(&folder, "b").unwrap().figures()));
        assert!(!token.is("") && !token.is(&token.figures()[1..]));
        let file = folder.join("a.token");
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);

        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let newer = again();
        assert!(!token.is(newer.figures()));
        fs::write(&file, "short").unwrap();
        assert!(!newer.is(again().figures()));

        // A link is replaced, not followed.
        let victim = place.path().join("victim");
        fs::write(&victim, "0123456789abcdef0123456789abcdef").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&victim, &file).unwrap();
        assert!(!again().is("0123456789abcdef0123456789abcdef"));
        assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Token::within(&folder, "a").is_err(), "others can write the folder");
    }
}
