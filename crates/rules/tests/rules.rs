//! Rules: the classes that they match, which one decides, and their encoding.

mod common;

use common::{accepts, as_view, class, field};
use proptest::prelude::*;
use tracewing_abi::schema::{Class, Field, Level, Scalar, Shape};
use tracewing_abi::wire::{Input, Output};
use tracewing_rules::filter::Context;
use tracewing_rules::{
    Action, Decision, Glob, Levels, Majors, Predicate, Process, ProcessPattern, Rule, Rules,
};
use tracewing_units::{Cpu, Pid, Tid};

const PROCESS: Process<'static> = Process { pid: Pid(41), name: "shop-server" };

fn fields() -> [Field<'static>; 1] {
    [field("depth", Shape::One, Scalar::U8)]
}

fn decide(rules: &Rules, name: &str) -> Decision {
    as_view(&Class { name, ..class(&fields()) }, |view| rules.decide(view, &PROCESS).unwrap())
}

fn is_on(rules: &Rules, name: &str) -> bool {
    decide(rules, name) != Decision::Off
}

fn matches(rule: &Rule) -> bool {
    as_view(&class(&fields()), |view| rule.matches(view, &PROCESS))
}

fn globs(patterns: &[&str]) -> Vec<Glob> {
    patterns.iter().map(|pattern| Glob::new(*pattern)).collect()
}

#[test]
fn all_parts_of_a_rule_must_match() {
    let any = Rule::default();
    assert!(matches(&any));
    for (rule, expected) in [
        (Rule::enable(["shop:*", "x"]), true),
        (Rule::enable(["x"]), false),
        (Rule { exclude: globs(&["*:ord*"]), ..any.clone() }, false),
        (Rule { exclude: globs(&["*:in*"]), ..any.clone() }, true),
        (Rule { providers: globs(&["sh?p"]), ..any.clone() }, true),
        (Rule { providers: globs(&["order"]), ..any.clone() }, false),
        (Rule { levels: "info".parse().unwrap(), ..any.clone() }, true),
        (Rule { levels: "warn".parse().unwrap(), ..any.clone() }, false),
        (Rule { majors: Majors(1 << 5), ..any.clone() }, true),
        (Rule { majors: Majors(!(1 << 5)), ..any.clone() }, false),
        (Rule { processes: vec![ProcessPattern::new("41")], ..any.clone() }, true),
        (Rule { processes: vec![ProcessPattern::new("42")], ..any.clone() }, false),
        (
            Rule { processes: vec![ProcessPattern::new("x"), ProcessPattern::new("shop*")], ..any.clone() },
            true,
        ),
    ] {
        assert_eq!(matches(&rule), expected, "{rule}");
    }
}

#[test]
fn a_provider_is_the_text_before_a_single_colon() {
    for (name, provider) in
        [("shop::db:query", "shop::db"), ("a:b:c", "a"), ("plain", "plain"), ("a::b", "a::b"), (":x", "")]
    {
        let rule = Rule { providers: vec![Glob::new(provider)], ..Rule::default() };
        let found = as_view(&Class { name, ..class(&[]) }, |view| rule.matches(view, &PROCESS));
        assert!(found, "{name}");
    }
}

#[test]
fn the_last_rule_that_matches_decides() {
    let mut rules = Rules::new();
    assert!(is_on(&rules, "bar:drink"), "no rule: everything");
    rules.push(Rule::enable(["shop:*"]));
    assert!(is_on(&rules, "shop:order") && !is_on(&rules, "bar:drink"));
    rules.push(Rule::disable(["*:order"]));
    assert!(!is_on(&rules, "shop:order") && is_on(&rules, "shop:sale"));
    rules.push(Rule::enable(["shop:order"]));
    assert!(is_on(&rules, "shop:order") && !is_on(&rules, "bar:order"));
}

#[test]
fn a_recording_that_only_disables_begins_with_everything() {
    let rules: Rules = [Rule::disable(["shop:*"])].into_iter().collect();
    assert!(!is_on(&rules, "shop:order") && is_on(&rules, "bar:drink"));
}

#[test]
fn events_of_the_tracer_are_always_on() {
    let rules: Rules = [Rule::enable(["shop:*"]), Rule::disable(["*"])].into_iter().collect();
    assert!(is_on(&rules, "tracewing:loss") && !is_on(&rules, "tracewings:loss"));
}

