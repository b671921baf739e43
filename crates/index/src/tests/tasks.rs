//! Tasks of one name: their row is the sum of them, in every window.

use super::model::{self, Model, rows};
use super::{BEGIN, begun, opened, times, with_groups};
use crate::body::Body;
use crate::builder::Builder;
use crate::format::{self, Tail};
use crate::index::Index;
use crate::levels::Summary;
use crate::make::complete;
use crate::picture::Window;
use crate::row::{RowId, RowKind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tracewing_analysis::Names;
use tracewing_timeline::{End, Sink, StateNames, Track, TrackId};
use tracewing_units::{Duration, Pid, Task};

/// Tasks that do what the models say, each with its process and name.
fn tasks(builder: &mut Builder<'_>, models: &[Model], names: &[(i32, String)]) {
    let states = StateNames::default();
    builder.begin = Some(BEGIN);
    for (number, (process, name)) in (0..).zip(names) {
        let task = builder.track(Track::Task(Task(number)));
        for span in &models[number as usize % models.len()].spans {
            builder.state(task, span.state, &states, BEGIN + span.from, BEGIN + span.to);
        }
        builder.ends(task, End { process: Some(Pid(*process)), name, is_followed: true });
    }
}

fn written(models: &[Model], names: &[(i32, String)]) -> Vec<u8> {
    let (mut bytes, head) = (Vec::new(), format::head(super::IDENTITY));
    let mut builder = Builder::new(begun(&mut bytes));
    tasks(&mut builder, models, names);
    let texts = (&StateNames::default(), &Names::default(), |_| String::new());
    complete(builder, texts, &head, Tail::default()).unwrap();
    bytes
}

/// The rows of the tasks of each name, by process, number and name, with their members.
fn groups(index: &Index) -> BTreeMap<(i32, u32, String), Vec<u64>> {
    let group = |(id, row): (RowId, &crate::Row)| match row.kind {
        RowKind::Tasks(number) => {
            let member = |(_, row): (RowId, &crate::Row)| match row.kind {
                RowKind::Task(task) if row.group == Some(id) => Some(task.0),
                _ => None,
            };
            assert_eq!(index.row(row.parent.unwrap()).kind, RowKind::Process(row.process));
            let members = index.rows().filter_map(member).collect();
            Some(((row.process.unwrap().0, number, row.name.clone()), members))
        }
        _ => None,
    };
    index.rows().filter_map(group).collect()
}

fn named(count: usize, process: i32, name: impl Fn(usize) -> String) -> Vec<(i32, String)> {
    (0..count).map(|number| (process, name(number))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Tasks of one name in any window are the sum of these tasks, also where that is made ahead.
    #[test]
    fn tasks_of_a_name_are_the_sum_of_each(
        models in rows(),
        windows in model::windows(),
        names in proptest::collection::vec((1..3_i32, 0..3_u32), 1..9),
    ) {
        let names: Vec<_> = names.iter().map(|(process, name)| (*process, format!("work{name}"))).collect();
        let index = with_groups(&written(&models, &names), 1).unwrap();
        index.check().unwrap();
        let longest = models.iter().max_by_key(|model| model.scaled(1.0)).unwrap();
        let tasks = index.rows().filter(|(_, row)| matches!(row.kind, RowKind::Tasks(_)));
        for group in tasks.map(|(group, _)| group) {
            let members: Vec<_> =
                index.rows().filter(|(_, row)| row.group == Some(group)).map(|(id, _)| id).collect();
            prop_assert!(!members.is_empty());
            let has_states = members.iter().any(|id| index.row(*id).has_states());
            prop_assert_eq!(index.finest_of_group(group).is_some(), has_states);
            for (from, length, most) in &windows {
                let from = longest.scaled(*from);
                let end = from + longest.scaled(*length).max(Duration::from_ns(1));
                let exact = Window::covering(from, end, *most);
                let finest = index.finest_of_group(group).unwrap_or(0);
                let wide = Window { shift: exact.shift.max(finest), first: 0, count: most + 2 };
                for window in [exact, wide] {
                    let mut sums: BTreeMap<u64, crate::Content> = BTreeMap::new();
                    for bucket in members.iter().flat_map(|id| index.picture(*id, window).unwrap()) {
                        sums.entry(bucket.number).or_default().add_all(&bucket.content);
                    }
                    let sums: Vec<_> =
                        sums.into_iter().map(|(number, content)| crate::Bucket { number, content }).collect();
                    let found = index.group(group, window).unwrap();
                    prop_assert_eq!(found.is_some(), has_states && window.shift >= finest);
                    if let Some(found) = found {
                        prop_assert_eq!(times(&found), times(&sums));
                    }
                }
            }
        }
    }
}

#[test]
fn names_have_rows_by_process_and_further_names_have_one() {
    let mut model = Model::default();
    model.push(tracewing_timeline::Class::User, 1_000);
    let name = |number: usize| format!("work{}", number % 70);
    let mut names = named(140, 7, name);
    names.extend(named(2, 8, |_| "work0".to_owned()));
    let bytes = written(&[model], &names);
    let groups = groups(&opened(&bytes).unwrap().unwrap());
    assert_eq!(groups.len(), 64 + 1 + 1);
    for number in 0..64 {
        let key = (7, number, format!("work{number}"));
        assert_eq!(groups[&key], [u64::from(number), 70 + u64::from(number)]);
    }
    let others: Vec<u64> = (64..70).chain(134..140).collect();
    assert_eq!(groups[&(7, RowKind::OTHERS, String::new())], others);
    assert_eq!(groups[&(8, 0, "work0".to_owned())], [140, 141]);
}

/// What is known of tasks while more come is what is known of them then.
#[test]
fn tasks_keep_their_rows_while_others_come() {
    let mut model = Model::default();
    model.push(tracewing_timeline::Class::User, 1_000);
    let name = |number: usize| format!("work{}", number * number % 80);
    let mut numbers = Vec::<BTreeMap<String, u32>>::new();
    for count in [10, 60, 100, 400] {
        let (mut bytes, mut rest) = (Vec::new(), Vec::new());
        let mut builder = Builder::new(begun(&mut bytes));
        tasks(&mut builder, std::slice::from_ref(&model), &named(count, 7, name));
        let offset = builder.body().offset;
        let (rows, ..) = builder.same(Body::after(&mut rest, offset), Duration::ZERO).finish();
        let number = |task: TrackId| match rows[rows[task as usize].group.unwrap().0 as usize].kind {
            RowKind::Tasks(number) => number,
            kind => panic!("{kind:?}"),
        };
        numbers.push((0..count).map(|task| (name(task), number(task as TrackId))).collect());
    }
    for (before, after) in numbers.iter().zip(&numbers[1..]) {
        assert!(before.iter().all(|(name, number)| after[name] == *number));
    }
}
