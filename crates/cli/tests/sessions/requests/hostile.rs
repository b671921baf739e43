//! Clients that send something else than requests, too much, or nothing. Here they may connect.

use super::*;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Bytes of a request: version, what, form, two reserved, name.
const SIZE: usize = 72;

fn connected(asked: &Asked) -> OwnedFd {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(60))).unwrap();
    connect(&socket, &SocketAddrUnix::new(super::socket(&asked.sessions)).unwrap()).unwrap();
    socket
}

fn request(what: u8, name: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    bytes[..4].copy_from_slice(&1u32.to_ne_bytes());
    bytes[4] = what;
    bytes[8..8 + name.len()].copy_from_slice(name);
    bytes
}

/// What is answered; nothing if the connection is closed.
fn answer(socket: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 17];
    let len = recv(socket, &mut bytes[..], RecvFlags::empty()).map_or(0, |(_, len)| len);
    bytes.truncate(len);
    bytes
}

fn sent(asked: &Asked, bytes: &[u8]) -> Vec<u8> {
    let socket = connected(asked);
    send(&socket, bytes, SendFlags::NOSIGNAL).unwrap();
    answer(&socket)
}

#[test]
fn what_is_no_request_gets_no_answer() {
    let asked = Asked::start();
    assert!(!sent(&asked, &request(0, b"")).is_empty(), "a request");
    let start = request(2, b"web");
    let with = |at: usize, byte: u8| {
        let mut bytes = start.clone();
        bytes[at] = byte;
        bytes
    };
    let mut wrong = vec![
        b"start web\n".to_vec(),
        vec![0xff; SIZE],
        start[..SIZE / 2].to_vec(),
        start[..SIZE - 1].to_vec(),
        [&start[..], b"\0"].concat(),
        vec![1; 60_000],
        with(0, 2),
        with(4, 200),
        with(5, 2),
        with(6, 1),
        with(SIZE - 1, b'x'),
        request(2, b""),
        request(0, b"web"),
    ];
    let names: [&[u8]; 8] = [
        b"..",
        b"../web",
        b"/etc/passwd",
        b"web/main",
        b"-o",
        b"12",
        b"web\nuser 0 asks for stop",
        b"\xff\xfe",
    ];
    wrong.extend(names.map(|name| request(2, name)));
    for bytes in &wrong {
        assert_eq!(sent(&asked, bytes), b"", "{:?}", &bytes[..bytes.len().min(80)]);
    }
    // Nothing of it was taken for a request, and it still answers.
    assert_eq!(asked.log().matches("asks for").count(), 1, "{}", asked.log());
    assert!(!sent(&asked, &request(0, b"")).is_empty());
}

#[test]
fn silent_clients_are_closed_and_keep_others_out_for_a_while_at_most() {
    let asked = Asked::start();
    let silent: Vec<OwnedFd> = (0..8).map(|_| connected(&asked)).collect();
    let refused = asked.fails(&[], "list");
    assert!(refused.contains("there are too many connections"), "{refused}");
    if am_root() {
        assert!(
            asked.succeeds(&as_member(), "list").text().contains("web"),
            "others have connections of their own"
        );
    }
    let began = Instant::now();
    for socket in &silent {
        assert_eq!(answer(socket), b"");
    }
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(asked.succeeds(&[], "list").text().contains("web"));
}

#[test]
fn a_flood_is_refused_and_sessions_are_kept_meanwhile() {
    let asked = Asked::start();
    let recorder = || asked.sessions.channel("kept", "main")["recorder"].as_u64().map(|pid| pid as u32);
    wait_until("the session is started", || recorder().is_some());
    let before = recorder().unwrap();
    // Not within the pause between two starts of a session.
    std::thread::sleep(Duration::from_secs(10));
    signal(before, libc::SIGKILL);
    let (mut refused, mut sockets) = (0, Vec::new());
    let until = Instant::now() + Duration::from_secs(60);
    while recorder().is_none_or(|now| now == before) {
        assert!(Instant::now() < until, "the session is not kept: {}", asked.log());
        for _ in 0..50 {
            let socket = connected(&asked);
            // It may be closed already.
            let _ = send(&socket, &request(1, b"web"), SendFlags::NOSIGNAL);
            sockets.push(socket);
        }
        for socket in sockets.drain(..) {
            let answer = String::from_utf8_lossy(&answer(&socket)).into_owned();
            let is_limit = ["too many requests", "too many connections", "carrying out other requests"];
            refused += usize::from(is_limit.iter().any(|why| answer.contains(why)));
        }
    }
    let carried_out = asked.log().matches("asks for status web").count();
    assert!(refused > carried_out, "{refused} refused, {carried_out} carried out");
    wait_until("it answers", || ask(&asked.sessions, &[], "list").status.success());
}
