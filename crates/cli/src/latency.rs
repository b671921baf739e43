//! `tracewing latency`: how long it takes from one event to another, as tables, JSON or CSV.

mod rows;
mod worst;

use crate::across;
use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::{ANY, say};
use crate::parts::{Part, RECORD_KERNEL, tell_missing};
use crate::progress::Watch;
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Layout, Table, heads};
use anyhow::{Result, bail, ensure};
use std::io::{Result as IoResult, Write};
use std::process::ExitCode;
use tracewing_analysis::{self as analysis, EventPattern, Latency, LatencyTable, Nesting, Period, Question};
use tracewing_trace::{Filter, TimePoint, Variable};

const HELP: &str = "\
Examples:
  tracewing latency my-trace --begin sent_msg --end received_msg --match message
      two events with the same value of the field `message`
  tracewing latency my-trace --begin 'irq_softirq_entry where vec == 3' --end 'server:received' --nested queue
      from when the kernel had a message to its treatment by the program
  tracewing latency my-trace --begin sched_waking --end sched_switch --match tid=next_tid --nested latest
      from a thread's waking to when it has a CPU; what it did in the three worst cases
  tracewing latency my-trace --begin 'syscall_entry_*' --end 'syscall_exit_*' --match '$tid' --show histogram
      system calls, each on its own thread
  tracewing latency my-trace --begin 'syscall_entry_*' --end 'syscall_exit_*' --match '$tid' --by '$event'
      the same for each system call by itself; --by '$process' for each process
  tracewing latency my-trace --begin job:start --end job:end --match '$task' --format csv --show worst -n 1000000
      every period as a line

A PATTERN is a shell pattern for names of events, and behind ` where ` a condition as for --where, on that event's fields. \
--match says what must be equal at begin and end: a field, a context ($tid, $pid, $cpu), $task (the user thread), or A=B where \
the begin calls it A and the end B. Without --match, any begin fits any end. An event that fits both patterns ends a period and \
begins the next.

--by tells the figures also by what the ends have in common: a field, a context, a column such as $process, $tid or $task, or $event, the event's name; the groups with the longest time in all first. A switch is of whom it leads to, where --match …=next_tid or thread=next says so.

Quantiles are exact up to 4 million periods, and beyond that within 0.1 %. Of the worst periods it is told what the end's \
thread and task did in them, for which the recording is read a second time; of a switch it is the thread that leaves the CPU, or with --match …=next_tid the one \
that gets it. Begins without an end and ends without a begin \
are counted.
";

/// What `tracewing latency` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views())))]
pub struct Args {
    /// Events with which a period begins
    #[arg(long, value_name = "PATTERN")]
    begin: EventPattern,

    /// Events with which it ends
    #[arg(long, value_name = "PATTERN")]
    end: EventPattern,

    /// Begin and end have the same value of this; several with commas
    #[arg(long = "match", value_name = "FIELD|A=B", value_delimiter = ',', value_parser = pair)]
    matched: Vec<(Variable, Variable)>,

    /// Tell the figures also for each value of this, of the end; several with commas
    #[arg(long, value_name = "FIELD", value_delimiter = ',', value_parser = variable)]
    by: Vec<Variable>,

    /// To which begin an end belongs if there are several
    #[arg(long, value_enum, default_value_t)]
    nested: Nested,

    /// How many of the longest periods to tell
    #[arg(short = 'n', long = "worst", value_name = "N", default_value_t = 3)]
    worst: usize,

