//! What class descriptions say: names, levels, hints, places.

use tracewing::{Event, EventClass, EventField, Level, event};
use tracewing_abi::schema::{Base, Class};

fn of<E: Event>() -> &'static Class<'static> {
    E::class().description()
}

/// A job entered
/// the queue.
///
///   Second   paragraph.
#[derive(Event)]
struct JobEntered<'a, 'b: 'a> {
    #[event(hex)]
    address: u64,
    #[event(octal, name = "mode")]
    _mode: u32,
    #[event(binary)]
    flags: Option<u8>,
    #[event(unit = "µs", hex)]
    waited: [u16; 2],
    #[event(unit = "s")]
    time: std::time::Duration,
    r#type: &'a str,
    #[event(skip)]
    _not_recorded: &'b (),
    string: u8,
}

/// The number of this file's first line that begins so.
fn line_of(begin: &str) -> u32 {
    let lines = include_str!("declaration.rs").lines();
    1 + lines.take_while(|line| !line.trim_start().starts_with(begin)).count() as u32
}

#[test]
fn a_class_is_described_as_declared() {
    let class = of::<JobEntered>();
    assert_eq!(class.name, "declaration:job_entered");
    assert_eq!(class.level, Level::Info);
    assert_eq!(class.description, "A job entered the queue. Second paragraph.");
    assert_eq!(class.print, "");
    assert!(class.file.ends_with("tests/declaration.rs"), "{}", class.file);
    assert_eq!(class.line, line_of("struct JobEntered"));
    let fields: Vec<_> = class.fields.iter().map(|field| (field.name, field.base, field.unit)).collect();
    assert_eq!(
        fields,
        [
            ("address", Base::Hexadecimal, ""),
            ("mode", Base::Octal, ""),
            ("flags", Base::Binary, ""),
            ("waited", Base::Hexadecimal, "µs"),
            ("time", Base::Decimal, "s"),
            ("type", Base::Decimal, ""),
            ("string", Base::Decimal, ""),
        ]
    );
}

#[test]
fn attributes_of_the_class() {
    #[derive(Event)]
    #[event(name = "cache:hit", provider = "my-shop.v2")]
    #[event(level = "trace", print = "{{{id:#06x}}} {share:.2} {name:>8}", ordered)]
    struct Hit<'a> {
        id: i64,
        share: f32,
        name: &'a str,
    }
    let class = of::<Hit>();
    assert_eq!(class.name, "my-shop.v2:cache:hit");
    assert_eq!(class.level, Level::Trace);
    assert_eq!(class.print, "{{{id:#06x}}} {share:.2} {name:>8}");
    assert_eq!(class.description, "");
}

#[test]
fn every_level_has_a_name() {
    macro_rules! level {
        ($name:literal) => {{
            #[derive(Event)]
            #[event(level = $name)]
            struct Leveled;
            of::<Leveled>().level
        }};
    }
    assert_eq!(
        [level!("error"), level!("warn"), level!("info"), level!("debug"), level!("trace")],
        [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace]
    );
}

/// Names in an expansion must not hide those of the program.
#[test]
fn no_name_of_ours_gets_in_the_way() {
    #[derive(EventField)]
    enum Declaration {
        S,
    }
    #[derive(Event)]
    struct Layout {
        declaration: Declaration,
    }
    let class = of::<Layout>();
    assert_eq!(class.fields[0].labels, [(0, "S")]);
    let site = Layout { declaration: Declaration::S };
    tracewing::emit!(site);
    let class = 5;
    event!("declaration:hygiene", site = Declaration::S, class, fields = { site.declaration });
}

#[test]
fn the_crate_may_have_another_name() {
    mod elsewhere {
        pub use tracewing as renamed;
    }
    #[derive(EventField)]
    #[event(crate = elsewhere::renamed)]
    #[repr(u8)]
    enum Colour {
        Red,
    }
    #[derive(Event)]
    #[event(crate = elsewhere::renamed, provider = "p", name = "painted")]
    struct Painted {
        colour: Colour,
    }
    elsewhere::renamed::emit!(Painted { colour: Colour::Red });
    assert_eq!(of::<Painted>().name, "p:painted");
}

fn ad_hoc(name: &str) -> Vec<&'static Class<'static>> {
    let mut found: Vec<_> = tracewing::__private::classes()
        .into_iter()
        .map(EventClass::description)
        .filter(|class| class.name == name)
        .collect();
    found.dedup();
    found
}

#[test]
fn ad_hoc_classes_are_described_without_running() {
    fn never() {
        let r#type = 5_u8;
        event!(level: Warn, "declaration:ad_hoc", r#type, depth = "abc".len(), name = &*String::from("x"));
    }
    std::hint::black_box(never as fn());
    let [class] = ad_hoc("declaration:ad_hoc")[..] else { panic!("not found") };
    assert_eq!(class.level, Level::Warn);
    assert!(class.file.ends_with("tests/declaration.rs"));
    assert_eq!(class.line, line_of("event!(level: Warn"));
    let fields: Vec<_> = class.fields.iter().map(|field| (field.name, field.shape, field.scalar)).collect();
    use tracewing_abi::schema::{Scalar, Shape};
    assert_eq!(
        fields,
        [
            ("type", Shape::One, Scalar::U8),
            ("depth", Shape::One, Scalar::U64),
            ("name", Shape::Text, Scalar::U8)
        ]
    );
}

#[test]
fn an_ad_hoc_class_may_have_many_fields() {
    let a = 1_u64;
    event!(
        "declaration:many",
        a,
        b = a,
        c = a,
        d = a,
        e = a,
        f = a,
        g = a,
        h = a,
        i = a,
        j = a,
        k = a,
        l = a,
        m = a,
        n = a,
        o = a,
        p = a,
        q = a,
        r = a,
        s = a,
        t = a,
        u = a,
        v = a,
        w = a,
        x = a,
        y = a,
        z = "end",
    );
    let [class] = ad_hoc("declaration:many")[..] else { panic!("not found") };
    assert_eq!(class.fields.len(), 26);
    assert_eq!(class.fields[25].name, "z");
}

#[test]
fn descriptions_survive_the_handshake() {
    let mut buffer = vec![0; tracewing_abi::message::MAX_MESSAGE];
    for class in tracewing::__private::classes() {
        let mut writer = tracewing_abi::message::ClassesWriter::new(&mut buffer).unwrap();
        assert_eq!(writer.push(class.description()), Ok(()), "{}", class.description().name);
    }
}
