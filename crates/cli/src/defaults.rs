//! Options that a configuration file gives, unless the command line has them:
//! `$XDG_CONFIG_HOME/tracewing/config.toml`, or `~/.config/tracewing/config.toml`.
//!
//! A table is a command, a key one of its options by its long name. What it gives is inserted into the
//! command line, so that clap checks it like all else. A default that cannot be used with the command line is
//! left out.

use crate::output::print_warning;
use anyhow::{Context, Result, bail, ensure};
use clap::error::ErrorKind as Refusal;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use tracewing_trace::shown;

/// Largest file that is read, bytes.
const MOST_BYTES: u64 = 1 << 20;
/// As `--config`: no defaults, as of an empty file.
const NO_FILES: [&str; 2] = ["", "/dev/null"];
/// Permissions by which others could write.
const OTHERS_WRITE: u32 = 0o022;

/// The words of a command line, with the options that a configuration file adds.
#[derive(Debug)]
pub struct Given {
    pub words: Vec<OsString>,
    /// The file that has added some.
    pub by: Option<PathBuf>,
}

/// Adds what the file has for the command that `words` call.
///
/// # Errors
/// The file is not a valid one for this program, or cannot be trusted.
pub fn add(command: &Command, words: Vec<OsString>) -> Result<Given> {
    let matches = match command.clone().try_get_matches_from(&words) {
        Ok(matches) => matches,
        // The file may have it.
        Err(error) if error.kind() == Refusal::MissingRequiredArgument => {
            command.clone().ignore_errors(true).try_get_matches_from(&words)?
        }
        // What clap refuses now, it will refuse again, with its message.
        Err(_) => return Ok(Given { words, by: None }),
    };
    let given = matches.get_one::<PathBuf>("config");
    let path = given
        .cloned()
        .or_else(default_path)
        .filter(|path| !NO_FILES.iter().any(|none| path == Path::new(none)));
    let Some(path) = path else { return Ok(Given { words, by: None }) };
    let failure = || format!("cannot use the defaults in {}", path.display());
    let opened = match open_regular(&path) {
        // The home of another user, as of root after `setpriv` or `su`.
        Err(error) if given.is_none() && is_closed(&error) => None,
        opened => opened.with_context(failure)?,
    };
    if let Some(why) = opened.as_ref().and_then(distrust).filter(|_| given.is_none()) {
        // Root may have the home of another user.
        print_warning(&format!("{} is ignored: {why}", path.display()));
        return Ok(Given { words, by: None });
    }
    let Some(table) = opened.map(|file| read(file).with_context(failure)).transpose()? else {
        ensure!(given.is_none(), "there is no file {}", path.display());
        return Ok(Given { words, by: None });
    };
    let added = options(command, &matches, &table).with_context(|| path.display().to_string())?;
    let (added, given_way) = suitable(command, &words, &matches, added);
    for option in given_way {
        let name = option.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        print_warning(&format!(
            "{} of {} is left out: it cannot be used with the other options",
            shown(&name),
            shown(&path.display().to_string())
        ));
    }
    if added.is_empty() {
        return Ok(Given { words, by: None });
    }
    Ok(Given { words: inserted(&words, &matches, &added), by: Some(path) })
}

/// An option as words of a command line: several where it is given several times.
type Words = Vec<OsString>;

/// The options that can be used together with the command line, and those that cannot.
fn suitable(
    command: &Command,
    words: &[OsString],
    matches: &ArgMatches,
    added: Vec<Words>,
) -> (Vec<Words>, Vec<Words>) {
    // Wrong values are not left out: clap reports them.
    let suits = |added: &[Words]| {
        let parsed = command.clone().try_get_matches_from(inserted(words, matches, added));
        parsed.err().is_none_or(|error| {
            !matches!(error.kind(), Refusal::ArgumentConflict | Refusal::MissingRequiredArgument)
        })
    };
    // With an option that is required and that the file lacks, no choice of the others helps.
    if suits(&added) || !suits(&[]) {
        return (added, Vec::new());
    }
    let (mut suitable, mut rest) = (Vec::new(), added);
    // One may need another that comes later.
    while let Some(at) =
        rest.iter().position(|option| suits(&[&suitable[..], std::slice::from_ref(option)].concat()))
    {
        suitable.push(rest.remove(at));
    }
    (suitable, rest)
}

