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
    // A service that refuses at once has closed the connection: its reply says why.
    match retry_on_intr(|| send(&connection, &request.encode(), SendFlags::NOSIGNAL)) {
        Ok(_) | Err(Errno::PIPE) => {}
        Err(error) => {
            let failed = || format!("cannot ask the service at {}", path.display());
            return Err(error).with_context(failed);
        }
    }
    let mut bytes = vec![0; Reply::LARGEST + 1];
    let read = retry_on_intr(|| recv(&connection, &mut bytes[..], RecvFlags::empty()));
    let len = match read {
        Ok((_, len)) => len,
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
    let reply = reply.with_context(|| {
        format!(
            "the service at {} has closed the connection without an answer: it was stopped or killed, or is another \
             version of tracewing",
            path.display()
        )
    })?;
    let form = if request.is_json { Form::Json } else { Form::Text };
    screen::stdout(form).write_all(reply.output.as_bytes())?;
    screen::stderr(Form::Text).write_all(reply.errors.as_bytes())?;
    Ok(if reply.outcome == Outcome::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