    /// What to print; several with commas [default: all; as CSV, figures]
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    show: Vec<Show>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    // Last, since its heading goes on for what follows.
    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Nested {
    /// The latest; those before it wait for ends of their own
    #[default]
    Stack,
    /// The earliest; those after it wait for ends of their own
    Queue,
    /// The latest; those before it have no end
    Latest,
    /// The earliest; those after it have no end
    First,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Show {
    /// Count, mean, quantiles
    Figures,
    /// The same for each value of --by
    Groups,
    /// How many took how long
    Histogram,
    /// The longest ones
    Worst,
}

fn variable(text: &str) -> Result<Variable, String> {
    text.trim().parse::<Variable>().map_err(|error| error.to_string())
}

/// `A`, or `A=B`.
fn pair(text: &str) -> Result<(Variable, Variable), String> {
    let (begin, end) = text.split_once('=').unwrap_or((text, text));
    Ok((variable(begin)?, variable(end)?))
}

/// What is told of the worst periods by events that a recording may be without.
const PARTS: [Part; 4] = [
    Part::switches("what threads did in the worst periods is not known"),
    Part::system_calls("what threads did on CPUs in the worst periods is `running`"),
    Part::wakes("when threads were blocked or ready in the worst periods is not known, nor who woke them"),
    Part::interrupts("their time in the worst periods is that of the threads that they interrupted"),
];

pub fn run(args: &Args) -> Result<ExitCode> {
    let show = match (&args.show[..], args.format) {
        ([_, _, ..], TableFormat::Csv) => {
            bail!("CSV is one table: give --show one of figures, groups, histogram, worst")
        }
        ([], TableFormat::Csv) if args.by.is_empty() => vec![Show::Figures],
        ([], TableFormat::Csv) => vec![Show::Groups],
        ([], _) => {
            let mut show = vec![Show::Figures, Show::Groups, Show::Histogram, Show::Worst];
            show.retain(|part| match part {
                Show::Groups => !args.by.is_empty(),
                Show::Worst => args.worst > 0,
                _ => true,
            });
            show
        }
        (show, _) => show.to_vec(),
    };
    ensure!(!show.contains(&Show::Groups) || !args.by.is_empty(), "--show groups needs --by");
    let question = Question {
        begin: args.begin.clone(),
        end: args.end.clone(),
        by: args.matched.clone(),
        group: args.by.clone(),
        nesting: match args.nested {
            Nested::Stack => Nesting::Stack,
            Nested::Queue => Nesting::Queue,
            Nested::Latest => Nesting::Latest,
            Nested::First => Nesting::First,
        },
        worst: if show.contains(&Show::Worst) { args.worst } else { 0 },
    };
    let (recording, filter) = args.input.open()?;
    let watch = Watch::new()?;
    let mut latency = Latency::new(&question, &recording)?;
    let mut ran = analysis::run(&recording, &filter, &mut latency, &mut |progress| watch.show(progress))?;
    let (mut table, mut episodes) = latency.finish();
    if let Some(until) = episodes.until().filter(|_| !ran.stopped) {
        let (from, to) = (filter.from, Some(TimePoint::Absolute(until)));
        let filter = Filter { from, to, zone: filter.zone, ..Filter::default() };
        let again = analysis::run(&recording, &filter, &mut episodes, &mut |progress| watch.show(progress))?;
        if !again.stopped {
            episodes.finish(&mut table, &again);
        }
        ran.failure = ran.failure.or(again.failure);
    }
    drop(watch);
    let mut out = screen::stdout(args.format.into());
    match args.format {
        TableFormat::Table => print(&mut out, &table, &show, args)?,
        TableFormat::Json => {
            serde_json::to_writer(&mut out, &table).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => show.iter().try_for_each(|part| of_part(*part, &table, args).csv(&mut out))?,
    }
    let periods = table.distribution.count + table.unmatched_begins + table.unmatched_ends;
    if periods + table.without_key == 0
        && let Some(why) = ANY.why_no_event(&args.input)?
    {
        say(&mut out, args.format, &why)?;
    }
    if show.contains(&Show::Worst) && table.worst.iter().any(|period| period.lwp.is_some()) {
        tell_missing(&PARTS, RECORD_KERNEL, &mut out, args.format, &args.input)?;
    }
    out.flush()?;
    if !ran.stopped {
        warn_of_locks(&table, &args.input)?;
    }
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// Warns of locks that were held across an `.await` while the worst periods lasted, if their tasks waited for
/// such.
fn warn_of_locks(table: &LatencyTable, input: &Input) -> Result<()> {
    let waits_for = |period: &Period, kind: &str| {
        let task = period.user_thread.as_ref();
        task.is_some_and(|task| task.times.blocked_on.iter().any(|part| part.on.as_deref() == Some(kind)))
    };
    let waits = || table.worst.iter().filter(|period| period.user_thread.is_some());
    let [Some(from), Some(to)] =
        [waits().map(|period| period.begin.ns).min(), waits().map(|period| period.end.ns).max()]
    else {
        return Ok(());
    };
    let filter = Filter {
        from: Some(TimePoint::Absolute(from)),
        to: Some(TimePoint::Absolute(to)),
        ..Filter::default()
    };
    across::warn(input, &filter, |across| {
        waits().any(|period| period.end.process == across.process && waits_for(period, across.kind))
    })
}

fn print(out: &mut impl Write, table: &LatencyTable, show: &[Show], args: &Args) -> IoResult<()> {
    for (place, part) in show.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        match part {
            Show::Worst => worst::print(out, table, &args.input)?,
            show => of_part(*show, table, args).print(out)?,
        }
    }
    let LatencyTable { distribution, unmatched_begins, unmatched_ends, .. } = table;
    writeln!(
        out,
        "\n{} periods; {unmatched_begins} begins without an end, {unmatched_ends} ends without a begin",
        distribution.count
    )?;
    let remarks = [
        (table.without_key, "begins or ends have nothing to match them by"),
        (table.across_losses, "periods have losses of events in them, and may be wrong"),
        (table.forgotten, "begins were forgotten for want of memory"),
    ];
    for (count, remark) in remarks.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count} {remark}")?;
    }
    if distribution.quantile_error > 0.0 {
        writeln!(out, "The quantiles are within {} %.", distribution.quantile_error * 100.0)?;
    }
    Ok(())
}

pub fn views() -> Vec<View> {
    vec![
        View::new("latency", heads(rows::columns_of_all())),
        View::new("latency --by", heads(rows::columns_of_groups())),
        View::new("latency --show histogram", heads(rows::columns_of_bins())),
        View::new("latency --show worst --format csv", heads(rows::columns_of_worst())),
    ]
}

/// A part of the output as a table.
fn of_part(part: Show, table: &LatencyTable, args: &Args) -> Table {
    let format = args.format;
    match part {
        Show::Figures => Layout::all(&rows::columns_of_all(), format).table(&[rows::all(table)]),
        Show::Groups => {
            Layout::all(&rows::columns_of_groups(), format).table(&rows::groups(&table.groups, &args.by))
        }
        Show::Histogram => {
            Layout::all(&rows::columns_of_bins(), format).table(&rows::bins(&table.distribution))
        }
        Show::Worst => {
            let lines = rows::worst(table, args.input.zone());
            Layout::all(&rows::columns_of_worst(), format).table(&lines)
        }
    }
}
