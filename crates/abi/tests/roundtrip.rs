//! What one side encodes the other decodes to the same; what is cut or garbled gives an error, never a panic.

use proptest::prelude::*;
use tracewing_abi::message::grant::{Done, Grant, GrantsWriter, decode_change, decode_grants};
use tracewing_abi::message::{Answer, ClassesWriter, Hello, Joining, decode_classes};
use tracewing_abi::region::Geometry;
use tracewing_abi::schema::{Base, Class, ClassView, Field, Level, Scalar, Shape};

fn example() -> Class<'static> {
    const FIELDS: &[Field<'static>] = &[
        Field {
            name: "id",
            shape: Shape::One,
            scalar: Scalar::U64,
            length: 0,
            base: Base::Hexadecimal,
            unit: "",
            labels: &[],
        },
        Field {
            name: "state",
            shape: Shape::Enumeration,
            scalar: Scalar::I8,
            length: 0,
            base: Base::Decimal,
            unit: "",
            labels: &[(0, "idle"), (u64::MAX, "gone")],
        },
        Field {
            name: "took",
            shape: Shape::One,
            scalar: Scalar::U32,
            length: 0,
            base: Base::Decimal,
            unit: "ns",
            labels: &[],
        },
    ];
    Class {
        name: "shop:served",
        level: Level::Debug,
        major: 7,
        description: "an order left the shop",
        print: "order {id:#x}",
        file: "src/main.rs",
        line: 7,
        fields: FIELDS,
    }
}

fn encoded(buffer: &mut [u8]) -> &[u8] {
    let mut writer = ClassesWriter::new(buffer).unwrap();
    writer.push(&example()).unwrap();
    writer.push(&example()).unwrap();
    writer.finish()
}

