//! The commands whose tables are held against those of the whole recording, and where they may differ.

/// A table: the command, the member of its document with the rows, and what names a row there. Without a
/// member the rows are lines; `.` is the document itself, which is one row.
pub type Command = (&'static [&'static str], &'static str, &'static [&'static str]);

/// Stands for the whole recording.
pub const WHOLE: &str = "WHOLE";

pub const COMMANDS: &[Command] = &[
    (&["stats"], "events", &["trace", "name"]),
    (&["stats"], "streams", &["trace", "stream"]),
    (&["stats"], "processes", &["trace", "process"]),
    (&["list", "--super"], "", &["ns", "cpu", "name"]),
    (&["threads"], "threads", &["tid"]),
    (&["threads", "--active-time"], "threads", &["tid"]),
    (&["threads", "--by", "task"], "user_threads", &["process", "task"]),
    (&["threads", "--by", "process"], "processes", &["process"]),
    (&["sched", "latency"], "threads", &["tid"]),
    (&["sched", "timehist"], "", &["time_ns", "cpu", "tid"]),
    (&["tasks", "-n", "1000"], "tasks", &["process", "task"]),
    (&["tasks", "--by", "name"], "tasks", &["process", "name"]),
    (&["tasks", "--long-poll", "100us", "--blocking-poll", "10us"], "tasks", &["process", "task"]),
    (&["locks"], "locks", &["process", "lock", "kind"]),
    (&["locks", "--by", "thread"], "locks", &["process", "tid"]),
    (&["locks", "--by", "task"], "locks", &["process", "task"]),
    (&["locks", "--by", "caller"], "locks", &["process", "kind", "at"]),
    (&["locks", "--by", "chain"], "locks", &["process", "at"]),
    (&["locks", "--graph"], "graph", &["process", "waiter", "kind", "lock", "owner"]),
    (&["locks", "--histogram"], "histogram", &["measure", "from"]),
    (&["functions"], "functions", &["function"]),
    (&["functions", "--graph"], "functions", &["depth", "function"]),
    (&["functions", "--diff", WHOLE], "functions", &["function"]),
    (&["breakdown"], "rows", &["process", "section", "activity"]),
    (&["profile"], "profile", &["process", "function", "object"]),
    (&["profile", "--no-inline"], "profile", &["process", "function", "object"]),
    (&["profile", "--by", "object"], "profile", &["process", "object"]),
    (&["profile", "--by", "thread"], "profile", &["process", "tid"]),
    (&["profile", "--tree", "--least", "0"], "tree", &["process", "depth", "function"]),
    (&["profile", "--tree=callers", "--least", "0"], "tree", &["process", "depth", "function"]),
    (&["profile", "--counters"], "counters", &["counter"]),
    (
        &["latency", "--begin", "clerks:request", "--end", "clerks:response", "--match", "id", "-n", "1000"],
        "worst",
        &["key"],
    ),
    (
        &[
            "latency",
            "--begin",
            "clerks:request",
            "--end",
            "clerks:response",
            "--match",
            "id",
            "--nested",
            "queue",
        ],
        ".",
        &[],
    ),
    (
        &[
            "latency",
            "--begin",
            "clerks:request",
            "--end",
            "clerks:response",
            "--match",
            "id",
            "--by",
            "$process",
            "--nested",
            "first",
        ],
        "groups",
        &["group"],
    ),
    (
        &["latency", "--begin", "server:request", "--end", "server:response", "--match", "id", "-n", "1000"],
        "worst",
        &["key"],
    ),
    (
        &[
            "latency",
            "--begin",
            "server:request",
            "--end",
            "server:response",
            "--match",
            "id",
            "--show",
            "histogram",
        ],
        "histogram",
        &["from_ns"],
    ),
    (
        &[
            "latency",
            "--begin",
            "server:request",
            "--end",
            "server:response",
            "--match",
            "id",
            "--by",
            "$task",
            "--show",
            "groups,figures",
        ],
        "groups",
        &["group"],
    ),
    (
        &[
            "latency",
            "--begin",
            "syscall_entry_read",
            "--end",
            "syscall_exit_read",
            "--by",
            "$tid",
            "-n",
            "1000",
        ],
        "worst",
        &["begin.ns", "begin.cpu"],
    ),
    (
        &[
            "latency",
            "--begin",
            "sched_waking",
            "--end",
            "sched_switch",
            "--match",
            "tid=next_tid",
            "--nested",
            "latest",
            "-n",
            "1000",
            "--show",
            "worst",
        ],
        "worst",
        &["begin.ns", "begin.cpu"],
    ),
];

/// Forms of commands that are not held against the whole recording here, and why.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("list*", "`--super` has all that is derived"),
    ("info*", "it describes what is there"),
    ("latency --worst", "here by its short name"),
    ("locks --histogram=linear", "other bins of the same numbers"),
    ("locks --graph=dot", "the same as its table"),
    ("locks --svg", "a picture of its histogram"),
    ("functions --replay", "the same calls one by one"),
    ("* --flame-graph", "a picture of its tree"),
    ("critical-path*", "`slices` holds its steps"),
    ("export*", "`slices` holds what is exported; the formats have one model"),
    ("convert*", "events as they are"),
    ("extract*", "it makes the recordings here"),
    ("view*", "its own tests hold its statistics against `threads`"),
    ("index*", "its own tests hold its windows against `threads`"),
];