#[test]
fn a_rule_with_a_predicate_gives_its_filter() {
    let predicate = |text| Action::Enable(Some(Predicate::parse(text).unwrap()));
    let mut rules = Rules::new();
    rules.push(Rule { action: predicate("depth > 3"), ..Rule::default() });
    let Decision::On { filter: Some(filter) } = decide(&rules, "shop:order") else { panic!("no filter") };
    let context = Context { tid: Tid(0), pid: Pid(0), cpu: Cpu(0) };
    assert!(accepts(&filter, &[4], &context) && !accepts(&filter, &[3], &context));
    let other = as_view(&Class { name: "shop:empty", ..class(&[]) }, |view| rules.decide(view, &PROCESS));
    assert_eq!(other.unwrap_err().to_string(), "event \"shop:empty\": it has no `depth`");
    rules.push(Rule { action: predicate("depth >= 0 || true"), ..Rule::default() });
    assert_eq!(decide(&rules, "shop:order"), Decision::On { filter: None });
}

#[test]
fn a_rule_reads_like_the_command() {
    let rule = Rule {
        action: Action::Enable(Some(Predicate::parse("customer == 'x'").unwrap())),
        events: globs(&["shop:*", "bar"]),
        exclude: globs(&["shop:s?"]),
        providers: globs(&["shop"]),
        levels: Levels::between(Level::Debug, Level::Info),
        majors: Majors(0b1101),
        processes: vec![ProcessPattern::Id(Pid(7)), ProcessPattern::new("sh*")],
    };
    assert_eq!(
        rule.to_string(),
        r"enable -e 'shop:*' -e bar --exclude 'shop:s?' --provider shop --level info..debug --major 0,2-3 --process 7 --process 'sh*' --where 'customer == '\''x'\'''"
    );
    assert_eq!(Rule::disable([""; 0]).to_string(), "disable -e '*'");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9:*]{0,6}", ".{0,6}"]
}

fn rule() -> impl Strategy<Value = Rule> {
    let list = || proptest::collection::vec(text().prop_map(Glob::new), 0..4);
    let processes = proptest::collection::vec(text().prop_map(|text| ProcessPattern::new(&text)), 0..4);
    let level =
        || proptest::sample::select(vec![Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace]);
    let action = prop_oneof![
        Just(Action::Disable),
        Just(Action::Enable(None)),
        Just(Action::Enable(Some(Predicate::parse("depth > 3 && name =~ 'é*'").unwrap()))),
    ];
    (action, list(), list(), list(), (level(), level()), any::<u64>(), processes).prop_map(
        |(action, events, exclude, providers, (one, other), majors, processes)| Rule {
            action,
            events,
            exclude,
            providers,
            levels: Levels::between(one, other),
            majors: Majors(majors),
            processes,
        },
    )
}

fn encoded(rule: &Rule) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let mut out = Output::new(&mut buffer);
    rule.encode_to(&mut out).unwrap();
    let length = out.len;
    buffer.truncate(length);
    buffer
}

proptest! {
    #[test]
    fn a_rule_survives_its_way(rule in rule()) {
        let bytes = encoded(&rule);
        let mut input = Input::new(&bytes);
        prop_assert_eq!(Rule::decode_from(&mut input), Ok(rule));
        prop_assert!(input.bytes.is_empty());
    }

    #[test]
    fn a_broken_rule_is_refused_or_another_one(rule in rule(), at in any::<usize>(), byte in any::<u8>(), cut in any::<usize>()) {
        let mut bytes = encoded(&rule);
        prop_assert!(Rule::decode_from(&mut Input::new(&bytes[..cut % bytes.len()])).is_err());
        let at = at % bytes.len();
        bytes[at] = byte;
        let mut input = Input::new(&bytes);
        if let Ok(rule) = Rule::decode_from(&mut input) {
            prop_assert_eq!(&encoded(&rule), &bytes[..bytes.len() - input.bytes.len()]);
        }
    }

    #[test]
    fn any_bytes_are_a_rule_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = Rule::decode_from(&mut Input::new(&bytes));
    }

    #[test]
    fn a_rule_that_does_not_fit_is_refused(rule in rule(), room in 0_usize..40) {
        let size = encoded(&rule).len();
        let mut buffer = vec![0; room];
        prop_assert_eq!(rule.encode_to(&mut Output::new(&mut buffer)).is_ok(), size <= room);
    }
}
