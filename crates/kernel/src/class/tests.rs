//! Formats in, metadata and copied records out.

use super::*;
use proptest::prelude::*;

const COMMON: &str = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

fn class(system: &str, name: &str, fields: &[(&str, usize, usize, u8)], print: &str) -> Class {
    let mut text = format!("name: {name}\nID: 9\n{COMMON}");
    for (declaration, offset, size, signed) in fields {
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    text += &format!("\nprint fmt: {print}\n");
    compile(3, system, &Format::parse(&text, 8).unwrap(), 8).unwrap()
}

/// What a record becomes, after its flags.
fn run(class: &Class, record: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    let done = class.program.run(record, &mut out);
    assert!(out.starts_with(b"before"));
    assert!(done || out == b"before");
    assert!(!done || out[6] == record[2], "flags");
    done.then(|| out.split_off(7))
}

fn record(parts: &[&[u8]]) -> Vec<u8> {
    [&[9, 0, 1, 2][..], &77i32.to_ne_bytes()].iter().chain(parts).flat_map(|p| p.iter().copied()).collect()
}

fn metadata(class: &Class) -> String {
    let mut stream = tracewing_ctf::model::DataStreamClass::new(0);
    stream.event_record_classes.push(class.record.clone());
    let mut trace = tracewing_ctf::model::TraceClass::new();
    trace.data_stream_classes.push(stream);
    tracewing_ctf::tsdl::print(&trace)
}

#[test]
fn a_switch_has_lttngs_names_and_priorities() {
    let class = class(
        "sched",
        "sched_switch",
        &[
            ("char prev_comm[16]", 8, 16, 0),
            ("pid_t prev_pid", 24, 4, 1),
            ("int prev_prio", 28, 4, 1),
            ("long prev_state", 32, 8, 1),
        ],
        "\"\"",
    );
    // The task's number, its name and the previous task's number lie side by side.
    assert_eq!(class.program.steps.len(), 4);
    let comm = *b"worker\0\0\0\0\0\0\0\0\0\0";
    let parts: [&[u8]; 4] = [&comm, &5i32.to_ne_bytes(), &120i32.to_ne_bytes(), &2i64.to_ne_bytes()];
    let expected =
        [&77i32.to_le_bytes()[..], &comm, &5i32.to_le_bytes(), &20i32.to_le_bytes(), &2i64.to_le_bytes()]
            .concat();
    assert_eq!(run(&class, &record(&parts)), Some(expected));
    assert_eq!(run(&class, &record(&parts)[..39]), None);
    let text = metadata(&class);
    assert!(text.contains("prev_tid;") && text.contains("encoding = UTF8; } prev_comm[16];"), "{text}");
}

#[test]
fn system_call_arguments_have_the_width_of_their_type() {
    let class = class(
        "syscalls",
        "sys_enter_openat",
        &[
            ("int __syscall_nr", 8, 4, 1),
            ("int dfd", 16, 8, 0),
            ("const char * filename", 24, 8, 0),
            ("umode_t mode", 32, 8, 0),
        ],
        "\"dfd: 0x%08lx\", ((unsigned long)(REC->dfd))",
    );
    let words = [257u64, 0xffff_ff9c, 0x7fff_1234, 0o644].map(u64::to_ne_bytes).concat();
    let expected = [
        &77i32.to_le_bytes()[..],
        &(-100i32).to_le_bytes(),
        &0x7fff_1234u64.to_le_bytes(),
        &0o644u16.to_le_bytes(),
    ]
    .concat();
    assert_eq!(run(&class, &record(&[&words])), Some(expected));
    let text = metadata(&class);
    assert!(text.contains("name = \"syscall_entry_openat\""), "{text}");
    assert!(text.contains("signed = true; } dfd;") && text.contains("base = 16; } filename;"), "{text}");
    assert!(!text.contains("syscall_nr"), "{text}");
}

#[test]
fn fields_of_variable_length_are_found_wherever_they_are() {
    let class = class(
        "demo",
        "demo",
        &[
            ("__data_loc char[] name", 8, 4, 0),
            ("__rel_loc u16[] numbers", 12, 4, 0),
            ("__data_loc cpumask_t cpus", 16, 4, 0),
            ("int after", 20, 4, 1),
            ("char rest[]", 24, 0, 0),
        ],
        "\"%s\", __get_str(name)",
    );
    let word = |offset: u32, len: u32| (len << 16 | offset).to_ne_bytes();
    let head = [word(28, 4), word(32 - 16, 4), word(36, 8), 5i32.to_ne_bytes()].concat();
    let record = record(&[&head, b"x\0\0\0", b"abc\0", &[1, 0, 2, 0], &[3, 0, 0, 0, 0, 0, 0, 0]]);
    let expected = [
        &77i32.to_le_bytes()[..],
        b"abc\0",
        &[2, 0, 1, 0, 2, 0],
        &[1, 0, 3, 0, 0, 0, 0, 0, 0, 0],
        &5i32.to_le_bytes(),
        b"x\0",
    ]
    .concat();
    assert_eq!(run(&class, &record), Some(expected));
    let text = metadata(&class);
    assert!(text.contains("numbers[__numbers_length];") && text.contains("base = 16; } cpus["), "{text}");
}

#[test]
fn a_place_outside_of_the_record_gives_an_empty_field() {
    let class = class("demo", "demo", &[("__data_loc char[] name", 8, 4, 0)], "\"\"");
    let record = record(&[&(9u32 << 16 | 4000).to_ne_bytes()]);
    assert_eq!(run(&class, &record), Some([&77i32.to_le_bytes()[..], &[0]].concat()));
}

#[test]
fn labels_hexadecimal_and_booleans_reach_the_metadata() {
    let print =
        r#""%s %x", __print_symbolic(REC->mode, { 0, "off" }, { 300, "never" }, { 1, "on" }), REC->flags"#;
    let fields = [("u8 mode", 8, 1, 0), ("bool ok", 9, 1, 0), ("u16 flags", 10, 2, 0)];
    let labelled = class("demo", "demo", &fields, print);
    let text = metadata(&labelled);
    assert!(text.contains("{ \"off\" = 0, \"on\" = 1 } mode;"), "{text}");
    assert!(text.contains("base = 16; } flags;"), "{text}");
    assert_eq!(labelled.booleans, ["ok"]);
    // LTTng has plain numbers there, and its readers expect them.
    assert!(!metadata(&class("irq", "demo", &fields, print)).contains("enum"));
}

proptest! {
    #[test]
    fn any_record_is_copied_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
        word in any::<u32>(),
    ) {
        let class = class(
            "demo",
            "demo",
            &[
                ("__data_loc u64[] a", 8, 4, 0),
                ("__rel_loc char[] b", 12, 4, 0),
                ("int prio", 16, 4, 1),
                ("u32 rest[]", 20, 0, 0),
            ],
            "\"\"",
        );
        let mut bytes = bytes;
        if bytes.len() > 12 {
            bytes[8..12].copy_from_slice(&word.to_ne_bytes());
        }
        prop_assert_eq!(run(&class, &bytes).is_some(), bytes.len() >= 20);
    }
}
