//! The recorded command lives as it would without a recorder. A process of its own: recordings at the same
//! time would change each other's signals.

mod common;

use std::fs;
use std::io::Read;

use common::{Notes, options};
use tracewing_session::record;

#[test]
fn the_command_finds_signals_environment_and_files_as_it_would_without_us() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let script = format!(
        "{{ grep -E 'Sig(Blk|Ign)' /proc/self/status; ulimit -n; ls /proc/self/fd | wc -l; }} > {}",
        out.display()
    );
    let read = || {
        let mut text = String::new();
        fs::File::open(&out).unwrap().read_to_string(&mut text).unwrap();
        // The C library ignores two real-time signals of its own as it likes.
        let own = |line: &str| {
            let ignored = line.strip_prefix("SigIgn:\t").and_then(|mask| u64::from_str_radix(mask, 16).ok());
            ignored.map_or_else(|| line.to_owned(), |mask| format!("{:x}", mask & !(3 << 31)))
        };
        text.lines().map(own).collect::<Vec<_>>()
    };
    let status = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success());
    let without = read();
    record(&options(folder.path(), &script), &mut Notes::default()).unwrap();
    assert_eq!(read(), without);
}
