//! The recording that the arguments of `tracewing record` mean.

use super::args::{
    Args, AttachArgs, BufferArgs, Buffers, Chains, Clock, Context, Done, NamedTrigger, OnFull, PreloadArgs,
    RotateArgs, SnapshotOn, TriggerArgs,
};
use super::values::part_of;
use crate::output::print_warning;
use crate::owner;
use crate::preloaded;
use crate::selection::Requested;
use anyhow::{Result, anyhow, bail};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracewing_abi::region::Geometry;
use tracewing_consumer::clock::ClockChoice;
use tracewing_consumer::cpus::possible_cpus;
use tracewing_consumer::memory::{SUB_BUFFER_BYTES, SUB_BUFFERS};
use tracewing_kernel::Probe;
use tracewing_programs::probes::{Resolved, Resolver};
use tracewing_rules::{Majors, Rule, Rules};
use tracewing_session::Options;
use tracewing_session::options::{
    Action, ArchiveCommand, Attach, ContextField, KernelGeometry, Listed, Rotate, Sharing, Trigger, When,
};
use tracewing_session::preload::{self, Preload};
use tracewing_session::running::Kind;
use tracewing_trace::Zone;

/// Why `--on-full block` is refused.
pub const NO_BLOCK: &str = "--on-full block: programs and the kernel never wait for a recorder, so a full buffer loses \
                            events; choose discard or overwrite";

/// The probes that are asked for, and what the user should know of them.
fn probes(args: &Args) -> Result<(Vec<Probe>, Vec<String>)> {
    if args.kernel.probes.is_empty() && args.kernel.usdt.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    // Of a process that runs, the file that it executes, whatever its mount namespace.
    let running = args.attach.pids.first().map(|pid| format!("/proc/{}/exe", pid.0));
    let resolver =
        Resolver::new(args.command.first().and_then(|command| command.to_str()).or(running.as_deref()));
    let mut all = Resolved::default();
    let functions = args.kernel.probes.iter().map(|text| resolver.probe(text));
    for resolved in functions.chain(args.kernel.usdt.iter().map(|text| resolver.usdt(text))) {
        all.unite(resolved?);
    }
    Ok((all.probes, all.remarks))
}

pub fn options(args: &Args) -> Result<Options> {
    let geometry = geometry(&args.buffer)?;
    let attach = attach(args)?;
    check_subject(args, attach.is_some())?;
    let (rules, majors) = rules(args);
    let preload = preload(&args.preload)?;
    let with_alone = args.with.is_some() && args.command.is_empty();
    let with = args
        .with
        .as_deref()
        .map(|name| anyhow::Ok(owner::recordings(args.user.as_deref())?.choose(Some(name), Kind::Any)?));
    let (probes, remarks) = probes(args)?;
    remarks.iter().for_each(|remark| print_warning(remark));
    // The command's part alone would be half of what is recorded.
    let is_half = with.is_some() && !with_alone;
    check_kernel(args, is_half, !probes.is_empty())?;
    let no_kernel = args.kernel.no_kernel || ((is_half || args.all) && !args.kernel.system_wide);
    Ok(Options {
        with: with.transpose()?,
        all_programs: args.all,
        is_confined: true,
        name: args.session.clone(),
        triggers: triggers(args),
        duration: args.duration,
        output: args.output.clone().unwrap_or_else(|| format!("tracewing-{}", default_name()).into()),
        command: args.command.clone(),
        attach,
        rules,
        majors,
        kernel_events: (!no_kernel).then(|| args.kernel.kernel_events.clone()),
        probes,
        system_wide: args.kernel.system_wide,
        geometry,
        kernel_geometry: match (args.buffer.sub_buffers, args.buffer.sub_buffer_size) {
            (None, None) => KernelGeometry::Default,
            (Some(_), Some(_)) => KernelGeometry::Same,
            _ => KernelGeometry::AtLeastDefault,
        },
        preload,
        profile: args.profile,
        stacks: args.call_graph.unwrap_or_default(),
        context: args.context.fields.iter().map(context).collect(),
        rotate: rotate(&args.rotate)?,
        buffers_in: args.buffer.buffers_in.clone(),
        listed: Listed::default(),
        flight_recorder: args.buffer.flight_recorder.then(|| snapshot_on(&args.buffer.snapshot_on)),
        flush: Duration::from_millis(args.buffer.flush.into()),
        sharing: match args.buffer.buffers {
            Buffers::Program => Sharing::Program,
            Buffers::User => Sharing::User,
            Buffers::Process => Sharing::Process,
        },
        clock: match args.clock {
            Clock::Auto => ClockChoice::Auto,
            Clock::Tsc => ClockChoice::Tsc,
            Clock::Mono => ClockChoice::Monotonic,
        },
    })
}

