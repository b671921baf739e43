//! rayon: threads have names, and each work item is a call of a traced function.

use rayon::prelude::*;

#[tracewing::traced]
fn digest(item: u64) -> u64 {
    (0..20_000).fold(item, |sum, n| sum.rotate_left(5) ^ n)
}

fn main() {
    #[rustfmt::skip]
    let builder = rayon::ThreadPoolBuilder::new().num_threads(2).thread_name(|n| format!("rayon-{n}"));
    let pool = builder.build().unwrap();
    println!("{}", pool.install(|| (0..1000u64).into_par_iter().map(|item| digest(item) % 2).sum::<u64>()));
}