fn default_path() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("tracewing/config.toml"))
}

/// The file; `None` if there is none.
fn open_regular(path: &Path) -> Result<Option<File>> {
    // Opening a pipe that another user has planted must not block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match open(path, flags, Mode::empty()).map(File::from).map_err(std::io::Error::from) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => bail!("it is not a regular file"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether this user may not open a file.
fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Why a file's content could be another user's.
pub fn distrust(file: &File) -> Option<String> {
    let about = file.metadata().ok()?;
    if ![0, geteuid().as_raw()].contains(&about.uid()) {
        return Some(format!("it belongs to another user (user {})", about.uid()));
    }
    (about.mode() & OTHERS_WRITE != 0).then(|| "other users can write it (chmod go-w)".to_owned())
}

fn read(file: File) -> Result<Table> {
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= MOST_BYTES, "it is larger than 1 MiB");
    Ok(text.parse()?)
}

/// The options for the command that was called, as words; with those for all commands.
fn options(command: &Command, matches: &ArgMatches, table: &Table) -> Result<Vec<Words>> {
    let mut words = Vec::new();
    for (key, value) in table {
        match (command.find_subcommand(key), value) {
            (None, Value::Table(_)) => bail!("there is no command `{key}`"),
            (None, value) => words.push(option(command, matches, key, value)?),
            (Some(below), Value::Table(table)) => {
                let called = matches.subcommand().filter(|(name, _)| name == key);
                let none = ArgMatches::default();
                let own = options(below, called.map_or(&none, |(_, matches)| matches), table)
                    .with_context(|| format!("[{key}]"))?;
                words.extend(called.map_or(Vec::new(), |_| own));
            }
            (Some(_), _) => bail!("`{key}` is a command: write [{key}], and its options below"),
        }
    }
    words.retain(|option| !option.is_empty());
    Ok(words)
}

/// One option; no words if the command line has it, or does without it.
fn option(command: &Command, matches: &ArgMatches, key: &str, value: &Value) -> Result<Words> {
    let own = ["config", "no-default"];
    let Some(arg) = command.get_arguments().find(|arg| arg.get_long() == Some(key) && !own.contains(&key))
    else {
        let is_short = |arg: &&Arg| arg.get_short().is_some_and(|short| key == short.to_string());
        match command.get_arguments().find(is_short).and_then(Arg::get_long) {
            Some(long) => bail!("`{key}` is the short form of an option: write `{long}`"),
            None => bail!("there is no option --{key}"),
        }
    };
    let values = match value {
        Value::Array(values) => values.iter().map(text).collect::<Option<Vec<_>>>(),
        value => text(value).map(|text| vec![text]),
    };
    let Some(values) = values else {
        bail!("--{key} takes a text, a number, true or false, or a list of them")
    };
    ensure!(!is_flag(arg) || matches!(value, Value::Boolean(_)), "--{key} is true or false");
    let is_given = matches.try_contains_id(arg.get_id().as_str()).is_ok()
        && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let without = matches.try_get_many::<String>("no_default").ok().flatten();
    let is_without = without.into_iter().flatten().any(|name| name.trim_start_matches('-') == key);
    Ok(if is_given || is_without { Vec::new() } else { words(arg, key, value, values) })
}

fn is_flag(arg: &Arg) -> bool {
    !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn words(arg: &Arg, key: &str, value: &Value, values: Vec<String>) -> Words {
    let may_be_bare = is_flag(arg) || arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    match value {
        Value::Boolean(false) => Vec::new(),
        Value::Boolean(true) if may_be_bare => vec![format!("--{key}").into()],
        _ => values.iter().map(|text| format!("--{key}={text}").into()).collect(),
    }
}

fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(is_true) => is_true.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => return None,
    })
}

