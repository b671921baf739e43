//! The input of every command that analyses recordings: where they are, and which part of them is chosen.

use crate::options::{EventNames, Processes, TimeZone};
use crate::output::{
    count_of, print_error, print_warning, raise_file_limit, warn_of_missing, warn_of_unmatched,
};
use crate::progress::Watch;
use crate::table::period;
use crate::traces::Traces;
use anyhow::Result;
use std::cell::OnceCell;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_analysis::{Analysis, Ran};
use tracewing_index::Cache;
use tracewing_trace::{Filter, Level, Predicate, Recording, ThreadPattern, TimePoint, TimeRange, Zone};
use tracewing_units::{Cpu, Tid, Timestamp};

/// The exit code of a command that Ctrl-C has ended, as shells have it.
pub const STOPPED: u8 = 130;

/// Recordings, and options that choose from them.
#[derive(Debug, clap::Args)]
pub struct Input {
    #[command(flatten)]
    traces: Traces,

    #[command(flatten)]
    filter: FilterArgs,

    /// The recordings, once they are open; they are used again to explain a result.
    #[arg(skip)]
    opened: OnceCell<Recording>,
}

/// Options that choose a part of a recording.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Filters")]
pub struct FilterArgs {
    /// Leave out everything before TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,

    /// Leave out everything after TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Vec<String>,

    /// Only these tasks (user threads): NUMBER, PROCESS/NUMBER, or names that match GLOB; may be given
    /// several times
    #[arg(long = "task", value_name = "NUMBER|GLOB")]
    tasks: Vec<String>,

    /// Only threads (LWPs) with this number; separate several with commas
    #[arg(long = "tid", value_name = "TID", value_delimiter = ',', value_parser = tid)]
    tids: Vec<Tid>,

    #[command(flatten)]
    processes: Processes,

    /// Only these CPUs, as in 0,2-3
    #[arg(long = "cpu", value_name = "LIST", value_delimiter = ',', value_parser = cpus)]
    cpus: Vec<RangeInclusive<Cpu>>,

    #[command(flatten)]
    names: EventNames,

    /// Only events of programs
    #[arg(long, conflicts_with = "kernel")]
    user: bool,

    /// Only events of the kernel
    #[arg(long)]
    kernel: bool,

    /// Only events that satisfy CONDITION, as in 'depth > 3 && $cpu == 1'
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Predicate>,

    #[command(flatten)]
    time_zone: TimeZone,
}

impl Input {
    /// Opens the recordings, and warns once of missing parts, and of patterns without a match.
    ///
    /// # Errors
    /// There is no recording, or an option is invalid for it.
    pub fn open(&self) -> Result<(&Recording, Filter)> {
        let filter = self.filter.filter()?;
        if let Some(recording) = self.opened.get() {
            return Ok((recording, filter));
        }
        let recording = open(self.traces.folders()?, &filter)?;
        Ok((self.opened.get_or_init(|| recording), filter))
    }

    /// Whether an option leaves out anything.
    pub fn chooses(&self) -> bool {
        self.filter.chooses()
    }

    /// Takes the values of `--to` that do not mean a time.
    pub fn take_to<T>(&mut self, meaning: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let taken = self.filter.to.iter().filter_map(|text| meaning(text)).collect();
        self.filter.to.retain(|text| meaning(text).is_none());
        taken
    }

    /// The values of `--to` that are left: times.
    pub fn to(&self) -> &[String] {
        &self.filter.to
    }

    /// Takes the last of several places of recordings, for a command that writes there.
    pub fn take_last(&mut self) -> Option<PathBuf> {
        self.traces.take_last()
    }

    /// Where the recordings are.
    ///
    /// # Errors
    /// See [`Traces::folders`].
    pub fn traces(&self) -> Result<&[PathBuf]> {
        self.traces.folders()
    }

    /// Feeds an analysis what was chosen; a terminal shows how far it is, and Ctrl-C ends it with the result
    /// so far.
    ///
    /// # Errors
    /// See [`Input::open`].
    pub fn analyse(&self, analysis: &mut impl Analysis) -> Result<Ran> {
        let (recording, filter) = self.open()?;
        analyse(recording, &filter, analysis)
    }

    /// Analyses another recording with the same options.
    ///
    /// # Errors
    /// See [`Input::open`].
    pub fn analyse_other(&self, trace: &Path, analysis: &mut impl Analysis) -> Result<Ran> {
        let filter = self.filter.filter()?;
        let recording = open(&[trace.to_owned()], &filter)?;
        analyse(&recording, &filter, analysis)
    }

    /// The zone of the user's times.
    pub fn zone(&self) -> Zone {
        self.filter.zone()
    }

    /// What the options ask for.
    ///
    /// # Errors
    /// A time is invalid.
    pub fn filter(&self) -> Result<Filter> {
        self.filter.filter()
    }
}

fn open(traces: &[PathBuf], filter: &Filter) -> Result<Recording> {
    raise_file_limit();
    let recording = Recording::open(traces)?;
    warn_of_missing(&recording);
    warn_of_unmatched(&recording, &filter.events);
    filter.remark(&recording).iter().for_each(|line| print_warning(line));
    let is_searched = matches!(filter.to, Some(TimePoint::Occurrence { .. }));
    if (filter.from.is_some() || is_searched)
        && let Ok(cache) = Cache::new(None)
        && let Some(checkpoints) = cache.checkpoints(&recording)
    {
        recording.use_checkpoints(Box::new(checkpoints));
    }
    Ok(recording)
}

