//! What `tracewing latency` accepts.

use crate::format::TableFormatOption;
use crate::input::Input;
use crate::table::reference;
use crate::table::{Choice, Sort};
use tracewing_analysis::{EventPattern, Nesting};
use tracewing_trace::Variable;

const HELP: &str = "\
Examples:
  tracewing latency my-trace --begin shop:enqueued --end shop:served --match order
      from an order's entry into the queue to its answer: two events with the same value of `order`
  tracewing latency my-trace --begin 'irq_softirq_entry where vec == 3' --end shop:enqueued \\
    --nested queue
      from the arrival of a packet in the kernel (softirq 3) until the server puts the order into its queue
  tracewing latency my-trace --begin sched_waking --end sched_switch --match tid=next_tid \\
    --nested latest
      from the wake of a thread until it has a CPU, and what it did in the three worst cases
  tracewing latency my-trace --begin 'syscall_entry_*' --end 'syscall_exit_*' --match '$tid' \\
    --show histogram
      the time that system calls take
  tracewing latency my-trace --begin 'syscall_entry_*' --end 'syscall_exit_*' --match '$tid' \\
    --by '$event'
      the same for each system call; use --by '$process' for each process
  tracewing latency my-trace --begin quotes:request --end quotes:answer --match '$task' \\
    --format csv --show worst -n 1000000
      one line for each period

A PATTERN is a shell pattern for names of events; a condition on the event's fields may follow after ` where `, as \
for --where. --match says what must be equal in both events: a field, a context ($tid, $pid, $cpu), $task (the user \
thread), or A=B if the field has the name A in the begin event and B in the end event. Without --match, any begin \
event fits any end event. An event that matches both patterns ends one period and begins the next.

--by adds figures for each value of the end event: a field, a context, a column such as $process, $tid or $task, or \
$event, the event's name; the groups with the longest total time come first. With --match …=next_tid or thread=next, \
a switch belongs to the thread or task that it leads to.

Quantiles are exact up to 4 million periods, and beyond that within 0.1 %. For the longest periods, the recording is \
read a second time to show what the thread and task of the end event did. If the end event is a switch, that is the \
thread that leaves the CPU, or with --match …=next_tid the one that gets it. Unmatched begin and end events are \
counted.

With --columns, JSON has the longest periods as rows, like CSV; without it, JSON has everything that is known about \
them.
";

/// What `tracewing latency` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&super::views())))]
pub struct Args {
    /// Events at which a period begins
    #[arg(long, value_name = "PATTERN")]
    pub begin: EventPattern,

    /// Events at which the period ends
    #[arg(long, value_name = "PATTERN")]
    pub end: EventPattern,

    /// Pair begin and end events in which FIELD has the same value; separate several fields with commas
    #[arg(long = "match", value_name = "FIELD|A=B", value_delimiter = ',', value_parser = pair)]
    pub matched: Vec<(Variable, Variable)>,

    /// Also print the figures for each value of FIELD in end events; separate several fields with commas
    #[arg(long, value_name = "FIELD", value_delimiter = ',', value_parser = variable)]
    pub by: Vec<Variable>,

    /// Which begin event an end event is paired with if several are open
    #[arg(long, value_enum, default_value_t)]
    pub nested: Nested,

    /// Print the N longest periods
    #[arg(short = 'n', long = "worst", value_name = "N", default_value_t = 3)]
    pub worst: usize,

    /// What to print; separate several with commas [default: all; as CSV, figures]
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub show: Vec<Show>,

    #[command(flatten)]
    pub sort: Sort,

    #[command(flatten)]
    pub choice: Choice,

    #[command(flatten)]
    pub format: TableFormatOption,

    // Last, since its heading applies to all that follows.
    #[command(flatten)]
    pub input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Nested {
    /// The latest; the others stay open
    #[default]
    Stack,
    /// The earliest; the others stay open
    Queue,
    /// The latest; the others remain without an end
    Latest,
    /// The earliest; the others remain without an end
    First,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Show {
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

impl From<Nested> for Nesting {
    fn from(nested: Nested) -> Self {
        match nested {
            Nested::Stack => Nesting::Stack,
            Nested::Queue => Nesting::Queue,
            Nested::Latest => Nesting::Latest,
            Nested::First => Nesting::First,
        }
    }
}
