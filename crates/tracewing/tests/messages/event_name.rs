use tracewing::event;

fn main() {
    event!("job", id = 5);
    event!("shop:my job", id = 5);
    event!("shop:", id = 5);
    event!("shop:job", id = 5, id = 6);
    event!(level: Warning, "shop:job", id = 5);
}
