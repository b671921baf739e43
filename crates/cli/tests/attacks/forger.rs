//! A user that has put a socket where a recorder has one.

use super::*;

pub fn socket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// A folder as a recorder's, with sockets of the names that recorders have had; it goes with the test.
pub struct Forged {
    pub folder: PathBuf,
    pub sockets: Vec<OwnedFd>,
}

impl Forged {
    pub fn new(name: &str, backlog: i32) -> Self {
        let folder = PathBuf::from(format!("/tmp/tracewing-{name}{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let sockets = ["socket", "control"].map(|name| {
            let socket = socket();
            bind(&socket, &SocketAddrUnix::new(folder.join(name)).unwrap()).unwrap();
            listen(&socket, backlog).unwrap();
            socket
        });
        Self { folder, sockets: sockets.into() }
    }
}

/// Answers every question, as the recorder of process `claimed`, until it is over.
pub fn forge(forged: &Forged, claimed: u32, asked: &AtomicUsize, is_over: &AtomicBool) {
    for socket in &forged.sockets {
        rustix::io::ioctl_fionbio(socket, true).unwrap();
    }
    while !is_over.load(Relaxed) {
        for connection in forged.sockets.iter().filter_map(|socket| accept(socket).ok()) {
            asked.fetch_add(1, Relaxed);
            let (mut message, mut answer) = ([0; 100], vec![0; LARGEST_ANSWER]);
            let (len, _) = recv(&connection, &mut message, RecvFlags::empty()).unwrap();
            let len = match Question::decode(&message[..len]) {
                Ok(Question::Snapshot(_)) => Taken::Folder("/forged").encode(&mut answer),
                _ => Status {
                    pid: claimed,
                    command_pid: 1,
                    processes: [0; Status::PROCESSES],
                    is_flight_recorder: true,
                    is_trigger: false,
                    figures: Figures::default(),
                    name: "forged",
                    command: "forged-server",
                    output: "/forged",
                }
                .encode(&mut answer),
            };
            let _ = send(&connection, &answer[..len.unwrap()], SendFlags::NOSIGNAL);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs commands of root while another user forges a recorder. Returns their results, and how often the
/// forger was asked.
pub fn with_a_forger<T>(name: &str, claimed: u32, commands: impl FnOnce() -> T) -> (T, usize) {
    let (asked, is_ready, is_over) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            become_user(STRANGER);
            let forged = Forged::new(name, 16);
            is_ready.store(true, Release); // with the wait below
            forge(&forged, claimed, &asked, &is_over);
        });
        while !is_ready.load(Acquire) {
            thread::yield_now();
        }
        let result = commands();
        is_over.store(true, Relaxed);
        (result, asked.load(Relaxed))
    })
}

impl Drop for Forged {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
