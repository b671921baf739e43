//! `tracewing list`: events in the order of time, as babeltrace2 prints them, as their authors meant them, or
//! as JSON.

use crate::format::{EventFormat, EventFormatOption, TableFormat};
use crate::input::{Input, warn_of_incomplete};
use crate::no_result::ANY;
use crate::output::{Output, print_warning, raise_file_limit};
use crate::parts::{Part, RECORD_KERNEL, explain_missing};
use crate::screen::{self, Form};
use crate::table::First;
use clap::ValueEnum;
use std::process::ExitCode;
use tracewing_trace::{ClockStyle, FieldStyle, Listing, NameStyle, Recording, Style, print_details};
use tracewing_vocabulary::kernel;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    first: First,

    /// Continue with new events of traces that are still being written, until they are complete
    #[arg(long)]
    follow: bool,

    /// Print the super-trace: each event with the CPU, process, thread and task (user thread) that it belongs
    /// to
    #[arg(long = "super", conflicts_with_all = ["pretty", "details", "follow"])]
    super_trace: bool,

    #[command(flatten)]
    format: EventFormatOption,

    /// Print everything, message by message, in the layout of babeltrace2's details component: classes,
    /// streams, packets, events; =compact prints one line each
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "full",
        conflicts_with_all = ["count", "FilterArgs", "EventNames", "Processes", "TimeZone", "format", "pretty", "follow"]
    )]
    details: Option<Details>,

    /// Print the context of each event's thread, which `tracewing record --context` records; what is unknown
    /// is `unknown`
    #[arg(long, conflicts_with_all = ["super_trace", "details", "follow"])]
    context: bool,

    /// Print each event in its author's print form, with units
    #[arg(long, conflicts_with = "format")]
    pretty: bool,

    /// Print time stamps in cycles of the clock
    #[arg(long)]
    clock_cycles: bool,

    /// Print time stamps as seconds since the clock's origin
    #[arg(long)]
    clock_seconds: bool,

    /// Print time stamps with their date
    #[arg(long)]
    clock_date: bool,

    /// Do not print the time since the previous event
    #[arg(long)]
    no_delta: bool,

    /// What to print before the event's name: trace, trace:hostname, trace:domain, trace:procname,
    /// trace:vpid, loglevel, emf, all
    #[arg(long, short = 'f', value_name = "FIELD", value_delimiter = ',')]
    fields: Vec<String>,

    /// Which names to print: payload, context, scope, header, all, none
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    names: Vec<String>,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Details {
    /// Classes and fields
    Full,
    /// One line per message
    Compact,
}

const HELP: &str = "\
Examples:
  tracewing list my-trace                          everything, merged by time
  tracewing list my-trace -e 'sched_*' -n 20       the first 20 scheduler events
  tracewing list my-trace --from +1.5s --to +2s    half a second
  tracewing list my-trace --follow                 also what is recorded from now on
  tracewing list my-trace --where 'prev_comm == \"worker-0\" && $cpu == 0'
  tracewing list my-trace --pretty                 in their authors' print forms
  tracewing list my-trace --details                every class, packet and field
  tracewing list my-trace --super --task 'work/*' -e '*switch'
  tracewing list my-trace --from shop:served#3 --process shop --kernel
  tracewing list my-trace --format json | jq .event

TIME is one of
  +1.5s, +200ms, +10us, +5ns, +2min, +1h         after the beginning of the trace
  '2026-11-21 04:25:40.5', 2026-11-21T04:25:40Z  date and time
  04:25:40.934685633                             on the day the trace begins
  1795235140.934685633                           seconds since the clock's origin
  shop:served#3, shop:*#3                        the third event with such a name

--task, --tid and --process select events of the kernel and of programs by the thread or task that they belong to; a \
switch also belongs to the one that it leads to. With these options, the recording is read from its beginning, to \
find out which thread runs where. An event must match every given option, and at least \
one value of each.

