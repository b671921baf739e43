//! A session: its channels with the options of their recorders, as TOML.
//!
//! ```toml
//! name = "web"
//! folder = "/srv/ann"              # relative paths in options begin here
//! output = "/srv/traces/web"
//! total-size = "1G"               # of all channels together
//! start = "on-demand"             # by `tracewing service`: when it is asked to
//!
//! [channel.main]                   # options of `tracewing record`, by their long names
//! event = ["shop:*"]
//! sub-buffers = "8"
//! ```

use crate::record::{self, check_name, parse_total_size};
use anyhow::{Context, Result, bail, ensure};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The channel that a session has from the beginning.
pub const MAIN: &str = "main";
/// Largest file that is read, bytes.
const MOST_BYTES: u64 = 1 << 20;
/// Options of `record` that a session decides.
const ITS_OWN: [&str; 8] =
    ["session", "background", "format", "quiet", "output", "on", "session-size", "session-trigger"];
/// Options that only triggers have, and one of which each has.
const OF_TRIGGERS: [&str; 2] = ["do", "exec"];
const MORE_OF_TRIGGERS: [&str; 3] = ["at-most-every", "when-full", "when-size"];
/// Options of triggers that have no recorder of their own: each channel's recorder has them.
const OF_CHANNELS: [&str; 2] = ["when-full", "when-size"];
/// Those that say what is recorded. Without any, all programs are, or the kernel if only its events are
/// named.
const SUBJECTS: [&str; 6] = ["pid", "name", "cgroup", "with", "system-wide", "all"];

const KERNEL_EVENT: &str = "kernel-event";
/// Those that say what is recorded of programs.
const OF_PROGRAMS: [&str; 8] =
    ["event", "exclude", "provider", "level", "major", "process", "where", "context"];
/// Those that name events of the kernel.
const OF_KERNEL: [&str; 3] = [KERNEL_EVENT, "probe", "usdt"];
/// Those for which a channel has to say that it records the whole machine.
const OF_MACHINE: [&str; 3] = ["probe", "usdt", "profile"];

/// A session as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub name: String,
    /// The current folder of its recorders.
    #[serde(default)]
    pub folder: PathBuf,
    /// Has a folder for each start.
    #[serde(default)]
    pub output: PathBuf,
    /// Most bytes of all starts and channels, as `record` takes them.
    #[serde(rename = "total-size", default, skip_serializing_if = "Option::is_none")]
    pub total_size: Option<String>,
    /// When a service starts it.
    #[serde(default, skip_serializing_if = "Start::is_always")]
    pub start: Start,
    #[serde(rename = "channel")]
    pub channels: BTreeMap<String, Table>,
    /// What is done when which events come: options of the recorders that wait for them.
    #[serde(rename = "trigger", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub triggers: BTreeMap<String, Table>,
}

/// When a service that has a session's file starts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Whenever it is not started.
    #[default]
    Always,
    /// When it is asked to.
    OnDemand,
}

impl Start {
    fn is_always(&self) -> bool {
        *self == Self::Always
    }
}

/// The options of a channel, and the folder that they name.
pub struct Channel {
    pub options: Table,
    pub output: Option<PathBuf>,
}

impl Definition {
    /// Reads a file that a user has written: without `folder`, it means the current one, without `output` a
    /// folder of the session's name in that.
    pub fn load(path: &Path) -> Result<Self> {
        let current = std::env::current_dir().context("the current folder is gone")?;
        Self::within(path, Some(&current))
    }

    /// Reads a file that says which folders are meant, and checks it.
    pub fn read(path: &Path) -> Result<Self> {
        Self::within(path, None)
    }

    fn within(path: &Path, current: Option<&Path>) -> Result<Self> {
        let failed = || format!("cannot use the session in {}", path.display());
        let mut text = String::new();
        let file = std::fs::File::open(path).with_context(failed)?;
        file.take(MOST_BYTES + 1).read_to_string(&mut text).with_context(failed)?;
        ensure!(text.len() as u64 <= MOST_BYTES, "{}: it is larger than 1 MiB", failed());
        Self::from_toml(&text, current).with_context(failed)
    }