/// Columns of events that are counted, of which some are gone; what is not known, which grows; and numbers
/// that are names.
pub const ALWAYS: [&str; 13] = [
    "user_events",
    "events",
    "bytes",
    "per_second",
    "undetermined_ns",
    "unknown_ns",
    "unseen_ns",
    "process",
    "pid",
    "tid",
    "task",
    "user_thread",
    "code",
];

/// Rows for unknown parties: they contain what has a known one in the whole recording.
pub const UNKNOWN: [&str; 4] = [
    "activity \"unknown\"",
    "activity \"unseen\"",
    "process null",
    "section \"machine\" activity \"unknown\"",
];

/// Numbers that are others: the pattern of the events that are gone, of the command, and of the column
/// (`ROW`: the whole has no such row); and what the command then says.
pub const ALLOWED: &[(&str, &str, &str, &str)] = &[
    // Without sched_waking a thread is ready from sched_wakeup on, which comes later.
    ("sched_waking", "latency *", "*", "The recording lacks some wake-ups"),
    ("sched_waking", "breakdown", "ipc_via.*", "The recording lacks some wake-ups"),
    ("sched_waking", "threads*", "*", "The recording lacks some wake-ups"),
    // Of interrupts that are not recorded, the time is in that of what they interrupted.
    ("*irq*", "breakdown", "running_ns", "The recording lacks some interrupts"),
    ("*irq*", "threads*", "user_ns", "The recording lacks some interrupts"),
    ("*irq*", "threads*", "system_ns", "The recording lacks some interrupts"),
    ("*irq*", "latency *", "*.user_ns", "The recording lacks some interrupts"),
    ("*irq*", "latency *", "*.system_ns", "The recording lacks some interrupts"),
    ("*irq*", "list --super", "*", "The recording lacks some interrupts"),
    // Slices are counted whose wait is known, as both columns say: of fewer slices, both are other numbers.
    ("*", "sched latency", "switches", ""),
    ("*", "sched latency", "avg_delay_ns", ""),
    // A poll of which a part is unknown may be long.
    ("syscall_exit_*", "tasks*", "long_polls*", "more poll"),
    // Delays of first polls.
    ("user_thread:wake", "tasks*", "*delay*", "The recording lacks some wakes of tasks"),
    // A task says itself what it waits for; without its wakes that lasts until it is polled again.
    ("user_thread:wake", "*", "*blocked_*", "wakes of tasks (user_thread:wake)"),
    ("user_thread:wake", "tasks*", "idle_ns", "wakes of tasks (user_thread:wake)"),
    // Kinds of locks are in a line of a thread, a task or a place as far as they are recorded.
    ("contention_*", "locks --by *", "*", "waits for the kernel's locks"),
    ("syscall_*", "locks --by *", "*", "futex calls"),
    // Waits for a program's locks are waits for futexes where those are not recorded, and the other way.
    // `kind` says which these are.
    ("lock:*", "locks*", "*", "The recording lacks some"),
    // A thread that waits for a lock is blocked in a call for its futex: of the two names, the one that
    // events show. No time is another one.
    ("lock:*", "*", "*blocked_on.*", ""),
    // Where no event says which tasks they are, tasks are known by the places of their requests, which
    // several have in common, and periods are in the group of those without a task.
    ("user_thread:switch", "locks*", "owner_*", "switches of tasks (user_thread:switch)"),
    ("user_thread:switch", "locks --graph", "*", "switches of tasks (user_thread:switch)"),
    ("user_thread:switch", "latency * --by $task *", "*", "switches of tasks (user_thread:switch)"),
    ("user_thread:switch", "locks --histogram", "*", "The depths do not include"),
    // Acquisitions without a call chain are a line together.
    ("lock:called_from", "locks --by chain", "*", ""),
    ("function:entry", "functions --diff *", "*", "other events that the command needs are missing"),
    // Periods that begin or end with these.
    ("*:re*", "latency *", "*", "The recording lacks some events"),
];