#[test]
fn classes_come_back() {
    let mut buffer = [0; 4096];
    let classes: Vec<_> = decode_classes(encoded(&mut buffer)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(classes.len(), 2);
    assert_eq!(classes[0], classes[1]);
    let view = ClassView::decode(classes[0]).unwrap();
    let class = example();
    assert_eq!(
        (view.name, view.level, view.major, view.line),
        (class.name, class.level, class.major, class.line)
    );
    assert_eq!((view.description, view.print, view.file), (class.description, class.print, class.file));
    let fields: Vec<_> = view.fields().collect();
    assert_eq!(fields.len(), class.fields.len());
    for (ours, theirs) in fields.iter().zip(class.fields) {
        assert_eq!((ours.name, ours.shape, ours.scalar), (theirs.name, theirs.shape, theirs.scalar));
        assert_eq!((ours.length, ours.base, ours.unit), (theirs.length, theirs.base, theirs.unit));
        assert_eq!(ours.labels().collect::<Vec<_>>(), theirs.labels);
    }
}

#[test]
fn every_cut_is_an_error() {
    let mut buffer = [0; 4096];
    let message = encoded(&mut buffer).to_vec();
    for len in 0..message.len() {
        let complete = decode_classes(&message[..len]).and_then(|classes| {
            classes.map(|c| ClassView::decode(c?).map(|_| ())).collect::<Result<Vec<_>, _>>()
        });
        assert!(complete.is_err(), "{len} of {} bytes", message.len());
    }
}

#[test]
fn a_class_that_does_not_fit_leaves_the_message_usable() {
    let mut buffer = [0; 200];
    let mut writer = ClassesWriter::new(&mut buffer).unwrap();
    writer.push(&example()).unwrap();
    assert!(writer.push(&example()).is_err());
    assert_eq!(decode_classes(writer.finish()).unwrap().count(), 1);
}

#[test]
fn small_messages_come_back() {
    let hello =
        Hello { version: 3, pid: 77, can_publish: true, joining: Joining::Program, copy: 5, waits: [6, 7] };
    assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    for answer in [Answer::Welcome { size: 1 << 40, shared: true, spare: 77 }, Answer::Known, Answer::Refused]
    {
        assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
    }
    let mut buffer = [0; Done::LARGEST];
    let done = Done { number: 9, failed: 2, why: "a debugger holds it" };
    assert_eq!(Done::decode(done.encode(&mut buffer).unwrap()), Ok(done));
    let long = "\u{e9}".repeat(400);
    let cut = Done { why: &long, ..done };
    assert_eq!(Done::decode(cut.encode(&mut buffer).unwrap()).unwrap().why.len(), Done::LONGEST_WHY);
}

#[test]
fn grants_come_back() {
    let all = [
        Grant { id: 1, on: true, filter: b"" },
        Grant { id: 0, on: false, filter: b"" },
        Grant { id: 65534, on: true, filter: b"12345678" },
    ];
    let mut buffer = [0; 40];
    let mut writer = GrantsWriter::grants(&mut buffer).unwrap();
    all.iter().for_each(|grant| writer.push(*grant).unwrap());
    assert!(writer.push(all[2]).is_err());
    assert_eq!(writer.count(), 3);
    let back: Vec<_> = decode_grants(writer.finish()).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(back, all);
    let mut writer = GrantsWriter::change(&mut buffer, 77).unwrap();
    writer.push(all[2]).unwrap();
    let (number, grants) = decode_change(writer.finish()).unwrap();
    assert_eq!((number, grants.collect::<Result<Vec<_>, _>>().unwrap()), (77, vec![all[2]]));
}

#[test]
fn geometry_takes_powers_of_two_within_bounds() {
    let geometry = Geometry::new(2, 4, 1 << 20).unwrap();
    assert_eq!(geometry.size(), 4096 + 2 * (12288 + (4 << 20)));
    assert_eq!(geometry.overwriting().size(), 4096 + 2 * (12288 + (8 << 20)));
    assert_eq!(geometry.largest_event(), 65535);
    for (cpus, sub_buffers, bytes) in
        [(0, 4, 4096), (9000, 4, 4096), (1, 1, 4096), (1, 3, 4096), (1, 512, 4096), (1, 4, 128), (1, 4, 5000)]
    {
        assert!(Geometry::new(cpus, sub_buffers, bytes).is_err(), "{cpus} {sub_buffers} {bytes}");
    }
}

proptest! {
    #[test]
    fn any_bytes_give_values_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Hello::decode(&bytes);
        let _ = Answer::decode(&bytes);
        let _ = decode_grants(&bytes).map(|grants| grants.count());
        let _ = decode_change(&bytes).map(|(_, grants)| grants.count());
        let _ = Done::decode(&bytes);
        if let Ok(classes) = decode_classes(&bytes) {
            for class in classes.take(1000).flatten() {
                let _ = ClassView::decode(class);
            }
        }
    }

    #[test]
    fn garbled_classes_never_panic(at in 0usize..400, value: u8) {
        let mut buffer = [0; 4096];
        let mut message = encoded(&mut buffer).to_vec();
        let at = at % message.len();
        message[at] = value;
        if let Ok(classes) = decode_classes(&message) {
            for class in classes.flatten() {
                if let Ok(view) = ClassView::decode(class) {
                    for field in view.fields() {
                        let _ = field.labels().count();
                    }
                }
            }
        }
    }
}

#[test]
fn stamps_extend_across_a_wrap() {
    use tracewing_abi::event::{extend_stamp, header_word, split_header_word};
    let word = header_word(0x1_ffff_fff0, 7, 28);
    assert_eq!(split_header_word(word), (0xffff_fff0, 7, 28));
    assert_eq!(extend_stamp(0x1_ffff_ff00, 0xffff_fff0), 0x1_ffff_fff0);
    assert_eq!(extend_stamp(0x1_ffff_ff00, 0x10), 0x2_0000_0010);
    assert_eq!(extend_stamp(5, 5), 5);
}
