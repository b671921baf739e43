//! A program that links tracewing and has no event.

fn main() {
    println!("{} classes", tracewing::__private::all().count());
}
