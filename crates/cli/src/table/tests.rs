//! Tables in each format, chosen columns, order, and what fits a terminal.

use super::column::Importance;
use super::*;
use crate::format::TableFormatOption;
use tracewing_trace::Zone;
use tracewing_units::{Duration, Tid, Timestamp};

#[derive(Debug)]
struct Made {
    id: Option<Tid>,
    name: &'static str,
    ns: u64,
    parts: Vec<(Option<String>, Duration)>,
}

fn columns() -> Vec<Column<Made>> {
    columns! { made: Made;
        number "id" "id" key, "which" => made.id.into();
        text "name" "name" normal + shrinking, "how it is called" => made.name.into();
        duration "time" "time_ns" low, "how long" => Cell::Ns(Duration::from_ns(made.ns));
        duration "more" "more_ns" extra, "how long else" => Cell::Ns(Duration::from_ns(made.ns % 10));
        parts "on" "on" normal, "on what" => Cell::Parts(made.parts.clone().into());
        text "" "bar" extra + only_text, "a picture" => if made.ns > 0 { "##".into() } else { Cell::None };
    }
}

fn rows() -> Vec<Made> {
    let parts = vec![(Some("read".to_owned()), Duration::from_ns(7)), (None, Duration::from_ns(2))];
    vec![
        Made { id: Some(Tid(-1)), name: "b, \"c\"", ns: 1_234_561, parts },
        Made { id: None, name: "a\u{1b}", ns: 22_000_002, parts: Vec::new() },
    ]
}

fn options(sort: Option<&str>, names: &[&str], wide: bool, format: TableFormat) -> TableOptions {
    let columns = names.iter().map(ToString::to_string).collect();
    let sort = Sort { sort: sort.map(str::to_owned) };
    TableOptions {
        sort,
        first: First::default(),
        choice: Choice { columns, wide },
        format: TableFormatOption { format },
    }
}

fn written(options: &TableOptions) -> String {
    let table = options.layout(&columns()).expect("there are such columns").table(&rows());
    let table = Table { limit: None, ..table };
    let mut out = Vec::new();
    let document = ("rows", &[("count", Cell::Count(2))][..]);
    table.write(&mut out, options.format(), document, |out| writeln!(out, "two")).expect("memory takes all");
    match options.format() {
        TableFormat::Table => plain(out),
        TableFormat::Json | TableFormat::Csv => String::from_utf8(out).expect("text"),
    }
}

/// A table without the header's colours.
fn plain(out: Vec<u8>) -> String {
    anstream::adapter::strip_str(&String::from_utf8(out).expect("text")).to_string()
}

#[test]
fn each_format_has_all_that_it_shows() {
    let of = |format| written(&options(None, &[], false, format));
    let shown = "id  name     time ms  on\n-1  b, \"c\"     1.234  read\n -  a\\u{1b}   22.000\ntwo\n";
    assert_eq!(of(TableFormat::Table), shown);
    let csv = "id,name,time_ns,more_ns,on\n-1,\"b, \"\"c\"\"\",1234561,1,read=7 ?=2\n,a\u{1b},22000002,2,\n";
    assert_eq!(of(TableFormat::Csv), csv);
    let json: serde_json::Value = serde_json::from_str(&of(TableFormat::Json)).expect("JSON");
    let expected = serde_json::json!({
        "rows": [
            { "id": -1, "name": "b, \"c\"", "time_ns": 1_234_561, "more_ns": 1,
              "on": [{ "on": "read", "ns": 7 }, { "on": null, "ns": 2 }] },
            { "id": null, "name": "a\u{1b}", "time_ns": 22_000_002, "more_ns": 2, "on": [] },
        ],
        "count": 2,
    });
    assert_eq!(json, expected);
}

#[test]
fn columns_are_chosen_by_name_and_header_in_any_order() {
    let of = |names: &[&str], format| written(&options(None, names, false, format));
    assert_eq!(of(&["time", "id", "bar"], TableFormat::Csv), "time_ns,id,bar\n1234561,-1,##\n22000002,,##\n");
    assert_eq!(of(&["more_ns", "id"], TableFormat::Table), "more ms  id\n  0.000  -1\n  0.000   -\ntwo\n");
    let wide = written(&options(None, &[], true, TableFormat::Table));
    assert_eq!(wide.lines().next(), Some("id  name     time ms  more ms  on"));
    assert!(wide.contains("  read  ##\n"), "{wide}");
    let error =
        options(None, &["times"], false, TableFormat::Csv).layout(&columns()).unwrap_err().to_string();
    let expected = "there is no column `times` to print; is `time` meant? There are: id, name, time (time_ns), \
                    more_ns, on, bar";
    assert_eq!(error, expected);
    let error = options(None, &["more"], false, TableFormat::Csv).layout(&columns()).unwrap_err().to_string();
    assert!(error.starts_with("there is no column `more` to print; is `more_ns` meant?"), "{error}");
}

#[test]
fn sorts_figures_down_and_texts_up() {
    let first = |sort: &str| {
        let csv = written(&options(Some(sort), &["id"], false, TableFormat::Csv));
        csv.lines().nth(1).expect("a row").to_owned()
    };
    for (sort, id) in
        [("time", ""), ("time_ns", ""), ("on", "-1"), ("name", ""), ("id", "-1"), ("more_ns", "")]
    {
        assert_eq!(first(sort), id, "{sort}");
    }
}

