//! Asks a service: connects to its socket, sends a request and prints the reply.

use super::message::{Outcome, Reply, Request};
use super::socket::{OF_MACHINE, group_name};
use crate::screen::{self, Form};
use anyhow::{Context, Error, Result, anyhow, ensure};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use rustix::process::geteuid;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tracewing_session::user_of;

/// Time to connect and to send.
const SENDING: Duration = Duration::from_secs(10);
/// Time for an answer: longer than recorders may take to begin, to end, and to write a snapshot.
const ANSWER: Duration = Duration::from_secs(150);

/// Asks the service that listens at a path, otherwise that of the machine.
pub fn run(socket: Option<&Path>, request: &Request) -> Result<ExitCode> {
    let path = socket.unwrap_or(Path::new(OF_MACHINE));
    let connection = connection(path)?;
    send_request(&connection, request)
        .with_context(|| format!("cannot ask the service at {}", path.display()))?;
    let reply = reply(&connection, path)?;
    let form = if request.is_json { Form::Json } else { Form::Text };
    screen::stdout(form).write_all(reply.output.as_bytes())?;
    screen::stderr(Form::Text).write_all(reply.errors.as_bytes())?;
    Ok(if reply.outcome == Outcome::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends a request, unless the connection is closed already.
fn send_request(connection: &OwnedFd, request: &Request) -> Result<(), Errno> {
    // A service that refuses at once has closed the connection: its reply says why.
    match retry_on_intr(|| send(connection, &request.encode(), SendFlags::NOSIGNAL)) {
        Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
        Err(error) => Err(error),
    }
}

fn reply(connection: &OwnedFd, path: &Path) -> Result<Reply> {
    let mut bytes = vec![0; Reply::LARGEST + 1];
    let mut read = || retry_on_intr(|| recv(connection, &mut bytes[..], RecvFlags::empty()));
    // Once, the kernel says that the service has closed the connection without reading the request; what it
    // has sent before can be read then.
    let read = match read() {
        Err(Errno::CONNRESET) => read(),
        read => read,
    };
    let len = match read {
        Ok((_, len)) => len,
        Err(Errno::CONNRESET) => 0,
        Err(Errno::AGAIN) => {
            return Err(anyhow!(
                "the service at {} has not answered within {} s",
                path.display(),
                ANSWER.as_secs()
            ));
        }
        Err(error) => return Err(error).context("cannot read the service's answer"),
    };
    let reply = bytes.get(..len).and_then(Reply::decode);
    reply.with_context(|| {
        format!(
            "the service at {} has closed the connection without an answer: it was stopped or killed, or is another \
             version of tracewing",
            path.display()
        )
    })
}

fn connection(path: &Path) -> Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(SENDING))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER))?;
    let address = SocketAddrUnix::new(path).with_context(|| format!("{} is too long", path.display()))?;
    connect(&socket, &address).map_err(|error| not_connected(path, error))?;
    let user = user_of(socket.as_fd());
    let is_trusted = user.is_some_and(|user| user == 0 || user == geteuid().as_raw());
    ensure!(is_trusted, "another user listens at {}", path.display());
    Ok(socket)
}

/// Why it cannot be asked, and what to do.
fn not_connected(path: &Path, error: Errno) -> Error {
    let at = path.display();
    match error {
        Errno::NOENT | Errno::CONNREFUSED => anyhow!(
            "no service listens at {at}: root starts one with `systemctl start tracewing.socket`, or with \
             `tracewing service`"
        ),
        Errno::ACCESS => match path.metadata() {
            Ok(data) if data.mode() & 0o020 != 0 => {
                let group = group_name(data.gid());
                anyhow!(
                    "you are not a member of group {group}, whose members may ask the service at {at}; root makes you \
                     one (`usermod -aG {group} NAME`), from your next login on"
                )
            }
            _ => anyhow!("only its user and root may ask the service at {at}"),
        },
        Errno::AGAIN => anyhow!("too many others wait for the service at {at}: try again"),
        error => Error::from(error).context(format!("cannot connect to the service at {at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::What;
    use super::*;
    use rustix::net::socketpair;

    /// A client's end, and that of a service, which has not read what the client has sent.
    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn request(client: &OwnedFd) {
        let request = Request { what: What::List, is_json: false, session: None };
        send_request(client, &request).unwrap();
    }

    /// The service refuses the connection, and the request comes before it is closed, or after that.
    #[test]
    fn a_refusal_is_read_although_the_request_was_not() {
        let refusal = Reply::refusal("there are too many connections");
        for closes_first in [false, true] {
            let (client, service) = pair();
            if closes_first {
                send(&client, b"unread", SendFlags::NOSIGNAL).unwrap();
            } else {
                request(&client);
            }
            send(&service, &refusal.encode(), SendFlags::NOSIGNAL).unwrap();
            drop(service);
            if closes_first {
                request(&client);
            }
            assert_eq!(reply(&client, Path::new("control")).unwrap(), refusal);
        }
    }

    #[test]
    fn a_connection_that_is_closed_without_an_answer_is_no_fault_of_the_system() {
        let (client, service) = pair();
        request(&client);
        drop(service);
        let error = reply(&client, Path::new("control")).unwrap_err().to_string();
        assert!(error.contains("has closed the connection without an answer"), "{error}");
        request(&client);
        assert!(reply(&client, Path::new("control")).unwrap_err().to_string().contains("without an answer"));
    }
}
