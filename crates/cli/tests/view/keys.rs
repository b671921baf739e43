//! The page knows tracks again by what they are: when rows get other numbers, when there are more of them,
//! and whatever names a recording has.

use crate::cdp::opened;
use serde_json::json as object;

/// Makes rows of a recording whose names look like keys, and their tracks.
const TRACKS: &str = "(async () => {
    const [{ tree, each }, { keep }] = [await import('/tracks.js'), await import('/live.js')];
    const names = ['other names', 'a', 'b', 'a/b', 'a (1)', 'a~1', 'a_e', '', '_', '~', '+cpus 0', '%41', 'p7_ka', '__proto__', '<b>', '\\n'];
    const row = (kind, number, name, more) => ({ kind, number: String(number), name, parent: null, group: null, members: null, begin: 0, end: 9, is_followed: true, used: 1, counter: null, ...more });
    // Rows by name; parents and groups are names, too.
    const hostile = () => {
        const rows = { cpu: row('cpu', 0, ''), p7: row('process', 7, 'a'), p8: row('process', 8, 'a', { is_followed: false }), p: row('process', '', '') };
        rows.all = row('all', '', '', { parent: 'p7', members: 34 });
        // Numbers of threads are used again.
        for (const [at, begin] of [30, 10, 90].entries()) rows[`thread${at}`] = row('thread', 7, 'a', { parent: at ? 'p7' : 'p8', begin });
        for (const parent of ['p7', 'p8']) rows[`others of ${parent}`] = row('tasks', 'others', '', { parent, members: 2 });
        for (const [at, name] of names.entries()) {
            const counter = { unit: '', least: 0, most: 1 };
            rows[`events ${at}`] = row('events', at, name, { parent: 'thread1' });
            rows[`counter ${at}`] = row('counter', at, name, { counter });
            rows[`counter of CPU ${at}`] = row('counter', at, name, { counter, parent: 'cpu' });
            for (const parent of ['p7', 'p8']) {
                rows[`tasks ${at} of ${parent}`] = row('tasks', at, name, { parent, members: 2 });
                for (const number of [at, at + 100]) rows[`task ${number} of ${parent}`] = row('task', number, name, { parent, group: `tasks ${at} of ${parent}` });
            }
        }
        for (const kind of ['functions', 'locks', 'spans', 'samples', 'system calls']) for (const number of [0, 1]) rows[`${kind} ${number}`] = row(kind, number, '', { parent: 'task 0 of p7' });
        return rows;
    };
    // Rows have the numbers of their places, from `first` on.
    const numbered = (rows, first) => {
        const named = Object.keys(rows);
        const id = (name) => (name === null ? null : first + named.indexOf(name));
        return named.map((name) => ({ ...rows[name], id: id(name), parent: id(rows[name].parent), group: id(rows[name].group) }));
    };
    const keys = (roots, first) => {
        const found = [];
        each(roots, ({ id, key, name }) => found.push([key, id === null || id > 2 ** 31 ? name : id - first]));
        return found.sort(([one], [other]) => (one < other ? -1 : 1));
    };
    return { tree, numbered, keys, keep, each, row, hostile, ...(await import('/names.js')) };
})()";

#[test]
fn tracks_have_keys_of_their_own_whatever_their_names_are() {
    let Some((_viewer, mut browser)) = opened("clerks") else { return };
    let found = browser.value(&format!(
        "{TRACKS}.then(({{ tree, numbered, keys, hostile, toLink, ofLink }}) => {{
            const rows = numbered(hostile(), 100);
            const one = keys(tree(rows), 100);
            const other = keys(tree(numbered(hostile(), 5000).reverse()), 5000);
            // Links have the same names.
            const known = new Map(rows.map((row) => [row.id, row]));
            const isLink = ([key, place]) => toLink(known, place + 100, true) === key && ofLink(known, key) === place + 100;
            const wrong = one.filter((pair) => !pair[0].startsWith('+') && !isLink(pair));
            return {{ one, other, wrong, count: rows.length }};
        }})"
    ));
    let keys: Vec<&str> =
        found["one"].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
    // All rows, and CPUs, counters, what is not followed, and the tasks of a process whose row is not there.
    assert_eq!(keys.len() as u64, found["count"].as_u64().unwrap() + 4);
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
    assert_eq!(found["one"], found["other"]);
    assert_eq!(found["wrong"], object!([]));
    let earliest = |key: &str| keys.iter().position(|one| *one == key).map(|at| &found["one"][at][1]);
    let (first, last) = (earliest("t7").unwrap(), earliest("t7~2").unwrap());
    assert_eq!(first.as_u64().unwrap() + 1, last.as_u64().unwrap(), "the second and the third thread");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// What is folded stays so when the only task of its name gets a second one, a process tasks of a second
/// name, and a recording its first counter; rows have other numbers then.
#[test]
fn what_is_folded_stays_so_while_groups_grow() {
    let Some((_viewer, mut browser)) = opened("clerks") else { return };
    let found = browser.value(&format!(
        "{TRACKS}.then(({{ tree, numbered, keep, each, row }}) => {{
            const rows = {{ p7: row('process', 7, 'a'), p8: row('process', 8, 'b', {{ is_followed: false }}) }};
            const name = (at, members) => (rows[`tasks ${{at}}`] = row('tasks', at, `name ${{at}}`, {{ parent: 'p7', members }}));
            const task = (number, at) => (rows[`task ${{number}}`] = row('task', number, `name ${{at}}`, {{ parent: 'p7', group: `tasks ${{at}}` }}));
            const find = (roots, fits) => {{
                const all = [];
                each(roots, (node) => fits(node) && all.push(node));
                if (all.length !== 1) throw new Error(`there are ${{all.length}}`);
                return all[0];
            }};
            const isTask = ({{ kind, number }}) => kind === 'task' && number === '5';
            const isGroup = ({{ kind, name }}) => kind === 'tasks' && name === 'name 0';
            const isOthers = ({{ name }}) => name === '1 process, not followed';
            const grow = (before, first) => {{
                const now = tree(numbered(rows, first));
                const numbers = keep(before, now);
                return [now, numbers];
            }};
            name(0, 1);
            task(5, 0);
            rows.locks = row('locks', 0, '', {{ parent: 'task 5' }});
            const one = tree(numbered(rows, 100));
            [find(one, isTask).folded, find(one, isOthers).folded] = [false, false];
            name(0, 2);
            task(6, 0);
            const [two, numbers] = grow(one, 200);
            const seen = [find(two, isTask).folded, numbers.get(find(one, isTask).id) === find(two, isTask).id];
            find(two, isGroup).folded = true;
            name(1, 1);
            task(9, 1);
            rows.counter = row('counter', 0, 'x', {{ counter: {{ unit: '', least: 0, most: 1 }} }});
            const [three] = grow(two, 300);
            return [...seen, find(three, isTask).folded, find(three, isGroup).folded, find(three, isOthers).folded];
        }})"
    ));
    assert_eq!(found, object!([false, true, false, true, false]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
