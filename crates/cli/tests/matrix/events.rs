//! What commands report of single events and of their numbers, against a program's account.

use super::checks::Checks;
use super::harness::{self, Printed, RunExt, json};
use super::server_log::{number, sum_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

impl Checks<'_> {
    pub fn counts(&self) {
        let table = json(self.trace, &["stats"]);
        let rows = |member: &str| table[member].as_array().unwrap().iter();
        for (class, count, command) in &self.account.counts {
            let is_it = |row: &&Value| {
                let name = row["name"].as_str().unwrap();
                name == *class || class.ends_with(':') && name.starts_with(class)
            };
            let found = number(&sum_of(rows("events").filter(is_it), [("events", "events")]), "events");
            let is_whole = self.whole.contains(command);
            let is_right = found <= *count && (!is_whole || found == *count);
            assert!(is_right, "{}, stats: {found} of {count} x {class}", self.how);
        }
        let all = ["events", "streams", "processes"]
            .map(|member| number(&sum_of(rows(member), [("events", "events")]), "events"));
        assert!(all.iter().all(|sum| *sum == all[0]), "{}: {all:?} in {table}", self.how);
        let info = json(self.trace, &["info"]);
        let traces = info["traces"].as_array().unwrap().iter();
        let in_info = |of: &str| {
            let rows = traces.clone().flat_map(|trace| trace[of].as_array().unwrap());
            number(&sum_of(rows, [("events", "events")]), "events")
        };
        // An extract also has earlier events, for names.
        let [in_streams, of_classes] = ["streams", "event_classes"].map(in_info);
        let are_same = in_streams == of_classes && in_streams >= all[0];
        assert!(are_same, "{}, info: {in_streams}, {of_classes} events of {}", self.how, all[0]);
    }

    /// `list` and `list --super`: each event of requests is there once at most, at its time, in its thread
    /// and its task.
    pub fn events(&self) {
        let ([begin, end, field], requests) = &self.account.requests;
        let mut seen: BTreeMap<(u64, usize), u64> = BTreeMap::new();
        for (command, is_super) in [(&["list"][..], false), (&["list", "--super"], true)] {
            let options = ["-e", begin, "-e", end, "--format", "json"];
            let output = harness::of(self.trace, &[command, &options].concat()).ran();
            if !output.status.success() {
                // Neither event is in the recording.
                assert!(!self.whole.contains(&"latency"), "{}: {}", self.how, output.notes());
                return;
            }
            seen.clear();
            for line in output.text().lines() {
                let event: Value = serde_json::from_str(line).unwrap();
                let (name, payload) = if is_super { ("name", "params") } else { ("event", "payload") };
                let which = usize::from(event[name] == *end);
                let id = number(&event[payload], field);
                let request = &requests[&id];
                let is_then = request.stamps[which].has(number(&event, "cycles"));
                assert!(is_then, "{}, {command:?}: {line}: {request:?}", self.how);
                *seen.entry((id, which)).or_default() += 1;
                if is_super {
                    self.place(&event, request.task);
                }
            }
            let is_whole = self.whole.contains(&"latency");
            let is_each =
                seen.values().all(|count| *count == 1) && (!is_whole || seen.len() == 2 * requests.len());
            assert!(is_each, "{}, {command:?}: {seen:?}", self.how);
        }
    }

    /// Where an event of a request was recorded.
    fn place(&self, event: &Value, task: Option<u64>) {
        let is_of_process = self.account.process.is_none_or(|(pid, _)| event["pid"] == pid);
        assert!(is_of_process && event["call"].is_null(), "{}: {event}", self.how);
        let Some(task) = task else { return };
        let is_right = match event["thr"].as_u64() {
            Some(known) => known == task,
            None => !self.whole.contains(&"tasks"),
        };
        assert!(is_right, "{}: {event} of task {task}", self.how);
    }
}

/// `convert` changes nothing.
pub fn convert(how: &str, trace: &Path) {
    let folder = tempfile::tempdir().unwrap();
    for format in ["ctf1", "ctf2"] {
        let to = folder.path().join(format);
        harness::of(trace, &["convert", "--format", format, "-o", to.to_str().unwrap()]).succeeds();
        for command in [&["stats"][..], &["threads", "-n", "1000"], &["locks"], &["functions"], &["tasks"]] {
            let [mut here, mut there] = [trace, &to].map(|trace| json(trace, command));
            // The size is of what was converted, and what is state only a recorder says.
            for table in [&mut here, &mut there] {
                without_sizes(table);
                if let Some(total) = table.get_mut("total").and_then(Value::as_object_mut) {
                    total.remove("state_events");
                }
            }
            assert_eq!(here, there, "{how}, {format}: {command:?}");
        }
    }
}

/// Takes the numbers of bytes out of a table.
fn without_sizes(table: &mut Value) {
    match table {
        Value::Array(rows) => rows.iter_mut().for_each(without_sizes),
        Value::Object(members) => {
            members.retain(|name, _| name != "bytes");
            members.values_mut().for_each(without_sizes);
        }
        _ => {}
    }
}
