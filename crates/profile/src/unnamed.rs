//! Code that was compiled at run time and has no names: why, in lines for the user at the end of a recording.

use std::collections::BTreeSet;

use tracewing_units::Pid;

use crate::map_place::Unused;
use crate::map_reader::Answer;
use crate::perf_map::Function;

/// With so many addresses of samples in code without names, a line says how it gets some.
const MANY_HITS: u64 = 20;
/// Lines about single maps.
const MOST_NOTICES: usize = 64;
/// Processes that a line lists.
const MOST_LISTED: usize = 8;

/// What has no names since the recording began.
#[derive(Default)]
pub(crate) struct Unnamed {
    notices: Vec<String>,
    /// Processes for which there is no room in them.
    unsaid: BTreeSet<Pid>,
    nameless: BTreeSet<Pid>,
    /// They had no map at first: some programs write it at their end.
    early: BTreeSet<Pid>,
    late: BTreeSet<Pid>,
    left_out: BTreeSet<Pid>,
    is_cut_short: bool,
}

impl Unnamed {
    /// The functions of a process whose map is at `path`, and which has `hits` samples in such code.
    pub(crate) fn functions(
        &mut self,
        pid: Pid,
        path: &str,
        hits: u64,
        answer: Answer,
    ) -> Option<Vec<Function>> {
        let why = match answer {
            Ok(functions) => {
                self.early.extend(self.nameless.take(&pid));
                return Some(functions);
            }
            Err(Unused::Absent) => {
                self.nameless.extend((hits >= MANY_HITS).then_some(pid));
                return None;
            }
            Err(Unused::Irregular) => "is not a regular file".to_owned(),
            Err(Unused::Foreign(user)) => format!("belongs to another user ({user})"),
            Err(Unused::Stale) => "is older than the process".to_owned(),
            Err(Unused::Unreadable(error)) => format!("cannot be opened ({error})"),
        };
        let notice = format!(
            "profile: {path} {why}, so the code that process {pid} compiled at run time has no names"
        );
        if !self.notices.contains(&notice) {
            if self.notices.len() < MOST_NOTICES {
                self.notices.push(notice);
            } else {
                self.unsaid.insert(pid);
            }
        }
        None
    }

    /// A process's map was not read in time.
    pub(crate) fn late(&mut self, pid: Pid) {
        self.late.insert(pid);
    }

    /// There was no room for a process's samples.
    pub(crate) fn left_out(&mut self, pid: Pid) {
        self.left_out.insert(pid);
    }

    /// Maps have more than is read.
    pub(crate) fn cut_short(&mut self) {
        self.is_cut_short = true;
    }

    /// Lines for the user.
    pub(crate) fn lines(self) -> Vec<String> {
        let Self { mut notices, unsaid, nameless, early, late, left_out, is_cut_short } = self;
        notices.sort();
        if !unsaid.is_empty() {
            let more = unsaid.len();
            notices
                .push(format!("profile: perf maps of {more} more processes are not used, for such reasons"));
        }
        if !late.is_empty() {
            notices.push(format!(
                "profile: reading the perf map took too long, so the code that {} compiled at run time lacks names",
                listed(&late)
            ));
        }
        if !early.is_empty() {
            notices.push(format!(
                "profile: code that {} compiled at run time has no names in archives that ended before there was a \
                 perf map",
                listed(&early)
            ));
        }
        if !left_out.is_empty() {
            let (more, processes) =
                (left_out.len(), if left_out.len() == 1 { "process" } else { "processes" });
            notices.push(format!(
                "profile: code that {more} more {processes} compiled at run time has no names: there was no room \
                 for the samples (256 processes at once, and the limit on open files)"
            ));
        }
        if is_cut_short {
            notices.push(
                "profile: some functions compiled at run time have no names: of all perf maps together, 1 GiB, \
                 1,048,576 names and 64 MiB of names are read"
                    .to_owned(),
            );
        }
        if let Some(one) = nameless.first() {
            let others = match nameless.len() - 1 {
                0 => String::new(),
                1 => " and 1 other".to_owned(),
                more => format!(" and {more} others"),
            };
            notices.push(format!(
                "profile: the code that process {one}{others} compiled at run time has no names, since there is no \
                 /tmp/perf-PID.map (java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit, node --perf-basic-prof, python -X perf)"
            ));
        }
        notices
    }
}

/// `process 1`, or `processes 1, 2 and 5 more`.
fn listed(pids: &BTreeSet<Pid>) -> String {
    let first: Vec<String> = pids.iter().take(MOST_LISTED).map(ToString::to_string).collect();
    let processes = if pids.len() == 1 { "process" } else { "processes" };
    let more = match pids.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{processes} {}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn each_reason_is_said_once_per_process() {
        let mut unnamed = Unnamed::default();
        for _ in 0..2 {
            for pid in [Pid(5), Pid(6)] {
                assert_eq!(unnamed.functions(pid, "/tmp/x", 1, Err(Unused::Stale)), None);
                assert_eq!(unnamed.functions(pid, "/tmp/x", MANY_HITS, Err(Unused::Absent)), None);
            }
            unnamed.late(Pid(7));
        }
        assert_eq!(unnamed.functions(Pid(8), "/tmp/x", 1, Err(Unused::Unreadable(Errno::ACCESS))), None);
        assert_eq!(unnamed.functions(Pid(9), "/tmp/x", 1, Err(Unused::Absent)), None);
        let lines = unnamed.lines();
        let begins = [
            "profile: /tmp/x cannot be opened (Permission denied",
            "profile: /tmp/x is older than the process, so the code that process 5 ",
            "profile: /tmp/x is older than the process, so the code that process 6 ",
            "profile: reading the perf map took too long, so the code that process 7 ",
            "profile: the code that process 5 and 1 other ",
        ];
        assert_eq!(lines.len(), begins.len(), "{lines:?}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
    }

    #[test]
    fn lines_are_bounded_and_say_so() {
        let mut unnamed = Unnamed::default();
        for number in 0..MOST_NOTICES as i32 + 3 {
            unnamed.functions(Pid(number), "/tmp/x", 1, Err(Unused::Stale));
            unnamed.late(Pid(number));
        }
        unnamed.left_out(Pid(1));
        unnamed.cut_short();
        let lines = unnamed.lines();
        assert_eq!(lines.len(), MOST_NOTICES + 4);
        assert!(lines[MOST_NOTICES].contains(" 3 more processes "), "{}", lines[MOST_NOTICES]);
        let late = &lines[MOST_NOTICES + 1];
        assert!(late.contains("processes 0, 1, 2, 3, 4, 5, 6, 7 and 59 more "), "{late}");
        assert!(lines[MOST_NOTICES + 2].contains(" 1 more process "), "{}", lines[MOST_NOTICES + 2]);
    }

    #[test]
    fn a_map_that_is_written_at_the_end_is_not_called_absent() {
        let mut unnamed = Unnamed::default();
        assert_eq!(unnamed.functions(Pid(5), "/tmp/x", MANY_HITS, Err(Unused::Absent)), None);
        assert_eq!(unnamed.functions(Pid(5), "/tmp/x", 1, Ok(Vec::new())), Some(Vec::new()));
        let lines = unnamed.lines();
        assert!(
            lines.len() == 1 && lines[0].contains("process 5 ") && lines[0].contains("archives"),
            "{lines:?}"
        );
    }

    #[test]
    fn functions_are_passed_on() {
        let mut unnamed = Unnamed::default();
        assert_eq!(unnamed.functions(Pid(5), "/tmp/x", 1, Ok(Vec::new())), Some(Vec::new()));
        assert!(unnamed.lines().is_empty());
    }
}