/// The buffers' shape, and what they lose when they are full.
fn geometry(args: &BufferArgs) -> Result<Geometry> {
    let size = args.sub_buffer_size.map_or(SUB_BUFFER_BYTES, |size| size.0);
    let geometry = Geometry::new(possible_cpus(), args.sub_buffers.unwrap_or(SUB_BUFFERS), size)
        .map_err(|reason| anyhow!("{reason} (see --sub-buffer-size and --sub-buffers)"))?;
    match args.on_full {
        OnFull::Discard => Ok(geometry),
        OnFull::Overwrite => Ok(geometry.overwriting()),
        OnFull::Block => bail!("{NO_BLOCK}"),
    }
}

fn context(field: &Context) -> ContextField {
    match field {
        Context::Pid => ContextField::Pid,
        Context::Process => ContextField::Process,
        Context::Thread => ContextField::Thread,
        Context::Uid => ContextField::Uid,
        Context::Gid => ContextField::Gid,
        Context::Cgroup => ContextField::Cgroup,
        Context::Namespaces => ContextField::Namespaces,
        Context::Ip => ContextField::Ip,
    }
}

/// On what a flight recorder takes snapshots: on everything if nothing is chosen.
fn snapshot_on(chosen: &[SnapshotOn]) -> tracewing_session::options::SnapshotOn {
    let on = |what| chosen.is_empty() || chosen.contains(&what);
    tracewing_session::options::SnapshotOn {
        signal: on(SnapshotOn::Signal),
        exit: on(SnapshotOn::Exit),
        panic: on(SnapshotOn::Panic),
    }
}

/// The processes that run already, where such are to be recorded.
fn attach(args: &Args) -> Result<Option<Attach>> {
    let AttachArgs { pids, names, cgroups, no_children, .. } = &args.attach;
    let is_selected = !(pids.is_empty() && names.is_empty() && cgroups.is_empty());
    let preloaded = match &args.preload {
        PreloadArgs { locks: true, .. } => Some("--locks"),
        PreloadArgs { functions, .. } if !functions.is_empty() => Some("--functions"),
        _ => None,
    };
    if let Some(option) = preloaded.filter(|_| args.command.is_empty() || args.with.is_some()) {
        bail!(
            "{option} needs a library that is loaded when a program starts, so it cannot be used for a running program: start \
             the program with `tracewing record {option} -- CMD`, or use --probe"
        );
    }
    Ok(is_selected.then(|| Attach {
        pids: pids.clone(),
        names: names.clone(),
        cgroups: cgroups.clone(),
        children: !no_children,
    }))
}

/// When the trace is divided into archives, and how many are kept.
fn rotate(args: &RotateArgs) -> Result<Rotate> {
    let RotateArgs { rotate_size, rotate_every, total_size, max_size, keep, session_size, .. } = args;
    let least = |sizes: [Option<u64>; 2]| sizes.into_iter().flatten().min();
    let own = least([*max_size, *total_size]);
    let total = least([own, *session_size]);
    if let (Some(size), Some(total)) = (rotate_size, total)
        && *size > total / 2
    {
        bail!(
            "--rotate-size must be at most half of --total-size or --max-size, since the archive that is written is not removed"
        );
    }
    // So many are kept of this channel, but not of all that share the session's size.
    let parts = [own.map(|own| part_of(own, *keep)), session_size.map(|size| part_of(size, None))];
    Ok(Rotate {
        size: rotate_size.or(least(parts)),
        every: *rotate_every,
        total: own,
        keep: *keep,
        shared: *session_size,
        command: args
            .on_archive
            .as_ref()
            .map(|program| ArchiveCommand { program: program.into(), limit: args.on_archive_limit }),
    })
}

/// What is done when something comes to pass.
fn triggers(args: &Args) -> Vec<Trigger> {
    let own = trigger(&args.trigger);
    let of_session = args.session_triggers.iter().filter_map(|NamedTrigger { name, args }| {
        Some(Trigger { name: Some(name.clone()), ..trigger(args)? })
    });
    own.into_iter().chain(of_session).collect()
}

fn trigger(args: &TriggerArgs) -> Option<Trigger> {
    let program = args.exec.clone().map(Action::Run);
    let action = |done: &Done| match done {
        Done::Snapshot => Some(Action::Snapshot),
        Done::Rotate => Some(Action::Rotate),
        Done::Start => Some(Action::Start),
        Done::Stop => Some(Action::Stop),
        Done::Notify => Some(Action::Notify),
        Done::Exec => program.clone(),
    };
    let last = program.clone().filter(|_| !args.actions.contains(&Done::Exec));
    let actions: Vec<Action> = args.actions.iter().filter_map(action).chain(last).collect();
    let when = match (args.when_full, args.when_size) {
        (Some(percent), _) => When::Full(percent),
        (None, Some(size)) => When::Size(size),
        (None, None) => When::Event,
    };
    let (targets, pause) = (args.targets.clone(), args.at_most_every);
    (!actions.is_empty()).then_some(Trigger { name: None, when, targets, actions, pause })
}

