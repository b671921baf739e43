//! How long answers of the server take.

use super::page::Figure;
use super::random::Random;
use super::server::Server;
use super::{Facts, Part, ROUNDS, Size, WIDTH};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Instant;

/// Rows of a picture.
const ROWS: usize = 60;
/// Narrowest window that is asked for, in nanoseconds.
const NARROW: f64 = 10_000.0;

/// Asks for statistics, and for pictures of tracks and of groups.
pub fn measure(server: &mut Server, facts: &Facts, size: &Size) -> Result<Part> {
    let mut random = Random(1);
    let mut figures = statistics(server, facts, size, &mut random)?;
    figures.extend(data(server, facts, size, &mut random)?);
    figures.extend(groups(server, facts, size, &mut random)?);
    let about = format!(
        "Windows are random, of any width from 10 µs to the whole recording, each power of two as probable as the \
         next. A client on the same machine asks, over HTTP: {} questions for tracks, {} for groups, {} for \
         statistics. The spread is from the least to the greatest of {ROUNDS} rounds.",
        size.questions,
        size.questions / 2,
        size.questions / 10
    );
    Ok(Part { title: "Answers of the server", about, figures })
}

/// How long each of some questions takes, in milliseconds, by round.
fn time(server: &mut Server, path: &str, questions: &[Value]) -> Result<Vec<Vec<f64>>> {
    let mut rounds = Vec::new();
    for some in questions.chunks(questions.len().div_ceil(ROUNDS).max(1)) {
        let mut times = Vec::new();
        for question in some {
            let question = question.to_string();
            let begin = Instant::now();
            server.post(path, &question)?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        rounds.push(times);
    }
    Ok(rounds)
}

/// How long all rows were in each state, in any window.
fn statistics(server: &mut Server, facts: &Facts, size: &Size, random: &mut Random) -> Result<Vec<Figure>> {
    let question = |_| {
        let (from, to) = random.window(facts.length, NARROW);
        json!({ "from": from as u64, "to": to as u64 })
    };
    let questions: Vec<_> = (0..size.questions / 10).map(question).collect();
    let times = time(server, "statistics", &questions)?;
    Ok(vec![
        Figure::percentile("statistics of all tracks in an area, ms (p50)", 0.5, &times),
        Figure::percentile("the same (slowest)", 1.0, &times).at_most(500.0),
    ])
}

/// What the picture of some rows in any window needs, as many buckets as pixels.
fn data(server: &mut Server, facts: &Facts, size: &Size, random: &mut Random) -> Result<Vec<Figure>> {
    let questions: Vec<_> = (0..size.questions)
        .map(|_| {
            let start = random.next() as usize % facts.rows.len().max(1);
            let rows: Vec<_> = facts.rows.iter().cycle().skip(start).take(ROWS).collect();
            rows_question(random, facts, &rows)
        })
        .collect();
    let times = time(server, "rows", &questions)?;
    Ok(vec![
        Figure::percentile("data of a picture of 60 tracks, ms (p50)", 0.5, &times),
        Figure::percentile("the same (p99)", 0.99, &times).at_most(20.0),
    ])
}

fn rows_question(random: &mut Random, facts: &Facts, rows: &[&u64]) -> Value {
    let (from, to) = random.window(facts.length, NARROW);
    let shift = ((to - from) / f64::from(WIDTH)).log2().ceil().max(0.0) as u32;
    json!({ "shift": shift, "first": from as u64 >> shift, "count": WIDTH, "rows": rows })
}

/// The same of rows that stand for others: all CPUs, processes.
fn groups(server: &mut Server, facts: &Facts, size: &Size, random: &mut Random) -> Result<Vec<Figure>> {
    let rows: Vec<_> = facts.groups.iter().take(ROWS).collect();
    let questions: Vec<_> = (0..size.questions / 2).map(|_| rows_question(random, facts, &rows)).collect();
    let what = "data of a picture of groups, ms (p50)";
    Ok(match time(server, "rows", &questions) {
        Ok(times) => vec![
            Figure::percentile(what, 0.5, &times),
            Figure::percentile("the same (p99)", 0.99, &times).at_most(20.0),
        ],
        Err(refused) => vec![Figure::missed(what, refused.to_string())],
    })
}
