//! The cost of a filter per event: `cargo run --release -p tracewing-rules --example filter-cost`.

use std::hint::black_box;
use std::time::Instant;
use tracewing_abi::atomic::AtomicU64;
use tracewing_abi::message::{ClassesWriter, decode_classes};
use tracewing_abi::schema::{Class, ClassView, Field, Scalar, Shape};
use tracewing_rules::Predicate;
use tracewing_rules::filter::{Context, evaluate};
use tracewing_units::{Cpu, Pid, Tid};

/// Evaluations per measurement: few enough that most measurements are not interrupted.
const TIMES: u32 = 5_000;
/// Measurements of each predicate; the fastest is used.
const ROUNDS: usize = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let field = Field::plain;
    let fields = [
        field("depth", Shape::One, Scalar::U32),
        field("customer", Shape::Text, Scalar::U8),
        field("price", Shape::One, Scalar::F64),
    ];
    let class = Class { fields: &fields, ..Class::named("shop:order") };
    let mut buffer = [0; 1024];
    let mut writer = ClassesWriter::new(&mut buffer)?;
    writer.push(&class)?;
    let message = writer.finish();
    let description = decode_classes(message)?.next().ok_or("no class")??;
    let view = ClassView::decode(description)?;

    let (depth, customer, after) =
        (7_u32.to_le_bytes(), b"x", [&[0_u8][..], &1.5_f64.to_le_bytes()].concat());
    let payload = [&depth[..], customer, &after].concat();
    let segments = [&depth[..], customer, &after];
    println!("{:44} {:>10} {:>10}", "ns per event", "one piece", "3 pieces");
    for text in [
        "true",
        "depth > 3",
        "depth > 9 && customer == \"x\"",
        "depth > 3 && customer == \"x\"",
        "depth > 3 && customer =~ \"x*\"",
        "depth > 3 && price < 2",
        "depth > 3 && customer == \"x\" && price < 2 && $cpu < 8",
    ] {
        let filter = Predicate::parse(text)?.compile(&view)?;
        let (words, _) = filter.as_chunks::<8>();
        let program: Vec<AtomicU64> =
            words.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect();
        let context = Context { tid: Tid(0), pid: Pid(0), cpu: Cpu(0) };
        let whole = cost(|| evaluate(&program, std::iter::once(black_box(&payload[..])), &context));
        let pieces = cost(|| evaluate(&program, black_box(&segments).iter().copied(), &context));
        println!("{text:44} {whole:10.2} {pieces:10.2}");
    }
    Ok(())
}

/// Nanoseconds per call.
fn cost(mut evaluate: impl FnMut() -> bool) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..TIMES {
                black_box(evaluate());
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
        })
        .fold(f64::INFINITY, f64::min)
}
