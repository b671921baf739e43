//! `tracewing completions`: scripts for shells. They know more than the parser of the command line: names of
//! columns, which options take files and folders, and in bash the names of sessions.

use crate::table::reference::View;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use std::io::Write;
use std::process::ExitCode;

/// Completes the name of a session, where a command takes one; all else is left to what clap generates. It
/// looks at the files of sessions itself: a key must cost no more than that. Names of files are not to be
/// trusted: `compgen -W` would run what they contain.
const SESSIONS: &str = r#"
_tracewing_or_session() {
    _tracewing "$@"
    local cur="${COMP_WORDS[COMP_CWORD]}" at=0 folder="$XDG_STATE_HOME" file names=()
    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
        "session start" | "session stop" | "session status" | "session destroy" | "session save") at=3 ;;
        "channel add" | "channel remove" | "channel list") at=3 ;;
        "trigger add" | "trigger remove" | "trigger list") at=3 ;;
        "top "* | "snapshot "* | "rotate "* | "clear "* | "rules "*) at=2 ;;
        "enable "* | "disable "* | "pause "* | "resume "*) at=2 ;;
    esac
    if [[ $COMP_CWORD -ne $at || $cur == -* ]]; then
        return 0
    fi
    if [[ $folder != /* ]]; then
        [[ $EUID -eq 0 ]] && folder=/var/lib || folder="$HOME/.local/state"
    fi
    folder="$folder/tracewing/sessions"
    [[ -O $folder ]] || return 0
    for file in "$folder"/*.toml; do
        file="${file##*/}"
        file="${file%.toml}"
        [[ $file == *[!A-Za-z0-9._-]* ]] || names+=("$file")
    done
    if [[ ${#names[@]} -gt 0 ]]; then
        COMPREPLY=()
        for file in "${names[@]}"; do
            [[ $file != "$cur"* ]] || COMPREPLY+=("$file")
        done
    fi
}
"#;

/// Prints the script for a shell. `views`: the tables of all commands.
pub fn print(program: Command, shell: Shell, views: &[View]) -> Result<ExitCode> {
    let mut program = with_values(program, "", views);
    // Into memory first: the generator panics where a write fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "tracewing", &mut script);
    let mut script = String::from_utf8(script)?;
    if shell == Shell::Bash {
        script = script.replace("complete -F _tracewing ", "complete -F _tracewing_or_session ") + SESSIONS;
    }
    std::io::stdout().write_all(script.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The command, called `path` below the program, and those below it, with what their options take.
fn with_values(command: Command, path: &str, views: &[View]) -> Command {
    let columns = columns(path, views);
    command.mut_args(|arg| with_value(arg, &columns)).mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_values(below, path.trim_start(), views)
    })
}

/// The names of the columns of all tables of a command, each once.
fn columns(path: &str, views: &[View]) -> Vec<&'static str> {
    let is_of_it = |view: &&View| {
        let rest = view.command.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ',']) || rest.starts_with(" --"))
    };
    let mut names = Vec::new();
    for head in views.iter().filter(is_of_it).flat_map(|view| &view.heads) {
        if !names.contains(&head.name) {
            names.push(head.name);
        }
    }
    names
}

fn with_value(arg: Arg, columns: &[&'static str]) -> Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let name = name.unwrap_or_default();
    match name.as_str() {
        "COLUMN" if !columns.is_empty() => {
            arg.value_parser(PossibleValuesParser::new(columns.iter().copied()))
        }
        "DIR" => arg.value_hint(ValueHint::DirPath),
        "FILE" => arg.value_hint(ValueHint::FilePath),
        "CMD" if arg.is_positional() => arg.value_hint(ValueHint::CommandWithArguments),
        "CMD" => arg.value_hint(ValueHint::ExecutablePath),
        // Numbers, times, patterns: no names of files.
        _ if !arg.is_positional() && is_no_file(&arg, &name) => arg.value_hint(ValueHint::Other),
        _ => arg,
    }
}

/// Whether nothing is known of what an option takes, except that it is no file.
fn is_no_file(arg: &Arg, name: &str) -> bool {
    arg.get_value_hint() == ValueHint::Unknown && !name.contains("PROGRAM")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    #[test]
    fn options_take_columns_folders_and_numbers() {
        let program = with_values(Cli::command(), "", &crate::completed_views());
        let arg = |command: &[&str], name: &str| {
            let command = command.iter().fold(&program, |command, name| {
                command.find_subcommand(name).expect("there is such a command")
            });
            command.get_arguments().find(|arg| arg.get_id() == name).expect("there is such an option").clone()
        };
        for (command, column) in [
            (&["threads"][..], "blocked_ns"),
            (&["locks"], "owner"),
            (&["sched", "latency"], "process"),
            (&["stats"], "events"),
        ] {
            let values = arg(command, "sort").get_possible_values();
            assert!(values.iter().any(|value| value.get_name() == column), "{command:?}: {values:?}");
        }
        for (command, name, hint) in [
            ("record", "output", ValueHint::DirPath),
            ("record", "command", ValueHint::CommandWithArguments),
            ("record", "probes", ValueHint::Unknown),
            ("record", "sub_buffer_size", ValueHint::Other),
            ("list", "given", ValueHint::AnyPath),
        ] {
            assert_eq!(arg(&[command], name).get_value_hint(), hint, "{command} {name}");
        }
        program.debug_assert();
    }

    #[test]
    fn a_command_has_the_columns_of_its_own_tables() {
        let views = crate::completed_views();
        assert!(columns("threads", &views).contains(&"blocked_ns"));
        assert!(columns("sched", &views).is_empty() && columns("", &views).is_empty());
        for column in ["blocked_ns", "polls", "owner", "calls"] {
            assert!(columns("top", &views).contains(&column), "{column}");
        }
        assert_ne!(columns("sched latency", &views), columns("latency", &views));
    }
}
