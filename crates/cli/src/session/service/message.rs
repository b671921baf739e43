//! What a service is asked, and what it answers, at its socket (`AF_UNIX`, `SOCK_SEQPACKET`). A connection
//! has one request and one reply, each a packet; numbers are in the byte order of the machine.
//!
//! | bytes | request |
//! |---|---|
//! | 4 | version of this layout |
//! | 1 | what is asked for ([`What`]) |
//! | 1 | 1: the answer is to be JSON; 0: text |
//! | 2 | 0 |
//! | 64 | name of the session, with zeros after it; all zeros: no session is named |
//!
//! | bytes | reply |
//! |---|---|
//! | 4 | version |
//! | 4 | how it went ([`Outcome`]) |
//! | 4 | bytes of what was printed on standard output |
//! | the rest | that, then what was printed on standard error |

use crate::record::{LONGEST_NAME, check_name};
use clap::ValueEnum;

const VERSION: u32 = 1;
/// Bytes of a reply before its texts.
const HEAD: usize = 12;
/// Most bytes of the texts of a reply.
pub const LONGEST_OUTPUT: usize = 96 << 10;
pub const LONGEST_ERRORS: usize = 16 << 10;

/// What a service does for those that may ask it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    List,
    Status,
    Start,
    Stop,
    Snapshot,
    Rotate,
}

impl What {
    const ALL: [Self; 6] = [Self::List, Self::Status, Self::Start, Self::Stop, Self::Snapshot, Self::Rotate];

    /// As on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Status => "status",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Snapshot => "snapshot",
            Self::Rotate => "rotate",
        }
    }

    /// Whether it is about all sessions, about one, or about either.
    fn accepts(self, name: Option<&str>) -> bool {
        match self {
            Self::List => name.is_none(),
            Self::Status => true,
            Self::Start | Self::Stop | Self::Snapshot | Self::Rotate => name.is_some(),
        }
    }
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub what: What,
    pub is_json: bool,
    pub session: Option<String>,
}

impl Request {
    pub const SIZE: usize = 8 + LONGEST_NAME;

    /// The packet. A name that is too long is cut, which no name of a session is.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[4] = What::ALL.iter().position(|what| *what == self.what).unwrap_or_default() as u8;
        bytes[5] = self.is_json.into();
        let name = self.session.as_deref().unwrap_or_default().as_bytes();
        bytes[8..].iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// `None` if it is not a valid request in every byte.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let version = u32::from_ne_bytes(bytes[..4].try_into().ok()?);
        let what = *What::ALL.get(usize::from(bytes[4]))?;
        let name = &bytes[8..];
        let (name, rest) = name.split_at(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
        let name = str::from_utf8(name).ok()?;
        let session = (!name.is_empty()).then(|| name.to_owned());
        let is_valid = version == VERSION
            && bytes[5] <= 1
            && bytes[6..8] == [0; 2]
            && rest.iter().all(|byte| *byte == 0)
            && (name.is_empty() || check_name(name).is_ok())
            && what.accepts(session.as_deref());
        is_valid.then_some(Self { what, is_json: bytes[5] == 1, session })
    }
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// What was printed on standard error says why.
    Failed,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub outcome: Outcome,
    pub output: String,
    pub errors: String,
}

impl Reply {
    pub const LARGEST: usize = HEAD + LONGEST_OUTPUT + LONGEST_ERRORS;

    /// That it was not done, and why.
    pub fn refusal(why: &str) -> Self {
        Self { outcome: Outcome::Failed, output: String::new(), errors: format!("error: {why}\n") }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.output.len() + self.errors.len());
        let numbers = [VERSION, u32::from(self.outcome != Outcome::Done), self.output.len() as u32];
        numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
        bytes.extend(self.output.as_bytes());
        bytes.extend(self.errors.as_bytes());
        bytes
    }

    /// `None` if it is none of this version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, texts) = bytes.split_at_checked(HEAD)?;
        let number = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let outcome = match number(4)? {
            0 => Outcome::Done,
            1 => Outcome::Failed,
            _ => return None,
        };
        let (output, errors) = texts.split_at_checked(number(8)? as usize)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let is_valid = number(0)? == VERSION && bytes.len() <= Self::LARGEST;
        is_valid.then(|| Self { outcome, output: text(output), errors: text(errors) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(what: What, name: Option<&str>) -> Request {
        Request { what, is_json: what == What::List, session: name.map(str::to_owned) }
    }

    #[test]
    fn requests_come_back() {
        let longest = "a".repeat(LONGEST_NAME);
        for what in What::ALL {
            for name in [None, Some("web"), Some(&*longest)] {
                let request = request(what, name);
                let decoded = Request::decode(&request.encode());
                assert_eq!(decoded, what.accepts(name).then_some(request), "{what:?} {name:?}");
            }
        }
    }

    #[test]
    fn every_byte_of_a_request_is_checked() {
        let bytes = request(What::Start, Some("web")).encode();
        // The version, what, the form, what is reserved, and the zeros after the name.
        for at in (0..8).chain(12..Request::SIZE) {
            let mut wrong = bytes;
            wrong[at] = if at == 4 { 6 } else { 2 };
            assert_eq!(Request::decode(&wrong), None, "byte {at}");
        }
        for name in ["..", "a/b", "../x", "-x", "12", "a\nb", "\u{e9}", " "] {
            assert_eq!(Request::decode(&request(What::Start, Some(name)).encode()), None, "{name}");
        }
        let mut not_utf8 = bytes;
        not_utf8[8] = 0xff;
        assert_eq!(Request::decode(&not_utf8), None);
        assert_eq!(Request::decode(&bytes[1..]), None);
        assert_eq!(Request::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(Request::decode(&[]), None);
    }

    #[test]
    fn replies_come_back_and_others_are_none() {
        let reply = Reply { outcome: Outcome::Done, output: "out".to_owned(), errors: "err".to_owned() };
        let bytes = reply.encode();
        assert_eq!(Reply::decode(&bytes), Some(reply));
        for (at, value) in [(0, 9), (4, 2), (8, 7)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert_eq!(Reply::decode(&wrong), None, "byte {at}");
        }
        assert_eq!(Reply::decode(&bytes[..HEAD - 1]), None);
        let refusal = Reply::refusal("why");
        assert_eq!(Reply::decode(&refusal.encode()), Some(refusal));
    }
}
