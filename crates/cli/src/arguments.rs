//! Reads the command line. Errors show it without characters that could control the terminal.

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use tracewing_trace::shown;

use crate::help;
use crate::screen::{self, Form};

/// The command line; ends the process if it is wrong or only asks for help.
pub fn parse<P: Parser>() -> P {
    P::try_parse().unwrap_or_else(|error| explain::<P>(std::env::args_os().collect(), &error))
}

fn explain<P: Parser>(given: Vec<OsString>, error: &clap::Error) -> ! {
    let escaped = given.iter().map(|text| OsString::from(shown(&text.to_string_lossy()).into_owned()));
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