/// The command line with words after the names of its commands, where nothing else can take them as values.
fn inserted(words: &[OsString], matches: &ArgMatches, added: &[Words]) -> Vec<OsString> {
    let mut matches = matches;
    let mut at = 1;
    while let Some((name, below)) = matches.subcommand() {
        at += words[at..].iter().position(|word| word == name).map_or(0, |place| place + 1);
        matches = below;
    }
    [&words[..at], &added.concat(), &words[at..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// The command line that `line` becomes with a file of this content, or why it becomes none.
    fn with(file: &str, line: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, file).unwrap();
        let words = format!("tracewing --config={} {line}", path.display());
        let given = add(&Cli::command(), words.split(' ').map(OsString::from).collect());
        let words = given.map_err(|error| format!("{error:#}"))?.words;
        assert!(Cli::command().try_get_matches_from(&words).is_ok(), "{words:?}");
        Ok(words[2..].join(&OsString::from(" ")).into_string().unwrap())
    }

    #[test]
    fn options_are_added_unless_they_are_given() {
        let file = "color = 'never'\nno-pager = true\n[record]\nsub-buffers = 8\nprofile = true\nquiet = false\n\
                    exclude = ['a:*', 'b:*']\n[sched.latency]\nwide = true\n";
        for (line, becomes) in [
            (
                "record --sub-buffers 2 -- sched latency",
                "record --color=never --no-pager --exclude=a:* --exclude=b:* --profile --sub-buffers 2 -- sched latency",
            ),
            ("info --color always t", "info --no-pager --color always t"),
            ("sched latency t", "sched latency --color=never --no-pager --wide t"),
        ] {
            let mut expected: Vec<_> = becomes.split(' ').collect();
            let found = with(file, line).unwrap();
            let mut found: Vec<_> = found.split(' ').collect();
            assert_eq!((found[0], found.last()), (expected[0], expected.last()), "{line}");
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn defaults_give_way() {
        let file = "color = 'never'\n[record]\nprofile = true\nlock-chains = 'all'\nlocks = true\n\
                    [latency]\nbegin = 'a:b'\nend = 'a:c'\n";
        for (line, becomes) in [
            (
                "record --flight-recorder -- c",
                "record --color=never --locks --lock-chains=all --flight-recorder -- c",
            ),
            (
                "record --no-default profile,locks -- c",
                "record --color=never --no-default profile,locks -- c",
            ),
            ("latency t", "latency --begin=a:b --end=a:c --color=never t"),
        ] {
            let mut found: Vec<_> = with(file, line).unwrap().split(' ').map(str::to_owned).collect();
            let mut expected: Vec<_> = becomes.split(' ').collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for (file, expected) in [
            ("[recrod]\nquiet = true", "there is no command `recrod`"),
            ("[record]\nqiet = true", "[record]: there is no option --qiet"),
            ("record = 1", "`record` is a command"),
            ("[list]\nn = 3", "write `count`"),
            ("config = 'x'", "there is no option --config"),
            ("[list]\nfrom = 1979-05-27", "--from takes a text"),
            ("[record]\nquiet = 'yes'", "--quiet is true or false"),
            ("[record", "TOML"),
        ] {
            let error = with(file, "info t").unwrap_err();
            assert!(error.contains(expected) && error.contains("config.toml"), "{file}: {error}");
        }
    }

    #[test]
    fn a_file_that_others_can_change_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        assert!(open_regular(&path).unwrap().is_none());
        fs::write(&path, "color = 'never'").unwrap();
        let why = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            distrust(&open_regular(&path).unwrap().unwrap()).unwrap_or_default()
        };
        assert_eq!(why(0o644), "");
        assert!(why(0o664).contains("other users can write it"));
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            assert!(why(0o644).contains("another user"));
        }
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        assert!(open_regular(&path).unwrap_err().to_string().contains("not a regular file"));
    }
}