fn analyse(recording: &Recording, filter: &Filter, analysis: &mut impl Analysis) -> Result<Ran> {
    let watch = Watch::new()?;
    Ok(tracewing_analysis::run(recording, filter, analysis, &mut |progress| watch.show(progress))?)
}

/// Warns below an analysis of events that were lost in the time that it is about.
pub fn warn_of_losses(ran: &Ran) {
    let known = (ran.lost_events > 0).then(|| count_of(ran.lost_events as usize, "event"));
    let unknown = (ran.lost_parts > 0)
        .then(|| format!("an unknown number of events in {}", count_of(ran.lost_parts as usize, "place")));
    let lost: Vec<_> = known.into_iter().chain(unknown).collect();
    if !lost.is_empty() {
        print_warning(&format!(
            "{} were lost in this time: they are not counted, and what they would show is unknown",
            lost.join(" and ")
        ));
    }
    warn_of_overwritten(ran.begin_ns, ran.incomplete_until);
}

/// Warns that events are missing from the beginning until a time.
fn warn_of_overwritten(begin: Timestamp, incomplete_until: Option<Timestamp>) {
    if let Some(until) = incomplete_until.filter(|until| *until > begin) {
        print_warning(&format!(
            "older events were overwritten in some buffers: the first {} are incomplete, and what the missing events would show is unknown",
            period(until.abs_diff(begin))
        ));
    }
}

/// Warns that events are missing at the beginning of what is chosen, for commands that analyse nothing.
///
/// # Errors
/// The filter makes no sense for the recording.
pub fn warn_of_incomplete(recording: &Recording, filter: &Filter) -> Result<()> {
    // To find a range, it may have to be read.
    let until = |range| recording.incomplete_until(range, |stream| filter.may_miss(stream));
    if until(TimeRange::ALL).is_some() {
        let range = filter.range(recording)?;
        let begin = recording.begin().unwrap_or(Timestamp::MIN).max(range.begin);
        warn_of_overwritten(begin, until(range));
    }
    Ok(())
}

/// Called after an analysis has printed its result: explains why it does not cover the whole recording.
pub fn conclude(ran: Ran) -> ExitCode {
    if !ran.idle_unreported.is_empty() {
        let cpus: Vec<_> = ran.idle_unreported.iter().map(Cpu::to_string).collect();
        print_warning(&format!(
            "this machine's kernel recorded no switch from the idle thread of CPU {}: when other threads began to run there is unknown",
            cpus.join(", ")
        ));
    }
    if ran.without_calls > 0 {
        print_warning(&format!(
            "no event shows that the kernel records all system calls of {} (it records none of 32-bit programs, nor int 0x80): \
             when they were in one is unknown",
            count_of(ran.without_calls as usize, "thread")
        ));
    }
    if let Some((from, to)) = ran.disordered {
        print_warning(&format!(
            "stamps of a stream go back (within {}; `tracewing list` says where): in which order its events happened is unknown, \
             and what they show may be wrong",
            period(to.abs_diff(from))
        ));
    }
    if ran.misfits > 0 {
        print_warning(&format!(
            "left out: {} with impossible values, such as negative thread numbers",
            count_of(ran.misfits as usize, "event")
        ));
    }
    if ran.died_unseen > 0 {
        print_warning(&format!(
            "no event (sched_process_exit) shows when {} that died left their programs: how long they were in those is unknown",
            count_of(ran.died_unseen as usize, "thread")
        ));
    }
    match ran.failure {
        None if ran.stopped => {
            print_warning("stopped before the end; this is what was read up to then");
            ExitCode::from(STOPPED)
        }
        None => ExitCode::SUCCESS,
        Some(error) => {
            print_error(&error.into());
            ExitCode::FAILURE
        }
    }
}

impl FilterArgs {
    fn chooses(&self) -> bool {
        let Self { from, to, tasks, tids, processes, cpus, names, user, kernel, condition, time_zone: _ } =
            self;
        let lists = [tasks, &processes.processes, to];
        from.is_some()
            || condition.is_some()
            || *user
            || *kernel
            || !names.choose_all()
            || lists.iter().any(|list| !list.is_empty())
            || !(tids.is_empty() && cpus.is_empty())
    }

    /// The zone of the user's times.
    pub fn zone(&self) -> Zone {
        self.time_zone.zone()
    }

    /// What the options ask for.
    ///
    /// # Errors
    /// A time is invalid.
    pub fn filter(&self) -> Result<Filter> {
        let mut filter = Filter {
            zone: self.zone(),
            events: self.names.events.clone(),
            exclude: self.names.exclude.clone(),
            predicate: self.condition.clone(),
            level: match (self.user, self.kernel) {
                (true, _) => Some(Level::User),
                (_, true) => Some(Level::Kernel),
                _ => None,
            },
            threads: self.tasks.iter().map(|text| ThreadPattern::new(text)).collect(),
            tids: self.tids.clone(),
            processes: self.processes.patterns(),
            cpus: self.cpus.clone(),
            ..Filter::default()
        };
        anyhow::ensure!(self.to.len() <= 1, "--to is given {} times; a slice has one end", self.to.len());
        filter.set_range(self.from.as_deref(), self.to.first().map(String::as_str))?;
        Ok(filter)
    }
}

fn tid(text: &str) -> Result<Tid, String> {
    text.trim().parse().map(Tid).map_err(|_| "the number of a thread is expected".to_owned())
}

/// `3` or `2-5`.
fn cpus(text: &str) -> Result<RangeInclusive<Cpu>, String> {
    let number = |text: &str| text.trim().parse::<Cpu>().ok();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match number(first).zip(number(last)) {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => Err("give CPUs as in 0,2-3".to_owned()),
    }
}
