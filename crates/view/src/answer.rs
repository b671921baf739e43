//! Which request gets which answer.

use crate::api::{self, Refusal};
use crate::guard;
use crate::page;
use crate::recording::Viewed;
use crate::reply::Reply;
use crate::token::Token;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

/// Longest body of a request, in bytes.
pub(crate) const LONGEST: usize = 64 << 10;

/// What requests are about. Those below `/api/other/` are about the recording that the first one is compared
/// with.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) viewed: Viewed,
    /// What it is compared with.
    pub(crate) other: Option<Viewed>,
    pub(crate) token: Token,
    /// The cookie's name: several recordings can be viewed at once.
    pub(crate) cookie: String,
}

/// What is decided before the body of a request is read.
#[derive(Debug)]
pub(crate) enum Decision {
    Reply(Reply),
    /// The body is to be read: it is the token.
    Enter,
    /// The body is to be read: it asks for something of the recording.
    Ask(String),
}

impl Desk {
    /// All recordings.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Viewed> {
        std::iter::once(&self.viewed).chain(&self.other)
    }

    pub(crate) fn decide(&self, parts: &Parts) -> Decision {
        let refusal = |status, why| Decision::Reply(Reply::refusal(status, why));
        if !guard::is_local(&parts.headers) {
            return refusal(StatusCode::MISDIRECTED_REQUEST, "this server is called 127.0.0.1");
        }
        let path = parts.uri.path();
        // Whichever page leads here: the document has nothing of the recording.
        if path != "/" && !guard::is_own(&parts.headers) {
            return refusal(StatusCode::FORBIDDEN, "another page may not ask this server");
        }
        let Some(asked) = path.strip_prefix("/api/") else {
            return match page::file(path) {
                Some(file) if parts.method == Method::GET => Decision::Reply(file),
                Some(_) => refusal(StatusCode::METHOD_NOT_ALLOWED, "the page can only be read"),
                None => refusal(StatusCode::NOT_FOUND, "there is nothing here"),
            };
        };
        if parts.method != Method::POST {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "ask by POST");
        }
        if asked == "enter" {
            return Decision::Enter;
        }
        if !guard::is_user(&parts.headers, &self.cookie, &self.token) {
            return refusal(StatusCode::UNAUTHORIZED, "open the address that tracewing view has printed");
        }
        Decision::Ask(asked.to_owned())
    }

    /// The user shows the token.
    pub(crate) fn enter(&self, body: &[u8]) -> Reply {
        match std::str::from_utf8(body).is_ok_and(|text| self.token.is(text)) {
            true => Reply::cookie(&self.cookie, self.token.figures()),
            false => Reply::refusal(StatusCode::UNAUTHORIZED, "this is not the token of the recording"),
        }
    }

    /// Answers something of the recording; takes as long as that takes.
    pub(crate) fn ask(&self, asked: &str, body: &[u8]) -> Reply {
        let answer = match (asked.strip_prefix("other/"), &self.other) {
            (None, _) => api::answer(&self.viewed, asked, body),
            (Some(asked), Some(other)) => api::answer(other, asked, body),
            (Some(_), None) => None,
        };
        match answer {
            None => Reply::refusal(StatusCode::NOT_FOUND, "there is nothing here"),
            Some(Ok(reply)) => reply,
            Some(Err(Refusal { status, why })) => Reply::refusal(status, &why),
        }
    }
}
