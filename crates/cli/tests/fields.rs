//! Fields of every type reach the trace: `tracewing list` prints the values that were emitted, and
//! babeltrace2 prints the same, also of the trace in CTF 2 and back.
//!
//! The program is the example `fields`, inside this test, started again with a variable set.

use harness::{Printed, RunExt};
use std::path::Path;
use std::process::Command;

use tracewing_oracle::assert_always_same_as_babeltrace2;

#[path = "../../tracewing/examples/fields.rs"]
mod fields;
mod harness;

const ROLE: &str = "TRACEWING_TEST_FIELDS";

#[test]
fn program() {
    if std::env::var_os(ROLE).is_some() {
        fields::main();
    }
}

/// What the example's events print after time, host and thread.
const EXPECTED: &[&str] = &[
    "fields:integers: { a = 255, b = -128, c = 65535, d = -32768, e = 4294967295, f = -2147483648, \
     g = 18446744073709551615, h = -9223372036854775808, \
     i = { low = 18446744073709551614, high = 18446744073709551615 }, \
     j = { low = 18446744073709551614, high = -1 }, k = 18446744073709551615, l = -1 }",
    "fields:bases: { decimal = 200, hexadecimal = 0xC8, octal = 0310, binary = 0b11001000, negative = 0xFFFE }",
    "fields:values: { yes = 1, no = 0, small = 1.5, large = -1e+300, letter = \"é\", \
     state = ( \"Waiting\" : container = 0 ), took = 1500000, size = 4096 }",
    "fields:values: { yes = 1, no = 0, small = 1.5, large = -1e+300, letter = \"é\", \
     state = ( \"Packed\" : container = 7 ), took = 1500000, size = 4096 }",
    "fields:values: { yes = 1, no = 0, small = 1.5, large = -1e+300, letter = \"é\", \
     state = ( \"in transit\" : container = -3 ), took = 1500000, size = 4096 }",
    "fields:sequences: { text = \"naïve \\\"quoted\\\"\\ttext\", owned = \"xxxxxxxxxxxxxxxxxxxx\", \
     _bytes_length = 1, bytes = [ [0] = 0 ], _numbers_length = 1, numbers = [ [0] = 1 ], \
     _signed_length = 1, signed = [ [0] = -1 ], _reals_length = 1, reals = [ [0] = 0.5 ], \
     array = [ [0] = -1, [1] = 0, [2] = 1 ], matrix = [ [0] = 0.25, [1] = -0 ], \
     _none_tag = ( \"none\" : container = 0 ), none = { { } }, _some_tag = ( \"none\" : container = 0 ), \
     some = { { } }, _real_tag = ( \"some\" : container = 1 ), real = { 2.5 }, after = 255 }",
    "fields:sequences: { text = \"naïve \\\"quoted\\\"\\ttext\", \
     owned = \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\", _bytes_length = 2, bytes = [ [0] = 0, [1] = 127 ], \
     _numbers_length = 2, numbers = [ [0] = 1, [1] = 2 ], _signed_length = 2, \
     signed = [ [0] = -1, [1] = -1 ], _reals_length = 2, reals = [ [0] = 0.5, [1] = 2.22507e-308 ], \
     array = [ [0] = -1, [1] = 0, [2] = 1 ], matrix = [ [0] = 0.25, [1] = -0 ], \
     _none_tag = ( \"none\" : container = 0 ), none = { { } }, _some_tag = ( \"some\" : container = 1 ), \
     some = { 18446744073709551615 }, _real_tag = ( \"some\" : container = 1 ), real = { 2.5 }, after = 255 }",
    "fields:sequences: { text = \"naïve \\\"quoted\\\"\\ttext\", \
     owned = \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\", _bytes_length = 3, \
     bytes = [ [0] = 0, [1] = 127, [2] = 255 ], _numbers_length = 3, \
     numbers = [ [0] = 1, [1] = 2, [2] = 4294967295 ], _signed_length = 3, \
     signed = [ [0] = -1, [1] = -1, [2] = -1 ], _reals_length = 3, \
     reals = [ [0] = 0.5, [1] = 2.22507e-308, [2] = 1e+21 ], \
     array = [ [0] = -1, [1] = 0, [2] = 1 ], matrix = [ [0] = 0.25, [1] = -0 ], \
     _none_tag = ( \"none\" : container = 0 ), none = { { } }, _some_tag = ( \"some\" : container = 1 ), \
     some = { 18446744073709551615 }, _real_tag = ( \"some\" : container = 1 ), real = { 2.5 }, after = 255 }",
    "fields:keywords: { event = 1, stream = 2, struct = 3, _private = 4 }",
    "fields:nothing: { }",
];

fn tracewing(args: &[&str]) -> Command {
    let mut command = harness::tracewing();
    command.args(args);
    command
}

#[test]
fn every_type_of_field_reaches_the_trace() {
    let place = tempfile::tempdir().unwrap();
    for clock in ["auto", "mono"] {
        let trace = place.path().join(clock);
        let status = tracewing(&["record", "--quiet", "--no-kernel", "--clock", clock, "-o"])
            .arg(&trace)
            .arg("--")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "program"])
            .env(ROLE, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let listed = tracewing(&["list", "-e", "fields:*"]).arg(&trace).ran();
        let text = listed.text();
        let events: Vec<String> = text
            .lines()
            .map(|line| {
                let (head, payload) = line.split_once("}, { tid = ").unwrap();
                let name = head.split("{ cpu_id").next().unwrap().split_whitespace().last().unwrap();
                format!("{name} {}", payload.split_once(" }, ").unwrap().1)
            })
            .collect();
        assert_eq!(events, EXPECTED, "clock {clock}");
        assert_always_same_as_babeltrace2(&trace);

        // Units are in the metadata.
        for (condition, count) in [
            ("took == 1.5ms && size == 4K", 3),
            ("took > 1500us || size < 4095.5B", 0),
            ("size > 1ns", 0), // `size` is in bytes
        ] {
            let listed = tracewing(&["list", "-e", "fields:values", "--where", condition]).arg(&trace).ran();
            assert_eq!(listed.text().lines().count(), count, "{condition}: {}", listed.notes());
        }

        let list = |folder: &Path| {
            let output = tracewing(&["list"]).arg(folder).succeeds();
            output.stdout
        };
        let convert = |from: &Path, target: &str, name: &str| {
            let to = place.path().join(format!("{clock}-{name}"));
            let mut command = tracewing(&["convert", "--format", target]);
            assert!(command.arg(from).arg("-o").arg(&to).status().unwrap().success());
            assert_eq!(list(&to), list(&trace), "{name}");
            to
        };
        convert(&convert(&trace, "ctf2", "other"), "ctf1", "back");
        assert_always_same_as_babeltrace2(convert(&trace, "ctf1", "same"));
    }
}