    fn from_toml(text: &str, current: Option<&Path>) -> Result<Self> {
        let mut this: Self = toml::from_str(text)?;
        if let Some(current) = current {
            let output =
                if this.output.as_os_str().is_empty() { Path::new(&this.name) } else { &this.output };
            this.folder = current.join(&this.folder);
            this.output = this.folder.join(output);
        }
        for name in [&this.name].into_iter().chain(this.channels.keys()).chain(this.triggers.keys()) {
            check_name(name).map_err(|why| anyhow::anyhow!("{name:?}: {why}"))?;
        }
        ensure!(!this.channels.is_empty(), "it has no channel");
        if let Some(size) = &this.total_size {
            parse_total_size(size).map_err(|why| anyhow::anyhow!("total-size {size:?}: {why}"))?;
        }
        ensure!(
            this.folder.is_absolute() && this.output.is_absolute(),
            "folder and output are missing, or not absolute"
        );
        let channels = this.channels.iter().map(|channel| ("channel", channel));
        for (kind, (name, table)) in channels.chain(this.triggers.iter().map(|trigger| ("trigger", trigger)))
        {
            let of_it = || format!("[{kind}.{name}]");
            let checked = checked(words(table).with_context(of_it)?).with_context(of_it)?;
            ensure!(checked.output.is_none(), "{}: output is the session's", of_it());
            check(table, kind == "trigger").with_context(of_it)?;
        }
        if let Some(name) = this.triggers.keys().find(|name| this.channels.contains_key(*name)) {
            bail!("{name} is a channel and a trigger");
        }
        Ok(this)
    }

    /// The triggers that have recorders of their own: those that wait for events.
    pub fn waiting(&self) -> impl Iterator<Item = (&String, &Table)> {
        self.triggers.iter().filter(|(_, options)| !is_of_channels(options))
    }

    /// What each channel's recorder does if its buffers are full, or much has been written.
    pub fn of_channels(&self) -> impl Iterator<Item = (&String, &Table)> {
        self.triggers.iter().filter(|(_, options)| is_of_channels(options))
    }

    /// Whether it has a channel or trigger of this name.
    pub fn has(&self, name: &str) -> bool {
        self.channels.contains_key(name) || self.triggers.contains_key(name)
    }

    /// Adds a trigger, or a channel.
    pub fn insert(&mut self, is_trigger: bool, name: String, options: Table) -> Result<()> {
        ensure!(!self.has(&name), "the session has a channel or trigger {name} already");
        let all = if is_trigger { &mut self.triggers } else { &mut self.channels };
        all.insert(name, options);
        Ok(())
    }

    pub fn to_toml(&self) -> Result<String> {
        Ok(toml::to_string(self)?)
    }
}

