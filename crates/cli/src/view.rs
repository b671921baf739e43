//! `tracewing view`: a recording in the browser, or two of them above each other.

use crate::index;
use crate::output::{print_warning, shown};
use crate::owner::recordings;
use crate::progress::Watch;
use crate::screen::{self, Form};
use crate::traces::Traces;
use anyhow::{Result, bail};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tracewing_index::Cache;
use tracewing_session::running::Kind;
use tracewing_trace::{Progress, Recording};
use tracewing_view::{Opening, Server, Started, Starting, State, Token};

/// Time that a recorder has to write its first metadata.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, clap::Args)]
#[command(mut_arg("given", |traces| traces.help("\
Trace folders, or folders that contain traces; two are compared [default: the recording that the current folder belongs \
to, otherwise your newest recording in the current folder]")))]
#[command(after_help = "\
Examples:
  tracewing view my-trace
  tracewing view my-trace --no-open --port 8000
  tracewing view my-trace --at 'from=1000000&to=2000000'    the second millisecond
  tracewing view my-trace --follow                          while it is being recorded
  tracewing view before after                               two recordings on one time scale
  tracewing view server                                     the running recording of the command `server`
  tracewing view                                            your newest recording in the current folder

A server on the loopback interface serves the page until Ctrl-C. The address has a token that other users of the \
machine do not know; without it, they see nothing of the recording. No browser is started if you are root or work \
over SSH: open the address that is printed.

The first view of a recording makes its index; `tracewing index` makes it ahead of time.

Two recordings are compared: the tracks of the first one are above those of the second one, on one time scale. With \
`--together`, all folders are shown as one recording, as other commands read them.

A running recording is followed: the picture grows while it is made, usually about 1.5 s late. Its name is that of \
its session or channel or of its command, or the process id of its command, its recorder or a process that it \
attached to; folders of the same name come first.")]
pub struct Args {
    #[command(flatten)]
    traces: Traces,

    /// Continue with what is recorded from now on; without TRACE, of the only running recording of yours
    #[arg(long)]
    follow: bool,

    /// Show all folders as one recording, instead of comparing two
    #[arg(long)]
    together: bool,

    /// Port of the server on 127.0.0.1 [default: any free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Print the address without starting a browser
    #[arg(long)]
    no_open: bool,

    /// The view to show first: the part of a page's address after `#`
    #[arg(long, value_name = "LINK", default_value = "", hide_default_value = true)]
    at: String,

