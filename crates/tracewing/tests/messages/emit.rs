use tracewing::{Event, emit};

#[derive(Event)]
struct Job {
    id: u64,
}

fn main() {
    emit!(5);
    emit!(Job { id: 5, depth: 6 });
    emit!(Job { id: "five" });
}
