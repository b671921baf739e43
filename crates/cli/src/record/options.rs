//! The recording that the arguments of `tracewing record` mean.

use super::args::{Args, Buffers, Chains, Clock, OnFull, SnapshotOn};
use crate::output::print_warning;
use crate::owner;
use crate::preloaded;
use crate::selection::Wish;
use anyhow::{Result, anyhow, bail};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracewing_abi::region::Geometry;
use tracewing_consumer::clock::ClockChoice;
use tracewing_consumer::memory::possible_cpus;
use tracewing_kernel::Probe;
use tracewing_programs::probes::{Resolved, Resolver};
use tracewing_rules::{Majors, Rule, Rules};
use tracewing_session::Options;
use tracewing_session::options::Sharing;
use tracewing_session::preload::{self, Preload};
use tracewing_session::running::Kind;
use tracewing_trace::Zone;

/// The probes that are asked for, and what the user should know of them.
fn probes(args: &Args) -> Result<(Vec<Probe>, Vec<String>)> {
    if args.kernel.probes.is_empty() && args.kernel.usdt.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let resolver = Resolver::new(args.command.first().and_then(|command| command.to_str()));
    let mut all = Resolved::default();
    let functions = args.kernel.probes.iter().map(|text| resolver.probe(text));
    for resolved in functions.chain(args.kernel.usdt.iter().map(|text| resolver.usdt(text))) {
        all.unite(resolved?);
    }
    Ok((all.probes, all.remarks))
}

pub fn options(args: &Args) -> Result<Options> {
    let geometry = Geometry::new(possible_cpus(), args.buffer.sub_buffers, args.buffer.sub_buffer_size.0)
        .map_err(|reason| anyhow!("{reason} (see --sub-buffer-size and --sub-buffers)"))?;
    let is_preloaded = args.preload.locks || !args.preload.functions.is_empty();
    let beside = |rule| preloaded::beside(rule, &args.selection, args.preload.locks, &args.preload.functions);
    let (rules, majors) = match args.selection.enable(&args.condition) {
        Wish::Nothing => (preloaded::beside_all(args.preload.locks, &args.preload.functions), Majors::ALL),
        // The mask is for all events, a rule only for the program's other ones.
        Wish::Majors(majors) if is_preloaded => (beside(Rule { majors, ..Rule::default() }), Majors::ALL),
        Wish::Majors(majors) => (Rules::new(), majors),
        Wish::Rule(rule) => {
            // What decides is the last one.
            let names = args.selection.names_of_tasks(&args.condition);
            (beside(*rule).iter().cloned().chain(names).collect(), Majors::ALL)
        }
    };
    let preload = is_preloaded.then(preload::find_library).transpose()?.map(|library| Preload {
        library,
        locks: args.preload.locks.then_some(match args.preload.lock_chains {
            Chains::Contended => preload::Chains::Contended,
            Chains::All => preload::Chains::All,
            Chains::None => preload::Chains::None,
        }),
        functions: args.preload.functions.clone(),
    });
    let with = args
        .with
        .as_deref()
        .map(|wanted| anyhow::Ok(owner::recordings(args.user.as_deref())?.choose(Some(wanted), Kind::Any)?));
    let (probes, remarks) = probes(args)?;
    remarks.iter().for_each(|remark| print_warning(remark));
    if with.is_some()
        && !args.kernel.system_wide
        && !(args.kernel.kernel_events.is_empty() && probes.is_empty())
    {
        bail!(
            "with the programs of another recording, kernel events can only be had of the whole machine (--system-wide)"
        );
    }
    if args.kernel.no_kernel && args.kernel.system_wide && probes.is_empty() {
        bail!("--system-wide is about kernel events, of which --no-kernel leaves none");
    }
    let no_kernel = args.kernel.no_kernel || (with.is_some() && !args.kernel.system_wide);
    Ok(Options {
        with: with.transpose()?,
        duration: args.duration,
        output: args.output.clone().unwrap_or_else(default_folder),
        command: args.command.clone(),
        rules,
        majors,
        kernel_events: (!no_kernel).then(|| args.kernel.kernel_events.clone()),
        probes,
        system_wide: args.kernel.system_wide,
        geometry: match args.buffer.on_full {
            OnFull::Discard => geometry,
            OnFull::Overwrite => geometry.overwriting(),
        },
        preload,
        profile: args.profile,
        buffers_in: args.buffer.buffers_in.clone(),
        flight_recorder: args.buffer.flight_recorder.then(|| {
            let on = |what| args.buffer.snapshot_on.is_empty() || args.buffer.snapshot_on.contains(&what);
            tracewing_session::options::SnapshotOn {
                signal: on(SnapshotOn::Signal),
                exit: on(SnapshotOn::Exit),
                panic: on(SnapshotOn::Panic),
            }
        }),
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

/// `tracewing-YYYYmmdd-HHMMSS`, local time.
fn default_folder() -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
    let name = Zone::Local.civil(seconds).map_or_else(
        || format!("tracewing-{seconds}"),
        |t| {
            format!(
                "tracewing-{:04}{:02}{:02}-{:02}{:02}{:02}",
                t.year, t.month, t.day, t.hour, t.minute, t.second
            )
        },
    );
    name.into()
}
