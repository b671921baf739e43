//! Calls functions that are recorded from another one that is.

#[tracewing::traced]
fn inner(number: u64) -> u64 {
    (0..number).fold(0, |sum, number| std::hint::black_box(sum ^ number))
}

#[tracewing::traced]
fn outer(number: u64) -> u64 {
    inner(number) + inner(2 * number)
}

fn main() {
    let sum: u64 = (0..100).map(outer).sum();
    println!("{sum}");
}