#[test]
fn rows_without_a_limit_keep_their_places() {
    let first = First { count: Some(1) };
    let options = TableOptions { first, ..options(Some("time"), &[], false, TableFormat::Csv) };
    let layout = options.layout(&columns()).expect("there are such columns");
    let made = |id, ns| Made { id: Some(Tid(id)), name: "", ns, parts: Vec::new() };
    let rows = [made(1, 10), made(2, 40), made(3, 30), made(4, 20)];
    let ids = |is_exempt: fn(&Made) -> bool| {
        let rows = layout.arranged_with(&rows, is_exempt).into_iter();
        rows.map(|row: &Made| row.id.expect("it has one").0).collect::<Vec<_>>()
    };
    assert_eq!(ids(|_| false), [2]);
    assert_eq!(ids(|made| made.ns == 40), [2, 3], "it takes no other row's room");
    assert_eq!(ids(|made| made.ns <= 20), [2, 4, 1]);
}

#[test]
fn what_is_not_known_is_last() {
    let cells = |known: fn(u64) -> Cell| {
        let mut cells: Vec<Cell> =
            (0..100).map(|at| if at % 3 == 0 { Cell::None } else { known(at * 37 % 100) }).collect();
        cells.sort_by(Cell::compare);
        cells
    };
    let knowns: [fn(u64) -> Cell; 3] = [
        |at| Cell::Text(at.to_string()),
        Cell::Count,
        |at| Cell::Time(Timestamp::from_ns(at as i64 - 50), Zone::Utc),
    ];
    for known in knowns {
        let cells = cells(known);
        let count = cells.iter().take_while(|cell| **cell != Cell::None).count();
        assert_eq!(count, 66);
        assert!(cells[..count].is_sorted_by(|a, b| a.compare(b).is_le()), "{cells:?}");
    }
    // Times in ns since 1970 have more digits than a float.
    let [early, late] = [1_795_422_767_000_000_000, 1_795_422_767_000_000_001]
        .map(|ns| Cell::Time(Timestamp::from_ns(ns), Zone::Utc));
    assert!(late.compare(&early).is_lt());
}

#[test]
fn a_narrow_terminal_leaves_out_what_matters_least() {
    let printed = |limit| {
        let table = options(None, &[], false, TableFormat::Table).layout(&columns()).unwrap().table(&rows());
        let mut out = Vec::new();
        Table { limit: Some(limit), ..table }.print(&mut out).expect("memory takes all");
        plain(out)
    };
    assert_eq!(printed(26), printed(1000));
    let hint = "(--wide shows all, --columns selects)\n";
    let less = format!("id  name     on\n-1  b, \"c\"   read\n -  a\\u{{1b}}\nHidden columns: time {hint}");
    assert_eq!(printed(25), less);
    assert!(printed(11).ends_with(&format!("Hidden columns: time, on {hint}")));
    assert_eq!(printed(1), format!("id\n-1\n -\nHidden columns: name, time, on {hint}"));
}

#[test]
fn texts_are_cut_before_columns_are_left_out() {
    let head = |importance| Head { importance, ..columns()[1].head };
    let heads = [head(Importance::Key), head(Importance::Low)];
    assert_eq!(fit(&heads, &[100, 30], Some(200)), [Some(100), Some(30)]);
    assert_eq!(fit(&heads, &[100, 30], Some(80)), [Some(54), Some(24)]);
    assert_eq!(fit(&heads, &[100, 30], Some(40)), [Some(40), None]);
    let mut out = Vec::new();
    let cells = ["äöü".repeat(10).into(), Cell::from("b")];
    write_aligned(&mut out, &heads, &[Some(5), Some(1)], &cells).expect("memory takes all");
    assert_eq!(String::from_utf8(out).expect("text"), "äöüä…  b\n");
}

#[test]
fn a_cell_is_as_wide_as_what_is_shown() {
    for number in [0, 1, 9, 10, 999_999, 1_000_000, 9_999_999, 10_000_000, u64::MAX] {
        let signed = number as i64;
        for cell in [
            Cell::None,
            Cell::Count(number),
            Cell::Ns(Duration::from_ns(number)),
            Cell::Number(signed),
            Cell::Number(-signed),
            Cell::Time(Timestamp::from_ns(signed), Zone::Utc),
        ] {
            assert_eq!(cell.width(), cell.shown().len(), "{cell:?}");
            let mut line = String::new();
            cell.show(&mut line);
            assert_eq!(line, cell.shown());
        }
    }
    assert_eq!(Cell::Number(i64::MIN).width(), 20);
}

#[test]
fn a_summary_separates_thousands() {
    let shown = |number| Cell::Total(number).shown().into_owned();
    assert_eq!([0, 999, 1000, 1_234_567].map(shown), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(Cell::AtLeast(1000).shown(), "1,000+");
    assert_eq!(serde_json::to_value(Cell::AtLeast(1000)).unwrap(), serde_json::Value::Null);
}

#[test]
fn a_period_has_the_unit_that_suits_it() {
    let cases =
        [(0, "0 ns"), (999, "999 ns"), (1_234, "1.23 µs"), (38_140_000, "38.1 ms"), (123_456_000, "123 ms")];
    for (ns, shown) in cases.into_iter().chain([(2_000_000_000, "2.00 s"), (86_400_000_000_000, "86400 s")]) {
        assert_eq!(period(Duration::from_ns(ns)), shown);
    }
}

#[test]
fn a_sum_that_no_number_holds_is_unknown() {
    let made = Made { id: Some(Tid(1)), name: "", ns: u64::MAX, parts: Vec::new() };
    let options = options(None, &["time_ns"], false, TableFormat::Csv);
    let table = options.layout(&columns()).expect("there is such a column").table(&[made]);
    assert_eq!(table.rows, [[Cell::None]]);
    assert_eq!(
        (milliseconds(Duration::MAX), period(Duration::MAX)),
        ("unknown".to_owned(), "unknown".to_owned())
    );
}
