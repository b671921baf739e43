//! A conversation about classes: the program describes them, and the recorder says what it grants.

use std::sync::{Arc, Mutex, PoisonError};

use tracewing_abi::message::ask::{Again, Describe};
use tracewing_abi::message::grant::{Done, decode_change, decode_grants};
use tracewing_abi::message::{ClassesWriter, Joining, MAX_MESSAGE};

use super::greeting::{greet, known, receive};
use crate::agent::access::Access;
use crate::agent::connection::invited;
use crate::agent::control::{self, Granted};
use crate::agent::socket::{self, Failure, Until};
use crate::agent::system::Fd;
use crate::class::EventClass;

/// Classes on their way to a recorder.
pub(super) struct Descriptions {
    pub(super) access: Access,
    /// Where the conversation goes when it is done, if it is the process's first with the recorder.
    pub(super) first: Option<Arc<Mutex<Option<Talk>>>>,
    pub(super) talk: Option<Talk>,
    pub(super) classes: Vec<&'static EventClass>,
}

impl Descriptions {
    pub(super) fn proceed(mut self, until: Until) -> control::Answer {
        match self.describe(until) {
            Ok(grants) => {
                let talk = self.talk.take();
                match self.first {
                    Some(first) => {
                        *first.lock().unwrap_or_else(PoisonError::into_inner) = talk;
                        grants.into()
                    }
                    None => control::Answer {
                        grants,
                        connection: talk.map(|talk| talk.socket),
                        ..Default::default()
                    },
                }
            }
            Err(Failure::Late) => {
                let rest = Box::new(move || self.proceed(None));
                control::Answer { rest: Some(rest), ..Default::default() }
            }
            // The recorder takes the hang-up for what it is.
            Err(Failure::Gone) => control::Answer::default(),
        }
    }

    fn describe(&mut self, until: Until) -> Result<Vec<Granted>, Failure> {
        let talk = match &mut self.talk {
            Some(talk) => talk,
            None => {
                let socket = greet(&self.access, Joining::More, [0; 2], until)?;
                self.talk.insert(Talk { is_known: false, ..Talk::new(socket) })
            }
        };
        talk.describe(&self.classes, until)
    }
}

/// A conversation about classes, which can stop at any point.
pub(super) struct Talk {
    pub(super) socket: Fd,
    /// Whether the greeting was answered.
    is_known: bool,
    /// How many classes were described.
    asked: usize,
    grants: Vec<Granted>,
}

impl Talk {
    pub(super) fn new(socket: Fd) -> Self {
        Self { socket, is_known: true, asked: 0, grants: Vec::new() }
    }

    /// Describes classes, and gives what the recorder grants. The next call is about other classes, unless
    /// this one was late.
    fn describe(&mut self, classes: &[&'static EventClass], until: Until) -> Result<Vec<Granted>, Failure> {
        if !self.is_known {
            known(&self.socket, until)?;
            self.is_known = true;
        }
        let mut buffer = vec![0; MAX_MESSAGE];
        while self.grants.len() < classes.len() {
            if self.asked == self.grants.len() {
                self.ask(&classes[self.asked..], &mut buffer, until)?;
            }
            while self.grants.len() < self.asked {
                self.listen(&mut buffer, until)?;
            }
        }
        self.asked = 0;
        Ok(core::mem::take(&mut self.grants))
    }

    /// Describes as many classes as fit into a message.
    fn ask(&mut self, rest: &[&'static EventClass], buffer: &mut [u8], until: Until) -> Result<(), Failure> {
        let mut message = ClassesWriter::new(buffer).map_err(|_| Failure::Gone)?;
        let fitting = rest.iter().take_while(|class| message.push(class.description()).is_ok()).count();
        if fitting == 0 {
            // One class that is larger than a message: it stays off.
            self.grants.push(Granted { id: 0, on: false, filter: Vec::new() });
            self.asked += 1;
            return Ok(());
        }
        socket::send(&self.socket, message.finish(), until)?;
        self.asked += fitting;
        Ok(())
    }

    fn listen(&mut self, buffer: &mut [u8], until: Until) -> Result<(), Failure> {
        let answer = receive(&self.socket, buffer, until)?;
        // What is asked for comes with the first events anyway.
        let is_asked = Describe::decode(answer).is_some() || Again::decode(answer).is_some();
        if invited(answer) || is_asked {
            return Ok(());
        }
        if let Ok((number, changes)) = decode_change(answer) {
            // The rules have changed meanwhile. None of these classes is on yet.
            for change in changes {
                let change = Granted::from(change.map_err(|_| Failure::Gone)?);
                let same = self.grants.iter_mut().filter(|grant| grant.id == change.id);
                same.for_each(|grant| *grant = change.clone());
            }
            let mut done = [0; Done::LARGEST];
            let done = Done { number, failed: 0, why: "" }.encode(&mut done).map_err(|_| Failure::Gone)?;
            return socket::send(&self.socket, done, None);
        }
        let before = self.grants.len();
        for grant in decode_grants(answer).map_err(|_| Failure::Gone)? {
            self.grants.push(grant.map_err(|_| Failure::Gone)?.into());
        }
        if self.grants.len() == before { Err(Failure::Gone) } else { Ok(()) }
    }
}
