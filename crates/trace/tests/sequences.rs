//! Strings and sequences of every small length, whose lines are made from templates, after headers of both of
//! LTTng's forms. Compared with babeltrace2's output.

use std::fs;
use std::path::Path;
use tracewing_oracle::assert_always_same_as_babeltrace2;

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 16; align = 16; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = ORDER; packet.header := struct { u32 magic; }; };
clock { name = c; freq = 1000000000; offset_s = 1000000; };
typealias integer { size = 27; align = 1; signed = false; map = clock.c.value; } := narrow;
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := whole;
stream {
    packet.context := struct { u32 content_size; u32 packet_size; };
    event.header := struct {
        enum : integer { size = 5; align = 1; signed = false; } { compact = 0 ... 30, extended = 31 } id;
        variant <id> {
            struct { narrow timestamp; } compact;
            struct { u32 id; whole timestamp; } extended;
        } v;
    } align(8);
    event.context := struct { u8 prefix; integer { size = 8; align = 8; encoding = UTF8; signed = false; } thread[prefix]; };
};
event {
    name = "growing"; id = 3;
    fields := struct {
        string text;
        u8 count;
        integer { size = 16; align = 8; signed = true; } numbers[count];
        integer { size = 24; align = 8; signed = false; base = 16; } hex[count];
        u16 aligned[count];
        enum : u8 { none, one, some = 2 ... 20, many = 9 ... 40 } kind;
        struct { string text; u8 number; } pairs[2];
    };
};
"#;

fn write(folder: &Path, big: bool) {
    let number = |value: u64, size: usize| match big {
        true => value.to_be_bytes()[8 - size..].to_vec(),
        false => value.to_le_bytes()[..size].to_vec(),
    };
    let mut bytes = vec![0; 12];
    for index in 0..120_u64 {
        let stamp = 1000 + index * 100;
        match (index % 3, big) {
            (1, _) => {
                bytes.push(if big { 31 << 3 } else { 31 });
                bytes.extend(number(3, 4));
                bytes.extend(number(stamp, 8));
            }
            (_, true) => bytes.extend(number(3 << 27 | stamp, 4)),
            (_, false) => bytes.extend(number(3 | stamp << 5, 4)),
        }
        bytes.push(4);
        bytes.extend(if index % 2 == 0 { b"main" } else { b"ma\0n" });
        let letter =
            |at: u64| if (at * 7 + index).is_multiple_of(97) { b'"' } else { b'a' + (at % 26) as u8 };
        bytes.extend((0..1 + index % 50).map(letter).chain([0]));
        let count = index % 13;
        bytes.push(count as u8);
        (0..count).for_each(|at| bytes.extend(number((at * 20_000) ^ index, 2)));
        (0..count).for_each(|at| bytes.extend(number(at << (index % 20), 3)));
        bytes.resize(bytes.len().next_multiple_of(2), 0xEE);
        (0..count).for_each(|at| bytes.extend(number(at * 5000 + index, 2)));
        bytes.push((index % 50) as u8);
        bytes.extend(b"first\0\x01second\0\x02");
    }
    let size = number(bytes.len() as u64 * 8, 4);
    bytes[..12].copy_from_slice(&[number(0xC1FC_1FC1, 4), size.clone(), size].concat());
    fs::write(folder.join("metadata"), METADATA.replace("ORDER", if big { "be" } else { "le" })).unwrap();
    fs::write(folder.join("stream"), bytes).unwrap();
}

#[test]
fn every_length_in_both_byte_orders() {
    for big in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), big);
        assert_always_same_as_babeltrace2(folder.path());
    }
}
