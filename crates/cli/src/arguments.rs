//! Reads the command line. Errors show it without characters that could control the terminal.

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use tracewing_trace::shown;

use crate::defaults::{self, Given};
use crate::help;
use crate::output::{print_error, say};
use crate::screen::{self, Form};

/// The command line, with the defaults of the user's configuration file; ends the process if it is wrong or
/// only asks for help.
pub fn parse<P: Parser>() -> P {
    let given = defaults::add(&P::command(), std::env::args_os().collect()).unwrap_or_else(|error| {
        print_error(&error);
        std::process::exit(WRONG)
    });
    P::try_parse_from(&given.words).unwrap_or_else(|error| explain::<P>(given, &error))
}

/// The exit code for wrong arguments.
const WRONG: i32 = 2;

fn explain<P: Parser>(given: Given, error: &clap::Error) -> ! {
    if let Some(file) = &given.by {
        say!("with the options in {}:", shown(&file.to_string_lossy()));
    }
    let escaped = given.words.iter().map(|text| OsString::from(shown(&text.to_string_lossy()).into_owned()));
    // The escaped arguments usually have the same error. If not, it is printed without colours, since
    // arguments could contain some.
    let Err(same) = help::laid_out(P::command()).try_get_matches_from(escaped) else {
        let text = error.render().to_string();
        for line in text.lines() {
            let _ = writeln!(screen::stderr(Form::Text), "{}", shown(line));
        }
        std::process::exit(error.exit_code())
    };
    same.exit()
}