    /// Folder for the index; only you may write it [default: ~/.cache/tracewing/view]
    #[arg(long = "index", value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let at = args.at.trim_start_matches('#');
    if !is_link(at) {
        bail!("--at has a character that links of the viewer do not have");
    }
    let pair = pair(args)?;
    let (recording, is_followed, cache, path) = opened(args, pair.is_some())?;
    let name = name_of(&path);
    let mut server = Server::new((recording, is_followed), cache, Token::of(&name)?, &name, args.port)?;
    if let Some([one, other]) = pair {
        let (recording, cache, path) = index::open(std::slice::from_ref(other), args.folder.as_deref())?;
        server = server.beside(recording, cache, &name_of(&path));
        let [one, other] = [one, other].map(|path| path.display().to_string());
        print_warning(&format!("comparing {} with {}", shown(&one), shown(&other)));
    }
    let address = server.address(at);
    // Ctrl-C ends the server from here on, and removes the browser's file.
    let watch = Watch::new()?;
    let opening = if args.no_open { None } else { Some(Opening::new(&name, &address)?) };
    say(&address, server.port())?;
    let mut starting = opening.as_ref().filter(|_| !is_remote()).and_then(Opening::show);
    let (mut failed, mut stuck) = (None, false);
    server.run(|state| {
        if let Some(started) = starting.as_mut().and_then(Starting::ended) {
            starting = None;
            watch.bar.suspend(|| say_started(started));
        }
        match state {
            State::Indexing(done, total) if total > 0 => return watch.show(Progress { done, total }),
            State::Indexing(..) => {}
            State::Ready => watch.bar.finish_and_clear(),
            State::Stuck(_) if stuck => {}
            State::Stuck(why) => {
                watch.bar.finish_and_clear();
                print_warning(&format!("{why}; the page shows what was read until then"));
                stuck = true;
            }
            State::Failed(why) => {
                failed = Some(why);
                return ControlFlow::Break(());
            }
        }
        if watch.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    drop(watch);
    match failed {
        Some(why) => bail!("{why}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The recording, or the first of two; whether it is followed, the cache of its index, and the path of that.
fn opened(args: &Args, are_two: bool) -> Result<(Recording, bool, Cache, PathBuf)> {
    match running(args)? {
        None if !args.follow => {
            let folders = if are_two { &args.traces.folders()?[..1] } else { args.traces.folders()? };
            let (recording, cache, path) = index::open(folders, args.folder.as_deref())?;
            Ok((recording, false, cache, path))
        }
        running => {
            let traces = running.map_or_else(|| args.traces.folders().map(<[PathBuf]>::to_vec), Ok)?;
            let (recording, cache, path) = begun(|| index::open(&traces, args.folder.as_deref()))?;
            Ok((recording, true, cache, path))
        }
    }
}

/// The two recordings that are compared, if two are.
fn pair(args: &Args) -> Result<Option<&[PathBuf; 2]>> {
    match args.traces.pair() {
        _ if args.together => Ok(None),
        Some(_) if args.follow => bail!("--follow shows one recording; give one folder, or add --together"),
        None if args.traces.are_given() && args.traces.sole().is_none() => {
            bail!("two recordings are compared; --together shows more folders as one recording")
        }
        pair => Ok(pair),
    }
}

/// What identifies a recording in the user's folders: the name of its index.
fn name_of(index: &Path) -> String {
    index.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The folder of the running recording that is named, if one is: a folder of that name comes first.
fn running(args: &Args) -> Result<Option<Vec<PathBuf>>> {
    let named = args.traces.sole();
    if named.is_some_and(Path::exists) || (named.is_none() && (!args.follow || args.traces.are_given())) {
        return Ok(None);
    }
    let name = named.map(|name| name.to_string_lossy());
    match recordings(None)?.choose(name.as_deref(), Kind::Any) {
        Ok(running) if running.is_flight_recorder => bail!(
            "a flight recorder writes no events before a snapshot: take one with `tracewing snapshot`, and view that"
        ),
        Ok(running) => Ok(Some(vec![running.output])),
        Err(error) if args.follow => Err(error.into()),
        // It is no folder, either: that is said when it is opened.
        Err(_) => Ok(None),
    }
}

/// Opens a recording that may just have begun: its recorder has some seconds to write the first metadata.
fn begun<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    loop {
        match open() {
            Err(_) if begin.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 30),
            opened => return opened,
        }
    }
}

/// Whether all characters are those of the viewer's links.
fn is_link(at: &str) -> bool {
    at.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"&=%.,+-_~".contains(&byte))
}

/// Whether the browser has the page.
fn say_started(started: Started) {
    match started {
        Started::Shown => print_warning("the browser shows the recording"),
        Started::Failed(why) => {
            print_warning(&format!(
                "no browser was started: xdg-open ended with {why}; open the address yourself"
            ));
        }
    }
}

/// Where the page is, and how to come there from another machine.
fn say(address: &str, port: u16) -> Result<()> {
    let mut out = screen::stdout(Form::Text);
    writeln!(out, "Open {}", shown(address))?;
    if is_remote() {
        writeln!(out, "On your own machine, first: ssh -L {port}:127.0.0.1:{port} {}", host())?;
    }
    writeln!(out, "Ctrl-C ends it.")?;
    out.flush()?;
    Ok(())
}

/// Whether the user works on another machine.
fn is_remote() -> bool {
    std::env::var_os("SSH_CONNECTION").is_some()
}

/// This machine, as the other one has called it: its address in `SSH_CONNECTION`.
fn host() -> String {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    match connection.split(' ').nth(2) {
        Some(address) if address.parse::<std::net::IpAddr>().is_ok() => address.to_owned(),
        _ => "HOST".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_only_letters_figures_and_few_signs() {
        for link in ["", "v=1&from=0&to=1000&area=1-9&rows=1.2", "filter=%21%27%28%29%2A-_.~", "token=+,"] {
            assert!(is_link(link), "{link}");
        }
        for sign in "!'()*\"<> `$;|\\\n\u{e4}".chars() {
            assert!(!is_link(&format!("filter={sign}")), "{sign:?}");
        }
    }
}
