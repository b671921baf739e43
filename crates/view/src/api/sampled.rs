//! `sampled` starts to list the samples of a function in a flame graph, called as it is there: when they were
//! taken, and of which thread.

use super::area::of_area;
use super::ask::{Refusal, ready, refused};
use super::flame::{DEEPEST, Names, Part, named};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::iter;
use tracewing_analysis::profile::Profile;
use tracewing_programs::symbols::Symbols;
use tracewing_trace::{Filter, Recording};
use tracewing_units::{Duration, Timestamp};

/// Most samples of an answer: the first ones.
const MOST: usize = 300;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// The names of the process and of the functions from the outermost, as in the answer of `flame`.
    chain: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    count: usize,
    samples: Vec<Sample>,
}

#[derive(Debug, Serialize)]
struct Sample {
    /// Since the recording begins.
    at: Duration,
    tid: Option<String>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let ready = ready(viewed)?;
    let (area, Asked { chain }) = of_area(&ready, body)?;
    if chain.is_empty() || chain.len() > DEEPEST {
        return Err(refused("there is no such chain"));
    }
    let filter = area.threads(&ready, "samples")?;
    let (begin, recording) = (ready.index.tail().begin, viewed.recording());
    jobs::start(viewed, move |job| find(job, &recording, &filter, &chain, begin))
}

fn find(
    job: &Job,
    recording: &Recording,
    filter: &Filter,
    chain: &[String],
    begin: Timestamp,
) -> Result<Answer, String> {
    let mut profile = Profile::with_times();
    let ran = tracewing_analysis::run(recording, filter, &mut profile, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    job.go_on()?;
    let (found, _) = named(job, &mut Symbols::new(), profile.finish(&ran));
    let (mut names, mut samples) = (Names::default(), Vec::new());
    for (process, tid, functions, times) in found.times() {
        job.go_on()?;
        let process = names.of(Part::Process(process), || found.process_part(process));
        let function = |number| names.of(Part::Function(number), || found.function_part(number));
        let numbers: Vec<u32> = iter::once(process).chain(functions.map(function)).take(DEEPEST).collect();
        let is_below = numbers.len() >= chain.len()
            && chain.iter().zip(&numbers).all(|(name, number)| *name == names.all[*number as usize]);
        if is_below {
            samples.extend(times.iter().map(|time| (*time, tid)));
        }
    }
    samples.sort_unstable();
    let count = samples.len();
    let sample = |(time, tid): (Timestamp, Option<tracewing_units::Tid>)| Sample {
        at: time - begin,
        tid: tid.map(|tid| tid.to_string()),
    };
    Ok(Answer { count, samples: samples.into_iter().take(MOST).map(sample).collect() })
}
