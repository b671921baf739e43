//! Declarations as kernels have them, and near misses.

use super::*;
use proptest::prelude::*;

fn field(line: &str) -> Result<Field, FormatError> {
    FieldLine::parse(line).and_then(|line| line.unwrap().field(8))
}

fn shape(line: &str) -> (String, Shape) {
    field(line).map(|f| (f.name, f.shape)).unwrap()
}

const fn number(size: usize, signed: bool) -> Element {
    Element { size, signed, text: false }
}

const TEXT: Element = Element { size: 1, signed: false, text: true };

#[test]
fn every_kind_of_declaration_is_understood() {
    for (line, name, expected) in [
        ("\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;", "pid", Shape::One(number(4, true))),
        ("field:struct mm_struct * mm;offset:8;size:8;signed:0;", "mm", Shape::One(number(8, false))),
        ("field:const char *const name; offset:8; size:8; signed:0;", "name", Shape::One(number(8, false))),
        ("field:enum xfs_group_type type;offset:8;size:4;signed:0;", "type", Shape::One(number(4, false))),
        ("field:char comm[16];offset:8;size:16;signed:0;", "comm", Shape::Array(TEXT, 16)),
        ("field:char comm[TASK_COMM_LEN];offset:8;size:16;signed:0;", "comm", Shape::Array(TEXT, 16)),
        (
            "field:long sysctl_mem[3];offset:8;size:24;signed:1;",
            "sysctl_mem",
            Shape::Array(number(8, true), 3),
        ),
        ("field:__u8 gw4[4];offset:8;size:4;signed:0;", "gw4", Shape::Array(number(1, false), 4)),
        ("field:struct in6 addr;offset:8;size:16;signed:0;", "addr", Shape::Array(number(1, false), 16)),
        ("field:u32 buf[];offset:8;size:0;signed:0;", "buf", Shape::Rest(number(4, false))),
        ("field:char buf[];offset:8;size:0;signed:0;", "buf", Shape::Rest(TEXT)),
        (
            "field:__data_loc char[] name;offset:8;size:4;signed:0;",
            "name",
            Shape::Elsewhere(TEXT, Origin::Record),
        ),
        (
            "field:__rel_loc unsigned int[] lengths;offset:8;size:4;signed:0;",
            "lengths",
            Shape::Elsewhere(number(4, false), Origin::Field),
        ),
        (
            "field:__data_loc cpumask_t cpumask;offset:8;size:4;signed:0;",
            "cpumask",
            Shape::Elsewhere(number(8, false), Origin::Record),
        ),
    ] {
        assert_eq!(shape(line), (name.to_owned(), expected), "{line}");
    }
}

#[test]
fn a_whole_file_is_read_and_line_ends_in_the_print_format_kept() {
    let text = "name: demo\nID: 17\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                \tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"x=%d\n\", REC->x\n";
    let format = Format::parse(text, 8).unwrap();
    assert_eq!((format.name.as_str(), format.id), ("demo", 17));
    assert_eq!(format.common.len(), 1);
    assert_eq!(format.fields.len(), 1);
    assert_eq!(format.print, "\"x=%d\n\", REC->x\n");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let error = |text: &str| Format::parse(text, 8).unwrap_err().to_string();
    assert_eq!(error("ID: 3\n"), "there is no line `name:`");
    assert_eq!(error("name: x\nID: 99999\n"), "line 2: `99999` is not an event number (0 to 65535)");
    assert!(error("name: x\n\tfield:int x;\toffset:zz;\tsize:4;\n").starts_with("line 2: "));
    assert!(error("name: x\n\tfield:int;\toffset:8;\tsize:4;\tsigned:0;\n").starts_with("line 2: "));
}

proptest! {
    #[test]
    fn any_text_gives_a_format_or_an_error(text in "\\PC{0,200}") {
        let _ = Format::parse(&text, 8);
    }

    #[test]
    fn any_declaration_gives_a_field_or_an_error(
        declaration in "(__data_loc |__rel_loc )?[a-z_ *\\[\\]0-9]{0,30}",
        offset in 0usize..5000, size in 0usize..300, signed in 0u8..2,
    ) {
        let line = format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};");
        if let Ok(field) = FieldLine::parse(&line).and_then(|l| l.unwrap().field(8)) {
            let fixed = match field.shape {
                Shape::One(e) => e.size,
                Shape::Array(e, n) => e.size * n,
                Shape::Rest(_) => 0,
                Shape::Elsewhere(..) => 4,
            };
            prop_assert_eq!(fixed, size);
        }
    }
}