/// A session's or a channel's name on the command line.
pub fn parse_word(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

/// What words of a command line mean as options of `record`. Where they ask for help, or are none, ends the
/// process as clap does.
pub fn options(words: Vec<OsString>) -> Result<Channel> {
    checked(words).or_else(|error| match error.downcast::<clap::Error>() {
        Ok(error) => error.exit(),
        Err(error) => Err(error),
    })
}

fn checked(words: Vec<OsString>) -> Result<Channel> {
    let record = record::Args::augment_args(Command::new("record").bin_name("tracewing record"));
    let matches = record.clone().try_get_matches_from(std::iter::once("record".into()).chain(words))?;
    ensure!(matches.get_one("on_full") != Some(&record::OnFull::Block), "{}", record::NO_BLOCK);
    let mut channel = Channel { options: Table::new(), output: None };
    for arg in record.get_arguments() {
        if matches.value_source(arg.get_id().as_str()) != Some(ValueSource::CommandLine) {
            continue;
        }
        let Some(long) = arg.get_long() else {
            bail!(
                "a session has no command: it records programs that run, or start later; to record one command, use `tracewing record`"
            )
        };
        match long {
            "output" => channel.output = matches.get_one::<PathBuf>(long).cloned(),
            own if ITS_OWN.contains(&own) => bail!("--{own} is not an option of channels"),
            long => drop(channel.options.insert(long.to_owned(), value(arg, &matches)?)),
        }
    }
    Ok(channel)
}

fn is_of_channels(options: &Table) -> bool {
    OF_CHANNELS.iter().any(|option| options.contains_key(*option))
}

/// Whether options are those of a trigger, or of a channel, and can be used together.
pub fn check(options: &Table, is_trigger: bool) -> Result<()> {
    if is_trigger && options.contains_key("context") {
        bail!("--context is an option of channels");
    }
    let has_any = |names: &[&str]| names.iter().any(|name| options.contains_key(*name));
    if options.contains_key(KERNEL_EVENT) && options.contains_key("where") && !has_any(&["event", "provider"])
    {
        bail!(
            "--where is a condition of events of programs, and none are named: the kernel's events (-k) have no conditions"
        );
    }
    if is_trigger && !is_of_channels(options) && !has_any(&OF_PROGRAMS) && !has_any(&OF_KERNEL) {
        bail!(
            "a trigger waits for events (-e, -k, --probe) or for full buffers and sizes (--when-full, --when-size)"
        );
    }
    let of_machine = OF_MACHINE.iter().find(|option| options.contains_key(**option));
    if let Some(option) = of_machine.filter(|_| implied(options) == ["--all"]) {
        bail!("with --{option}, a channel records the whole machine: add --system-wide");
    }
    let of_both = |option: &&String| !OF_TRIGGERS.iter().chain(&MORE_OF_TRIGGERS).any(|own| own == option);
    if is_trigger
        && is_of_channels(options)
        && let Some(option) = options.keys().find(of_both)
    {
        bail!("--{option} cannot be used with --when-full and --when-size: they wait for no events");
    }
    let does = OF_TRIGGERS.iter().any(|option| options.contains_key(*option));
    match (is_trigger, does) {
        (true, false) => bail!("a trigger does something: --do snapshot, for example, or --exec CMD"),
        (false, true) => bail!("--do and --exec are options of triggers: `tracewing trigger add`"),
        (false, false) => match MORE_OF_TRIGGERS.iter().find(|option| options.contains_key(**option)) {
            Some(option) => bail!("--{option} is an option of triggers"),
            None => Ok(()),
        },
        (true, true) => Ok(()),
    }
}

/// The value that an option was given, as text.
fn value(arg: &Arg, matches: &ArgMatches) -> Result<Value> {
    if !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) {
        return Ok(Value::Boolean(true));
    }
    let raw = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    let texts = raw.map(|value| {
        let text = value.to_str().with_context(|| format!("{} is not UTF-8", value.display()))?;
        Ok(Value::String(text.to_owned()))
    });
    let mut texts = texts.collect::<Result<Vec<_>>>()?;
    Ok(if texts.len() == 1 { texts.remove(0) } else { Value::Array(texts) })
}

/// The words of a command line that give a channel's options.
pub fn words(options: &Table) -> Result<Vec<OsString>> {
    let mut words = given(options)?;
    words.extend(implied(options).into_iter().map(OsString::from));
    Ok(words)
}

/// The subject of options that name none.
fn implied(options: &Table) -> Vec<&'static str> {
    let has_any = |names: &[&str]| names.iter().any(|name| options.contains_key(*name));
    match (has_any(&SUBJECTS), options.contains_key(KERNEL_EVENT)) {
        (true, _) => Vec::new(),
        (false, false) => vec!["--all"],
        (false, true) if has_any(&OF_PROGRAMS) => vec!["--all", "--system-wide"],
        (false, true) => vec!["--system-wide"],
    }
}

/// The words that give these options.
pub fn given(options: &Table) -> Result<Vec<OsString>> {
    let mut words = Vec::new();
    for (key, value) in options {
        match value {
            Value::Boolean(true) => words.push(format!("--{key}").into()),
            Value::Boolean(false) => {}
            Value::Array(values) => {
                for value in values {
                    words.push(word(key, value)?);
                }
            }
            value => words.push(word(key, value)?),
        }
    }
    Ok(words)
}