CONDITION compares the fields of an event. A comparison with a field that the event lacks is unknown, and so is its \
negation; only events whose condition is true match.
  == != < <= > >=          numbers; == and != also text
  =~ !~                    text and a pattern: *, ?, [a-z], [!a-z]
  && || ! ( )              and, or, not
  flags & 0x10             a bit is set; (flags & 6) == 2 compares some of them
  state == \"running\"       an enumeration, by label or number
  point.x, sizes[0]        a member of a structure, an element of an array
  len(sizes)               number of elements, bytes of a text, 1 if an optional field has a value
  $cpu, $tid, $pid         contexts of the event, or if the trace has none, what was running
  $comm, $process          name of the thread, name of its process
  $task, $task_name        number of the task (0: none), its name
  $mode, $call, $state     user, syscall or interrupt; which system call; running, blocked, unknown, ...
  $event, $level           name of the event, its level in LTTng's numbers (smaller is more severe)

JSON has the keys ns, cycles, trace, stream_class, stream, event, packet_context, common_context, specific_context \
and payload; keys that an event lacks are left out. Enumerations are {\"value\": 1, \"labels\": [\"running\"]}.

--super prints the columns type (USER or KERN), date, pid, tid, cpu, thr (the task, with its name), code (the \
event class's id), name, param(s). ? means that no event shows it; - under thr means none, as in interrupts. The \
recording is read from its beginning, so the state at --from is known. JSON and CSV also have mode: user, syscall \
(call says which) or interrupt.

--follow prints packets at most 1.1 s after they are complete. It ends with Ctrl-C, or when the recording ends (only \
tracewing's recordings report that). If a packet appears more than 1.1 s after later events, its events are printed \
out of order.

The text is what babeltrace2 prints for the same trace and options, except that characters that control a terminal \
are escaped, as in \\u{9b}. Losses are reported on standard error. A damaged trace is printed up to \
the damage; an error then says what is wrong and where, and the exit status is not 0.";

/// Events of the kernel that the super-trace may lack.
const PARTS: [Part; 1] =
    [Part::interrupts("kernel events that happen in one may be shown as those of the interrupted thread")];

impl Args {
    /// Whether it prints events as they are recorded.
    pub fn follows(&self) -> bool {
        self.follow
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let format = args.format.format;
    let listing = Listing {
        format: format.of_list(args.pretty),
        super_trace: args.super_trace,
        context: args.context,
        style: Style {
            clock: ClockStyle {
                cycles: args.clock_cycles,
                seconds: args.clock_seconds,
                date: args.clock_date,
                zone: args.input.zone(),
            },
            delta: !args.no_delta,
            names: NameStyle::parse(&args.names)?,
            fields: FieldStyle::parse(&args.fields)?,
        },
        filter: args.input.filter()?,
        count: args.first.count,
        ..Listing::default()
    };
    raise_file_limit();
    if let Some(details) = args.details {
        let recording = Recording::open(args.input.traces()?)?;
        print_details(&recording, &mut screen::stdout(Form::Text), details == Details::Compact)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.follow {
        listing.follow(args.input.traces()?, &mut Output::new(format.into()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (recording, filter) = args.input.open()?;
    warn_of_incomplete(recording, &filter)?;
    let mut output = Output::new(format.into());
    listing.print(recording, &mut output)?;
    let has_head = match format {
        EventFormat::Text => args.super_trace,
        EventFormat::Json => false,
        EventFormat::Csv => true,
    };
    if output.lines() == usize::from(has_head) && args.first.count != Some(0) {
        print_warning(&ANY.why_empty_in(&args.input)?);
    }
    if args.super_trace && recording.has_event(kernel::SCHEDULER_GLOB) {
        explain_missing(&PARTS, RECORD_KERNEL, &mut std::io::sink(), TableFormat::Json, &args.input)?;
    }
    Ok(ExitCode::SUCCESS)
}
