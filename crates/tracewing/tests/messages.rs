//! Mistakes in declarations are refused, at the right line and with a message that helps.
//!
//! Each file in `messages/` marks the lines with a mistake: `//~ part of the message`.

mod common;

use common::dependency;
use tracewing_testing::Workspace;

macro_rules! files {
    ($($name:literal),+) => { [$(($name, include_str!(concat!("messages/", $name, ".rs")))),+] };
}

#[test]
fn messages_say_what_to_do() {
    let files = files!(
        "class",
        "field",
        "field_type",
        "hint_type",
        "print",
        "enumeration",
        "enumeration_value",
        "emit",
        "event_type",
        "event_name"
    );
    let workspace = Workspace::new(env!("CARGO_TARGET_TMPDIR"), "messages", &files.map(|(name, _)| name));
    for (name, source) in files {
        workspace.package(name, &format!("[[bin]]\nname = {name:?}"), source, &dependency("\"sites\""));
    }
    for (name, source) in files {
        let output =
            workspace.cargo("check").args(["--message-format=short", "--package", name]).output().unwrap();
        assert!(!output.status.success(), "{name} compiles");
        let messages = String::from_utf8_lossy(&output.stderr);
        let at_line = |line: &str| {
            let mut parts = line.strip_prefix(&format!("{name}/main.rs:"))?.splitn(3, ':');
            let (number, _column, text) = (parts.next()?, parts.next()?, parts.next()?);
            Some((number.parse::<usize>().ok()?, text.to_owned()))
        };
        let found: Vec<_> = messages.lines().filter_map(at_line).collect();
        for (index, line) in source.lines().enumerate() {
            let Some((_, expected)) = line.split_once("//~ ") else { continue };
            let meets = |(number, text): &(usize, String)| *number == index + 1 && text.contains(expected);
            assert!(found.iter().any(meets), "{name}.rs:{}: {expected}\n{messages}", index + 1);
        }
    }
}
