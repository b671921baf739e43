use tracewing::event;

fn main() {
    let thread = std::thread::current();
    event!("shop:job", id = 5, thread);
}