/// The event rules, and the mask of major classes.
fn rules(args: &Args) -> (Rules, Majors) {
    let (locks, functions) = (args.preload.locks, &args.preload.functions);
    let is_preloaded = locks || !functions.is_empty();
    let with_rule = |rule| preloaded::with_rule(rule, &args.selection, locks, functions);
    match args.selection.enable(&args.condition) {
        Requested::Nothing => (preloaded::with_everything(locks, functions), Majors::ALL),
        // The mask is for all events, a rule only for the program's other ones.
        Requested::Majors(majors) if is_preloaded => {
            (with_rule(Rule { majors, ..Rule::default() }), Majors::ALL)
        }
        Requested::Majors(majors) => (Rules::new(), majors),
        Requested::Rule(rule) => {
            // The last rule that is for an event decides.
            let names = args.selection.names_of_tasks(&args.condition);
            (with_rule(*rule).iter().cloned().chain(names).collect(), Majors::ALL)
        }
    }
}

/// The library to pre-load, for installations that consist of the executable alone.
static EMBEDDED: Option<&[u8]> = tracewing_embed::library!(tracewing_preload);

/// What the pre-loaded library is to record, if anything.
fn preload(args: &PreloadArgs) -> Result<Option<Preload>> {
    let is_preloaded = args.locks || !args.functions.is_empty();
    let library = is_preloaded.then(|| preload::find_library(EMBEDDED)).transpose()?;
    Ok(library.map(|library| Preload {
        library,
        locks: args.locks.then_some(match args.lock_chains {
            Chains::Contended => preload::Chains::Contended,
            Chains::All => preload::Chains::All,
            Chains::None => preload::Chains::None,
        }),
        functions: args.functions.clone(),
    }))
}

/// Refuses a recording of nothing.
fn check_subject(args: &Args, has_running: bool) -> Result<()> {
    if args.command.is_empty() && !has_running && args.with.is_none() && !args.all && !args.kernel.system_wide
    {
        bail!(
            "nothing to record: give a command (`tracewing record -- CMD`), running processes (--pid, --name, --cgroup, or \
             --with for those of another recording), all programs (--all), or the whole machine (--system-wide)"
        );
    }
    let is_machine_alone = args.command.is_empty() && !has_running && args.with.is_none() && !args.all;
    if is_machine_alone && !matches!(args.selection.enable(&args.condition), Requested::Nothing) {
        bail!(
            "-e, --where and similar options choose events of programs, and --system-wide alone records none: choose kernel \
             events with -k, or add --all or a command"
        );
    }
    Ok(())
}

/// Refuses options about kernel events that leave none of those that they ask for.
fn check_kernel(args: &Args, is_half: bool, has_probes: bool) -> Result<()> {
    let kernel = &args.kernel;
    let has_events = has_probes || !kernel.kernel_events.is_empty();
    if is_half && !kernel.system_wide && has_events {
        bail!("--with and a command record kernel events only of the whole machine: add --system-wide");
    }
    if args.all && !kernel.system_wide && (has_events || args.profile.is_some()) {
        bail!("--all records kernel events and samples only of the whole machine: add --system-wide");
    }
    if is_half && args.profile.is_some() {
        bail!("--profile takes samples of a command, or of the processes of --with: leave one of them out");
    }
    if kernel.no_kernel && kernel.system_wide && !has_probes {
        bail!("--system-wide records kernel events, and --no-kernel leaves them out: give one of the two");
    }
    Ok(())
}

/// `YYYYmmdd-HHMMSS`, local time.
pub fn default_name() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
    Zone::Local.civil(seconds).map_or_else(
        || seconds.to_string(),
        |t| format!("{:04}{:02}{:02}-{:02}{:02}{:02}", t.year, t.month, t.day, t.hour, t.minute, t.second),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    #[test]
    fn only_the_size_of_a_channel_is_divided_by_the_number_of_its_archives() {
        const MIB: u64 = 1 << 20;
        let size = |max: Option<u64>, total: Option<u64>, session: Option<u64>, keep: Option<usize>| {
            let args = RotateArgs {
                rotate_size: None,
                rotate_every: None,
                on_archive: None,
                on_archive_limit: Duration::MAX,
                total_size: total.map(|size| size * MIB),
                max_size: max.map(|size| size * MIB),
                keep: keep.and_then(NonZeroUsize::new),
                session_size: session.map(|size| size * MIB),
            };
            let Rotate { size, total, .. } = rotate(&args).unwrap();
            [size, total].map(|size| size.map(|size| size / MIB))
        };
        assert_eq!(size(None, None, Some(1024), Some(2)), [Some(128), None]);
        assert_eq!(size(Some(64), None, Some(1024), Some(2)), [Some(32), Some(64)]);
        assert_eq!(size(Some(64), None, Some(128), Some(2)), [Some(16), Some(64)]);
        assert_eq!(size(None, Some(64), None, None), [Some(8), Some(64)]);
        assert_eq!(size(Some(32), Some(64), None, None), [Some(4), Some(32)]);
        assert_eq!(size(Some(64), Some(32), None, Some(4)), [Some(8), Some(32)]);
        assert_eq!(size(None, None, None, Some(2)), [None, None]);
    }
}
