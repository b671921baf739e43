//! A program that links tracewing and has no event.

fn main() {
    let names: Vec<_> = tracewing::__private::classes().into_iter().map(|class| class.description().name).collect();
    println!("only {}", names.join(" "));
}