fn word(key: &str, value: &Value) -> Result<OsString> {
    Ok(match value {
        Value::String(text) => format!("--{key}={text}").into(),
        Value::Integer(number) => format!("--{key}={number}").into(),
        Value::Float(number) => format!("--{key}={number}").into(),
        _ => bail!("{key} takes a text, a number, true or false, or a list of them"),
    })
}

/// The options as people write them.
pub fn command_line(options: &Table) -> String {
    let words = words(options).unwrap_or_default();
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Table {
        options(line.split(' ').map(OsString::from).collect()).unwrap().options
    }

    #[test]
    fn options_come_back_from_a_file() {
        for line in [
            "-e a:* -e b:* --exclude a:x --sub-buffers 8",
            "--system-wide -k sched_* --profile --on-full overwrite",
            "--all --flight-recorder --snapshot-on exit --where x>1",
        ] {
            let table = of(line);
            let definition = Definition {
                name: "web".to_owned(),
                folder: "/f".into(),
                output: "/o".into(),
                total_size: Some("1G".to_owned()),
                start: Start::OnDemand,
                channels: [(MAIN.to_owned(), table.clone())].into(),
                triggers: BTreeMap::new(),
            };
            let text = definition.to_toml().unwrap();
            assert_eq!(Definition::from_toml(&text, None).unwrap(), definition, "{line}");
            assert_eq!(options(words(&table).unwrap()).unwrap().options.len(), {
                let has_subject = SUBJECTS.iter().any(|subject| table.contains_key(*subject));
                table.len() + usize::from(!has_subject)
            });
        }
        assert_eq!(command_line(&of("-e a")), "--event=a --all");
        assert_eq!(command_line(&of("--pid 1 -e a")), "--event=a --pid=1");
        assert_eq!(
            command_line(&of("-k x --sub-buffers 2")),
            "--kernel-event=x --sub-buffers=2 --system-wide"
        );
        assert_eq!(command_line(&of("-k x --where y>1")), "--kernel-event=x --where=y>1 --all --system-wide");
    }

    #[test]
    fn files_with_mistakes_are_refused() {
        let text = |rest: &str| format!("name = 'web'\nfolder = '/f'\noutput = '/o'\n{rest}");
        for (rest, expected) in [
            ("", "channel"),
            ("[channel]", "no channel"),
            ("more = 1\n[channel.main]", "unknown field"),
            ("total-size = '1'\n[channel.main]", "total-size"),
            ("start = 'sometimes'\n[channel.main]", "on-demand"),
            ("[channel.main]\nevent = 1979-05-27", "takes a text"),
            ("[channel.'../x']", "expected a name"),
            ("[channel.main]\nprofile = '99'", "add --system-wide"),
            ("[channel.main]\non-full = 'block'", "never wait"),
        ] {
            let error = format!("{:#}", Definition::from_toml(&text(rest), None).unwrap_err());
            assert!(error.contains(expected), "{rest}: {error}");
        }
        assert!(Definition::from_toml(&text("[channel.main]").replace("/f", "f"), None).is_err());
    }

    #[test]
    fn folders_that_a_file_does_not_name_are_those_of_the_one_that_loads_it() {
        for (given, folder, output) in [
            ("", "/here/", "/here/web"),
            ("output = 'traces'", "/here/", "/here/traces"),
            ("folder = 'there'", "/here/there", "/here/there/web"),
            ("folder = '/there'\noutput = '/o'", "/there", "/o"),
        ] {
            let text = format!("name = 'web'\n{given}\n[channel.main]");
            let found = Definition::from_toml(&text, Some(Path::new("/here"))).unwrap();
            assert_eq!(
                (found.folder.to_str(), found.output.to_str()),
                (Some(folder), Some(output)),
                "{given}"
            );
            assert_eq!(Definition::from_toml(&text, None).is_ok(), output == "/o");
        }
    }
}
